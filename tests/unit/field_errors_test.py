"""Values that a field cannot use: every field that takes a path or an expression, with every kind
of value.

The rules here are written apart from those of the code. Each says which values a field takes, and
what AWS says of the others: `asl/field_errors.py` has the sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import machine
from tests.unit.core_kit import Case

VALUES: list[Any] = [
    None, True, 0, 3, -1, 1.5, 10**10, 10**20, "", "abc", "3", "1.5", "é", {"a": "é"}, {}, [1, "x"],
    [],
]  # fmt: skip
WHERE = "An error occurred while executing the state 'it' (entered at the event id #2). "
RUNTIME, EVALUATION = "States.Runtime", "States.QueryEvaluationError"

INNER = {"StartAt": "inner", "States": {"inner": {"Type": "Pass", "End": True}}}
CHILDREN = {**INNER, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
TASK = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:sqs:listQueues"}
READ = {"Resource": "arn:aws:states:::s3:listObjectsV2"}
WRITE = {"Resource": "arn:aws:states:::s3:putObject"}


def kind(value: Any) -> str:
    names = {bool: "boolean", str: "string", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), "number")


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def bare(value: Any) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else compact(value)


def is_whole(value: Any) -> bool:
    return type(value) is int


@dataclass(frozen=True)
class Rule:
    """A field, its state, and what AWS says of a value: None for one that will do."""

    field: str
    state: dict[str, Any]
    problem: Callable[[Any], str | None]
    is_whole_cause: bool = False


# -- paths -----------------------------------------------------------------------------------------


def seconds_path(value: Any) -> str | None:
    if not is_whole(value):
        return f"The SecondsPath parameter cannot be parsed as a long value: $.v == {bare(value)}"
    if value < 0:
        return f"The SecondsPath parameter references a negative value: $.v == {value}"
    if value > 99_999_999:
        return f"The SecondsPath parameter references too large a value: $.v == {value}"
    return None


def task_seconds_path(field: str) -> Callable[[Any], str | None]:
    def problem(value: Any) -> str | None:
        if not is_whole(value) or value < 1:
            what = "cannot be parsed as a positive integer"
        elif value > 99_999_999:
            what = "references too large a value"
        else:
            return None
        return f"The {field} parameter {what}: $.v == {bare(value)}"

    return problem


def timestamp_path(value: Any) -> str:
    what = "does not reference a valid ISO-8601 extended offset date-time format string"
    return f"The TimestampPath parameter {what}: $.v == {bare(value)}"


def number_path(field: str, *, percent: bool = False) -> Callable[[Any], str | None]:
    def problem(value: Any) -> str | None:
        called = field.removesuffix("Path")
        accepted = ("3", "1.5") if percent else ("3",)
        if value in accepted and isinstance(value, str):
            return None
        is_number = kind(value) == "number" if percent else is_whole(value) and value < 2**63
        if not is_number:
            sort = "float" if percent else "integer"
            found = f'refers to value "{bare(value)}" which is not a valid {sort}'
            return f"The {field} field {found}: $.v"
        if percent:
            return None if 0 <= value <= 100 else f"{called} must be between 0 and 100."
        if value < 0 and field != "MaxItemsPath":
            return f"{called} cannot be negative."
        return None

    return problem


def text_path(field: str) -> Callable[[Any], str | None]:
    def problem(value: Any) -> str | None:
        if isinstance(value, str):
            return None
        return f'The {field} field refers to value "{bare(value)}" which is not a valid string: $.v'

    return problem


def items_path(takes: tuple[type, ...]) -> Callable[[Any], str | None]:
    words = 'Reference path "$.v" must point to array.'
    return lambda value: None if isinstance(value, takes) else words


def role_path(value: Any) -> str | None:
    if isinstance(value, str):
        return None
    credentials = compact({"RoleArn": value})
    fault = "[The value for the field 'RoleArn' must be a STRING]"
    return f"The Credentials '{credentials}' could not be used to start the Task: {fault}"


def inline(**fields: Any) -> dict[str, Any]:
    return {"Type": "Map", "ItemProcessor": INNER, **fields}


def distributed(**fields: Any) -> dict[str, Any]:
    return {"Type": "Map", "Label": "L", "ItemProcessor": CHILDREN, **fields}


def over_items(**fields: Any) -> dict[str, Any]:
    return distributed(ItemsPath="$.items", **fields)


BATCHES = ("MaxItemsPerBatchPath", "MaxInputBytesPerBatchPath")
PATHS = [
    Rule("SecondsPath", {"Type": "Wait", "SecondsPath": "$.v"}, seconds_path),
    Rule("TimestampPath", {"Type": "Wait", "TimestampPath": "$.v"}, timestamp_path),
    *(
        Rule(field, {**TASK, "Parameters": {}, field: "$.v"}, task_seconds_path(field))
        for field in ("TimeoutSecondsPath", "HeartbeatSecondsPath")
    ),
    Rule(
        "MaxConcurrencyPath",
        inline(ItemsPath="$.items", MaxConcurrencyPath="$.v"),
        number_path("MaxConcurrencyPath"),
    ),
    *(
        Rule(field, over_items(**{field: "$.v"}), number_path(field))
        for field in ("MaxConcurrencyPath", "ToleratedFailureCountPath")
    ),
    Rule(
        "ToleratedFailurePercentagePath",
        over_items(ToleratedFailurePercentagePath="$.v"),
        number_path("ToleratedFailurePercentagePath", percent=True),
    ),
    *(Rule(field, over_items(ItemBatcher={field: "$.v"}), number_path(field)) for field in BATCHES),
    Rule(
        "MaxItemsPath",
        distributed(ItemReader={**READ, "ReaderConfig": {"MaxItemsPath": "$.v"}}),
        number_path("MaxItemsPath"),
    ),
    *(
        Rule(field, {"Type": "Fail", field: "$.v"}, text_path(field))
        for field in ("ErrorPath", "CausePath")
    ),
    Rule("ItemsPath", inline(ItemsPath="$.v"), items_path((list,)), is_whole_cause=True),
    Rule(
        "ItemsPath of children",
        distributed(ItemsPath="$.v"),
        items_path((list, dict)),
        is_whole_cause=True,
    ),
    Rule(
        "Credentials",
        {**TASK, "Parameters": {}, "Credentials": {"RoleArn.$": "$.v"}},
        role_path,
    ),
]


# -- expressions -----------------------------------------------------------------------------------

EXPRESSION = "{% $states.input.v %}"


def typed(
    location: str, types: tuple[str, ...], further: Callable[[Any], str | None] = lambda _: None
) -> Callable[[Any], str | None]:
    """Return the rule of a field whose value must have the first of the types."""

    def problem(value: Any) -> str | None:
        if kind(value) in types:
            return further(value)
        return (
            f"The JSONata expression '$states.input.v' specified for the field '{location}' "
            f"returned an unexpected result type. Expected '{types[0]}', but was '{kind(value)}' "
            f"for value: {compact(value)}"
        )

    return problem


def seconds(field: str, least: int) -> Callable[[Any], str | None]:
    def problem(value: Any) -> str | None:
        whole = value % 1 == 0
        if least and not (whole and value >= least):
            what = "cannot be parsed as a positive integer"
        elif not whole:
            what = "cannot be parsed as a long value"
        elif value < 0:
            what = "references a negative value"
        elif value > 99_999_999:
            what = "references too large a value"
        else:
            return None
        return f"The {field} field {what}: {value}"

    return problem


def whole(field: str) -> Callable[[Any], str | None]:
    def problem(value: Any) -> str | None:
        if value % 1:
            return f'The {field} field refers to value "{value}" which is not a valid integer'
        return f"{field} cannot be negative." if value < 0 and field != "MaxItems" else None

    return problem


def percentage(value: Any) -> str | None:
    field = "ToleratedFailurePercentage"
    return None if 0 <= value <= 100 else f"{field} must be between 0 and 100."


def timestamp(value: Any) -> str:
    what = "cannot be parsed as an ISO-8601 extended offset date-time format string"
    return f"The Timestamp field {what}: {value}"


def not_an_array(value: Any) -> str | None:
    is_array = isinstance(value, list)
    return None if is_array else f"Map state input must be an array but was: {compact(value)}"


def number(location: str, further: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
    return typed(location, ("number",), further)


def one_item(**fields: Any) -> dict[str, Any]:
    return distributed(Items=[1], **fields)


def role_of_nothing(value: Any) -> str:
    fault = "[The value for the field 'RoleArn' must be a STRING]"
    return f"The Credentials '{compact(value)}' could not be used to start the Task: {fault}"


EXPRESSIONS = [
    Rule(
        "Seconds", {"Type": "Wait", "Seconds": EXPRESSION}, number("Seconds", seconds("Seconds", 0))
    ),
    Rule(
        "Timestamp",
        {"Type": "Wait", "Timestamp": EXPRESSION},
        typed("Timestamp", ("string",), timestamp),
    ),
    *(
        Rule(field, {**TASK, "Arguments": {}, field: EXPRESSION}, number(field, seconds(field, 1)))
        for field in ("TimeoutSeconds", "HeartbeatSeconds")
    ),
    Rule("Items", inline(Items=EXPRESSION), typed("Items", ("array",))),
    Rule("Items", distributed(Items=EXPRESSION), typed("Items", ("array", "object"))),
    *(
        Rule("MaxConcurrency", state, number("MaxConcurrency", whole("MaxConcurrency")))
        for state in (
            inline(Items=[1], MaxConcurrency=EXPRESSION),
            one_item(MaxConcurrency=EXPRESSION),
        )
    ),
    Rule(
        "ToleratedFailureCount",
        one_item(ToleratedFailureCount=EXPRESSION),
        number("ToleratedFailureCount", whole("ToleratedFailureCount")),
    ),
    Rule(
        "ToleratedFailurePercentage",
        one_item(ToleratedFailurePercentage=EXPRESSION),
        number("ToleratedFailurePercentage", percentage),
    ),
    *(
        Rule(
            f"ItemBatcher/{field}",
            one_item(ItemBatcher={field: EXPRESSION}),
            number(f"ItemBatcher/{field}", whole(field)),
        )
        for field in ("MaxItemsPerBatch", "MaxInputBytesPerBatch")
    ),
    Rule(
        "ItemReader/ReaderConfig/MaxItems",
        distributed(ItemReader={**READ, "ReaderConfig": {"MaxItems": EXPRESSION}}),
        number("ItemReader/ReaderConfig/MaxItems", whole("MaxItems")),
    ),
    Rule(
        "ItemReader/Arguments",
        distributed(ItemReader={**READ, "Arguments": EXPRESSION}),
        typed("ItemReader/Arguments", ("object",)),
    ),
    *(
        Rule(field, {"Type": "Fail", field: EXPRESSION}, typed(field, ("string",)))
        for field in ("Error", "Cause")
    ),
    Rule(
        "Choices[0]/Condition",
        {"Type": "Choice", "Choices": [{"Condition": EXPRESSION, "Next": "E"}], "Default": "E"},
        typed("Choices[0]/Condition", ("boolean",)),
    ),
    Rule(
        "Credentials",
        {**TASK, "Arguments": {}, "Credentials": EXPRESSION},
        typed("Credentials", ("object",), role_of_nothing),
    ),
    Rule(
        "Credentials/RoleArn",
        {**TASK, "Arguments": {}, "Credentials": {"RoleArn": EXPRESSION}},
        typed("Credentials/RoleArn", ("string",)),
    ),
]
ANY = [
    Rule("Output", {"Type": "Pass", "Output": EXPRESSION}, lambda _: None),
    Rule("Assign/x", {"Type": "Pass", "Assign": {"x": EXPRESSION}}, lambda _: None),
    Rule(
        "Output/a[1]/b", {"Type": "Pass", "Output": {"a": [1, {"b": EXPRESSION}]}}, lambda _: None
    ),
    Rule("Arguments", {**TASK, "Arguments": EXPRESSION}, lambda _: None),
    Rule(
        "ItemBatcher/BatchInput",
        one_item(ItemBatcher={"MaxItemsPerBatch": 1, "BatchInput": EXPRESSION}),
        lambda _: None,
    ),
    Rule(
        "ItemReader/Arguments/Bucket",
        distributed(ItemReader={**READ, "Arguments": {"Bucket": EXPRESSION}}),
        lambda _: None,
    ),
]


def started(rule: Rule, data: Any, language: str) -> Case:
    ends = {} if rule.state["Type"] in {"Fail", "Choice"} else {"End": True}
    states = {"it": {**ends, **rule.state}}
    if rule.state["Type"] == "Choice":
        states["E"] = {"Type": "Succeed"}
    return Case({**machine(states), "QueryLanguage": language}).start(data)


def require(case: Case, error: str, cause: str) -> None:
    assert case.status == "FAILED"
    assert case.failure == (error, cause)


@pytest.mark.parametrize("rule", PATHS, ids=lambda rule: rule.field)
def test_a_path_to_a_value_that_will_not_do_says_so_in_the_words_of_aws(rule: Rule) -> None:
    for value in VALUES:
        case = started(rule, {"items": [1], "v": value}, "JSONPath")
        problem = rule.problem(value)
        if problem is None:
            assert case.status != "FAILED" or case.failure[0] != RUNTIME, value
        else:
            require(case, RUNTIME, problem if rule.is_whole_cause else WHERE + problem)


@pytest.mark.parametrize("rule", EXPRESSIONS, ids=lambda rule: rule.field)
def test_an_expression_of_a_wrong_value_says_so_in_the_words_of_aws(rule: Rule) -> None:
    for value in VALUES:
        case = started(rule, {"v": value}, "JSONata")
        problem = rule.problem(value)
        if problem is None:
            assert case.status != "FAILED" or case.failure[0] != EVALUATION, value
        elif problem.startswith("The Credentials '"):
            require(case, RUNTIME, WHERE + problem)
        else:
            require(case, EVALUATION, WHERE + problem)
            assert case.last("EvaluationFailed").details["location"] == rule.field


@pytest.mark.parametrize("rule", [*EXPRESSIONS, *ANY], ids=lambda rule: rule.field)
def test_an_expression_that_gives_nothing_names_its_field(rule: Rule) -> None:
    case = started(rule, {}, "JSONata")
    words = "returned nothing (undefined)."
    field = f"specified for the field '{rule.field}'"
    require(case, EVALUATION, f"{WHERE}The JSONata expression '$states.input.v' {field} {words}")
    assert case.last("EvaluationFailed").details["location"] == rule.field


@pytest.mark.parametrize("mode", [INNER, CHILDREN], ids=["inline", "distributed"])
def test_a_map_without_items_needs_an_array_as_its_input(mode: Any) -> None:
    for value in VALUES:
        state = {"Type": "Map", "Label": "L"} if mode is CHILDREN else {"Type": "Map"}
        rule = Rule("", {**state, "ItemProcessor": mode}, not_an_array)
        case = started(rule, value, "JSONata")
        problem = rule.problem(value)
        if problem is None or (mode is CHILDREN and isinstance(value, dict)):
            assert case.status != "FAILED", value
        else:
            require(case, EVALUATION, WHERE + problem)
            assert "location" not in case.last("EvaluationFailed").details


@pytest.mark.parametrize("name", ["ItemReader", "ItemBatcher", "ResultWriter"])
def test_a_state_with_the_name_of_a_field_is_not_taken_for_it(name: str) -> None:
    state = {**TASK, "Arguments": {"x": EXPRESSION}, "End": True}
    case = Case({**machine({name: state}), "QueryLanguage": "JSONata"}).start({})
    assert case.last("EvaluationFailed").details["location"] == "Arguments/x"
