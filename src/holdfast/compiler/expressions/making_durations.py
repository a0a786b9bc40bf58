"""Calls such as `minutes(5)` and `timedelta(days=2)`. Their value is a number: whole seconds."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.durations import FRACTION
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    QueryTree,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.types.types import DURATION, FLOAT, INT, is_numeric, is_refused


def lower_duration(unit_seconds: int) -> Callable[[Lowering, ast.Call], TypedQuery]:
    def rule(lowering: Lowering, node: ast.Call) -> TypedQuery:
        if len(node.args) != 1 or node.keywords:
            name = lowering.unit.text(node.func)
            message = f"`{name}()` takes one argument in a workflow"
            return lowering.unit.refused(node, "HF008", message, f"{name}(5)")
        return _scaled(lowering, node, lowering.lower(node.args[0]), unit_seconds)

    return rule


_UNIT_SECONDS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "weeks": 604_800,
        "days": 86_400,
        "hours": 3_600,
        "minutes": 60,
        "seconds": 1,
        "milliseconds": 1 / 1_000,
        "microseconds": 1 / 1_000_000,
    }
)
_BY_PLACE: Final = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")


def lower_timedelta(lowering: Lowering, node: ast.Call) -> TypedQuery:
    """Lower `timedelta(hours=1, minutes=30)`, the sum of its parts."""
    names = [*_BY_PLACE[: len(node.args)], *(str(word.arg) for word in node.keywords)]
    values = [*node.args, *(word.value for word in node.keywords)]
    if not {*names} <= {*_UNIT_SECONDS} or len({*names}) < len(values):
        message = "`timedelta()` takes its units by name in a workflow"
        return lowering.unit.refused(node, "HF002", message, "timedelta(hours=1, minutes=30)")
    total = TypedQuery(Constant(0), DURATION)
    for name, value in zip(names, values, strict=True):
        part = _scaled(lowering, node, lowering.lower(value), _UNIT_SECONDS[name])
        if is_refused(part.type):
            return REFUSED_EXPRESSION
        total = _sum(total, part)
    return total


def _sum(left: TypedQuery, right: TypedQuery) -> TypedQuery:
    match left.query, right.query:
        case Constant(int() as one), Constant(int() as other):
            return TypedQuery(Constant(one + other), DURATION)
        case Constant(0), _:
            return right
        case _:
            query = Binary("+", left.query, right.query)
            return TypedQuery(query, DURATION, fails_of(left, right))


def _scaled(lowering: Lowering, node: ast.Call, value: TypedQuery, scale: float) -> TypedQuery:
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    match value.query:
        case Constant(int() | float() as amount) if is_numeric(value.type):
            total = round(amount * scale, _MICROSECONDS)
            if total == int(total):
                return TypedQuery(Constant(int(total)), DURATION)
        case query if value.type == INT and scale >= 1:
            scaled = query if scale == 1 else Binary("*", query, Constant(int(scale)))
            return TypedQuery(scaled, DURATION, value.fails)
        case query if value.type == INT:
            return _divided(query, round(1 / scale), value.fails)
    message = "a duration must be a whole number of seconds"
    return lowering.unit.refused(node, "HF052", message, _whole_help(lowering, node, value, scale))


def _whole_help(lowering: Lowering, node: ast.Call, value: TypedQuery, scale: float) -> str:
    if value.type != FLOAT:
        return "seconds(90), minutes(5)"
    if isinstance(value.query, Constant) and isinstance(value.query.value, int | float):
        whole = max(math.ceil(value.query.value * scale), 1)
        return f"seconds({whole}): a wait of a workflow has no fraction of a second"
    parts = [*node.args, *(word.value for word in node.keywords)]
    amount = lowering.unit.text(parts[0]) if len(parts) == 1 else "…"
    if scale != 1:
        amount += f" * {scale:,g}".replace(",", "_")
    return f"seconds(math.ceil({amount})): a wait of a workflow has no fraction of a second"


#: Python rounds a duration to microseconds.
_MICROSECONDS: Final = 6


def _divided(query: QueryTree, parts: int, fails: frozenset[str]) -> TypedQuery:
    """Return so many parts of a second as whole seconds."""

    def build(held: QueryTree) -> QueryTree:
        is_whole = Binary("=", invoke("floor", held), held)
        return Conditional(is_whole, held, failure(FRACTION))

    seconds = hold(Binary("/", query, Constant(parts)), build, "_seconds")
    return TypedQuery(seconds, DURATION, fails | {"ValueError"})
