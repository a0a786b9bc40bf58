"""The functions that an expression may call, as a table from the function to its rule."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from holdfast.dsl import surface
from holdfast.dsl.context import REFUSED_EXPRESSION, Expression, Lowering, fails_of
from holdfast.dsl.query import (
    FALSE,
    TRUE,
    ArrayOf,
    Binary,
    Call,
    Conditional,
    Constant,
    Flat,
    Query,
    guard,
)
from holdfast.dsl.text import text_of
from holdfast.dsl.types import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    NEVER,
    REFUSED,
    STR,
    DictOf,
    ListOf,
    TextOf,
    TupleOf,
    Type,
    describe,
    element_of,
    is_numeric,
    is_refused,
    is_text,
    join_all,
)

Rule: TypeAlias = Callable[[Lowering, ast.Call], Expression]

_PURE_HELP: Final = "call it inside a @pure function"


def call_function(lowering: Lowering, node: ast.Call, function: Any) -> Expression | None:
    """The call of a function of the table, or None when it is not in the table."""
    rule = _RULES.get(function) if callable(function) else None
    return None if rule is None else rule(lowering, node)


def refuse_call(lowering: Lowering, node: ast.Call, why: str, help_: str) -> Expression:
    name = lowering.unit.text(node.func)
    return lowering.unit.refused(node, "HF002", f"`{name}()` {why}", help_)


def _single(lowering: Lowering, node: ast.Call) -> Expression | None:
    """The only argument; refuses any other number."""
    if len(node.args) == 1 and not node.keywords:
        return lowering.lower(node.args[0])
    name = lowering.unit.text(node.func)
    message = f"`{name}()` takes one argument in a workflow"
    lowering.unit.refuse(node, "HF008", message, f"{name}(value)")
    return None


def _no_form(lowering: Lowering, node: ast.Call, type_: Type) -> Expression:
    if is_refused(type_):
        return REFUSED_EXPRESSION
    return refuse_call(
        lowering, node, f"of {describe(type_)} has no exact JSONata form", _PURE_HELP
    )


# Sizes and numbers.


def _len(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node)
    if value is None:
        return REFUSED_EXPRESSION
    match value.type:
        case ListOf() | TupleOf():
            query: Query = Call("count", (value.query,))
        case DictOf():
            query = Call("count", (Call("keys", (value.query,)),))
        case type_ if is_text(type_):
            query = Call("length", (value.query,))
        case type_:
            return _no_form(lowering, node, type_)
    return Expression(query, INT, value.fails)


def _sum(lowering: Lowering, node: ast.Call) -> Expression:
    items = _items(lowering, node)
    if items is None:
        return REFUSED_EXPRESSION
    element = element_of(items.type)
    if element is None or not is_numeric(element):
        return _no_form(lowering, node, items.type)
    type_ = INT if element == NEVER else element
    return Expression(Call("sum", (items.query,)), type_, items.fails)


def _items(lowering: Lowering, node: ast.Call) -> Expression | None:
    """The only argument, as a list."""
    if len(node.args) == 1 and not node.keywords:
        return lowering.iterable(node.args[0])
    name = lowering.unit.text(node.func)
    lowering.unit.refuse(
        node, "HF008", f"`{name}()` takes one list in a workflow", f"{name}(values)"
    )
    return None


def _extreme(function: str) -> Rule:
    def rule(lowering: Lowering, node: ast.Call) -> Expression:
        if node.keywords:
            return refuse_call(lowering, node, "takes no keywords in a workflow", _PURE_HELP)
        if len(node.args) > 1:
            return _extreme_of_arguments(lowering, node, function)
        items = _items(lowering, node)
        if items is None:
            return REFUSED_EXPRESSION
        element = element_of(items.type)
        if element is None or not is_numeric(element):
            return _no_form(lowering, node, items.type)
        message = f"ValueError: {function} of an empty list"
        query = guard(Call(function, (items.query,)), message)
        return Expression(query, element, items.fails | {"ValueError"})

    return rule


def _extreme_of_arguments(lowering: Lowering, node: ast.Call, function: str) -> Expression:
    values = [lowering.lower(argument) for argument in node.args]
    type_ = join_all(value.type for value in values)
    if not is_numeric(type_):
        return _no_form(lowering, node, type_)
    numbers = ArrayOf(tuple(value.query for value in values))
    return Expression(Call(function, (numbers,)), type_, fails_of(*values))


def _abs(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    return Expression(Call("abs", (value.query,)), value.type, value.fails)


def _round(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    return Expression(Call("round", (value.query,)), INT, value.fails)


# Conversions.


def _str(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node)
    return REFUSED_EXPRESSION if value is None else text_of(lowering.unit, node, value)


def _int(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    query = value.query
    if value.type == BOOL:
        return Expression(Conditional(query, Constant(1), Constant(0)), INT, value.fails)
    if value.type == INT:
        return value
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    is_negative = Binary("<", query, Constant(0))
    towards_zero = Conditional(is_negative, Call("ceil", (query,)), Call("floor", (query,)))
    return Expression(towards_zero, INT, value.fails)


def _float(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    return Expression(value.query, FLOAT, value.fails)


def _bool(lowering: Lowering, node: ast.Call) -> Expression:
    if len(node.args) == 1 and not node.keywords:
        return lowering.truth(node.args[0])
    return _single(lowering, node) or REFUSED_EXPRESSION


def _list(lowering: Lowering, node: ast.Call) -> Expression:
    if not node.args and not node.keywords:
        return Expression(ArrayOf(()), ListOf(NEVER))
    return _items(lowering, node) or REFUSED_EXPRESSION


def _sorted(lowering: Lowering, node: ast.Call) -> Expression:
    is_reverse = _reverse_flag(node)
    if is_reverse is None:
        help_ = "sort inside a @pure function"
        return refuse_call(lowering, node, "takes only `reverse=True` in a workflow", help_)
    items = lowering.iterable(node.args[0])
    element = element_of(items.type)
    if element == NEVER:
        return items
    if element is None or not (is_numeric(element) or is_text(element)):
        return _no_form(lowering, node, items.type)
    query: Query = Call("sort", (items.query,))
    if is_reverse:
        query = Call("reverse", (query,))
    return Expression(Flat(query), ListOf(element), items.fails)


def _reverse_flag(node: ast.Call) -> bool | None:
    match node:
        case ast.Call(args=[_], keywords=[]):
            return False
        case ast.Call(
            args=[_], keywords=[ast.keyword(arg="reverse", value=ast.Constant(value=bool(flag)))]
        ):
            return flag
        case _:
            return None


def _quantifier(function: str) -> Rule:
    def rule(lowering: Lowering, node: ast.Call) -> Expression:
        items = _items(lowering, node)
        if items is None:
            return REFUSED_EXPRESSION
        if element_of(items.type) not in (BOOL, NEVER):
            return _no_form(lowering, node, items.type)
        if items.fails:
            why = "stops early in Python but not in JSONata, and this condition may fail"
            return refuse_call(lowering, node, why, "use a loop, or a @pure function")
        if function == "any":
            return Expression(Binary("in", TRUE, items.query), BOOL)
        return Expression(Call("not", (Binary("in", FALSE, items.query),)), BOOL)

    return rule


# Durations: seconds, as a number.


def _duration(unit_seconds: int) -> Rule:
    def rule(lowering: Lowering, node: ast.Call) -> Expression:
        value = _single(lowering, node)
        if value is None or is_refused(value.type):
            return REFUSED_EXPRESSION
        return _scaled(lowering, node, value, unit_seconds)

    return rule


_UNIT_SECONDS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60}


def _timedelta(lowering: Lowering, node: ast.Call) -> Expression:
    """`timedelta(days=2)`: one keyword, so that the sum stays readable in the state machine."""
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg=str(name), value=amount)]) if (
            name == "seconds" or name in _UNIT_SECONDS
        ):
            scale = _UNIT_SECONDS.get(name, 1)
            return _scaled(lowering, node, lowering.lower(amount), scale)
        case _:
            help_ = "days(2) + hours(12)"
            return refuse_call(lowering, node, "takes one unit in a workflow", help_)


def _scaled(lowering: Lowering, node: ast.Call, value: Expression, scale: int) -> Expression:
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    match value.query:
        case Constant(int() | float() as amount) if is_numeric(value.type):
            total = amount * scale
            if total == int(total):
                return Expression(Constant(int(total)), DURATION)
        case query if value.type == INT:
            scaled = query if scale == 1 else Binary("*", query, Constant(scale))
            return Expression(scaled, DURATION, value.fails)
    return lowering.unit.refused(
        node, "HF052", "a duration must be a whole number of seconds", "seconds(90), minutes(5)"
    )


def _role(lowering: Lowering, node: ast.Call) -> Expression:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    match value:
        case Expression(Constant(str(name)), _, _):
            return Expression(Constant(surface.role(name)), TextOf((surface.role(name),)))
        case Expression(query, type_, fails) if is_text(type_):
            return Expression(Binary("&", Constant(surface.role("")), query), STR, fails)
        case _:
            return _no_form(lowering, node, value.type)


def _zip(lowering: Lowering, node: ast.Call) -> Expression:
    if len(node.args) < 2 or node.keywords:
        help_ = "zip(names, amounts)"
        return refuse_call(lowering, node, "takes two or more lists in a workflow", help_)
    lists = [lowering.iterable(argument) for argument in node.args]
    elements = tuple(element_of(items.type) or REFUSED for items in lists)
    query = Call("zip", tuple(items.query for items in lists))
    return Expression(query, ListOf(TupleOf(elements)), fails_of(*lists))


def _range(lowering: Lowering, node: ast.Call) -> Expression:
    return refuse_call(
        lowering, node, "is only for loops, comprehensions and each()", "list(range(n))"
    )


_RULES: Final[Mapping[Any, Rule]] = MappingProxyType(
    {
        len: _len,
        sum: _sum,
        min: _extreme("min"),
        max: _extreme("max"),
        abs: _abs,
        round: _round,
        str: _str,
        int: _int,
        float: _float,
        bool: _bool,
        list: _list,
        sorted: _sorted,
        any: _quantifier("any"),
        all: _quantifier("all"),
        zip: _zip,
        range: _range,
        timedelta: _timedelta,
        surface.seconds: _duration(1),
        surface.minutes: _duration(60),
        surface.hours: _duration(3_600),
        surface.days: _duration(86_400),
        surface.role: _role,
    }
)
