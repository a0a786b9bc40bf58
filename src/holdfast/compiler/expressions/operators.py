"""Operators, comparisons and truth: the pairs of types that have an exact JSONata form."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import product
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, Unit, fails_of
from holdfast.compiler.expressions.durations import in_seconds, is_duration
from holdfast.compiler.expressions.moments import combined_moments
from holdfast.compiler.expressions.python_values import operand_help
from holdfast.compiler.expressions.query import (
    FALSE,
    NULL,
    TRUE,
    ArrayOf,
    Binary,
    Block,
    Conditional,
    Constant,
    FunctionLiteral,
    Negative,
    QueryTree,
    RangeOf,
    Variable,
    failure,
    hold,
    invoke,
    is_kind,
    mapped,
)
from holdfast.compiler.expressions.remainders import float_floor, float_modulo
from holdfast.compiler.expressions.set_values import combined_sets
from holdfast.compiler.expressions.unknowns import (
    added,
    as_numeric,
    number_of,
    number_or_any,
    truth_of_any,
)
from holdfast.compiler.types.iso import iso_of
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    ELAPSED,
    FLOAT,
    INT,
    NEVER,
    NONE,
    REFUSED,
    SECRET,
    STR,
    UNKNOWN,
    WRITTEN_DURATION,
    DictOf,
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    SetOf,
    TextForm,
    TupleOf,
    Type,
    Union,
    as_text,
    describe,
    is_numeric,
    is_refused,
    is_text,
    join,
    join_all,
    may_be_none,
    members_of,
    without_none,
)

SYMBOLS: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.Pow: "**",
        ast.BitOr: "|",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
    }
)
_NO_FORM: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.MatMult: "@",
        ast.BitAnd: "&",
        ast.BitXor: "^",
        ast.LShift: "<<",
        ast.RShift: ">>",
    }
)
#: A help text shows `x` in place of an expression that is longer than this, so that the text stays
#: readable.
_LONG: Final = 40
_PURE_HELP: Final = "call it inside a @pure function"


# Arithmetic.


def arithmetic(
    unit: Unit, node: ast.AST, operator: ast.operator, left: TypedQuery, right: TypedQuery
) -> TypedQuery:
    """Lower `left operator right`. A refusal points to `node`."""
    if is_refused(left.type, right.type):
        return REFUSED_EXPRESSION
    symbol = SYMBOLS.get(type(operator))
    if symbol in ("+", "*"):
        left, right = (one._replace(type=as_text(one.type)) for one in (left, right))
    if isinstance(left.type, SetOf) and isinstance(right.type, SetOf):
        joined = combined_sets(symbol or _NO_FORM[type(operator)], left, right)
        if joined is not None:
            return joined
    if symbol is None:
        message = f"the operator `{_NO_FORM[type(operator)]}` has no exact JSONata form"
        return unit.refused(node, "HF002", message, _PURE_HELP)
    if NEVER in (left.type, right.type):
        # An item of an empty list does not exist, so the operation has no result. Evaluate both
        # operands all the same, because one of them may fail.
        return TypedQuery(ArrayOf((left.query, right.query)), NEVER, fails_of(left, right))
    if UNKNOWN in (left.type, right.type):
        with_any = _with_unknown(symbol, as_number(left), as_number(right))
        if with_any is None:
            return _unknown_operand(unit, node, symbol)
        query, type_, fails = with_any
        return TypedQuery(query, type_, fails | fails_of(left, right))
    left, right = in_seconds(left), in_seconds(right)
    if symbol in _NUMERIC:
        left, right = as_number(left), as_number(right)
    found = _combine(symbol, left, right) or combined_moments(symbol, left, right)
    if found is None:
        return _without_form(unit, node, symbol, left.type, right.type)
    query, type_, fails = found
    return TypedQuery(query, type_, fails | fails_of(left, right))


_NUMERIC: Final = frozenset({"+", "-", "*", "/", "//", "%"})


def as_number(value: TypedQuery) -> TypedQuery:
    """Return a bool as the number that it is in Python, and any other value unchanged."""
    members = members_of(value.type)
    if BOOL not in members or not all(member in (BOOL, INT, FLOAT) for member in members):
        return value
    if value.type == BOOL:
        return value._replace(query=number_of(value.query), type=INT)

    def build(held: QueryTree) -> QueryTree:
        is_bool = is_kind(held, "boolean")
        return Conditional(is_bool, number_of(held), held)

    type_ = join_all(INT if member == BOOL else member for member in members)
    return value._replace(query=hold(value.query, build, "_bool"), type=type_)


def _as_f_string(unit: Unit, node: ast.AST) -> str:
    """Return the help that rewrites `"%s of %s" % (n, total)` as `f"{n} of {total}"`."""
    match node:
        case ast.BinOp(left=ast.Constant(value=str(text)), right=right):
            values = right.elts if isinstance(right, ast.Tuple) else [right]
            parts = re.split("%[sd]", text)
            if len(parts) == len(values) + 1 and not any("%" in part for part in parts):
                written = [f"{{{unit.text(value)}}}" for value in values]
                joined = "".join(map("".join, zip(parts, [*written, ""], strict=True)))
                return f'f"{joined}"'
    return 'f"{value}"'


def _without_form(unit: Unit, node: ast.AST, symbol: str, left: Type, right: Type) -> TypedQuery:
    message = f"`{symbol}` between {describe(left)} and {describe(right)} has no exact JSONata form"
    help_ = _PURE_HELP
    if DECIMAL in (left, right):
        help_ = "count in integers of the smallest unit (cents: int), or do it in a @pure function"
    elif isinstance(node, ast.BinOp) and left in (DATE, DATETIME) and right == INT:
        help_ = f"{unit.text(node.left)} {symbol} days({unit.text(node.right)})"
    elif symbol == "%" and is_text(left):
        help_ = _as_f_string(unit, node)
    elif symbol == "**":
        help_ = "n ** 2, with a constant exponent from 0 to 16; in a loop, `pause = pause * 2`"
    else:
        help_ = operand_help(unit, node, symbol, left, right) or help_
    return unit.refused(node, "HF040", message, help_)


def _with_unknown(symbol: str, left: TypedQuery, right: TypedQuery) -> _Combined | None:
    """Lower an operator with a value of unknown type, which is a number in the run, or for `+` a
    text or a list.
    """
    known = right.type if left.type == UNKNOWN else left.type
    fails = frozenset({"TypeError", "ZeroDivisionError"})
    if symbol == "+" and not is_numeric(known):
        total = added(left, right)
        return None if total is None else (*total, fails)
    if symbol not in _NUMERIC or not (known == UNKNOWN or is_numeric(known)):
        return None
    left, right = as_numeric(left), as_numeric(right)
    if symbol in ("//", "%"):
        build = float_floor if symbol == "//" else float_modulo
        found: _Combined | None = _divide(left.query, right.query, FLOAT, build)
        type_: Type = FLOAT if FLOAT in (left.type, right.type) else UNKNOWN
    else:
        found = _combine(symbol, left, right)
        type_ = UNKNOWN if found is None else number_or_any(found[1])
    return None if found is None else (found[0], type_, fails)


def _unknown_operand(unit: Unit, node: ast.AST, symbol: str) -> TypedQuery:
    return unit.refused(
        node,
        "HF046",
        f"`{symbol}` on a value of unknown type: a sum, a text or a list?",
        "annotate the type, e.g. `total: int = …`, or the field or result that it comes from",
    )


_Combined = tuple[QueryTree, Type, frozenset[str]]
_CANNOT_FAIL: Final[frozenset[str]] = frozenset()


def _combine(symbol: str, left: TypedQuery, right: TypedQuery) -> _Combined | None:
    a, b = left.query, right.query
    both_numbers = is_numeric(left.type) and is_numeric(right.type)
    if symbol == "+" and is_text(left.type) and is_text(right.type):
        return Binary("&", a, b), STR, _CANNOT_FAIL
    if symbol == "+" and isinstance(left.type, ListOf) and isinstance(right.type, ListOf):
        if left.type.is_tuple != right.type.is_tuple:
            return None
        return invoke("append", a, b), join(left.type, right.type), _CANNOT_FAIL
    if symbol == "|" and isinstance(left.type, DictOf) and isinstance(right.type, DictOf):
        type_ = join(left.type, right.type)
        merged = invoke("merge", ArrayOf((a, b)))
        return (merged, type_, _CANNOT_FAIL) if isinstance(type_, DictOf) else None
    if symbol == "*" and {left.type, right.type} > {INT}:
        times = _repeated(left, right) if right.type == INT else _repeated(right, left)
        if times is not None:
            return times
    if symbol == "**" and left.type == INT:
        return _power(a, right)
    if symbol in ("+", "-", "*") and both_numbers:
        return Binary(symbol, a, b), _number(left.type, right.type), _CANNOT_FAIL
    if symbol in ("+", "-") and left.type == right.type == DURATION:
        return Binary(symbol, a, b), DURATION, _CANNOT_FAIL
    if symbol == "*" and {left.type, right.type} == {DURATION, INT}:
        return Binary(symbol, a, b), DURATION, _CANNOT_FAIL
    if symbol in ("/", "//", "%") and {left.type, right.type} <= {DURATION, ELAPSED}:
        return _ratio(symbol, left, right)
    if symbol == "/" and both_numbers:
        return _divide(a, b, FLOAT, lambda x, y: Binary("/", x, y))
    if symbol in ("//", "%") and both_numbers:
        if _number(left.type, right.type) == FLOAT:
            build = float_floor if symbol == "//" else float_modulo
            return _divide(a, b, FLOAT, build)
        return _divide(a, b, INT, _floor if symbol == "//" else _modulo)
    return None


def _ratio(symbol: str, left: TypedQuery, right: TypedQuery) -> _Combined | None:
    """Lower `/`, `//` and `%` of two durations. Python divides whole microseconds."""
    a, b = left.query, right.query
    if left.type != right.type or left.type == ELAPSED:
        a, b = _microseconds(left), _microseconds(right)
    match symbol:
        case "/":
            return _divide(a, b, FLOAT, lambda x, y: Binary("/", x, y))
        case "//":
            return _divide(a, b, INT, _floor)
        case _ if left.type == right.type == DURATION:
            return _divide(a, b, DURATION, _modulo)
        case _:
            return None


def _microseconds(value: TypedQuery) -> QueryTree:
    if isinstance(value.query, Constant) and isinstance(value.query.value, int):
        return Constant(value.query.value * 1_000_000)
    if value.type != ELAPSED:
        return Binary("*", value.query, Constant(1_000_000))

    def build(seconds: QueryTree) -> QueryTree:
        # The fraction is multiplied alone: the product of more than 136 years is inexact by more
        # than half of a microsecond.
        whole = invoke("floor", seconds)
        fraction = Binary("*", Binary("-", seconds, whole), Constant(1_000_000))
        return Binary("+", Binary("*", whole, Constant(1_000_000)), invoke("round", fraction))

    return hold(value.query, build, "_elapsed")


def _repeated(value: TypedQuery, times: TypedQuery) -> _Combined | None:
    """Lower `"ab" * n` and `xs * n`."""
    numbers = RangeOf(Constant(1), times.query)
    if isinstance(value.type, ListOf):
        done, names = Variable("_done"), ("_done", "_n")

        def listed(held: QueryTree) -> QueryTree:
            longer = FunctionLiteral(names, invoke("append", done, held))
            return invoke("reduce", numbers, longer, ArrayOf(()))

        return hold(value.query, listed, "_list"), value.type, _CANNOT_FAIL
    if not is_text(value.type):
        return None

    def texts(held: QueryTree) -> QueryTree:
        return invoke("join", mapped(numbers, ("_n",), held))

    return hold(value.query, texts, "_text"), STR, _CANNOT_FAIL


_EXPONENT_MAX: Final = 16


def _power(base: QueryTree, exponent: TypedQuery) -> _Combined | None:
    """Lower `n ** 3` to `n * n * n`, and `2 ** n` to a product of `n` factors."""
    match exponent.query:
        case Constant(bool()):
            return None
        case Constant(0):
            return Constant(1), INT, _CANNOT_FAIL
        case Constant(int(times)) if 0 < times <= _EXPONENT_MAX:
            pass
        case _ if exponent.type == INT:
            return _computed_power(base, exponent.query)
        case _:
            return None

    def product(held: QueryTree) -> QueryTree:
        found = held
        for _ in range(times - 1):
            found = Binary("*", found, held)
        return found

    return hold(base, product, "_base"), INT, _CANNOT_FAIL


def _computed_power(base: QueryTree, exponent: QueryTree) -> _Combined:
    """Lower `2 ** n`. A negative exponent gives a float in Python; here it is an error, so that the
    type of the result is known.
    """

    def build(times: QueryTree, factor: QueryTree) -> QueryTree:
        longer = FunctionLiteral(("_power", "_n"), Binary("*", Variable("_power"), factor))
        numbers = RangeOf(Constant(1), times)
        product = invoke("reduce", numbers, longer, Constant(1))
        is_negative = Binary("<", times, Constant(0))
        return Conditional(is_negative, failure("ValueError: a negative exponent"), product)

    query = hold(
        exponent,
        lambda times: hold(base, lambda factor: build(times, factor), "_base"),
        "_times",
    )
    return query, INT, frozenset({"ValueError"})


def divided(a: TypedQuery, b: TypedQuery) -> _Combined:
    """Lower `divmod(a, b)` of two ints."""
    dividend, divisor = Variable("_a"), Variable("_b")
    quotient, _, _ = _divide(dividend, divisor, INT, _floor)
    pair = ArrayOf((quotient, _modulo(dividend, divisor)))
    query = Block("_a", a.query, Block("_b", b.query, pair))
    return query, TupleOf((INT, INT)), frozenset({"ZeroDivisionError"})


def _number(left: Type, right: Type) -> Type:
    """Return the type of the result. One of `int | float` may be an int, if the other may be."""
    pairs = product(members_of(left), members_of(right))
    return join_all([FLOAT if FLOAT in pair else INT for pair in pairs])


def _floor(a: QueryTree, b: QueryTree) -> QueryTree:
    return invoke("floor", Binary("/", a, b))


def _modulo(a: QueryTree, b: QueryTree) -> QueryTree:
    """Lower `%`: in JSONata the result has the sign of the dividend, in Python that of the
    divisor.
    """
    return hold(a, lambda held: Binary("-", held, Binary("*", b, _floor(held, b))), "_dividend")


_DIVISIONS: Final = (ast.Div, ast.FloorDiv, ast.Mod)


def may_divide_by_zero(operator: ast.operator, left: TypedQuery, right: TypedQuery) -> bool:
    """Return True for a division of numbers, of which Python's error has one text."""
    is_known = isinstance(right.query, Constant) and bool(right.query.value)
    are_numbers = {left.type, right.type} <= {BOOL, INT, FLOAT}
    return isinstance(operator, _DIVISIONS) and are_numbers and not is_known


