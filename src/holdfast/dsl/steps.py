"""Durable calls: `ast` -> the action of a `Step` and the type of its result."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from holdfast import limits
from holdfast.dsl import surface
from holdfast.dsl.context import Expression, LocalFunction, fails_of
from holdfast.dsl.expressions import Expressions
from holdfast.dsl.ir import (
    Action,
    Ask,
    Block,
    RunEach,
    RunParallel,
    RunTask,
    Sleep,
    WaitForEvent,
)
from holdfast.dsl.query import Constant, ObjectOf
from holdfast.dsl.signatures import match_call, signature_of
from holdfast.dsl.surface import Task, Workflow
from holdfast.dsl.types import (
    DURATION,
    NONE,
    REFUSED,
    ErrorOf,
    ListOf,
    TupleOf,
    Type,
    element_of,
    from_annotation,
    is_refused,
    is_text,
)

_SCALARS: Final = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Branch:
    """The body of a branch, the ASL variables of its parameters, and what it returns."""

    body: Block
    parameters: tuple[str, ...]
    result: Type


#: Lowers a `lambda` or a `def` whose parameters have these types.
BranchLowering = Callable[[Expressions, ast.Lambda | ast.FunctionDef, tuple[Type, ...]], Branch]


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """This call was refused, and the refusal is reported."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Lowers the durable calls of one point of the flow; what they hold is hoisted already."""

    expressions: Expressions
    lower_branch: BranchLowering

    def lower(self, node: ast.Call, function: Any) -> tuple[Action, Type] | None:
        """None when the call was refused."""
        try:
            return self._lower(node, function)
        except _Refused:
            return None

    def arguments(
        self, node: ast.Call, task: Task[..., Any], *, skip: int = 0
    ) -> Expression | None:
        """The JSON object of a task's arguments, by parameter name; None when refused."""
        try:
            return self._arguments(node, task, skip)
        except _Refused:
            return None

    def _lower(self, node: ast.Call, function: Any) -> tuple[Action, Type]:
        if isinstance(function, Task):
            action = RunTask(function, self._arguments(node, function, 0))
            return action, signature_of(function.function).result
        if isinstance(function, Workflow):
            raise self._refuse(
                node,
                "HF002",
                f"`{function.name}` is a workflow: a run inside a run is not supported",
                "start it from a @task, and wait_for_event(…) for its end",
            )
        found = match_call(self.expressions.unit, node, function)
        if found is None:
            raise _Refused
        if function is surface.parallel:
            return self._parallel(node, found.get("branches", ()))
        if function is surface.each:
            return self._each(found)
        if function is surface.sleep:
            return Sleep(self._duration(found["duration"])), NONE
        if function is surface.wait_for_event:
            return self._wait_for_event(node, found)
        return self._ask(found)

    def _refuse(self, node: ast.AST, code: str, message: str, help_: str) -> _Refused:
        self.expressions.unit.refuse(node, code, message, help_)
        return _Refused()

    def _value(self, node: ast.expr) -> Expression:
        value = self.expressions.lower(node)
        if is_refused(value.type):
            raise _Refused
        return value

    # Tasks.

    def _arguments(self, node: ast.Call, task: Task[..., Any], skip: int) -> Expression:
        self._require_callable(node, task)
        found = match_call(self.expressions.unit, node, task.function, skip=skip)
        if found is None:
            raise _Refused
        names = {id(value): name for name, value in found.items()}
        given = (*node.args[skip:], *(keyword.value for keyword in node.keywords))
        lowered = {names[id(value)]: self.expressions.lower(value) for value in given}
        for value in given:
            if isinstance(lowered[names[id(value)]].type, ErrorOf):
                text = self.expressions.unit.text(value)
                raise self._refuse(value, "HF040", "an exception is no JSON value", f"str({text})")
        if any(is_refused(value.type) for value in lowered.values()):
            raise _Refused
        items = tuple((name, lowered[name].query) for name in found)
        return Expression(ObjectOf(items), NONE, fails_of(*lowered.values()))

    def _require_callable(self, node: ast.Call, task: Task[..., Any]) -> None:
        """Refuses a task that cannot be a step: here, for here is a line to point at."""
        signature = signature_of(task.function)
        if signature.unknown_name is not None:
            message = f"an annotation of `{task.name}` names `{signature.unknown_name}`"
            help_ = "import it outside `if TYPE_CHECKING:`; the arguments are checked against it"
            raise self._refuse(node, "HF004", message, help_)
        if not signature.has_plain_parameters:
            message = f"`{task.name}` takes arguments without names, which JSON cannot carry"
            help_ = f"def {task.function.__name__}(first: str, second: int)"
            raise self._refuse(node, "HF008", message, help_)
        if not _is_whole(task.timeout) or not _is_whole(task.heartbeat):
            message = f"the timeout and heartbeat of `{task.name}` must be whole seconds"
            raise self._refuse(node, "HF052", message, "@task(timeout=seconds(90))")
        if task.timeout is not None and task.timeout.total_seconds() > _INLINE_SECONDS_MAX:
            message = (
                f"`{task.name}` has a timeout of {task.timeout}; a task that runs inside the "
                f"engine's function has at most {_INLINE_SECONDS_MAX // 60} minutes"
            )
            help_ = "start the work in a short @task, then wait_for_event(…) for its end"
            raise self._refuse(node, "HF060", message, help_)

    # Waits.

    def _duration(self, node: ast.expr) -> Expression:
        value = self._value(node)
        is_positive = not isinstance(value.query, Constant) or (
            isinstance(value.query.value, int) and value.query.value > 0
        )
        if value.type != DURATION or not is_positive:
            message = "this must be a duration above zero"
            raise self._refuse(node, "HF052", message, "minutes(5), days(3)")
        return value

    def _wait_for_event(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        payload = self._payload(found["payload"])
        if "key" not in found:
            help_ = f"{self.expressions.unit.text(node)[:-1]}, key=order.id)"
            raise self._refuse(node, "HF053", "an event is addressed by a business key", help_)
        match self._value(found["name"]).query:
            case Constant(str(event)) if event:
                pass
            case _:
                message = "the name of an event must be a constant text"
                help_ = '"bank.confirmed", with what varies in key='
                raise self._refuse(found["name"], "HF053", message, help_)
        action = WaitForEvent(event, payload, self._text(found["key"]), self._timeout(found))
        return action, from_annotation(payload)

    def _ask(self, found: dict[str, Any]) -> tuple[Action, Type]:
        answer = self._payload(found["answer"])
        parts = {
            "title": self._text(found["title"]),
            "assignee": self._text(found["assignee"]),
        }
        if "details" in found:
            parts["details"] = self._value(found["details"])
        items = tuple((name, part.query) for name, part in parts.items())
        arguments = Expression(ObjectOf(items), NONE, fails_of(*parts.values()))
        return Ask(answer, arguments, self._timeout(found)), from_annotation(answer)

    def _timeout(self, found: dict[str, Any]) -> Expression | None:
        match found.get("timeout"):
            case None | ast.Constant(value=None):
                return None
            case node:
                return self._duration(node)

    def _text(self, node: ast.expr) -> Expression:
        value = self._value(node)
        if not is_text(value.type):
            help_ = f"str({self.expressions.unit.text(node)})"
            raise self._refuse(node, "HF040", "this must be a text", help_)
        return value

    def _payload(self, node: ast.expr) -> Any:
        """A class that the engine can find again by its name."""
        found = self.expressions.unit.outside(node)
        if found in _SCALARS or _is_module_level(found):
            return found
        raise self._refuse(
            node,
            "HF053",
            "what is waited for must be a module-level class, or str, int, float or bool",
            "class BankConfirmation(BaseModel): … at the top of the module",
        )

    # Branches.

    def _parallel(self, node: ast.Call, nodes: tuple[ast.expr, ...]) -> tuple[Action, Type]:
        if not nodes:
            help_ = "parallel(lambda: a(), lambda: b())"
            raise self._refuse(node, "HF008", "parallel() needs branches", help_)
        functions = [self._branch_function(branch, 0) for branch in nodes]
        branches = [self.lower_branch(self.expressions, function, ()) for function in functions]
        bodies = tuple(branch.body for branch in branches)
        return RunParallel(bodies), TupleOf(tuple(branch.result for branch in branches))

    def _each(self, found: dict[str, Any]) -> tuple[Action, Type]:
        items = self.expressions.iterable(found["items"])
        function = self._branch_function(found["function"], 1)
        if is_refused(items.type):
            raise _Refused
        element = element_of(items.type) or REFUSED
        branch = self.lower_branch(self.expressions, function, (element,))
        concurrency = self._concurrency(found.get("concurrency"))
        action = RunEach(items, branch.parameters[0], branch.body, concurrency)
        return action, ListOf(branch.result)

    def _concurrency(self, node: ast.expr | None) -> int:
        if node is None:
            return 0
        match self._value(node).query:
            case Constant(int(most)) if most >= 0:
                return most
            case _:
                message = "concurrency must be a constant, 0 or more"
                raise self._refuse(node, "HF008", message, "concurrency=5")

    def _branch_function(self, node: ast.expr, parameters: int) -> ast.Lambda | ast.FunctionDef:
        """The function of a branch; a bare task stands for a lambda that calls it."""
        unit = self.expressions.unit
        found: ast.Lambda | ast.FunctionDef | None = None
        match node:
            case ast.Lambda():
                found = node
            case ast.Name(id=name) if self.expressions.scope.is_local(name):
                entry = self.expressions.environment.entries.get(name)
                found = entry.node if isinstance(entry, LocalFunction) else None
            case _ if isinstance(unit.outside(node), Task):
                # The same lambda whenever this is lowered again: scopes belong to nodes.
                found = unit.made.setdefault(node, _calling(node, parameters))
        if found is not None and _takes(found.args, parameters):
            return found
        raise self._refuse(
            node,
            "HF007",
            "a branch is a lambda, a local `def` or a task "
            f"with {'one parameter' if parameters else 'no parameters'}",
            "lambda item: pack(item)" if parameters else "lambda: charge(order.id)",
        )


_INLINE_SECONDS_MAX: Final = limits.INLINE_TIMEOUT_SECONDS_MAX


def _is_module_level(found: Any) -> bool:
    if not isinstance(found, type) or found.__module__ == builtins.__name__:
        return False
    return getattr(sys.modules.get(found.__module__), found.__qualname__, None) is found


def _is_whole(duration: timedelta | None) -> bool:
    return duration is None or (duration.microseconds == 0 and duration > timedelta())


def _takes(arguments: ast.arguments, parameters: int) -> bool:
    others = (
        *arguments.kwonlyargs,
        *arguments.defaults,
        *(extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None),
    )
    return not others and len(arguments.posonlyargs) + len(arguments.args) == parameters


def _calling(task: ast.expr, parameters: int) -> ast.Lambda:
    """`pack` -> `lambda item: pack(item)`, standing where `pack` stands."""
    names = ["item"] * parameters
    values = [ast.copy_location(ast.Name(name, ast.Load()), task) for name in names]
    arguments: list[ast.expr] = [*values]
    call = ast.copy_location(ast.Call(task, arguments, []), task)
    taken = [ast.copy_location(ast.arg(name), task) for name in names]
    signature = ast.arguments([], taken, None, [], [], None, [])
    return ast.copy_location(ast.Lambda(signature, call), task)
