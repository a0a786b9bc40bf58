"""JSONata expressions as frozen trees, their text, and the template that puts them into ASL.

Only expressions that the compiler emits have a node here. Everything stays within JSONata 2.0.6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from holdfast.api.boundary import JsonValue
from holdfast.errors import HoldfastBug

QueryTree: TypeAlias = (
    "Constant | Regex | Variable | FieldOf | ItemOf | FunctionCall | Binary | Negative"
    " | Conditional | ArrayOf | Nested | Flat | RangeOf | ObjectOf | ComputedEntry"
    " | FunctionLiteral | Block | RefusedQuery"
)


@dataclass(frozen=True, slots=True)
class Constant:
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Regex:
    """`/pattern/`: only what JavaScript and Python's `regex` read alike."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: `$name`."""

    name: str


@dataclass(frozen=True, slots=True)
class FieldOf:
    """`base.name`; the base must be an object, for an array would be mapped over."""

    base: QueryTree
    name: str


@dataclass(frozen=True, slots=True)
class ItemOf:
    """One item of a list: `base[index]`."""

    base: QueryTree
    index: QueryTree


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call: `$function(arguments)`."""

    function: str
    arguments: tuple[QueryTree, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: QueryTree
    right: QueryTree


@dataclass(frozen=True, slots=True)
class Negative:
    operand: QueryTree


@dataclass(frozen=True, slots=True)
class Conditional:
    """`test ? then : otherwise`; only the branch that is taken is evaluated."""

    test: QueryTree
    then: QueryTree
    otherwise: QueryTree


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """`[a, b]`. JSONata flattens an item that is an array, unless it is written as `[...]`."""

    items: tuple[QueryTree, ...]


@dataclass(frozen=True, slots=True)
class Nested:
    """An item of `ArrayOf` that is a list and must stay one; see `item_of`."""

    item: QueryTree


@dataclass(frozen=True, slots=True)
class Flat:
    """`[items]`: a list of the results of `items`: none, one or many.

    JSONata's functions return a single result without its list, and no result as nothing.
    """

    items: QueryTree


@dataclass(frozen=True, slots=True)
class RangeOf:
    """`[first..last]`, empty when last < first."""

    first: QueryTree
    last: QueryTree


@dataclass(frozen=True, slots=True)
class ObjectOf:
    items: tuple[tuple[str, QueryTree], ...]


@dataclass(frozen=True, slots=True)
class ComputedEntry:
    """`{key: value}` with a key that is computed."""

    key: QueryTree
    value: QueryTree


@dataclass(frozen=True, slots=True)
class FunctionLiteral:
    """A function literal: `function($a, $b){ body }`."""

    parameters: tuple[str, ...]
    body: QueryTree


@dataclass(frozen=True, slots=True)
class Block:
    """`($name := value; body)`; the name is not seen outside."""

    name: str
    value: QueryTree
    body: QueryTree


@dataclass(frozen=True, slots=True)
class RefusedQuery:
    """The placeholder of a refused expression. It has no text: it must never reach a state
    machine.
    """


NULL: Final = Constant(None)
TRUE: Final = Constant(value=True)
FALSE: Final = Constant(value=False)
EMPTY_LIST: Final = ArrayOf(())

#: An operator that binds tighter has the higher number (the JSONata parser's own table).
_STRENGTH: Final = {
    "or": 25,
    "and": 30,
    "in": 40,
    "=": 40,
    "!=": 40,
    "<": 40,
    "<=": 40,
    ">": 40,
    ">=": 40,
    "&": 50,
    "+": 50,
    "-": 50,
    "*": 60,
    "/": 60,
}
_ATOM: Final = 100
_NEGATIVE: Final = 70
_LOWEST: Final = 0
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS: Final = frozenset({"and", "or", "in", "true", "false", "null", "function"})
#: `json.dumps` would make such an encoder for each constant. `typed`: 1 differs from 1.0 and from
#: true.
_json_text: Final = lru_cache(maxsize=1024, typed=True)(json.JSONEncoder(ensure_ascii=False).encode)
#: The encoder's own escapes of the most common characters, which it finds in many steps.
_string_text: Final = json.encoder.encode_basestring


def render(query: QueryTree) -> str:
    """Return the JSONata text of the query."""
    match query:
        case Variable(name):
            return f"${name}"
        case FieldOf(base, name):
            return f"{_inside(base, _ATOM)}.{_field(name)}"
        case Constant(value):
            return _string_text(value) if isinstance(value, str) else _json_text(value)
        case ItemOf(ItemOf() as base, index):
            # Without parentheses JSONata would apply the second index to the list of the first
            # index, and not to the item.
            return f"({render(base)})[{render(index)}]"
        case ItemOf(base, index):
            return f"{_inside(base, _ATOM)}[{render(index)}]"
        case FunctionCall(function, arguments):
            return f"${function}({', '.join(map(render, arguments))})"
        case Binary(operator, left, right):
            strength = _STRENGTH[operator]
            return f"{_inside(left, strength)} {operator} {_inside(right, strength + 1)}"
        case Negative(operand):
            return f"-{_inside(operand, _NEGATIVE)}"
        case Conditional(test, then, otherwise):
            parts = (_inside(part, _LOWEST + 1) for part in (test, then, otherwise))
            return "{} ? {} : {}".format(*parts)
        case ArrayOf(items):
            return f"[{', '.join(map(render, items))}]"
        case Nested(item) | Flat(item):
            return f"[{render(item)}]"
        case RangeOf(first, last):
            return f"[{_inside(first, _LOWEST + 1)}..{_inside(last, _LOWEST + 1)}]"
        case ObjectOf(items):
            rows = (f"{_string_text(key)}: {render(item)}" for key, item in items)
            return f"{{{', '.join(rows)}}}"
        case Regex(pattern):
            return f"/{pattern}/"
        case ComputedEntry(key, item):
            return f"{{{_inside(key, _LOWEST + 1)}: {render(item)}}}"
        case FunctionLiteral(parameters, body):
            names = ", ".join(f"${name}" for name in parameters)
            return f"function({names}){{ {render(body)} }}"
        case Block(name, value, body):
            return f"(${name} := {render(value)}; {render(body)})"
        case RefusedQuery():
            raise HoldfastBug("an expression was refused without a word")


_LOOSE: Final = (Binary, Conditional, Negative, Constant)


def _inside(query: QueryTree, strength: int) -> str:
    text = render(query)
    is_loose = isinstance(query, _LOOSE) and _strength(query) < strength
    return f"({text})" if is_loose else text


def _strength(query: QueryTree) -> int:
    match query:
        case Binary(operator):
            return _STRENGTH[operator]
        case Conditional():
            return _LOWEST
        case Negative():
            return _NEGATIVE
        case Constant(value) if isinstance(value, int | float) and value < 0:
            return _NEGATIVE
        case _:
            return _ATOM


@lru_cache(maxsize=1024)
def _field(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and name not in _WORDS
    return name if is_plain else f"`{name}`"


def template(query: QueryTree) -> JsonValue:
    """The JSON that ASL evaluates to the value of `query`.

    Objects, arrays and constants stay JSON, so that a definition reads like its result; JSON arrays
    also keep the lists in them apart, where a JSONata constructor would flatten.
    """
    match query:
        case Constant(str() as text) if text.startswith("{%") or not text:
            # Text of the author must never be evaluated; `""` is refused by some validators.
            return expression(query)
        case Constant(value):
            return value
        case ObjectOf(items):
            return {key: template(item) for key, item in items}
        case ArrayOf(items):
            return [template(item) for item in items]
        case Nested(item):
            return template(item)
        case _:
            return expression(query)


def expression(query: QueryTree) -> str:
    """`{% … %}`, also for constants: Conditions must be text."""
    return f"{{% {render(query)} %}}"


def literal(value: JsonValue) -> QueryTree:
    """A JSON value from the author's module, written out."""
    match value:
        case dict():
            return ObjectOf(tuple((key, literal(item)) for key, item in value.items()))
        case list():
            return ArrayOf(tuple(literal(item) for item in value))
        case _:
            return Constant(value)


