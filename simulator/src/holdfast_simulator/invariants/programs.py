"""The program of an execution, read from the store as a worker reads it."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from holdfast.asl.parsing.parse import read_program
from holdfast.asl.program import Program
from holdfast.runtime.effects import Get
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case

#: Compiled workflows keep their undo steps in `<name>_steps`, and the number of remaining ones in
#: `<name>_left`.
_LEFT: Final = re.compile(r"(.+)_left(_[0-9]+)?")


def program_of(case: Case, history: StoredHistory) -> Program | None:
    """Return the program; None where the definition is not stored, in a world that was filled by
    hand.
    """
    document = _document(case, history)
    return None if document is None else _program(document)


def silent_states(case: Case, history: StoredHistory) -> frozenset[str]:
    """Return states that fail without an event: those in JSONPath when one of their fields does,
    and a Choice without a Default when nothing fits.
    """
    document = _document(case, history)
    return frozenset() if document is None else _silent(document)


def undo_steps(case: Case, history: StoredHistory) -> dict[str, str]:
    """Return, for a compiled workflow, the variable that lists the steps of each undo, by the first
    state of that undo.
    """
    document = _document(case, history)
    return {} if document is None else _steps(document)


def numbers_at_once(case: Case, history: StoredHistory) -> dict[str, int]:
    """Return how many iterations may run at once in each Map with a number for it; 0: no bound."""
    document = _document(case, history)
    return {} if document is None else _at_once(document)


def _document(case: Case, history: StoredHistory) -> bytes | None:
    partition = keys.definition(history.tenant, history.state.definition)
    item = case.services.perform(Get(tables.MAIL, partition, keys.ONLY))
    return None if item is None else item["doc"]


def _machine(document: bytes) -> Any:
    machine, _source_map = json.loads(zlib.decompress(document))
    return machine


@lru_cache(maxsize=256)
def _program(document: bytes) -> Program:
    return read_program(_machine(document))


@lru_cache(maxsize=256)
def _steps(document: bytes) -> dict[str, str]:
    undos = _machine(document).get("Holdfast", {}).get("Undo", ())
    assigned = (
        (undo["Begin"], _LEFT.fullmatch(name)) for undo in undos for name in undo.get("Assign", ())
    )
    return {begin: f"{left[1]}_steps{left[2] or ''}" for begin, left in assigned if left}


@lru_cache(maxsize=256)
def _at_once(document: bytes) -> dict[str, int]:
    return {
        name: state["MaxConcurrency"]
        for name, state in _states(_machine(document))
        if isinstance(state.get("MaxConcurrency"), int)
    }


def _states(machine: Any) -> Iterator[tuple[str, Any]]:
    for name, state in machine["States"].items():
        yield name, state
        for part in _inside(state):
            yield from _states(part)


def _inside(state: Any) -> list[Any]:
    parts = [*state.get("Branches", ()), state.get("ItemProcessor"), state.get("Iterator")]
    return [part for part in parts if part is not None]


@lru_cache(maxsize=256)
def _silent(document: bytes) -> frozenset[str]:
    machine = _machine(document)
    return frozenset(_failing_silently(machine, machine.get("QueryLanguage", "JSONPath")))


def _failing_silently(machine: Any, language: str) -> Iterator[str]:
    for name, state in machine["States"].items():
        own = state.get("QueryLanguage", language)
        has_no_way_out = state["Type"] == "Choice" and "Default" not in state
        if own == "JSONPath" or has_no_way_out:
            yield name
        for part in _inside(state):
            yield from _failing_silently(part, language)