def _divide(
    a: QueryTree, b: QueryTree, type_: Type, build: Callable[[QueryTree, QueryTree], QueryTree]
) -> _Combined:
    if isinstance(b, Constant) and b.value:
        return build(a, b), type_, _CANNOT_FAIL
    query = hold(
        b,
        lambda held: Conditional(
            Binary("=", held, Constant(0)), failure("ZeroDivisionError"), build(a, held)
        ),
        "_divisor",
    )
    return query, type_, frozenset({"ZeroDivisionError"})


def negate(unit: Unit, node: ast.UnaryOp, operand: TypedQuery) -> TypedQuery:
    if is_refused(operand.type):
        return REFUSED_EXPRESSION
    if operand.type == UNKNOWN:
        number = as_numeric(operand)
        return TypedQuery(Negative(number.query), UNKNOWN, number.fails)
    operand = as_number(operand)
    if not is_numeric(operand.type):
        return _refused_sign(unit, node, "-", operand.type)
    if isinstance(operand.query, Constant) and isinstance(operand.query.value, int | float):
        return TypedQuery(Constant(-operand.query.value), operand.type)
    return TypedQuery(Negative(operand.query), operand.type, operand.fails)


def positive(unit: Unit, node: ast.UnaryOp, operand: TypedQuery) -> TypedQuery:
    operand = as_number(operand)
    if is_refused(operand.type) or is_numeric(operand.type):
        return operand
    return _refused_sign(unit, node, "+", operand.type)


