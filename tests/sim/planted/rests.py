"""Bugs of idle executions and of the frequency of checks: nothing is lost at once, and much in time
(I16, I17, I20).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.core import attempt_facts, diagnosis
from holdfast.core.state import Delay
from holdfast.limits import WATCH_GRID_SECONDS
from holdfast.runtime import children, watchdog
from holdfast.runtime.commands import presentation
from holdfast.runtime.effects import Effect
from tests.builders import ask, call, machine
from tests.sim.planted.kit import CORPUS, AttemptOutcome, Patch, Planted, Scenario
from tests.sim.planted.timing import DAY_SECONDS, LONG, NAP


def _beside(*machines: Any, **fields: Any) -> dict[str, Any]:
    branches = [{"StartAt": one["StartAt"], "States": one["States"]} for one in machines]
    return {"Type": "Parallel", "Branches": branches, "End": True, **fields}


_TRIED = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 30}]
DELAYED = Scenario(
    "delayed",
    "a Parallel that is tried again after half a minute",
    {"main": machine({"all": _beside(machine({"f": call("f")}), Retry=_TRIED)})},
    tasks={"f": (AttemptOutcome(error="Broken"),)},
)
ASKED_TWICE = Scenario(
    "asked twice",
    "two people side by side",
    {"main": machine({"all": _beside(*(machine({f"person {n}": ask()}) for n in range(2)))})},
)
_SUBMIT = "arn:aws:states:::batch:submitJob.sync"
JOB = Scenario(
    "job",
    "a job of ten minutes",
    {"main": machine({"job": {"Type": "Task", "Resource": _SUBMIT, "Arguments": {}, "End": True}})},
    tasks={"batch:submitJob": (AttemptOutcome(output={"JobId": "j"}),)},
    jobs={"batch:submitJob": (AttemptOutcome(output={}, seconds=600),)},
)


def _look_in_six_days(patch: Patch) -> None:
    later_ms = 6 * DAY_SECONDS * 1_000
    patch.setattr(watchdog, "look_after_ms", lambda due_ms, _now_ms: due_ms + later_ms)


def _forget_delays(patch: Patch) -> None:
    """Forget the delay of a Parallel that waits before its retry."""
    real = diagnosis._of_frame

    def of_frame(frame: Any, pause: Any) -> Any:
        return () if isinstance(frame.waiting, Delay) else real(frame, pause)

    patch.setattr(diagnosis, "_of_frame", of_frame)


def _show_no_lanes(patch: Patch) -> None:
    """Show the waits of the execution itself, and not those of its lanes."""
    real = presentation._waiting

    def waiting(state: Any, frame: Any, *more: Any) -> Any:
        return real(state, frame, *more) if frame.owner is None else None

    patch.setattr(presentation, "_waiting", waiting)


def _look_every_two_minutes(patch: Patch) -> None:
    grid_ms = WATCH_GRID_SECONDS * 1_000

    def next_look_ms(_state: Any, _parked_ms: int, now_ms: int) -> int:
        return (now_ms // grid_ms + 1) * grid_ms

    patch.setattr(watchdog, "next_look_ms", next_look_ms)


def _ask_each_second(patch: Patch) -> None:
    patch.setattr(attempt_facts, "poll_seconds", lambda _polls: 1)


def _wake_whoever_has_ended(patch: Patch) -> None:
    """Each end that is delivered again wakes the parent, which wakes its own, and so on."""

    def may_wait(*_: Any) -> Generator[Effect, Any, bool]:
        return True
        yield

    patch.setattr(children, "_may_wait", may_wait)


_LOST = {"vanished": 0.5}
PLANTED = (
    Planted(
        "the sweeper looks six days after what is due",
        _look_in_six_days,
        frozenset({"I17"}),
        NAP,
        _LOST,
    ),
    Planted("no row tells of a delay", _forget_delays, frozenset({"I16", "I17"}), DELAYED, _LOST),
    Planted(
        "what lanes wait for is not shown", _show_no_lanes, frozenset({"I16"}), ASKED_TWICE, {}
    ),
    Planted(
        "the sweeper looks every two minutes",
        _look_every_two_minutes,
        frozenset({"I20"}),
        LONG,
        {},
    ),
    Planted(
        "a parent that has ended is woken again and again",
        _wake_whoever_has_ended,
        frozenset({"I20"}),
        CORPUS["recursion"],
        {"not deleted": 0.8, "delivered again": 0.1},
        {"safety_ms": 2_000_000},
        seed=8,
    ),
    Planted("a job is asked for each second", _ask_each_second, frozenset({"I20"}), JOB, {}),
)
