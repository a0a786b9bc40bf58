"""The texts of values that only Python writes exactly: `f"{ratio}"`, `f"{names}"`, `f"{name!r}"`.

A step of Python's library writes them; see `library_calls`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.api.library import SHOWN
from holdfast.compiler.context import Lowering, TypedQuery
from holdfast.compiler.library_calls import as_library_step, constant
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    TIME,
    UNKNOWN,
    UUID,
    WRITTEN_DURATION,
    DictOf,
    ListOf,
    TupleOf,
    Type,
    Union,
    consists_of,
    is_text,
    members_of,
    widen,
    without_none,
)

#: The classes whose methods are steps; see `api/library_signatures.py`.
_CLASSES: Final[Mapping[Type, str]] = MappingProxyType(
    {
        INT: "int",
        FLOAT: "float",
        DATE: "datetime.date",
        DATETIME: "datetime.datetime",
        TIME: "datetime.time",
        DURATION: "datetime.timedelta",
        WRITTEN_DURATION: "datetime.timedelta",
        DECIMAL: "decimal.Decimal",
    }
)
_STR: Final = frozenset({FLOAT, DURATION, WRITTEN_DURATION})


def class_of(type_: Type) -> str | None:
    """Return the name of the class in Python, if steps of the library call its methods."""
    return "str" if is_text(type_) and type_ != NEVER else _CLASSES.get(type_)


def text_step(
    lowering: Lowering, node: ast.expr, value: ast.expr, found: TypedQuery
) -> TypedQuery | None:
    """Let the library compute `str(value)`; None where JSONata can."""
    if found.type in _STR:
        return as_library_step(lowering, node, f"{class_of(found.type)}.__str__", (value,))
    if found.type == TIME:
        return as_library_step(lowering, node, "datetime.time.isoformat", (value,))
    if _is_shown_as_json(found.type):
        return as_library_step(lowering, node, "builtins.str", (value,))
    return _of_containers(lowering, node, value, found.type)


def _of_containers(
    lowering: Lowering, node: ast.expr, value: ast.expr, type_: Type
) -> TypedQuery | None:
    """Let the library compute the text of a list, tuple or dict, which is its `repr`, too. The step
    gets the types of the members, which their JSON does not have.
    """
    kind = _annotation(type_)
    if kind is None or not isinstance(without_none(type_), ListOf | DictOf | TupleOf):
        return None
    return as_library_step(lowering, node, SHOWN, (value, constant(node, kind)))


#: The members whose JSON and whose type give the same value in Python again. A datetime is not one:
#: its text shows the class of its time zone.
_MEMBERS: Final[Mapping[Type, str]] = MappingProxyType(
    {
        INT: "int",
        FLOAT: "float",
        BOOL: "bool",
        STR: "str",
        NONE: "None",
        NEVER: "None",
        DATE: "date",
        DECIMAL: "Decimal",
        UUID: "UUID",
    }
)


def _annotation(type_: Type) -> str | None:
    """Return the type as an annotation that the step reads; None for a type that it does not."""
    match widen(type_):
        case ListOf(element, is_tuple):
            inner = _annotation(element)
            form = "tuple[{}, ...]" if is_tuple else "list[{}]"
            return None if inner is None else form.format(inner)
        case DictOf(value, key=key) as whole if type(whole) is DictOf:
            parts = _annotation(STR if key == NEVER else key), _annotation(value)
            return None if None in parts else f"dict[{parts[0]}, {parts[1]}]"
        case TupleOf(elements, names) if not names and elements:
            inner_ = [_annotation(one) for one in elements]
            return None if None in inner_ else f"tuple[{', '.join(map(str, inner_))}]"
        case Union(members) if len(members) == 2 and NONE in members:
            inner = _annotation(without_none(type_))
            return None if inner is None else f"{inner} | None"
        case other:
            return _MEMBERS.get(other)


def repr_step(
    lowering: Lowering, node: ast.expr, value: ast.expr, found: TypedQuery
) -> TypedQuery | None:
    """Let the library compute `repr(value)`."""
    if found.type == FLOAT:
        return text_step(lowering, node, value, found)
    if all(map(_is_same_in_json, members_of(found.type))):
        return as_library_step(lowering, node, "builtins.repr", (value,))
    return _of_containers(lowering, node, value, found.type)


def format_step(
    lowering: Lowering, node: ast.expr, found: TypedQuery, given: tuple[ast.expr, ast.expr]
) -> TypedQuery | None:
    """Let the library compute `format(value, spec)`. `given` are the two."""
    owner = class_of(found.type)
    if owner is not None:
        return as_library_step(lowering, node, f"{owner}.__format__", given)
    if found.type == UNKNOWN:
        return as_library_step(lowering, node, "builtins.format", given)
    return None


def _is_shown_as_json(type_: Type) -> bool:
    """Return True when JSONata cannot write the text, and the JSON has all that Python needs."""
    members = members_of(type_)
    is_simple = all(is_text(one) or one in (INT, BOOL, NONE) for one in members)
    return (not is_simple or len(members) > 1) and all(map(_is_same_in_json, members))


def _is_same_in_json(type_: Type) -> bool:
    """Return True when Python reads the same value from the JSON without knowing the type."""
    return consists_of(type_, (STR, INT, BOOL, NONE, NEVER, UNKNOWN))
