"""Examine one execution: find what should have happened by now, from its state and its inbox.

Findings of any age are returned. The caller drops young ones, because a worker may be processing
them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, assert_never

from holdfast.core.diagnosis import diagnose
from holdfast.core.facts import (
    BoundsRequested,
    MigrateRequested,
    PauseRequested,
    PriorityRequested,
    RedriveRequested,
    ResumeRequested,
    SkipRequested,
    StopRequested,
)
from holdfast.core.redriving import is_redriven_by
from holdfast.core.run_ids import child_run
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
    Pause,
    Queued,
    Timer,
    is_told,
)
from holdfast.core.waits import abandoned
from holdfast.errors import HoldfastError, NewerFormatError, ServiceFault, is_passing
from holdfast.limits import STUCK_SECONDS
from holdfast.runtime import children, inbox
from holdfast.runtime.effects import Effect, Get, Item, Query
from holdfast.runtime.gates.gate import gate_from
from holdfast.runtime.maintenance.quarantine import Quarantined
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import ITEMS, Formats, require_format
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import DUE, Spread

Findings: TypeAlias = Generator[Effect, Any, "list[Diagnosed]"]


class Symptom(StrEnum):
    """The symptoms other than overdue times, which are in `core.diagnosis.OverdueReason`."""

    CONTROL_UNSEEN = "a stop or a redrive is stored and no worker has carried it out"
    EVENT_UNAPPLIED = "the event that it waits for is stored and no worker has applied it"
    ANSWER_UNAPPLIED = "the answer that it waits for is stored and no worker has applied it"
    NOTICE_UNAPPLIED = "a child has told its end and no worker has counted it"
    CHILD_UNTOLD = "it has ended and has not told the execution that waits for it"
    CHILD_MISSING = "its child was asked for and has not begun"
    UNKNOWN_FUNCTION = "no worker knows the function that it calls"
    NOT_WATCHED = "the sweeper does not look after it: its watch row is missing"
    CHILD_UNSTOPPED = "no wait for its child is left, and no worker has stopped that child"
    LIST_STALE = "it has ended and is still listed as RUNNING"
    NOT_BEGUN = "it was accepted and has not begun"
    QUEUE_UNSERVED = "it waits for a limit whose queue no tick serves"
    POOL_UNSERVED = "it waits for a worker of a pool, and no worker that is there has its task"
    QUARANTINED = "its message was quarantined"
    PAUSED = "an operator has paused it"
    UNREADABLE_LOG = "its log, or what came for it, cannot be read"
    NEWER_FORMAT = "its log, or what came for it, was written by newer code"
    UNREADABLE_LETTER = "a message in a dead-letter queue cannot be read"


class Repair(StrEnum):
    """What `doctor --repair` does about a finding."""

    TELL = "a worker is told to look at it"
    WATCH = "its watch row is put again"
    RELEASE = "its message is sent again, alone in its batch"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """One finding of `doctor`. `run` is the execution to repair. `says` is a text for people,
    without user data.
    """

    run: str
    reason: str
    says: str
    since_ms: int
    repair: Repair
    name: str | None = None
    workflow: str | None = None
    state: str = ""
    advice: str = ""


@dataclass(slots=True)
class Examination:
    """The knowledge of one run of the doctor: tenant, spread, time, watched executions, quarantined
    executions.
    """

    tenant: str
    spread: Spread
    now_ms: int
    held: Mapping[str, Quarantined]
    watched: dict[int, frozenset[str]] = field(default_factory=dict)

    @property
    def stuck_ms(self) -> int:
        """Return the time before which something must have been due to be reported as late."""
        return self.now_ms - 1_000 * STUCK_SECONDS


# -- one execution ---------------------------------------------------------------------------------


def examine(place: Examination, run: str) -> Generator[Effect, Any, tuple[Log, list[Diagnosed]]]:
    """Return the execution's log, loaded as far as possible, and every finding about it, of any
    age.
    """
    log = log_of(place, run)
    if run in place.held:
        # The quarantine has a finding of its own for this execution.
        return log, []
    try:
        return log, (yield from _all_of(place, log))
    except HoldfastError as error:
        if is_passing(error):
            raise
        # Report an execution that cannot be read as a finding. If the error were raised, the
        # executions after it would not be examined.
        return log, [unreadable(run, error)]


def _all_of(place: Examination, log: Log) -> Findings:
    yield from log.load()
    if log.state is None:
        return []
    if log.state.is_ended:
        return (yield from _of_control(log))
    found = [
        finding_of(log, one.reason, one.since_ms, state=one.state)
        for one in diagnose(log.state, place.now_ms)
    ]
    if abandoned(log.state):
        found.append(finding_of(log, Symptom.CHILD_UNSTOPPED, log.records[-1].at_ms))
    found += yield from _of_control(log)
    if log.state.paused is not None:
        found.append(_paused(log, log.state.paused))
    else:
        # During a pause no inbox message is late, because messages wait for the resume.
        for frame in log.state.frames.values():
            found += yield from _of_frame(place, log, frame)
    found += yield from _of_watch(place, log)
    return found


def _paused(log: Log, pause: Pause) -> Diagnosed:
    """Report a pause. It is no fault and needs no repair, but it explains why the execution does
    not continue.
    """
    by = f" by {pause.by}" if pause.by else ""
    advice = f"paused{by}, timers {pause.timers}: {pause.reason}; `holdfast resume {log.run}`"
    return finding_of(log, Symptom.PAUSED, pause.since_ms, repair=Repair.NONE, advice=advice)


def log_of(place: Examination, run: str) -> Log:
    return Log(place.tenant, run, "doctor", "")


def finding_of(
    log: Log,
    why: StrEnum,
    since_ms: int,
    *,
    repair: Repair = Repair.TELL,
    state: str = "",
    advice: str = "",
) -> Diagnosed:
    assert log.state is not None
    named = (log.state.name, log.state.workflow)
    return Diagnosed(log.run, why.name, why.value, since_ms, repair, *named, state, advice)


def unreadable(run: str, error: HoldfastError) -> Diagnosed:
    why = Symptom.NEWER_FORMAT if isinstance(error, NewerFormatError) else Symptom.UNREADABLE_LOG
    advice, message = error.help, error.message
    if isinstance(error, ServiceFault):
        # The finding must not quote AWS's text of a refusal, because it contains names of roles and
        # tables.
        message = "a service that this stack works with does not give it"
        advice = "docs/reference/errors.md says what the code asks for; nothing writes to its log"
    advice = advice or "restore it from a backup of the table; nothing writes to its log"
    said = f"{why}: {error.code}: {message}"
    return Diagnosed(run, why.name, said, keys.minted_ms(run), Repair.NONE, advice=advice)


def late(place: Examination, found: Iterable[Diagnosed]) -> list[Diagnosed]:
    """Return the oldest finding for each execution and reason, without young findings that a
    message on its way may still mend.
    """
    oldest: dict[tuple[str, str], Diagnosed] = {}
    for one in sorted(found, key=lambda one: one.since_ms):
        if one.since_ms <= place.stuck_ms or one.reason == Symptom.UNKNOWN_FUNCTION.name:
            oldest.setdefault((one.run, one.reason), one)
    return list(oldest.values())


# -- the inbox -------------------------------------------------------------------------------------


def _of_control(log: Log) -> Findings:
    assert log.state is not None
    state = log.state
    if state.is_ended and not state.resting:
        return []
    found: list[Diagnosed] = []
    for stored_ms, fact in (yield from inbox.stored_control(log.tenant, state)):
        match fact:
            case StopRequested():
                is_due = not state.is_ended
            case RedriveRequested():
                is_due = is_redriven_by(state, fact)
            case (
                PauseRequested()
                | ResumeRequested()
                | PriorityRequested()
                | BoundsRequested()
                | SkipRequested()
                | MigrateRequested()
            ):
                # `stored_control` returns only requests that can still be applied, so each of them
                # is due.
                is_due = True
            case _:
                assert_never(fact)
        if is_due:
            found.append(finding_of(log, Symptom.CONTROL_UNSEEN, stored_ms))
    return found


def _stored_ms(item: Item, what: str, formats: Formats = ITEMS) -> int:
    require_format(item, what, formats)
    with reading(what):
        return int(item["at"])


def _of_frame(place: Examination, log: Log, frame: Frame) -> Findings:
    waiting = frame.waiting
    match waiting:
        case Attempt(queued=Queued() as queued) | Admission(queued=queued):
            return (yield from _of_queue(place, log, frame, queued))
        case Attempt():
            return _unknown_function(log, frame, waiting) if waiting.is_unknown else []
        case Awaiting(kind="event"):
            stored_ms = yield from _event_ms(place, log, waiting)
            return _unapplied(log, frame, Symptom.EVENT_UNAPPLIED, stored_ms)
        case Awaiting():
            return (yield from _of_answer(place, log, frame, waiting))
        case ChildExecutions():
            return (yield from _of_lanes(place, log, frame, waiting))
        case Entered() | Exited() | FailedState() | Timer() | Delay() | Lanes():
            return []
        case _:
            assert_never(waiting)


def _unknown_function(log: Log, frame: Frame, attempt: Attempt) -> list[Diagnosed]:
    advice = (
        f"deploy a module with {attempt.target!r}; `holdfast migrate {log.run} --dry-run` says "
        "whether the execution may move to a version without it"
    )
    why, since_ms = Symptom.UNKNOWN_FUNCTION, max(attempt.due_ms, frame.entered_ms)
    return [finding_of(log, why, since_ms, state=frame.position, advice=advice)]


def _of_queue(place: Examination, log: Log, frame: Frame, queued: Queued) -> Findings:
    """Report a queue that no tick message serves. The queue of a paused limit still gets ticks,
    with the longest pause between them.
    """
    gate = gate_from((yield Get(tables.MAIL, keys.gate(queued.gate), keys.ONLY)))
    if gate.has_waiters and not gate.is_chain_dead(place.now_ms):
        return []
    since_ms = max(queued.since_ms, gate.chain_ms)
    return [finding_of(log, Symptom.QUEUE_UNSERVED, since_ms, state=frame.position)]


def _unapplied(log: Log, frame: Frame, why: Symptom, stored_ms: int | None) -> list[Diagnosed]:
    if stored_ms is None:
        return []
    return [finding_of(log, why, max(stored_ms, frame.entered_ms), state=frame.position)]


def _event_ms(
    place: Examination, log: Log, awaiting: Awaiting
) -> Generator[Effect, Any, int | None]:
    """Return the time at which the first event that fits the wait was stored."""
    assert log.state is not None
    used, state = log.state.used_events, log.state
    items = yield from inbox.events_of(
        place.tenant, log.run, awaiting.event_name, awaiting.event_key
    )
    fitting = [
        _stored_ms(item, "an event", inbox.EVENT_FORMATS)
        for item in items
        if str(item["sk"]).removeprefix(keys.EVENT_PREFIX) not in used
        and not _is_expired(place, item)
        and state.takes_event_of(awaiting, _stored_ms(item, "an event", inbox.EVENT_FORMATS))
    ]
    return min(fitting, default=None)


def _is_expired(place: Examination, item: Item) -> bool:
    with reading("an event"):
        return int(item["expires"]) <= place.now_ms


def _of_answer(place: Examination, log: Log, frame: Frame, awaiting: Awaiting) -> Findings:
    partition = keys.inbox(place.tenant, log.run)
    item = yield Get(tables.MAIL, partition, keys.answer(awaiting.entry, awaiting.attempt))
    if item is not None:
        return _unapplied(log, frame, Symptom.ANSWER_UNAPPLIED, _stored_ms(item, "an answer"))
    if not is_told(awaiting.target):
        return []
    child = log_of(place, child_run(log.run, awaiting.entry, awaiting.attempt))
    return (yield from _of_child(place, log, child, frame))


def _of_lanes(place: Examination, log: Log, frame: Frame, waiting: ChildExecutions) -> Findings:
    """Examine the child executions of a distributed Map. They are in no list, so this happens when
    the Map's execution is examined.
    """
    found: list[Diagnosed] = []
    for lane in waiting.open_lanes:
        key = children.notice_key(waiting.entry, lane, waiting.redrives)
        item = yield Get(tables.MAIL, keys.inbox(place.tenant, log.run), key)
        if item is not None:
            stored_ms = _stored_ms(item, "a notice of a child's end")
            found += _unapplied(log, frame, Symptom.NOTICE_UNAPPLIED, stored_ms)
            continue
        run = child_run(log.run, waiting.entry, lane)
        child, own = yield from examine(place, run)
        found += own or (yield from _of_child(place, log, child, frame))
    return found


def _of_child(place: Examination, log: Log, child: Log, frame: Frame) -> Findings:
    """Examine a child whose end is not in the inbox: find out whether it has begun and whether it
    has ended.
    """
    held = place.held.get(child.run)
    if held is not None and not held.is_end:
        # The quarantine has a finding of its own for the child.
        return []
    if child.state is None:
        try:
            yield from child.load()
        except HoldfastError as error:
            if is_passing(error):
                raise
            # `examine` reports the unreadable log when it examines the child itself. A second
            # finding here would say, wrongly, that the child is missing.
            return []
    if child.state is None:
        is_lane = isinstance(frame.waiting, ChildExecutions)
        repair = Repair.TELL if is_lane else Repair.NONE
        advice = "" if is_lane else "the sweeper sends its start again within an hour"
        since_ms, state = frame.entered_ms, frame.position
        why = Symptom.CHILD_MISSING
        return [finding_of(log, why, since_ms, repair=repair, state=state, advice=advice)]
    if child.state.is_ended and child.state.stopped_ms is not None:
        # An older end of a redriven child is not a fault: the redrive is on its way.
        redriven_ms = log.records[-1].at_ms if _is_earlier(child.state, frame) else 0
        since_ms = max(child.state.stopped_ms, redriven_ms)
        return [finding_of(child, Symptom.CHILD_UNTOLD, since_ms)]
    return []


def _is_earlier(child: Execution, frame: Frame) -> bool:
    """Return True when the child ended before the last redrive of its map run."""
    waiting, parent = frame.waiting, child.parent
    if parent is None or not isinstance(waiting, ChildExecutions):
        return False
    return parent.get("round", 0) < waiting.redrives


# -- watching --------------------------------------------------------------------------------------


def _of_watch(place: Examination, log: Log) -> Findings:
    state: Execution | None = log.state
    assert state is not None
    if not state.is_opened:
        # SQS still has the start message of this execution and delivers it again after a crash, so
        # no watchdog row is needed.
        return []
    watched = yield from watched_in(place, DUE.of(log.run))
    if keys.execution(place.tenant, log.run) in watched:
        return []
    # The watchdog rows were read before this log, and the execution may have been opened in
    # between. So the finding has the time of the opening, and a young one is not reported.
    return [finding_of(log, Symptom.NOT_WATCHED, state.opened_ms, repair=Repair.WATCH)]


def watched_in(place: Examination, shard: int) -> Generator[Effect, Any, frozenset[str]]:
    """Return the partitions of all logs, of every tenant, that have a watchdog row in this
    shard.
    """
    if shard not in place.watched:
        rows = yield Query(tables.MAIL, keys.due_partition(shard))
        place.watched[shard] = frozenset(_watched(rows))
    return place.watched[shard]


def _watched(rows: Iterable[Item]) -> Iterator[str]:
    for row in rows:
        watched = keys.watched_by(str(row["sk"]))
        if watched is not None:
            yield watched
