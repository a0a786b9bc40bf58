"""Lists, tuples and dicts that are written out: `[a, b]`, `(a, b)` and `{"key": value}`."""

from __future__ import annotations

import ast

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.query import (
    ArrayOf,
    ComputedEntry,
    Constant,
    FunctionCall,
    ObjectOf,
    QueryTree,
    item_of,
)
from holdfast.compiler.types.types import (
    DictOf,
    ListOf,
    TupleOf,
    Type,
    describe,
    is_key,
    is_list,
    is_refused,
    join_all,
    may_be_list,
)


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
        query = FunctionCall("append", (query, part.query))
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
    types: list[Type] = []
    for key, key_node, value in zip(keys, node.keys, values, strict=True):
        if key is None and isinstance(value.type, DictOf):
            types.append(value.type.value)
        elif key is None or not is_key(key.type):
            where = node if key_node is None else key_node
            message = "a dict of a workflow has text keys"
            return lowering.unit.refused(where, "HF040", message, 'use text: {"1": …}')
        else:
            types.append(value.type)
    return TypedQuery(_merged(keys, values), DictOf(join_all(types)), fails_of(*parts))


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
        value.query if key is None else ComputedEntry(key.query, value.query)
        for key, value in pairs
    )
    return FunctionCall("merge", (ArrayOf(tuple(parts)),))
