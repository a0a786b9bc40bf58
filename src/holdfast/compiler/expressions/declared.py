"""Types that the author declares: of names, and of parameters and results of local functions."""

from __future__ import annotations

import ast
import types
import typing
from dataclasses import replace
from typing import Any

import typing_extensions

from holdfast.compiler.context import NOTHING, REFUSED_EXPRESSION, TypedQuery, Unit
from holdfast.compiler.expressions.assumed import checked, is_assumed, made, unreadable
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.models import fits, is_bool_for_number
from holdfast.compiler.types.types import (
    BOOL,
    DURATION,
    ELAPSED,
    FLOAT,
    INT,
    NEVER,
    REFUSED,
    STR,
    UNKNOWN,
    WRITTEN_DURATION,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    SetOf,
    TupleOf,
    Type,
    Union,
    as_text,
    describe,
    is_json,
    is_refused,
    join,
    join_all,
    join_keys,
    members_of,
    parts_of,
)


def annotated_type(unit: Unit, node: ast.expr) -> Type:
    """Return the type of an annotation inside a workflow; UNKNOWN when it names no type."""
    found = named_type(unit, node)
    if found is NOTHING or found in (typing.Self, typing_extensions.Self):
        return UNKNOWN
    return from_annotation(found)


def named_type(unit: Unit, node: ast.expr) -> Any:
    """Return the Python type that an annotation names; NOTHING when it names none."""
    try:
        return _annotation(unit, node)
    except (SyntaxError, TypeError, ValueError):
        # The annotation is a text that is not a valid expression.
        return NOTHING


def returned_type(unit: Unit, function: ast.FunctionDef) -> Type | None:
    """Return the declared type of the result of a function inside a workflow."""
    return None if function.returns is None else annotated_type(unit, function.returns)


def _annotation(unit: Unit, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=(None | types.EllipsisType()) as constant):
            # This is the `...` in `tuple[int, ...]`.
            return constant
        case ast.Constant(value=str(text)):
            return _annotation(unit, ast.parse(text, mode="eval").body)
        case ast.Name() | ast.Attribute():
            found = unit.outside(node)
            # `Exception` says less of a caught error than its `except` does.
            is_error = isinstance(found, type) and issubclass(found, BaseException)
            return NOTHING if is_error else found
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = _annotation(unit, left), _annotation(unit, right)
            return NOTHING if NOTHING in sides else typing.Union[sides]  # noqa: UP007
        case ast.Subscript(value=base, slice=part) if unit.outside(base) is typing.Literal:
            return _literal(part)
        case ast.Subscript(value=base, slice=ast.Tuple(elts=[first, *_])) if (
            unit.outside(base) is typing.Annotated
        ):
            return _annotation(unit, first)
        case ast.Subscript(value=base, slice=ast.Tuple(elts=parts)):
            arguments = tuple(_annotation(unit, part) for part in parts)
        case ast.Subscript(value=base, slice=part):
            arguments = (_annotation(unit, part),)
        case _:
            return NOTHING
    generic = unit.outside(base)
    if NOTHING in (generic, *arguments):
        return NOTHING
    if generic is typing.Optional or generic is typing.Union:
        # `Optional[int]` is `Union[int, None]`.
        members = (*arguments, None) if generic is typing.Optional else arguments
        return typing.Union[members]  # noqa: UP007
    return types.GenericAlias(generic, arguments) if isinstance(generic, type) else NOTHING


def _literal(node: ast.expr) -> Any:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    values = tuple(part.value for part in parts if isinstance(part, ast.Constant))
    return typing.Literal[values] if len(values) == len(parts) else NOTHING


def as_declared(
    unit: Unit, node: ast.expr, value: TypedQuery, declared: Type | None, name: str
) -> TypedQuery:
    """Return the value of `node` for a name that is annotated with `declared`. The run checks what
    is unknown of its type.
    """
    type_ = _declared_type(unit, node, value.type, declared)
    if is_refused(type_):
        return REFUSED_EXPRESSION
    if declared is not None and is_assumed(value.type, declared):
        value = checked(value, declared, name)
    return value._replace(type=type_)


