"""Calls such as `minutes(5)` and `timedelta(days=2)`. Their value is a number: whole seconds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery
from holdfast.compiler.expressions.query import Binary, Constant
from holdfast.compiler.types.types import DURATION, INT, is_numeric, is_refused


def lower_duration(unit_seconds: int) -> Callable[[Lowering, ast.Call], TypedQuery]:
    def rule(lowering: Lowering, node: ast.Call) -> TypedQuery:
        if len(node.args) != 1 or node.keywords:
            name = lowering.unit.text(node.func)
            message = f"`{name}()` takes one argument in a workflow"
            return lowering.unit.refused(node, "HF008", message, f"{name}(5)")
        return _scaled(lowering, node, lowering.lower(node.args[0]), unit_seconds)

    return rule


_UNIT_SECONDS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60}


def lower_timedelta(lowering: Lowering, node: ast.Call) -> TypedQuery:
    """Lower `timedelta(days=2)`. Only one keyword is allowed, so that the number in the state
    machine stays readable.
    """
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg=str(name), value=amount)]) if (
            name == "seconds" or name in _UNIT_SECONDS
        ):
            scale = _UNIT_SECONDS.get(name, 1)
            return _scaled(lowering, node, lowering.lower(amount), scale)
        case _:
            message = "`timedelta()` takes one unit in a workflow"
            return lowering.unit.refused(node, "HF002", message, "days(2) + hours(12)")


def _scaled(lowering: Lowering, node: ast.Call, value: TypedQuery, scale: int) -> TypedQuery:
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    match value.query:
        case Constant(int() | float() as amount) if is_numeric(value.type):
            total = amount * scale
            if total == int(total):
                return TypedQuery(Constant(int(total)), DURATION)
        case query if value.type == INT:
            scaled = query if scale == 1 else Binary("*", query, Constant(scale))
            return TypedQuery(scaled, DURATION, value.fails)
    return lowering.unit.refused(
        node, "HF052", "a duration must be a whole number of seconds", "seconds(90), minutes(5)"
    )
