"""Bugs of the log protocol: records, doubts, messages, claims (R1 to R9)."""

from __future__ import annotations

from typing import Any

from holdfast.runtime import log
from holdfast.runtime.effects import Doubt, PutIfAbsent
from tests.builders import call, machine
from tests.sim.planted.kit import Patch, Planted, Scenario

STEPS = Scenario(
    "three steps",
    "one task after another",
    {"main": machine({"a": call("one", "b"), "b": call("two", "c"), "c": call("three")})},
    {"n": 1},
)


def _believe_a_doubt(patch: Patch) -> None:
    def believe(table: Any, item: Any) -> Any:
        try:
            return (yield PutIfAbsent(table, item)) is None
        except Doubt:
            return True

    patch.setattr(log, "put_surely", believe)


PLANTED = (
    Planted(
        "a write in doubt is believed",
        _believe_a_doubt,
        frozenset({"I1", "I2", "I4", "I16", "I17"}),
        STEPS,
        {"not done": 0.1},
    ),
)
