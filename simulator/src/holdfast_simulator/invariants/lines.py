"""Lines of control, read from the events of a history, without the engine's state.

A line is the root, a branch or an iteration. It has a position, may be cancelled, and ends. An
opening is one time that a Parallel or an inline Map has started its branches or iterations (its
lanes). An invariant about lines is a subclass of `HistoryLines`, whose `on_…` methods get each
event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.asl.program import Json, Program
from holdfast.core.events import Event

ROOT: Final = ""
#: Events that report the failure of a state or of an attempt.
_FAILURES: Final = ("Failed", "TimedOut", "FailStateEntered")
#: Events that begin a line; other events of an ended line are ignored.
_BEGINNING: Final = ("StateEntered", "MapIterationStarted")
#: Events that close the lanes of their state.
_CLOSING: Final = frozenset(
    {
        "ParallelStateSucceeded",
        "MapStateSucceeded",
        "ParallelStateFailed",
        "MapStateFailed",
        "RetryDelayed",
        "UndoStarted",
        "DeadlinePassed",
    }
)


@dataclass
class HistoryLine:
    """One line of a history. `cancelled`: the reason, and the undone steps. `has_left`: it has left
    its position, or failed there; `value`: its value when it left.
    """

    id: str
    owner: str | None
    position: str = ""
    cancelled: Mapping[str, Any] | None = None
    has_left: bool = False
    value: Json = None
    variables: dict[str, Json] = field(default_factory=dict)


@dataclass
class Opening:
    """`succeeded`: results by lane. `errors`: the results of those that failed. `over`: lanes that
    were cancelled. `how` it was closed.
    """

    owner: str
    entry: int
    state: str
    count: int
    concurrency: int
    needed: int | None
    tolerated: int
    after: Sequence[Sequence[int]]
    begun: set[int] = field(default_factory=set)
    succeeded: dict[int, Json] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    errors: dict[int, Json] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    is_closing: bool = False
    how: str | None = None

    @property
    def ended(self) -> int:
        return len(self.succeeded) + len(self.failed) + len(self.over)

    def has_ended(self, lane: int) -> bool:
        return lane in self.succeeded or lane in self.failed or lane in self.over


class HistoryLines:
    """Reads one history from its beginning. The `on_…` methods yield violations."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: dict[str, HistoryLine] = {}
        self.openings: dict[int, Opening] = {}
        #: The open Parallel or Map, by the line that opened it.
        self.open: dict[str, Opening] = {}
        #: By owner, a failed lane whose error no handler has caught so far.
        self.unhandled: dict[str, Opening] = {}
        self.dropped: dict[str, HistoryLine] = {}
        #: The lanes that those had open.
        self.dropped_with: dict[str, Opening] = {}
        self.frames: dict[int, str] = {}

    def read(self, events: Sequence[Event]) -> Iterator[str]:
        for event in events:
            frame = event.holdfast.get("frame", ROOT)
            if event.id:
                self.frames[event.id] = frame
            yield from self.on_event(event, frame)
            if frame in self.lines or frame == ROOT or event.type.endswith(_BEGINNING):
                yield from self._read(event, frame)

    # -- what subclasses look at -------------------------------------------------------------------

    def on_event(self, event: Event, frame: str) -> Iterator[str]:
        """Called before the event is applied."""
        del event, frame
        yield from ()

    def on_begun(self, opening: Opening, lane: int) -> Iterator[str]:
        """Called before a lane begins."""
        del opening, lane
        yield from ()

    def on_ended(self, opening: Opening, lane: int) -> Iterator[str]:
        """Called after a lane has ended, in any way."""
        del opening, lane
        yield from ()

    def on_closed(self, opening: Opening, event: Event) -> Iterator[str]:
        """Called at the end of a Parallel or Map: none of its lanes may act from here on."""
        del opening, event
        yield from ()

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, event: Event, frame: str) -> Iterator[str]:
        own, kind = event.holdfast, event.type
        if kind in _CLOSING and frame in self.open:
            yield from self._close(self.open[frame], event)
        if kind.endswith("StateEntered"):
            yield from self._enter(event, frame)
        elif kind.endswith("StateExited"):
            yield from self._exit(event, frame)
        elif kind == "MapIterationStarted":
            yield from self._begin(frame)
        elif kind in {"ParallelStateStarted", "MapStateStarted"} and "concurrency" in own:
            self._open(event, frame)
        elif kind == "MapIterationSucceeded":
            yield from self._succeed(frame)
        elif kind == "LaneFailed":
            opening = self.openings[_entry(frame)]
            opening.errors[_lane(frame)] = own.get("result")
            yield from self._end(frame, "failed")
        elif kind == "Unwound":
            yield from self._end(frame, "over")
        elif kind == "Closing":
            self.open[frame].is_closing = True
            if "failed" in own:
                yield from self._end(own["failed"], "over")
        elif kind == "Cancelled":
            self.lines[frame].cancelled = {"undone": [], **own["reason"]}
        elif kind == "UndoStarted":
            line = self.lines[frame]
            reason = line.cancelled or {}
            line.cancelled = {**reason, "undone": [*reason.get("undone", ()), own["undo"]]}
            line.variables |= own["assigned"]
        elif kind == "DeadlinePassed":
            self.lines[frame].variables |= own["assigned"]
            self._forget(self.lines[frame], own["over"])
        elif kind.endswith(_FAILURES) and frame in self.lines:
            self.lines[frame].has_left = True
        elif kind == "ExecutionRedriven":
            self._reopen()

    def _enter(self, event: Event, frame: str) -> Iterator[str]:
        if frame not in self.lines:
            yield from self._begin(frame)
        line = self.lines[frame]
        self.unhandled.pop(frame, None)
        if frame in self.open and self.open[frame].state != event.details["name"]:
            yield from self._close(self.open[frame], event)
        if "over" in event.holdfast:
            self._forget(line, event.holdfast["over"])
        line.position = event.details["name"]
        line.has_left = event.type == "FailStateEntered"

    def _exit(self, event: Event, frame: str) -> Iterator[str]:
        line = self.lines[frame]
        self.unhandled.pop(frame, None)
        if frame in self.open:
            yield from self._close(self.open[frame], event)
        line.variables |= event.details.get("assignedVariables") or {}
        line.has_left, line.value = True, event.details["output"]
        if event.holdfast.get("end"):
            yield from self._succeed(frame)

    def _begin(self, frame: str) -> Iterator[str]:
        if frame == ROOT:
            self.lines[frame] = HistoryLine(frame, None)
            return
        opening = self.openings[_entry(frame)]
        yield from self.on_begun(opening, _lane(frame))
        opening.begun.add(_lane(frame))
        self.lines[frame] = HistoryLine(frame, opening.owner)

    def _open(self, event: Event, frame: str) -> None:
        own = event.holdfast
        opening = Opening(
            owner=frame,
            entry=own["entry"],
            state=self.lines[frame].position,
            count=event.details["length"] if "length" in event.details else own["count"],
            concurrency=own["concurrency"],
            needed=own.get("needed"),
            tolerated=own.get("tolerated", 0),
            after=own.get("after", ()),
        )
        self.openings[opening.entry] = self.open[frame] = opening

    def _succeed(self, frame: str) -> Iterator[str]:
        opening, line = self.openings[_entry(frame)], self.lines.pop(frame)
        opening.succeeded[_lane(frame)] = line.value
        yield from self.on_ended(opening, _lane(frame))

    def _end(self, frame: str, how: str) -> Iterator[str]:
        if frame == ROOT:
            return
        opening = self.openings[_entry(frame)]
        getattr(opening, how).add(_lane(frame))
        self._drop(frame)
        yield from self.on_ended(opening, _lane(frame))

    def _close(self, opening: Opening, event: Event) -> Iterator[str]:
        opening.how = event.type
        del self.open[opening.owner]
        if event.type in {"ParallelStateFailed", "MapStateFailed"}:
            self.unhandled[opening.owner] = opening
        self._note_who_failed(opening, event)
        yield from self.on_closed(opening, event)
        for lane in opening.begun:
            self._drop(f"{opening.entry}.{lane}")

    def _note_who_failed(self, opening: Opening, event: Event) -> None:
        """Record the failed lane. A failure follows the last event of its lane: some failures have
        no other mark.
        """
        frame: str | None = self.frames.get(event.previous, ROOT)
        while frame and frame in self.lines and frame != opening.owner:
            self.lines[frame].has_left = True
            frame = self.lines[frame].owner

    def _drop(self, frame: str) -> None:
        if frame not in self.lines:
            return
        inner = self.open.pop(frame, None)
        if inner is not None:
            inner.how, self.dropped_with[frame] = "dropped", inner
            for lane in inner.begun:
                self._drop(f"{inner.entry}.{lane}")
        self.dropped[frame] = self.lines.pop(frame)

    def _forget(self, line: HistoryLine, over: Sequence[int]) -> None:
        while line.cancelled is not None and line.cancelled.get("deadline") in over:
            outer = line.cancelled.get("outer")
            line.cancelled = None if outer is None else {"undone": [], **outer}

    def _reopen(self) -> None:
        """Reopen the lanes of a state that failed without a handler: they are not cancelled."""
        for line in self.lines.values():
            line.cancelled = None
        # Outermost first, because the end of a lane ends everything that it opened.
        while live := [owner for owner in self.unhandled if owner in self.lines]:
            for owner in live:
                self._restore(self.unhandled.pop(owner))
        self.unhandled.clear()
        for opening in list(self.open.values()):
            if opening.is_closing or opening.ended >= opening.count or self._has_unbegun(opening):
                self._drop_lanes(opening)

    def _restore(self, opening: Opening) -> None:
        opening.how, self.open[opening.owner] = None, opening
        for lane in opening.begun:
            frame = f"{opening.entry}.{lane}"
            if not opening.has_ended(lane) and frame in self.dropped:
                self.lines[frame] = self.dropped[frame]
                self.lines[frame].cancelled = None
                if frame in self.dropped_with:
                    self._restore(self.dropped_with[frame])

    def _has_unbegun(self, opening: Opening) -> bool:
        """Return True when an iteration is open that has not entered a state."""
        lanes = (self.lines.get(f"{opening.entry}.{lane}") for lane in opening.begun)
        return any(line is not None and not line.position for line in lanes)

    def _drop_lanes(self, opening: Opening) -> None:
        """Remove the lanes of a state that begins again."""
        opening.how = "begun anew"
        self.open.pop(opening.owner, None)
        for lane in opening.begun:
            self._drop(f"{opening.entry}.{lane}")


def place_of(frame: str) -> tuple[int, int]:
    """Return the entry of the opening, and the number of the lane."""
    entry, _, lane = frame.partition(".")
    return int(entry), int(lane)


def _entry(frame: str) -> int:
    return place_of(frame)[0]


def _lane(frame: str) -> int:
    return place_of(frame)[1]
