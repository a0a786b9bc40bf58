"""The situations that a schedule was in, found in its histories and in the answers to its
callers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from holdfast.core.events import DURABLE_EVENTS, Event
from holdfast.limits import RECORD_AGING_SECONDS, SQS_DELAY_SECONDS_MAX
from holdfast.runtime.effects import Query
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import Record, blobs_named_by
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.marks import FAULTS, Read
from holdfast_simulator.schedule import DrawnChoice

_RESULTS: Final = DURABLE_EVENTS - {"WaitStateExited"}
#: A record with this many states is full.
_FULL: Final = 1_000
_OLD_MS: Final = RECORD_AGING_SECONDS * 1_000
#: After this many take-overs an attempt fails.
_OFTEN: Final = 3
#: Events whose type alone shows that a mark is reached.
_BY_TYPE: Final = {
    "ExecutionSucceeded": Read.SUCCEEDED,
    "ExecutionFailed": Read.FAILED,
    "ExecutionTimedOut": Read.TIMED_OUT,
    "ExecutionAborted": Read.ABORTED,
    "ExecutionRedriven": Read.REDRIVEN,
    "ExecutionForked": Read.FORKED,
    "HeartbeatSeen": Read.HEARTBEAT,
    "Claimed": Read.TAKEN_OVER,
    "UndoStarted": Read.UNDONE,
    "Cancelled": Read.LINE_CANCELLED,
    "Closing": Read.LANES_CLOSED,
    "LaneFailed": Read.LANE_TOLERATED,
    "DeadlinePassed": Read.DEADLINE_PASSED,
    "ChildrenStopped": Read.CHILD_STOPPED,
    "TaskUnknown": Read.UNKNOWN,
}


def reached(evidence: Evidence, histories: Sequence[StoredHistory]) -> Iterator[str]:
    """Yield marks, some more than once."""
    wrote = {(one.run, one.sequence): one.at_ms for one in evidence.wrote}
    for history in histories:
        yield from _Reading(history, evidence, wrote).marks()
    yield from (Read.BULK for _ in evidence.bulks)
    yield from _callers(evidence)
    yield from _blobs(histories)
    yield from _attempts(evidence, wrote)


def faults_among(choices: Iterable[DrawnChoice]) -> Iterator[str]:
    """Yield the mark of each fault on a tape."""
    return (FAULTS[str(answer)] for _, _, answer in choices if answer in FAULTS)


class _Reading:
    """The walk through one history."""

    def __init__(
        self, history: StoredHistory, evidence: Evidence, wrote: dict[tuple[str, int], int]
    ) -> None:
        self._history = history
        self._stored = evidence.stored
        self._services = evidence.services
        self._wrote = wrote
        self._latency_ms = evidence.swarm.latency_ms
        self._inbox = keys.inbox(history.tenant, history.run)
        self._waiting: dict[str, tuple[int, int]] = {}
        self._retrying: dict[str, int] = defaultdict(int)
        self._is_undoing = self._is_stopping = self._is_paused = False

    def marks(self) -> Iterator[str]:
        for record in self._history.records:
            yield from self._record(record)
        yield from self._stops()

    def _record(self, record: Record) -> Iterator[str]:
        at_ms = self._wrote.get((self._history.run, record.sequence), 0)
        count: Counter[str] = Counter()
        for event in record.events:
            kind = event.type
            mark = _BY_TYPE.get(kind)
            if mark is not None:
                yield mark
            yield from self._pause(event)
            if kind in _RESULTS:
                count["results"] += 1
                yield from self._result(event, at_ms)
            elif kind.endswith("Scheduled"):
                yield from self._scheduled(event)
            elif kind.endswith("StateEntered"):
                count["states"] += 1
            elif "end" in event.holdfast:
                count["ends"] += 1
            yield from self._special(event, at_ms)
        if count["results"] > 1:
            yield Read.RESULTS_TOGETHER
        if count["ends"] > 1:
            yield Read.LANES_TOGETHER
        if count["states"] >= _FULL:
            yield Read.FULL_RECORD
        if "so" in self._history.items[record.sequence]:
            yield Read.SNAPSHOT

    def _pause(self, event: Event) -> Iterator[str]:
        if event.type == "Paused":
            self._is_paused = True
        elif event.type == "Resumed":
            self._is_paused = False
            yield Read.PAUSED if "control" in event.holdfast else Read.PAUSE_LIFTED
        elif self._is_paused and event.type in _RESULTS:
            yield Read.PAUSED_IN_HAND

    def _scheduled(self, event: Event) -> Iterator[str]:
        own, frame = event.holdfast, event.holdfast.get("frame", "")
        self._waiting[frame] = (own["entry"], own["attempt"])
        if own.get("due", 0) > event.at_ms:
            yield Read.RETRIED
            self._retrying[frame] = own["due"]

    def _special(self, event: Event, at_ms: int) -> Iterator[str]:
        own, frame = event.holdfast, event.holdfast.get("frame", "")
        match event.type:
            case "Claimed" if own["takeovers"] == _OFTEN:
                yield Read.TAKEN_OVER_OFTEN
            case "TimerSet":
                if own["due"] - event.at_ms > SQS_DELAY_SECONDS_MAX * 1_000:
                    yield Read.LONG_TIMER
            case "WaitStateExited":
                yield Read.TIMER
            case "Opened" if event.at_ms - self._history.records[0].at_ms > _OLD_MS:
                yield Read.RENEWED
            case "TaskSubmitted":
                yield from self._submitted(frame, at_ms)
            case "Stopping":
                if "control" in own:
                    yield Read.STOP_IN_UNDO if self._is_undoing else Read.STOP_UNDOES
                self._is_stopping = True
            case "ExecutionAborted" if self._is_stopping and "control" in own:
                yield Read.STOP_NOW
            case "UndoStarted":
                self._is_undoing = True
            case "Unwound":
                self._is_undoing = False

    def _result(self, event: Event, at_ms: int) -> Iterator[str]:
        frame = event.holdfast.get("frame", "")
        waited = self._waiting.pop(frame, None)
        self._retrying.pop(frame, None)
        if not event.type.endswith("Succeeded"):
            if event.details.get("error") == "Holdfast.WorkerLost":
                yield Read.WORKER_LOST
            if any(
                _are_beside(frame, one) and event.at_ms < due_ms
                for one, due_ms in self._retrying.items()
            ):
                yield Read.FAILED_BESIDE_RETRY
        if event.type.endswith("TimedOut"):
            yield Read.ATTEMPT_TIMED_OUT
            if waited is not None and 0 < self._answered_ms(waited) <= at_ms:
                yield Read.ANSWER_IN_WINDOW
        name = event.holdfast.get("event")
        if name is not None:
            yield from self._used(str(name), event)

    def _answered_ms(self, waited: tuple[int, int]) -> int:
        """Return the time of the answer; 0 without one."""
        return self._stored.get((self._inbox, keys.answer(*waited)), 0)

    def _submitted(self, frame: str, at_ms: int) -> Iterator[str]:
        waited = self._waiting.get(frame)
        if waited is None:
            return
        answered_ms = self._answered_ms(waited)
        is_first = 0 < answered_ms <= at_ms
        child = self._wrote.get((f"{self._history.run}.{waited[0]}.{waited[1]}", 0))
        if child is not None:
            yield Read.CHILD
            if is_first:
                yield Read.CHILD_FIRST
        elif is_first:
            yield Read.ANSWER_BEFORE_WAIT
            if answered_ms < self._wrote.get((self._history.run, 0), 0):
                yield Read.ANSWER_BEFORE_LOG

    def _used(self, name: str, event: Event) -> Iterator[str]:
        yield Read.EVENT_USED
        came_ms = self._came_ms(name)
        if came_ms is None:
            return
        scheduled = self._history.events
        began_ms = self._wrote.get((self._history.run, 0), 0)
        if came_ms < began_ms:
            yield Read.EVENT_BEFORE_LOG
        waits = (one.at_ms for one in scheduled if one.id == event.previous)
        if came_ms < next(waits, 0):
            yield Read.EVENT_BEFORE_WAIT

    def _came_ms(self, name: str) -> int | None:
        sort = keys.stored_event(name)
        prefix = f"{self._history.tenant}#ev#"
        times = (
            at_ms
            for (pk, sk), at_ms in self._stored.items()
            if sk == sort and pk.startswith(prefix)
        )
        return next(times, None)

    def _stops(self) -> Iterator[str]:
        """Yield the situations of control messages, by their position between records."""
        times = [
            at_ms
            for (pk, sk), at_ms in self._stored.items()
            if pk == self._inbox and sk.startswith("x#")
        ]
        if not times:
            return
        if len(times) > 1 and self._is_stopping:
            yield from self._repeats()
        run, records = self._history.run, self._history.records
        written = [self._wrote.get((run, record.sequence), 0) for record in records]
        for at_ms in times:
            if any(0 <= at_ms - one <= self._latency_ms for one in written[:-1]):
                yield Read.STOP_AFTER_RECORD
            if self._history.state.is_ended and at_ms > written[-1]:
                yield Read.STOP_AFTER_END

    def _repeats(self) -> Iterator[str]:
        """Yield stops that add nothing to the stop in force."""
        control = ""
        for event in self._history.events:
            if event.type == "Stopping" and "control" in event.holdfast:
                control = event.holdfast["control"]
        applied = {event.holdfast.get("control") for event in self._history.events}
        end_ms = self._wrote.get((self._history.run, self._history.records[-1].sequence), 0)
        for item in self._services.perform(Query(tables.MAIL, self._inbox, begins_with="x#")):
            found = str(item["sk"]).removeprefix(keys.CONTROL_PREFIX)
            is_plain = "kind" not in item and "now" not in item
            stored_ms = self._stored[self._inbox, str(item["sk"])]
            if is_plain and found > control and found not in applied and stored_ms < end_ms:
                yield Read.STOP_TWICE


def _are_beside(one: str, other: str) -> bool:
    """Return True for lanes of the same block."""
    return one != other and bool(one) and one.partition(".")[0] == other.partition(".")[0]


def _callers(evidence: Evidence) -> Iterator[str]:
    told: dict[tuple[str, str | None], int] = {}
    for one in evidence.started:
        if one.run is None:
            yield Read.OTHER_INPUT
            continue
        told[one.tenant, one.run] = told.get((one.tenant, one.run), 0) + 1
    if max(told.values(), default=0) > 1:
        yield Read.TWO_CALLERS
    if len({tenant for tenant, _ in told}) > 1:
        yield Read.TWO_TENANTS
    for answered in evidence.told:
        if answered.refused is not None and answered.what in _REFUSED:
            yield _REFUSED[answered.what]


_REFUSED: Final = {
    "answer": Read.ANSWER_LATE,
    "contradiction": Read.CONTRADICTED,
    "forgery": Read.FORGED,
}


def _blobs(histories: Sequence[StoredHistory]) -> Iterator[str]:
    if any(blobs_named_by(item) for history in histories for item in history.items):
        yield Read.BLOB


def _attempts(evidence: Evidence, wrote: dict[tuple[str, int], int]) -> Iterator[str]:
    seen: dict[tuple[str, int, int], int] = {}
    for one in evidence.ran:
        if one.is_poll:
            continue
        place = (one.run, one.entry, one.attempt)
        began_ms = wrote.get((one.run, 0))
        is_before = began_ms is None or one.at_ms < began_ms
        if place in seen:
            yield Read.TASK_TWICE
            if began_ms is None or seen[place] < began_ms:
                yield Read.FIRST_TASK_TWICE
        elif is_before:
            yield Read.FIRST_TASK
        seen.setdefault(place, one.at_ms)
