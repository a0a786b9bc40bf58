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
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.api.library import library_task
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.arguments import is_name
from holdfast.compiler.expressions.dict_keys import written
from holdfast.compiler.expressions.durations import WHOLE_SECONDS, is_whole, with_fraction
from holdfast.compiler.expressions.moments import (
    MIXED_DIFFERENCE,
    OUT_OF_RANGE,
    are_moments,
    has_offset,
    mixed_text,
    moment_text,
    moves_moment,
    stays_in_range,
)
from holdfast.compiler.expressions.operators import may_divide_by_zero
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    ObjectOf,
    QueryTree,
    Variable,
    invoke,
)
from holdfast.compiler.expressions.subscripts import has_item
from holdfast.compiler.expressions.unknowns import as_kind
from holdfast.compiler.ir import If, Raise, StatementBlock, StepStatement, Target, TaskAction
from holdfast.compiler.library_calls import is_caught
from holdfast.compiler.rewriting import load
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    UNKNOWN,
    WRITTEN_DURATION,
    DictOf,
    ListOf,
    is_refused,
    is_text,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


#: The text of an error, or the statements that make it and its value.
_Cause: TypeAlias = str | tuple[StatementBlock, TypedQuery]


def lower_named_failure(statements: Statements, node: ast.expr) -> None:
    """Emit the test for an expression and its value. The compiler lowers `node` as it stands where
    it cannot fail after all.
    """
    match node:
        case ast.Subscript(value=base, slice=key):
            _check_item(statements, node, base, key)
        case ast.BinOp(left=left, op=operator, right=right):
            _check_whole(statements, (left, right))
            _check_moments(statements, node, (left, right), operator)
            _check_divisor(statements, node, (left, right), operator)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            _check_whole(statements, (left, right))
            _check_moments(statements, node, (left, right), operator)
        case ast.Call(func=ast.Attribute(value=items, attr="index"), args=[wanted]):
            _check_member(statements, node, items, wanted)
        case ast.Call(args=[items]) if statements.unit.outside(node.func) in (min, max):
            _check_extreme(statements, node, items)
        case ast.Call(args=[wanted]):
            _check_value_of_enum(statements, node, wanted)
        case _:
            raise TypeError(node)


def named_item(statements: Statements, node: ast.Subscript, found: TypedQuery) -> TypedQuery:
    """Emit the test for an item of a dict or list that `counts[name] += 1` or
    `groups[name].append(n)` reads and changes. `found` is the item.
    """
    place = statements.expressions.inside("the place of a change")
    named = [name for name in ("IndexError", "KeyError") if is_caught(place, name)]
    name = next((name for name in named if name in found.fails), None)
    if name is None:
        return found
    owner, key = place.lower(node.value), place.lower(node.slice)
    test = has_item(owner, key)
    if test is None or not (is_name(owner.query) and is_name(key.query)):
        return found
    if name == "IndexError":
        require(statements, node, test, IndexError, "list index out of range")
    elif isinstance(owner.type, DictOf):
        require(statements, node, test, KeyError, written_key(statements, node, key))
    else:
        return found
    return found._replace(fails=found.fails - {name})


def named_place(
    statements: Statements,
    node: ast.Subscript,
    items: TypedQuery,
    index: TypedQuery,
    new: TypedQuery,
) -> tuple[TypedQuery, TypedQuery] | None:
    """Emit the test for `xs[i] = v`, if a handler names its IndexError. Return the index and the
    new value, which are computed before the test; None when there is no such handler.
    """
    is_named = is_caught(statements.expressions, "IndexError")
    if not is_named or not isinstance(items.type, ListOf) or index.type != INT:
        return None
    if new.fails:
        new = statements.kept(new, node, "new_item")
    if not is_name(index.query):
        index = statements.kept(index, node, "index")
    test = has_item(items, index)
    assert test is not None
    require(statements, node, test, IndexError, "list assignment index out of range")
    return index, new


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
        require(statements, node, test, KeyError, written_key(statements, node, place))
    else:
        kind = "string" if is_text(owner.type) else "list"
        require(statements, node, test, IndexError, f"{kind} index out of range")
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
    test = divisor if right.type == BOOL else Binary("!=", divisor, Constant(0))
    is_float = FLOAT in (left.type, right.type)
    text = _text_of_division(division, is_float=is_float)
    require(statements, node, test, ZeroDivisionError, text)
    _keep_value(statements, node)


