"""Closures of paths and predicates: `$order.lines[qty > 1].sku`, `$items[$i]`, `$lines^(sku)`.

A step is evaluated for each item that the step before has found, and its results are joined,
flattened by one level. Two rules of JSONata: if the last step finds one array, the result is that
array itself; and a sequence of one item becomes its item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from holdfast.asl.jsonata import costs
from holdfast.asl.jsonata.runtime import (
    CompiledNode,
    Declined,
    EvaluationRun,
    Many,
    VariableScope,
    is_number,
    items_of,
    seen,
    truth,
)
from holdfast.asl.jsonata.values import UNDEFINED
from holdfast.lazy_dataclass import dataclass

#: A function that applies a predicate to a value or `Many`, and returns the items that it keeps.
PathFilter: TypeAlias = Callable[[Any, VariableScope], Any]


def index_filter(index: int) -> PathFilter:
    """Return the filter of an index: `[2]`, `[-1]`."""

    def choose(found: Any, _: VariableScope) -> Any:
        items = found if type(found) is list else items_of(found)
        at = index + len(items) if index < 0 else index
        return items[at] if 0 <= at < len(items) else UNDEFINED

    return choose


def position_filter(position: CompiledNode) -> PathFilter:
    """Return the filter `[$i]`. A predicate that does not read the item is evaluated once, and not
    once for each item.
    """
    otherwise = condition_filter(position)

    def choose(found: Any, frame: VariableScope) -> Any:
        items = found if type(found) is list else items_of(found)
        if not items:
            return UNDEFINED
        at = position(frame, UNDEFINED)
        if type(at) is not int:
            return otherwise(found, frame)
        if at < 0:
            at += len(items)
        return Many([items[at]]) if 0 <= at < len(items) else UNDEFINED

    return choose


def _are_positions(verdict: Any, run: EvaluationRun) -> bool:
    if type(verdict) is not list:
        return False
    run.charge(len(verdict))
    return all(map(is_number, verdict))


def condition_filter(condition: CompiledNode) -> PathFilter:
    """Return the filter for a condition such as `[qty > 1]`, which rarely has positions as its
    result.
    """

    def choose(found: Any, frame: VariableScope) -> Any:
        items = items_of(found)
        frame.run.step(len(items))
        chosen = []
        for index, item in enumerate(items):
            verdict = condition(frame, item)
            if type(verdict) is bool:
                if verdict:
                    chosen.append(item)
            elif is_number(verdict) or _are_positions(verdict, frame.run):
                positions = items_of(verdict)
                chosen.extend([item] * _times(positions, index, len(items)))
            elif truth(verdict, frame.run):
                chosen.append(item)
        return Many(chosen)

    return choose


def _times(positions: list[Any], index: int, size: int) -> int:
    if any(position % 1 for position in positions):
        raise Declined
    return sum(position == index or position + size == index for position in positions)


def filtered(node: CompiledNode, filters: tuple[PathFilter, ...]) -> CompiledNode:
    if len(filters) == 1:
        only = filters[0]
        return lambda frame, context: only(node(frame, context), frame)

    def chain(frame: VariableScope, context: Any) -> Any:
        found = node(frame, context)
        for choose in filters:
            found = choose(found, frame)
        return found

    return chain


def shown(node: CompiledNode) -> CompiledNode:
    """Return a node that converts `Many` to the form in which an expression reads it."""

    def show(frame: VariableScope, context: Any) -> Any:
        found = node(frame, context)
        return seen(found.items) if type(found) is Many else found

    return show


def name_path(first: CompiledNode, names: tuple[str, ...]) -> CompiledNode:
    """Compile `first.a.b`. Usually each value is an object; `_through` handles arrays."""

    def path(frame: VariableScope, context: Any) -> Any:
        value = first(frame, context)
        for at, name in enumerate(names):
            if type(value) is dict:
                if name not in value:
                    return UNDEFINED
                value = value[name]
            elif type(value) is list:
                return _through(value, names[at:], frame.run)
            else:
                return UNDEFINED
        return value

    return path


def binding_path(variable: str, names: tuple[str, ...]) -> CompiledNode:
    """Compile `$variable.a.b`, where the variable is a binding, without a call for the variable."""

    def path(frame: VariableScope, _: Any) -> Any:
        value = frame.run.bindings.get(variable, UNDEFINED)
        for at, name in enumerate(names):
            if type(value) is dict:
                if name not in value:
                    return UNDEFINED
                value = value[name]
            elif type(value) is list:
                return _through(value, names[at:], frame.run)
            else:
                return UNDEFINED
        return value

    return path


def _through(items: list[Any], names: tuple[str, ...], run: EvaluationRun) -> Any:
    """Return the values of a path of names from each of several items."""
    found: list[Any] = []
    for name in names:
        run.charge(len(items))
        found = [item[name] for item in items if type(item) is dict and name in item]
        if any(type(item) is list for item in items):
            # jsonata-python evaluates a path through arrays of arrays.
            raise Declined
        run.charge(sum(len(item) for item in found if type(item) is list))
        items = joined(found)
    return found[0] if len(found) == 1 and type(found[0]) is list else seen(items)


def joined(found: list[Any]) -> list[Any]:
    """Return the results, flattened by one level."""
    if not any(type(item) is list or type(item) is Many for item in found):
        return found
    flat: list[Any] = []
    for item in found:
        if type(item) is list:
            flat.extend(item)
        elif type(item) is Many:
            flat.extend(item.items)
        else:
            flat.append(item)
    return flat


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """One step of a path: a node that is evaluated with each item as its context, and the
    predicates on its result.
    """

    node: CompiledNode
    filters: tuple[PathFilter, ...] = ()

    def find(self, items: list[Any], frame: VariableScope) -> list[Any]:
        run = frame.run
        run.step(len(items))
        found = []
        for item in items:
            value = self.node(frame, item)
            for choose in self.filters:
                value = choose(value, frame)
            if value is not UNDEFINED:
                found.append(value)
                run.charge(len(items_of(value)))
            elif self.filters:
                # Add an empty part. A path whose last step found only one array has that array as
                # its result, and without this part the filtered step would look like one.
                found.append(Many([]))
        return found


@dataclass(frozen=True, slots=True)
class Sort:
    """`^(>price, sku)`: the keys, the most important first, and whether each is descending."""

    terms: tuple[tuple[CompiledNode, bool], ...]

    def find(self, items: list[Any], frame: VariableScope) -> list[Any]:
        frame.run.step(len(items) * len(self.terms))
        ordered = items
        for key, descending in reversed(self.terms):
            keys = [key(frame, item) for item in ordered]
            if not all(map(is_number, keys)) and not all(type(key) is str for key in keys):
                raise Declined
            frame.run.charge(costs.sorting_items(keys))
            order = sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
            ordered = [ordered[at] for at in order]
        return [Many(ordered)]


def general_path(
    first: CompiledNode | None, steps: tuple[CompiledStep | Sort, ...]
) -> CompiledNode:
    """Compile any path. Without `first` it starts from the context: `lines[0].sku`. It may return
    `Many`.
    """

    def path(frame: VariableScope, context: Any) -> Any:
        if first is None:
            found = [] if context is UNDEFINED else [context]
        else:
            value = first(frame, context)
            found = [] if value is UNDEFINED else [value]
        items = joined(found)
        for step in steps:
            if not items:
                return UNDEFINED
            found = step.find(items, frame)
            items = joined(found)
        return found[0] if len(found) == 1 and type(found[0]) is list else Many(items)

    return path
