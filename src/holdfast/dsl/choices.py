"""`and`, `or`, `x if c else y` and comparisons: what is evaluated only sometimes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.dsl import operators
from holdfast.dsl.context import REFUSED_EXPRESSION, Expression, fails_of
from holdfast.dsl.displays import lower_list
from holdfast.dsl.query import FALSE, TRUE, Binary, Conditional, Query, hold
from holdfast.dsl.types import BOOL, is_refused, join, without_none

if TYPE_CHECKING:
    from holdfast.dsl.expressions import Expressions

_PLACE = "a condition"


def lower_operands(expressions: Expressions, node: ast.BoolOp) -> Expression:
    """`and` and `or` give one of their operands; JSONata's give a boolean."""
    return _operands(expressions, node.values, is_and=isinstance(node.op, ast.And))


def _operands(expressions: Expressions, nodes: Sequence[ast.expr], *, is_and: bool) -> Expression:
    first, *rest = nodes
    value = expressions.lower(first)
    if not rest:
        return value
    place = expressions.inside(_PLACE).narrowed(first, is_true=is_and)
    other = _operands(place, rest, is_and=is_and)
    test = operators.truth(expressions.unit, first, value)
    if any(map(is_refused, (value.type, other.type, test.type))):
        return REFUSED_EXPRESSION
    fails = fails_of(value, other)
    if value.type == other.type == BOOL:
        return Expression(connect(value, other, is_and=is_and), BOOL, fails)

    def choose(held: Query) -> Query:
        is_true = operators.truth(expressions.unit, first, Expression(held, value.type)).query
        if is_and:
            return Conditional(is_true, other.query, held)
        return Conditional(is_true, held, other.query)

    # `a or b` gives `a` only when it is true, and None never is.
    kept = value.type if is_and else without_none(value.type)
    return Expression(hold(value.query, choose), join(kept, other.type), fails)


def lower_truth_of_operands(expressions: Expressions, node: ast.BoolOp) -> Expression:
    """Where only the truth of `a and b` counts, it is the `and` of their truths."""
    is_and = isinstance(node.op, ast.And)
    place = expressions
    found = [place.truth(node.values[0])]
    for before, value in itertools.pairwise(node.values):
        place = place.inside(_PLACE).narrowed(before, is_true=is_and)
        found.append(place.truth(value))
    if any(is_refused(one.type) for one in found):
        return REFUSED_EXPRESSION
    result = found[-1]
    for one in reversed(found[:-1]):
        query = connect(one, result, is_and=is_and)
        result = Expression(query, BOOL, fails_of(one, result))
    return result


def connect(left: Expression, right: Expression, *, is_and: bool) -> Query:
    """JSONata may evaluate both sides of `and`; only a conditional protects one that may fail."""
    if not right.fails:
        return Binary("and" if is_and else "or", left.query, right.query)
    if is_and:
        return Conditional(left.query, right.query, FALSE)
    return Conditional(left.query, TRUE, right.query)


def lower_conditional(expressions: Expressions, node: ast.IfExp) -> Expression:
    test = expressions.truth(node.test)
    place = expressions.inside(_PLACE)
    then = place.narrowed(node.test, is_true=True).lower(node.body)
    otherwise = place.narrowed(node.test, is_true=False).lower(node.orelse)
    if any(map(is_refused, (test.type, then.type, otherwise.type))):
        return REFUSED_EXPRESSION
    query = Conditional(test.query, then.query, otherwise.query)
    return Expression(query, join(then.type, otherwise.type), fails_of(test, then, otherwise))


def lower_comparison(expressions: Expressions, node: ast.Compare) -> Expression:
    unit = expressions.unit
    left = expressions.lower(node.left)
    right = _comparand(expressions, node.ops[0], node.comparators[0])
    first = operators.compare(unit, node, node.ops[0], left, right)
    if len(node.ops) == 1:
        return first
    if len(node.ops) > 2 or right.fails or is_refused(first.type):
        help_ = "join two comparisons with `and`"
        return unit.refused(node, "HF002", "this chain of comparisons is too long", help_)
    # The middle is written twice: it cannot fail and has no effect.
    last = _comparand(expressions.inside(_PLACE), node.ops[1], node.comparators[1])
    second = operators.compare(unit, node, node.ops[1], right, last)
    if is_refused(second.type):
        return REFUSED_EXPRESSION
    return Expression(connect(first, second, is_and=True), BOOL, fails_of(first, second))


def _comparand(expressions: Expressions, operator: ast.cmpop, node: ast.expr) -> Expression:
    """`x in {"a", "b"}` asks the same as `x in ["a", "b"]`."""
    if isinstance(operator, ast.In | ast.NotIn) and isinstance(node, ast.Set):
        return lower_list(expressions, node.elts)
    return expressions.lower(node)
