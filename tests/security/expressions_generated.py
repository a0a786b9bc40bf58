"""Random expressions for three parsers: paths, JSONata, intrinsic functions."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from holdfast.asl.jsonata.jsonata import JsonataError
from holdfast.asl.jsonpath.intrinsic_functions import FUNCTIONS
from holdfast.asl.jsonpath.intrinsics import compile_intrinsic
from holdfast.asl.jsonpath.jsonpath import (
    PathMissing,
    PathSyntaxError,
    ReferenceConflict,
    compile_path,
    compile_reference,
)
from holdfast.asl.template import StateError
from tests.security.cases import Outcome, generator
from tests.security.expressions_calls import calls
from tests.security.expressions_kit import (
    DATA,
    RESULT_CHARACTERS_MAX,
    evaluated,
    require_named,
    scope,
)
from tests.unit import bad_input
from tests.unit.jsonata_differential_test import Generator

#: Signs, names and numbers that a language has rules about.
_SIGNS: Final = ["$", ".", "..", "*", "[", "]", "(", ")", "?", "@", ",", ":", "'", '"', "\\", "-"]
_WORDS: Final = ["a", "items", "text", "é", "\ud800", "\x00", " ", "0", "1", "-1", "9" * 30, "1e9"]
_STEPS: Final = [
    ".a", ".items", ".*", "..", "..*", "..a", "[0]", "[-1]", "[*]", "[0,1]", "[0:2]", "['a']",
    "['a','b']", "[?(@.a)]", "[?(@.a == 1)]", "[?(@ =~ /(a|a)*b/)]", "[?(@.a > $.number)]",
    "[?(!@.a || @.b && @.c)]", "[?(@..a)]", "[(@.length-1)]", ".length()", "[99999999]",
]  # fmt: skip
_STEPS_MAX: Final = 8
_DEPTH_MAX: Final = 4


def _noise(draw: Random, pieces: list[str]) -> str:
    return "".join(draw.choices(pieces, k=draw.randint(0, 24)))


def _spoilt(draw: Random, text: str, pieces: list[str]) -> str:
    """The text with up to three places of it cut out, doubled, or written over."""
    for _ in range(draw.randrange(4)):
        start = draw.randrange(len(text) + 1)
        end = start + draw.choice([0, 1, 1, 5])
        inside = draw.choice([*pieces, "", text[start:end] * 2])
        text = text[:start] + inside + text[end:]
    return text


# -- paths -----------------------------------------------------------------------------------------


def _path(draw: Random) -> str:
    if draw.random() < 0.2:
        return "$" + _noise(draw, _SIGNS + _WORDS)
    root = draw.choice(["$", "$", "$", "$$", "$v", ""])
    steps = draw.choices(_STEPS, k=draw.randint(0, _STEPS_MAX))
    return _spoilt(draw, root + "".join(steps), _SIGNS + _WORDS)


@generator("paths", full=50_000)
def path(draw: Random) -> Outcome:
    """No path, nothing there, or a value; and no place to put one but in objects and arrays."""
    text, data = _path(draw), draw.choice([DATA, bad_input.junk(draw, 4)])
    before = repr(data)
    try:
        reference = compile_reference(text)
    except PathSyntaxError:
        pass
    else:
        try:
            reference.put(data, 1)
        except ReferenceConflict as conflict:
            assert conflict.reason
    try:
        compile_path(text).find(data)
    except (PathSyntaxError, PathMissing) as problem:
        assert str(problem)
        return "refused"
    finally:
        assert repr(data) == before
    return "accepted"


# -- JSONata ---------------------------------------------------------------------------------------

_TOKENS: Final = [
    *_SIGNS, *_WORDS, "~>", ":=", ";", "{", "}", "|", "^", "#", "%", "&", "/", "/a*/", "λ", "in",
    "and", "or", "function", "function($x){", "$map(", "$reduce(", "[1..9]", "$states", "$error",
    "$eval", "null", "true", "`", "/*", "*/", "$$", "**", "!=", "<=", "?:", "$now()", "$uuid()",
]  # fmt: skip
#: Sizes that a bomb may ask for; the largest that still fit are the most work.
_SIZES: Final = [0, 1, 2, 20, 22, 24, 60, 1_000, 5_000, 30_000, 100_000, 999_999, 10**6, 10**9]
_SOURCES: Final = [
    "[1..{n}]", "$pad('a', {n}, 'a')", "$range(1, {n}, 1)", "$split($pad('a', {n}, 'a'), '')",
    "$map([1..{n}], function($i){{$i}})",
    "$map([10..40], function($i){{$pad('a', {n}) & $string($i)}})",
    "$merge($map([1..{n}], function($i){{{{$string($i): $i}}}}))",
    "$reduce([1..{n}], function($a, $i){{[$a, $a]}}, [0])", "$states.input", "$v.x", "$a",
    "$reduce([1..{n}], function($a, $i){{{{'a': $a, 'b': $a}}}}, 1)", "$power({n}, {n})", "{n}",
    "$reduce([1..{n}], function($a, $i){{$a & $a}}, 'ab')", "$string([1..{n}])", "$millis()",
    "($f := function($n){{$n > {n} ? 0 : $f($n + 1)}}; $f(0))", "$parse($pad('[', {n}, '['))",
]  # fmt: skip
_USES: Final = [
    "$count({x})", "$string({x})", "$sum({x})", "{x} = {y}", "{x} in {y}", "{x} & {y}",
    "{x} ? 1 : 2",
    "$map({x}, function($i){{{y}}})", "{x}.({y})", "{x}[{y}]", "{x}^($)", "{x}{{$string($): $}}",
    "$sort({x}, function($l, $r){{$l > $r}})", "$distinct({x})", "$append({x}, {y})", "{x}.**",
    "$reduce({x}, function($l, $r){{$l & $r}})", "$match({x}, /(a|aa)+b/)", "{x} ~> |$|{{'z': 1}}|",
    "$replace({x}, /a/, {y})", "$zip({x}, {y})", "$shuffle({x})", "$hash({x}, 'MD5')", "[{x}, {y}]",
    "$formatNumber({x}, '#,##0.00')", "$fromMillis({x}, '[Y0001]')", "$substring({x}, {n})",
    "$formatBase({x}, {n})", "$round({x}, {n})", "$formatInteger({x}, 'w')", "-({x})", "{x} + {y}",
    "$partition({x}, {n})", "$pad({x}, {n})", "$filter({x}, function($i){{{y}}})", "{x} or {y}",
    "$toMillis({x}, '[Y]')", "$keys({x})", "$each({x}, function($i){{$i}})", "$lookup({x}, 'a')",
]  # fmt: skip


def _bomb(draw: Random, depth: int) -> str:
    size = draw.choice(_SIZES)
    if depth == 0:
        return draw.choice(_SOURCES).format(n=size)
    left, right = _bomb(draw, depth - 1), _bomb(draw, draw.randrange(depth))
    return draw.choice(_USES).format(x=f"({left})", y=f"({right})", n=size)


def _jsonata(draw: Random) -> str:
    match draw.randrange(15):
        case 0 | 1:
            return " ".join(draw.choices(_TOKENS, k=draw.randint(0, 16)))
        case 2 | 3 | 4 | 5:
            written = Generator(draw.getrandbits(32)).expression(draw.randint(1, _DEPTH_MAX))
            return _spoilt(draw, written, _TOKENS)
        case 6 | 7 | 8 | 9:
            return _bomb(draw, draw.randint(0, 2))
        case _:
            return calls(draw)


@generator("jsonata", full=50_000)
def jsonata(draw: Random) -> Outcome:
    """An expression that cannot be parsed, one that fails by name, or a value of some size."""
    try:
        evaluated(_jsonata(draw))
    except JsonataError as error:
        assert error.code and error.message
        return "refused"
    except StateError as error:
        require_named(error)
        return "refused"
    return "accepted"


# -- intrinsic functions ---------------------------------------------------------------------------

_FUNCTIONS: Final = [
    "Array", "ArrayPartition", "ArrayContains", "ArrayRange", "ArrayGetItem", "ArrayLength",
    "ArrayUnique", "Base64Encode", "Base64Decode", "Hash", "JsonMerge", "StringToJson",
    "JsonToString", "MathRandom", "MathAdd", "StringSplit", "UUID", "Format", "Nothing", "format",
]  # fmt: skip
_ARGUMENTS: Final = [
    "1", "0", "-1", "2.5", "1e308", "9999999999", "9" * 300, "true", "null", "'a'", "''", "'{}'",
    "'{'", "'[1, 2]'", "'\\\\'", "'\\u00e9'", "'\\ud800'", "'SHA-256'", "'%%%'",
    "$", "$.items", "$.text",
    "$.no", "$.object", "$.long", "$.long[0]", "$$.Execution", "$v.x", "$w", "$.items[*]", "$..a",
    "'" + "x" * 9_999 + "'", "'" + "[" * 5_000 + "'",
]  # fmt: skip


def _call(draw: Random, depth: int) -> str:
    name = draw.choice(_FUNCTIONS)
    fitting = FUNCTIONS[f"States.{name}"].count_min if f"States.{name}" in FUNCTIONS else 1
    count = fitting if draw.random() < 0.8 else draw.choice([0, 1, 2, 3, 4, 50])
    given = [
        _call(draw, depth - 1) if depth and draw.random() < 0.2 else draw.choice(_ARGUMENTS)
        for _ in range(count)
    ]
    return f"States.{name}({', '.join(given)})"


@generator("intrinsics", full=20_000)
def intrinsic(draw: Random) -> Outcome:
    """No call, a failure with the name States.Runtime, or a value that can be written down."""
    text = _spoilt(draw, _call(draw, 3), _SIGNS + _WORDS) if draw.random() < 0.4 else _call(draw, 2)
    value: Any = None
    try:
        value = compile_intrinsic(text).evaluate(scope())
    except PathSyntaxError as problem:
        assert str(problem)
        return "refused"
    except StateError as error:
        require_named(error)
        return "refused"
    assert len(repr(value)) < RESULT_CHARACTERS_MAX
    return "accepted"
