"""The functions that an expression may call: a table from the function to the rule that lowers its
call.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NewType, TypeAlias

from holdfast.api import surface
from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.expressions.construct import copy_with
from holdfast.compiler.expressions.enum_values import members_in
from holdfast.compiler.expressions.kinds import lower_isinstance
from holdfast.compiler.expressions.lazy import is_view
from holdfast.compiler.expressions.library_texts import class_of, repr_step, text_step
from holdfast.compiler.expressions.making_dicts import lower_dict_call
from holdfast.compiler.expressions.making_durations import lower_duration, lower_timedelta
from holdfast.compiler.expressions.model_calls import lower_asdict
from holdfast.compiler.expressions.operators import arithmetic, divided, truth
from holdfast.compiler.expressions.orderings import lower_extreme, lower_sorted
from holdfast.compiler.expressions.query import (
    EXECUTION,
    FALSE,
    TRUE,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    FieldOf,
    FunctionLiteral,
    ItemOf,
    QueryTree,
    Variable,
    guard,
    hold,
    invoke,
    mapped,
)
from holdfast.compiler.expressions.reductions import lower_reduce
from holdfast.compiler.expressions.rounding import PLACES_MAX, rounded
from holdfast.compiler.expressions.sets import lower_set, without_order
from holdfast.compiler.expressions.strings import as_int, int_of_any, towards_zero
from holdfast.compiler.expressions.sums import float_sum
from holdfast.compiler.expressions.text import text_of
from holdfast.compiler.expressions.unknowns import (
    NUMBER,
    as_numeric,
    number_of,
    numbers_of,
    size_of_any,
)
from holdfast.compiler.expressions.zips import lower_zip
from holdfast.compiler.library_calls import as_library_step, is_caught
from holdfast.compiler.rewriting import located
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.models import fits
from holdfast.compiler.types.types import (
    BOOL,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    NEVER,
    STR,
    UNKNOWN,
    DictOf,
    ListOf,
    ModelOf,
    SetOf,
    TextOf,
    TupleOf,
    Type,
    as_text,
    describe,
    element_of,
    is_numeric,
    is_refused,
    is_text,
    join,
    members_of,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

FunctionRule: TypeAlias = Callable[["Expressions", ast.Call], TypedQuery]

_START_TIME: Final = FieldOf(EXECUTION, "StartTime")
#: The start of the execution as pydantic writes a moment: with six digits of a second or none. The
#: context object has it with three.
_STARTED: Final = Conditional(
    Binary("=", invoke("substring", _START_TIME, Constant(19), Constant(4)), Constant(".000")),
    Binary("&", invoke("substring", _START_TIME, Constant(0), Constant(19)), Constant("Z")),
    Binary("&", invoke("substring", _START_TIME, Constant(0), Constant(23)), Constant("000Z")),
)
_PURE_HELP: Final = "call it inside a @pure function"


def call_function(lowering: Expressions, node: ast.Call, function: Any) -> TypedQuery | None:
    """Lower the call of a function in the table; None when the function is not in it."""
    if isinstance(function, NewType):
        return _new_type(lowering, node, function)
    rule = _RULES.get(function) if isinstance(function, Hashable) and callable(function) else None
    return None if rule is None else rule(lowering, node)


def refuse_call(lowering: Expressions, node: ast.Call, why: str, help_: str) -> TypedQuery:
    name = lowering.unit.text(node.func)
    return lowering.unit.refused(node, "HF002", f"`{name}()` {why}", help_)


def _single(lowering: Expressions, node: ast.Call) -> TypedQuery | None:
    """Return the only argument. Any other number of arguments is refused."""
    if len(node.args) == 1 and not node.keywords:
        return lowering.lower(node.args[0])
    name = lowering.unit.text(node.func)
    message = f"`{name}()` takes one argument in a workflow"
    lowering.unit.refuse(node, "HF008", message, f"{name}(value)")
    return None


def _no_form(lowering: Expressions, node: ast.Call, type_: Type) -> TypedQuery:
    if is_refused(type_):
        return REFUSED_EXPRESSION
    return refuse_call(
        lowering, node, f"of {describe(type_)} has no exact JSONata form", _PURE_HELP
    )


# Sizes and numbers.


def _deepcopy(lowering: Expressions, node: ast.Call) -> TypedQuery:
    """`copy.deepcopy(value)`: in a state machine every value is a copy."""
    value = _single(lowering, node)
    return REFUSED_EXPRESSION if value is None else value


def _replace(lowering: Expressions, node: ast.Call) -> TypedQuery:
    """`dataclasses.replace(cart, status="closed")`."""
    value = lowering.lower(node.args[0]) if len(node.args) == 1 else None
    if value is not None and is_refused(value.type):
        return REFUSED_EXPRESSION
    if value is None or not isinstance(value.type, ModelOf):
        return refuse_call(lowering, node, "takes a dataclass", 'replace(cart, status="closed")')
    names = [ast.copy_location(ast.Constant(word.arg), word.value) for word in node.keywords]
    changes = ast.Dict(list(names), [word.value for word in node.keywords])
    call = ast.Call(node.func, [], [ast.keyword("update", changes)])
    return copy_with(lowering, located(call, node), value, value.type)


def _len(lowering: Expressions, node: ast.Call) -> TypedQuery:
    if len(node.args) == 1 and is_view(lowering, node.args[0]):
        value: TypedQuery | None = lowering.gone_through(node.args[0])
    elif len(node.args) == 1 and (members := members_in(lowering, node.args[0])):
        value = members
    else:
        value = _single(lowering, node)
    if value is None:
        return REFUSED_EXPRESSION
    match value.type:
        case ListOf() | SetOf() | TupleOf():
            query: QueryTree = invoke("count", value.query)
        case DictOf():
            query = invoke("count", invoke("keys", value.query))
        case type_ if is_text(as_text(type_)):
            query = invoke("length", value.query)
        case type_ if type_ == UNKNOWN:
            return size_of_any(value)
        case type_:
            return _no_form(lowering, node, type_)
    return TypedQuery(query, INT, value.fails)


def _sum(lowering: Expressions, node: ast.Call) -> TypedQuery:
    start = TypedQuery(Constant(0), INT)
    match node:
        case ast.Call(args=[values], keywords=[]):
            pass
        case (
            ast.Call(args=[values, first], keywords=[])
            | ast.Call(args=[values], keywords=[ast.keyword(arg="start", value=first)])
        ):
            start = lowering.lower(first)
        case _:
            help_ = "sum(values)"
            return refuse_call(lowering, node, "takes one list, and where to start", help_)
    items = without_order(lowering, values)
    element = element_of(items.type)
    if is_refused(items.type, start.type):
        return REFUSED_EXPRESSION
    if isinstance(start.type, ListOf):
        return _joined_lists(items, start) or _no_form(lowering, node, items.type)
    if element == BOOL:
        ones = mapped(items.query, ("_item",), number_of(Variable("_item")))
        items, element = TypedQuery(ones, ListOf(INT), items.fails), INT
    if element == UNKNOWN and is_numeric(start.type):
        numbers = numbers_of(items)
        total = float_sum(numbers.query, start.query)
        return TypedQuery(total, UNKNOWN, fails_of(numbers, start))
    if element is None or not is_numeric(element) or not is_numeric(start.type):
        return _no_form(lowering, node, items.type)
    if FLOAT in (*members_of(element), start.type):
        # Without an item the sum is `start`, so it is an int in Python.
        type_ = join(FLOAT, start.type)
        return TypedQuery(float_sum(items.query, start.query), type_, fails_of(items, start))
    total = invoke("sum", items.query)
    if start.query != Constant(0):
        total = Binary("+", start.query, total)
    return TypedQuery(total, INT, fails_of(items, start))


def _joined_lists(rows: TypedQuery, start: TypedQuery) -> TypedQuery | None:
    """Lower `sum(rows, [])`."""
    row = element_of(rows.type)
    assert isinstance(start.type, ListOf)
    if row != NEVER and (not isinstance(row, ListOf) or row.is_tuple != start.type.is_tuple):
        return None
    longer = invoke("append", Variable("_done"), Variable("_row"))
    step = FunctionLiteral(("_done", "_row"), longer)
    query = invoke("reduce", rows.query, step, start.query)
    return TypedQuery(query, join(start.type, row or NEVER), fails_of(rows, start))


def _items(lowering: Expressions, node: ast.Call) -> TypedQuery | None:
    """Return the only argument, as a list."""
    if len(node.args) == 1 and not node.keywords:
        return lowering.iterable(node.args[0])
    name = lowering.unit.text(node.func)
    lowering.unit.refuse(
        node, "HF008", f"`{name}()` takes one list in a workflow", f"{name}(values)"
    )
    return None


def _abs(lowering: Expressions, node: ast.Call) -> TypedQuery:
    value = as_numeric(_single(lowering, node) or REFUSED_EXPRESSION)
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    type_ = UNKNOWN if value.type == NUMBER else value.type
    return TypedQuery(invoke("abs", value.query), type_, value.fails)


def _round(lowering: Expressions, node: ast.Call) -> TypedQuery:
    match node:
        case ast.Call(args=[number, places], keywords=[]):
            return _round_to_places(lowering, node, as_numeric(lowering.lower(number)), places)
    value = as_numeric(_single(lowering, node) or REFUSED_EXPRESSION)
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    return TypedQuery(invoke("round", value.query), INT, value.fails)


def _round_to_places(
    lowering: Expressions, node: ast.Call, value: TypedQuery, places: ast.expr
) -> TypedQuery:
    match places:
        case ast.Constant(value=int(count)) if value.type == INT and count >= 0:
            return value
        case ast.Constant(value=0) if is_numeric(value.type):
            return TypedQuery(invoke("round", value.query), FLOAT, value.fails)
        case ast.Constant(value=int(count)) if is_numeric(value.type) and 0 < count <= PLACES_MAX:
            query = hold(value.query, lambda held: rounded(held, count), "_number")
            return TypedQuery(query, value.type, value.fails)
    step = None
    if value.type in (FLOAT, DECIMAL):
        name = f"{class_of(value.type)}.__round__"
        step = as_library_step(lowering, node, name, node.args)
    return step or _no_form(lowering, node, value.type)


# Conversions.


def _str(lowering: Expressions, node: ast.Call) -> TypedQuery:
    value = _single(lowering, node)
    if value is None:
        return REFUSED_EXPRESSION
    step = text_step(lowering, node, node.args[0], value)
    return step or text_of(lowering.unit, node, value)


def _repr(lowering: Expressions, node: ast.Call) -> TypedQuery:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    step = None if is_refused(value.type) else repr_step(lowering, node, node.args[0], value)
    return step or _no_form(lowering, node, value.type)


def _format(lowering: Expressions, node: ast.Call) -> TypedQuery:
    """Lower `format(x, ".2f")` like the f-string `f"{x:.2f}"`."""
    match node:
        case ast.Call(args=[value, spec], keywords=[]):
            is_constant = isinstance(spec, ast.Constant)
            written = ast.JoinedStr([spec if is_constant else ast.FormattedValue(spec, -1)])
            whole = ast.JoinedStr([ast.FormattedValue(value, -1, written)])
            return lowering.lower(lowering.unit.rewritten(node, located(whole, node)))
    return _str(lowering, node)


def _int(lowering: Expressions, node: ast.Call) -> TypedQuery:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    query = value.query
    if value.type == BOOL:
        return TypedQuery(number_of(query), INT, value.fails)
    if value.type == INT:
        return value
    if is_text(value.type):
        if is_caught(lowering, "ValueError") and (step := _int_step(lowering, node)):
            return step
        return TypedQuery(hold(query, as_int, "_text"), INT, value.fails | {"ValueError"})
    if value.type == DECIMAL and (step := _decimal_as(lowering, node, "int")):
        return step
    if value.type == UNKNOWN:
        is_named = is_caught(lowering, "ValueError") or is_caught(lowering, "TypeError")
        return (_int_step(lowering, node) if is_named else None) or int_of_any(value)
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    return TypedQuery(towards_zero(query), INT, value.fails)


def _int_step(lowering: Expressions, node: ast.Call) -> TypedQuery | None:
    return as_library_step(lowering, node, "builtins.int", node.args)


def _decimal_as(lowering: Expressions, node: ast.Call, kind: str) -> TypedQuery | None:
    return as_library_step(lowering, node, f"decimal.Decimal.__{kind}__", node.args)


_NOT_FINITE: Final = frozenset({"inf", "infinity", "nan"})


def _float(lowering: Expressions, node: ast.Call) -> TypedQuery:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    if value.type == DECIMAL and (step := _decimal_as(lowering, node, "float")):
        return step
    match value.query:
        case Constant(str(text)) if text.strip().lower().lstrip("+-") in _NOT_FINITE:
            why = "of a number that JSON does not have"
            return refuse_call(lowering, node, why, "begin with the first item, or with None")
    if is_text(value.type) or value.type == UNKNOWN:
        step = as_library_step(lowering, node, "builtins.float", node.args)
        if step is not None:
            return step
    if not is_numeric(value.type):
        return _no_form(lowering, node, value.type)
    return TypedQuery(value.query, FLOAT, value.fails)


def _bool(lowering: Expressions, node: ast.Call) -> TypedQuery:
    if len(node.args) == 1 and not node.keywords:
        return lowering.truth(node.args[0])
    return _single(lowering, node) or REFUSED_EXPRESSION


def _list(lowering: Expressions, node: ast.Call) -> TypedQuery:
    if not node.args and not node.keywords:
        return TypedQuery(ArrayOf(()), ListOf(NEVER))
    return _items(lowering, node) or REFUSED_EXPRESSION


def _tuple(lowering: Expressions, node: ast.Call) -> TypedQuery:
    found = _list(lowering, node)
    return found if is_refused(found.type) else found._replace(type=_as_tuple(found.type))


def _as_tuple(type_: Type) -> Type:
    return ListOf(element_of(type_) or NEVER, is_tuple=True)


def _quantifier(function: str) -> FunctionRule:
    def rule(lowering: Expressions, node: ast.Call) -> TypedQuery:
        if len(node.args) != 1 or node.keywords:
            return refuse_call(lowering, node, "takes one list", f"{function}(values)")
        items = without_order(lowering, node.args[0])
        element = element_of(items.type)
        if element is None or is_refused(items.type):
            return REFUSED_EXPRESSION
        if items.fails:
            why = "stops early in Python but not in JSONata, and this condition may fail"
            return refuse_call(lowering, node, why, "use a loop, or a @pure function")
        tests = items.query
        if element not in (BOOL, NEVER):
            test = truth(lowering.unit, node, TypedQuery(Variable("_item"), element))
            if is_refused(test.type):
                return REFUSED_EXPRESSION
            tests = mapped(tests, ("_item",), test.query)
        if function == "any":
            return TypedQuery(Binary("in", TRUE, tests), BOOL)
        return TypedQuery(invoke("not", Binary("in", FALSE, tests)), BOOL)

    return rule


def _new_type(lowering: Expressions, node: ast.Call, function: Any) -> TypedQuery:
    """Lower a call of a NewType, such as `UserId("x")`, to the value itself."""
    value = _single(lowering, node) or REFUSED_EXPRESSION
    wanted = from_annotation(function)
    if is_refused(value.type) or fits(value.type, wanted):
        return value
    message = f"{function.__name__} is {describe(wanted)} and this is {describe(value.type)}"
    help_ = "give it a value of that type; annotate the type where it is unknown"
    return lowering.unit.refused(node, "HF040", message, help_)


# Texts, pairs, dicts.


def _role(lowering: Expressions, node: ast.Call) -> TypedQuery:
    value = _single(lowering, node) or REFUSED_EXPRESSION
    match value:
        case TypedQuery(Constant(str(name)), _, _):
            return TypedQuery(Constant(surface.role(name)), TextOf((surface.role(name),)))
        case TypedQuery(query, type_, fails) if is_text(type_):
            return TypedQuery(Binary("&", Constant(surface.role("")), query), STR, fails)
        case _:
            return _no_form(lowering, node, value.type)


def _own_execution(query: QueryTree, type_: Type) -> FunctionRule:
    """`execution_id()` and the like: the engine puts the value in the context object."""

    def rule(lowering: Expressions, node: ast.Call) -> TypedQuery:
        if node.args or node.keywords:
            call = f"{lowering.unit.text(node.func)}()"
            return lowering.unit.refused(node, "HF008", f"`{call}` takes no arguments", call)
        return TypedQuery(query, type_)

    return rule


def _divmod(lowering: Expressions, node: ast.Call) -> TypedQuery:
    values = [lowering.lower(argument) for argument in node.args]
    if is_refused(*(value.type for value in values)):
        return REFUSED_EXPRESSION
    if [value.type for value in values] != [INT, INT] or node.keywords:
        return refuse_call(lowering, node, "takes two ints in a workflow", _PURE_HELP)
    query, type_, fails = divided(*values)
    return TypedQuery(query, type_, fails | fails_of(*values))


def _pow(lowering: Expressions, node: ast.Call) -> TypedQuery:
    if len(node.args) != 2 or node.keywords:
        return refuse_call(lowering, node, "takes a base and an exponent", "pow(n, 2)")
    base, exponent = (lowering.lower(argument) for argument in node.args)
    return arithmetic(lowering.unit, node, ast.Pow(), base, exponent)


def _next(lowering: Expressions, node: ast.Call) -> TypedQuery:
    """Lower `next((line for line in lines if …), None)`: the first item of a list."""
    match node.args:
        case [ast.GeneratorExp() as items, *others] if len(others) < 2 and not node.keywords:
            found = lowering.gone_through(items)
        case [ast.Call(func=ast.Name(id="iter"), args=[items], keywords=[]), *others] if (
            len(others) < 2 and not node.keywords and lowering.is_builtin("iter")
        ):
            found = lowering.iterable(items)
        case _:
            help_ = "next((line for line in lines if line.unit_cents), None)"
            return refuse_call(lowering, node, "takes a generator that is written out", help_)
    element = element_of(found.type)
    default = lowering.lower(others[0]) if others else None
    if element is None or is_refused(found.type) or (default and is_refused(default.type)):
        return REFUSED_EXPRESSION
    if found.fails or (default and default.fails):
        why = "stops early in Python but not in JSONata, and this may fail"
        return refuse_call(lowering, node, why, "use a loop, or a @pure function")
    if default is None:
        first = ItemOf(found.query, Constant(0))
        query = guard(first, "StopIteration")
        return TypedQuery(query, element, frozenset({"StopIteration"}))

    def build(held: QueryTree) -> QueryTree:
        is_there = Binary(">", invoke("count", held), Constant(0))
        return Conditional(is_there, ItemOf(held, Constant(0)), default.query)

    return TypedQuery(hold(found.query, build, "_found"), join(element, default.type))


def _reversed(lowering: Expressions, node: ast.Call) -> TypedQuery:
    why = "is only for loops, comprehensions and functions that take a list"
    return refuse_call(lowering, node, why, "list(reversed(xs))")


def _range(lowering: Expressions, node: ast.Call) -> TypedQuery:
    return refuse_call(
        lowering, node, "is only for loops, comprehensions and each()", "list(range(n))"
    )


_RULES: Final[Mapping[Any, FunctionRule]] = MappingProxyType(
    {
        copy.deepcopy: _deepcopy,
        dataclasses.replace: _replace,
        dataclasses.asdict: lower_asdict,
        len: _len,
        sum: _sum,
        min: lower_extreme("min"),
        max: lower_extreme("max"),
        divmod: _divmod,
        pow: _pow,
        abs: _abs,
        round: _round,
        str: _str,
        repr: _repr,
        format: _format,
        int: _int,
        float: _float,
        bool: _bool,
        list: _list,
        dict: lower_dict_call,
        functools.reduce: lower_reduce,
        tuple: _tuple,
        set: lower_set,
        frozenset: lower_set,
        reversed: _reversed,
        isinstance: lower_isinstance,
        sorted: lower_sorted,
        any: _quantifier("any"),
        all: _quantifier("all"),
        zip: lower_zip,
        next: _next,
        range: _range,
        timedelta: lower_timedelta,
        surface.seconds: lower_duration(1),
        surface.minutes: lower_duration(60),
        surface.hours: lower_duration(3_600),
        surface.days: lower_duration(86_400),
        surface.role: _role,
        surface.execution_id: _own_execution(FieldOf(EXECUTION, "Id"), STR),
        surface.execution_name: _own_execution(FieldOf(EXECUTION, "Name"), STR),
        surface.execution_started: _own_execution(_STARTED, DATETIME),
    }
)
