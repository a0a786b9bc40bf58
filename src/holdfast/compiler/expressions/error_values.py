"""Errors as values next to other values: `pay(order)`'s result, or the error that it raised.

At run time a caught error is the object `{"Error": …, "Cause": …}`. A dict of the author may have
the same fields. So an error that a function returns, or that `return_exceptions=True` gives, also
has the field `MARK`, which no value of the author has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.asl import error_names
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    TRUE,
    ArrayOf,
    Binary,
    FieldOf,
    ObjectOf,
    QueryTree,
    invoke,
    is_kind,
)
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    REFUSED,
    UNKNOWN,
    DictOf,
    EnumOf,
    ErrorOf,
    ModelOf,
    Opaque,
    Type,
    members_of,
)

MARK: Final = error_names.RETURNED_MARK
#: The field of an error that a branch has raised and that its call raises later.
RAISED: Final = "Holdfast.Raised"


def marked(value: TypedQuery) -> TypedQuery:
    """Return the value with the mark if it is an error; any other value as it is."""
    if not isinstance(value.type, ErrorOf) or value.type.is_marked:
        return value
    return TypedQuery(
        with_mark(value.query, MARK), replace(value.type, is_marked=True), value.fails
    )


def with_mark(error: QueryTree, mark: str) -> QueryTree:
    return invoke("merge", ArrayOf((error, ObjectOf(((mark, TRUE),)))))


def error_in(type_: Type) -> ErrorOf | None:
    """Return the member of the type that is an error; a type has at most one."""
    return next((one for one in members_of(type_) if isinstance(one, ErrorOf)), None)


def is_error(value: QueryTree, type_: Type) -> QueryTree | None:
    """Return the test whether a value of this type is an error; None when JSON does not show it."""
    error = error_in(type_)
    others = [member for member in members_of(type_) if member is not error]
    if error is None:
        return None
    if not others:
        return TRUE
    is_object = _is_object(value)
    objects = [member for member in others if _may_be_object(member)]
    if not objects:
        return is_object
    if error.is_marked:
        return _with_field(is_object, value, MARK)
    if all(map(_has_no_error_field, objects)):
        return _with_field(is_object, value, "Error")
    return None


def is_object_with(value: QueryTree, name: str) -> QueryTree:
    return _with_field(_is_object(value), value, name)


def _is_object(value: QueryTree) -> QueryTree:
    return is_kind(value, "object")


def _with_field(is_object: QueryTree, value: QueryTree, name: str) -> QueryTree:
    # The test of the kind comes first, because `list.field` reads the field of each item.
    return Binary("and", is_object, invoke("exists", FieldOf(value, name)))


def _may_be_object(member: Type) -> bool:
    return isinstance(member, ModelOf | DictOf | EnumOf | Opaque) or member in (UNKNOWN, REFUSED)


def _has_no_error_field(member: Type) -> bool:
    if not isinstance(member, ModelOf) or "Error" in fields_of(member.model):
        return False
    return dict(getattr(member.model, "model_config", {})).get("extra") != "allow"
