"""The secrets in a workflow's types, and refusals of places in which a secret would not stay
secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from holdfast.api.payloads import display, reference_of
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.compiler.ir import (
    Action,
    Ask,
    RegisterUndo,
    RunWorkflow,
    SendRequest,
    SourcePlace,
    StartWorkflow,
    Statement,
    StepStatement,
    TaskAction,
    WaitForEvent,
)
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.models import fields_of, secret_in
from holdfast.compiler.types.types import (
    NONE,
    SECRET,
    DictOf,
    ListOf,
    ModelOf,
    Opaque,
    SetOf,
    TupleOf,
    Type,
    TypedDictOf,
    Union,
    describe,
)

ReportSecret = Callable[[SourcePlace, str, str, str], None]

_CODE: Final = "HF066"
_MAYBE: Final = "token: SecretStr | None"
_FIELD: Final = "token: SecretStr"


def crossing(statements: Iterable[Statement]) -> Iterator[tuple[SourcePlace, str, Type]]:
    """Yield each value that a step passes or receives: its place, its name, its type."""
    for origin, action in _actions(statements):
        match action:
            case TaskAction(task):
                yield from crossing_of(origin, task)
            case RunWorkflow(workflow) | StartWorkflow(workflow):
                yield from crossing_of(origin, workflow)
            case WaitForEvent(event, payload):
                yield origin, f"event {event}", from_annotation(payload)
            case Ask(answer) | SendRequest(reply=answer):
                yield origin, f"answer {display(reference_of(answer))}", from_annotation(answer)
            case _:
                pass


def _actions(statements: Iterable[Statement]) -> Iterator[tuple[SourcePlace, Action]]:
    """Yield each step, and each undo step, which passes its arguments as any other step."""
    for statement in statements:
        match statement:
            case StepStatement(origin, action) | RegisterUndo(origin=origin, action=action):
                yield origin, action
            case _:
                pass


def crossing_of(
    origin: SourcePlace, called: Task[..., Any] | Workflow[..., Any]
) -> Iterator[tuple[SourcePlace, str, Type]]:
    signature = signature_of(called.function)
    for parameter, type_ in signature.parameters.items():
        yield origin, f"{called.name}.{parameter}", type_
    yield origin, f"{called.name}.result", signature.result


def check_cached(tasks: Iterable[tuple[SourcePlace, Task[..., Any]]], report: ReportSecret) -> None:
    """Refuse a cache for a task that gets a secret or returns one: its result would be stored for
    other executions, and the same secret is encrypted in another way each time.
    """
    for origin, task in tasks:
        types = (type_ for _, _, type_ in crossing_of(origin, task))
        if task.cache is not None and any(map(secret_in, types)):
            message = f"`{task.name}` has a cache, and a secret in its arguments or its result"
            report(origin, _CODE, message, f"{task.name} without cache=")


def calls_of(
    statements: Iterable[Statement],
) -> Iterator[tuple[SourcePlace, Task[..., Any]]]:
    """Yield each call of a task."""
    for origin, action in _actions(statements):
        if isinstance(action, TaskAction):
            yield origin, action.task


def check_secrets(
    values: Iterable[tuple[SourcePlace, str, Type]], report: ReportSecret
) -> tuple[str, ...]:
    """Return the values that are secrets or contain one. Refuse secrets in places in which they
    would not stay secret.
    """
    found: dict[str, None] = {}
    for origin, name, type_ in values:
        trouble = _trouble(type_, frozenset())
        if trouble is not None and name not in found:
            report(origin, _CODE, f"`{name}`: {trouble[0]}", trouble[1])
        if trouble is not None or secret_in(type_):
            found[name] = None
    return tuple(sorted(found))


@lru_cache(maxsize=1024)
def _trouble(type_: Type, around: frozenset[Any]) -> tuple[str, str] | None:
    """Return the problem and the help; None without a problem. `around` are the models that contain
    this type.
    """
    match type_:
        case SetOf() | TypedDictOf() if secret_in(type_):
            return f"{describe(type_)} has no sealed form", _FIELD
        case ListOf(inner) | SetOf(inner) | DictOf(inner):
            return _trouble(inner, around)
        case Union(members) if SECRET in members and {*members} - {SECRET, NONE}:
            return f"{describe(type_)} may be taken for a text that is no secret", _MAYBE
        case TupleOf(parts) | Union(parts):
            return next(filter(None, (_trouble(part, around) for part in parts)), None)
        case Opaque(name) if "Secret" in name:
            return f"{name.replace('pydantic.types.', '')} has no sealed form", _FIELD
        case ModelOf(model) if model not in around:
            return _trouble_in(model, around | {model})
        case _:
            return None


def _trouble_in(model: Any, around: frozenset[Any]) -> tuple[str, str] | None:
    for name, field in fields_of(model).items():
        if field.type == Opaque("serialised"):
            if secret_in(from_annotation(model.model_fields[name].annotation)):
                return f"{model.__name__}.{name} has a serializer, which could tell it", _FIELD
        elif (found := _trouble(field.type, around)) is not None:
            return found
    return None
