"""Bugs of a skip: it reaches another visit, or loses its result (I22, I13)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from holdfast.core import skipping
from holdfast.core.facts import SkipRequested
from holdfast.core.state import Execution, Frame
from tests.sim.planted.kit import CORPUS, Patch, Planted

_STEPS: Final = CORPUS["skipped steps"]
_LOOP: Final = CORPUS["skipped in a loop"]
_ALWAYS: Final = {"skip_percent": 100, "stop_percent": 0, "redrive_percent": 0}


def _skip_any_visit(patch: Patch) -> None:
    """The line alone decides, whichever visit of the state the operator has seen."""

    def step_of(state: Execution, fact: SkipRequested) -> Frame | None:
        return state.frames.get(fact.frame)

    patch.setattr(skipping, "step_of", step_of)


def _lose_the_result(patch: Patch) -> None:
    real = skipping.skip

    def skip(decision: Any, fact: SkipRequested) -> None:
        real(decision, replace(fact, output={"lost": True}))

    patch.setattr(skipping, "skip", skip)


PLANTED = (
    Planted(
        "a skip reaches the next visit of a step",
        _skip_any_visit,
        frozenset({"I22"}),
        _LOOP,
        {},
        {**_ALWAYS, "latency_ms": 300},
    ),
    Planted(
        "a skip gives another result",
        _lose_the_result,
        frozenset({"I22", "I13"}),
        _STEPS,
        {},
        _ALWAYS,
    ),
)
