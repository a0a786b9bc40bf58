"""Closures against jsonata-python: whatever the closures answer, the reference answers the same.

Closures may decline; they may never differ. The generator is seeded, and a failing test shows the
expression and its bindings; `SEED` repeats all of them.
"""

from __future__ import annotations

import json
import logging
import random
from typing import Any

import pytest

from holdfast.asl.jsonata import fallback
from holdfast.asl.jsonata.closures import compile_closures
from holdfast.asl.jsonata.jsonata import UNDEFINED, EvaluationMoment, JsonataError
from holdfast.asl.jsonata.runtime import Declined, EvaluationRun
from holdfast.asl.jsonata.tree import UnsupportedNode

LOG = logging.getLogger(__name__)
SEED = 20_261_121
CASES = 800
GROUPED_CASES = 600
MOMENT = EvaluationMoment(now_ms=1_790_000_000_000, draw=lambda: 0.25)

BINDINGS: dict[str, Any] = {
    "a": [1, 2, 3],
    "n": None,
    "i": 1,
    "f": 7.0,
    "big": 12_345_678_901_234_567_890,
    "nested": [[1], [2, 3], []],
    "none": [],
    "one": [{"x": 1}],
    "o": {"k": [{"x": 1, "t": "b"}, {"x": None, "t": "a"}, {"t": "a"}], "s": "text", "z": {}},
    "order": {"id": "O-1", "lines": [{"sku": "A", "qty": 2, "cents": 150}, {"sku": "B", "qty": 1}]},
}

