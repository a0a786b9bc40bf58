"""Constructors of NamedTuples, such as `Point(1, y=2)`."""

from __future__ import annotations

import ast
from typing import Any

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.declared import as_declared
from holdfast.compiler.expressions.outside import from_outside
from holdfast.compiler.expressions.query import ArrayOf, Constant, ItemOf, item_of
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.types import TupleOf, is_refused, may_be_list


def construct_named_tuple(lowering: Lowering, node: ast.Call, cls: Any) -> TypedQuery:
    """Lower `Point(1, y=2)` to an array. Defaults of the class complete it."""
    type_ = from_annotation(cls)
    given: dict[str, ast.expr] = dict(zip(cls._fields, node.args, strict=False))
    given.update({str(word.arg): word.value for word in node.keywords})
    unknown = given.keys() - set(cls._fields)
    missing = [name for name in cls._fields if name not in {**given, **cls._field_defaults}]
    is_starred = any(isinstance(part, ast.Starred) for part in node.args)
    is_whole = len(given) == len(node.args) + len(node.keywords) and not unknown and not missing
    if not isinstance(type_, TupleOf) or is_starred or not is_whole:
        message = f"this call does not fit the fields of {cls.__name__}"
        help_ = f"{cls.__name__}({', '.join(f'{name}=…' for name in cls._fields)})"
        return lowering.unit.refused(node, "HF008", message, help_)
    values: list[TypedQuery] = []
    for name, wanted in zip(cls._fields, type_.elements, strict=True):
        if name in given:
            value = lowering.lower(given[name])
            value = as_declared(lowering.unit, given[name], value, wanted, name)
        else:
            value = from_outside(lowering.unit, node, cls._field_defaults[name])
        values.append(value)
    if any(is_refused(value.type) for value in values):
        return REFUSED_EXPRESSION
    items = tuple(
        item_of(value.query) if may_be_list(value.type) else value.query for value in values
    )
    return TypedQuery(ArrayOf(items), type_, fails_of(*values))


def replace_parts(lowering: Lowering, node: ast.Call, value: TypedQuery) -> TypedQuery:
    """Lower `point._replace(x=3)`."""
    assert isinstance(value.type, TupleOf)
    names = value.type.names
    given = {str(word.arg): word.value for word in node.keywords}
    if node.args or not given.keys() <= set(names):
        text = lowering.unit.text(node.func)
        message = "a NamedTuple is copied with new values for some of its fields"
        help_ = f"{text}({', '.join(f'{name}=…' for name in names)})"
        return lowering.unit.refused(node, "HF008", message, help_)
    parts: list[TypedQuery] = []
    for place, (name, wanted) in enumerate(zip(names, value.type.elements, strict=True)):
        part = TypedQuery(ItemOf(value.query, Constant(place)), wanted, value.fails)
        if name in given:
            part = lowering.lower(given[name])
            part = as_declared(lowering.unit, given[name], part, wanted, name)
            if is_refused(part.type):
                return REFUSED_EXPRESSION
        parts.append(part)
    items = (item_of(one.query) if may_be_list(one.type) else one.query for one in parts)
    return TypedQuery(ArrayOf(tuple(items)), value.type, fails_of(*parts))
