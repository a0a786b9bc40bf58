"""I10: which steps are undone and in which order, and which steps a cancelled line may still
run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.asl.program import FailState, Json, Program
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.lines import ROOT, HistoryLine, HistoryLines, Opening
from holdfast_simulator.invariants.programs import program_of, silent_states, undo_steps


def undone_in_reverse(case: Case) -> Iterator[str]:
    """Check the undo of a cancelled line. Each undo around its position runs once, the innermost
    first. In a compiled workflow it undoes the steps that were done, the last one first. The line
    begins nothing else.
    """
    for history in case.histories:
        program = program_of(case, history)
        if program is not None and (program.undos or program.shielded):
            silent, steps = silent_states(case, history), undo_steps(case, history)
            undos = _Undos(program, _Told(silent, steps, _cuts(case, history)))
            for text in undos.read(history.events):
                yield f"{history.run}: {text}"


def _cuts(case: Case, history: StoredHistory) -> frozenset[str]:
    """Return the ids of the stops that skip the remaining undo, by their own data."""
    items = case.services.items(tables.MAIL)
    inbox = keys.inbox(history.tenant, history.run)
    found = (str(item["sk"]) for item in items if item["pk"] == inbox and "now" in item)
    return frozenset(key.removeprefix(keys.CONTROL_PREFIX) for key in found)


@dataclass(frozen=True)
class _Told:
    """Facts that the program lacks: the states that fail without an event; by the first state of
    each undo, the variable with the steps to undo; and the stops that skip the undo.
    """

    silent: frozenset[str]
    steps: Mapping[str, str]
    cuts: frozenset[str]


@dataclass
class _Unwinding:
    """The undo of one line. `steps`: the remaining steps, (task, arguments)."""

    undo: int
    steps: list[tuple[str, Json]]


class _Undos(HistoryLines):
    def __init__(self, program: Program, told: _Told) -> None:
        super().__init__(program)
        self.told = told
        self.unwinding: dict[str, _Unwinding] = {}
        #: By line, the undo that has begun and not ended.
        self.undoing: dict[str, int] = {}
        self.has_stopped = False

    def on_event(self, event: Event, frame: str) -> Iterator[str]:
        line = self.lines.get(frame)
        kind = event.type
        if kind in TERMINAL_EVENTS:
            yield from self._ended(event)
        elif kind == "Stopping":
            self.has_stopped = True
        elif kind == "ExecutionRedriven":
            self.has_stopped = False
            self.unwinding.clear()
            self.undoing.clear()
        elif line is None:
            return
        elif kind == "UndoStarted":
            yield from self._undo_started(line, event)
        elif kind in {"Unwound", "DeadlinePassed"}:
            yield from self._over(line, kind)
        elif kind.endswith("StateEntered"):
            yield from self._entered(line, event)
        elif kind == "TaskScheduled" and event.holdfast["attempt"] == 1:
            yield from self._scheduled(line, event)

    def on_closed(self, opening: Opening, event: Event) -> Iterator[str]:
        for lane in opening.begun:
            yield from self._dropped(f"{opening.entry}.{lane}", event)

    def _dropped(self, frame: str, event: Event) -> Iterator[str]:
        line = self.lines.get(frame)
        if line is None:
            return
        if self._has_to_unwind(line):
            yield f"{frame} is dropped at {line.position!r} by {event.type}, and nothing undone"
        if frame in self.open:
            for lane in self.open[frame].begun:
                yield from self._dropped(f"{self.open[frame].entry}.{lane}", event)

    # -- undos -------------------------------------------------------------------------------------

    def _undo_started(self, line: HistoryLine, event: Event) -> Iterator[str]:
        number = event.holdfast["undo"]
        if line.cancelled is None:
            yield f"undo {number} begins at {line.position!r}, which was not cancelled"
            return
        yield from self._is_through(line)
        self.undoing[line.id] = number
        expected = self._next(line)
        if number != expected:
            yield f"at {line.position!r} undo {number} begins, and {expected} should"

    def _next(self, line: HistoryLine) -> int | None:
        """Return the innermost undo around the line that has not begun, and that its reason
        reaches.
        """
        reason = line.cancelled or {}
        within = None
        if "deadline" in reason:
            within = self.program.deadlines[reason["deadline"]].states
        for number, undo in enumerate(self.program.undos):
            is_reached = within is None or undo.begin in within
            is_around = line.position in undo.states
            if is_around and is_reached and number not in reason.get("undone", ()):
                return number
        return None

    def _over(self, line: HistoryLine, kind: str) -> Iterator[str]:
        yield from self._is_through(line)
        missing = self._next(line)
        if missing is not None and not self._may_have_failed(line):
            yield f"{line.id!r} is over by {kind} at {line.position!r}, without undo {missing}"

    def _is_through(self, line: HistoryLine) -> Iterator[str]:
        """Check that the newest undo has ended, or has failed."""
        number = self.undoing.pop(line.id, None)
        if number is None or self._may_have_failed(line):
            return
        if line.position != self.program.undos[number].end:
            yield f"undo {number} is cut off at {line.position!r}"

    def _ended(self, event: Event) -> Iterator[str]:
        control = event.holdfast.get("control")
        if event.type in {"ExecutionSucceeded", "ExecutionFailed"} or control in self.told.cuts:
            return
        if self.has_stopped and control is not None:
            yield f"the undo is cut by {control}, a stop that waits for it"
            return
        for line in self.lines.values():
            if not self.has_stopped:
                if self._has_to_unwind(line):
                    yield f"{event.type} at {line.position!r}, and nothing undone"
            elif line.id == ROOT:
                yield from self._over(line, event.type)
            else:
                yield f"{event.type}, and {line.id} is still at {line.position!r}"

    def _has_to_unwind(self, line: HistoryLine) -> bool:
        if self._came_to_an_end(line):
            return False
        is_around = any(line.position in undo.states for undo in self.program.undos)
        return is_around or self._is_shielded(line)

    def _is_shielded(self, line: HistoryLine) -> bool:
        owner = self.lines.get(line.owner) if line.owner is not None else None
        kept = (*self.program.shielded, *(undo.own for undo in self.program.undos))
        return any(
            line.position in one and (owner is None or owner.position not in one) for one in kept
        )

    def _may_have_failed(self, line: HistoryLine) -> bool:
        """Return True when the line may have failed without a trace: a cancelled line that fails
        after a shielded part is over, and some states report no failure.
        """
        is_silent = line.position in self.told.silent and self._is_shielded(line)
        return is_silent or self._came_to_an_end(line)

    def _came_to_an_end(self, line: HistoryLine) -> bool:
        """Return True when the line has left its last state, or failed there, so its result is
        decided.
        """
        return line.has_left or isinstance(self.program.states.get(line.position), FailState)

    # -- steps -------------------------------------------------------------------------------------

    def _entered(self, line: HistoryLine, event: Event) -> Iterator[str]:
        name = event.details["name"]
        unwinding = self.unwinding.get(line.id)
        if unwinding is not None and name not in self.program.undos[unwinding.undo].own:
            del self.unwinding[line.id]
            if unwinding.steps:
                yield f"the undo before {name!r} is over, and {unwinding.steps} are not undone"
        for number, undo in enumerate(self.program.undos):
            if name == undo.begin and line.position not in undo.own:
                steps = self._steps(line, name)
                if steps is not None:
                    self.unwinding[line.id] = _Unwinding(number, steps)

    def _scheduled(self, line: HistoryLine, event: Event) -> Iterator[str]:
        unwinding = self.unwinding.get(line.id)
        if unwinding is None:
            return
        found = (event.details["resource"].partition(":")[2], event.details["parameters"])
        expected = unwinding.steps.pop(0) if unwinding.steps else None
        if found != expected:
            yield f"{found} is undone, and {expected} should be"

    def _steps(self, line: HistoryLine, begin: str) -> list[tuple[str, Json]] | None:
        """Return the finished steps that have an undo, the last one first. None without a list of
        them: a `finally` is an undo without steps.
        """
        steps = self._variables(line).get(self.told.steps.get(begin, ""))
        if not isinstance(steps, list):
            return None
        return [(step["task"], step["arguments"]) for step in reversed(steps)]

    def _variables(self, line: HistoryLine) -> dict[str, Any]:
        owner = None if line.owner is None else self.lines.get(line.owner)
        outer = {} if owner is None else self._variables(owner)
        return {**outer, **line.variables}
