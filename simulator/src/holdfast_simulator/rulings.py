"""The decisions of time, order and people in a history, for the reference interpreter.

A ruling holds no conclusion of the engine: no output of a state, no variable, not where an error
led. It is read off the events alone.

    (path of the line, state) -> its visits in order: when it was entered, how each attempt or
    opening of lanes ended, and which blocks ran out of time while the line was there
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, Protocol, TypeAlias

from holdfast.asl.program import Json
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.state import MachineOrigin

#: A line by the lanes that lead to it: (state, which opening of its lanes, number of the lane).
LinePath: TypeAlias = tuple[tuple[str, int, int], ...]

_STATUS: Final = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}
_TASKS: Final = ("Task", "LambdaFunction", "Activity")
_SCHEDULED: Final = frozenset(f"{task}Scheduled" for task in _TASKS)
_SUCCEEDED: Final = frozenset(f"{task}Succeeded" for task in _TASKS)
_FAILED: Final = frozenset(f"{task}{how}" for task in _TASKS for how in ("Failed", "TimedOut")) | {
    "TaskSubmitFailed"
}


class RecordedEvents(Protocol):
    """One execution's events from its start."""

    @property
    def run(self) -> str: ...
    @property
    def events(self) -> tuple[Event, ...]: ...


@dataclass(frozen=True, slots=True)
class RuledEnd:
    """`status` RUNNING: it has not ended."""

    status: str
    output: Json = None
    error: str | None = None
    cause: str | None = None


@dataclass(slots=True)
class Ending:
    """The end of an attempt: its error, the event that it used, the child that it began. For lanes:
    the number of this opening on its line, and the order of their ends, good or bad, until enough
    had ended. For a distributed Map they are executions: `child` is the beginning of their ids.
    `is_skipped`: an operator has `given` the result.
    """

    began_ms: int
    ended_ms: int = 0
    error: str | None = None
    cause: str | None = None
    is_heartbeat: bool = False
    event: str | None = None
    child: str = ""
    opening: int = 0
    order: list[int] = field(default_factory=list)
    is_skipped: bool = False
    given: Json = None


@dataclass(slots=True)
class Visit:
    """`passed`: numbers of the deadlines that passed while the line was in the state."""

    event_id: int = 0
    entered_ms: int = 0
    endings: list[Ending] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ruling:
    """The recorded decisions of one execution. `imposed`: an end from outside, or one that has not
    come. `others`: the rulings of all executions, by id. `origin`: its name as an item of a
    distributed Map, and its first state; None for a workflow.
    """

    run: str = ""
    name: str | None = None
    workflow: str = ""
    input: Json = None
    started_ms: int = 0
    ended_ms: int = 0
    origin: MachineOrigin | None = None
    visits: Mapping[tuple[LinePath, str], Sequence[Visit]] = field(default_factory=dict)
    imposed: RuledEnd | None = None
    is_redriven: bool = False
    others: Mapping[str, Ruling] = field(default_factory=dict)


def rulings_of(histories: Iterable[RecordedEvents]) -> dict[str, Ruling]:
    """Return the ruling of each execution, by its id."""
    found: dict[str, Ruling] = {}
    many = tuple(histories)
    forks = {one.run: of for one in many if (of := _fork_of(one.events)) is not None}
    for history in many:
        found[history.run] = _Reader(history.events, forks).ruling(found)
    return found


def _fork_of(events: Sequence[Event]) -> Mapping[str, Any] | None:
    """Return the run and the event at which an execution began as a fork. The last one is its own:
    copied events may have another.
    """
    forked = next((one for one in reversed(events) if one.type == "ExecutionForked"), None)
    return None if forked is None else forked.holdfast["of"]


def ended(events: Sequence[Event]) -> RuledEnd:
    """Return the end of the execution, by its history."""
    last = next((one for one in reversed(events) if one.type in TERMINAL_EVENTS), None)
    if last is None:
        return RuledEnd("RUNNING")
    told = last.details
    return RuledEnd(_STATUS[last.type], told.get("output"), told.get("error"), told.get("cause"))