# Everything that the compiler of workflows emits, and the corners of JSONata next to it.
TABLE = """
$order.id | $order.lines | $order.lines.sku | $order.lines[0].sku | $order.lines[-1] | $order.x.y
$order.lines[qty > 1] | $order.lines[qty > 1].sku | $order.lines[sku = "B"].qty | $order.lines[5]
$order.lines[$i].sku | $order.lines[$i - 1] | $order.lines^(>qty) | $order.lines^(sku, >qty).sku
$one | $one.x | $one[0] | [$one.x] | $none | $none.x | $none[0] | [$none] | $nested
$nested[1][0] | $nested[$i] | $nested[$i][0] | $nested[0] | $a[$i] | $a[-$i] | $a[1.0]
$a[[0, 2]] | $a[$ > 1] | $a[$missing] | $a["x"] | $a[""] | $a[true] | $a[false] | $o.k.x
$o.k[x = 1] | $o.k[x = null].t | $o.k[$not($exists(x))] | $o.k.t[0] | $o.k[0].t | ($o.k.t)[0]
$o.k.(t) | $o.k.{"t": t, "x": x} | $o.k.(x + 1) | $o.z.y | $o.s.y | $n | $n.x | $n = null
$missing | $missing = null | $missing.x | $i + 1 | $i - 2.5 | $f + 0 | $f * 2 | 7 / 2 | 6 / 2
7 % 3 | -7 % 3 | 5.5 % 2 | 0.1 + 0.2 | $big | $big & "" | $big + 0 | 9007199254740992 + 1
3 * 0.1 | -$i | -$f | -$missing | $missing + 1 | 1e20 | $i < 2 | $i <= 1.0 | "a" < "b"
$missing < 1 | $i = 1.0 | true = 1 | "1" = 1 | [1, [2]] = [1, [2]] | {"a": 1} = {"a": 1} | $i != 1
$missing != 1 | 1 in $a | "1" in $a | true in [1] | 1 in 1 | 1 in [] | true and 1 | "" or 0
[0] and true | [0, 1] or false | $missing and true | $n or "x" | {} or false
"a" & 1 & 1.50 & true & null & $missing | "x" & $a & $o.z | "n " & 1e21 & " " & 1e-7
0.1 + 0.2 & "" | $i > 0 ? "y" : "n" | $missing ? 1 | $n ? 1 : 2 | [] ? 1 : 2 | ($x := 1; $x + 1)
($x := $a; $x[0]) | ($v := $a[0]; $exists($v) ? $v : $error("no"))
($v := $a[9]; $exists($v) ? $v : $error("no [9]")) | ($x := 1; ($x := 2; $x) + $x)
($x := $missing; $exists($x)) | $x := 5 | ($y; $y := 1; $y) | [] | [1] | [1, [2], $a, [$a]]
[$missing] | [$n] | [$map($a, function($v){$v * 2})] | [[], $none]
[$map($nested, function($v){$v})] | $map($nested, function($v){$v})
$map($a, function($v){$v})[0] | [$map($a, function($v, $i){$v * $i})]
[$map($a, function($v, $i, $all){$count($all)})] | [1..3] | [$filter($a, function($v){$v > 1})]
$filter($a, function($v){$v = 2}) | [$filter($a, function($v){0})]
[$map($a, function($v){$v > 1 ? $v : $missing})] | $map($none, function($v){$v}) | [3..1]
[0..$i] | $map(5, function($v){$v}) | $map($a, function($v){$map($a, function($w){$w * $v})})
[$i..$i] | $map($a, function($v){$filter($a, function($w){$w > $v})})
$map($missing, function($v){1}) | $reduce($a, function($s, $v){$s + $v})
$reduce($a, function($s, $v){$s + $v}, 10) | [$i..2, 9]
$reduce($nested, function($s, $v){$append($s, [[$v]])}, []) | $reduce($none, function($s, $v){1})
$reduce($none, function($s, $v){1}, 0) | $reduce($a, function($s, $v, $i){$s + $i}, 0)
true in $map($nested, function($y){$y = [1]}) | ($f := function($v){$v + $i}; $map($a, $f))
($f := function($n){$n < 2 ? 1 : $n * $f($n - 1)}; $f(6)) | ($f := function($x, $y){$y}; $f(1, 2))
($f := function($n){$n = 0 ? "end" : $f($n - 1)}; $f(50)) | ($x := 1; $f := function(){$x}; $f())
$sum($a) | $sum([]) | $sum([0.1, 0.2, 0.3]) | $sum($missing) | $sum(5) | $min($a) | $max([])
$average($a) | $count($a) | $count($none) | $count($missing) | $count($n) | $count(5)
$count([[1, 2]]) | $max([1, 2.5]) | $floor(2.7) | $floor(-2.5) | $ceil(2.1) | $round(2.5)
$round(3.5) | $round(-2.5) | $round(1.005, 2) | $round(1234.5, -2) | $abs(-3) | $abs(-2.5)
$number("12.50") | $number("0x1F") | $number(true) | $number("1e3") | $string($a) | $string($o)
$string(1.0) | $string("s") | $string($n) | $string($missing) | $string(0.1 + 0.2)
$length("naïve 𝄞") | $substring("hello", 1) | $substring("hello", -3, 2)
$substring("hello", 1, 0) | $substring("hello", 9) | $uppercase("straße") | $lowercase("ÄB")
$trim("x") | $join(["a", "b"], "-") | $join([]) | $join("a") | $split("a,b,,c", ",")
$split("a", ",") | $replace("a-b-c", "-", "+") | $replace("aa", "a", "$0")
$contains("abc", "bc") | $substringBefore("a-b", "-") | $substringAfter("ab", "x")
$merge([{"a": 1}, {"a": 2, "b": 3}]) | $merge([]) | $merge($o.k) | $keys($o) | $keys({"a": 1})
$keys({}) | $lookup($o, "k") | $lookup($o, "no") | $lookup({"a": null}, "a")
{"k": $missing, "n": $n} | {} | {"a": {"b": [$a]}, "c": $order.lines.qty} | {$o.s: 1, "x": 2}
{$missing: 1} | {"a": 1, $o.s: 2} | $type($a) | $type($n) | $type($missing) | $type(1)
$not(true) | $not($missing) | $boolean("0") | $boolean([0]) | $sort(["b", "a"])
$sort([3, 1, 2.5]) | $sort($o.k, function($l, $r){$l.t > $r.t}) | $sort([]) | $sort(1)
$reverse($a) | $reverse([1]) | $append($a, 4) | $append([], []) | $append($missing, 1)
$append(1, $none) | $zip($a, ["x", "y"]) | $exists($n) | $exists($missing) | $error("boom")
$nested.$count($) | $a.($ * 2)
($r := $map($a, function($v){$filter($a, function($w){$w = $v})}); $r[0])
"{% not an expression %}" | $o.k.t ~> $join("-")
$a ~> $map(function($v){$v + 1}) | $o.*.t | $o.**.x
"""
EXPRESSIONS = [text.strip() for line in TABLE.splitlines() for text in line.split(" | ") if text]


def outcome(evaluate: Any) -> Any:
    """Return the result of an evaluation, comparable to the last bit: 1 differs from 1.0, undefined
    from null.
    """
    try:
        result = evaluate()
    except JsonataError as error:
        return (error.code, error.message)
    return "undefined" if result is UNDEFINED else json.dumps(result)


def compare(text: str, bindings: dict[str, Any]) -> bool:
    """Return True when the closures answered. Fails when the results differ, or when either changed
    a binding.
    """
    before = json.dumps(bindings)
    tree = fallback.parse(text)
    try:
        compiled = compile_closures(tree, fallback.FUNCTION_NAMES)
        mine = outcome(lambda: compiled.evaluate(EvaluationRun(bindings)))
    except (UnsupportedNode, Declined):
        return False
    reference = outcome(lambda: fallback.evaluate(tree, EvaluationRun(bindings), MOMENT))
    assert mine == reference, f"{text} with {before}"
    assert json.dumps(bindings) == before, f"{text} changed its bindings"
    return True


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_means_the_same_to_both_engines(text: str) -> None:
    compare(text, BINDINGS)


