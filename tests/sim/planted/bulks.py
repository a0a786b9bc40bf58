"""Bugs of a bulk operation: a crash repeats its commands, or its report is wrong (I26)."""

from __future__ import annotations

from typing import Any, Final

from holdfast.runtime.worker import bulk_pages
from tests.sim.planted.kit import CORPUS, Patch, Planted

_TASKS: Final = CORPUS["chain of tasks"]
_ALWAYS: Final = {"bulk_percent": 100, "stop_percent": 0, "redrive_percent": 0}
_ONLY: Final = frozenset({"I26"})


def _give_again(patch: Patch) -> None:
    """A repeated command has an id of its own."""
    patch.setattr(bulk_pages, "once", lambda command, _moment: command)


def _report_nothing(patch: Patch) -> None:
    """The step that gives the commands says of each that it was refused."""
    real = bulk_pages._act

    def act(known: Any, place: Any, given: Any) -> Any:
        result = yield from real(known, place, given)
        return {**result, "outcomes": dict.fromkeys(result["outcomes"], "HF000: refused")}

    patch.setattr(bulk_pages, "_act", act)


PLANTED = (
    Planted(
        "a bulk operation gives a command again after a crash",
        _give_again,
        _ONLY,
        _TASKS,
        {"killed before": 0.05, "killed after": 0.1},
        _ALWAYS,
    ),
    Planted(
        "the report of a bulk operation calls a given command refused",
        _report_nothing,
        _ONLY,
        _TASKS,
        {},
        _ALWAYS,
    ),
)
