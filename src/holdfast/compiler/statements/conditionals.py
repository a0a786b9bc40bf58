"""Durable calls in a part of an expression that is not always evaluated: they become an `if`.

If `a if c else b` is all that a statement computes, the statement is written in both arms
(`as_if`):

    payment = charge(order.id) if order.cents > 0 else None
    -> if order.cents > 0: payment = charge(order.id)
       else: payment = None

In any other place a variable replaces the expression (`choose`):

    if order.is_new and is_paid(order.id): …
    -> chosen = order.is_new
       if chosen: chosen = is_paid(order.id)
       if chosen: …
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery
from holdfast.compiler.environment import join_environments
from holdfast.compiler.expressions import operators
from holdfast.compiler.expressions.query import Variable, invoke
from holdfast.compiler.ir import If
from holdfast.compiler.steps.hoisting import has_durable
from holdfast.compiler.types.types import BOOL, Type, is_refused, join, without_none

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def as_if(statements: Statements, node: ast.stmt) -> ast.If | None:
    """Return the `if` that replaces the statement; None when no arm contains a durable call.

    Each call returns the same nodes, because names of variables belong to nodes and a loop is
    lowered several times.
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
    """Return True when one of the arms certainly runs a step."""
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
            # The value is a constant, as in `notify(text) if flag else None`, so this way does
            # nothing.
            made = ast.Pass()
        case _:
            return ast.copy_location(ast.Expr(arm), arm)
    return ast.copy_location(made, node)


def choose(statements: Statements, node: ast.BoolOp | ast.IfExp, *, is_truth: bool) -> None:
    """Emit an `if` in place of an expression. `is_truth`: only the truth of the expression is
    used.
    """
    chosen = _Choice(statements, statements.scope.name("chosen", (node, "chosen")), is_truth)
    match node:
        case ast.BoolOp(op=operator, values=values):
            type_ = chosen.operands(values, is_and=isinstance(operator, ast.And))
        case ast.IfExp():
            type_ = chosen.arms(node)
    found = TypedQuery(Variable(chosen.variable), type_)
    statements.hoisted[node] = REFUSED_EXPRESSION if is_refused(type_) else found


class _Choice:
    """One choice, and the variable that gets its value."""

    def __init__(self, statements: Statements, variable: str, is_truth: bool) -> None:
        self.statements = statements
        self.variable = variable
        self.is_truth = is_truth

    def operands(self, nodes: Sequence[ast.expr], *, is_and: bool) -> Type:
        """Lower the operands of `and` or `or`. The last operand that is evaluated gives the
        value.
        """
        first, *rest = nodes
        statements = self.statements
        type_ = self._give(first)
        if not rest:
            return type_
        here = statements.expressions
        held = TypedQuery(Variable(self.variable), type_)
        test = operators.truth(statements.unit, first, held)
        if not is_and:
            test = test._replace(query=invoke("not", test.query))
        statements.flow.environment = here.narrowed(first, is_true=is_and).environment
        others: list[Type] = []
        block = statements.collected(lambda: others.append(self.operands(rest, is_and=is_and)))
        after = statements.flow.environment
        statements.flow.environment = join_environments(after, here.environment)
        statements.emit(If(statements.origin(first), test, block, ()))
        kept = type_ if is_and else without_none(type_)
        return join(kept, others[0])

    def arms(self, node: ast.IfExp) -> Type:
        statements = self.statements
        test = statements.protected(statements.test(node.test), node.test, "test")
        here = statements.expressions
        types: list[Type] = []
        statements.flow.environment = here.narrowed(node.test, is_true=True).environment
        then = statements.collected(lambda: types.append(self._give(node.body)))
        after = statements.flow.environment
        statements.flow.environment = here.narrowed(node.test, is_true=False).environment
        otherwise = statements.collected(lambda: types.append(self._give(node.orelse)))
        statements.flow.environment = join_environments(after, statements.flow.environment)
        statements.emit(If(statements.origin(node.test), test, then, otherwise))
        return join(*types)

    def _give(self, node: ast.expr) -> Type:
        """Assign the value of `node` to the variable, or its truth."""
        statements = self.statements
        value = statements.test(node) if self.is_truth else statements.value(node)
        if not is_refused(value.type):
            assigned = ((self.variable, value),)
            statements.assign(node, *assigned)
        return BOOL if self.is_truth and not is_refused(value.type) else value.type
