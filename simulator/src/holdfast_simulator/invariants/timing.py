"""I6, I8: the times of events, and which of two comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.asl import error_names
from holdfast.core.events import Event
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import dues
from holdfast_simulator.invariants.case import Case

_TIMEOUT: Final = error_names.TIMEOUT


def never_early(case: Case) -> Iterator[str]:
    """Check by true time that no error of a clock makes an event early."""
    raised = _raised_time_outs(case)
    for history, due in dues.all_dues(case):
        if due.came_ms is None or due.what == "begin":
            continue
        is_early = due.came_ms < due.true_ms
        if is_early and (history.run, *due.ticket) not in raised:
            yield f"{history.run}: a {due.what} due at {due.true_ms} came at {due.came_ms}"
    for _, found in dues.dues_of(case):
        yield from found.problems


def _raised_time_outs(case: Case) -> set[tuple[str, int, int]]:
    """Return attempts whose own result was the error of a time-out: they look like a time-out."""
    raised = {
        (run, *_ticket(key)) for run, key, item in _answers(case) if item.get("error") == _TIMEOUT
    }
    if case.evidence is not None:
        scenario = case.evidence.scenario
        failing = {
            name
            for name, outcomes in scenario.tasks.items()
            if any(one.error == _TIMEOUT for one in outcomes)
        }
        for history in case.histories if failing else ():
            for event in history.events:
                resource = str(event.details.get("resource", ""))
                if event.type.endswith("Scheduled") and resource.rpartition(":")[2] in failing:
                    ticket = (event.holdfast["entry"], event.holdfast["attempt"])
                    raised.add((history.run, *ticket))
    return raised


def _answers(case: Case) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield run, key and item of each answer in the inbox."""
    for item in case.services.items(tables.MAIL):
        key = str(item["sk"])
        _, is_inbox, run = str(item["pk"]).partition("#in#")
        if is_inbox and key.startswith("t#"):
            yield run, key, dict(item)


def _ticket(key: str) -> tuple[int, int]:
    entry, _, attempt = key[2:].partition(".")
    return int(entry), int(attempt)


# -- one wins --------------------------------------------------------------------------------------


def one_wins(case: Case) -> Iterator[str]:
    """Check that a waiting place is closed once. A message that is stored before the decision on a
    time-out wins over it (R14).
    """
    raised = _raised_time_outs(case)
    for history in case.histories:
        yield from _closed_once(history)
    if case.evidence is not None:
        yield from _stored_wins(case, raised)


def _closed_once(history: StoredHistory) -> Iterator[str]:
    """Check results, answers and time-outs: one for each scheduled attempt, and none for
    any other.
    """
    open_tasks: dict[str, tuple[int, int]] = {}
    for event in history.events:
        frame = str(event.holdfast.get("frame", ""))
        if event.type.endswith("Scheduled"):
            if frame in open_tasks:
                yield f"{history.run}: {open_tasks[frame]} is scheduled over"
            open_tasks[frame] = (event.holdfast["entry"], event.holdfast["attempt"])
        elif event.type in ("UndoStarted", "DeadlinePassed") or event.type.endswith(
            ("StateAborted", "StateEntered", "StateExited")
        ):
            open_tasks.pop(frame, None)
        elif _closes(event) and open_tasks.pop(frame, None) is None:
            yield f"{history.run}: {event.type} closes what is not open"
        elif event.type == "ExecutionRedriven":
            open_tasks.clear()


def _closes(event: Event) -> bool:
    is_task = event.type.startswith(("Task", "LambdaFunction", "Activity"))
    return is_task and event.type.endswith(("Succeeded", "Failed", "TimedOut"))


def _stored_wins(case: Case, raised: set[tuple[str, int, int]]) -> Iterator[str]:
    schedule = case.schedule
    for history, due in dues.all_dues(case):
        if due.what != "time-out" or due.came_ms is None or (history.run, *due.ticket) in raised:
            continue
        place = (keys.inbox(history.tenant, history.run), keys.answer(*due.ticket))
        stored_ms = schedule.stored.get(place)
        if stored_ms is not None and stored_ms < due.came_ms:
            yield (
                f"{history.run}: {due.ticket} timed out at {due.came_ms}, and its answer was "
                f"stored at {stored_ms}"
            )
        if due.beat_seconds is not None:
            beats = schedule.beats.get((place[0], keys.heartbeat(due.ticket[0])), ())
            for beat_ms, said_ms in beats:
                if beat_ms < due.came_ms < said_ms + due.beat_seconds * 1_000 - CLOCK_ERROR_MS:
                    yield f"{history.run}: {due.ticket} was beaten for at {said_ms}, and timed out"
