"""Steps of a document that call a service: `"service": "aws.s3.put_object"` or `"http.post"`.

The fields of `arguments` are compared with botocore's model, as in a workflow's source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast import service_models
from holdfast.api.graph_model import FromInput, FromStep, GraphModel, Step, references_in
from holdfast.api.services import HTTP_FIELDS, AwsCall, HttpCall, ServiceCall, service_of
from holdfast.compiler.diagnostics import Diagnostic
from holdfast.compiler.graphs.inputs import inputs_of
from holdfast.compiler.graphs.places import DocumentPath, refuse
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.models import secret_in
from holdfast.compiler.types.types import UNKNOWN, Type
from holdfast.errors import nearest
from holdfast.service_models import Parameter, ParameterKind, UnknownName

_METHODS: Final = ("delete", "get", "head", "options", "patch", "post", "put")
_JSON_KINDS: Final[Mapping[ParameterKind, tuple[type, ...]]] = {
    "text": (str, dict, list),
    "bytes": (str, dict, list),
    "moment": (str, int, float),
    "whole": (int,),
    "number": (int, float),
    "truth": (bool,),
    "object": (dict,),
    "map": (dict,),
    "list": (list,),
}
_NAMES_SHOWN_MAX: Final = 8
#: The fields of an HTTP request, as a document names them.
_WRITTEN: Final = {field: name for name, field in HTTP_FIELDS.items()}


def service_named(name: str) -> ServiceCall | None:
    """Return the call of this name; None when the text does not name a call."""
    match name.split("."):
        case ["http", method] if method in _METHODS:
            return HttpCall(method.upper())
        case ["aws", service, action] if service and action and not action.startswith("_"):
            return service_of(service).__getattr__(action)
        case _:
            return None


def request_of(call: ServiceCall, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the arguments of the document to the arguments of the ASL state."""
    if not isinstance(call, HttpCall):
        return dict(arguments)
    known = {name: value for name, value in arguments.items() if name in HTTP_FIELDS}
    rest = {name: value for name, value in arguments.items() if name not in {*known, "connection"}}
    return {**call.request(known, arguments.get("connection")), **rest}


def service_problems(step: Step) -> Iterator[Diagnostic]:
    if isinstance(step.task, HttpCall):
        yield from _of_http(step)
        return
    assert isinstance(step.task, AwsCall)
    call = step.task
    try:
        action = service_models.action_of(call.service, call.action)
    except UnknownName as unknown:
        meant = unknown.meant or nearest(unknown.name, unknown.known) or unknown.known[0]
        is_service = unknown.what == "service"
        right = f"aws.{meant}.{call.action}" if is_service else f"aws.{call.service}.{meant}"
        message = f"{call.name} is no action of a service that this botocore knows"
        code = "HF180" if is_service else "HF181"
        yield refuse(step, ("service",), code, message, f'"service": "{right}"')
        return
    yield from _names(step, ("arguments",), f"{call.name}()", action.request, step.arguments)


def secret_problems(graph: GraphModel, step: Step) -> Iterator[Diagnostic]:
    """Refuse the results of steps and the fields of the input that are secrets, or contain one.
    The service would get the sealed value, which only a task can open.
    """
    for field, tree in step.arguments.items():
        name = _WRITTEN.get(field, field) if isinstance(step.task, HttpCall) else field
        for source in references_in(tree):
            if secret_in(_type_of(graph, source)):
                what = source.id if isinstance(source, FromStep) else source.field
                message = f"`{what}` in `{name}` of {step.task.name}() is a secret"
                yield refuse(step, ("arguments", name), "HF184", message, _help_for(step))


def _help_for(step: Step) -> str:
    if isinstance(step.task, HttpCall):
        return '"connection": "arn:…", an EventBridge connection, keeps the secret'
    return "call the service in a task, which gets the secret opened"


def _type_of(graph: GraphModel, source: FromStep | FromInput) -> Type:
    match source:
        case FromStep(id_) if id_ in graph.ids:
            return signature_of(graph.steps[graph.ids[id_]].task.function).result
        case FromInput(field) if field in (inputs := inputs_of(graph)):
            return from_annotation(inputs[field].annotation)
        case _:
            return UNKNOWN


def _names(
    step: Step,
    path: DocumentPath,
    where: str,
    wanted: Parameter | None,
    given: Mapping[str, Any],
) -> Iterator[Diagnostic]:
    known: Mapping[str, Parameter] = {} if wanted is None else wanted.fields
    for name in (one for one in given if one not in known):
        shown = ", ".join(sorted(known)[:_NAMES_SHOWN_MAX]) or "none"
        meant = nearest(name, known)
        help_ = f'"{meant}"' if meant else f"its parameters are: {shown}"
        message = f"{where} has no parameter `{name}`"
        yield refuse(step, (*path, name), "HF182", message, help_)
    missing = [name for name in (() if wanted is None else wanted.required) if name not in given]
    if missing:
        message = f"{where} needs {', '.join(missing)}"
        help_ = ", ".join(f'"{name}": …' for name in missing)
        yield refuse(step, path, "HF183", message, help_)
    for name, value in given.items():
        if name in known:
            yield from _value(step, (*path, name), f"`{name}` of {where}", known[name], value)


def _value(
    step: Step, path: DocumentPath, where: str, wanted: Parameter, value: Any
) -> Iterator[Diagnostic]:
    kinds = _JSON_KINDS.get(wanted.kind)
    if kinds is None or value is None or isinstance(value, FromStep | FromInput):
        return
    is_truth = isinstance(value, bool)
    if not isinstance(value, kinds) or is_truth != (wanted.kind == "truth"):
        message = f"{where} is {wanted.kind}, and this is {type(value).__name__}"
        yield refuse(step, path, "HF184", message, "a value of that kind")
    elif wanted.kind == "object" and isinstance(value, dict):
        yield from _names(step, path, where, wanted, value)


def _of_http(step: Step) -> Iterator[Diagnostic]:
    call, fields = step.task.name, ("url", "json", "query", "headers", "connection")
    known = {*HTTP_FIELDS.values(), "Method", "Authentication"}
    for name in (one for one in step.arguments if one not in known):
        message = f"{call}() has no parameter `{name}`"
        help_ = f"its parameters are: {', '.join(fields)}"
        yield refuse(step, ("arguments", name), "HF182", message, help_)
    url = step.arguments.get("ApiEndpoint")
    if url is None:
        yield refuse(step, ("arguments",), "HF183", f"{call}() needs url", '"url": "https://…"')
    elif isinstance(url, str) and not url.startswith("https://"):
        message = f"`url` of {call}() is {url!r:.90}, which is not https"
        yield refuse(step, ("arguments", "url"), "HF185", message, '"url": "https://…"')
