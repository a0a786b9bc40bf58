"""The methods of text: those that JSONata has, or that its functions spell out exactly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.dsl.context import Expression
from holdfast.dsl.expressions.query import (
    FALSE,
    ArrayOf,
    Binary,
    Call,
    Conditional,
    Constant,
    Query,
    Regex,
    failure,
    hold,
)
from holdfast.dsl.expressions.rules import CANNOT_FAIL, Found, Rule
from holdfast.dsl.types.types import BOOL, INT, STR, ListOf, Type, element_of, is_text

#: What `str.isspace()` is true for; JavaScript's own class of white space differs.
_SPACES: Final = (
    r"\t\n\u000b\f\r\u001c-\u001f \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
)
SPACE: Final = f"[{_SPACES}]"
_LINE_ENDS: Final = r"\r\n|[\n\r\u000b\f\u001c\u001d\u001e\u0085\u2028\u2029]"
_EMPTY: Final = Constant("")


def _plain(function: str) -> Rule:
    def rule(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
        return (Call(function, (value,)), STR, CANNOT_FAIL) if not arguments else None

    return rule


def _starts(value: Query, prefix: Query) -> Query:
    return Binary("=", Call("substring", (value, Constant(0), length(prefix))), prefix)


def _ends(value: Query, suffix: Query) -> Query:
    # A suffix longer than the value starts left of it and can never be equal.
    rest = Binary("-", length(value), length(suffix))
    is_longer = Binary("<", rest, Constant(0))
    end = Binary("=", Call("substring", (value, rest)), suffix)
    return Conditional(is_longer, FALSE, end)


def length(text: Query) -> Query:
    if isinstance(text, Constant) and isinstance(text.value, str):
        return Constant(len(text.value))
    return Call("length", (text,))


def _startswith(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(ArrayOf(prefixes), _, _) as several,) if _are_texts(several):
            return _any_of(tuple(_starts(value, prefix) for prefix in prefixes))
        case (Expression(prefix, type_, _),) if is_text(type_):
            return _starts(value, prefix), BOOL, CANNOT_FAIL
    return None


def _endswith(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(ArrayOf(suffixes), _, _) as several,) if _are_texts(several):
            return _any_of(tuple(_ends(value, suffix) for suffix in suffixes))
        case (Expression(suffix, type_, _),) if is_text(type_):
            return _ends(value, suffix), BOOL, CANNOT_FAIL
    return None


def _are_texts(several: Expression) -> bool:
    """A tuple of texts, as `startswith(("a", "b"))` takes it; a list it does not take."""
    element = None if isinstance(several.type, ListOf) else element_of(several.type)
    return element is not None and is_text(element)


def _any_of(tests: tuple[Query, ...]) -> Found:
    found: Query = FALSE
    for test in tests:
        found = test if found == FALSE else Binary("or", found, test)
    return found, BOOL, CANNOT_FAIL


def _without_prefix(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(prefix, type_, _),) if is_text(type_):
            rest = Call("substring", (value, length(prefix)))
            return Conditional(_starts(value, prefix), rest, value), STR, CANNOT_FAIL
    return None


def _without_suffix(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(suffix, type_, _),) if is_text(type_):
            size = Binary("-", length(value), length(suffix))
            rest = Call("substring", (value, Constant(0), size))
            return Conditional(_ends(value, suffix), rest, value), STR, CANNOT_FAIL
    return None


def _strip(pattern: str) -> Rule:
    """`pattern` is for `%s`, a class of characters; without an argument that is white space."""

    def rule(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
        match arguments:
            case ():
                characters = SPACE
            case (Expression(Constant(str(text)), _, _),) if text and _is_plain(text):
                characters = f"[{''.join(map(_escaped, text))}]"
            case _:
                return None
        found = Call("replace", (value, Regex(pattern.replace("%s", characters)), _EMPTY))
        return found, STR, CANNOT_FAIL

    return rule


def _is_plain(text: str) -> bool:
    """Other characters are two units of UTF-16, and would be two characters of a class."""
    return all(ord(character) < 0x10000 for character in text)


def _escaped(character: str) -> str:
    """In a class of characters: letters and digits stand for themselves."""
    if character.isascii() and character.isalnum():
        return character
    return f"\\u{ord(character):04x}"


def _join(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(items, type_, _),):
            element = element_of(type_)
            if element is not None and is_text(element):
                return Call("join", (items, value)), STR, CANNOT_FAIL
    return None


def _split(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case ():
            trimmed = Call("replace", (value, Regex(f"^{SPACE}+|{SPACE}+$"), _EMPTY))
            return hold(trimmed, _words, "_text"), ListOf(STR), CANNOT_FAIL
        case (Expression(Constant(str(separator)) as query, _, _),) if separator:
            return Call("split", (value, query)), ListOf(STR), CANNOT_FAIL
    return None


def _words(text: Query) -> Query:
    words = Call("split", (text, Regex(f"{SPACE}+")))
    return Conditional(Binary("=", text, _EMPTY), ArrayOf(()), words)


def _splitlines(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    """The end of the last line begins no further one."""
    if arguments:
        return None
    ended = Call("replace", (value, Regex(f"(?:{_LINE_ENDS})$"), _EMPTY))
    lines = Call("split", (ended, Regex(_LINE_ENDS)))
    return Conditional(Binary("=", value, _EMPTY), ArrayOf(()), lines), ListOf(STR), CANNOT_FAIL


def _replace(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(Constant(str(old)) as query, _, _), Expression(new, type_, _)) if (
            old and is_text(type_)
        ):
            return Call("replace", (value, query, new)), STR, CANNOT_FAIL
    return None


def _find(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(part, type_, _),) if is_text(type_):
            return _place(value, part, Constant(-1)), INT, CANNOT_FAIL
    return None


def _index(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(part, type_, _),) if is_text(type_):
            missing = failure("ValueError: substring not found")
            return _place(value, part, missing), INT, frozenset({"ValueError"})
    return None


def _place(value: Query, part: Query, otherwise: Query) -> Query:
    before = Call("length", (Call("substringBefore", (value, part)),))
    return Conditional(Call("contains", (value, part)), before, otherwise)


def _count(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    match arguments:
        case (Expression(Constant(str(part)) as query, _, _),) if part:
            pieces = Call("count", (Call("split", (value, query)),))
            return Binary("-", pieces, Constant(1)), INT, CANNOT_FAIL
    return None


def _just(sign: int) -> Rule:
    def rule(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
        match arguments:
            case (Expression(Constant(int(width)), _, _),):
                fill = " "
            case (Expression(Constant(int(width)), _, _), Expression(Constant(str(fill)), _, _)):
                pass
            case _:
                return None
        if width < 0 or len(fill) != 1:
            return None
        return Call("pad", (value, Constant(sign * width), Constant(fill))), STR, CANNOT_FAIL

    return rule


def _zfill(value: Query, _: Type, arguments: tuple[Expression, ...]) -> Found | None:
    """Zeros go between a sign and the rest."""
    match arguments:
        case (Expression(Constant(int(width)), _, _),) if width > 0:
            pass
        case _:
            return None
    sign = Call("substring", (value, Constant(0), Constant(1)))
    is_signed = Binary("in", sign, ArrayOf((Constant("+"), Constant("-"))))
    rest = Call("substring", (value, Constant(1)))
    padded = Binary("&", sign, Call("pad", (rest, Constant(1 - width), Constant("0"))))
    whole = Call("pad", (value, Constant(-width), Constant("0")))
    return Conditional(is_signed, padded, whole), STR, CANNOT_FAIL


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
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


def as_int(text: Query) -> Query:
    """What `int(text)` gives for ASCII digits; an error for anything else."""
    bare = Call("replace", (text, Regex(f"^{SPACE}+|{SPACE}+$|[+_]"), _EMPTY))
    number = hold(Call("number", (bare,)), _in_range, "_number")
    is_int = Call("contains", (text, Regex(f"^{SPACE}*[+-]?[0-9]+(?:_[0-9]+)*{SPACE}*$")))
    return Conditional(is_int, number, failure("ValueError: invalid literal for int()"))


def _in_range(number: Query) -> Query:
    """Beyond 2**53 a JSON number is not the integer that the text says."""
    is_exact = Binary("<", Call("abs", (number,)), Constant(2**53))
    return Conditional(is_exact, number, failure("ValueError: the integer is beyond 2**53"))
