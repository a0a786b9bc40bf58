"""Decimals, computed by steps of Python's library, and values such as `Decimal("1.50")` and
`date(2026, 3, 1)` that are made in a workflow.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from datetime import date, datetime, time, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from holdfast.compiler.context import NOTHING, TypedQuery
from holdfast.compiler.expressions.outside import from_outside
from holdfast.compiler.library_calls import as_library_step
from holdfast.compiler.types.types import DECIMAL, INT

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_METHODS: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.Add: "__add__",
        ast.Sub: "__sub__",
        ast.Mult: "__mul__",
        ast.Div: "__truediv__",
        ast.FloorDiv: "__floordiv__",
        ast.Mod: "__mod__",
        ast.Lt: "__lt__",
        ast.LtE: "__le__",
        ast.Gt: "__gt__",
        ast.GtE: "__ge__",
        ast.Eq: "__eq__",
        ast.NotEq: "__ne__",
    }
)
#: The classes of values that a workflow may make. Their JSON is the text that pydantic writes.
_CLASSES: Final = (date, datetime, time, Decimal)


def decimal_step(
    expressions: Expressions,
    node: ast.BinOp | ast.Compare,
    operator: ast.operator | ast.cmpop,
    left: TypedQuery,
    right: TypedQuery,
) -> TypedQuery | None:
    """Let Python's library compute `price * 2` or `price > limit`; None for other operands."""
    kinds = {left.type, right.type}
    method = _METHODS.get(type(operator))
    if method is None or DECIMAL not in kinds or not kinds <= {DECIMAL, INT}:
        return None
    match node:
        case ast.BinOp(left=one, right=other) | ast.Compare(left=one, comparators=[other]):
            return as_library_step(expressions, node, f"decimal.Decimal.{method}", (one, other))
    return None


def value_of_call(expressions: Expressions, node: ast.Call, cls: Any) -> TypedQuery | None:
    """Return the value of `Decimal("1.50")`, or the step that makes one; None for other calls."""
    if not any(cls is known for known in _CLASSES):
        return None
    places = [_constant(expressions, one) for one in node.args]
    names = {str(word.arg): _constant(expressions, word.value) for word in node.keywords}
    if NOTHING not in (*places, *names.values()):
        try:
            made = cls(*places, **names)
        except (ArithmeticError, TypeError, ValueError):
            return None
        return from_outside(expressions.unit, node, made)
    name = f"{cls.__module__}.{cls.__name__}"
    return as_library_step(expressions, node, name, node.args, node.keywords)


def _constant(expressions: Expressions, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    found = expressions.unit.outside(node) if expressions.is_outside(node) else NOTHING
    return found if isinstance(found, str | int | timezone) else NOTHING
