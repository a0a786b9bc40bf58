"""Blocks after their deadlines, for the reference interpreter: the steps that a late line still
runs.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from holdfast.asl.program import Json, MapState, ParallelState, SucceedState, TaskState, WaitState
from holdfast.asl.template import Template
from holdfast_simulator.reference.fields import Fields, ReferenceLine, StateFailure

#: The next state, None after the last, and its input.
Move: TypeAlias = tuple[str | None, Json]
_LATE: Final[Json] = {"Error": "BlockTimeout", "Cause": ""}


class Blocks(Fields):
    """A late line is taken back to its block as soon as nothing shields it."""

    def _is_inside(self, line: ReferenceLine, name: str | None) -> bool:
        return name in self.program.deadlines[self._to_leave(line)].states

    def _to_leave(self, line: ReferenceLine) -> int:
        """The innermost block that is out of time, or one around it that no more shields part."""
        first, *others = line.late
        for other in others:
            if self._shields(line, other) == self._shields(line, first):
                first = other
        return first

    def _shields(self, line: ReferenceLine, block: int) -> int:
        """Return how many shields delay the end of the block."""
        inside = {self.program.deadlines[block].begin}
        if line.outer is not None:
            inside.add(line.outer.position)
        shields = (*self.program.shielded, *(undo.own for undo in self.program.undos))
        return sum(line.position in one and not one & inside for one in shields)

    def _is_shielded(self, line: ReferenceLine) -> bool:
        return self._shields(line, self._to_leave(line)) > 0

    def _continues(self, line: ReferenceLine) -> bool:
        """A line that becomes late at a state without a wait goes on, too."""
        return self._is_shielded(line) or not self._is_step(line)

    def _outlast(self, line: ReferenceLine, name: str | None) -> None:
        """Forget the blocks that a late line leaves for the state `name`, before a step of theirs:
        it leaves them in time. An undo that has begun is not forgotten.
        """
        if not line.undone:
            blocks = self.program.deadlines
            line.late = [
                one
                for one in line.late
                if not blocks[one].cuts_steps_only or name in blocks[one].states
            ]

    def _is_taken(self, line: ReferenceLine) -> bool:
        """A late line stops where an undo of it ends, and at its next step outside."""
        if self._is_shielded(line):
            return False
        ends = {self.program.undos[number].end for number in line.undone}
        return line.position in ends or self._is_step(line)

    def _is_step(self, line: ReferenceLine) -> bool:
        match self.program.states[line.position]:
            case (
                TaskState(kind="command", target="send" | "reply" | "stop" | "again")
                | TaskState(kind="pure", target="holdfast.log")
            ):
                return not self.program.deadlines[self._to_leave(line)].cuts_steps_only
            case ParallelState(branches=[start]):
                return not isinstance(self.program.states[start], SucceedState)
            case state:
                return isinstance(state, TaskState | WaitState | MapState | ParallelState)

    def _unwind(self, line: ReferenceLine) -> Move:
        block = self._to_leave(line)
        within = self.program.deadlines[block].states
        for number, undo in enumerate(self.program.undos):
            is_within = line.position in undo.states and undo.begin in within
            if is_within and number not in line.undone:
                line.undone.add(number)
                if self._assign(line, undo.assign):
                    return undo.begin, line.input
        return self._leave_block(line, block)

    def _leave_late(self, line: ReferenceLine, data: Json) -> Move:
        """Leave the block from its last state: the handler gets the result of that state."""
        line.input = data
        return self._leave_block(line, self._to_leave(line))

    def _leave_block(self, line: ReferenceLine, number: int) -> Move:
        block = self.program.deadlines[number]
        line.late = [one for one in line.late if self._is_around(one, number)]
        line.blocks = [one for one in line.blocks if self._is_around(one, number)]
        line.undone.clear()
        self._assign(line, block.assign)
        if block.next is None:
            raise StateFailure("BlockTimeout", "")
        return block.next, line.input

    def _is_around(self, outer: int, inner: int) -> bool:
        blocks = self.program.deadlines
        return outer != inner and blocks[inner].begin in blocks[outer].states

    def _assign(self, line: ReferenceLine, assign: Template | None) -> bool:
        """False: it cannot be worked out, and nothing is assigned."""
        try:
            line.variables |= self._object(line, assign, errorOutput=_LATE)
        except StateFailure:
            return False
        return True