@dataclass
class _Lanes:
    """An opening: whose lanes they are, and whether the order of their ends still counts."""

    owner: str
    path: LinePath
    ending: Ending
    is_open: bool = True


class _Reader:
    """The walk through one history."""

    def __init__(self, events: Sequence[Event], forks: Mapping[str, Mapping[str, Any]]) -> None:
        self.events = events
        self.forks = forks
        self.visits: dict[tuple[LinePath, str], list[Visit]] = defaultdict(list)
        self.visit: dict[str, Visit] = {}
        self.position: dict[str, str] = {}
        self.paths: dict[str, LinePath] = {"": ()}
        self.openings: Counter[tuple[LinePath, str]] = Counter()
        self.lanes: dict[int, _Lanes] = {}
        self.frames: dict[int, str] = {}
        self.beats: dict[str, tuple[int, int | None, int | None]] = {}

    def ruling(self, others: Mapping[str, Ruling]) -> Ruling:
        start = self.events[0]
        is_redriven = any(event.type == "ExecutionRedriven" for event in self.events)
        # A state that is entered again has no place in the order of visits.
        for event in () if is_redriven else self.events:
            frame = event.holdfast.get("frame", "")
            if event.id:
                self.frames[event.id] = frame
            self._read(event, frame)
        return Ruling(
            run=start.holdfast["run"],
            name=start.holdfast.get("name"),
            workflow=start.holdfast["workflow"],
            input=start.details["input"],
            started_ms=start.at_ms,
            ended_ms=self.events[-1].at_ms,
            origin=start.holdfast.get("origin"),
            visits=self.visits,
            imposed=_imposed(self.events),
            is_redriven=is_redriven,
            others=others,
        )

    def _read(self, event: Event, frame: str) -> None:
        own = event.holdfast
        match event.type:
            case name if name.endswith("StateEntered"):
                self._enter(event, frame)
            case "ParallelStateStarted" | "MapStateStarted":
                self._open(event, frame)
            case "ParallelStateSucceeded" | "MapStateSucceeded":
                self._close(frame)
            case "MapIterationSucceeded" | "MapIterationFailed" | "LaneFailed":
                self._lane_ended(frame, event)
            case name if name.endswith("StateExited") and "end" in own:
                self._lane_ended(frame, event)
            case "ChildEnded":
                self.visit[frame].endings[-1].order.append(own["lane"])
            case "MapRunFailed":
                ending = self.visit[frame].endings[-1]
                ending.error, ending.cause = event.details.get("error"), event.details.get("cause")
            case "Closing":
                if "failed" in own:
                    self._lane_ended(own["failed"], event)
                self._close(frame)
            case "ParallelStateFailed" | "MapStateFailed" | "RetryDelayed":
                self._failed_by(frame, event)
            case "Cancelled":
                self.visit[frame].passed += own["over"]
            case name if name in _SCHEDULED:
                self._schedule(event, frame)
            case name if name in _SUCCEEDED | _FAILED:
                self._end_attempt(event, frame)
            case "ConditionUnmet":
                self._poll_again(event, frame)
            case "StepSkipped":
                self._skip(event, frame)
            case "ActivityStarted":
                since, due, seconds = self.beats[frame]
                due = None if due is None else due + event.at_ms - since
                self.beats[frame] = (event.at_ms, due, seconds)
            case "TaskSubmitted" | "HeartbeatSeen":
                _, due, seconds = self.beats[frame]
                self.beats[frame] = (own.get("beat", event.at_ms), due, seconds)

    # -- attempts ----------------------------------------------------------------------------------

    def _enter(self, event: Event, frame: str) -> None:
        position = event.details["name"]
        visit = Visit(event.id, event.at_ms)
        self.position[frame], self.visit[frame] = position, visit
        if frame not in self.paths:
            self._add_lane(frame)
        self.visits[self.paths[frame], position].append(visit)

    def _run_of(self, event: Event) -> str:
        """Return the execution that recorded the event first: the origin of a fork, for a copy."""
        run = str(self.events[0].holdfast["run"])
        while (of := self.forks.get(run)) is not None and event.id <= of["event"]:
            run = str(of["run"])
        return run

    def _schedule(self, event: Event, frame: str) -> None:
        own = event.holdfast
        child = f"{self._run_of(event)}.{own['entry']}.{own['attempt']}"
        self.visit[frame].endings.append(Ending(event.at_ms, child=child))
        since_ms = own.get("due", event.at_ms)
        seconds, heartbeat = (
            event.details.get(name) for name in ("timeoutInSeconds", "heartbeatInSeconds")
        )
        due_ms = None if seconds is None else since_ms + seconds * 1_000
        self.beats[frame] = (since_ms, due_ms, heartbeat)

    def _poll_again(self, event: Event, frame: str) -> None:
        endings = self.visit[frame].endings
        endings[-1].ended_ms = event.at_ms
        endings.append(Ending(event.holdfast["due"]))

    def _end_attempt(self, event: Event, frame: str) -> None:
        ending = self.visit[frame].endings[-1]
        ending.ended_ms = event.at_ms
        ending.event = event.holdfast.get("event")
        if event.type in _FAILED:
            ending.error, ending.cause = event.details.get("error"), event.details.get("cause")
            beat_ms, due_ms, heartbeat = self.beats[frame]
            if heartbeat is not None and event.type.endswith("TimedOut"):
                ending.is_heartbeat = due_ms is None or beat_ms + heartbeat * 1_000 < due_ms

    def _skip(self, event: Event, frame: str) -> None:
        """The attempt that is open ends with the given result. In a pause there may be none."""
        endings = self.visit[frame].endings
        if not endings or endings[-1].ended_ms:
            endings.append(Ending(event.at_ms))
        endings[-1].ended_ms = event.at_ms
        endings[-1].is_skipped, endings[-1].given = True, event.details["output"]

    # -- lanes -------------------------------------------------------------------------------------

    def _open(self, event: Event, frame: str) -> None:
        key = (self.paths[frame], self.position[frame])
        number, self.openings[key] = self.openings[key], self.openings[key] + 1
        entry = event.holdfast["entry"]
        child = f"{self._run_of(event)}.{entry}"
        ending = Ending(event.at_ms, child=child, opening=number)
        self.visit[frame].endings.append(ending)
        path = (*self.paths[frame], (self.position[frame], number, 0))
        self.lanes[entry] = _Lanes(frame, path, ending)

    def _add_lane(self, frame: str) -> None:
        lanes = self.lanes[_entry(frame)]
        state, opening, _ = lanes.path[-1]
        self.paths[frame] = (*lanes.path[:-1], (state, opening, _lane(frame)))

    def _lane_ended(self, frame: str, event: Event) -> None:
        lanes = self.lanes[_entry(frame)]
        if lanes.is_open and _lane(frame) not in lanes.ending.order:
            lanes.ending.order.append(_lane(frame))
            lanes.ending.ended_ms = event.at_ms

    def _failed_by(self, frame: str, event: Event) -> None:
        """Find the failed lane: the predecessor of the failure is in it, or in a lane below it."""
        inner = self.frames.get(event.previous, "")
        while inner:
            lanes = self.lanes[_entry(inner)]
            if lanes.owner == frame:
                self._lane_ended(inner, event)
            inner = lanes.owner
        self._close(frame)

    def _close(self, frame: str) -> None:
        for lanes in self.lanes.values():
            if lanes.owner == frame:
                lanes.is_open = False


def _entry(frame: str) -> int:
    return int(frame.partition(".")[0])


def _lane(frame: str) -> int:
    return int(frame.rpartition(".")[2])


def _imposed(events: Sequence[Event]) -> RuledEnd | None:
    """A stop or a time-out of the whole; whatever the machine did after it, that is the end."""
    found = ended(events)
    if found.status == "RUNNING" or "control" in events[-1].holdfast:
        return found
    last = takewhile(lambda one: one.type != "ExecutionRedriven", reversed(events))
    stopping = next((one for one in last if one.type == "Stopping"), None)
    if stopping is not None:
        told = stopping.holdfast["stopping"]
        return RuledEnd(told["status"], None, told.get("error"), told.get("cause"))
    return found if found.status in {"TIMED_OUT", "ABORTED"} else None
