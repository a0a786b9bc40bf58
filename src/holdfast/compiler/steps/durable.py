"""The calls that are steps of the state machine, and the task that each of them runs."""

from __future__ import annotations

import ast
from datetime import timedelta
from typing import Any, Final

from holdfast.api import surface
from holdfast.api.library import task_of
from holdfast.api.polling import polled
from holdfast.api.runs_on import Worker, require_pools
from holdfast.api.surface import Retry, Task, Workflow
from holdfast.compiler.context import NOTHING, Unit
from holdfast.compiler.variable_names import VariableScopeNames
from holdfast.errors import WorkflowError

#: The functions of the language that are steps, by identity. A comparison with `==` would run code
#: of the author.
_STEPS: Final = frozenset(
    map(
        id,
        (
            surface.parallel,
            surface.first,
            surface.each,
            surface.sleep,
            surface.sleep_until,
            surface.wait_for_event,
            surface.receive,
            surface.ask,
            surface.publish,
            surface.note,
            surface.again,
            surface.send,
            surface.request,
            surface.start,
            surface.stop,
        ),
    )
)
#: The result for a step that was already refused. Callers add no second message for such a call.
REFUSED_STEP: Final = object()
_CONDITION: Final = "wait_for_condition(check, every=minutes(5), backoff=2.0, most=hours(6))(order)"
_DURATIONS: Final = (surface.seconds, surface.minutes, surface.hours, surface.days, timedelta)


