"""The door of the evaluator: values in and out, clock and chance, budgets, threads, errors."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.asl.jsonata import fallback
from holdfast.asl.jsonata.jsonata import (
    UNDEFINED,
    EvaluationMoment,
    JsonataError,
    StrictJson,
    compile_expression,
)
from holdfast.asl.jsonata.runtime import EvaluationRun

MOMENT = EvaluationMoment(now_ms=1_790_000_000_000, draw=lambda: 0.25)
LINES: list[StrictJson] = [{"sku": "A", "qty": 2}, {"sku": "B", "qty": 1}]
ORDER: dict[str, StrictJson] = {"id": "O-1", "customer": None, "total": 7.0, "lines": LINES}

#: Expressions that the compiler emits for nearly every state; each must stay on closures.
HOT = """
$order.total > 100 and $status = "ok"
$order.customer.email
$i + 1
"payment " & $payment.id & " was not settled"
{"id": $order.id, "total": $order.total, "ok": true}
[$map($order.lines, function($_l){$_l.qty * $_l.unit_cents})]
[$filter($order.lines, function($_l){$_l.qty > 1})]
$reduce($xs, function($_acc, $_v){$append($_acc, [[$_v]])}, [])
$sum($map($order.lines, function($_l){$_l.qty * $_l.unit_cents}))
$n = ($_v := $patience[0]; $exists($_v) ? $_v : $error("IndexError: patience[0]"))
$_i < $count($_items)
$_items[$_i]
$a - $b * $floor($a / $b)
true in $map($xs, function($_y){$_y = $v})
$merge([{"a": 1}, {$k: $v}])
$substring($s, 0, $length($p)) = $p
$join($map($xs, function($_x){$string($_x)}), ", ")
$states.input.doc_id
$states.result
$xs^(>qty)
[1..$n]
$not($x.settled)
$order.lines{sku: $sum(qty)}
$lines[qty > 1]{sku: {"lines": $count($), "qty": $sum(qty)}}
$string($states.input) ~> $length()
$lines ~> $map(function($l){$l.qty}) ~> $sum
[1..$n].$string($ * 7)
$hash($order.id, "SHA-256")
$pad($trim($string($n)), -10, "0")
[$sort([$distinct($xs)])]
$replace($s, /^[ \t]+|[ \t]+$/, "")
$sum([$map($match($wait, /[0-9.]+[YDHMS]/), function($m){$number($substring($m.match, 0, 2))})])
$contains($s, /^[0-9]+$/) ? $split($s, /, */) : []
$order.coupon = null
""".strip().splitlines()


def evaluate(text: str, /, **bindings: Any) -> Any:
    return compile_expression(text).evaluate(bindings, MOMENT)


def on_both(text: str, /, **bindings: Any) -> list[Any]:
    """The results of the door and of jsonata-python alone."""
    return [
        evaluate(text, **bindings),
        fallback.evaluate(fallback.parse(text), EvaluationRun(bindings), MOMENT),
    ]


def code_of(text: str, /, **bindings: Any) -> str:
    with pytest.raises(JsonataError) as caught:
        evaluate(text, **bindings)
    return caught.value.code


@pytest.mark.parametrize("text", HOT)
def test_expressions_that_the_compiler_emits_run_on_closures(text: str) -> None:
    assert compile_expression(text).is_native


def test_undefined_is_one_falsy_sentinel_and_not_null() -> None:
    assert evaluate("$order.nothing", order=ORDER) is UNDEFINED
    assert evaluate("$nothing") is UNDEFINED
    assert not UNDEFINED
    assert repr(UNDEFINED) == "UNDEFINED"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$n", None),
        ("$o.a", None),
        ("[$n, $o.a]", [None, None]),
        ("$xs", [None, 1]),
        ("$xs[0]", None),
        ("$exists($n)", True),
        ("$n = null", True),
        ("$type($o.a)", "null"),
        ("$map($xs, function($x){$x = null})", [True, False]),
        ("$xs ~> $map(function($x){$type($x)})", ["null", "number"]),
        ("{'a': $n, 'b': $missing}", {"a": None}),
        ("$count($xs)", 2),
    ],
)
def test_null_is_a_value_in_both_engines(text: str, expected: StrictJson) -> None:
    assert on_both(text, n=None, o={"a": None}, xs=[None, 1]) == [expected, expected]


@pytest.mark.parametrize(
    "text", ["$order.lines", "$order ~> $lookup('lines')", "($x := $order).lines"]
)
def test_a_value_that_is_only_looked_up_keeps_its_identity(text: str) -> None:
    order: dict[str, StrictJson] = {"lines": LINES}
    for result in on_both(text, order=order):
        assert result is LINES


def test_an_array_of_one_is_not_unwrapped_when_it_is_a_field() -> None:
    assert evaluate("$o.xs", o={"xs": [{"a": 1}]}) == [{"a": 1}]
    assert evaluate("$o.xs.a", o={"xs": [{"a": 1}]}) == 1
    assert evaluate("$o.xs", o={"xs": []}) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$order.total", "7"),
        ("$half * 2", "1"),
        ("$big", "12345678901234567890123"),
        ("[$big]", "[12345678901234567890123]"),
        ("9007199254740991 + 1", "9007199254740992"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1e20 * 1", "100000000000000000000"),
        ("1e300", "1e+300"),
        ("-0.0", "0"),
    ],
)
def test_numbers_come_out_as_json_shows_them(text: str, expected: str) -> None:
    bindings: dict[str, StrictJson] = {
        "order": ORDER,
        "half": 0.5,
        "big": 12345678901234567890123,
    }
    for result in on_both(text, **bindings):
        assert json.dumps(result) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$string(7.0)", "7"),
        ("$string(0.1 + 0.2)", "0.3"),
        ("$string(1e21)", "1e+21"),
        ("$string(1.5e-7)", "1.5e-7"),
        ("$string(5890840712243076)", "5890840712243076"),
        ("$string(9223372036854775807)", "9223372036854776000"),
        ("$string([1, 2.50, null, 'é\n'])", '[1,2.5,null,"é\\n"]'),
        ("'' & {'a': []}", '{"a":[]}'),
        ("$string({'a': [1]}, true)", '{\n  "a": [\n    1\n  ]\n}'),
    ],
)
def test_values_are_cast_to_text_as_javascript_does(text: str, expected: str) -> None:
    assert on_both(text) == [expected, expected]


def test_true_is_not_one_and_objects_compare_by_their_content() -> None:
    for text in ("true = 1", "[1] = [true]", "1 in [true]", "{'a': 0} = {'a': false}", "0 = null"):
        assert on_both(text) == [False, False], text
    for text in (
        "1 = 1.0",
        "{'a': 1, 'b': [2]} = {'b': [2], 'a': 1}",
        "$distinct([1, true, 1.0])[1]",
    ):
        assert on_both(text) == [True, True], text


def test_bindings_and_their_parts_are_never_changed() -> None:
    order: dict[str, StrictJson] = {"lines": [], "xs": [1, [2]], "n": None}
    before = json.dumps(order)
    for text in (
        "$order.lines{'a': 1}",
        "$order ~> |$|{'lines': [1]}|",
        "$append($order.lines, 1)",
    ):
        on_both(text, order=order)
        assert json.dumps(order) == before


def test_a_binding_hides_the_function_of_its_name() -> None:
    assert evaluate("$count($xs)", xs=[1, 2]) == 2
    assert code_of("$count($xs)", xs=[1, 2], count=5) == "T1006"
    assert evaluate("$count + 1", count=5) == 6


def test_clock_and_chance_come_from_the_moment_alone() -> None:
    draws = iter([0.0, 0.5, 0.999, 0.25, 0.125])
    moment = EvaluationMoment(now_ms=1_500_000_000_123, draw=lambda: next(draws))
    for text, expected in (
        ("$millis()", 1_500_000_000_123),
        ("$now()", "2017-07-14T02:40:00.123Z"),
        ("$now('[Y0001]-[M01]')", "2017-07"),
        ("$toMillis('02:41', '[H]:[m]')", 1_500_000_060_000),
        ("$random()", 0.0),
        ("$shuffle([1, 2, 3, 4])", [2, 1, 4, 3]),
    ):
        assert compile_expression(text).evaluate({}, moment) == expected


def test_a_uuid_is_of_version_four_and_repeats_with_its_draws() -> None:
    numbers = [0.1, 0.2, 0.3, 0.4]
    one, other = (
        compile_expression("$uuid()").evaluate({}, EvaluationMoment(0, iter(draws).__next__))
        for draws in (numbers, numbers)
    )
    assert one == other
    assert isinstance(one, str)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$partition([1, 2, 3, 4, 5], 2)", [[1, 2], [3, 4], [5]]),
        ("$range(0, 10, 3)", [0, 3, 6, 9]),
        ("$range(5, 1, -2)", [5, 3, 1]),
        ("$range(1, 9, 9)", 1),
        ("$hash('input', 'SHA-1')", "140f86aae51ab9e1cda9b4254fe98a74eb54c1a1"),
        ("$random(42)", 0.7275636800328681),
        ("$parse('{\"a\": [1, null, -0.0, 7.0]}')", {"a": [1, None, 0, 7]}),
        ("$parse('[1]')", [1]),
        ("$formatNumber(-1234.5, '#,##0.00')", "-1,234.50"),
        ("$round(-2.5)", -2),
    ],
)
def test_functions_give_the_results_of_aws(text: str, expected: StrictJson) -> None:
    assert json.dumps(evaluate(text)) == json.dumps(expected)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("$eval('1')", "T1006"),
        ("1 + 'a'", "T2002"),
        ("1 / 0", "D1001"),
        ("{'a': 1 / 0}", "D1001"),
        ("$number('x')", "D3030"),
        ("$uppercase(1)", "T0410"),
        ("$map([1], $uppercase)", "T0410"),
        ("$sum(['a'])", "T0412"),
        ("1 < 'a'", "T2009"),
        ("$error('stop')", "D3137"),
        ("$parse('{')", "D3137"),
        ("$hash('a', 'SHA-2')", "D3137"),
        ("$range(1, 2, '1')", "T0410"),
        ("$partition([1], -1)", "D3137"),
        ("$toMillis('tomorrow')", "D3110"),
        ("$decodeUrl('%E0%A4%A')", "D3140"),
        ("1 +", "S0207"),
        ("'abc", "S0101"),
        ("1 /* open", "S0106"),
        ("(", "S0203"),
        ("", "S0207"),
    ],
)
def test_an_error_has_the_code_of_jsonata(text: str, code: str) -> None:
    assert code_of(text) == code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$parse('{')", "Invalid JSON"),
        ("$partition([1], -1)", "Second argument must be zero or greater"),
        ("$partition(1, 1)", 'Argument 1 of function "partition" must be an array of undefined'),
        (
            "$hash('a', 'md5')",
            "Hash algorithm 'md5' must be one of SHA-1, SHA-384, SHA-256, SHA-512, MD5",
        ),
        (
            "$range(1, 9999999, 1)",
            "Expression evaluation memory limit exceeded: Check for excessive memory usage",
        ),
        ("-'a'", 'Cannot negate a non-numeric value: "a"'),
        (
            "$formatBase(1, 1)",
            "The radix of the formatBase function must be between 2 and 36.  It was given 1",
        ),
    ],
)
def test_an_error_has_the_message_of_aws(text: str, message: str) -> None:
    with pytest.raises(JsonataError) as caught:
        evaluate(text)
    assert caught.value.message == message


def test_an_error_has_the_message_of_jsonata() -> None:
    with pytest.raises(JsonataError) as caught:
        evaluate("$sum(['a'])")
    assert caught.value.message == 'Argument 1 of function "sum" must be an array of "numbers"'
    with pytest.raises(JsonataError) as caught:
        evaluate("'abc' + 1")
    assert caught.value.message == 'The left side of the "+" operator must evaluate to a number'
    with pytest.raises(JsonataError) as caught:
        compile_expression("$a + )")
    assert caught.value.position == 6


@pytest.mark.parametrize(
    "text",
    [
        "($f := function($n){$f($n + 1)}; $f(1))",
        "($f := function($n){$n + $f($n - 1)}; $f(1))",
        "($f := function($s){$f($s & $s)}; $f('abc'))",
        "$reduce([1..50], function($a, $i){[$a, $a]}, [1])",
        "$reduce([1..50], function($a, $i){[[$a], [$a]]}, [1])",
        "$reduce([1..5000], function($a, $i){[[$a]]}, [1])",
        "($x := $reduce([1..50], function($a, $i){[[$a], [$a]]}, [1]); $string($x) ~> $length())",
        "($x := $reduce([1..50], function($a, $i){[[$a], [$a]]}, [1]); $length($string($x)))",
        "[1..1000000].[1..1000000]",
        "($xs := [1..5000]; $xs@$x.$xs@$y.($x + $y))",
        "[1..200000] ~> $map(function($x){$x})",
        "($xs := [1..79000]; $xs{'k': 1})",
        "($xs := [1..5000]; [1..5000].($xs){'k': $})",
        "($xs := [1..100000]; $map([1..1000], function($i){$xs}){'k': $})",
        "$pad('x', 100000000)",
        "$join($map([1..2000], function($i){$pad('x', 1000)}))",
        "$contains($pad('a', 60, 'a') & 'b', /(?:(?:a|aa)+)+$/)",
        f"$match('b' & $pad('a', 200000, 'a'), /b{'(' * 200}a+{')' * 200}/)",
        f"$match('b' & $pad('a', 200000, 'a'), /b{'(' * 200}a+{')' * 200}/, 1)",
        f"/b{'(' * 200}a+{')' * 200}/('b' & $pad('a', 200000, 'a')).match",
        "(" * 20_000,
        "-" * 20_000 + "1",
    ],
)
def test_a_bomb_is_stopped_with_its_own_code(text: str) -> None:
    assert code_of(text) == "U1001"


@pytest.mark.parametrize("limit", ["", ", 1"], ids=["closures", "reference"])
def test_a_match_that_is_named_often_is_not_written_out_before_it_is_refused(limit: str) -> None:
    """20 MB on paper: of the largest text and the longest replacement it would be 500 GB."""
    text, named = '$pad("", 10000, "a")', '$pad("", 4000, "$0")'
    expression = f"$replace({text}, /a+/, {named}{limit})"
    code_of(expression)  # parsed, and the engines loaded
    tracemalloc.start()
    try:
        assert code_of(expression) == "U1001"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_a_range_or_an_expression_beyond_reason_is_refused() -> None:
    assert code_of("[1..2000000]") == "D2014"
    assert code_of("'" + "x" * 70_000 + "'") == "S0500"


def test_garbage_raises_nothing_but_jsonata_errors(capfd: pytest.CaptureFixture[str]) -> None:
    seed = 7
    generator = random.Random(seed)
    pieces = (
        "$a . [ ] ( ) { } 1 'x' \" ` / ~> := ? : ; , + - * % ^ @ # & | < = ! function($x){ λ in and"
    )
    for _ in range(2_000):
        text = " ".join(generator.choices(pieces.split(), k=generator.randint(1, 9)))
        try:
            result = compile_expression(text).evaluate({"a": [{"x": 1}, 2, None]}, MOMENT)
        except JsonataError as error:
            assert error.code, f"seed {seed}: {text}"
        else:
            assert result is UNDEFINED or json.dumps(result), f"seed {seed}: {text}"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text", ["$i & '-' & $xs[0]", "$i & '-' & ($xs ~> $map(function($x){$x}))[0]"]
)
def test_one_expression_serves_many_threads(text: str) -> None:
    expression = compile_expression(text)

    def work(number: int) -> bool:
        bindings: dict[str, StrictJson] = {"i": number, "xs": [number * 2]}
        moment = EvaluationMoment(number, lambda: 0.5)
        return expression.evaluate(bindings, moment) == f"{number}-{number * 2}"

    with ThreadPoolExecutor(max_workers=8) as pool:
        assert all(pool.map(work, range(800)))


def test_a_function_bound_to_a_variable_keeps_its_name_for_everybody_else() -> None:
    evaluate("($f := $sum; $f([1]))")
    with pytest.raises(JsonataError, match='function "sum"'):
        evaluate("$sum(['a'])")


def test_the_library_is_imported_with_the_first_expression() -> None:
    script = (
        "import sys, holdfast.asl.jsonata.jsonata as j\n"
        "assert 'jsonata' not in sys.modules\n"
        "j.compile_expression('1')\n"
        "assert 'jsonata' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
