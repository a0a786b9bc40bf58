"""Expressions whose error a handler catches by its name: `except KeyError` around `prices[sku]`.

The problem
-----------
An expression of a state machine that fails has one error, `States.QueryEvaluationError`. A handler
for KeyError cannot see which error Python would have raised, and the text of Python's error is
lost.

So a test of the operands stands before the statement, in the place of a durable call:

    try:                            Choice  has $prices the key $sku?
        price = prices[sku]             no: raise KeyError("'tea'")
    except KeyError:           ->   Assign  item = $prices[$sku]
        price = 0                   Assign  price = $item

The operands are evaluated once, in Python's order. The test is a Choice, which has no Catch, so an
operand that may fail itself is assigned to a variable before it.

`library_calls.note_failure` notes such expressions in one pass, and the next pass moves them. A
handler for Exception catches every error of an expression, so it needs no test.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from holdfast.api.library import library_task
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.arguments import is_name
from holdfast.compiler.expressions.dict_keys import written
from holdfast.compiler.expressions.operators import may_divide_by_zero
from holdfast.compiler.expressions.query import Binary, Constant, ObjectOf, QueryTree, Variable
from holdfast.compiler.expressions.subscripts import has_item
from holdfast.compiler.expressions.unknowns import as_kind
from holdfast.compiler.ir import If, Raise, StatementBlock, StepStatement, Target, TaskAction
from holdfast.compiler.library_calls import is_caught
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    UNKNOWN,
    DictOf,
    is_refused,
    is_text,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_named_failure(statements: Statements, node: ast.expr) -> None:
    """Emit the test for an expression and its value. The compiler lowers `node` as it stands where
    it cannot fail after all.
    """
    match node:
        case ast.Subscript(value=base, slice=key):
            _check_item(statements, node, base, key)
        case ast.BinOp(left=left, op=division, right=right):
            _check_divisor(statements, node, (left, right), division)
        case _:
            raise TypeError(node)


def named_item(statements: Statements, node: ast.Subscript, found: TypedQuery) -> TypedQuery:
    """Emit the test for an item of a dict that `counts[name] += 1` or `groups[name].append(n)`
    reads and changes. `found` is the item.
    """
    place = statements.expressions.inside("the place of a change")
    if not is_caught(place, "KeyError") or "KeyError" not in found.fails:
        return found
    owner, key = place.lower(node.value), place.lower(node.slice)
    is_known = isinstance(owner.type, DictOf)
    test = has_item(owner, key)
    if not (is_known and is_name(owner.query) and is_name(key.query)) or test is None:
        return found
    _require(statements, node, test, KeyError, _written_key(statements, node, key))
    return found._replace(fails=found.fails - {"KeyError"})


def _check_item(statements: Statements, node: ast.Subscript, base: ast.expr, key: ast.expr) -> None:
    owner = statements.expressions.lower(base)
    place = statements.expressions.lower(key)
    if is_refused(owner.type, place.type):
        return
    owner, place = (_operand(statements, one) for one in (base, key))
    if owner.type == UNKNOWN:
        kind = "object" if is_text(place.type) else "array"
        owner = _kept(statements, as_kind(owner, kind, "TypeError"), base)
    test = has_item(owner, place)
    if test is None:
        return
    if isinstance(owner.type, DictOf):
        _require(statements, node, test, KeyError, _written_key(statements, node, place))
    else:
        kind = "string" if is_text(owner.type) else "list"
        text = TypedQuery(Constant(f"{kind} index out of range"), STR)
        _require(statements, node, test, IndexError, ((), text))
    _keep_value(statements, node)


def _check_divisor(
    statements: Statements,
    node: ast.BinOp,
    operands: tuple[ast.expr, ast.expr],
    division: ast.operator,
) -> None:
    left, right = (_operand(statements, operand) for operand in operands)
    if is_refused(left.type, right.type) or not may_divide_by_zero(division, left, right):
        return
    divisor = right.query
    if right.type != BOOL:
        test: QueryTree = Binary("!=", divisor, Constant(0))
    else:
        test = divisor
    is_float = FLOAT in (left.type, right.type)
    text = TypedQuery(Constant(_text_of_division(division, is_float=is_float)), STR)
    _require(statements, node, test, ZeroDivisionError, ((), text))
    _keep_value(statements, node)


def _operand(statements: Statements, node: ast.expr) -> TypedQuery:
    found = statements.expressions.lower(node)
    if is_refused(found.type) or is_name(found.query):
        return found
    return _kept(statements, found, node)


def _kept(statements: Statements, value: TypedQuery, node: ast.expr) -> TypedQuery:
    """Evaluate an operand before the test, and use its value in place of `node`."""
    found = statements.hoisted[node] = statements.kept(value, node, "operand")
    return found


def _keep_value(statements: Statements, node: ast.expr) -> None:
    """Evaluate `node` right after its test, before a later step changes its operands."""
    found = statements.expressions.lower(node)
    value = TypedQuery(found.query, found.type)
    statements.hoisted[node] = statements.kept(value, node, "item")


def _require(
    statements: Statements,
    node: ast.expr,
    test: QueryTree,
    error: type[Exception],
    cause: tuple[StatementBlock, TypedQuery],
) -> None:
    """Emit a test that raises `error` when it is false. The statements of `cause` make its text."""
    before, text = cause
    origin = statements.origin(node, error.__name__)
    failed = (*before, Raise(origin, error, text))
    place = statements.origin(node, f"has {statements.unit.text(node)} a value?")
    statements.emit(If(place, TypedQuery(test, BOOL), (), failed))


def _written_key(
    statements: Statements, node: ast.expr, key: TypedQuery
) -> tuple[StatementBlock, TypedQuery]:
    """Return the text of a KeyError, which is `repr(key)`, and the step that makes it."""
    if isinstance(key.query, Constant):
        return (), TypedQuery(Constant(repr(key.query.value)), STR)
    if key.type == INT:
        return (), TypedQuery(written(key), STR)
    step = library_task("str.__repr__")
    assert step is not None
    variable = statements.scope.name("key", (node, "key"))
    given = TypedQuery(ObjectOf((("self", key.query),)), NONE)
    origin = statements.origin(node, "repr(key)")
    made = StepStatement(origin, TaskAction(step, given), (Target(variable),))
    return (made,), TypedQuery(Variable(variable), STR)


_DIVISIONS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = MappingProxyType(
    {ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
)


def _text_of_division(division: ast.operator, *, is_float: bool) -> str:
    """Return the text of Python's error, which differs between its versions."""
    zero = 0.0 if is_float else 0
    try:
        _DIVISIONS[type(division)](zero, zero)
    except ZeroDivisionError as error:
        return str(error)
    raise TypeError(division)
