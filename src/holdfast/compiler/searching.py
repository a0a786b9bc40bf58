"""Search attributes: from their declaration and from `note(…)` to typed queries.

    @workflow(search={"customer": "order.customer_id", "stage": str})

`customer` is read from the input when an execution begins. `stage` has no value until a `note`
gives it one. A name has one type in its workflow. A search compares the whole text of a `str`
attribute, so only types whose JSON is the text that people would type can be searched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from holdfast.api.workflows import SearchAttributes
from holdfast.asl.program import AttributeKind
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.fields import known_fields, member_of
from holdfast.compiler.expressions.query import Variable
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    INT,
    STR,
    UUID,
    EnumOf,
    ModelOf,
    TextOf,
    Type,
    describe,
    may_be_none,
    members_of,
    without_none,
)

#: A function that reports a refusal. Its arguments are the code, the message and the help.
Refuse: TypeAlias = Callable[[str, str, str], None]
#: The name, the type and the value of each attribute that an execution has from its beginning.
Noted: TypeAlias = tuple[tuple[str, AttributeKind, TypedQuery], ...]


def kind_of(type_: Type) -> AttributeKind | None:
    """Return the type of an attribute for values of this type, which may also be None. Return None
    when such values cannot be searched.
    """
    kinds = {_kind_of_one(member) for member in members_of(without_none(type_))}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_one(type_: Type) -> AttributeKind | None:
    match type_:
        case TextOf():
            return "str"
        case EnumOf(cls) if _has_texts(cls):
            return "str"
        case _ if type_ in (STR, UUID, DATE):
            return "str"
        case _ if type_ == INT:
            return "int"
        case _ if type_ == BOOL:
            return "bool"
        case _ if type_ == DATETIME:
            return "datetime"
        case _:
            return None


def _has_texts(cls: type[Enum]) -> bool:
    return all(isinstance(member.value, str) for member in cls)


def declared_kinds(
    search: SearchAttributes, parameters: Mapping[str, Type]
) -> dict[str, AttributeKind]:
    """Return the type of each declared attribute, except for those that are refused."""
    kinds: dict[str, AttributeKind] = {}
    for name, source in search.items():
        if isinstance(source, str):
            found = _field(source, _queries(parameters), lambda *_: None)
            kind = None if found is None else kind_of(found.type)
        else:
            kind = kind_of(from_annotation(source))
        if kind is not None:
            kinds[name] = kind
    return kinds


def _queries(parameters: Mapping[str, Type]) -> dict[str, TypedQuery]:
    return {name: TypedQuery(Variable(name), type_) for name, type_ in parameters.items()}


def noted_at_start(
    search: SearchAttributes, inputs: Mapping[str, TypedQuery], refuse: Refuse
) -> Noted:
    """Return the attributes that are read from the input. `inputs` has the input's fields by
    name.
    """
    noted = []
    for name, source in search.items():
        if not isinstance(source, str):
            if kind_of(from_annotation(source)) is None:
                _refuse_type(name, from_annotation(source), refuse)
            continue
        value = _field(source, inputs, refuse)
        if value is None:
            continue
        kind = kind_of(value.type)
        if kind is None:
            _refuse_type(name, value.type, refuse)
        else:
            noted.append((name, kind, value))
    return tuple(noted)


def _refuse_type(name: str, type_: Type, refuse: Refuse) -> None:
    message = f"the search attribute `{name}` is {describe(type_)}"
    refuse("HF151", message, "str, int, bool, datetime, date, UUID or an enum of texts")


def _field(path: str, inputs: Mapping[str, TypedQuery], refuse: Refuse) -> TypedQuery | None:
    first, *names = path.split(".")
    value = inputs.get(first)
    if value is None:
        known = ", ".join(inputs) or "none"
        refuse("HF150", f'"{path}": the input has no `{first}`', f"the input has: {known}")
        return None
    reached = first
    for name in names:
        if may_be_none(value.type):
            message = f'"{path}": `{reached}` may be None'
            refuse("HF150", message, f"note(…) after a test of `{reached}`")
            return None
        found = member_of(value, name)
        if found is None:
            help_ = _known(value.type, name, reached)
            refuse("HF150", f'"{path}": `{reached}` has no field `{name}`', help_)
            return None
        value, reached = found, f"{reached}.{name}"
    return value


def _known(type_: Type, name: str, reached: str) -> str:
    if isinstance(type_, ModelOf):
        return known_fields(type_.model, name, f"{reached}.")
    return f"`{reached}` is {describe(type_)}, which has no fields"