def _check_whole(statements: Statements, operands: tuple[ast.expr, ast.expr]) -> None:
    """Test that an operand which is a duration of a parameter or field is whole seconds."""
    for operand in operands:
        if statements.expressions.lower(operand).type != WRITTEN_DURATION:
            continue
        found = _operand(statements, operand)
        whole = checked(statements, with_fraction(found), operand, is_whole, WHOLE_SECONDS)
        statements.hoisted[operand] = found if whole is None else whole


def _check_moments(
    statements: Statements,
    node: ast.BinOp | ast.Compare,
    operands: tuple[ast.expr, ast.expr],
    operator: ast.operator | ast.cmpop,
) -> None:
    """Test before `moment + duration` that Python has such a date. Test before the difference or
    the order of two moments that both have a time zone, or neither has.
    """
    left, right = (_operand(statements, operand) for operand in operands)
    if is_refused(left.type, right.type):
        return
    error: type[Exception] = OverflowError
    if isinstance(operator, ast.operator) and moves_moment(operator, left, right):
        symbol = "+" if isinstance(operator, ast.Add) else "-"
        test, text = stays_in_range(symbol, left, right), OUT_OF_RANGE
    elif are_moments(left, right):
        test = Binary("=", has_offset(moment_text(left)), has_offset(moment_text(right)))
        is_order = isinstance(node, ast.Compare)
        error, text = TypeError, mixed_text(left.type) if is_order else MIXED_DIFFERENCE
    else:
        return
    require(statements, node, test, error, text)
    _keep_value(statements, node)


def checked(
    statements: Statements,
    value: TypedQuery,
    node: ast.expr,
    test: Callable[[QueryTree], QueryTree],
    text: str,
) -> TypedQuery | None:
    """Emit a check of an argument that raises ValueError, if a handler names that error, and return
    the argument; None when there is no such handler.
    """
    if not is_caught(statements.expressions, "ValueError"):
        return None
    held = value if is_name(value.query) else statements.kept(value, node, "argument")
    require(statements, node, test(held.query), ValueError, text)
    return held


def _check_member(
    statements: Statements, node: ast.Call, items: ast.expr, wanted: ast.expr
) -> None:
    """Test `wanted in items` before `items.index(wanted)`, of a list or a text."""
    owner, sought = (_operand(statements, operand) for operand in (items, wanted))
    if is_refused(owner.type, sought.type):
        return
    is_list = not is_text(owner.type)
    written = _text_of(lambda: list[int]().index(0) if is_list else "".index("a"))
    text = _text_with(statements, node, sought, written)
    if text is not None:
        test = is_member(statements, wanted, items)
        require(statements, node, test, ValueError, text)
        _keep_value(statements, node)


def _check_extreme(statements: Statements, node: ast.Call, items: ast.expr) -> None:
    """Test before `max(items)` that the list has an item."""
    found = _operand(statements, items)
    if is_refused(found.type):
        return
    function: Callable[[list[int]], int] = max
    if statements.unit.outside(node.func) is min:
        function = min
    text = TypedQuery(Constant(_text_of(lambda: function([]))), STR)
    test = Binary(">", invoke("count", found.query), Constant(0))
    require(statements, node, test, ValueError, ((), text))
    _keep_value(statements, node)


def named_removal(
    statements: Statements, node: ast.expr, owner: TypedQuery, key: TypedQuery
) -> TypedQuery | None:
    """Emit the test for `del xs[i]`, `del d[key]`, `xs.pop(i)` or `d.pop(key)`, if a handler names
    its error. Return the key, which is computed before the test; None when there is no such
    handler.
    """
    error: type[Exception] = KeyError if isinstance(owner.type, DictOf) else IndexError
    if not is_caught(statements.expressions, error.__name__) or has_item(owner, key) is None:
        return None
    key = key if is_name(key.query) else statements.kept(key, node, "removed")
    test = has_item(owner, key)
    assert test is not None
    text = ((), _no_place(node, owner)) if error is IndexError else None
    require(statements, node, test, error, text or written_key(statements, node, key))
    return key