def find_durable(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> Any:
    """Return the task, workflow or function of the language that `node` calls; None for any other
    node.

    `charge.options(timeout=…)(…)` gives the task with these options, and
    `wait_for_condition(check, …)(…)` the polled task. Wrong options are refused.
    """
    if not isinstance(node, ast.Call):
        return None
    match node.func:
        case ast.Call(func=ast.Attribute(attr="options")) as options:
            return _task_in(unit, scope, options)
        case ast.Call(func=maker) as wait if is_condition(unit, scope, maker):
            return _polled(unit, scope, wait)
        case function:
            found = find_outside(unit, scope, function)
    is_step = isinstance(found, Task | Workflow) or id(found) in _STEPS
    return found if is_step else _library_step(node, found)


def _library_step(node: ast.Call, found: Any) -> Any:
    task = task_of(found)
    if task is not None and task.name == "datetime.datetime.now" and (node.args or node.keywords):
        # The time zone has no JSON: `expressions/calls.py` lowers the call.
        return None
    return task


def find_outside(unit: Unit, scope: VariableScopeNames, node: ast.expr) -> Any:
    """Return the object that a name of the module refers to; NOTHING for a local name or another
    node.
    """
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and scope.is_local(root.id):
        return NOTHING
    return unit.outside(node)


def is_condition(unit: Unit, scope: VariableScopeNames, node: ast.expr) -> bool:
    return find_outside(unit, scope, node) is surface.wait_for_condition


def _polled(unit: Unit, scope: VariableScopeNames, node: ast.Call) -> Any:
    """Return the task of `wait_for_condition(check, every=…)`, or REFUSED_STEP."""
    settings = {str(word.arg): _setting(unit, scope, word.value) for word in node.keywords}
    named = node.args[0] if len(node.args) == 1 else None
    task: Any = None if named is None else _task_in(unit, scope, named)
    is_known = settings.keys() <= {"every", "backoff", "most"} and "every" in settings
    if not isinstance(task, Task) or not is_known or NOTHING in settings.values():
        message = "wait_for_condition() takes a task, and constants: every=, backoff=, most="
        unit.refuse(node, "HF370", message, _CONDITION)
        return REFUSED_STEP
    try:
        return polled(task, settings["every"], settings.get("backoff", 1.0), settings.get("most"))
    except WorkflowError as error:
        unit.refuse(node, error.code, error.message, error.help)
        return REFUSED_STEP


def _task_in(unit: Unit, scope: VariableScopeNames, node: ast.expr) -> Any:
    """Return the task or workflow that the expression names, with or without `.options(…)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="options")) as options:
            called = find_outside(unit, scope, base)
            is_step = isinstance(called, Task | Workflow)
            return _with_options(unit, scope, options, called) if is_step else None
        case _:
            return find_outside(unit, scope, node)


def _with_options(
    unit: Unit,
    scope: VariableScopeNames,
    node: ast.Call,
    called: Task[..., Any] | Workflow[..., Any],
) -> Task[..., Any] | Workflow[..., Any]:
    chosen = next((word for word in node.keywords if word.arg == "runs_on"), None)
    if chosen is not None and isinstance(called, Task):
        others = [word for word in node.keywords if word is not chosen]
        node = ast.copy_location(ast.Call(node.func, node.args, others), node)
        called = _in_pool(unit, scope, chosen.value, called)
    known: tuple[str, ...] = ("timeout", "retry", "label")
    if isinstance(called, Task):
        known = ("timeout", "heartbeat", "retry", "label")
    is_of_pool = isinstance(called, Task) and isinstance(called.runs_on, Worker)
    shown = (*known, "runs_on") if is_of_pool else known
    settings = {
        str(keyword.arg): _setting(unit, scope, keyword.value)
        for keyword in node.keywords
        if keyword.arg in known
    }
    odd = [name for name, value in settings.items() if not _is_setting(name, value)]
    if odd == ["label"]:
        message = "a label is a constant text: the definition names the step by it"
        unit.refuse(node, "HF008", message, f'{unit.text(node.func)}(label="first part")')
        return called
    if node.args or len(settings) < len(node.keywords) or odd:
        unit.refuse(
            node,
            "HF008",
            f"options() takes constants: {', '.join(f'{name}=' for name in shown)}",
            f"{unit.text(node.func)}(timeout=minutes(5), retry=Retry(max_attempts=3))",
        )
        return called
    return called.options(**settings)


def _in_pool(
    unit: Unit, scope: VariableScopeNames, place: ast.expr, task: Task[..., Any]
) -> Task[..., Any]:
    """Return the task in the pool that the call chooses. A pool that is computed at run time is not
    part of the task: `chosen_pool` finds its expression.
    """
    try:
        require_pools(task.name, task.runs_on)
        match place:
            case ast.Call(func=maker) if find_outside(unit, scope, maker) is Worker:
                name = _pool_argument(place)
                constant: Any = NOTHING if name is None else _setting(unit, scope, name)
                if name is not None and constant is NOTHING:
                    return task
                where = None if name is None else Worker(constant)
            case _:
                where = _setting(unit, scope, place)
        if isinstance(where, Worker):
            return task.options(runs_on=where)
    except WorkflowError as error:
        unit.refuse(place, error.code, error.message, error.help)
        return task
    message = "a call chooses its pool with Worker(…), whose name is a text"
    unit.refuse(place, "HF008", message, f"{task.name}.options(runs_on=Worker(host))(…)")
    return task


def _pool_argument(worker: ast.Call) -> ast.expr | None:
    match worker:
        case ast.Call(args=[name], keywords=[]):
            return name
        case ast.Call(args=[], keywords=[ast.keyword(arg="pool", value=name)]):
            return name
        case _:
            return None


def chosen_pool(unit: Unit, scope: VariableScopeNames, function: ast.expr) -> ast.expr | None:
    """Return the expression of the pool that `render.options(runs_on=Worker(host))` computes at run
    time; None for another function, and for a constant pool.
    """
    match function:
        case ast.Call(func=ast.Attribute(attr="options"), keywords=words):
            place = next((word.value for word in words if word.arg == "runs_on"), None)
        case _:
            return None
    if not isinstance(place, ast.Call) or find_outside(unit, scope, place.func) is not Worker:
        return None
    name = _pool_argument(place)
    return name if name is not None and _setting(unit, scope, name) is NOTHING else None


def _is_setting(name: str, value: Any) -> bool:
    match name:
        case "timeout" | "heartbeat":
            return value is None or isinstance(value, timedelta)
        case "retry":
            return value is None or isinstance(value, Retry)
        case _:
            return value is None or isinstance(value, str)


def _setting(unit: Unit, scope: VariableScopeNames, node: ast.expr) -> Any:
    """Return a constant, a duration or a Retry, evaluated at compile time; NOTHING for another
    expression.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute():
            return find_outside(unit, scope, node)
        case ast.Tuple(elts=parts):
            items = tuple(_setting(unit, scope, part) for part in parts)
            return NOTHING if NOTHING in items else items
        case ast.Call(func=function, args=args, keywords=keywords):
            make = find_outside(unit, scope, function)
            if not (make is Retry or any(make is duration for duration in _DURATIONS)):
                return NOTHING
            values = [_setting(unit, scope, arg) for arg in args]
            named = {str(word.arg): _setting(unit, scope, word.value) for word in keywords}
            if NOTHING in (*values, *named.values()):
                return NOTHING
            return _made(unit, node, make, values, named)
        case _:
            return NOTHING


def _made(unit: Unit, node: ast.expr, make: Any, values: list[Any], named: dict[str, Any]) -> Any:
    try:
        return make(*values, **named)
    except WorkflowError as error:
        unit.refuse(node, error.code, error.message, error.help)
    except TypeError:
        return NOTHING
    return None
