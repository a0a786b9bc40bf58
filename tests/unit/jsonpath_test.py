"""Paths: their results, AWS's messages for missing values, and invalid paths."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from holdfast.asl.jsonpath.jsonpath import (
    PathMissing,
    PathSyntaxError,
    ReferenceConflict,
    compile_path,
    compile_reference,
)
from holdfast.asl.jsonpath.parse import keys_of, parse_path
from holdfast.asl.jsonpath.steps import PathBudgetError, _Walk

DOCUMENT: dict[str, Any] = {
    "a": {"b": [10, 20, 30], "c d": 1, "e-f": None},
    "users": [
        {"name": "Ann", "age": 17, "tags": ["x"]},
        {"name": "Bob", "age": 41},
        {"name": "Cy", "age": "41", "tags": []},
    ],
    "list": [1],
    "length()": "a name",
    'it\'s "so"': 2,
    "back\\slash": 3,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DOCUMENT),
        ("$.a.b", [10, 20, 30]),
        ("$.a.b[1]", 20),
        ("$.a.b[-1]", 30),
        ("$.a.b[(@.length-1)]", 30),
        ("$['a']['c d']", 1),
        ('$.a["c d"]', 1),
        ("$.a.e-f", None),
        ("$.length()", "a name"),
        ("$['it\\'s \"so\"']", 2),
        ("$['back\\slash']", 3),
        ("$['a']['b','nothing']", {"b": [10, 20, 30]}),
    ],
)
def test_a_definite_path_gives_the_value(path: str, value: Any) -> None:
    compiled = compile_path(path)
    assert compiled.is_definite
    assert compiled.find(DOCUMENT) == value


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$.a.b[*]", [10, 20, 30]),
        ("$.a.b[1:]", [20, 30]),
        ("$.a.b[:-1]", [10, 20]),
        ("$.a.b[0,2,9]", [10, 30]),
        ("$.a.*", [[10, 20, 30], 1, None]),
        ("$..name", ["Ann", "Bob", "Cy"]),
        ("$.a.b[0:-1]", []),
        ("$.a[0:2]", []),
        ("$.users[*]['name','no'].name", []),
        ("$.*['age','name']", [{}]),
        ("$.a.b[-1:2]", [30, 10, 20]),
        ("$.users[0:1]['name','nothing']", [{"name": "Ann"}]),
        ("$..['name','nothing']", []),
        ("$..tags[0]", ["x"]),
        ("$.users[*].age", [17, 41, "41"]),
        ("$.users[?(@.age > 17)].name", ["Bob"]),
        ("$.users[?(@.age == 41)].name", ["Bob", "Cy"]),
        ("$.users[?(@.age != 41)].name", ["Ann"]),
        ("$.users[?(@.name == Bob)].age", [41]),
        ("$.users[?(@.tags)].name", ["Ann", "Cy"]),
        ("$.users[?(!@.tags)].name", ["Bob"]),
        ("$.users[?(@.age >= 17 && (@.name == 'Ann' || @.name == 'Bob'))].age", [17, 41]),
        ("$.users[?(@.name =~ /b.*/i)].name", ["Bob"]),
        ("$.users[?(@.name in ['Ann', \"Cy\"])].name", ["Ann", "Cy"]),
        ("$.users[?(@.name nin ['Ann'])].name", ["Bob", "Cy"]),
        ("$.users[?($.list[0] == 1)].name", ["Ann", "Bob", "Cy"]),
        ("$.users[?(@.name < 'B')].name", ["Ann"]),
        ("$.a[?(@.b)]['c d']", [1]),
        ("$.list[?(@.b)]", []),
        ("$.nothing[*]", []),
        ("$.nothing.more[1:5].name", []),
        ("$.users[?(@.age =~ /(/)]", []),
        ("$.users[?(@.age =~ /1/)]", []),
        ("$.users[?(@.name == 1e999 || @.name == -1e999)]", []),
        ("$.users[?(@.name =~ 'Bob')]", []),
        ("$.users[?(/x/)].age", [17, 41, "41"]),
        ("$.users[?(41 == @.age)].name", ["Bob", "Cy"]),
        ("$.users[?('41' == @.age)].name", ["Bob", "Cy"]),
        ("$.users[?(@.tags == ['x'])].name", ["Ann"]),
        ("$.users[?(@.tags == [])].name", ["Cy"]),
        ("$.users[?(@..tags)].age", [17, 41, "41"]),
        ("$.users[?(@.a == true || @.b == null)]", []),
        ("$.users[*]['name','age'][0]", []),
        ("$.users[*].name[0]", []),
        ("$.users[*].name[?(@.a)]", []),
        ("$.users[*].name[*]", []),
        ("$.users[1:]['age','tags']", [{"age": 41}, {"age": "41", "tags": []}]),
        ("$.list[0]['a','b'].c", []),
    ],
)
def test_any_other_path_gives_a_list(path: str, values: list[Any]) -> None:
    compiled = compile_path(path)
    assert not compiled.is_definite
    assert compiled.find(DOCUMENT) == values


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("$.no", "No results for path: $['no']"),
        ("$.a.no", "No results for path: $['a']['no']"),
        ("$.no.such.path", "Missing property in path $['no']"),
        ("$.list.length", "Property ['length'] not found in path $['list']"),
        ("$.a.b[7]", "No results for path: $['a']['b'][7]"),
        ("$.a[0]", "Filter: [0] can only be applied to arrays. Current context is: "),
        ("$.a.e-f[0]", "The path $['a']['e-f'] is null"),
        ("$.list['a','b']", "Property ['a'] not found in path $['list']"),
    ],
)
def test_a_missing_value_is_reported_in_the_words_of_jayway(path: str, reason: str) -> None:
    with pytest.raises(PathMissing) as missing:
        compile_path(path).find(DOCUMENT)
    assert missing.value.reason.startswith(reason)


def test_a_path_begins_at_the_input_the_context_or_a_variable() -> None:
    assert compile_path("$.a").is_input
    assert compile_path("$$.Execution.Id").is_context
    assert compile_path("$answer.text[0]").variable == "answer"
    assert compile_path("$answer[?(@.a)]").variable == "answer"
    assert compile_path("$.a").variable is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a",
            "$.",
            "$..",
            "$.a.",
            "$.a b",
            "$[",
            "$['a'",
            "$['a]",
            "$[]",
            "$[1",
            "$[a]",
            "$a]",
        ),
        *("$.a[?(@.b]", "$.a[?(@.b ==)]", "$.a[?()]", "$.a[?(@.b == 'x)]", "$ .a", "$.a[(1)]"),
        "$" + ".a" * 20_000,
        "$[?(" + "(" * 100 + "@.a" + ")" * 101 + "]",
        "$[?(@.a == " + "[" * 100 + "]" * 100 + ")]",
        "$['a', b]",
    ],
)
def test_a_text_that_is_no_path_is_refused_when_it_is_compiled(text: str) -> None:
    with pytest.raises(PathSyntaxError):
        compile_path(text)


def test_a_path_that_leads_everywhere_at_once_is_stopped() -> None:
    wide: Any = {"a": [{"a": [1] * 300} for _ in range(300)]}
    with pytest.raises(PathMissing, match="more than"):
        compile_path("$..*..*..*").find(wide)


def test_a_filter_that_finds_nothing_is_stopped_as_well() -> None:
    repeated = "$[" + ",".join(["0"] * 1_000) + "][?(1 == 2)]"
    with pytest.raises(PathMissing, match="more than"):
        compile_path(repeated).find([[1] * 2_000])


def test_every_item_of_the_longest_array_that_a_state_can_have_is_found() -> None:
    longest: Any = [1] * 131_000
    assert compile_path("$[?(@ > 0)]").find(longest) == longest


def test_the_time_of_regular_expressions_is_that_of_the_path_not_of_each_item() -> None:
    walk = _Walk(None)
    for _ in range(2):
        with pytest.raises(PathBudgetError, match="regular expression"):
            walk.is_full_match(regex.compile("(a|a)+b|(a|a)*c"), "a" * 60)
    assert walk.regex_seconds_left < 0.001


@pytest.mark.parametrize(
    "pattern", ["(" * 3_000 + ")" * 3_000, "a{99999999999}", "(", "*", "(?R)a"]
)
def test_an_invalid_regular_expression_matches_nothing(pattern: str) -> None:
    assert compile_path(f"$[?(@ =~ /{pattern}/)]").find(["a"]) == []


def test_a_deep_scan_tests_each_object_once() -> None:
    document: Any = {"x": [{"a": 1}], "a": {"a": 2}}
    assert compile_path("$..[?(@.a == 1)]").find(document) == [{"a": 1}]


def test_a_value_absent_on_both_sides_is_not_equal() -> None:
    assert compile_path("$[?(@.a == @.b)]").find([{"c": 1}]) == []


def test_in_arrays_true_is_not_one() -> None:
    assert compile_path("$[?(@ == [1])]").find([[True], [1]]) == [[1]]


def test_a_value_that_is_nested_very_deep_is_no_reason_for_another_error() -> None:
    shallow: Any = 1
    for _ in range(200):
        shallow = {"a": [shallow]}
    deep = shallow
    for _ in range(700):
        deep = {"a": [deep]}
    for text in ("$.a.b", "$.a[0][0]", "$..a", "$.no"):
        with suppress(PathMissing):
            compile_path(text).find(deep)
    with suppress(PathMissing):  # it compares each inner value with the whole
        compile_path("$..[?(@.a == $.a)]").find(shallow)
    one: Any = 1
    other: Any = 2
    for _ in range(100_000):
        one, other = [one], [other]
    with pytest.raises(PathMissing, match="nested too deep"):
        compile_path("$.a[?(@ == $.b)]").find({"a": [one], "b": other})
    with pytest.raises(ReferenceConflict):
        compile_reference("$.a.b").put(deep, 1)


@given(st.text(alphabet="$@.[]*?()'\"\\a1:,-&|!=<>~/ ", max_size=40))
def test_no_text_makes_anything_but_a_path_or_a_syntax_error(text: str) -> None:
    with suppress(PathSyntaxError, PathMissing):
        compile_path("$" + text).find(DOCUMENT)


@given(st.lists(st.one_of(st.from_regex(r"[a-z][a-z-]{0,3}", fullmatch=True), st.integers(0, 99))))
def test_plain_paths_are_read_alike_with_and_without_the_parser(keys: list[str | int]) -> None:
    text = "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    assert compile_path(text).keys == tuple(keys)
    assert keys_of(parse_path(text)[1]) == tuple(keys)


# -- reference paths -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "path", "result"),
    [
        ({"a": 1}, "$", "v"),
        ({"a": 1}, "$.b", {"a": 1, "b": "v"}),
        ({"a": 1}, "$.a", {"a": "v"}),
        ({"a": 1}, "$.b.c.d", {"a": 1, "b": {"c": {"d": "v"}}}),
        ({"a": {"x": 1}}, "$.a['b c']", {"a": {"x": 1, "b c": "v"}}),
        ({"a": [1, 2]}, "$.a[1]", {"a": [1, "v"]}),
        ({"a": [{"x": 1}]}, "$.a[0].y", {"a": [{"x": 1, "y": "v"}]}),
    ],
)
def test_a_value_is_put_where_a_reference_path_points(
    document: Any, path: str, result: Any
) -> None:
    before = repr(document)
    assert compile_reference(path).put(document, "v") == result
    assert repr(document) == before


@pytest.mark.parametrize(
    ("document", "path", "reason"),
    [
        ("text", "$.x", 'Unable to apply step "x" to input "text"'),
        ([1], "$.x", 'Unable to apply step "x" to input [1]'),
        ({"a": 1}, "$.a.b", 'Unable to apply step "b" to input {"a":1}'),
        ({"a": [1]}, "$.a[3]", 'Unable to apply step "3" to input {"a":[1]}'),
        ({"a": [1]}, "$.b[0]", 'Unable to apply step "0" to input {"a":[1]}'),
        ({"a": [1]}, "$.b.c[1].d", 'Unable to apply step "1" to input {"a":[1]}'),
    ],
)
def test_a_document_that_is_no_object_takes_no_value(document: Any, path: str, reason: str) -> None:
    with pytest.raises(ReferenceConflict) as conflict:
        compile_reference(path).put(document, "v")
    assert conflict.value.reason == reason


@pytest.mark.parametrize("text", ["$.a[*]", "$..a", "$$.a", "$answer", "a", "$['a','b']"])
def test_a_reference_path_names_one_place_of_the_input(text: str) -> None:
    with pytest.raises(PathSyntaxError):
        compile_reference(text)


NAMES = st.from_regex(r"[a-c]{1,2}", fullmatch=True)


@given(
    st.lists(NAMES, max_size=4),
    st.dictionaries(NAMES, st.dictionaries(NAMES, st.just({}), max_size=2), max_size=3),
    st.integers(),
)
def test_a_value_put_at_a_reference_path_is_found_at_it(
    names: list[str], document: Any, value: int
) -> None:
    text = "".join(["$", *(f".{name}" for name in names)])
    assert compile_path(text).find(compile_reference(text).put(document, value)) == value