def _no_place(node: ast.expr, owner: TypedQuery) -> TypedQuery:
    """Return the text of the IndexError of `del xs[i]` or of `xs.pop(i)`."""
    if isinstance(node, ast.Subscript):
        return TypedQuery(Constant("list assignment index out of range"), STR)
    is_empty = Binary("=", invoke("count", owner.query), Constant(0))
    texts = Constant("pop from empty list"), Constant("pop index out of range")
    return TypedQuery(Conditional(is_empty, *texts), STR)


def require_member(statements: Statements, node: ast.Call, name: str, wanted: ast.expr) -> bool:
    """Emit the test for `xs.remove(wanted)`, if a handler names its ValueError."""
    if not is_caught(statements.expressions, "ValueError"):
        return False
    if is_refused(_operand(statements, wanted).type):
        return False
    items = ast.copy_location(load(name), node)
    text = _text_of(lambda: list[int]().remove(0))
    require(statements, node, is_member(statements, wanted, items), ValueError, text)
    return True


def is_member(statements: Statements, wanted: ast.expr, items: ast.expr) -> QueryTree:
    test = ast.copy_location(ast.Compare(wanted, [ast.In()], [items]), wanted)
    return statements.expressions.truth(test).query


def _check_value_of_enum(statements: Statements, node: ast.Call, wanted: ast.expr) -> None:
    """Test whether a member has the value, before `Colour(value)`."""
    sought = _operand(statements, wanted)
    cls = statements.unit.outside(node.func)
    assert isinstance(cls, type)
    assert issubclass(cls, Enum)
    text = _text_with(statements, node, sought, f"0 is not a valid {cls.__qualname__}")
    if is_refused(sought.type) or text is None:
        return
    known = ArrayOf(tuple(Constant(member.value) for member in cls))
    require(statements, node, Binary("in", sought.query, known), ValueError, text)
    _keep_value(statements, node)


def _text_with(
    statements: Statements, node: ast.expr, value: TypedQuery, text: str
) -> _Cause | None:
    """Return `text` with the value in place of `0`; None when the value has no exact text."""
    before, _, after = text.partition("0 ")
    if before or not after:
        return text
    rest = Constant(f" {after}")
    if value.type == INT:
        shown: QueryTree = invoke("string", value.query)
        return (), TypedQuery(Binary("&", shown, rest), STR)
    if is_text(value.type):
        made, key = written_key(statements, node, value)
        return made, TypedQuery(Binary("&", key.query, rest), STR)
    return None


def text_of_size(size: QueryTree, count: int, *, is_least: bool) -> QueryTree:
    """Return the text of Python's error when a list has another number of items."""
    few = _text_of(lambda: _unpack(count, -1, is_least=is_least))
    if is_least:
        return _with_number(few, count - 1, size)
    is_few = Binary("<", size, Constant(count))
    many = _text_of(lambda: _unpack(count, 1, is_least=False))
    texts = _with_number(few, count - 1, size), _with_number(many, count + 1, size)
    return Conditional(is_few, *texts)


def _unpack(count: int, more: int, *, is_least: bool) -> None:
    names = [f"n{place}" for place in range(count)] + (["*rest"] if is_least else [])
    exec(f"({', '.join(names)},) = [0] * {count + more}", {})  # noqa: S102 - our own text


def _with_number(text: str, number: int, size: QueryTree) -> QueryTree:
    """Return the text with the size in place of the number after `got`, which it may lack."""
    before, found, after = text.partition(f"got {number}")
    if not found:
        return Constant(text)
    shown = invoke("string", size)
    return Binary("&", Binary("&", Constant(f"{before}got "), shown), Constant(after))


def _text_of(call: Callable[[], object]) -> str:
    """Return the text of the ValueError that a call raises. It differs between the versions of
    Python.
    """
    try:
        call()
    except ValueError as error:
        return str(error)
    raise TypeError(call)


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


def require(
    statements: Statements,
    node: ast.expr,
    test: QueryTree,
    error: type[Exception],
    cause: _Cause,
) -> None:
    """Emit a test that raises `error` when it is false."""
    before, text = ((), TypedQuery(Constant(cause), STR)) if isinstance(cause, str) else cause
    origin = statements.origin(node, error.__name__)
    failed = (*before, Raise(origin, error, text))
    place = statements.origin(node, f"has {statements.unit.text(node)} a value?")
    statements.emit(If(place, TypedQuery(test, BOOL), (), failed))


def written_key(
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
