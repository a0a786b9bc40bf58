"""Expressions whose parts are not always evaluated: `and`, `or`, `x if c else y` and
comparisons.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.compiler.context import CONDITION, REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.expressions import operators
from holdfast.compiler.expressions.caught import is_exactly
from holdfast.compiler.expressions.comparisons import compare
from holdfast.compiler.expressions.decimals import decimal_step
from holdfast.compiler.expressions.moments import are_moments
from holdfast.compiler.expressions.query import (
    FALSE,
    TRUE,
    Binary,
    Conditional,
    QueryTree,
    hold,
    invoke,
)
from holdfast.compiler.expressions.sets import is_hashable, members
from holdfast.compiler.library_calls import note_failure
from holdfast.compiler.rewriting import load, located
from holdfast.compiler.types.types import (
    BOOL,
    NEVER,
    WRITTEN_DURATION,
    SetOf,
    Type,
    describe,
    element_of,
    is_json,
    is_refused,
    join,
    without_none,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_operands(expressions: Expressions, node: ast.BoolOp) -> TypedQuery:
    """Lower `and` and `or`: in Python their value is one of the operands, in JSONata it is a
    boolean.
    """
    return _operands(expressions, node.values, is_and=isinstance(node.op, ast.And))


def _operands(expressions: Expressions, nodes: Sequence[ast.expr], *, is_and: bool) -> TypedQuery:
    first, *rest = nodes
    value = expressions.lower(first)
    if not rest:
        return value
    place = expressions.inside(CONDITION).narrowed(first, is_true=is_and)
    other = _operands(place, rest, is_and=is_and)
    test = operators.truth(expressions.unit, first, value)
    if any(map(is_refused, (value.type, other.type, test.type))):
        return REFUSED_EXPRESSION
    fails = fails_of(value, other)
    if value.type == other.type == BOOL:
        return TypedQuery(connect(value, other, is_and=is_and), BOOL, fails)

    def choose(held: QueryTree) -> QueryTree:
        is_true = operators.truth(expressions.unit, first, TypedQuery(held, value.type)).query
        if is_and:
            return Conditional(is_true, other.query, held)
        return Conditional(is_true, held, other.query)

    # `a or b` gives `a` only when `a` is true. So None, which is never true, is not among the
    # values of `a` that are kept.
    kept = value.type if is_and else without_none(value.type)
    return TypedQuery(hold(value.query, choose), join(kept, other.type), fails)


def lower_truth_of_operands(expressions: Expressions, node: ast.BoolOp) -> TypedQuery:
    """Lower `a and b` to JSONata's `and`. This is for a place in which only the truth of it is
    used.
    """
    is_and = isinstance(node.op, ast.And)
    place = expressions
    found = [place.truth(node.values[0])]
    for before, value in itertools.pairwise(node.values):
        place = place.inside(CONDITION).narrowed(before, is_true=is_and)
        found.append(place.truth(value))
    return _connected(found, is_and=is_and)


def connect(left: TypedQuery, right: TypedQuery, *, is_and: bool) -> QueryTree:
    """Return the query for `and` or `or`. JSONata may evaluate both sides, so a right side that may
    fail needs a conditional instead.
    """
    if not right.fails:
        return Binary("and" if is_and else "or", left.query, right.query)
    if is_and:
        return Conditional(left.query, right.query, FALSE)
    return Conditional(left.query, TRUE, right.query)


def lower_conditional(expressions: Expressions, node: ast.IfExp) -> TypedQuery:
    test = expressions.truth(node.test)
    place = expressions.inside(CONDITION)
    then = place.narrowed(node.test, is_true=True).lower(node.body)
    otherwise = place.narrowed(node.test, is_true=False).lower(node.orelse)
    return chosen(test, then, otherwise)


def chosen(test: TypedQuery, then: TypedQuery, otherwise: TypedQuery) -> TypedQuery:
    """Return the value of one of two expressions."""
    if is_refused(test.type, then.type, otherwise.type):
        return REFUSED_EXPRESSION
    query = Conditional(test.query, then.query, otherwise.query)
    return TypedQuery(query, join(then.type, otherwise.type), fails_of(test, then, otherwise))


def lower_comparison(expressions: Expressions, node: ast.Compare) -> TypedQuery:
    unit = expressions.unit
    known_class = _of_class(expressions, node)
    if known_class is not None:
        return known_class
    left = expressions.lower(node.left)
    right = _comparand(expressions, left, node.ops[0], node.comparators[0])
    if len(node.ops) == 1 and (step := decimal_step(expressions, node, node.ops[0], left, right)):
        return step
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        if are_moments(left, right):
            note_failure(expressions, node, "TypeError")
        if WRITTEN_DURATION in (left.type, right.type):
            note_failure(expressions, node, "ValueError")
    found = [compare(unit, node, node.ops[0], left, right)]
    for operator, comparator in zip(node.ops[1:], node.comparators[1:], strict=True):
        if is_refused(found[-1].type):
            return REFUSED_EXPRESSION
        if right.fails:
            message = "the middle of this chain of comparisons may fail"
            help_ = "give it a name on a line of its own, or join two comparisons with `and`"
            return unit.refused(node, "HF002", message, help_)
        # The compiled text contains the middle operand of `a < b < c` twice. That is safe, because
        # this operand cannot fail and has no effect.
        left = right
        right = _comparand(expressions.inside(CONDITION), left, operator, comparator)
        found.append(compare(unit, node, operator, left, right))
    return _connected(found, is_and=True)


def _of_class(expressions: Expressions, node: ast.Compare) -> TypedQuery | None:
    """Lower `type(value) is dict` and `type(err) is CardDeclined`; None for another comparison."""
    match node:
        case ast.Compare(
            left=ast.Call(func=ast.Name("type"), args=[value], keywords=[]),
            ops=[ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq() as operator],
            comparators=[ast.Name() | ast.Attribute() as wanted],
        ) if expressions.is_builtin("type"):
            pass
        case _:
            return None
    with expressions.unit.trial():
        found = expressions.lower(value)
    is_negative = isinstance(operator, ast.IsNot | ast.NotEq)
    error = is_exactly(expressions.unit, wanted, found)
    if error is not None:
        query = invoke("not", error.query) if is_negative else error.query
        return TypedQuery(query, BOOL, error.fails)
    cls = expressions.unit.outside(wanted)
    if cls not in (str, int, bool, list, dict) or not is_json(found.type):
        return None
    test: ast.expr = ast.Call(load("isinstance"), [value, wanted], [])
    if cls is int:
        flag = ast.Call(load("isinstance"), [value, load("bool")], [])
        test = ast.BoolOp(ast.And(), [test, ast.UnaryOp(ast.Not(), flag)])
    whole = ast.UnaryOp(ast.Not(), test) if is_negative else test
    return expressions.lower(expressions.unit.rewritten(node, located(whole, node)))


def _connected(tests: list[TypedQuery], *, is_and: bool) -> TypedQuery:
    """Return `a and b and c`, or the same with `or`."""
    if any(is_refused(test.type) for test in tests):
        return REFUSED_EXPRESSION
    result = tests[-1]
    for test in reversed(tests[:-1]):
        query = connect(test, result, is_and=is_and)
        result = TypedQuery(query, BOOL, fails_of(test, result))
    return result


def _comparand(
    expressions: Expressions, left: TypedQuery, operator: ast.cmpop, node: ast.expr
) -> TypedQuery:
    """Return the right side of a comparison. For `in` a set is lowered as a list: the answer is the
    same.
    """
    if not isinstance(operator, ast.In | ast.NotIn):
        return expressions.lower(node)
    found = members(expressions, node)
    put_in: list[Type] = []
    if found is not None:
        put_in = [left.type, element_of(found.type) or NEVER]
    else:
        found = expressions.gone_through(node)
        if isinstance(found.type, SetOf):
            put_in = [left.type]
    for type_ in put_in:
        if not is_hashable(type_):
            message = f"a value of type {describe(type_)} cannot be in a set"
            return expressions.unit.refused(node, "HF048", message, "x in [a, b]")
    return found
