"""Expressions of definitions: whatever they ask for, they end in time, and by a name."""

from __future__ import annotations

import re

import pytest

from holdfast.asl.jsonata.fallback import FUNCTION_NAMES
from holdfast.asl.jsonata.jsonata import BUDGET_CODE, JsonataError
from holdfast.asl.jsonpath.intrinsics import compile_intrinsic
from holdfast.asl.jsonpath.jsonpath import (
    PathMissing,
    PathSyntaxError,
    ReferenceConflict,
    compile_path,
    compile_reference,
)
from holdfast.asl.template import StateError, compile_template
from tests.security import (
    expressions_calls,
    expressions_generated,
    expressions_intrinsics,
    expressions_jsonata,
    expressions_paths,
)
from tests.security.cases import Case, each, run_generated, time_limit
from tests.security.expressions_kit import (
    BINDINGS,
    DATA,
    MOMENT,
    evaluated,
    require_named,
    scope,
)

assert expressions_generated  # registers the generators


@each(
    *expressions_jsonata.EVALUATED,
    *expressions_jsonata.LONG_TEXTS,
    *expressions_jsonata.ENDLESS,
    *expressions_jsonata.SYNTAX,
)
def test_an_expression_that_means_harm_ends_with_the_code_of_its_mistake(case: Case) -> None:
    with time_limit():
        assert jsonata_code(case.given) == case.code


@pytest.mark.slow
@each(*expressions_jsonata.LONG, *expressions_jsonata.REPEATED)
def test_an_expression_that_takes_its_time_is_stopped_within_a_second(case: Case) -> None:
    with time_limit():
        assert jsonata_code(case.given) == case.code


def test_every_function_of_jsonata_is_called_with_large_values() -> None:
    assert set(expressions_calls.FUNCTIONS) == FUNCTION_NAMES


def jsonata_code(text: str) -> str:
    try:
        evaluated(text)
    except JsonataError as error:
        return error.code
    except StateError as error:
        require_named(error)
        if "The expression was stopped" in error.cause:
            return BUDGET_CODE
        if error.cause.endswith("returned nothing (undefined)."):
            return "undefined"
        code = re.search(r"evaluation\. ([DSTU]\d{4}): ", error.cause)
        assert code is not None
        return code[1]
    return "value"


@each(*expressions_paths.SYNTAX, *expressions_paths.FOUND)
def test_an_invalid_path_or_one_without_a_file_is_refused(case: Case) -> None:
    with time_limit():
        assert path_code(case.given) == case.code


def path_code(text: str) -> str:
    try:
        compile_path(text).find(DATA)
    except PathSyntaxError:
        return "no path"
    except PathMissing:
        return "missing"
    return "value"


@each(
    *(
        Case(text[:20] or "nothing", text, "no path")
        for text in (
            "", "a", "$.a[*]", "$.*", "$..a", "$$.a", "$v.a", "$.a['b','c']", "$.a[0,1]",
            "$.a[0:1]", "$.a[?(@.b)]", "$.a[", "$.a b", "$" + ".a" * 20_000,
        )
    )
)  # fmt: skip
def test_a_reference_path_names_one_place_of_the_input(case: Case) -> None:
    with pytest.raises(PathSyntaxError):
        compile_reference(case.given)


@each(
    Case("a name in an array", ([1], "$.a"), "conflict"),
    Case("a name in a text", ("x", "$.a"), "conflict"),
    Case("a name in null", (None, "$.a"), "conflict"),
    Case("a name in a number below", ({"a": 1}, "$.a.b"), "conflict"),
    Case("a name in null below", ({"a": None}, "$.a.b"), "conflict"),
    Case("an index behind the end", ({"a": [1]}, "$.a[1]"), "conflict"),
    Case("an index far behind the end", ({"a": [1]}, "$.a[999999999]"), "conflict"),
    Case("an index before the beginning", ({"a": [1]}, "$.a[-2]"), "conflict"),
    Case("an index in an object", ({"a": {}}, "$.a[0]"), "conflict"),
    Case("an index in a text", ({"a": "text"}, "$.a[0]"), "conflict"),
)
def test_nothing_is_put_where_no_value_can_stand(case: Case) -> None:
    data, path = case.given
    with pytest.raises(ReferenceConflict) as conflict:
        compile_reference(path).put(data, 1)
    assert conflict.value.reason.startswith("Unable to apply step ")


@each(*expressions_intrinsics.ROWS)
def test_an_intrinsic_function_that_cannot_be_called_so_is_refused(case: Case) -> None:
    with time_limit():
        assert intrinsic_code(case.given) == case.code


def intrinsic_code(text: str) -> str:
    try:
        compile_intrinsic(text).evaluate(scope())
    except PathSyntaxError:
        return "no call"
    except StateError as error:
        require_named(error)
        return error.error
    return "value"


def test_fields_that_are_small_one_by_one_are_too_large_together() -> None:
    text = "x" * 1_000_000
    template = compile_template({str(n): "{% $text %}" for n in range(1_000)}, "/States/A/Output")
    with pytest.raises(StateError, match="more than 16,777,216 characters"):
        template.evaluate({**BINDINGS, "text": text}, MOMENT)


@pytest.mark.parametrize(("name", "cases"), [("paths", 300), ("jsonata", 25), ("intrinsics", 300)])
def test_generated_expressions_end_in_time_and_by_a_name(name: str, cases: int) -> None:
    tally = run_generated(name, cases, seed=1)
    # It would prove little if all were refused, or all were accepted.
    assert min(tally.refused, tally.accepted) > 1
