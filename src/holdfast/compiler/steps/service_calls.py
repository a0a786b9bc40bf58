"""Calls of AWS's services and of HTTP endpoints: their arguments, checked against the services'
models.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from holdfast import service_models
from holdfast.api.services import AwsCall, HttpCall, ServiceCall
from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.expressions.durations import at_border
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import Constant, ObjectOf, QueryTree
from holdfast.compiler.signatures import match_call
from holdfast.compiler.steps.step_arguments import (
    StepRefused,
    refuse,
    refuse_none,
    require_text,
    require_value,
)
from holdfast.compiler.types.models import secret_in
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    REFUSED,
    STR,
    UNKNOWN,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    Opaque,
    ResultOf,
    TextForm,
    TupleOf,
    Type,
    describe,
    is_text,
    may_be_none,
    members_of,
)
from holdfast.errors import nearest
from holdfast.service_models import Action, Parameter, ParameterKind, UnknownName

_HTTP_FIELDS: Final[Mapping[str, Type]] = {
    "StatusCode": INT,
    "StatusText": STR,
    "Headers": DictOf(ListOf(STR)),
    "ResponseBody": UNKNOWN,
}
#: The parameters whose text is a document. If the author gives an object for such a parameter, it
#: is sent as JSON text.
_DOCUMENTS: Final = frozenset({"Body", "Detail", "Input", "Message", "MessageBody", "Payload"})
_SHOWN: Final[Mapping[ParameterKind, str]] = {
    "text": "a text",
    "bytes": "a text, or an object that is sent as JSON",
    "whole": "a whole number",
    "number": "a number",
    "truth": "a bool",
    "moment": "a datetime",
    "object": "an object",
    "map": "an object",
    "list": "a list",
    "any": "any JSON",
}
_NAMES_SHOWN_MAX: Final = 8


def lower_service_arguments(
    expressions: Expressions, node: ast.Call, call: ServiceCall, skip: int
) -> TypedQuery:
    """Lower the arguments of a call. Its first `skip` arguments are not for the service."""
    if isinstance(call, HttpCall):
        return _http_arguments(expressions, node, call, skip)
    assert isinstance(call, AwsCall)
    action = _action(expressions, node, call)
    given = _named(expressions, node, call, node.args[skip:])
    _require_names(expressions, node, f"{call.name}()", action.request, given)
    lowered = {
        name: _argument(expressions, value, call, name, _field(action, name))
        for name, value in given.items()
    }
    items = tuple((name, value.query) for name, value in lowered.items())
    return TypedQuery(ObjectOf(items), NONE, fails_of(*lowered.values()))


def result_type(call: ServiceCall) -> Type:
    """Return the type of the result of a call whose arguments were lowered."""
    if not isinstance(call, AwsCall):
        return ResultOf(f"{call.name}()", lambda: _HTTP_FIELDS)
    response = service_models.action_of(call.service, call.action).response
    if response is None:
        return ResultOf(f"{call.name}()", dict)
    return _type_of(response, f"{call.name}()")


def _type_of(found: Parameter, name: str) -> Type:
    match found.kind:
        case "text" | "bytes" | "moment":
            return STR
        case "whole":
            return INT
        case "number":
            return FLOAT
        case "truth":
            return BOOL
        case "list":
            return ListOf(_type_of(found.element, f"{name}[…]"))
        case "map":
            return DictOf(_type_of(found.element, f"{name}[…]"))
        case "object":

            def fields() -> Mapping[str, Type]:
                parts = found.fields.items()
                return {field: _type_of(part, f"{name}.{field}") for field, part in parts}

            return ResultOf(name, fields)
        case "any":
            return UNKNOWN


# -- AWS -------------------------------------------------------------------------------------------


def _action(expressions: Expressions, node: ast.Call, call: AwsCall) -> Action:
    try:
        return service_models.action_of(call.service, call.action)
    except UnknownName as unknown:
        meant = unknown.meant or nearest(unknown.name, unknown.known)
        if unknown.what == "service":
            message = f"AWS has no service `{call.service}` that this botocore knows"
            code, written = "HF180", f"aws.{meant or 's3'}.{call.action}(…)"
        else:
            message = f"the service `aws.{call.service}` has no action `{call.action}`"
            code, written = "HF181", f"aws.{call.service}.{meant or unknown.known[0]}(…)"
        help_ = f"{written}: names are those of boto3's clients and methods"
        raise refuse(expressions, node, code, message, help_) from None


def _named(
    expressions: Expressions, node: ast.Call, call: AwsCall, places: Sequence[ast.expr]
) -> dict[str, ast.expr]:
    if places or any(word.arg is None for word in node.keywords):
        message = f"{call.name}() takes its parameters by name, one by one"
        help_ = f"{call.name}(…): each parameter as Name=…"
        raise refuse(expressions, node, "HF008", message, help_)
    return {str(word.arg): word.value for word in node.keywords}


def _field(action: Action, name: str) -> Parameter:
    assert action.request is not None
    return action.request.fields[name]


def _require_names(
    expressions: Expressions,
    node: ast.expr,
    where: str,
    wanted: Parameter | None,
    given: Mapping[str, ast.expr],
) -> None:
    """Refuse unknown and missing fields, also in objects that are written out in the call."""
    known: Mapping[str, Parameter] = {} if wanted is None else wanted.fields
    for name, value in given.items():
        if name not in known:
            meant = _meant(name, known)
            shown = ", ".join(sorted(known)[:_NAMES_SHOWN_MAX]) or "none"
            help_ = f"{meant}=…" if meant else f"its parameters are: {shown}"
            message = f"{where} has no parameter `{name}`"
            raise refuse(expressions, value, "HF182", message, help_)
    required = () if wanted is None else wanted.required
    missing = [name for name in required if name not in given]
    if missing:
        message = f"{where} needs {', '.join(missing)}"
        help_ = ", ".join(f"{name}=…" for name in missing)
        raise refuse(expressions, node, "HF183", message, help_)
    for name, value in given.items():
        _require_inner(expressions, value, f"`{name}` of {where}", known[name])


def _require_inner(expressions: Expressions, node: ast.expr, where: str, wanted: Parameter) -> None:
    match wanted.kind, node:
        case "object", ast.Dict(keys=keys, values=values) if all(map(_is_text, keys)):
            names = [key.value for key in keys if isinstance(key, ast.Constant)]
            given = {str(name): value for name, value in zip(names, values, strict=True)}
            _require_names(expressions, node, where, wanted, given)
        case "map", ast.Dict(values=values):
            for value in values:
                _require_inner(expressions, value, where, wanted.element)
        case "list", ast.List(elts=values):
            for value in values:
                _require_inner(expressions, value, where, wanted.element)
        case _:
            pass


def _is_text(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _meant(name: str, known: Mapping[str, Parameter]) -> str | None:
    """Return the parameter that the author probably meant. Step Functions writes `DbName` where
    boto3 writes `DBName`.
    """
    same = [other for other in known if other.lower() == name.lower()]
    return same[0] if same else nearest(name, known)


def _argument(
    expressions: Expressions, node: ast.expr, call: AwsCall, name: str, wanted: Parameter
) -> TypedQuery:
    value = at_border(expressions.unit, node, require_value(expressions, node))
    if value.type == REFUSED:
        raise StepRefused
    if not secret_in(value.type) and any(
        _fits(found, wanted.kind, name) for found in members_of(value.type)
    ):
        return value
    what = "text or JSON" if name in _DOCUMENTS else _SHOWN[wanted.kind]
    message = f"`{name}` of {call.name}() is {what} and this is {describe(value.type)}"
    help_ = f"{name}=str({expressions.unit.text(node)})"
    if secret_in(value.type):
        help_ = "call the service in a @task, which gets the secret opened"
    elif wanted.kind not in ("text", "bytes"):
        help_ = f"{name}=…: {_SHOWN[wanted.kind]}"
    raise refuse(expressions, node, "HF184", message, help_)


def _fits(found: Type, kind: ParameterKind, name: str) -> bool:
    """Return True when a value of the type may be valid for the parameter."""
    if found in (UNKNOWN, NONE, NEVER) or isinstance(found, Opaque | EnumOf):
        return True
    is_object = isinstance(found, ModelOf | DictOf)
    is_list = isinstance(found, ListOf | TupleOf)
    has_text = is_text(found) or isinstance(found, TextForm)
    match kind:
        case "text":
            return has_text or (name in _DOCUMENTS and (is_object or is_list))
        case "bytes":
            return has_text or is_object or is_list
        case "whole":
            return found == INT
        case "number":
            return found in (INT, FLOAT)
        case "truth":
            return found == BOOL
        case "moment":
            return has_text or found in (INT, FLOAT)
        case "object" | "map":
            return is_object
        case "list":
            return is_list
        case "any":
            return True


# -- HTTP ------------------------------------------------------------------------------------------


@cache
def _request(name: str) -> Callable[..., None]:
    """Return a function with the parameters of `http.post`, under the name that refusals show."""

    def request(
        url: str,
        *,
        json: object = None,
        query: object = None,
        headers: object = None,
        connection: str | None = None,
    ) -> None: ...

    request.__name__ = name
    return request


def _http_arguments(
    expressions: Expressions, node: ast.Call, call: HttpCall, skip: int
) -> TypedQuery:
    found = match_call(expressions.unit, node, _request(call.name), skip=skip)
    if found is None:
        raise StepRefused
    lowered = {
        name: _http_argument(expressions, value, name)
        for name, value in found.items()
        if not (isinstance(value, ast.Constant) and value.value is None)
    }
    _require_https(expressions, found["url"], lowered["url"])
    queries: dict[str, QueryTree] = {name: value.query for name, value in lowered.items()}
    connection = queries.pop("connection", None)
    items = call.request(queries, connection)
    items["Method"] = Constant(call.method)
    if connection is not None:
        items["Authentication"] = ObjectOf((("ConnectionArn", connection),))
    return TypedQuery(ObjectOf(tuple(items.items())), NONE, fails_of(*lowered.values()))


def _http_argument(expressions: Expressions, node: ast.expr, name: str) -> TypedQuery:
    if name in ("url", "connection"):
        return require_text(expressions, node)
    value = at_border(expressions.unit, node, require_value(expressions, node))
    if may_be_none(value.type):
        raise refuse_none(expressions, node)
    if secret_in(value.type):
        message = f"`{name}` holds a secret, which the history would show"
        help_ = "connection=…: an EventBridge connection keeps the secret"
        raise refuse(expressions, node, "HF184", message, help_)
    if name != "json" and not isinstance(value.type, DictOf | ModelOf) and value.type != UNKNOWN:
        message = f"`{name}` is an object and this is {describe(value.type)}"
        raise refuse(expressions, node, "HF184", message, f'{name}={{"name": "value"}}')
    return value


def _require_https(expressions: Expressions, node: ast.expr, url: TypedQuery) -> None:
    match url.query:
        case Constant(str(text)) if not text.startswith("https://"):
            message = f"the engine calls https endpoints, and this is {text[:60]!r}"
            raise refuse(expressions, node, "HF185", message, 'http.post("https://…")')
        case _:
            pass
