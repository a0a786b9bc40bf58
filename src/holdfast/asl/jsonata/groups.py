"""Closures of objects and groups: `{"id": $id}`, `$lines{sku: $sum(qty)}`.

A group is the items that gave the same key; its value is evaluated once, with one item or an array
of several as its context. An object whose context is an array is made of groups of its items.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from holdfast.asl.jsonata import costs
from holdfast.asl.jsonata.paths import joined
from holdfast.asl.jsonata.runtime import (
    CompiledNode,
    Declined,
    EvaluationRun,
    VariableScope,
    items_of,
)
from holdfast.asl.jsonata.values import UNDEFINED

#: The pairs of an object: one key and one value for each colon.
Pairs: TypeAlias = tuple[tuple[CompiledNode, CompiledNode], ...]


def grouped(node: CompiledNode, pairs: Pairs) -> CompiledNode:
    """`node{key: value}`. The node may give `Many`."""
    return lambda frame, context: _grouped(items_of(node(frame, context)), pairs, frame)


def literal_object(fields: tuple[tuple[str, CompiledNode], ...]) -> CompiledNode:
    """`{"id": $id}`: texts as keys, each another."""
    pairs = tuple((_constant(key), value) for key, value in fields)

    def node(frame: VariableScope, context: Any) -> Any:
        if type(context) is list:
            return _grouped(context, pairs, frame)
        result = {}
        for key, field in fields:
            value = field(frame, context)
            if value is not UNDEFINED:
                result[key] = value
        return result

    return node


def computed_object(pairs: Pairs) -> CompiledNode:
    """Compile an object with computed keys: `{$name: $value}`."""
    return lambda frame, context: _grouped(
        context if type(context) is list else [context], pairs, frame
    )


def _constant(text: str) -> CompiledNode:
    return lambda _frame, _context: text


def _grouped(items: list[Any], pairs: Pairs, frame: VariableScope) -> dict[str, Any]:
    """Return the groups in the order of their first items: JSONata computes all keys before the
    first value.
    """
    items = items or [UNDEFINED]  # without items the object still has its keys
    if len(items) > 1:
        frame.run.step(len(items) * len(pairs))
    groups: dict[str, tuple[int, list[Any]]] = {}
    for item in items:
        for at, (key, _) in enumerate(pairs):
            name = key(frame, item)
            if name is UNDEFINED:
                continue
            if type(name) is not str:
                raise Declined  # T1003
            frame.run.charge(costs.compared_items(name, (name,)))
            made_by, members = groups.setdefault(name, (at, []))
            if made_by != at:
                raise Declined  # D1009: two keys of the object give the same
            members.append(item)
    result = {}
    for name, (at, members) in groups.items():
        _, value = pairs[at]
        found = value(frame, _together(members, frame.run))
        if found is not UNDEFINED:
            result[name] = found
    return result


def _together(members: list[Any], run: EvaluationRun) -> Any:
    """The context in which a group has its value."""
    if len(members) == 1:
        return members[0]
    run.charge(sum(len(items_of(item)) for item in members))
    return joined(members)
