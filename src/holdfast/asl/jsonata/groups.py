"""Closures of objects and groups: `{"id": $id}`, `$lines{sku: $sum(qty)}`.

A group consists of the items that have the same key. Its value is evaluated once; the context is
its item, or an array if it has several. An object whose context is an array consists of groups of
the array's items.
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

#: The pairs of an object: for each pair, the key before the colon and the value after it.
Pairs: TypeAlias = tuple[tuple[CompiledNode, CompiledNode], ...]


def grouped(node: CompiledNode, pairs: Pairs) -> CompiledNode:
    """Compile `node{key: value}`. The node may return `Many`."""
    return lambda frame, context: _grouped(items_of(node(frame, context)), pairs, frame)


def literal_object(fields: tuple[tuple[str, CompiledNode], ...]) -> CompiledNode:
    """Compile an object such as `{"id": $id}`, whose keys are different texts."""
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
    """Return the groups, in the order of their first items. As in JSONata, all keys are computed
    before the first value.
    """
    # Without items the object still has its keys, so evaluate each key once.
    items = items or [UNDEFINED]
    if len(items) > 1:
        frame.run.step(len(items) * len(pairs))
    groups: dict[str, tuple[int, list[Any]]] = {}
    for item in items:
        for at, (key, _) in enumerate(pairs):
            name = key(frame, item)
            if name is UNDEFINED:
                continue
            if type(name) is not str:
                # jsonata-python raises the error T1003 here: the key is not a text.
                raise Declined
            frame.run.charge(costs.compared_items(name, (name,)))
            made_by, members = groups.setdefault(name, (at, []))
            if made_by != at:
                # jsonata-python raises the error D1009 here: two keys of the object have the same
                # value.
                raise Declined
            members.append(item)
    result = {}
    for name, (at, members) in groups.items():
        _, value = pairs[at]
        found = value(frame, _together(members, frame.run))
        if found is not UNDEFINED:
            result[name] = found
    return result


def _together(members: list[Any], run: EvaluationRun) -> Any:
    """Return the context in which the value of a group is evaluated."""
    if len(members) == 1:
        return members[0]
    run.charge(sum(len(items_of(item)) for item in members))
    return joined(members)
