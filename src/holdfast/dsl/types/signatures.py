"""Parameters and results of the author's functions, and calls matched against them."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from holdfast.dsl.context import Unit
from holdfast.dsl.types.annotations import from_annotation
from holdfast.dsl.types.types import UNKNOWN, Type

_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why annotations cannot be read: "an annotation <message>", and what to type."""

    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The types are unknown where `fault` says why."""

    parameters: Mapping[str, Type]
    result: Type
    has_plain_parameters: bool
    fault: Fault | None


_python_signature: Final = lru_cache(maxsize=1024)(inspect.signature)


@lru_cache(maxsize=1024)
def signature_of(function: Callable[..., Any]) -> Signature:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        fault = None
    except Exception as error:  # noqa: BLE001 - an annotation is any expression of the author's
        hints, fault = {}, _fault(error)
    parameters = _python_signature(function).parameters
    types = {name: from_annotation(hints.get(name, Any)) for name in parameters}
    result = from_annotation(hints["return"]) if "return" in hints else UNKNOWN
    is_plain = all(parameter.kind in _KINDS for parameter in parameters.values())
    return Signature(types, result, is_plain, fault)


def _fault(error: Exception) -> Fault:
    if isinstance(error, NameError):
        message = f"names `{error.name}`, which does not exist at run time"
        return Fault(
            message, f"import `{error.name}` where it is seen at run time, not under TYPE_CHECKING"
        )
    return Fault(f"is no type: {error}", "order: Order, names: list[str], coupon: str | None")


def match_call(
    unit: Unit, node: ast.Call, function: Callable[..., Any], *, skip: int = 0
) -> dict[str, Any] | None:
    """The argument nodes by parameter name, those left out missing; None when refused.

    `skip` leading arguments of the call belong to somebody else. Parameters that take any number
    of arguments hold a tuple of nodes.
    """
    words = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in words or any(isinstance(argument, ast.Starred) for argument in node.args):
        unit.refuse(
            node,
            "HF008",
            "a call in a workflow names its arguments one by one",
            f"{_name_of(function)}{_parameters(function)}",
        )
        return None
    named = {str(name): value for name, value in words.items()}
    found = _matched(_parameters_of(function), node.args[skip:], named)
    if found is not None:
        return found
    try:
        bound = _python_signature(function).bind(*node.args[skip:], **named)
    except TypeError as error:
        name = _name_of(function)
        message = f"this call does not fit `{name}`: {error}"
        unit.refuse(node, "HF008", message, f"{name}{_parameters(function)}")
        return None
    return dict(bound.arguments)


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Of a function that takes all of them by name: in their order, and which it needs.

    The first `places_count` may be given by place.
    """

    names: tuple[str, ...]
    required: frozenset[str]
    places_count: int


@lru_cache(maxsize=1024)
def _parameters_of(function: Callable[..., Any]) -> _Parameters | None:
    parameters = _python_signature(function).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    if any(kind not in _KINDS for kind in kinds):
        return None
    required = frozenset(
        name
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty
    )
    places_count = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return _Parameters(tuple(parameters), required, places_count)


def _matched(
    parameters: _Parameters | None, given: Sequence[ast.expr], named: Mapping[str, ast.expr]
) -> dict[str, Any] | None:
    """The arguments by parameter; None where only Python says what is wrong, or what is meant."""
    if parameters is None or len(given) > parameters.places_count:
        return None
    names = parameters.names
    found = {**dict(zip(names, given, strict=False)), **named}
    is_whole = len(found) == len(given) + len(named) and parameters.required <= found.keys()
    ordered = {name: found[name] for name in names if name in found}
    return ordered if is_whole and len(ordered) == len(found) else None


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "f"))


def _parameters(function: Callable[..., Any]) -> str:
    parameters = _python_signature(function).parameters.values()
    return f"({', '.join(map(_written, parameters))})"


def _written(parameter: inspect.Parameter) -> str:
    """As a call may have it."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return "…"
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return f"{parameter.name}=…" if is_named else parameter.name
