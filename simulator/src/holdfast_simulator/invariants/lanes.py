"""I11: the lanes of Parallel and inline Map, the children of a distributed one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.asl.program import MapState, ParallelState, Program
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.run_ids import child_run
from holdfast.limits import CHILDREN_AT_ONCE_MAX, STUCK_SECONDS
from holdfast_simulator import dispatches
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.commands import written_ms
from holdfast_simulator.invariants.lines import HistoryLines, Opening, place_of
from holdfast_simulator.invariants.programs import numbers_at_once, program_of


def joined(case: Case) -> Iterator[str]:
    for history in case.histories:
        if any(event.type in _STARTS for event in history.events):
            program = program_of(case, history)
            if program is not None:
                at_once = numbers_at_once(case, history)
                for text in _Joins(program, at_once).read(history.events):
                    yield f"{history.run}: {text}"
                if case.evidence is not None:
                    yield from _too_many_children(case, history, at_once)


_STARTS = frozenset({"ParallelStateStarted", "MapStateStarted"})


class _Joins(HistoryLines):
    """Check that branches and iterations begin only when they may, end once, and are joined when
    their state is decided. `at_once`: how many iterations of a Map may run, if its program says so.
    """

    def __init__(self, program: Program, at_once: Mapping[str, int]) -> None:
        super().__init__(program)
        self.at_once = at_once
        #: The results with which the line must leave its state.
        self.results: dict[str, list[object]] = {}
        #: The time of the last redrive, and the lines that have had no event since.
        self.redriven_ms: int | None = None
        self.silent: set[str] | None = None

    def on_event(self, event: Event, frame: str) -> Iterator[str]:
        if frame:
            entry, lane = place_of(frame)
            opening = self.openings.get(entry)
            if opening is None or opening.how is not None:
                how = "was not opened" if opening is None else f"is closed: {opening.how}"
                yield f"{event.type} in {frame}, whose state {how}"
            elif opening.has_ended(lane):
                yield f"{event.type} in {frame}, which has ended"
        yield from self._goes_on(event, frame)
        if event.type in {"ParallelStateSucceeded", "MapStateSucceeded"} and frame in self.open:
            yield from self._is_decided(self.open[frame])
        if frame in self.results and event.type.endswith("StateExited"):
            results = self.results.pop(frame)
            if event.details["output"] != results:
                output = event.details["output"]
                yield f"{event.details['name']} gives {output!r:.90}, its lanes {results!r:.90}"

    def on_begun(self, opening: Opening, lane: int) -> Iterator[str]:
        where = f"lane {lane} of {opening.state}"
        running = len(opening.begun) - opening.ended
        most = min(opening.concurrency, self.at_once.get(opening.state) or opening.concurrency)
        if running >= most:
            yield f"{where} begins beside {running}, and {most} may run"
        if lane in opening.begun or lane >= opening.count:
            yield f"{where} begins, of {opening.count}, and after {sorted(opening.begun)}"
        if opening.is_closing:
            yield f"{where} begins, though it is decided"
        if opening.after:
            early = [one for one in opening.after[lane] if not opening.has_ended(one)]
            if early:
                yield f"{where} begins before the lanes {early} have ended"

    def on_ended(self, opening: Opening, lane: int) -> Iterator[str]:
        del lane
        if len(opening.failed) > opening.tolerated and not self._returns_errors(opening):
            yield f"{opening.state}: {len(opening.failed)} lanes failed, and it goes on"

    def on_closed(self, opening: Opening, event: Event) -> Iterator[str]:
        if not event.type.endswith("StateSucceeded"):
            return
        state = self.program.states[opening.state]
        if isinstance(state, ParallelState | MapState) and state.output is None:
            ended = {**opening.succeeded, **opening.errors}
            missing = _UNENDED if self._returns_errors(opening) else None
            lanes = range(opening.count)
            self.results[opening.owner] = [ended.get(lane, missing) for lane in lanes]
        yield from ()

    def _goes_on(self, event: Event, frame: str) -> Iterator[str]:
        """Check that after a redrive each open line has further events."""
        if event.type == "ExecutionRedriven":
            self.redriven_ms, self.silent = event.at_ms, None
            return
        if self.redriven_ms is None:
            return
        if self.silent is None:
            self.silent = {line for line in self.lines if line not in self.open}
        if event.type in TERMINAL_EVENTS:
            forgotten = sorted(self.silent & self.lines.keys())
            if forgotten and event.at_ms > self.redriven_ms + STUCK_SECONDS * 1_000:
                yield f"{forgotten} did nothing after the redrive"
            self.redriven_ms = None
        elif event.id or "frame" in event.holdfast:
            self.silent.discard(frame)

    def _returns_errors(self, opening: Opening) -> bool:
        state = self.program.states[opening.state]
        assert isinstance(state, ParallelState | MapState)
        return state.quorum is not None and state.quorum.returns_errors

    def _is_decided(self, opening: Opening) -> Iterator[str]:
        if self._returns_errors(opening) and len(opening.failed) > opening.tolerated:
            return
        enough = opening.count - len(opening.failed)
        if opening.needed is not None:
            enough = opening.needed
        if len(opening.succeeded) < enough:
            yield (
                f"{opening.state} is joined with {len(opening.succeeded)} of {enough} lanes,"
                f" {len(opening.failed)} failed"
            )
        if opening.needed is None and opening.ended < opening.count:
            yield f"{opening.state} is joined with {opening.ended} of {opening.count} lanes"


#: The result of a lane that did not end, where errors are results.
_UNENDED: Final = {
    "Error": "BranchCancelled",
    "Cause": "the branches were decided before this one ended",
    "Holdfast.Exception": True,
}


@dataclass
class _MapRun:
    """`most` children may run at once. `ended_ms`: when the log got the end of each."""

    state: str
    entry: int
    most: int
    count: int = 0
    ended_ms: list[int] = field(default_factory=list)


def _too_many_children(
    case: Case, history: StoredHistory, at_once: Mapping[str, int]
) -> Iterator[str]:
    """Check the number of running children. A child counts from the sending of its start until a
    record of its parent has its end: a start follows the record that made room for it.
    """
    first_ms = case.schedule.dispatches.first_ms
    for one in _map_runs(case, history, at_once):
        starts = (
            dispatches.start(history.tenant, child_run(history.run, one.entry, lane))
            for lane in range(one.count)
        )
        begun_ms = sorted(first_ms[start] for start in starts if start in first_ms)
        for begun, at_ms in enumerate(begun_ms, start=1):
            running = begun - bisect_right(one.ended_ms, at_ms)
            if running > one.most:
                where = f"{history.run}: child {begun} of {one.state}"
                yield f"{where} begins at {at_ms} as one of {running}, and {one.most} may run"


def _map_runs(case: Case, history: StoredHistory, at_once: Mapping[str, int]) -> list[_MapRun]:
    """Return the map runs. A redriven Map has another entry and children of its own."""
    written = written_ms(case.schedule)
    found: list[_MapRun] = []
    entered: dict[str, str] = {}
    running: dict[str, _MapRun] = {}
    for record in history.records:
        for event in record.events:
            own, frame = event.holdfast, str(event.holdfast.get("frame", ""))
            if event.type.endswith("StateEntered"):
                entered[frame] = event.details["name"]
            elif event.type == "MapRunStarted":
                most = at_once.get(entered[frame], own["concurrency"]) or CHILDREN_AT_ONCE_MAX
                most = min(most, CHILDREN_AT_ONCE_MAX)
                running[frame] = _MapRun(entered[frame], own["entry"], most)
                found.append(running[frame])
            elif event.type == "ChildrenStarted":
                running[frame].count = len(own["inputs"])
            elif event.type == "ChildEnded":
                ended_ms = written.get((history.run, record.sequence), record.at_ms)
                running[frame].ended_ms.append(ended_ms)
    return found
