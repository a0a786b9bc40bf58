"""The methods that an expression may call, as a table from type and name to the rule."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from holdfast.dsl.context import REFUSED_EXPRESSION, Expression, Lowering, fails_of
from holdfast.dsl.query import (
    NULL,
    Binary,
    Call,
    Conditional,
    Constant,
    Flat,
    Function,
    Query,
    Variable,
    hold,
)
from holdfast.dsl.types import (
    BOOL,
    NONE,
    STR,
    DictOf,
    ListOf,
    Type,
    describe,
    element_of,
    is_refused,
    is_text,
    join,
)

#: From the value, its type and the arguments to the result; None when there is no exact form.
Rule: TypeAlias = Callable[[Query, Type, tuple[Expression, ...]], tuple[Query, Type] | None]


def call_method(lowering: Lowering, node: ast.Call, function: ast.Attribute) -> Expression:
    value = lowering.lower(function.value)
    arguments = tuple(lowering.lower(argument) for argument in node.args)
    if any(is_refused(part.type) for part in (value, *arguments)):
        return REFUSED_EXPRESSION
    rule = _RULES.get((_family(value.type), function.attr))
    found = None
    if rule is not None and not node.keywords:
        found = rule(value.query, value.type, arguments)
    if found is None:
        return _refused(lowering, node, function, value.type)
    return Expression(*found, fails_of(value, *arguments))


def _refused(
    lowering: Lowering, node: ast.Call, function: ast.Attribute, type_: Type
) -> Expression:
    return lowering.unit.refused(
        node,
        "HF002",
        f"`.{function.attr}()` on {describe(type_)} has no JSONata form",
        "call it inside a @pure function",
    )


def _family(type_: Type) -> str:
    if is_text(type_):
        return "str"
    return "dict" if isinstance(type_, DictOf) else ""


def _plain(function: str) -> Rule:
    def rule(value: Query, _: Type, arguments: tuple[Expression, ...]) -> tuple[Query, Type] | None:
        return (Call(function, (value,)), STR) if not arguments else None

    return rule


def _startswith(
    value: Query, _: Type, arguments: tuple[Expression, ...]
) -> tuple[Query, Type] | None:
    match arguments:
        case (Expression(prefix, type_, _),) if is_text(type_):
            start = Call("substring", (value, Constant(0), _length(prefix)))
            return Binary("=", start, prefix), BOOL
    return None


def _endswith(
    value: Query, _: Type, arguments: tuple[Expression, ...]
) -> tuple[Query, Type] | None:
    match arguments:
        case (Expression(suffix, type_, _),) if is_text(type_):
            # A suffix longer than the value starts left of it and can never be equal.
            rest = Binary("-", _length(value), _length(suffix))
            is_longer = Binary("<", rest, Constant(0))
            end = Binary("=", Call("substring", (value, rest)), suffix)
            return Conditional(is_longer, Constant(value=False), end), BOOL
    return None


def _length(text: Query) -> Query:
    if isinstance(text, Constant) and isinstance(text.value, str):
        return Constant(len(text.value))
    return Call("length", (text,))


def _join(value: Query, _: Type, arguments: tuple[Expression, ...]) -> tuple[Query, Type] | None:
    match arguments:
        case (Expression(items, type_, _),):
            element = element_of(type_)
            if element is not None and is_text(element):
                return Call("join", (items, value)), STR
    return None


def _split(value: Query, _: Type, arguments: tuple[Expression, ...]) -> tuple[Query, Type] | None:
    """Without a separator Python splits at runs of white space, which JSONata cannot."""
    match arguments:
        case (Expression(Constant(str(separator)) as query, _, _),) if separator:
            return Call("split", (value, query)), ListOf(STR)
    return None


def _replace(value: Query, _: Type, arguments: tuple[Expression, ...]) -> tuple[Query, Type] | None:
    match arguments:
        case (Expression(Constant(str(old)) as query, _, _), Expression(new, type_, _)) if (
            old and is_text(type_)
        ):
            return Call("replace", (value, query, new)), STR
    return None


def _get(value: Query, type_: Type, arguments: tuple[Expression, ...]) -> tuple[Query, Type] | None:
    assert isinstance(type_, DictOf)
    match arguments:
        case (Expression(key, key_type, _),):
            default: Expression = Expression(NULL, NONE)
        case (Expression(key, key_type, _), default):
            pass
        case _:
            return None
    # Python evaluates the default also when it is not needed, and may fail there.
    if not is_text(key_type) or default.fails:
        return None
    found = hold(
        Call("lookup", (value, key)),
        lambda held: Conditional(Call("exists", (held,)), held, default.query),
    )
    return found, join(type_.value, default.type)


def _keys(value: Query, _: Type, arguments: tuple[Expression, ...]) -> tuple[Query, Type] | None:
    return None if arguments else (Flat(Call("keys", (value,))), ListOf(STR))


def _values(
    value: Query, type_: Type, arguments: tuple[Expression, ...]
) -> tuple[Query, Type] | None:
    assert isinstance(type_, DictOf)
    if arguments or isinstance(type_.value, ListOf):
        return None
    lookup = Function(("_key",), Call("lookup", (value, Variable("_key"))))
    return Flat(Call("map", (Flat(Call("keys", (value,))), lookup))), ListOf(type_.value)


_RULES: Final[Mapping[tuple[str, str], Rule]] = MappingProxyType(
    {
        ("str", "upper"): _plain("uppercase"),
        ("str", "lower"): _plain("lowercase"),
        ("str", "startswith"): _startswith,
        ("str", "endswith"): _endswith,
        ("str", "join"): _join,
        ("str", "split"): _split,
        ("str", "replace"): _replace,
        ("dict", "get"): _get,
        ("dict", "keys"): _keys,
        ("dict", "values"): _values,
    }
)
