"""Compiles values of a `TypedDict`: `Item(sku="a")`, a dict display with that annotation, and reads
of its keys.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.query import ObjectOf
from holdfast.compiler.types.models import conversion, fits
from holdfast.compiler.types.types import (
    REFUSED,
    Type,
    TypedDictOf,
    describe,
    describe_exactly,
    is_refused,
)
from holdfast.errors import nearest


def construct_typed_dict(lowering: Lowering, node: ast.Call, type_: TypedDictOf) -> TypedQuery:
    """Lower `Item(sku="a", qty=1)`. The compiler checks the types, because Python does not: a wrong
    value would fail at a later step.
    """
    rows = [(str(word.arg), word.value) for word in node.keywords if word.arg is not None]
    if node.args or len(rows) < len(node.keywords):
        name = describe(type_)
        message = f"`{name}(…)` takes its keys by name in a workflow"
        return lowering.unit.refused(node, "HF008", message, _shown(type_))
    if not _are_fields(lowering, node, type_, rows):
        return REFUSED_EXPRESSION
    values = [lowering.lower(value) for _, value in rows]
    pairs = ((name, value.query) for (name, _), value in zip(rows, values, strict=True))
    return TypedQuery(ObjectOf(tuple(pairs)), type_, fails_of(*values))


def displayed(lowering: Lowering, node: ast.Dict, type_: TypedDictOf) -> Type:
    """Return the type of `{"sku": "a", "qty": 1}` that is assigned to a name with a `TypedDict` as
    its annotation.
    """
    rows = []
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            message = f"the keys of {describe(type_)} are written out in a workflow"
            lowering.unit.refuse(node, "HF040", message, _shown(type_))
            return REFUSED
        rows.append((key.value, value))
    return type_ if _are_fields(lowering, node, type_, rows) else REFUSED


def _are_fields(
    lowering: Lowering,
    node: ast.expr,
    type_: TypedDictOf,
    rows: Iterable[tuple[str, ast.expr]],
) -> bool:
    given, name = dict(rows), describe(type_)
    missing = [field for field in type_.required if field not in given]
    if missing:
        message = f"{name} needs `{missing[0]}`"
        lowering.unit.refuse(node, "HF008", message, _shown(type_))
        return False
    return all(
        is_value_for(lowering, value, type_, key, lowering.lower(value).type)
        for key, value in given.items()
    )


def is_value_for(
    lowering: Lowering, node: ast.expr, type_: TypedDictOf, key: str, found: Type
) -> bool:
    """Return True when a value of type `found` may be stored at the key. Refuse the value
    otherwise.
    """
    wanted = type_.fields().get(key)
    if wanted is None:
        _refuse_field(lowering, node, type_, key, found)
        return False
    if is_refused(found) or fits(found, wanted):
        return not is_refused(found)
    message = f"`{key}` of {describe(type_)} is {describe_exactly(wanted)} and this is "
    help_ = conversion(lowering.unit.text(node), found, wanted)
    help_ = help_ or "give it a value of that type; annotate the type where it is unknown"
    lowering.unit.refuse(node, "HF040", message + describe_exactly(found), help_)
    return False


def _refuse_field(
    lowering: Lowering, node: ast.expr, type_: TypedDictOf, key: str, found: Type
) -> None:
    meant, name = nearest(key, type_.fields()), describe(type_)
    help_ = f"`{key}: {describe(found)}`, in the class {name}" if meant is None else f'"{meant}"'
    lowering.unit.refuse(node, "HF044", f"{name} has no field `{key}`", help_)


def _shown(type_: TypedDictOf) -> str:
    keys = ", ".join(f"{name}=…" for name in type_.fields())
    return f"{describe(type_)}({keys})"
