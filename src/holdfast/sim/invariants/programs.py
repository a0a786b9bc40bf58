"""The program of an execution, read from the store as a worker reads it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from holdfast.asl.parse import read_program
from holdfast.asl.program import Program
from holdfast.runtime import keys
from holdfast.runtime.effects import Get
from holdfast.sim.histories import History
from holdfast.sim.invariants.case import Case


def program_of(case: Case, history: History) -> Program | None:
    """None where the definition is not stored: a world that was filled by hand."""
    document = _document(case, history)
    return None if document is None else _program(document)


def silent_states(case: Case, history: History) -> frozenset[str]:
    """-> states of which AWS tells no event when one of their fields fails: those in JSONPath."""
    document = _document(case, history)
    return frozenset() if document is None else _silent(document)


def _document(case: Case, history: History) -> bytes | None:
    partition = keys.definition(history.tenant, history.state.definition)
    item = case.services.perform(Get("mail", partition, keys.ONLY))
    return None if item is None else item["doc"]


def _machine(document: bytes) -> Any:
    machine, _source_map = json.loads(zlib.decompress(document))
    return machine


@lru_cache(maxsize=256)
def _program(document: bytes) -> Program:
    return read_program(_machine(document))


@lru_cache(maxsize=256)
def _silent(document: bytes) -> frozenset[str]:
    machine = _machine(document)
    return frozenset(_in_json_path(machine, machine.get("QueryLanguage", "JSONPath")))


def _in_json_path(machine: Any, language: str) -> Iterator[str]:
    for name, state in machine["States"].items():
        own = state.get("QueryLanguage", language)
        if own == "JSONPath":
            yield name
        inner = [*state.get("Branches", ()), state.get("ItemProcessor"), state.get("Iterator")]
        for part in inner:
            if part is not None:
                yield from _in_json_path(part, language)
