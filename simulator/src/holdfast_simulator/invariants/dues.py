"""Every moment that an execution waited for, read from its history: its setter, its time.

The time of an event is that of the clock of the worker that decided it: the true time is that time
less the error of the clock. A wait of some seconds counts from the decision that began it, by the
clock of that host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.limits import (
    INLINE_TIMEOUT_SECONDS_MAX,
    POLL_SECONDS_MAX,
    STUCK_SECONDS,
    WATCH_GRID_SECONDS,
    WATCH_LOOK_SECONDS_MAX,
    WATCH_LOOK_SECONDS_MIN,
    WATCH_PARKED_FACTOR,
)
from holdfast.resources import WORK
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case

#: Events that end a line of control, or its open work, early.
_GIVEN_UP: Final = ("StateAborted", "IterationAborted", "IterationFailed", "IterationSucceeded")
_ENDS_OF_LINES: Final = frozenset({"Unwound", "LaneFailed", "UndoStarted", "DeadlinePassed"})
#: After these nothing of the line is left, its blocks included.
_ENDS_OF_LANES: Final = (
    "IterationAborted",
    "IterationFailed",
    "IterationSucceeded",
    "LaneFailed",
    "Unwound",
)
_LOOK_MS_MIN: Final = WATCH_LOOK_SECONDS_MIN * 1_000
_GRID_MS: Final = WATCH_GRID_SECONDS * 1_000
#: The error of its writer's clock, by record: tenant, execution, sequence.
Skews: TypeAlias = Mapping[tuple[str, str, int], int]

#: I17, in ms: the time within which an execution moves after the faults. A message is hidden for
#: two minutes, may then be a dead letter until the next sweep, and is sent again; or the sweeper
#: finds an execution that is overdue by a minute, on a grid of two.
STUCK_MS: Final = STUCK_SECONDS * 1_000
#: A worker that crashed before it could hide its message leaves the message to its queue's own
#: visibility time.
UNHIDDEN_MS: Final = WORK.visibility_seconds * 1_000 + STUCK_MS
#: The time after a message vanished, for example in a purged queue: the sweeper's next check
#: recovers the execution. For inbox messages the check is at most a week away.
LOST_MS: Final = WATCH_LOOK_SECONDS_MAX * 1_000 + STUCK_MS
#: The time after a start vanished: the sweeper sends it again after 15 minutes, and each hour.
LOST_START_MS: Final = WATCH_LOOK_SECONDS_MIN * 1_000 + UNHIDDEN_MS


def stuck_ms_max(evidence: Evidence, run: str) -> int:
    """Return the time within which an inbox message takes effect, after the last fault. A child
    that stored its end and then crashed reports to its parent only after the sweeper's check of the
    child itself.
    """
    if _is_of(evidence.lost, run):
        return LOST_MS
    if _is_of(evidence.lost_starts, run):
        return LOST_START_MS
    return UNHIDDEN_MS if _is_of(evidence.unhidden, run) else STUCK_MS


def _is_of(runs: Iterable[str], run: str) -> bool:
    """Return True when the execution is one of `runs` or waits for one of them: a child's id begins
    with its parent's id.
    """
    return any(one == run or one.startswith(f"{run}.") for one in runs)


def late_ms_max(evidence: Evidence, history: StoredHistory, set_ms: int) -> int:
    """Return the time within which a due takes effect, when it was set at that time.

    The watchdog row of an execution keeps its time: a wait that begins later gets the check that
    was planned before. Such a check is an hour away, or four times as long as the execution had
    been idle, or at the end of its previous wait.
    """
    if history.run in evidence.lost_starts - evidence.lost:
        return LOST_START_MS
    if history.run not in evidence.lost:
        return UNHIDDEN_MS if history.run in evidence.unhidden else STUCK_MS
    dues = (due for due in _walked(history, {}).found if due.set_ms < set_ms)
    moments = [record.at_ms for record in history.records if record.at_ms <= set_ms]
    rested_ms = max((later - one for one, later in pairwise(moments)), default=0)
    longest_ms = max((due.due_ms - due.set_ms for due in dues), default=0)
    ahead_ms = max(_LOOK_MS_MIN, WATCH_PARKED_FACTOR * rested_ms, longest_ms)
    return min(ahead_ms + _GRID_MS + STUCK_MS, LOST_MS)


@dataclass(eq=False, slots=True)
class ExpectedMoment:
    """One moment that must come. `what`: "timer", "delay" (of a Parallel or Map), "retry" (of a
    task), "begin" (of an attempt with a lease at once), "time-out", "attempt" (the time-out of an
    attempt in a worker), "question" (the poll of a job), "deadline" (of a block), "execution".

    `due_ms` and `set_ms` are by the clock of the worker that set it, `skew_ms` is the error of that
    clock. `came_ms` is true time, None while it has not come; `over_ms` when another event ended
    the wait before. `ticket`: entry and attempt, of a task; `beat_seconds`: the time until its next
    heartbeat, where a missed one ends the wait first. `is_parked`: a worker without the function
    met the task; a worker with it may come at any time.
    """

    what: str
    due_ms: int
    set_ms: int
    skew_ms: int
    frame: str
    ticket: tuple[int, int] = (0, 0)
    beat_seconds: int | None = None
    came_ms: int | None = None
    over_ms: int | None = None
    is_parked: bool = False

    @property
    def true_ms(self) -> int:
        """Return the time at which it comes if all clocks are right."""
        return self.due_ms - self.skew_ms

    @property
    def is_long(self) -> bool:
        return self.due_ms - self.set_ms > 900_000


@dataclass(slots=True)
class _Task:
    """The open wait of a line: its attempt, and the beginning of the wait. `is_offered`: the task
    belongs to an activity, so its time starts only when a poller takes it. `is_job`: workers poll a
    job for it.
    """

    ticket: tuple[int, int]
    is_attempt: bool
    since_ms: int
    seconds: int | None
    beat_seconds: int | None
    is_offered: bool = False
    is_job: bool = False


@dataclass
class Dues:
    """The due times of a history and their outcomes. `problems`: events at times for which no wait
    was set.
    """

    found: list[ExpectedMoment] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def skews(evidence: Evidence | None) -> Skews:
    wrote = () if evidence is None else evidence.wrote
    return {(one.tenant, one.run, one.sequence): one.skew_ms for one in wrote}


def _walked(history: StoredHistory, skew_of: Skews) -> Dues:
    walk = _Walk(history.run)
    for record in history.records:
        walk.skew_ms = skew_of.get((history.tenant, history.run, record.sequence), 0)
        for event in record.events:
            walk.see(event)
    return walk.dues


class _Walk:
    def __init__(self, run: str) -> None:
        self.dues = Dues()
        self.skew_ms = 0
        self._run = run
        self._started_ms = -1
        self._open: dict[tuple[str, str, int], ExpectedMoment] = {}
        self._tasks: dict[str, _Task] = {}
        self._paused_ms = 0
        self._is_frozen = False
        self._entered: dict[str, int] = {}
        self._skipped: set[str] = set()
        #: For each line, the entries of the lanes that are, or were, inside its state.
        self._inside: dict[str, list[int]] = {}

    def see(self, event: Event) -> None:
        own, kind = event.holdfast, event.type
        frame = str(own.get("frame", ""))
        is_given_up = kind.endswith(_GIVEN_UP) or kind in _ENDS_OF_LINES
        if event.id and not is_given_up and kind not in TERMINAL_EVENTS:
            self._come((frame, "delay", 0), event)
        if is_given_up or kind == "RetryDelayed" or kind.endswith(("StateEntered", "StateExited")):
            self._leave(frame, event)
        if kind in TERMINAL_EVENTS:
            if kind == "ExecutionTimedOut":
                self._come(("", "execution", 0), event)
            for place in list(self._open):
                self._give_up(place, event)
            self._tasks.clear()
        elif kind in ("ParallelStateStarted", "MapStateStarted"):
            self._inside.setdefault(frame, []).append(own["entry"])
        elif kind in ("ExecutionStarted", "ExecutionRedriven"):
            self._started_ms = event.at_ms
            if "due" in own:
                self._set(event, "", "execution", own["due"])
        elif kind == "ContinuedAsNew" and "due" in own:
            self._set(event, "", "execution", own["due"])
        elif kind == "ExecutionForked":
            self._begin_anew(event)
        elif kind == "Paused":
            self._pause(event)
        elif kind == "Resumed":
            self._resume(event)
        elif kind == "Stopping":
            if own["stopping"]["status"] == "TIMED_OUT":
                self._come(("", "execution", 0), event)
            self._give_up(("", "execution", 0), event)
        elif kind.endswith(("StateEntered", "StateExited")):
            self._moved(frame, event)
        elif is_given_up:
            self._pass_deadlines(frame, event)
            self._forget(frame, event)
            if kind.endswith(_ENDS_OF_LANES):
                self._give_up_all(frame, event)
        elif kind == "StepSkipped":
            self._forget(frame, event)
            self._skipped.add(frame)
        elif kind == "TimerSet":
            self._set(event, frame, "timer", own["due"])
        elif kind == "RetryDelayed":
            self._set(event, frame, "delay", own["due"])
        elif kind == "DeadlineSet":
            self._set(event, frame, "deadline", own["due"], number=own["number"])
        elif kind == "Cancelled":
            self._pass_deadlines(frame, event)
        elif kind == "Closing" and "failed" in own:
            # That lane has ended; the others may have undo steps left.
            self._leave(own["failed"], event)
            self._forget(own["failed"], event)
            self._give_up_all(own["failed"], event)
        else:
            self._of_task(frame, event)

    def _begin_anew(self, event: Event) -> None:
        """Drop the moments of the copied events: they belong to the origin. The deadlines around
        the step are set again.
        """
        self.dues = Dues()
        self._started_ms, self._is_frozen = event.at_ms, False
        self._open.clear()
        self._tasks.clear()
        self._entered[""] = event.at_ms
        if "due" in event.holdfast:
            self._set(event, "", "execution", event.holdfast["due"])

    # -- pauses ------------------------------------------------------------------------------------

    def _pause(self, event: Event) -> None:
        self._paused_ms = event.at_ms - self.skew_ms
        self._is_frozen = event.holdfast["timers"] == "freeze"

    def _resume(self, event: Event) -> None:
        """Move each due time by the true length of the pause, which is the least that must pass."""
        paused_ms = event.at_ms - self.skew_ms - self._paused_ms
        for due in self._open.values():
            if due.what == "begin":
                # The attempt has a lease, and its worker was lost: another takes it over after the
                # resume.
                due.due_ms, due.skew_ms = event.at_ms, self.skew_ms
            elif due.what == "retry" or (self._is_frozen and due.what not in _IN_HAND):
                true_ms = due.true_ms + paused_ms
                due.due_ms += event.holdfast["shift"]
                due.skew_ms = due.due_ms - true_ms
        for task in self._tasks.values():
            if self._is_frozen or task.is_attempt:
                task.since_ms += event.holdfast["shift"]
        self._is_frozen = False

    # -- lines -------------------------------------------------------------------------------------

    def _moved(self, frame: str, event: Event) -> None:
        if event.type == "WaitStateExited":
            is_at_once = frame in self._skipped or self._entered.get(frame) == event.at_ms
            if not self._come((frame, "timer", 0), event) and not is_at_once:
                self.dues.problems.append(f"{self._run}: a wait ended that no timer was set for")
        if event.type.endswith("Entered"):
            self._entered[frame] = event.at_ms
            self._skipped.discard(frame)
        for number in event.holdfast.get("over", ()):
            self._give_up((frame, "deadline", number), event)

    def _pass_deadlines(self, frame: str, event: Event) -> None:
        for number in event.holdfast.get("over", ()):
            self._come((frame, "deadline", number), event)

    def _forget(self, frame: str, event: Event) -> None:
        for place in [place for place in self._open if place[0] == frame]:
            if place[1] not in ("execution", "deadline"):
                self._give_up(place, event)
        self._tasks.pop(frame, None)

    def _leave(self, frame: str, event: Event) -> None:
        """End the lanes of a state that is left or given up: they have no events of their own for
        this.
        """
        for entry in self._inside.pop(frame, ()):
            lanes = {place[0] for place in self._open} | self._tasks.keys() | self._inside.keys()
            for lane in sorted(lanes):
                if lane.startswith(f"{entry}."):
                    self._leave(lane, event)
                    self._forget(lane, event)
                    self._give_up_all(lane, event)

    def _give_up_all(self, frame: str, event: Event) -> None:
        for place in [place for place in self._open if place[0] == frame]:
            self._give_up(place, event)

    def _set(
        self, event: Event, frame: str, what: str, due_ms: int, *, number: int = 0, **more: Any
    ) -> None:
        # Moments that follow from the start alone have the API's clock, whose error is unknown.
        skew_ms = 0 if event.at_ms == self._started_ms else self.skew_ms
        due = ExpectedMoment(what, due_ms, event.at_ms, skew_ms, frame, **more)
        self._open[(frame, what, number)] = due
        self.dues.found.append(due)

    def _give_up(self, place: tuple[str, str, int], event: Event) -> None:
        due = self._open.pop(place, None)
        if due is not None:
            due.over_ms = event.at_ms - self.skew_ms

    def _come(self, place: tuple[str, str, int], event: Event) -> bool:
        due = self._open.pop(place, None)
        if due is not None:
            due.came_ms = event.at_ms - self.skew_ms
            if self._is_frozen and due.what in _FROZEN:
                self.dues.problems.append(f"{self._run}: a {due.what} came in a pause")
        return due is not None

    # -- tasks -------------------------------------------------------------------------------------

    def _of_task(self, frame: str, event: Event) -> None:
        kind, own = event.type, event.holdfast
        if kind.endswith("Scheduled"):
            self._scheduled(frame, event)
            return
        task = self._tasks.get(frame)
        if kind.startswith(_TASKS) and kind != "TaskUnknown":
            for what in ("begin", "retry"):
                self._come((frame, what, 0), event)
        if kind == "Claimed":
            self._come((frame, "retry", 0), event)
        elif kind.endswith(("Succeeded", "Failed", "TimedOut")) and kind.startswith(_TASKS):
            if task is None:
                self.dues.problems.append(f"{self._run}: {kind} where no task is open")
            if kind.endswith("TimedOut"):
                self._come((frame, "time-out", 0), event)
                if task is not None and task.is_offered:
                    self.dues.problems.append(
                        f"{self._run}: an attempt timed out that had not begun"
                    )
            self._forget(frame, event)
        elif task is None:
            if kind in _OF_OPEN_TASKS:
                self.dues.problems.append(f"{self._run}: {kind} where no task is open")
        elif kind == "TaskUnknown":
            # The attempt may have had a lease before: then it is not open, although it has not
            # begun.
            for due in self.dues.found:
                due.is_parked |= due.what in ("begin", "retry") and due.ticket == task.ticket
        elif kind == "TaskSubmitted":
            task.is_attempt = False
            self._await(frame, event, task, event.at_ms)
            if task.is_job:
                self._ask(frame, event, task, event.at_ms + _FIRST_QUESTION_MS)
        elif kind == "ConditionUnmet":
            for what in ("begin", "retry"):
                self._come((frame, what, 0), event)
            self._give_up((frame, "time-out", 0), event)
            task.ticket, task.since_ms = (task.ticket[0], task.ticket[1] + 1), own["due"]
            self._set(event, frame, "retry", own["due"], ticket=task.ticket)
            self._await(frame, event, task, own["due"])
        elif kind == "Polled":
            self._come((frame, "question", 0), event)
            self._ask(frame, event, task, own["due"])
        elif kind == "ActivityStarted":
            task.since_ms, task.is_offered = event.at_ms, False
            self._await(frame, event, task, event.at_ms)
        elif kind == "HeartbeatSeen":
            self._await(frame, event, task, own["beat"])

    def _scheduled(self, frame: str, event: Event) -> None:
        own, details = event.holdfast, event.details
        self._forget(frame, event)
        since_ms = own.get("due", event.at_ms)
        resource = f"{details.get('resourceType')}:{details.get('resource')}"
        is_awaited = event.type == "ActivityScheduled" or (
            resource.startswith("holdfast:")
            and not resource.startswith("holdfast:container:")
            and resource.endswith(".waitForTaskToken")
        )
        seconds, beat = details.get("timeoutInSeconds"), details.get("heartbeatInSeconds")
        task = _Task((own["entry"], own["attempt"]), not is_awaited, since_ms, seconds, beat)
        self._tasks[frame] = task
        # The first tasks of all may run before their record: they follow from the start alone (R3).
        if task.is_attempt and "claim" in own and event.at_ms != self._started_ms:
            self._set(event, frame, "begin", event.at_ms, ticket=task.ticket)
        elif task.is_attempt and since_ms > event.at_ms:
            self._set(event, frame, "retry", since_ms, ticket=task.ticket)
        task.is_offered = event.type == "ActivityScheduled"
        task.is_job = _JOB.fullmatch(resource) is not None
        if not task.is_offered:
            self._await(frame, event, task, since_ms)

    def _ask(self, frame: str, event: Event, task: _Task, due_ms: int) -> None:
        """Record the due of the next poll: each minute at the least."""
        due_ms = min(due_ms, event.at_ms + POLL_SECONDS_MAX * 1_000)
        self._set(event, frame, "question", due_ms, ticket=task.ticket)

    def _await(self, frame: str, event: Event, task: _Task, alive_ms: int) -> None:
        """A wait ends with its time, or with the heartbeat that is missed before."""
        limits = []
        if task.seconds is not None:
            seconds = task.seconds
            if task.is_attempt:
                # Counted from its lease at the earliest. The first of all is of another clock.
                is_first = event.at_ms == self._started_ms
                seconds = 0 if is_first else min(seconds, INLINE_TIMEOUT_SECONDS_MAX)
                limits.append(event.at_ms + seconds * 1_000)
            else:
                limits.append(task.since_ms + seconds * 1_000)
        if task.beat_seconds is not None and not task.is_attempt:
            limits.append(alive_ms + task.beat_seconds * 1_000)
        before = self._open.pop((frame, "time-out", 0), None)
        if limits:
            what = "attempt" if task.is_attempt else "time-out"
            is_beat = min(limits) == limits[-1] and task.beat_seconds is not None
            beat_seconds = task.beat_seconds if is_beat else None
            more: dict[str, Any] = {"ticket": task.ticket, "beat_seconds": beat_seconds}
            self._set(event, frame, what, min(limits), **more)
            due = self._open[(frame, "time-out", 0)] = self._open.pop((frame, what, 0))
            if event.type == "HeartbeatSeen" and not is_beat and before is not None:
                due.set_ms, due.skew_ms = before.set_ms, before.skew_ms  # it was so all the time


#: A worker runs these: its own clock decides, and a pause does not stop them.
_IN_HAND: Final = frozenset({"begin", "attempt"})
#: Only the passing of time causes these events. A worker may report any other one early.
_FROZEN: Final = frozenset({"timer", "delay", "deadline", "execution"})
#: The parent that began an execution gets its end.
_JOB: Final = re.compile(r"(?!states:|holdfast:).*\.sync(:2)?")
_FIRST_QUESTION_MS: Final = 1_000
_TASKS: Final = ("Task", "LambdaFunction", "Activity")
_OF_OPEN_TASKS: Final = frozenset(
    {"TaskSubmitted", "ActivityStarted", "HeartbeatSeen", "Polled", "TaskUnknown", "Claimed"}
    | {"ConditionUnmet"}
)


def began(evidence: Evidence) -> dict[tuple[str, int, int], int]:
    """Return the time at which each attempt first ran: (run, entry, attempt)."""
    first: dict[tuple[str, int, int], int] = {}
    for one in evidence.ran:
        if not one.is_poll:
            first.setdefault((one.run, one.entry, one.attempt), one.at_ms)
    return first


@lru_cache(maxsize=1)
def dues_of(case: Case) -> tuple[tuple[StoredHistory, Dues], ...]:
    """Return the dues of each history, computed once for several invariants. A retry comes when its
    attempt first runs.
    """
    skew_of = skews(case.evidence)
    first = {} if case.evidence is None else began(case.evidence)
    walked = tuple((history, _walked(history, skew_of)) for history in case.histories)
    for history, dues in walked:
        for due in dues.found:
            if due.what in ("retry", "begin"):
                due.came_ms = first.get((history.run, *due.ticket), due.came_ms)
    return walked


def all_dues(case: Case) -> Iterator[tuple[StoredHistory, ExpectedMoment]]:
    return ((history, due) for history, dues in dues_of(case) for due in dues.found)