def _refused_sign(unit: Unit, node: ast.UnaryOp, sign: str, type_: Type) -> TypedQuery:
    message = f"`{sign}` of {describe(type_)} has no JSONata form"
    help_ = f"{sign}int({unit.text(node.operand)})" if is_text(type_) else _PURE_HELP
    return unit.refused(node, "HF040", message, help_)


# Truth.


def truth(unit: Unit, node: ast.expr, value: TypedQuery) -> TypedQuery:
    """Return the truth of the value by the rules of Python."""
    query = _truth(value.query, value.type)
    if query is None:
        return unit.refused(
            node,
            "HF041",
            f"the JSON of {describe(value.type)} does not decide whether it is true",
            _truth_help(unit.text(node)),
        )
    if value.fails and isinstance(query, Constant):
        # Such a value is always true, but its computation may fail. So the query evaluates the
        # value and then gives true.
        query = Block("_v", value.query, query)
    return TypedQuery(query, BOOL, value.fails)


def _truth_help(text: str) -> str:
    name = text if len(text) < _LONG and "(" not in text else "x"
    tests = f"`{name} is not None`, `{name} == …`, `len({name}) > 0`"
    return f"compare explicitly: {tests}; or annotate the type"


def _truth(query: QueryTree, type_: Type) -> QueryTree | None:
    if may_be_none(type_):
        return _truth_of_optional(query, type_)
    if is_numeric(type_):
        return Binary("!=", query, Constant(0))
    if is_text(as_text(type_)):
        return Binary("!=", query, Constant(""))
    match type_:
        case Union() if is_duration(type_):
            zeros = ArrayOf((Constant(0), Constant(iso_of(timedelta()))))
            return invoke("not", Binary("in", query, zeros))
        case Union(members) if all(_truth(query, member) == TRUE for member in members):
            return TRUE
        case Union(members):
            return truth_of_any(query) if all(map(_has_truth_of_json, members)) else None
        case ListOf() | SetOf():
            return Binary(">", invoke("count", query), Constant(0))
        case TupleOf(elements):
            return TRUE if elements else FALSE
        case ErrorOf():
            return TRUE
        case DictOf():
            return Binary(">", invoke("count", invoke("keys", query)), Constant(0))
        case EnumOf(cls) if not issubclass(cls, str | int):
            return TRUE
        case ModelOf(model) if not hasattr(model, "__bool__") and not hasattr(model, "__len__"):
            return TRUE
        case _ if type_ == WRITTEN_DURATION:
            return Binary("!=", query, Constant(iso_of(timedelta())))
        case TextForm() if type_ not in (DECIMAL, SECRET):
            return TRUE
        case _ if type_ == DURATION:
            return Binary("!=", query, Constant(0))
        case _ if type_ in (BOOL, REFUSED):
            return query
        case _ if type_ == NONE:
            return FALSE
        case _ if type_ == UNKNOWN:
            return truth_of_any(query)
        case _:
            return None


def _has_truth_of_json(type_: Type) -> bool:
    """Return True when each value of the type is as true in Python as its JSON: not for `PT0S`,
    which is the JSON of a timedelta that is false.
    """
    match type_:
        case ListOf() | SetOf() | DictOf() | TupleOf():
            return True
        case EnumOf(cls):
            return _truth(NULL, type_) == TRUE and all(member.value for member in cls)
        case TextForm():
            return _truth(NULL, type_) == TRUE
        case _:
            return type_ in (BOOL, UNKNOWN) or is_numeric(type_) or is_text(type_)


def _truth_of_optional(query: QueryTree, type_: Type) -> QueryTree | None:
    if _truth(NULL, without_none(type_)) is None:
        return None

    def build(held: QueryTree) -> QueryTree:
        inner = _truth(held, without_none(type_))
        assert inner is not None
        is_present = Binary("!=", held, NULL)
        return is_present if inner == TRUE else Conditional(is_present, inner, FALSE)

    return hold(query, build)
