"""The program of an execution, read from the store as a worker reads it."""

from __future__ import annotations

import json
import zlib
from functools import lru_cache

from holdfast.asl.parse import read_program
from holdfast.asl.program import Program
from holdfast.runtime import keys
from holdfast.runtime.effects import Get
from holdfast.sim.histories import History
from holdfast.sim.invariants.case import Case


def program_of(case: Case, history: History) -> Program | None:
    """None where the definition is not stored: a world that was filled by hand."""
    partition = keys.definition(history.tenant, history.state.definition)
    item = case.services.perform(Get("mail", partition, keys.ONLY))
    return None if item is None else _program(bytes(item["doc"]))


@lru_cache(maxsize=256)
def _program(document: bytes) -> Program:
    machine, _source_map = json.loads(zlib.decompress(document))
    return read_program(machine)
