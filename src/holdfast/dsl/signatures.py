"""Parameters and results of the author's functions, and calls matched against them."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from holdfast.dsl.annotations import from_annotation
from holdfast.dsl.context import Unit
from holdfast.dsl.types import UNKNOWN, Type

_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Signature:
    """`unknown_name` is a name in an annotation that does not exist at run time."""

    parameters: Mapping[str, Type]
    result: Type
    has_plain_parameters: bool
    unknown_name: str | None


_python_signature: Final = lru_cache(maxsize=1024)(inspect.signature)


@lru_cache(maxsize=1024)
def signature_of(function: Callable[..., Any]) -> Signature:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        unknown_name = None
    except NameError as error:
        hints, unknown_name = {}, error.name
    parameters = _python_signature(function).parameters
    types = {name: from_annotation(hints.get(name, Any)) for name in parameters}
    result = from_annotation(hints["return"]) if "return" in hints else UNKNOWN
    is_plain = all(parameter.kind in _KINDS for parameter in parameters.values())
    return Signature(types, result, is_plain, unknown_name)


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
            node, "HF008", "a call in a workflow names its arguments one by one", "f(a, b, name=c)"
        )
        return None
    try:
        bound = _python_signature(function).bind(
            *node.args[skip:], **{str(name): value for name, value in words.items()}
        )
    except TypeError as error:
        name = getattr(function, "__name__", "f")
        message = f"this call does not fit `{name}`: {error}"
        unit.refuse(node, "HF008", message, f"{name}{_parameters(function)}")
        return None
    return dict(bound.arguments)


def _parameters(function: Callable[..., Any]) -> str:
    parameters = _python_signature(function).parameters.values()
    return f"({', '.join(map(_written, parameters))})"


def _written(parameter: inspect.Parameter) -> str:
    """As a call may have it."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return f"{parameter.name}=…" if is_named else parameter.name
