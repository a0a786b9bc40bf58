"""Durable calls inside expressions, moved before the statement in Python's order of evaluation.

    return Outcome(tracking=ship(order.id).tracking)
    -> ship_result = ship(order.id)
       return Outcome(tracking=ship_result.tracking)

Parts that Python might skip or repeat (the right side of `and`, a comprehension …) are left
alone. A durable call there is refused when its expression is lowered.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.steps.durable import find_durable
from holdfast.compiler.variable_names import VariableScopeNames


class Hoister(Protocol):
    """Lowers one durable call into a step of its own and gives its result."""

    @property
    def unit(self) -> Unit: ...
    @property
    def scope(self) -> VariableScopeNames: ...
    def hoist(self, node: ast.Call, function: object, /) -> TypedQuery: ...
    def may_fail(self, node: ast.expr, /) -> bool: ...


def hoist(hoister: Hoister, node: ast.expr) -> None:
    """Hoists what `node` certainly evaluates, and `node` itself."""
    if not has_durable(hoister, node):
        return
    hoist_inside(hoister, node)
    function = find_durable(hoister.unit, hoister.scope, node)
    if function is not None:
        assert isinstance(node, ast.Call)
        hoister.hoist(node, function)


def hoist_inside(hoister: Hoister, node: ast.expr) -> None:
    """Hoists what `node` certainly evaluates, not `node` itself."""
    earlier: list[ast.expr] = []
    for child in evaluated(node):
        if has_durable(hoister, child):
            for before in earlier:
                _require_safe(hoister, before, child)
            hoist(hoister, child)
        earlier.append(child)


def _require_safe(hoister: Hoister, before: ast.expr, child: ast.expr) -> None:
    if not hoister.may_fail(before):
        return
    text, step = (hoister.unit.text(_written(node)) for node in (before, child))
    hoister.unit.refuse(
        before,
        "HF013",
        f"`{text}` may fail, and Python would then not run the durable step after it; "
        "a state machine runs the step first",
        f"put them on two lines: `x = {text}`, then the line with `{step}`",
    )


def _written(node: ast.expr) -> ast.expr:
    """The part of an f-string, or of `[*items]`, that can stand on a line of its own."""
    return node.value if isinstance(node, ast.FormattedValue | ast.Starred) else node


def has_durable(hoister: Hoister, node: ast.expr) -> bool:
    """Asked for each expression around the node, and again in each round of a loop."""
    if isinstance(node, ast.Name | ast.Constant):
        return False
    known = hoister.unit.with_durable
    found = known.get(node)
    if found is None:
        found = isinstance(node, ast.Call) and _is_durable(hoister, node)
        for child in () if found else evaluated(node):
            found = found or has_durable(hoister, child)
        known[node] = found
    return found


def _is_durable(hoister: Hoister, node: ast.Call) -> bool:
    return find_durable(hoister.unit, hoister.scope, node) is not None


def evaluated(node: ast.AST) -> Sequence[ast.expr]:
    """The operands that evaluating `node` certainly evaluates, in Python's order."""
    match node:
        case ast.Constant() | ast.Name() | ast.Lambda():
            return ()
        case ast.Attribute(value=value):
            return (value,)
        case ast.Call(func=function, args=arguments, keywords=keywords):
            return (function, *arguments, *[keyword.value for keyword in keywords])
        case ast.JoinedStr(values=values):
            return values
        case ast.FormattedValue(value=value, format_spec=None):
            return (value,)
        case ast.BinOp(left=left, right=right):
            return (left, right)
        case ast.BoolOp(values=[first, *_]):
            return (first,)
        case ast.IfExp(test=test):
            return (test,)
        case ast.Compare(left=left, comparators=[right, *_]):
            return (left, right)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return (node.generators[0].iter,)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [part for pair in pairs for part in pair if part is not None]
        case _:
            return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
