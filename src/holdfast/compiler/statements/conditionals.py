"""Durable calls in `a if c else b`, where it is all that a statement computes: the same as an `if`.

payment = charge(order.id) if order.cents > 0 else None
-> if order.cents > 0: payment = charge(order.id)
   else: payment = None
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.steps.hoisting import has_durable

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def as_if(statements: Statements, node: ast.stmt) -> ast.If | None:
    """The `if` that the statement is short for; None where no arm holds a durable call.

    It is the same however often a loop is lowered: names belong to nodes.
    """
    match node:
        case (
            ast.Assign(value=ast.IfExp() as value)
            | ast.AnnAssign(value=ast.IfExp() as value)
            | ast.AugAssign(target=ast.Name(), value=ast.IfExp() as value)
            | ast.Return(value=ast.IfExp() as value)
            | ast.Expr(value=ast.IfExp() as value)
        ) if _holds_steps(statements, value):
            known = statements.unit.conditionals
            if value not in known:
                arms = [[_with(node, arm)] for arm in (value.body, value.orelse)]
                known[value] = ast.copy_location(ast.If(value.test, *arms), node)
            return known[value]
        case _:
            return None


def _holds_steps(statements: Statements, node: ast.IfExp) -> bool:
    """Return True when a chosen arm certainly runs a step."""
    return any(
        has_durable(statements, arm)
        or (isinstance(arm, ast.IfExp) and _holds_steps(statements, arm))
        for arm in (node.body, node.orelse)
    )


def _with(node: ast.stmt, arm: ast.expr) -> ast.stmt:
    """Return a copy of the statement that computes only `arm`."""
    match node:
        case ast.Assign(targets=targets):
            made: ast.stmt = ast.Assign(targets, arm)
        case ast.AnnAssign(target=target, annotation=annotation, simple=simple):
            made = ast.AnnAssign(target, annotation, arm, simple)
        case ast.AugAssign(target=target, op=operator):
            made = ast.AugAssign(target, operator, arm)
        case ast.Return():
            made = ast.Return(arm)
        case _ if isinstance(arm, ast.Constant):
            made = ast.Pass()  # `notify(text) if flag else None`
        case _:
            return ast.copy_location(ast.Expr(arm), arm)
    return ast.copy_location(made, node)
