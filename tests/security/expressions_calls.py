"""JSONata that calls one function with large values, again and again.

Each function takes its own time to read its arguments. Calling all of them finds a function without
a price.
"""

from __future__ import annotations

from random import Random
from typing import Final

_SIZES: Final = [60, 60, 1_000, 2_400, 9_000, 30_000, 100_000, 300_000, 999_999]
_TIMES: Final = [1, 1, 20, 80, 1_000, 5_000, 20_000, 70_000]
_NUMBERS: Final = [
    "1", "0", "-1", "2", "36", "5.5", "0.1", "1e20", "1e300", "-1e300", "1e-300", "{n}",
]  # fmt: skip
_TEXTS: Final = [
    "'a'", "''", "'w'", "'W;o'", "'I'", "'a-b'", "'SHA-512'", "'#,##0'", "'[Y0001]'",
    "$pad('a', {n}, 'a')", "$pad('a', {n}, 'a') & 'b'",
    "$pad('a', {n}, 'a') & 'b' & $pad('a', {n}, 'a')",
    *(
        f"$pad('{text}', {{n}}, '{text}')"
        for text in (
            "a ", "é", "𝄞", "Σ", "ß", "0", "%20", "%C3%A9", "#,0.", "[Y]", "[Z]", "[MNn,3-3]",
            "[", "M", "z", "one ", '"',
        )
    ),
    "('[0' & $pad('', {n}, ',0') & ']')",
]  # fmt: skip
_LISTS: Final = [
    "[]", "[1..{n}]",
    *(f"$reduce([1..{depth}], function($a, $i){{{{[$a, $a]}}}}, [0])" for depth in (15, 20, 60)),
    "$map([10..40], function($i){{$pad('a', {n}, 'a') & $string($i)}})",
    "$map([10..40], function($i){{{{$pad('a', {n}, 'a') & '1': $i}}}})",
    *(
        f"$map([1..{{n}}], function($i){{{{{item}}}}})"
        for item in (
            "$string($i)", "[$i, -1]", "[-1 - $i % 2, -2]", "{{'a': $i}}", "{{$string($i): $i}}",
            "-1", "$i / 3", "true", "null", "{{}}", "[]", "$pad('a', 80)",
        )
    ),
]  # fmt: skip
_OBJECTS: Final = [
    "{{}}", "{{'a': $pad('a', {n})}}",
    "$merge($map([1..{n}], function($i){{{{$string($i): $i}}}}))",
    *(
        f"$reduce([1..{depth}], function($a, $i){{{{{{{{'a': $a, 'b': $a}}}}}}}}, [0])"
        for depth in (15, 20, 60)
    ),
]  # fmt: skip
_CALLABLE: Final = [
    "function($x){{$x}}", "function($x, $y){{$x > $y}}", "function($x, $y){{$x & $y}}",
    "function($x, $y, $z){{$x}}", "$string", "$uppercase", "$keys", "$not", "/a/", "/(a|b)*c/",
]  # fmt: skip
_VALUES: Final = {
    "n": _NUMBERS,
    "s": _TEXTS,
    "a": _LISTS,
    "o": _OBJECTS,
    "f": _CALLABLE,
    "b": ["true", "false"],
}
#: The parameters of each function: a text or a function is `sf`.
FUNCTIONS: Final = {
    name: tuple(kinds.split())
    for name, kinds in {
        "abs": "n", "append": "a a", "assert": "b s", "average": "a", "base64decode": "s",
        "base64encode": "s", "boolean": "sano", "ceil": "n", "clone": "ao", "contains": "s sf",
        "count": "a", "decodeUrl": "s", "decodeUrlComponent": "s", "distinct": "a", "each": "o f",
        "encodeUrl": "s", "encodeUrlComponent": "s", "error": "s", "exists": "sano",
        "filter": "a f", "floor": "n", "formatBase": "n n", "formatInteger": "n s",
        "formatNumber": "n s", "fromMillis": "n s s", "hash": "s s", "join": "a s", "keys": "ao",
        "length": "s", "lookup": "ao s", "lowercase": "s", "map": "a f", "match": "s f n",
        "max": "a", "merge": "a", "millis": "", "min": "a", "not": "sano", "now": "s s",
        "number": "sn", "pad": "s n s", "parse": "s", "parseInteger": "s s", "partition": "a n",
        "power": "n n", "random": "n", "range": "n n n", "reduce": "a f sn", "replace": "s sf sf n",
        "reverse": "a", "round": "n n", "shuffle": "a", "sift": "o f", "single": "a f",
        "sort": "a f", "split": "s sf n", "spread": "ao", "sqrt": "n", "string": "ano b",
        "substring": "s n n", "substringAfter": "s s", "substringBefore": "s s", "sum": "a",
        "toMillis": "s s", "trim": "s", "type": "sano", "uppercase": "s", "uuid": "",
        "zip": "a a a a",
    }.items()
}  # fmt: skip
_OPERATIONS: Final = [
    "{0} in {1}", "{0} = {1}", "{0} < {1}", "{0} & {1}", "{0} + {1}", "{0} % {1}", "-{0}",
    "{0} or {1}", "[{0}, {1}]", "[{0}..{1}]", "{{{0}: {1}}}", "{0}.({1})", "{0}[{1}]", "{0}[0]",
    "{0}[$ = {1}]", "{0}[$ > {1}]", "{0}^($)", "{0}^(a)", "{0}{{$: $}}", "{0}{{$string($): $}}",
    "{0}.a", "{0}.a.b", "{0}.*", "{0}.**", "{0}.a.(%)", "{0}[]", "{0}[[1..3]]", "{0}.$string()",
    "{0}.$uppercase()", "{0}@$z.$z", "{0}#$z.$z", "{0} ~> {1}", "{0}({1})",
    "{0} ~> |$|{{'z': 1}}|", "{0} ~> |**|{{'z': 1}}|",
]  # fmt: skip
_OFTEN: Final = [
    "$map([1..{times}], function($i){{{call}}})", "$map([1..{times}], function($i){{({call}; 1)}})",
    "$filter([1..{times}], function($i){{{call}}})",
    "[1..{times}].({call})", "[1..{times}]^({call})",
    "$sort([1..{times}], function($l, $r){{{call}}})",
]  # fmt: skip


def calls(draw: Random) -> str:
    """Return a function or an operation, its arguments made once, called up to 70,000 times."""
    if draw.random() < 0.7:
        name, kinds = draw.choice(list(FUNCTIONS.items()))
        given = tuple(f"$p{at}" for at in range(draw.randint(min(1, len(kinds)), len(kinds))))
        call = f"${name}({', '.join(given)})"
    else:
        kinds, given = ("sano", "sanof"), ("$p0", "$p1")
        call = draw.choice(_OPERATIONS).format(*given)
    made = [f"{name} := {_value(draw, kind)}; " for name, kind in zip(given, kinds, strict=False)]
    often = draw.choice(_OFTEN).format(times=draw.choice(_TIMES), call=call)
    return f"({''.join(made)}$count({often}))"


def _value(draw: Random, kinds: str) -> str:
    kind = draw.choice("sanof" if draw.random() < 0.05 else kinds)
    return draw.choice(_VALUES[kind]).format(n=draw.choice(_SIZES))
