"""JSONata expressions as frozen trees, their text, and the ASL template with that text.

Only expressions that the compiler emits have a class here. All of them are valid in JSONata 2.0.6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from holdfast.api.boundary import JsonValue
from holdfast.api.error_fields import OPENING
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
    """`/pattern/`. Only patterns that JavaScript and Python's `regex` understand in the same
    way.
    """

    pattern: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: `$name`."""

    name: str


@dataclass(frozen=True, slots=True)
class FieldOf:
    """`base.name`. The base must be an object: for an array JSONata would read the field of each
    item.
    """

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
    """`[items]`: the results of `items` as a list, whether there are none, one or many.

    Without the brackets, JSONata's functions return a single result without its list, and no result
    as nothing.
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
    """`($name := value; body)`. The variable exists only in the body."""

    name: str
    value: QueryTree
    body: QueryTree


@dataclass(frozen=True, slots=True)
class RefusedQuery:
    """The placeholder of a refused expression. It has no text, because it must never be written to
    a state machine.
    """


NULL: Final = Constant(None)
TRUE: Final = Constant(value=True)
FALSE: Final = Constant(value=False)
STATES: Final = Variable("states")
#: The description of the execution in AWS's context object: its `Id`, its `Input`.
EXECUTION: Final = FieldOf(FieldOf(STATES, "context"), "Execution")
EMPTY_LIST: Final = ArrayOf(())

#: The precedence of each operator, as in the table of the JSONata parser. An operator with a higher
#: number binds tighter.
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
    "%": 60,
}
_ATOM: Final = 100
_NEGATIVE: Final = 70
_LOWEST: Final = 0
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS: Final = frozenset({"and", "or", "in", "true", "false", "null", "function"})
#: One encoder and a cache, because `json.dumps` would create an encoder for each constant. The
#: cache is `typed`; otherwise 1, 1.0 and true would be the same entry.
_json_text: Final = lru_cache(maxsize=1024, typed=True)(json.JSONEncoder(ensure_ascii=False).encode)
#: The encoder's own function for text. It is called directly, because most constants are texts.
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
            # Without the parentheses JSONata would apply the second index to the list and not to
            # the item that the first index gives.
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
    """Return the JSON that ASL evaluates to the value of `query`.

    Objects, arrays and constants stay JSON, so that a definition looks like its result. JSON arrays
    also keep lists in lists, which a JSONata constructor would flatten.
    """
    match query:
        case Constant(str() as text) if text.startswith("{%") or not text:
            # Write the author's text as a quoted text in an expression, so that ASL does not
            # evaluate the text itself. An empty text is written in the same way, because some
            # validators refuse `""`.
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
    """Return `{% … %}`. Constants are written in this form, too, where ASL requires text, as in a
    Condition.
    """
    return f"{{% {render(query)} %}}"


def invoke(function: str, *arguments: QueryTree) -> FunctionCall:
    """Return the call `$function(arguments)`."""
    return FunctionCall(function, arguments)


def mapped(items: QueryTree, names: tuple[str, ...], body: QueryTree) -> QueryTree:
    """Return the list of the values of `body`, which reads an item by the first of the names, and
    its index by the second.
    """
    return Flat(invoke("map", items, FunctionLiteral(names, body)))


def filtered(items: QueryTree, names: tuple[str, ...], test: QueryTree) -> QueryTree:
    """Return the list of the items for which `test` is true; `names` are as in `mapped`."""
    return Flat(invoke("filter", items, FunctionLiteral(names, test)))


def is_kind(value: QueryTree, kind: str) -> QueryTree:
    """Return the test whether a value is of this kind of JSON, by the names of JSONata's
    `$type`.
    """
    return Binary("=", invoke("type", value), Constant(kind))


def literal(value: JsonValue) -> QueryTree:
    """Return the query for a JSON value of the author's module."""
    match value:
        case dict():
            return ObjectOf(tuple((key, literal(item)) for key, item in value.items()))
        case list():
            return ArrayOf(tuple(literal(item) for item in value))
        case _:
            return Constant(value)


def item_of(query: QueryTree) -> QueryTree:
    """Return the list `query` as an item of `ArrayOf`. JSONata flattens every item that is not
    written as `[...]`.
    """
    return query if isinstance(query, ArrayOf | Flat | RangeOf) else Nested(query)


def items_of(query: QueryTree, *, is_list: bool | None) -> QueryTree:
    """Return a list with only this value, for `$append`. `is_list` is None when the value may be a
    list or not.
    """
    if is_list is None:
        return hold(
            query,
            lambda held: Conditional(
                is_kind(held, "array"), ArrayOf((Nested(held),)), ArrayOf((held,))
            ),
        )
    return ArrayOf((item_of(query) if is_list else query,))


def hold(value: QueryTree, build: Callable[[QueryTree], QueryTree], name: str = "_v") -> QueryTree:
    """Evaluate `value` once and let `build` use it several times.

    The variables of users cannot start with an underscore, so the name hides none of them. Two
    nested calls of `hold` need two names.
    """
    if isinstance(value, Variable | Constant):
        return build(value)
    return Block(name, value, build(Variable(name)))


def guard(value: QueryTree, message: str) -> QueryTree:
    """Return `value` with a check: where JSONata would give undefined, there is an error with this
    message.
    """
    return hold(value, lambda held: or_else(held, failure(message)))


def or_else(value: QueryTree, default: QueryTree) -> QueryTree:
    """Return `value`, or `default` where JSONata would give undefined. The text contains `value`
    twice, so it should be a variable.
    """
    return Conditional(invoke("exists", value), value, default)


def cause_of(error: QueryTree) -> QueryTree:
    """Return the cause of an error as text. For a time-out it is null in this engine, and absent or
    "" on AWS.
    """
    cause = FieldOf(error, "Cause")
    is_text = is_kind(cause, "string")
    return Conditional(is_text, cause, Constant(""))


def message_of(error: QueryTree, coded: tuple[str, ...]) -> QueryTree:
    """Return the text of an error. For a class in `coded` the cause is JSON that contains the text,
    except when a worker of an older release has written the cause.
    """
    if not coded:
        return cause_of(error)
    names = ArrayOf(tuple(Constant(name) for name in coded))
    has_fields = Binary("in", FieldOf(error, "Error"), names)

    def build(cause: QueryTree) -> QueryTree:
        begin = invoke("substring", cause, Constant(0), Constant(len(OPENING)))
        is_json = Binary("and", has_fields, Binary("=", begin, Constant(OPENING)))
        return Conditional(is_json, FieldOf(invoke("parse", cause), "message"), cause)

    return hold(cause_of(error), build, "_cause")


def field_of_error(error: QueryTree, name: str) -> QueryTree:
    """Return a field of an error. A missing field fails with Python's own error."""
    parsed = invoke("parse", FieldOf(error, "Cause"))
    return guard(FieldOf(FieldOf(parsed, "fields"), name), f"AttributeError: {name}")


def failure(message: str) -> QueryTree:
    return invoke("error", Constant(message))
