"""The methods of text: those that JSONata has, or that its functions can express exactly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    FALSE,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    ItemOf,
    QueryTree,
    Regex,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.expressions.rules import CANNOT_FAIL, MethodResult, MethodRule
from holdfast.compiler.expressions.unknowns import as_numeric
from holdfast.compiler.types.types import (
    BOOL,
    INT,
    STR,
    UNKNOWN,
    ListOf,
    Type,
    element_of,
    is_text,
)

#: The characters for which Python's `str.isspace()` is true. The class of white space in
#: JavaScript, which JSONata uses, has others.
_SPACES: Final = (
    r"\t\n\u000b\f\r\u001c-\u001f \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
)
SPACE: Final = f"[{_SPACES}]"
_LINE_ENDS: Final = r"\r\n|[\n\r\u000b\f\u001c\u001d\u001e\u0085\u2028\u2029]"
_EMPTY: Final = Constant("")


def _plain(function: str) -> MethodRule:
    def rule(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
        return (invoke(function, value), STR, CANNOT_FAIL) if not arguments else None

    return rule


def _starts(value: QueryTree, prefix: QueryTree) -> QueryTree:
    return Binary("=", invoke("substring", value, Constant(0), length(prefix)), prefix)


def _ends(value: QueryTree, suffix: QueryTree) -> QueryTree:
    # A suffix that is longer than the value never matches. The subtraction would be negative for
    # it, and `substring` would then count from the end.
    rest = Binary("-", length(value), length(suffix))
    is_longer = Binary("<", rest, Constant(0))
    end = Binary("=", invoke("substring", value, rest), suffix)
    return Conditional(is_longer, FALSE, end)


def length(text: QueryTree) -> QueryTree:
    if isinstance(text, Constant) and isinstance(text.value, str):
        return Constant(len(text.value))
    return invoke("length", text)


def _startswith(
    value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    match arguments:
        case (TypedQuery(ArrayOf(prefixes), _, _) as several,) if _are_texts(several):
            return _any_of(tuple(_starts(value, prefix) for prefix in prefixes))
        case (TypedQuery(prefix, type_, _),) if is_text(type_):
            return _starts(value, prefix), BOOL, CANNOT_FAIL
    return None


def _endswith(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (TypedQuery(ArrayOf(suffixes), _, _) as several,) if _are_texts(several):
            return _any_of(tuple(_ends(value, suffix) for suffix in suffixes))
        case (TypedQuery(suffix, type_, _),) if is_text(type_):
            return _ends(value, suffix), BOOL, CANNOT_FAIL
    return None


def _are_texts(several: TypedQuery) -> bool:
    """Return True for a tuple of texts, as in `startswith(("a", "b"))`. Python does not accept a
    list there.
    """
    element = None if isinstance(several.type, ListOf) else element_of(several.type)
    return element is not None and is_text(element)


def _any_of(tests: tuple[QueryTree, ...]) -> MethodResult:
    found: QueryTree = FALSE
    for test in tests:
        found = test if found == FALSE else Binary("or", found, test)
    return found, BOOL, CANNOT_FAIL


def _without_prefix(
    value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    match arguments:
        case (TypedQuery(prefix, type_, _),) if is_text(type_):
            rest = invoke("substring", value, length(prefix))
            return Conditional(_starts(value, prefix), rest, value), STR, CANNOT_FAIL
    return None


def _without_suffix(
    value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    match arguments:
        case (TypedQuery(suffix, type_, _),) if is_text(type_):
            size = Binary("-", length(value), length(suffix))
            rest = invoke("substring", value, Constant(0), size)
            return Conditional(_ends(value, suffix), rest, value), STR, CANNOT_FAIL
    return None


def _strip(pattern: str) -> MethodRule:
    """Return the rule of a strip method. `pattern` has `%s` for the class of characters that are
    removed; for a call without an argument that is white space.
    """

    def rule(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
        match arguments:
            case ():
                characters = SPACE
            case (TypedQuery(Constant(str(text)), _, _),) if text and _is_plain(text):
                characters = f"[{''.join(map(_escaped, text))}]"
            case _:
                return None
        found = invoke("replace", value, Regex(pattern.replace("%s", characters)), _EMPTY)
        return found, STR, CANNOT_FAIL

    return rule


def _is_plain(text: str) -> bool:
    """Return True when every character is one UTF-16 unit. Any other character would count as two
    in a JavaScript character class.
    """
    return all(ord(character) < 0x10000 for character in text)


def _escaped(character: str) -> str:
    """Return the character as a character class needs it: letters and digits need no escape."""
    if character.isascii() and character.isalnum():
        return character
    return f"\\u{ord(character):04x}"


def _join(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (TypedQuery(items, type_, _),):
            element = element_of(type_)
            if element is not None and is_text(element):
                return invoke("join", items, value), STR, CANNOT_FAIL
    return None


def _split(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case ():
            trimmed = invoke("replace", value, Regex(f"^{SPACE}+|{SPACE}+$"), _EMPTY)
            return hold(trimmed, _words, "_text"), ListOf(STR), CANNOT_FAIL
        case (TypedQuery(Constant(str(separator)) as query, _, _),) if separator:
            return invoke("split", value, query), ListOf(STR), CANNOT_FAIL
        case (
            TypedQuery(Constant(str(separator)) as query, _, _),
            TypedQuery(Constant(1), _, _),
        ) if separator:
            return hold(value, lambda text: _at_first(text, query), "_text"), *_TEXTS
    return None


def _rsplit(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    """Lower `rsplit(",", 1)`. A longer separator may overlap itself, and is found elsewhere from
    the right.
    """
    match arguments:
        case (
            TypedQuery(Constant(str(separator)) as query, _, _),
            TypedQuery(Constant(1), _, _),
        ) if len(separator) == 1:
            return hold(value, lambda text: _at_last(text, query), "_text"), *_TEXTS
    return None


_TEXTS: Final = (ListOf(STR), CANNOT_FAIL)


def _at_first(text: QueryTree, separator: QueryTree) -> QueryTree:
    before = invoke("substringBefore", text, separator)
    after = invoke("substringAfter", text, separator)
    return _parted(text, separator, before, after)


def _at_last(text: QueryTree, separator: QueryTree) -> QueryTree:
    def build(last: QueryTree) -> QueryTree:
        size = Binary("-", Binary("-", length(text), length(last)), Constant(1))
        front = invoke("substring", text, Constant(0), size)
        return _parted(text, separator, front, last)

    parts = invoke("split", text, separator)
    return hold(ItemOf(parts, Constant(-1)), build, "_last")


def _parted(
    text: QueryTree, separator: QueryTree, before: QueryTree, after: QueryTree
) -> QueryTree:
    is_there = invoke("contains", text, separator)
    return Conditional(is_there, ArrayOf((before, after)), ArrayOf((text,)))


def _words(text: QueryTree) -> QueryTree:
    words = invoke("split", text, Regex(f"{SPACE}+"))
    return Conditional(Binary("=", text, _EMPTY), ArrayOf(()), words)


def _splitlines(
    value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    """Lower `splitlines`. As in Python, a line end at the end of the text begins no further
    line.
    """
    if arguments:
        return None
    ended = invoke("replace", value, Regex(f"(?:{_LINE_ENDS})$"), _EMPTY)
    lines = invoke("split", ended, Regex(_LINE_ENDS))
    return Conditional(Binary("=", value, _EMPTY), ArrayOf(()), lines), ListOf(STR), CANNOT_FAIL


def _replace(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (TypedQuery(Constant(str(old)) as query, _, _), TypedQuery(new, type_, _)) if (
            old and is_text(type_)
        ):
            return invoke("replace", value, query, new), STR, CANNOT_FAIL
    return None


def _find(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (TypedQuery(part, type_, _),) if is_text(type_):
            return _place(value, part, Constant(-1)), INT, CANNOT_FAIL
    return None


def _index(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (TypedQuery(part, type_, _),) if is_text(type_):
            missing = failure("ValueError: substring not found")
            return _place(value, part, missing), INT, frozenset({"ValueError"})
    return None


def _place(value: QueryTree, part: QueryTree, otherwise: QueryTree) -> QueryTree:
    before = invoke("length", invoke("substringBefore", value, part))
    return Conditional(invoke("contains", value, part), before, otherwise)


def _count(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (TypedQuery(Constant(str(part)) as query, _, _),) if part:
            pieces = invoke("count", invoke("split", value, query))
            return Binary("-", pieces, Constant(1)), INT, CANNOT_FAIL
    return None


def _just(sign: int) -> MethodRule:
    def rule(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
        match arguments:
            case (TypedQuery(Constant(int(width)), _, _),):
                fill = " "
            case (TypedQuery(Constant(int(width)), _, _), TypedQuery(Constant(str(fill)), _, _)):
                pass
            case _:
                return None
        if width < 0 or len(fill) != 1:
            return None
        return (
            invoke("pad", value, Constant(sign * width), Constant(fill)),
            STR,
            CANNOT_FAIL,
        )

    return rule


def _zfill(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    """Lower `zfill`. The zeros go between the sign and the digits."""
    match arguments:
        case (TypedQuery(Constant(int(width)), _, _),) if width > 0:
            pass
        case _:
            return None
    sign = invoke("substring", value, Constant(0), Constant(1))
    is_signed = Binary("in", sign, ArrayOf((Constant("+"), Constant("-"))))
    rest = invoke("substring", value, Constant(1))
    padded = Binary("&", sign, invoke("pad", rest, Constant(1 - width), Constant("0")))
    whole = invoke("pad", value, Constant(-width), Constant("0"))
    return Conditional(is_signed, padded, whole), STR, CANNOT_FAIL


RULES: Final[Mapping[str, MethodRule]] = MappingProxyType(
    {
        "upper": _plain("uppercase"),
        "lower": _plain("lowercase"),
        "startswith": _startswith,
        "endswith": _endswith,
        "removeprefix": _without_prefix,
        "removesuffix": _without_suffix,
        "strip": _strip("^%s+|%s+$"),
        "lstrip": _strip("^%s+"),
        "rstrip": _strip("%s+$"),
        "join": _join,
        "split": _split,
        "rsplit": _rsplit,
        "splitlines": _splitlines,
        "replace": _replace,
        "find": _find,
        "index": _index,
        "count": _count,
        "ljust": _just(1),
        "rjust": _just(-1),
        "zfill": _zfill,
    }
)


def int_of_any(value: TypedQuery) -> TypedQuery:
    """Return `int(value)` of a value of unknown type: a number, a bool or a text of digits."""

    def build(held: QueryTree) -> QueryTree:
        kind = invoke("type", held)
        number = towards_zero(as_numeric(TypedQuery(held, UNKNOWN)).query)
        return Conditional(Binary("=", kind, Constant("string")), as_int(held), number)

    query = hold(value.query, build, "_value")
    return TypedQuery(query, INT, value.fails | {"ValueError", "TypeError"})


def towards_zero(number: QueryTree) -> QueryTree:
    return hold(
        number,
        lambda held: Conditional(
            Binary("<", held, Constant(0)), invoke("ceil", held), invoke("floor", held)
        ),
        "_number",
    )


def as_int(text: QueryTree) -> QueryTree:
    """Return the query for `int(text)`: an error unless the text consists of ASCII digits."""
    bare = invoke("replace", text, Regex(f"^{SPACE}+|{SPACE}+$|[+_]"), _EMPTY)
    number = hold(invoke("number", bare), _in_range, "_number")
    is_int = invoke("contains", text, Regex(f"^{SPACE}*[+-]?[0-9]+(?:_[0-9]+)*{SPACE}*$"))
    return Conditional(is_int, number, failure("ValueError: invalid literal for int()"))


def _in_range(number: QueryTree) -> QueryTree:
    """Return the number, or an error beyond 2**53: a double cannot represent each such integer."""
    is_exact = Binary("<", invoke("abs", number), Constant(2**53))
    return Conditional(is_exact, number, failure("ValueError: the integer is beyond 2**53"))