def item_of(query: QueryTree) -> QueryTree:
    """Return the list `query` as an item of `ArrayOf`: JSONata flattens every item that is not
    written `[...]`.
    """
    return query if isinstance(query, ArrayOf | Flat | RangeOf) else Nested(query)


def items_of(query: QueryTree, *, is_list: bool | None) -> QueryTree:
    """Return a list of this one value, for `$append`. `is_list` None: only the run shows whether
    the value is a list.
    """
    if is_list is None:
        return hold(
            query,
            lambda held: Conditional(
                Binary("=", FunctionCall("type", (held,)), Constant("array")),
                ArrayOf((Nested(held),)),
                ArrayOf((held,)),
            ),
        )
    return ArrayOf((item_of(query) if is_list else query,))


def hold(value: QueryTree, build: Callable[[QueryTree], QueryTree], name: str = "_v") -> QueryTree:
    """Evaluate `value` once and let `build` use it several times.

    ASL variables cannot start with an underscore, so the name captures none of the user's. Two
    nested calls of `hold` need two names.
    """
    if isinstance(value, Variable | Constant):
        return build(value)
    return Block(name, value, build(Variable(name)))


def guard(value: QueryTree, message: str) -> QueryTree:
    """Return `value` guarded: an error with this message where JSONata would give undefined."""
    return hold(
        value, lambda held: Conditional(FunctionCall("exists", (held,)), held, failure(message))
    )


def cause_of(error: QueryTree) -> QueryTree:
    """Return the cause of an error as text. For a time-out our engine has null there, AWS nothing
    or "".
    """
    cause = FieldOf(error, "Cause")
    is_text = Binary("=", FunctionCall("type", (cause,)), Constant("string"))
    return Conditional(is_text, cause, Constant(""))


def failure(message: str) -> QueryTree:
    return FunctionCall("error", (Constant(message),))