def test_the_closures_answer_nearly_all_of_the_table() -> None:
    declined = [text for text in EXPRESSIONS if not compare(text, BINDINGS)]
    assert len(declined) < 0.12 * len(EXPRESSIONS), declined


class Generator:
    """Random values and expressions over them. Half of its output is invalid, on purpose."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def value(self, depth: int = 0) -> Any:
        kind = self._random.random()
        if depth > 2 or kind < 0.45:
            return self.pick(0, 1, 2, -1, 2.5, 1.0, "a", "b", "", True, False, None, 10**15)
        if kind < 0.7:
            return [self.value(depth + 1) for _ in range(self.pick(0, 1, 1, 2, 3))]
        return {self.pick(*"abc"): self.value(depth + 1) for _ in range(self.pick(0, 1, 2))}

    def bindings(self) -> dict[str, Any]:
        rows = [{"a": self.value(2), "b": self.value(1)} for _ in range(self.pick(0, 1, 2, 3))]
        inner = {"a": self.value(1), "b": self.value(1)}
        return {"a": self.value(), "c": self.pick(0, 1, -1, 1.5, "a"), "d": inner, "e": rows}

    def expression(self, depth: int, names: tuple[str, ...] = ()) -> str:
        if depth == 0:
            leaves = ("$a", "$c", "$d.a", "$d.b.c", "$e", "$e.a", "$z", "1", "-1", "2.5", '"a"')
            return str(self.pick(*leaves, "null", "true", "[]", *names, *names, *names))
        return str(getattr(self, self.pick(*self.FORMS))(depth - 1, names))

    FORMS: tuple[str, ...] = (
        "operator",
        "operator",
        "operator",
        "choice",
        "index",
        "array",
        "object",
        "path",
    )
    FORMS += (
        "block",
        "map",
        "filter",
        "reduce",
        "call",
        "call",
        "call_of_two",
        "order",
        "function",
    )

    def operator(self, depth: int, names: tuple[str, ...]) -> str:
        sign = self.pick(*"+-*/%<>=&", "<=", ">=", "!=", "and", "or", "in")
        return f"({self.expression(depth, names)} {sign} {self.expression(depth, names)})"

    def choice(self, depth: int, names: tuple[str, ...]) -> str:
        test, then, other = (self.expression(depth, names) for _ in range(3))
        return f"({test} ? {then} : {other})"

    def index(self, depth: int, names: tuple[str, ...]) -> str:
        inside = (*names, "$", "a", "b", "a.b")
        predicate = self.pick("0", "1", "-1", "$c", self.expression(depth, inside))
        return f"{self.pick('$a', '$d.a', '$e', '$e.a', '$e.b')}[{predicate}]"

    def array(self, depth: int, names: tuple[str, ...]) -> str:
        return f"[{', '.join(self.expression(depth, names) for _ in range(self.pick(1, 2)))}]"

    def object(self, depth: int, names: tuple[str, ...]) -> str:
        return f'{{"a": {self.expression(depth, names)}, "b": {self.expression(depth, names)}}}'

    def path(self, depth: int, names: tuple[str, ...]) -> str:
        step = self.pick(
            "a", "b", "a.b", "a[0]", "b[a = 1]", "(a)", '{"k": a}', "a.b[1]", "(a & b)"
        )
        return f"({self.expression(depth, names)}).{step}"

    def block(self, depth: int, names: tuple[str, ...]) -> str:
        name = self.pick("$p", "$q")
        value, rest = self.expression(depth, names), self.expression(depth, (*names, name))
        return f"({name} := {value}; {rest})"

    def map(self, depth: int, names: tuple[str, ...]) -> str:
        parameters = self.pick("$v", "$v, $i")
        body = self.expression(depth, (*names, "$v"))
        call = f"$map({self.expression(depth, names)}, function({parameters}){{{body}}})"
        return str(self.pick(f"[{call}]", call, f"{call}[0]", f"{call}.a"))

    def filter(self, depth: int, names: tuple[str, ...]) -> str:
        body = self.expression(depth, (*names, "$v"))
        return f"[$filter({self.expression(depth, names)}, function($v){{{body}}})]"

    def reduce(self, depth: int, names: tuple[str, ...]) -> str:
        body = self.expression(depth, (*names, "$v", "$s"))
        start = self.pick("", ", 0", ", []")
        return f"$reduce({self.expression(depth, names)}, function($s, $v){{{body}}}{start})"

    def call(self, depth: int, names: tuple[str, ...]) -> str:
        name = self.pick("abs", "average", "boolean", "count", "exists", "floor", "join", "keys")
        other = self.pick("length", "max", "merge", "min", "not", "number", "round", "sort")
        third = self.pick("reverse", "string", "sum", "type", "uppercase", "lowercase", "ceil")
        return f"${self.pick(name, other, third)}({self.expression(depth, names)})"

    def call_of_two(self, depth: int, names: tuple[str, ...]) -> str:
        name = self.pick(
            "append", "contains", "split", "join", "substring", "zip", "lookup", "round"
        )
        return f"${name}({self.expression(depth, names)}, {self.expression(depth, names)})"

    def order(self, depth: int, names: tuple[str, ...]) -> str:
        return f"({self.pick('$e', '$a', '$d.b')}^({self.pick('a', '>a', 'b, >a', '$')}))"

    def function(self, depth: int, names: tuple[str, ...]) -> str:
        body = self.expression(depth, (*names, "$v"))
        return f"($f := function($v){{{body}}}; $f({self.expression(depth, names)}))"


class Grouping(Generator):
    """Groups, `~>`, regular expressions, paths that start with an array: in one another."""

    NEWER = ("group", "applied", "array_path")
    FORMS = (*Generator.FORMS, *3 * NEWER)
    ITEMS = (
        *("$e", "$e", "$e.b", "$a", "$d.b", "$e[a]", "$e[0]", "$e^(a)", "$z", "$e.(b).a", "$d"),
        *("$map($e, function($v){$v.b})", "$filter($e, function($v){$v.a})", "$keys($d)"),
    )

    def newer(self) -> str:
        return str(getattr(self, self.pick(*self.NEWER))(self.pick(0, 1, 1, 2), ()))

    def group(self, depth: int, names: tuple[str, ...]) -> str:
        inside = (*names, "$", "a", "b", "a.b", "$count($)", "[a]", "b[0]", "{'n': $count(a)}")
        keys = ('"a"', '"b"', "a", "$string(a)", "$string($)", "$type(b)")
        pairs = [
            f"{self.pick(*keys, self.expression(depth, inside))}: {self.expression(depth, inside)}"
            for _ in range(self.pick(1, 1, 2))
        ]
        made = f"{{{', '.join(pairs)}}}"
        whole = f"{self.pick(*self.ITEMS, f'({self.expression(depth, names)})')}{made}"
        each = f"$map($e, function($v){{$v{made}}})"
        return str(self.pick(whole, whole, f"{whole}.a", f"$e.({whole})", f"$e.b.{made}", each))

    def applied(self, depth: int, names: tuple[str, ...]) -> str:
        value = self.expression(depth, names)
        call = self.pick("$sum", "$count", "$string()", "$append(1)", "$keys()", "$distinct")
        other = self.pick("$map(function($v){$v})", "$filter(function($v){$v})", "$pad(-4, 'x')")
        third = self.pick("$trim()", "$hash('MD5')", "$hash('x')", "$sort()", "$lookup('a')")
        fourth = self.pick("$match(/(a)|b/)", "$replace(/a|(b)/, '<$1$0>')", "$split(/[ab]/)")
        fifth = self.pick("$contains(/B/i)", "$match(/a?/)", "$distinct()", "$uppercase")
        body = self.expression(depth, (*names, "$v"))
        own = f"($f := function($v){{{body}}}; {value} ~> {self.pick('$f', '$f()')})"
        applied = f"({value} ~> {self.pick(call, other, third, fourth, fifth)})"
        return str(self.pick(own, applied, applied, f"({applied} ~> $count())"))

    def array_path(self, depth: int, names: tuple[str, ...]) -> str:
        items = ("$a", "$e", "$c", "1..3", "$c..2", "$d.b", "$z", '"a"', "[1]", "$count($a)")
        array = f"[{', '.join(self.pick(*items) for _ in range(self.pick(1, 1, 2)))}]"
        step = self.pick("a", "b[0]", "$", "$string($)", '{"a": $}', "(a = 1)", "a.b")
        rest = self.pick("", "", ".a", f"{{$string($): {self.expression(depth, (*names, '$'))}}}")
        return str(self.pick(f"{array}.{step}{rest}", f"$e.({array}.{step}{rest})"))


def test_random_expressions_mean_the_same_to_both_engines() -> None:
    generator = Generator(SEED)
    answered = 0
    for _ in range(CASES):
        text = generator.expression(generator.pick(1, 2, 2, 3))
        answered += compare(text, generator.bindings())
    LOG.info("seed %d: the closures answered %d of %d", SEED, answered, CASES)
    assert answered > CASES / 4


def test_random_groups_and_applications_mean_the_same_to_both_engines() -> None:
    generator = Grouping(SEED)
    answered = 0
    for _ in range(GROUPED_CASES):
        answered += compare(generator.newer(), generator.bindings())
    LOG.info("seed %d: the closures answered %d of %d", SEED, answered, GROUPED_CASES)
    assert answered > GROUPED_CASES / 3
