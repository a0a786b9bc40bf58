"""The states of durable calls, and where their results go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from holdfast.api.boundary import JsonValue
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.emit.assembler import Assembler
from holdfast.compiler.emit.states import (
    NO_RETRY_OF_EXPRESSIONS,
    MachineParts,
    event_state,
    in_chosen_pool,
    note_state,
    output_of,
    part_of,
    question_state,
    request_state,
    send_state,
    short_name,
    start_state,
    stop_state,
    task_state,
    workflow_state,
)
from holdfast.compiler.expressions.query import (
    NULL,
    STATES,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    FieldOf,
    FunctionLiteral,
    ItemOf,
    QueryTree,
    Variable,
    expression,
    invoke,
    template,
)
from holdfast.compiler.ir import (
    Action,
    Again,
    Ask,
    Assign,
    BranchErrors,
    If,
    Note,
    Publish,
    Reply,
    RunEach,
    RunFirst,
    RunParallel,
    RunWorkflow,
    SendEvent,
    SendRequest,
    Sleep,
    SleepUntil,
    SourcePlace,
    StartWorkflow,
    StatementBlock,
    StepStatement,
    StopExecution,
    Target,
    TaskAction,
    WaitForEvent,
)
from holdfast.compiler.types.types import BOOL, INT, UNKNOWN, ListOf

_RESULT: Final = FieldOf(STATES, "result")


@dataclass(frozen=True, slots=True)
class StepEmitter:
    """Adds the states of steps to `assembler`. `emit_block` returns the machine of a branch."""

    machine: MachineParts
    assembler: Assembler
    emit_block: Callable[[MachineParts, StatementBlock], dict[str, Any]]

    def emit(self, statement: StepStatement, catch: list[dict[str, Any]]) -> None:
        name, state = self._action(statement)
        can_catch = state["Type"] not in ("Wait", "Pass")
        if catch and can_catch:
            state["Catch"] = catch
        result = _result_of(statement.action)
        if statement.targets:
            state["Assign"] = {
                target.variable: part_of(result, target) for target in statement.targets
            }
        if statement.targets is None and can_catch:
            if result != _RESULT:
                state["Output"] = expression(result)
            given = self.assembler.end(statement.origin, name, {**state, "End": True})
        else:
            given = self.assembler.add(statement.origin, name, state)
        match statement.action:
            case Ask(answer=answer) | SendRequest(reply=answer):
                self.machine.answers[given] = answer
            case _:
                pass
        if statement.targets is None and not can_catch:
            nothing = {"Type": "Succeed", "Output": output_of(NULL)}
            self.assembler.end(statement.origin, f"after {name}", nothing)

    def _action(self, statement: StepStatement) -> tuple[str, dict[str, Any]]:
        origin = statement.origin
        match statement.action:
            case TaskAction(task, arguments, pool):
                state = task_state(self.machine, task, template(arguments.query))
                if pool is not None:
                    state = in_chosen_pool(state, template(pool.query))
                return task.label or task.name, _retried(state, arguments)
            case RunWorkflow() as call:
                return workflow_state(self.machine, call)
            case StartWorkflow() as start:
                return start_state(self.machine, start)
            case Again(arguments):
                renewed = {"Resource": "holdfast:again", "Arguments": template(arguments.query)}
                return "again", {"Type": "Task", **renewed}
            case SendEvent() as sent:
                return send_state(sent)
            case SendRequest() as request:
                return request_state(request)
            case StopExecution() as stopped:
                return stop_state(stopped)
            case Reply(request, arguments):
                given = {"Resource": "holdfast:reply", "Arguments": template(arguments.query)}
                return f"reply to {request}", {"Type": "Task", **given}
            case WaitForEvent() as wait:
                return event_state(self.machine, wait)
            case Ask() as question:
                return question_state(question)
            case Publish(name, value):
                published = {"Publish": {name: template(value.query)}}
                return f"publish {name}", {"Type": "Pass", "Holdfast": published}
            case Note(attributes):
                return note_state(attributes)
            case Sleep(seconds):
                return origin.text, {"Type": "Wait", "Seconds": template(seconds.query)}
            case SleepUntil(moment):
                return origin.text, {"Type": "Wait", "Timestamp": template(moment.query)}
            case RunParallel(branches) as parallel:
                if _is_limited(parallel):
                    return short_name(origin.text), self._few_at_once(parallel, origin)
                return short_name(origin.text), self._parallel(branches, _quorum(parallel))
            case RunFirst(branches):
                return short_name(origin.text), self._parallel(branches, {"Needed": 1})
            case RunEach() as each:
                return short_name(origin.text), self._each(each, origin)

    def _parallel(
        self, branches: tuple[StatementBlock, ...], quorum: dict[str, JsonValue]
    ) -> dict[str, Any]:
        bodies = [self.emit_block(self.machine, branch) for branch in branches]
        return {"Type": "Parallel", **_extended(quorum), "Branches": bodies}

    def _few_at_once(self, parallel: RunParallel, origin: SourcePlace) -> dict[str, Any]:
        """Return a Map over the numbers of the branches, because ASL limits only iterations."""
        numbers = range(len(parallel.branches))
        taken = SourcePlace(origin.span, "which branch?", origin.source)
        *others, body = parallel.branches
        for number, branch in reversed([*enumerate(others)]):
            test = Binary("=", FieldOf(STATES, "input"), Constant(number))
            body = (If(taken, TypedQuery(test, BOOL), branch, body),)
        items = TypedQuery(ArrayOf(tuple(map(Constant, numbers))), ListOf(INT))
        counts = (parallel.concurrency, parallel.needed, parallel.tolerated, parallel.errors)
        return self._each(RunEach(items, (), body, *counts), origin)

    def _each(self, each: RunEach, origin: SourcePlace) -> dict[str, Any]:
        body = each.body
        if each.parameters:
            values = tuple((one.variable, _part_of_item(one)) for one in each.parameters)
            names = ", ".join(one.variable for one in each.parameters)
            body = (Assign(SourcePlace(origin.span, f"item: {names}"), values), *body)
        machine = self.emit_block(self.machine, body)
        processor = {"ProcessorConfig": {"Mode": "INLINE"}, **machine}
        state = {"Type": "Map", "Items": template(each.items.query), "ItemProcessor": processor}
        concurrency = _above_zero(each.concurrency)
        if concurrency is not None:
            state["MaxConcurrency"] = concurrency
        return {**state, **_extended(_quorum(each))}


def _part_of_item(target: Target) -> TypedQuery:
    item = FieldOf(STATES, "input")
    part = item if target.part is None else ItemOf(item, Constant(target.part))
    return TypedQuery(part, UNKNOWN)


def _above_zero(count: TypedQuery | None) -> JsonValue:
    """Return the number, or None for 0: ASL takes 0 when the field is absent."""
    return None if count is None or count.query == Constant(0) else template(count.query)


def _is_limited(parallel: RunParallel) -> bool:
    match parallel.concurrency:
        case None:
            return False
        case TypedQuery(query=Constant(int(number))):
            return 0 < number < len(parallel.branches)
        case _:
            return True


def _quorum(action: RunParallel | RunEach) -> dict[str, JsonValue]:
    """Return the fields that say how many branches must succeed. None are needed when all must,
    because that is the rule of plain ASL.
    """
    fields: dict[str, JsonValue] = {}
    if action.needed is not None:
        fields["Needed"] = template(action.needed.query)
    tolerated = _above_zero(action.tolerated)
    if tolerated is not None:
        fields["Tolerated"] = tolerated
    if action.errors is BranchErrors.COUNTED:
        fields["ReturnErrors"] = True
    return fields


def _extended(fields: dict[str, JsonValue]) -> dict[str, Any]:
    return {"Holdfast": fields} if fields else {}


def _retried(state: dict[str, Any], arguments: TypedQuery) -> dict[str, Any]:
    """Exclude failures of the arguments from the retries of a task."""
    if arguments.fails and "Retry" in state:
        state["Retry"].insert(0, NO_RETRY_OF_EXPRESSIONS)
    return state


def _result_of(action: Action) -> QueryTree:
    """Return the query for the result of the step, inside the state of the step."""
    match action:
        case Sleep() | SleepUntil() | Publish() | Note():
            return NULL
        case RunFirst():
            winner, other = Variable("_winner"), Variable("_other")
            kept = Conditional(Binary("!=", winner, NULL), winner, other)
            return invoke("reduce", _RESULT, FunctionLiteral((winner.name, other.name), kept))
        case _:
            return _RESULT
