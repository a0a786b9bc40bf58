"""Compensations of a graph: registered as steps succeed, run in reverse order after a failure.

The states are those of `compensating()`: a list of registered steps in a variable, a Catch of every
state that may fail, and a loop that takes the last registered step first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from holdfast.api.graph_model import Step
from holdfast.compiler.emit.assembler import Assembler, Label
from holdfast.compiler.emit.regions import UndoRegion, UndoStep, catchers, undo_when_stopped
from holdfast.compiler.emit.scopes import emit_undo, registered
from holdfast.compiler.emit.states import MachineParts, task_state
from holdfast.compiler.expressions.query import (
    ArrayOf,
    FieldOf,
    QueryTree,
    Variable,
    cause_of,
    expression,
    template,
)
from holdfast.compiler.ir import Compensate, SourcePlace
from holdfast.compiler.variable_names import VariableScopeNames

_BEGIN: Final = "compensations"
_END: Final = "raise what was undone"


@dataclass(frozen=True, slots=True)
class Saga:
    """The compensations of one machine. `origin`: the place of the graph."""

    machine: MachineParts
    origin: SourcePlace
    region: UndoRegion

    @classmethod
    def of(cls, machine: MachineParts, origin: SourcePlace, scope: VariableScopeNames) -> Saga:
        steps, left, failure = (
            scope.name(name, (name,)) for name in ("undo_steps", "undo_left", "failure")
        )
        compensate = Compensate(origin, steps, left, failure, body=(), stops=False)
        return cls(machine, origin, UndoRegion(compensate))

    def begin(self, assembler: Assembler) -> str:
        empty = {self.region.compensate.steps: template(ArrayOf(()))}
        return assembler.add(self.origin, _BEGIN, {"Type": "Pass", "Assign": empty})

    def guarded(self, state: Mapping[str, Any], undone: Iterable[Registered]) -> dict[str, Any]:
        """Return the state with the way to the compensations, and with those that it registers.

        A state registers them as it assigns its result: there is no moment between the two.
        """
        found = {**state, "Catch": catchers([self.region])}
        steps = [*undone]
        if not steps:
            return found
        longer: QueryTree = Variable(self.region.compensate.steps)
        for one in steps:
            state_of = partial(task_state, self.machine, one.step.task)
            self.region.undos[one.step.id] = UndoStep(one.step.id, state_of)
            longer = registered(longer, one.step.id, one.arguments)
        variable = self.region.compensate.steps
        found["Assign"] = {**state.get("Assign", {}), variable: template(longer)}
        return found

    def end(self, assembler: Assembler, inside: Sequence[str]) -> list[str]:
        """Add the states that undo, and return their names."""
        since = assembler.size
        assembler.place(self.region.label)
        emit_undo(assembler, self.origin, self.region)
        undone = Label()
        assembler.place(undone)
        held = Variable(self.region.compensate.failure)
        error, cause = expression(FieldOf(held, "Error")), expression(cause_of(held))
        assembler.end(self.origin, _END, {"Type": "Fail", "Error": error, "Cause": cause})
        self.machine.undos.append(undo_when_stopped(self.region, [*inside], undone))
        return assembler.names_since(since)


@dataclass(frozen=True, slots=True)
class Registered:
    """A compensation, and the query of its arguments."""

    step: Step
    arguments: QueryTree
