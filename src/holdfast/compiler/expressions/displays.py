"""Lists, tuples and dicts that are written out: `[a, b]`, `(a, b)` and `{"key": value}`."""

from __future__ import annotations

import ast
from typing import Final

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.dict_keys import KEYS, key_help, with_key, written
from holdfast.compiler.expressions.query import (
    ArrayOf,
    ComputedEntry,
    Constant,
    ObjectOf,
    QueryTree,
    invoke,
    item_of,
)
from holdfast.compiler.types.types import (
    NEVER,
    DictOf,
    ListOf,
    TupleOf,
    describe,
    is_list,
    is_refused,
    join,
    join_all,
    join_keys,
    key_type,
    may_be_list,
)

#: The type of `{}`.
NO_ENTRIES: Final = DictOf(NEVER, key=NEVER)


def lower_list(lowering: Lowering, nodes: list[ast.expr]) -> TypedQuery:
    if any(isinstance(node, ast.Starred) for node in nodes):
        return _spread(lowering, nodes)
    items = [_item(lowering, node) for node in nodes]
    if any(is_refused(item.type) for item in items):
        return REFUSED_EXPRESSION
    type_ = ListOf(join_all(item.type for item in items))
    return TypedQuery(ArrayOf(tuple(item.query for item in items)), type_, fails_of(*items))


def lower_tuple(lowering: Lowering, nodes: list[ast.expr]) -> TypedQuery:
    items = [_item(lowering, node) for node in nodes]
    type_ = TupleOf(tuple(item.type for item in items))
    return TypedQuery(ArrayOf(tuple(item.query for item in items)), type_, fails_of(*items))


def _spread(lowering: Lowering, nodes: list[ast.expr]) -> TypedQuery:
    """Lower `[first, *others]`: the lists one after the other."""
    parts = [
        lowering.iterable(node.value)
        if isinstance(node, ast.Starred)
        else lower_list(lowering, [node])
        for node in nodes
    ]
    if any(is_refused(part.type) for part in parts):
        return REFUSED_EXPRESSION
    query = parts[0].query
    for part in parts[1:]:
        query = invoke("append", query, part.query)
    type_ = join_all(part.type for part in parts)
    return TypedQuery(query, type_, fails_of(*parts))


def _item(lowering: Lowering, node: ast.expr) -> TypedQuery:
    value = lowering.lower(node)
    if is_list(value.type):
        return TypedQuery(item_of(value.query), value.type, value.fails)
    if may_be_list(value.type) and not is_refused(value.type):
        return lowering.unit.refused(
            node,
            "HF046",
            f"a value of type {describe(value.type)} in a list: is it a list itself?",
            "annotate the type of the value",
        )
    return value


def lower_dict(lowering: Lowering, node: ast.Dict) -> TypedQuery:
    keys = [None if key is None else lowering.lower(key) for key in node.keys]
    values = [lowering.lower(value) for value in node.values]
    parts = [*(key for key in keys if key is not None), *values]
    if any(is_refused(part.type) for part in parts):
        return REFUSED_EXPRESSION
    type_ = NO_ENTRIES
    for key, key_node, value in zip(keys, node.keys, values, strict=True):
        more = _with_entry(type_, key, value)
        if more is None:
            return refuse_key(lowering, node if key_node is None else key_node, type_, key)
        type_ = more
    return TypedQuery(_merged(keys, values), type_, fails_of(*parts))


def _with_entry(type_: DictOf, key: TypedQuery | None, value: TypedQuery) -> DictOf | None:
    """Return the type of a dict with one more entry, or with those of another dict."""
    if key is not None:
        return with_key(type_, key, join(type_.value, value.type))
    if not isinstance(value.type, DictOf):
        return None
    joined = join_keys(type_.key, value.type.key)
    return None if joined is None else DictOf(join(type_.value, value.type.value), key=joined)


def refuse_key(
    lowering: Lowering, node: ast.expr, type_: DictOf, key: TypedQuery | None
) -> TypedQuery:
    """Refuse a key that no dict of a workflow has, or that one with other keys does not have."""
    text = lowering.unit.text(node)
    if key is None:
        message, help_ = "`**` takes a dict with keys of the same type", "{**some, **other}"
    elif key_type(key.type) is None:
        message = f"keys of a dict are {KEYS} here, and this is {describe(key.type)}"
        help_ = key_help(type_, key.type, text)
    else:
        message = (
            f"the keys of this dict are {describe(type_.key)}, and this is {describe(key.type)}"
        )
        help_ = key_help(type_, key.type, text)
    return lowering.unit.refused(node, "HF040", message, help_)


def _merged(keys: list[TypedQuery | None], values: list[TypedQuery]) -> QueryTree:
    """Return one object. Keys that are computed or come from `**other` may repeat; the last one
    counts.
    """
    pairs = list(zip(keys, values, strict=True))
    if all(key is not None and isinstance(key.query, Constant) for key, _ in pairs):
        rows = {
            str(key.query.value): value.query
            for key, value in pairs
            if key is not None and isinstance(key.query, Constant)
        }
        return ObjectOf(tuple(rows.items()))
    parts = (
        value.query if key is None else ComputedEntry(written(key), value.query)
        for key, value in pairs
    )
    return invoke("merge", ArrayOf(tuple(parts)))
