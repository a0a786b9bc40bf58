"""The `States.*` functions: results and refusals as AWS's page and its answers have them."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.intrinsics import compile_intrinsic
from holdfast.asl.jsonpath.jsonpath import PathSyntaxError
from holdfast.asl.jsonpath.scope import PathScope
from holdfast.asl.template import StateError

INPUT: dict[str, Any] = {
    "items": [1, 2, 2, 3, 4, 5],
    "empty": [],
    "object": {"a": 1, "b": [True, None, "x"]},
    "text": "Hello",
    "json": '{"a": [1, 2.5, "x"]}',
    "null": None,
    "big": 1e10,
}


def scope(seed: int = 1) -> PathScope:
    context: Any = {"Execution": {"Id": "e-1"}}
    bindings: dict[str, Any] = {"name": "Ann", "states": {"input": INPUT, "context": context}}
    return PathScope(INPUT, bindings, EvaluationMoment(now_ms=0, draw=random.Random(seed).random))


def value_of(text: str) -> Any:
    return compile_intrinsic(text).evaluate(scope())


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("States.Array()", []),
        ("States.Array(1, 'two', $.text, null, true)", [1, "two", "Hello", None, True]),
        ("States.Array(1.5, -1, 1e3)", [1.5, -1, 1000.0]),
        ("States.ArrayPartition($.items, 4)", [[1, 2, 2, 3], [4, 5]]),
        ("States.ArrayPartition($.items, 4.9)", [[1, 2, 2, 3], [4, 5]]),
        ("States.ArrayPartition($.empty, 2)", []),
        ("States.ArrayContains($.items, 5)", True),
        ("States.ArrayContains(States.Array('true'), true)", True),
        ("States.ArrayContains(States.Array(0), false)", False),
        ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
        ("States.ArrayRange(5, 1, -2)", [5, 3, 1]),
        ("States.ArrayRange(5.4, -0.6, -2.4)", [5, 3, 1]),
        ("States.ArrayRange(5, 1, 1)", []),
        ("States.ArrayGetItem($.items, 5)", 5),
        ("States.ArrayGetItem($.items, 1.2)", 2),
        ("States.ArrayGetItem($.empty, 999)", None),
        ("States.ArrayLength($.items)", 6),
        ("States.ArrayUnique($.items)", [1, 2, 3, 4, 5]),
        ("States.ArrayUnique(States.Array(1, '1', 1))", [1, "1"]),
        ("States.Base64Encode($.text)", "SGVsbG8="),
        ("States.Base64Decode('SGVsbG8=')", "Hello"),
        ("States.Base64Decode(' SGVs bG8 ')", "Hello"),
        ("States.Hash('hello', 'MD5')", "5d41402abc4b2a76b9719d911017c592"),
        ("States.Hash('hello', 'SHA-1')", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
        ("States.JsonMerge($.object, States.StringToJson($.json), false)",
         {"a": [1, 2.5, "x"], "b": [True, None, "x"]}),
        ("States.StringToJson($.json)", {"a": [1, 2.5, "x"]}),
        ("States.StringToJson('{\"it\\'s\": \"ok\"}')", {"it's": "ok"}),
        ("States.StringToJson('  ')", None),
        ("States.JsonToString($.object)", '{"a":1,"b":[true,null,"x"]}'),
        ("States.JsonToString($.big)", "1.0E10"),
        ("States.MathAdd(111, -1)", 110),
        ("States.MathAdd(1.6, 2.7)", 5),
        ("States.MathAdd(2147483646, 1)", 2147483647),
        ("States.StringSplit('1,2,,3', ',')", ["1", "2", "3"]),
        ("States.StringSplit('This.is+a,test', '.+,=')", ["This", "is", "a", "test"]),
        ("States.StringSplit('a]b^c-d', ']^-')", ["a", "b", "c", "d"]),
        ("States.StringSplit('abc', '')", ["abc"]),
        ("States.Format('{} is {}', $name, $.object)", "Ann is {a=1, b=[true, null, x]}"),
        ("States.Format('\\{{}\\} it\\'s \\\\', $.null)", "{null} it's \\"),
        ("States.Format('{}', $$.Execution.Id)", "e-1"),
        ("States.Format('{} {}', 1.0, 0.00001)", "1.0 1.0E-5"),
        ("States.Format('{}', States.MathAdd( $.items[0] , 1 ))", "2"),
        ("States.ArrayLength($.items[?(@ > 2 && (@ < 5))])", 2),
        ("States.ArrayLength($['items'])", 6),
    ],
)  # fmt: skip
def test_a_call_gives_the_result_of_aws(call: str, value: Any) -> None:
    assert value_of(call) == value


@pytest.mark.parametrize(
    "call",
    [
        *("States.ArrayPartition($.text, 2)", "States.ArrayPartition($.items, 0.49)"),
        *("States.ArrayPartition($.items)", "States.ArrayContains('not-array', 'x')"),
        *("States.ArrayRange(1, 10, 0.49)", "States.ArrayRange(1, 1001, 1)"),
        *(
            "States.ArrayRange('a', 5, 1)",
            "States.ArrayRange(1, 5)",
            "States.ArrayRange(1, 1e300, 1)",
        ),
        *("States.ArrayGetItem($.items, 6)", "States.ArrayGetItem($.items, -1)"),
        *("States.ArrayLength($.object)", "States.ArrayUnique($.text)"),
        *("States.Base64Encode(1)", "States.Base64Decode()", "States.Hash('data', 'sha-256')"),
        *("States.Hash('data')", "States.JsonMerge($.object, $.object, true)"),
        *("States.JsonMerge($.empty, $.object, false)", "States.StringToJson('{bad json}')"),
        *(
            "States.StringToJson(1)",
            "States.StringToJson('NaN')",
            "States.StringToJson('1e999')",
            "States.MathAdd('1', 2)",
        ),
        *(
            "States.MathAdd(2147483647, 1)",
            "States.MathAdd(3000000000, 1)",
            "States.MathAdd(true, 1)",
        ),
        *(
            "States.MathRandom(1, 1)",
            "States.MathRandom(1.4, 1.6)",
            "States.MathRandom(1, 9, null)",
        ),
        *("States.StringSplit(1, ',')", "States.StringSplit('a', 1)", "States.UUID(1)"),
    ],
)
def test_wrong_arguments_are_reported_with_the_call(call: str) -> None:
    with pytest.raises(StateError) as refused:
        value_of(call)
    name = call.partition("(")[0]
    assert refused.value.error == "States.Runtime"
    assert refused.value.cause == (
        f"The function '{call}' had the following error: Invalid arguments in {name}"
    )


def test_texts_of_more_than_ten_thousand_characters_are_refused() -> None:
    for name in ("Base64Encode('{}')", "Base64Decode('{}')", "Hash('{}', 'MD5')"):
        value_of(f"States.{name.format('a' * 10_000)}")
        with pytest.raises(StateError, match="Invalid arguments"):
            value_of(f"States.{name.format('a' * 10_001)}")


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        ("States.Format('{} {}', $.text)",
         "Invalid arguments in States.Format: number of arguments do not match"),
        ("States.Format('Hello {', $.text)",
         "Invalid template in States.Format: matching '}' not found for '{'."),
        ("States.Format('}')",
         "Invalid template in States.Format: matching '{' not found for '}'."),
        ("States.Array(States.ArrayLength($.no.such))",
         "The JsonPath argument for the field '$.no.such' could not be found in the input '{"),
        ("States.Array($$.No)",
         "The JsonPath argument for the field '$$.No' could not be found in the input '{\"Exec"),
        ("States.Array($.text[0])",
         "Filter: [0] can only be applied to arrays. Current context is: Hello"),
    ],
)  # fmt: skip
def test_other_mistakes_have_their_own_words(call: str, cause: str) -> None:
    with pytest.raises(StateError) as refused:
        value_of(call)
    assert refused.value.cause.startswith(f"The function '{call}' had the following error: {cause}")


def test_chance_comes_from_the_moment_alone() -> None:
    uuid = compile_intrinsic("States.UUID()")
    assert uuid.evaluate(scope(seed=1)) == uuid.evaluate(scope(seed=1))
    assert uuid.evaluate(scope(seed=1)) != uuid.evaluate(scope(seed=2))
    form = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(form, str(uuid.evaluate(scope())))
    drawn = compile_intrinsic("States.MathRandom(3, 5)")
    assert {drawn.evaluate(scope(seed)) for seed in range(50)} == {3, 4}


def test_a_seed_draws_as_java_draws() -> None:
    """new java.util.Random(42).nextInt() is -1170105035; its upper 31 bits are 1562431130."""
    assert value_of("States.MathRandom(0, 2147483647, 42)") == 1562431130
    assert value_of("States.MathRandom(5, 15, 42)") == 5
    # Of a power of two the high bits; where the last run of the bound is cut short, the next draw.
    assert value_of("States.MathRandom(0, 16, 42)") == 1562431130 * 16 >> 31
    assert value_of("States.MathRandom(0, 1073741825, 42)") == 234785527 >> 1


def test_a_digit_too_many_in_base64_is_passed_over() -> None:
    assert value_of("States.Base64Decode('YWJjZ')") == "abc"


def test_a_value_that_is_nested_very_deep_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(StateError, match="nested too deep"):
        compile_intrinsic("States.JsonToString($)").evaluate(scope()._replace(data=deep))
    with pytest.raises(StateError, match=r"applied to arrays\. Current context is: …"):
        compile_intrinsic("States.Array($.a[0])").evaluate(
            scope()._replace(data={"a": {"b": deep}})
        )


def test_a_value_of_too_many_parts_is_refused() -> None:
    many = scope()._replace(data=[0] * 400_000)
    with pytest.raises(StateError, match="too large"):
        compile_intrinsic("States.Array($, $)").evaluate(many)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "States.Nothing()",
            "States.format('')",
            "States.Array(",
            "States.Array(1,)",
            "States.Array(,)",
        ),
        *(
            "States.Array('a)",
            "States.Array(a)",
            "States.Array(1) x",
            "States.Array(1 2)",
            "Array()",
        ),
        *(
            'States.StringToJson(\'{"a\\"b"}\')',
            "States.Format('a\\nb')",
            "States.Array($.)",
            "States.Array(1e999)",
        ),
        "States.Array(" * 50 + ")" * 50,
        "States.Array('" + "a" * 30_000 + "')",
    ],
)
def test_a_text_that_is_no_call_is_refused_when_it_is_compiled(text: str) -> None:
    with pytest.raises(PathSyntaxError):
        compile_intrinsic(text)


@pytest.mark.parametrize(
    "text",
    [
        f"States.MathAdd({'9' * 400}, 1)",
        f"States.MathAdd(States.StringToJson('{'9' * 400}'), 1)",
        "States.ArrayRange(-4611686018427387904, 4611686018427387904, 1)",
    ],
)
def test_numbers_beyond_any_machine_word_are_refused_like_others(text: str) -> None:
    with pytest.raises(StateError, match="Invalid arguments in"):
        value_of(text)


def test_half_a_character_in_a_json_text_becomes_a_question_mark() -> None:
    text = '["\\ud800", "\\ud83d\\ude00", "\\u00e9"]'
    call = compile_intrinsic("States.StringToJson($)")
    assert call.evaluate(scope()._replace(data=text)) == ["?", "\U0001f600", "é"]


@pytest.mark.parametrize("function", ["States.JsonToString(States.Array({}))", "States.Array({})"])
def test_a_document_many_times_over_is_refused_before_it_is_written(function: str) -> None:
    call = compile_intrinsic(function.format(",".join(["$"] * 300)))
    with pytest.raises(StateError, match="too large"):
        call.evaluate(scope()._replace(data="x" * 100_000))


def test_a_call_knows_the_paths_it_reads() -> None:
    call = compile_intrinsic("States.Format('{}{}', $a.b, States.Array($.c, $d))")
    assert [path.text for path in call.paths] == ["$a.b", "$.c", "$d"]


@given(st.text(alphabet="States.Format(){}'\\$.,1 \"[]?@", max_size=30))
def test_no_text_makes_anything_but_a_value_or_a_refusal(text: str) -> None:
    with suppress(PathSyntaxError, StateError):
        compile_intrinsic(f"States.Format({text})").evaluate(scope())
