"""`colour.name` and `payment.kind`: attributes of enum members and of unions of models."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.python_values import has_attribute
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    FieldOf,
    QueryTree,
    hold,
)
from holdfast.compiler.types.annotations import of_constant
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    TextOf,
    Type,
    join_all,
    members_of,
)
from holdfast.errors import nearest

_SIZES: Final = ("size", "length")


def member_of(base: TypedQuery, name: str) -> TypedQuery | None:
    """Return the attribute of the value; None when a workflow cannot read such an attribute."""
    match base.type:
        case EnumOf(cls) if name == "value":
            members = list(cls) if not isinstance(base.query, Constant) else _only(cls, base.query)
            type_ = join_all(of_constant(member.value) for member in members)
            return TypedQuery(base.query, type_, base.fails)
        case EnumOf(cls) if name == "name" and list(cls):
            return _name(base, list(cls))
        case type_:
            return _shared_field(base, members_of(type_), name)


def _only(cls: type[Enum], value: Constant) -> list[Enum]:
    return [member for member in cls if member.value == value.value]


def _name(base: TypedQuery, members: list[Enum]) -> TypedQuery:
    type_ = TextOf(tuple(sorted(member.name for member in members)))
    if isinstance(base.query, Constant):
        (member,) = (one for one in members if one.value == base.query.value)
        return TypedQuery(Constant(member.name), TextOf((member.name,)))

    def chosen(held: QueryTree) -> QueryTree:
        *others, last = members
        found: QueryTree = Constant(last.name)
        for member in reversed(others):
            is_it = Binary("=", held, Constant(member.value))
            found = Conditional(is_it, Constant(member.name), found)
        return found

    return TypedQuery(hold(base.query, chosen, "_member"), type_, base.fails)


def _shared_field(base: TypedQuery, members: tuple[Type, ...], name: str) -> TypedQuery | None:
    """Return a field that every model of the union has; None when some model lacks it."""
    types: list[Type] = []
    for member in members:
        if not isinstance(member, ModelOf) or name not in fields_of(member.model):
            return None
        types.append(fields_of(member.model)[name].type)
    return TypedQuery(FieldOf(base.query, name), join_all(types), base.fails)


def known_fields(model: Any, name: str, before: str = "", after: str = "") -> str:
    """Return the text that lists the fields of a model for an author who used the unknown field
    `name`, the most similar field first.
    """
    fields = fields_of(model)
    near, listed = nearest(name, fields), f"fields: {', '.join(fields)}"
    return listed if near is None else f"`{before}{near}{after}`; {listed}"


def help_for_field(text: str, type_: Type, name: str) -> str:
    """Return the help for a field that only some models of a union have."""
    for member in members_of(type_):
        if isinstance(member, ModelOf) and name in fields_of(member.model):
            return f"if isinstance({text}, {member.model.__name__}): …"
    if isinstance(type_, ErrorOf):
        return f"declare it in the class of the error: `class Declined(TaskError): {name}: str`"
    if isinstance(type_, ListOf):
        return f"[one.{name} for one in {text}]"
    if not has_attribute(type_, name):
        return f"len({text})" if name in _SIZES else f"{text}, without `.{name}`"
    return "read it inside a @pure function"
