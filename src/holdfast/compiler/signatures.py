"""Parameters and results of the author's functions, and the arguments of calls matched to them."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from holdfast.api.boundary import NO_RESULT
from holdfast.compiler.context import Unit
from holdfast.compiler.types.annotations import from_annotation, unreadable_part
from holdfast.compiler.types.types import NEVER, UNKNOWN, Type

_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class AnnotationFault:
    """An annotation that cannot be read: the message "an annotation <message>", and code to write
    instead.
    """

    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function's parameters and result. They are unknown when `fault` is set."""

    parameters: Mapping[str, Type]
    result: Type
    has_plain_parameters: bool
    fault: AnnotationFault | None


_python_signature: Final = lru_cache(maxsize=1024)(inspect.signature)


@lru_cache(maxsize=1024)
def signature_of(function: Callable[..., Any]) -> Signature:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        fault = next(filter(None, map(annotation_fault, hints.values())), None)
    except Exception as error:  # noqa: BLE001 - an annotation is any expression of the author's
        hints, fault = {}, _fault(error)
    parameters = _python_signature(function).parameters
    types = {name: from_annotation(hints.get(name, Any)) for name in parameters}
    if hints.get("return") in NO_RESULT:
        result: Type = NEVER
    else:
        result = from_annotation(hints["return"]) if "return" in hints else UNKNOWN
    is_plain = all(parameter.kind in _KINDS for parameter in parameters.values())
    return Signature(types, result, is_plain, fault)


def annotation_fault(annotation: Any) -> AnnotationFault | None:
    """Return why a value cannot have this annotation at run time; None when it can."""
    part = unreadable_part(annotation)
    if part is None:
        return None
    return AnnotationFault(
        f"names {part.__name__}, a `typing.TypedDict`, which pydantic reads from Python 3.12 on",
        f"from typing_extensions import TypedDict; class {part.__name__}(TypedDict): …",
    )


def _fault(error: Exception) -> AnnotationFault:
    if isinstance(error, NameError):
        message = f"names `{error.name}`, which does not exist at run time"
        return AnnotationFault(
            message, f"import `{error.name}` where it is seen at run time, not under TYPE_CHECKING"
        )
    return AnnotationFault(
        f"is no type: {error}", "order: Order, names: list[str], coupon: str | None"
    )


def required_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the parameters without a default."""
    parameters = _python_signature(function).parameters.values()
    return [one.name for one in parameters if one.default is inspect.Parameter.empty]


def match_call(
    unit: Unit,
    node: ast.Call,
    function: Callable[..., Any],
    *,
    skip: int = 0,
    is_partial: bool = False,
) -> dict[str, Any] | None:
    """Return the argument nodes by parameter name, without parameters that the call leaves out;
    None when refused. `is_partial`: the call may lack required arguments.

    The first `skip` arguments of the call are not for the function. Parameters that take any number
    of arguments get a tuple of nodes.
    """
    words = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in words or any(isinstance(argument, ast.Starred) for argument in node.args):
        unit.refuse(
            node,
            "HF008",
            "a call in a workflow names its arguments one by one",
            _for_each(unit, node) or f"{_name_of(function)}{_parameters(function)}",
        )
        return None
    named = {str(name): value for name, value in words.items()}
    found = _matched(_parameters_of(function), node.args[skip:], named)
    if found is not None:
        return found
    signature = _python_signature(function)
    try:
        bind = signature.bind_partial if is_partial else signature.bind
        bound = bind(*node.args[skip:], **named)
    except TypeError as error:
        name = _name_of(function)
        message = f"this call does not fit `{name}`: {error}"
        unit.refuse(node, "HF008", message, f"{name}{_parameters(function)}")
        return None
    return dict(bound.arguments)


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a signature in order. The first `places_count` may be positional;
    `nameless` ones must be.

    `rest` takes any number of further arguments.
    """

    names: tuple[str, ...]
    required: frozenset[str]
    places_count: int
    nameless: frozenset[str]
    rest: str | None


@lru_cache(maxsize=1024)
def _parameters_of(function: Callable[..., Any]) -> _Parameters | None:
    kinds: dict[Any, list[str]] = {}
    required = set[str]()
    for name, parameter in _python_signature(function).parameters.items():
        kinds.setdefault(parameter.kind, []).append(name)
        if parameter.default is inspect.Parameter.empty:
            required.add(name)
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    nameless = kinds.get(inspect.Parameter.POSITIONAL_ONLY, [])
    places = [*nameless, *kinds.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])]
    rest = kinds.get(inspect.Parameter.VAR_POSITIONAL, [])
    return _Parameters(
        names=(*places, *kinds.get(inspect.Parameter.KEYWORD_ONLY, [])),
        required=frozenset(required.difference(rest)),
        places_count=len(places),
        nameless=frozenset(nameless),
        rest=rest[0] if rest else None,
    )


def _matched(
    parameters: _Parameters | None, given: Sequence[ast.expr], named: Mapping[str, ast.expr]
) -> dict[str, Any] | None:
    """Return the arguments by parameter; None when the call does not fit, or when only Python can
    decide that.
    """
    if parameters is None or not parameters.nameless.isdisjoint(named):
        return None
    places, more = given[: parameters.places_count], given[parameters.places_count :]
    found = {**dict(zip(parameters.names, places, strict=False)), **named}
    is_whole = len(found) == len(places) + len(named) and parameters.required <= found.keys()
    ordered: dict[str, Any] = {name: found[name] for name in parameters.names if name in found}
    if not is_whole or len(ordered) < len(found) or (more and parameters.rest is None):
        return None
    if parameters.rest is not None and more:
        ordered[parameters.rest] = tuple(more)
    return ordered


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "f"))


def _parameters(function: Callable[..., Any]) -> str:
    parameters = _python_signature(function).parameters.values()
    return f"({', '.join(map(_written, parameters))})"


def _written(parameter: inspect.Parameter) -> str:
    """Return the parameter as a call may write it."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return "…"
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return f"{parameter.name}=…" if is_named else parameter.name


def _for_each(unit: Unit, node: ast.Call) -> str | None:
    """Return the call of `each` that `parallel(*[lambda: fetch(url) for url in urls])` means."""
    match node.args:
        case [ast.Starred(value=ast.ListComp(elt=element, generators=[part]))] if not part.ifs:
            body = element.body if isinstance(element, ast.Lambda) else element
            target, items = unit.text(part.target), unit.text(part.iter)
            return f"each({items}, lambda {target}: {unit.text(body)})"
        case _:
            return None
