"""Durable calls: from `ast` to the action of a `Step` and the type of its result."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.api import surface
from holdfast.api.services import ServiceCall
from holdfast.api.surface import Task, Workflow
from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.expressions.arguments import spread_tuples
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import ObjectOf
from holdfast.compiler.ir import Action, TaskAction
from holdfast.compiler.signatures import match_call, signature_of
from holdfast.compiler.steps.branching import Branching, BranchingStatements
from holdfast.compiler.steps.callables import obstacles_of
from holdfast.compiler.steps.child_calls import (
    lower_again,
    lower_child_call,
    lower_start,
    times_of,
)
from holdfast.compiler.steps.durable import REFUSED_STEP, chosen_pool, find_outside
from holdfast.compiler.steps.service_calls import lower_service_arguments, result_type
from holdfast.compiler.steps.spread_dicts import dicts_of, spread_dicts, with_dict
from holdfast.compiler.steps.step_arguments import StepRefused, refuse, require_text
from holdfast.compiler.steps.task_arguments import can_dump, lower_argument
from holdfast.compiler.steps.waits import (
    lower_ask,
    lower_later,
    lower_note,
    lower_publish,
    lower_receive,
    lower_request,
    lower_send,
    lower_sleep,
    lower_sleep_until,
    lower_stop,
    lower_wait_for_event,
)
from holdfast.compiler.types.types import (
    NONE,
    UNKNOWN,
    Type,
    element_of,
    is_refused,
    may_be_none,
    without_none,
)


@dataclass(frozen=True, slots=True)
class Steps:
    """Lowers the durable calls at one point of the flow. Durable calls in their arguments are
    already hoisted (moved before the statement).
    """

    expressions: Expressions
    statements: BranchingStatements

    def lower(self, node: ast.Call, function: Any) -> tuple[Action, Type] | None:
        """Return the action and the type of a durable call; None when it was refused."""
        try:
            return self._lower(node, function)
        except StepRefused:
            return None

    def receive(self, node: ast.Call) -> tuple[Action, Type] | None:
        """Return the wait of `with receive(…)` and the type of the request; None when refused."""
        found = match_call(self.expressions.unit, node, surface.receive)
        if found is None:
            return None
        try:
            return lower_receive(self.expressions, node, found, self.statements)
        except StepRefused:
            return None

    def arguments(
        self, node: ast.Call, task: Task[..., Any], *, skip: int = 0
    ) -> TypedQuery | None:
        """Return the JSON object of a task's arguments, by parameter name; None when refused."""
        try:
            return self._arguments(node, task, skip)
        except StepRefused:
            return None

    def _lower(self, node: ast.Call, function: Any) -> tuple[Action, Type]:
        if function is REFUSED_STEP:
            raise StepRefused
        node = spread_tuples(self.expressions, node)
        if isinstance(function, ServiceCall):
            action = TaskAction(function, self._arguments(node, function, 0))
            return action, result_type(function)
        if isinstance(function, Task | Workflow):
            return self.call_of(node, function)
        if function is surface.note:
            return lower_note(self.expressions, node)
        if function is surface.start:
            return self._start(node)
        if function is surface.again:
            workflow = self.expressions.unit.workflow
            given = self._arguments(node, workflow, 0)
            return lower_again(self.expressions, node, workflow, given)
        found = match_call(self.expressions.unit, node, function)
        if found is None:
            raise StepRefused
        branching = Branching(self.expressions, self.statements)
        if function is surface.parallel:
            return branching.parallel(node, found)
        if function is surface.first:
            return branching.first(node, found)
        if function is surface.each:
            return branching.each(node, found)
        if function is surface.sleep:
            return lower_sleep(self.expressions, found, self.statements)
        if function is surface.sleep_until:
            return lower_sleep_until(self.expressions, found, self.statements)
        if function is surface.receive:
            message = "a request is received by `with`, which says where its handling ends"
            help_ = f"with {self.expressions.unit.text(node)} as request:"
            raise refuse(self.expressions, node, "HF160", message, help_)
        if function is surface.wait_for_event:
            return lower_wait_for_event(self.expressions, node, found, self.statements)
        if function is surface.send:
            return lower_send(self.expressions, found, self.statements)
        if function is surface.request:
            return lower_request(self.expressions, found, self.statements)
        if function is surface.stop:
            return lower_stop(self.expressions, found)
        if function is surface.publish:
            return lower_publish(self.expressions, found)
        return lower_ask(self.expressions, found, self.statements)

    # Tasks.

    def call_of(
        self, node: ast.Call, called: Task[..., Any] | Workflow[..., Any]
    ) -> tuple[Action, Type]:
        """Lower the call of a task or a child workflow. Raises StepRefused."""
        given = self._arguments(node, called, 0)
        if isinstance(called, Workflow):
            return lower_child_call(self.expressions, node, called, given)
        pool = self._pool_of(node)
        if pool is not None:
            given = TypedQuery(given.query, given.type, fails_of(given, pool))
        return TaskAction(called, given, pool), self._result_of(node, called)

    def _pool_of(self, node: ast.Call) -> TypedQuery | None:
        """Return the pool that the call computes. At run time a text that is not the name of a pool
        fails the step, as `Worker` raises ValueError in Python.
        """
        name = chosen_pool(self.expressions.unit, self.expressions.scope, node.func)
        if name is None:
            return None
        pool = require_text(self.expressions, name)
        return TypedQuery(pool.query, pool.type, pool.fails | {"ValueError"})

    def _start(self, node: ast.Call) -> tuple[Action, Type]:
        unit, scope = self.expressions.unit, self.expressions.scope
        named = node.args[0] if node.args else None
        workflow = None if named is None else find_outside(unit, scope, named)
        if not isinstance(workflow, Workflow):
            message = "start() takes a @workflow, and then the workflow's own arguments"
            raise refuse(
                self.expressions, named or node, "HF086", message, "start(dispatch, order.id)"
            )
        times = times_of(self.expressions, node, workflow)
        own = [word for word in node.keywords if word.arg not in times]
        call = ast.copy_location(ast.Call(node.func, node.args, own), node)
        given = self._arguments(call, workflow, 1)
        later = lower_later(self.expressions, times, None if given.fails else self.statements)
        return lower_start(self.expressions, node, workflow, given, later)

    def _arguments(
        self, node: ast.Call, task: Task[..., Any] | Workflow[..., Any], skip: int
    ) -> TypedQuery:
        if isinstance(task, ServiceCall):
            return lower_service_arguments(self.expressions, node, task, skip)
        self._require_callable(node, task)
        node = spread_dicts(self.expressions, node)
        dicts, signature = dicts_of(node), signature_of(task.function)
        if len(dicts) == 1 and isinstance(task, Task) and signature.has_plain_parameters:
            return self._with_dict(node, task, skip, dicts[0])
        found = match_call(self.expressions.unit, node, task.function, skip=skip)
        if found is None:
            raise StepRefused
        lowered = self._lowered(node, task, found, skip)
        if task.name == "json.dumps" and not can_dump(
            lowered["obj"].type, is_sorted="sort_keys" in lowered
        ):
            message = (
                "`json.dumps` refuses such a value, or does not write it as the workflow has it"
            )
            help_ = "call it inside a @pure function"
            raise refuse(self.expressions, node, "HF040", message, help_)
        if any(is_refused(value.type) for value in lowered.values()):
            raise StepRefused
        items = tuple((name, lowered[name].query) for name in found)
        return TypedQuery(ObjectOf(items), NONE, fails_of(*lowered.values()))

    def _lowered(
        self,
        node: ast.Call,
        task: Task[..., Any] | Workflow[..., Any],
        found: Mapping[str, ast.expr],
        skip: int,
    ) -> dict[str, TypedQuery]:
        """Return the arguments by parameter, in the order of the call."""
        names = {id(value): name for name, value in found.items()}
        parameters = signature_of(task.function).parameters
        lowered = {}
        for value in (*node.args[skip:], *(keyword.value for keyword in node.keywords)):
            name = names[id(value)]
            lowered[name] = lower_argument(
                self.expressions, value, task.name, name, parameters[name]
            )
        return lowered

    def _with_dict(
        self, node: ast.Call, task: Task[..., Any], skip: int, given: ast.expr
    ) -> TypedQuery:
        own = [word for word in node.keywords if word.arg is not None]
        call = ast.copy_location(ast.Call(node.func, node.args, own), node)
        found = match_call(self.expressions.unit, call, task.function, skip=skip, is_partial=True)
        if found is None:
            raise StepRefused
        named = self._lowered(call, task, found, skip)
        if any(is_refused(value.type) for value in named.values()):
            raise StepRefused
        return with_dict(self.expressions, given, named, task.function)

    def _result_of(self, node: ast.Call, task: Task[..., Any]) -> Type:
        """Return the type of the task's result. For a polled task this excludes None, because the
        engine calls it again until it returns a value.
        """
        result = signature_of(task.function).result
        if task.name in ("random.choice", "random.sample") and node.args:
            items = self.expressions.lower(node.args[0]).type
            return (element_of(items) or UNKNOWN) if task.name == "random.choice" else items
        if task.polling is None:
            return result
        if result == UNKNOWN:
            return result
        if not may_be_none(result):
            message = f"`{task.name}` never returns None, so there is no condition to wait for"
            help_ = f"{task.function.__name__}(…), or let it return None until there is a result"
            raise refuse(self.expressions, node, "HF371", message, help_)
        return without_none(result)

    def _require_callable(self, node: ast.Call, task: Task[..., Any] | Workflow[..., Any]) -> None:
        """Refuse a task or workflow that cannot be a step. The refusal points to this call."""
        for obstacle in obstacles_of(task):
            raise refuse(self.expressions, node, obstacle.code, obstacle.message, obstacle.help)
