"""From a graph to states. Sequences stay sequences, forks become Parallel states, and cores (graphs
that are neither) become Parallel states with `After`.

A step reads its part of the input from the context object of the execution. A result is a variable
where it is read in the same machine, and an output where it leaves a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.api.graph_model import (
    FromInput,
    FromStep,
    GraphModel,
    Step,
    references_in,
    sources_of,
)
from holdfast.api.step_types import Approval, HumanApproval, Rejected
from holdfast.compiler.emit.assembler import Assembler, Label, resolved
from holdfast.compiler.emit.states import MachineParts, note_state, output_of, task_state
from holdfast.compiler.expressions.query import (
    EXECUTION,
    STATES,
    ArrayOf,
    Constant,
    FieldOf,
    ItemOf,
    ObjectOf,
    QueryTree,
    Variable,
    literal,
    template,
)
from holdfast.compiler.graphs.places import Spot, spot_of
from holdfast.compiler.graphs.plan import Chain, Core, Fork, Plan, SingleStep, first_of, steps_of
from holdfast.compiler.graphs.saga import Registered, Saga
from holdfast.compiler.ir import SourcePlace
from holdfast.compiler.searching import Noted
from holdfast.compiler.types.failures import ErrorClasses
from holdfast.compiler.variable_names import VariableScopeNames

_RESULT: Final = FieldOf(STATES, "result")
_INPUT: Final = FieldOf(STATES, "input")
GIVEN: Final = FieldOf(EXECUTION, "Input")


@dataclass(frozen=True, slots=True)
class Emitted:
    """The definition of a graph, its tasks with their modules, and the source of its states."""

    asl: dict[str, Any]
    tasks: Mapping[str, str]
    spots: Mapping[str, Spot]
    answers: Mapping[str, Any]


def emit_dag(graph: GraphModel, plan: Plan, errors: ErrorClasses, noted: Noted = ()) -> Emitted:
    """Compile a checked graph.

    `plan` is the order of its steps, `errors` the error classes that they may raise, `noted` the
    search attributes of its input.
    """
    emitting = _Emitting(graph, MachineParts(errors))
    scope = VariableScopeNames(None, frozenset())
    saga = emitting.saga(scope) if graph.compensations else None
    states = emitting.machine_of(_Body(plan, scope, {}, {}, graph.finals, saga))
    if noted:
        states = emitting.after_note(states, noted)
    head: dict[str, Any] = {"Comment": graph.name, "QueryLanguage": "JSONata"}
    if graph.timeout is not None:
        head["TimeoutSeconds"] = int(graph.timeout.total_seconds())
    machine = emitting.machine
    extension = {"Holdfast": resolved(machine.extension)} if machine.extension else {}
    asl = {**head, **states, **extension}
    return Emitted(asl, machine.tasks, emitting.spots, machine.answers)


@dataclass(frozen=True, slots=True)
class _Body:
    """A machine that is to be made. `known` are results that it can read, `exports` those that it
    returns.

    `received`: results that are in the input of its first state, and how they are read there.
    `saga`: the compensations of the outermost machine; None without any, and for a branch.
    """

    plan: Plan
    scope: VariableScopeNames
    known: Mapping[int, QueryTree]
    received: Mapping[int, QueryTree]
    exports: tuple[int, ...]
    saga: Saga | None = None


@dataclass(frozen=True, slots=True)
class _Emitting:
    graph: GraphModel
    machine: MachineParts
    spots: dict[str, Spot] = field(default_factory=dict)

    def machine_of(self, body: _Body) -> dict[str, Any]:
        """Return the machine, `StartAt` and `States`. Its output is the only exported result, or an
        object with several results by id.
        """
        assembler = Assembler(self.machine.names)
        parts = body.plan.parts if isinstance(body.plan, Chain) else (body.plan,)
        if body.saga is not None:
            self._place_graph(body.saga.begin(assembler))
        since = assembler.size
        known = {**body.known, **self._receive(assembler, body)}
        for part, needed in zip(parts[:-1], self._needed(parts, body.exports), strict=True):
            variables = {n: body.scope.name(self.graph.steps[n].id, n) for n in needed}
            state, results = self._state(part, body.scope, known, needed)
            if variables:
                state["Assign"] = {variables[n]: template(results[n]) for n in needed}
            known |= {n: Variable(variable) for n, variable in variables.items()}
            self._add(assembler, part, self._guarded(body, part, state, results))
        own = set(steps_of(parts[-1]))
        last = tuple(number for number in body.exports if number in own)
        state, results = self._state(parts[-1], body.scope, known, last)
        output = self._output(body.exports, {**known, **results})
        if output not in (None, _RESULT):
            state["Output"] = output_of(output)
        state = self._guarded(body, parts[-1], state, results)
        self._add(assembler, parts[-1], {**state, "End": True})
        if body.saga is not None:
            for name in body.saga.end(assembler, assembler.names_since(since)):
                self._place_graph(name)
        return assembler.machine()

    def _guarded(
        self, body: _Body, plan: Plan, state: dict[str, Any], results: Mapping[int, QueryTree]
    ) -> dict[str, Any]:
        """Return the state of a part, with the compensations of its step."""
        if body.saga is None:
            return state
        if not isinstance(plan, SingleStep):
            return body.saga.guarded(state, ())
        registered = (
            Registered(one, self._arguments(one, sources_of(one), results))
            for one in self.graph.compensations_of(plan.number)
        )
        return body.saga.guarded(state, registered)

    def after_note(self, states: dict[str, Any], noted: Noted) -> dict[str, Any]:
        """Return the machine with a first state that sets the search attributes."""
        name, state = note_state(noted)
        spot = spot_of(self.graph.written)
        given = self.machine.names.give(name, SourcePlace(spot.span, ""))
        self.spots[given] = spot
        first = {given: {**state, "Next": states["StartAt"]}}
        return {"StartAt": given, "States": {**first, **states["States"]}}

    def _receive(self, assembler: Assembler, body: _Body) -> Mapping[int, QueryTree]:
        """Store the input of the branch in a variable: later states need it, and only the first
        state gets it.
        """
        if isinstance(body.plan, SingleStep) or not body.received:
            return body.received
        ids = {number: self.graph.steps[number].id for number in body.received}
        variables = {number: body.scope.name(id_, number) for number, id_ in ids.items()}
        assign = {variables[n]: template(query) for n, query in body.received.items()}
        name = f"results of {', '.join(ids.values())}"
        spot = spot_of(self.graph.steps[first_of(body.plan)[0]].written)
        given = assembler.add(SourcePlace(spot.span, ""), name, {"Type": "Pass", "Assign": assign})
        self.spots[given] = spot
        return {number: Variable(variable) for number, variable in variables.items()}

    def _needed(self, parts: Sequence[Plan], exports: Iterable[int]) -> list[tuple[int, ...]]:
        """Return, for each part but the last, the steps in it whose results later parts read."""
        wanted, found = set(exports), list[tuple[int, ...]]()
        for part, following in zip(reversed(parts[:-1]), reversed(parts[1:]), strict=True):
            wanted |= self._read_in(following)
            found.append(tuple(sorted(wanted.intersection(steps_of(part)))))
        return found[::-1]

    def _read_in(self, plan: Plan) -> set[int]:
        """Return the steps whose results are arguments in `plan`."""
        return {
            self.graph.ids[source.id]
            for number in steps_of(plan)
            for tree in self.graph.sources[number].values()
            for source in references_in(tree)
            if isinstance(source, FromStep)
        }

    def _output(
        self, exports: tuple[int, ...], values: Mapping[int, QueryTree]
    ) -> QueryTree | None:
        match exports:
            case ():
                return None
            case (number,):
                return values[number]
            case _:
                return ObjectOf(tuple((self.graph.steps[n].id, values[n]) for n in exports))

    # States.

    def _state(
        self,
        plan: Plan,
        scope: VariableScopeNames,
        known: Mapping[int, QueryTree],
        needed: tuple[int, ...],
    ) -> tuple[dict[str, Any], Mapping[int, QueryTree]]:
        """Return the fields of the state, and for each needed result the query that reads it
        there.
        """
        match plan:
            case SingleStep(number):
                task = self.graph.steps[number].task
                if isinstance(task, HumanApproval):
                    return self._approval(number, task), {number: ItemOf(_RESULT, Constant(0))}
                return self._task(number, known), {number: _RESULT}
            case Fork(branches):
                return self._parallel(_Lanes(branches, None, scope, known, needed))
            case Core(branches, after):
                return self._parallel(_Lanes(branches, after, scope, known, needed))
            case Chain():
                raise AssertionError("a part of a chain is no chain")

    def _parallel(self, lanes: _Lanes) -> tuple[dict[str, Any], Mapping[int, QueryTree]]:
        reads = [self._read_in(branch) for branch in lanes.branches]
        owner = {step: n for n, branch in enumerate(lanes.branches) for step in steps_of(branch)}
        wanted = {step for n, read in enumerate(reads) for step in read if owner.get(step, n) != n}
        exports: list[list[int]] = [[] for _ in lanes.branches]
        for step in sorted(wanted.union(lanes.needed)):
            exports[owner[step]].append(step)
        # A step may read the result of a step on which it depends only through others. So it waits
        # for that step, too.
        awaited = [
            sorted({*earlier, *(owner.get(step, n) for step in reads[n])} - {n})
            for n, earlier in enumerate(lanes.after or [()] * len(lanes.branches))
        ]
        bodies = []
        for number, branch in enumerate(lanes.branches):
            received = {
                step: query
                for place, other in enumerate(awaited[number])
                for step, query in self._parts(ItemOf(_INPUT, Constant(place)), exports[other])
                if step in reads[number]
            }
            inner = VariableScopeNames(lanes.scope, frozenset())
            bodies.append(
                self.machine_of(_Body(branch, inner, lanes.known, received, tuple(exports[number])))
            )
        extension = {} if lanes.after is None else {"Holdfast": {"After": awaited}}
        results = {
            step: query
            for number, given in enumerate(exports)
            for step, query in self._parts(ItemOf(_RESULT, Constant(number)), given)
        }
        return {"Type": "Parallel", **extension, "Branches": bodies}, results

    def _parts(self, value: QueryTree, exports: Sequence[int]) -> Iterable[tuple[int, QueryTree]]:
        """Yield for each result the query that reads it in the output of its branch."""
        if len(exports) == 1:
            return ((exports[0], value),)
        return tuple((number, FieldOf(value, self.graph.steps[number].id)) for number in exports)

    def _task(self, number: int, known: Mapping[int, QueryTree]) -> dict[str, Any]:
        step, sources = self.graph.steps[number], self.graph.sources[number]
        arguments = self._arguments(step, sources, known)
        return task_state(self.machine, step.task, template(arguments))

    def saga(self, scope: VariableScopeNames) -> Saga:
        place = SourcePlace(spot_of(self.graph.written).span, "")
        return Saga.of(self.machine, place, scope)

    def _place_graph(self, state: str) -> None:
        self.spots[state] = spot_of(self.graph.written)

    def _approval(self, number: int, approval: HumanApproval) -> dict[str, Any]:
        """Return one state for a question and its outcome: a branch that asks, and fails when the
        answer is a refusal.
        """
        place = SourcePlace(spot_of(self.graph.steps[number].written).span, "")
        assembler = Assembler(self.machine.names)
        if approval.notify is not None:
            self._place(number, assembler.add(place, approval.notify.name, self._notify(approval)))
        question = {
            "Type": "Task",
            "Resource": "holdfast:ask.waitForTaskToken",
            "Arguments": {"title": approval.title, "assignee": approval.assignee},
            "TimeoutSeconds": int(approval.answer_within.total_seconds()),
        }
        asked = self._place(number, assembler.add(place, f"ask for {approval.name}", question))
        self.machine.answers[asked] = Approval
        approved = Label()
        choice = {"Condition": "{% $states.input.approved %}", "Next": approved}
        rejected = Label()
        decide = {"Type": "Choice", "Choices": [choice], "Default": rejected}
        self._place(number, assembler.end(place, f"{approval.name} approved?", decide))
        assembler.place(rejected)
        note = "{% $states.input.note %}"
        fail = {"Type": "Fail", "Error": Rejected.__name__, "Cause": note}
        self._place(number, assembler.end(place, f"{approval.name} rejected", fail))
        assembler.place(approved)
        end = {"Type": "Succeed"}
        self._place(number, assembler.end(place, f"{approval.name} approved", end))
        return {"Type": "Parallel", "Branches": [assembler.machine()]}

    def _notify(self, approval: HumanApproval) -> dict[str, Any]:
        assert approval.notify is not None
        return task_state(self.machine, approval.notify, {})

    def _place(self, number: int, state: str) -> str:
        self.spots[state] = spot_of(self.graph.steps[number].written)
        return state

    def _arguments(
        self, step: Step, sources: Mapping[str, Any], known: Mapping[int, QueryTree]
    ) -> QueryTree:
        queries = ((name, self._query(step, name, sources[name], known)) for name in sources)
        return ObjectOf(tuple(queries))

    def _query(self, step: Step, name: str, tree: Any, known: Mapping[int, QueryTree]) -> QueryTree:
        if not references_in(tree) and not step.task.is_service:
            return literal(step.task.boundary.normalise_argument(name, tree))
        return self._filled(tree, known)

    def _filled(self, tree: Any, known: Mapping[int, QueryTree]) -> QueryTree:
        match tree:
            case FromStep(id_):
                return known[self.graph.ids[id_]]
            case FromInput(name):
                return FieldOf(GIVEN, name)
            case list() | tuple():
                return ArrayOf(tuple(self._filled(item, known) for item in tree))
            case dict():
                return ObjectOf(tuple((key, self._filled(tree[key], known)) for key in tree))
            case _:
                return literal(tree)

    def _add(self, assembler: Assembler, plan: Plan, state: dict[str, Any]) -> None:
        ids = [self.graph.steps[number].id for number in _heads(plan)]
        written = self.graph.steps[plan.number].written if isinstance(plan, SingleStep) else None
        spot = spot_of(written or self.graph.written)
        add = assembler.end if "End" in state else assembler.add
        self.spots[add(SourcePlace(spot.span, ""), ", ".join(ids), state)] = spot


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Branches that become one state. With `after` None they wait for nothing."""

    branches: tuple[Plan, ...]
    after: tuple[tuple[int, ...], ...] | None
    scope: VariableScopeNames
    known: Mapping[int, QueryTree]
    needed: tuple[int, ...]


def _heads(plan: Plan) -> list[int]:
    """Return the steps that give a state its name: a single step itself, or the first steps of the
    branches.
    """
    match plan:
        case Fork(branches) | Core(branches):
            return [first_of(branch)[0] for branch in branches]
        case _:
            return [first_of(plan)[0]]
