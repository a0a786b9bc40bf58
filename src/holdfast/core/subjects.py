"""The subjects of waits: what an open execution waits for, in the words by which users search for
it.

A subject is a kind and a target: `event` and the event's name, `ask` and the assignee, `retry` and
the task. `core/waits.py` says what a wait means to the engine; this module says what it means to a
person. `runtime/wait_rows.py` keeps the subjects in an index.

    the frame waits as                   kind       target
    Attempt                              task       the function, or the action of a service
    Attempt after a failure, Delay       retry      the same; the state's name for a Delay
    Attempt or Admission at a gate       limit      the limit
    Attempt of an unknown function       unknown    the function
    Awaiting an event                    event      the event's name
    Awaiting an answer                   ask        the assignee: `anna`, `role:credit_manager`
    Awaiting a token                     callback   the action that got the token, if any
    Awaiting an activity                 activity   the activity's name
    Awaiting a job                       job        the action
    a called workflow, a nested machine  child      the workflow's name, or the action
    Timer                                timer      the state's name
    ChildExecutions                      map        the state's name
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, assert_never

from holdfast.asl.resources import CHILD_WORKFLOW, CONTAINER, is_request
from holdfast.core.state import (
    Admission,
    Attempt,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Queued,
    Timer,
    WaitingFor,
    is_told,
)
from holdfast.core.waits import dues_of
from holdfast.lazy_dataclass import dataclass

#: A wait that ends by itself within this time is not written to the index of waits. The write would
#: cost more than such a short entry is worth.
SHORT_WAIT_MS: Final = 5_000
#: A longer target or error is cut, so that all subjects of an execution fit into one write unit of
#: DynamoDB.
TARGET_CHARACTERS_MAX: Final = 100
ERROR_CHARACTERS_MAX: Final = 80


class WaitKind(StrEnum):
    TASK = "task"
    RETRY = "retry"
    LIMIT = "limit"
    UNKNOWN = "unknown"
    EVENT = "event"
    ASK = "ask"
    CALLBACK = "callback"
    ACTIVITY = "activity"
    JOB = "job"
    CHILD = "child"
    TIMER = "timer"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that an execution waits for. `since_ms`: when the state was entered. `error`: the
    last failure of a retried state.
    """

    since_ms: int
    kind: WaitKind
    target: str
    error: str | None = None


def subjects_of(state: Execution) -> list[Subject]:
    """Return what the execution waits for, the longest wait first."""
    return _of_frames(state.frames.values())


def lasting_subjects(state: Execution, now_ms: int) -> list[Subject]:
    """Return the subjects that last: not attempts that a worker runs, and not waits that end by
    themselves within `SHORT_WAIT_MS`.
    """
    return _of_frames(frame for frame in state.frames.values() if _lasts(frame.waiting, now_ms))


def indexed_subjects(state: Execution, now_ms: int) -> list[Subject]:
    """Return the subjects for the index: those that last, or all when none lasts."""
    return lasting_subjects(state, now_ms) or subjects_of(state)


def _lasts(waiting: WaitingFor, now_ms: int) -> bool:
    if isinstance(waiting, Attempt) and waiting.claim is not None:
        return False
    dues_ms = [due_ms for _, due_ms in dues_of(waiting)]
    return not dues_ms or min(dues_ms) > now_ms + SHORT_WAIT_MS


def _of_frames(frames: Iterable[Frame]) -> list[Subject]:
    """Return one subject for all frames that wait for the same thing. It has the data of the
    longest wait.
    """
    found: dict[tuple[WaitKind, str], Subject] = {}
    for subject in sorted(filter(None, map(_subject_of, frames)), key=_age):
        found.setdefault((subject.kind, subject.target), subject)
    return list(found.values())


def _age(subject: Subject) -> tuple[int, str, str, str]:
    return subject.since_ms, subject.kind, subject.target, subject.error or ""


def _subject_of(frame: Frame) -> Subject | None:
    waiting = frame.waiting
    match waiting:
        case Admission(queued=queued):
            kind, target = WaitKind.LIMIT, _limit_of(queued)
        case Attempt():
            kind, target = _of_attempt(waiting, frame)
        case Awaiting():
            kind, target = _of_awaiting(waiting)
        case Timer():
            kind, target = WaitKind.TIMER, frame.position
        case Delay():
            kind, target = WaitKind.RETRY, frame.position
        case ChildExecutions():
            kind, target = WaitKind.MAP, frame.position
        case Entered() | Exited() | FailedState() | Lanes():
            # The frame has no subject. It continues at once, or it waits for its branches or
            # iterations, each of which has a frame with its own subject.
            return None
        case _:
            assert_never(waiting)
    error = None if frame.error is None else frame.error[:ERROR_CHARACTERS_MAX]
    return Subject(frame.entered_ms, kind, target[:TARGET_CHARACTERS_MAX], error)


def _of_attempt(attempt: Attempt, frame: Frame) -> tuple[WaitKind, str]:
    target = attempt.target.removeprefix(CHILD_WORKFLOW)
    if attempt.is_unknown:
        return WaitKind.UNKNOWN, target
    if attempt.queued is not None and not attempt.queued.is_batch:
        return WaitKind.LIMIT, _limit_of(attempt.queued)
    if frame.error is not None:
        return WaitKind.RETRY, target
    return (WaitKind.CHILD if is_told(attempt.target) else WaitKind.TASK), target


def _of_awaiting(awaiting: Awaiting) -> tuple[WaitKind, str]:
    match awaiting.kind:
        case "event":
            return WaitKind.EVENT, awaiting.event_name
        case "ask":
            return WaitKind.ASK, awaiting.text("assignee")
        case "token" | "callback":
            if is_request(awaiting.kind, awaiting.target):
                return WaitKind.CALLBACK, awaiting.text("name")
            return WaitKind.CALLBACK, awaiting.target.removeprefix(CONTAINER)
        case "activity":
            return WaitKind.ACTIVITY, awaiting.target.rpartition(":")[2]
        case "sync":
            kind = WaitKind.CHILD if is_told(awaiting.target) else WaitKind.JOB
            return kind, awaiting.target.removeprefix(CHILD_WORKFLOW)
        case "task" | "pure" | "lambda" | "service" | "command" | "read" | "write":
            return WaitKind.TASK, awaiting.target
        case _:
            assert_never(awaiting.kind)


def _limit_of(queued: Queued) -> str:
    """Return the name of the gate's limit. A gate's id is that name, "#", the key and the shard."""
    return queued.gate.rpartition("#")[0]