def _declared_type(unit: Unit, value: ast.expr, found: Type, declared: Type | None) -> Type:
    if declared is None or is_refused(found):
        return found
    if declared == UNKNOWN:
        # Keep the known type. An annotation with `Any` must not hide it. Only a dict or a list of
        # values of several types is read more easily as an `Any`.
        return UNKNOWN if _is_mixed(found) else found
    if found == ELAPSED and declared == WRITTEN_DURATION:
        return found
    if DURATION in members_of(found):
        # A workflow computes a duration as a number of seconds. So the annotation `timedelta` means
        # such a number here, and not the text of a duration.
        declared = join_all(
            DURATION if member == WRITTEN_DURATION else member for member in members_of(declared)
        )
    if unreadable(found, declared):
        message = f"Python makes no {describe(declared)} of a value of unknown type: it stays JSON"
        text = made(unit.text(value), found, declared)
        help_ = text or f"return {describe(declared)} from a @pure function, or from the task"
        unit.refuse(value, "HF040", message, help_)
        return REFUSED
    if _may_fit(found, declared):
        if (_has_any(declared) and not is_json(found)) or _has_member_as_text(found, declared):
            return found
        return _with_ints(declared) if _may_hold_int(found) else declared
    if (
        isinstance(found, ModelOf)
        and isinstance(declared, ModelOf)
        and issubclass(found.model, declared.model)
    ):
        return found
    message = f"this is {describe(found)}, and the annotation says {describe(declared)}"
    help_ = f"annotate it as {describe(found)}"
    if is_bool_for_number(found, declared):
        help_ = "make it an int where it is put in: `int(flag)`"
        help_ = f"int({unit.text(value)})" if found == BOOL else help_
    unit.refuse(value, "HF040", message, help_)
    return REFUSED


def _may_fit(found: Type, declared: Type) -> bool:
    """Return True when the value fits, or may fit because a part of its type is unknown."""
    match (found, declared):
        case (ListOf(some, is_tuple), ListOf(element, also)) if is_tuple == also:
            return _may_fit(some, element)
        case (DictOf(some, key=own), DictOf(value, key=key)) if (
            type(found) is type(declared) is DictOf
        ):
            return join_keys(own, key) == key and _may_fit(some, value)
        case _:
            # A member of a `StrEnum` is a text.
            is_text = declared == STR and as_text(found) == STR
            return is_text or UNKNOWN in (found, declared) or fits(found, declared)


def _has_member_as_text(found: Type, declared: Type) -> bool:
    """Return True when a member of a `StrEnum` is declared as a text. It keeps its own `repr`."""
    match (found, declared):
        case (ListOf(some), ListOf(inner)):
            return _has_member_as_text(some, inner)
        case (DictOf(some, key=own), DictOf(inner, key=key)):
            has_other_keys = NEVER not in (own, key) and own != key
            return has_other_keys or _has_member_as_text(some, inner)
        case _:
            return declared == STR and isinstance(found, EnumOf)


def _has_any(type_: Type) -> bool:
    match type_:
        case ListOf(inner) | DictOf(inner):
            return _has_any(inner)
        case _:
            return type_ == UNKNOWN


def _is_mixed(type_: Type) -> bool:
    """Return True for a dict or list of JSON that has values of several types."""
    match type_:
        case ListOf(inner) | DictOf(inner):
            return is_json(type_) and (isinstance(inner, Union) or _is_mixed(inner))
        case _:
            return False


def _may_hold_int(type_: Type) -> bool:
    return any(one in (INT, UNKNOWN) for one in parts_of(type_))


def _with_ints(declared: Type) -> Type:
    """Return the declared type with `int | float` in place of `float`.

    Python does not convert the value of an annotated name. After `total: float = 0` the text of
    `total` is `0`.
    """
    match declared:
        case ListOf(inner) | SetOf(inner):
            return replace(declared, element=_with_ints(inner))
        case TupleOf(parts):
            return replace(declared, elements=tuple(map(_with_ints, parts)))
        case Union(members):
            return join_all(map(_with_ints, members))
        case DictOf(inner) if type(declared) is DictOf:
            return replace(declared, value=_with_ints(inner))
        case _:
            return join(INT, FLOAT) if declared == FLOAT else declared


def as_parameter(
    own: Unit, caller: Unit, parameter: ast.arg, node: ast.expr, value: TypedQuery
) -> TypedQuery:
    """Return the value of a parameter in a call. `own` is the unit of the function."""
    note = parameter.annotation
    declared = None if note is None else annotated_type(own, note)
    return as_declared(caller, node, value, declared, parameter.arg)
