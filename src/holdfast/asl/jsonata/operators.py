"""Closures of the binary operators, with the common types first."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.runtime import (
    CompiledNode,
    Declined,
    VariableScope,
    calculate,
    equals,
    is_number,
    is_ordered,
    text,
    truth,
)
from holdfast.asl.jsonata.values import UNDEFINED, checked_text, same_item

_EXACT_MAX: Final = 2**53


def _arithmetic(sign: str) -> Callable[[CompiledNode, CompiledNode], CompiledNode]:
    exact = {"+": operator.add, "-": operator.sub, "*": operator.mul}.get(sign)
    if exact is None:
        return lambda left, right: (
            lambda frame, context: calculate(sign, left(frame, context), right(frame, context))
        )
    compute: Callable[[int, int], int] = exact

    def make(left: CompiledNode, right: CompiledNode) -> CompiledNode:
        def node(frame: VariableScope, context: Any) -> Any:
            one, other = left(frame, context), right(frame, context)
            if type(one) is int and type(other) is int:
                result = compute(one, other)
                if -_EXACT_MAX <= result <= _EXACT_MAX:
                    return result
            return calculate(sign, one, other)

        return node

    return make


def _comparison(
    compare: Callable[[Any, Any], bool],
) -> Callable[[CompiledNode, CompiledNode], CompiledNode]:
    def make(left: CompiledNode, right: CompiledNode) -> CompiledNode:
        def node(frame: VariableScope, context: Any) -> Any:
            one, other = left(frame, context), right(frame, context)
            if type(one) is int and type(other) is int:
                return compare(one, other)
            if not is_ordered(one, other):
                return UNDEFINED
            if type(one) is str:
                frame.run.charge(costs.compared_items(one, (other,)))
            return compare(one, other)

        return node

    return make


def _equality(expected: bool) -> Callable[[CompiledNode, CompiledNode], CompiledNode]:
    def make(left: CompiledNode, right: CompiledNode) -> CompiledNode:
        def node(frame: VariableScope, context: Any) -> Any:
            one, other = left(frame, context), right(frame, context)
            if one is UNDEFINED or other is UNDEFINED:
                return False
            if type(one) is str and type(other) is str:
                frame.run.charge(costs.compared_items(one, (other,)))
                return (one == other) is expected
            return equals(one, other, frame.run) is expected

        return node

    return make


def _and(left: CompiledNode, right: CompiledNode) -> CompiledNode:
    return lambda frame, context: (
        truth(left(frame, context), frame.run) and truth(right(frame, context), frame.run)
    )


def _or(left: CompiledNode, right: CompiledNode) -> CompiledNode:
    return lambda frame, context: (
        truth(left(frame, context), frame.run) or truth(right(frame, context), frame.run)
    )


def _in(left: CompiledNode, right: CompiledNode) -> CompiledNode:
    def node(frame: VariableScope, context: Any) -> Any:
        item, items = left(frame, context), right(frame, context)
        if item is UNDEFINED or items is UNDEFINED:
            return False
        if type(items) is not list:
            items = [items]
        frame.run.charge(len(items))
        # Python's `in` compares texts much faster than the loop below. For numbers it is used only
        # to find that none is equal, because it would take true for 1.
        if type(item) is str:
            frame.run.charge(costs.compared_items(item, items))
            return item in items
        if is_number(item) and item not in items:
            return False
        return any(same_item(other, item) for other in items)

    return node


def _concatenation(left: CompiledNode, right: CompiledNode) -> CompiledNode:
    def node(frame: VariableScope, context: Any) -> Any:
        one, other = left(frame, context), right(frame, context)
        if type(one) is not str:
            one = text(one, frame.run)
        if type(other) is not str:
            other = text(other, frame.run)
        joined = checked_text(one + other)
        frame.run.charge_for(joined)
        return joined

    return node


def _range(left: CompiledNode, right: CompiledNode) -> CompiledNode:
    def node(frame: VariableScope, context: Any) -> Any:
        first, last = left(frame, context), right(frame, context)
        if first is UNDEFINED or last is UNDEFINED:
            raise Declined
        if not is_number(first) or not is_number(last) or first % 1 or last % 1:
            raise Declined
        size = int(last) - int(first) + 1
        if size <= 0:
            return UNDEFINED
        if size > values.RANGE_ITEMS_MAX:
            raise Declined
        frame.run.charge(size)
        return list(range(int(first), int(last) + 1))

    return node


BINARY: Final[dict[str, Callable[[CompiledNode, CompiledNode], CompiledNode]]] = {
    **{sign: _arithmetic(sign) for sign in "+-*/%"},
    "<": _comparison(operator.lt),
    "<=": _comparison(operator.le),
    ">": _comparison(operator.gt),
    ">=": _comparison(operator.ge),
    "=": _equality(expected=True),
    "!=": _equality(expected=False),
    "and": _and,
    "or": _or,
    "in": _in,
    "&": _concatenation,
    "..": _range,
}
