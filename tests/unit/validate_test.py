"""AWS's findings about definitions: code, words and place, as recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.asl.json_text import DEPTH_MAX, JsonDepthError, JsonTextError, positions, read_json
from holdfast.asl.validation.validate import DefinitionProblem, diagnose, diagnose_state, sentence
from tests.stopwatch import stopwatch
from tests.thorough import examples

PASS = {"Type": "Pass", "End": True}
INVOKE = "arn:aws:states:::lambda:invoke"
TASK = {"Type": "Task", "Resource": INVOKE, "End": True}
PROCESSOR = {"StartAt": "P", "States": {"P": PASS}}
DISTRIBUTED = {**PROCESSOR, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
PARALLEL = {"Type": "Parallel", "Branches": [PROCESSOR], "End": True}
MAP = {"Type": "Map", "ItemProcessor": PROCESSOR, "End": True}
SCHEMA = "SCHEMA_VALIDATION_FAILED"
TARGET = "MISSING_TRANSITION_TARGET"


def one(state: Any, **top: Any) -> Any:
    return {"StartAt": "X", "States": {"X": state}, **top}


def jsonata(state: Any) -> Any:
    return one(state, QueryLanguage="JSONata")


def said(document: Any, *more: Any) -> list[tuple[str, str, str | None]]:
    return [(found.code, found.message, found.location) for found in diagnose(document, *more)]


# -- warnings --------------------------------------------------------------------------------------


def warned(document: Any) -> list[tuple[str, str, str | None]]:
    """Return the warnings; without them nothing is wrong."""
    assert diagnose(document) == ()
    found = diagnose(document, warns=True)
    assert {each.severity for each in found} <= {"WARNING"}
    return [(each.code, each.message, each.location) for each in found]


def test_warnings_have_the_words_of_awss_example() -> None:
    """The last example of AWS's page "ValidateStateMachineDefinition"."""
    hello = {
        "Type": "Pass",
        "Parameters": {"a": "$.b"},
        "Result": {"c.$": "$.d"},
        "Next": "FailState",
    }
    fail = {"Type": "Fail", "Error": "$.error", "Cause": "$.cause"}
    machine = {"StartAt": "HelloWorld", "States": {"HelloWorld": hello, "FailState": fail}}
    at_runtime = "to evaluate it as a JSONPath at runtime."
    static = (
        "The value of 'c.$' will not evaluate as a JSONPath or Intrinsic Function at runtime. "
        "Instead of 'Result', use 'Parameters' to evaluate it as a JSONPath or Intrinsic Function "
        "at runtime."
    )
    looks = "looks like a JSONPath. Instead of"
    place = "/States/HelloWorld"
    assert warned(machine) == [
        (
            "NO_DOLLAR",
            f"The value of 'a' {looks} 'a', use 'a.$' {at_runtime}",
            f"{place}/Parameters",
        ),
        ("PASS_RESULT_IS_STATIC", static, f"{place}/Result"),
        (
            "NO_PATH",
            f"The value of 'Error' {looks} 'Error', use 'ErrorPath' {at_runtime}",
            "/States/FailState/Error",
        ),
        (
            "NO_PATH",
            f"The value of 'Cause' {looks} 'Cause', use 'CausePath' {at_runtime}",
            "/States/FailState/Cause",
        ),
    ]


@pytest.mark.parametrize(
    "state",
    [
        {**PASS, "Parameters": {"a": "5 $", "b": "$5.00", "c": 5, "d.$": "$.d"}},
        {**PASS, "Result": {"a": "$.b", "c.$": 5}},
        {"Type": "Fail", "Error": "Dollar", "Cause": "It costs $5"},
        {"Type": "Fail", "QueryLanguage": "JSONata", "Error": "$.error"},
        {**PASS, "QueryLanguage": "JSONata", "Output": {"a": "$.b", "c.$": "$.d"}},
    ],
)
def test_what_is_no_path_or_may_be_one_has_no_warning(state: Any) -> None:
    assert warned(one(state)) == []


def test_an_error_stands_among_the_warnings_in_the_order_of_the_fields() -> None:
    state = {**PASS, "Parameters": {"a": "$.b"}, "ResultPath": "c", "Result": {"d.$": "$.e"}}
    found = diagnose(one(state), warns=True)
    assert [each.code for each in found] == ["NO_DOLLAR", SCHEMA, "PASS_RESULT_IS_STATIC"]


# -- the text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n", "[]", "5", '"text"', "null"])
def test_a_document_that_is_no_object_is_no_definition(text: str) -> None:
    assert said(text) == [(SCHEMA, "Definition must be a valid JSON object", None)]


def test_a_text_that_is_no_json_is_refused_in_jacksons_words() -> None:
    place = '[Source: (String)"not a definition"; line: 1, column: 4]'
    message = (
        "Unrecognized token 'not': was expecting (JSON String, Number, Array, Object or token "
        f"'null', 'true' or 'false')\n at {place}"
    )

    assert said("not a definition") == [("INVALID_JSON_DESCRIPTION", message, place)]


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ('{"a": 1, "a": 2}', "Duplicate field 'a'", 13),
        ("", "No content to map due to end-of-input", 0),
        ('{"a": }', "Unexpected character ('}' (code 125)): expected a value", 8),
        ("[1,]", "Unexpected character (']' (code 93)): expected a valid value (JSON String,", 5),
        ('{"a" 1}', "was expecting a colon to separate field name and value", 7),
        ('{"a": 1 "b": 2}', "was expecting comma to separate Object entries", 10),
        ("{a: 1}", "was expecting double-quote to start field name", 3),
        ('{"a": [1}', "Unexpected close marker '}': expected ']' (for Array starting at", 10),
        ("]", "Unexpected close marker ']': expected '}' (for root starting at", 2),
        ('{"a": "\t"}', "Illegal unquoted character ((CTRL-CHAR, code 9))", 9),
        ("\x01", r"only regular white space (\r, \n, \t) is allowed between tokens", 2),
        ("/* */ 1", "Feature 'ALLOW_COMMENTS' not enabled for parser", 2),
        ("\ufeff1", "(code 65279 / 0xfeff)", 2),
        ('{"a": "\\q"}', "Unrecognized character escape 'q' (code 113)", 10),
        ('"\\u1z"', "expected a hex-digit for character escape sequence", 6),
        ('{"a": NaN}', "Non-standard token 'NaN'", 10),
        ("$a_1", "Unrecognized token '$a_1'", 5),
        ('{"a": 01}', "Invalid numeric value: Leading zeroes not allowed", 8),
        ("1x", "Expected space separating root-level values", 3),
        ("1\u0663", "(code 1635 / 0x663)): Expected space separating root-level values", 3),
        ("[1x]", "was expecting comma to separate Array entries", 4),
        ("-a", "in numeric value: expected digit (0-9) to follow minus sign", 3),
        ("1.", "('.' (code 46)) in numeric value: Decimal point not followed by a digit", 3),
        ("[1e]", "(']' (code 93)) in numeric value: Exponent indicator not followed", 5),
        ("{} {}", "after the end of the JSON value", 4),
        ("1" * 5_000, "Numeric value out of range", 5_001),
    ],
)
def test_a_mistake_in_a_text_is_reported_with_its_column(
    text: str, problem: str, column: int
) -> None:
    with pytest.raises(JsonTextError) as caught:
        read_json(text)

    assert problem in caught.value.message
    assert caught.value.place.endswith(f"; line: 1, column: {column}]")
    assert caught.value.message.endswith(caught.value.place)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{",
            ': expected close marker for Object (start marker at [Source: (String)"{"; line: 1, ',
        ),
        ('["a"', ": expected close marker for Array (start marker at"),
        ('{"a"', " within/between Object entries"),
        ('{"a":', " within/between Object entries"),
        ('{"a', " in field name"),
        ('"a', ": was expecting closing quote for a string value"),
        ('"\\u1', " in character escape sequence"),
        ('"\\', " in character escape sequence"),
        ("-", "No digit following minus sign"),
    ],
)
def test_a_text_that_ends_too_early_has_an_exception_of_its_own(text: str, problem: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        read_json(text)

    assert caught.value.message.startswith(f"Unexpected end-of-input{problem}")
    assert caught.value.exception == "com.fasterxml.jackson.core.io.JsonEOFException"
    assert caught.value.place.endswith(f"; line: 1, column: {len(text) + 1}]")


@pytest.mark.parametrize(("text", "column"), [("{", 1), ('{"a": [{"b": 1', 8)])
def test_the_start_marker_is_at_the_column_of_the_bracket(text: str, column: int) -> None:
    with pytest.raises(JsonTextError, match=rf"start marker at .*; line: 1, column: {column}\]\)"):
        read_json(text)


@pytest.mark.parametrize(("text", "what"), [("[1,", "Array"), ('{"a": 1,', "Object")])
def test_a_text_that_ends_after_a_comma_is_no_early_end_to_jackson(text: str, what: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        read_json(text)

    assert caught.value.problem == f"Unexpected end-of-input within/between {what} entries"
    assert caught.value.exception == "com.fasterxml.jackson.core.JsonParseException"


def test_the_words_of_json_are_read() -> None:
    assert positions("[true, null]") == {"/": (1, 1), "[0]": (1, 2), "[1]": (1, 8)}


def test_a_long_text_is_cut_in_the_message() -> None:
    with pytest.raises(JsonTextError) as caught:
        read_json("x" * 700)

    assert '"[truncated 200 chars]; line: 1, column: 257]' in caught.value.place
    assert f"Unrecognized token '{'x' * 256}...'" in caught.value.message


def test_every_value_of_a_text_has_its_line_and_column() -> None:
    text = '{"States":\n  {"A/B": {"Choices": [{}, {"Next": "C"}]}}}'

    assert positions(text) == {
        "/": (1, 1),
        "/States": (2, 3),
        "/States/A/B": (2, 11),
        "/States/A/B/Choices": (2, 23),
        "/States/A/B/Choices[0]": (2, 24),
        "/States/A/B/Choices[1]": (2, 28),
        "/States/A/B/Choices[1]/Next": (2, 37),
    }


@pytest.mark.parametrize("levels", [DEPTH_MAX + 1, 2_000, 100_000])
def test_a_definition_has_an_end_to_its_depth(levels: int) -> None:
    text = "[" * levels + "]" * levels
    with pytest.raises(JsonDepthError):
        read_json(text)

    assert said(f'{{"StartAt": {text}}}')[0][0] == "TOO_DEEPLY_NESTED"


def test_a_value_that_is_nested_too_deep_is_refused_before_it_is_walked() -> None:
    document: Any = {}
    for _ in range(DEPTH_MAX + 1):
        document = {"States": document}

    assert said(document)[0][0] == "TOO_DEEPLY_NESTED"
    assert diagnose_state(document)[0].code == "TOO_DEEPLY_NESTED"


# -- the sentence ----------------------------------------------------------------------------------


def test_problems_are_joined_as_in_an_invalid_definition() -> None:
    document = {
        "StartAt": "pass1",
        "States": {"pass1": {"Type": "Pass", "Next": "pass3"}, "pass2": PASS},
    }

    assert sentence(diagnose(document)) == (
        "Invalid State Machine Definition: 'MISSING_TRANSITION_TARGET: Missing 'Next' target: "
        'pass3 at /States/pass1/Next, MISSING_TRANSITION_TARGET: State "pass2" is not reachable. '
        "at /States/pass2'"
    )


def test_a_finding_without_a_place_is_at_null() -> None:
    loop = {
        "StartAt": "A",
        "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "A"}},
    }

    assert sentence(diagnose(loop)) == (
        "Invalid State Machine Definition: "
        "'MISSING_END_STATE: Workflow has no terminal state at null'"
    )


# -- machines --------------------------------------------------------------------------------------


def test_the_fields_that_a_machine_lacks_are_named_together() -> None:
    assert said({}) == [(SCHEMA, "These fields are required: [States, StartAt]", "/")]
    assert said({"States": {"A": PASS}}) == [(SCHEMA, "These fields are required: [StartAt]", "/")]


@pytest.mark.parametrize(
    ("top", "message", "location"),
    [
        ({"Color": "red"}, "Field 'Color' is not supported", "/"),
        ({"Version": "2.0"}, "Value should be one of the following: [1.0]", "/Version"),
        ({"TimeoutSeconds": -1}, "Minimum value is 0", "/TimeoutSeconds"),
        ({"TimeoutSeconds": 100_000_000}, "Maximum value is 99999999", "/TimeoutSeconds"),
        ({"TimeoutSeconds": True}, "Expected value of type Integer", "/TimeoutSeconds"),
        ({"QueryLanguage": 5}, "Expected value of type [STRING]", "/QueryLanguage"),
        (
            {"QueryLanguage": "jsonata"},
            "Value should be one of the following: [JSONPath, JSONata]",
            "/QueryLanguage",
        ),
        ({"Comment": 5}, "Expected value of type [STRING]", "/Comment"),
    ],
)
def test_a_field_of_the_machine(top: Any, message: str, location: str) -> None:
    assert said(one(PASS, **top)) == [(SCHEMA, message, location)]


def test_a_machine_may_have_every_field() -> None:
    assert not said(
        one(PASS, Comment="c", Version="1.0", TimeoutSeconds=0, QueryLanguage="JSONPath")
    )


# -- states ----------------------------------------------------------------------------------------

TYPES = "[Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map]"
TIMES = "[SecondsPath, Seconds, TimestampPath, Timestamp]"
RULE = {"Variable": "$.a", "StringEquals": "b", "Next": "X"}
CHOICE = {"Type": "Choice", "Choices": [RULE]}


@pytest.mark.parametrize(
    ("state", "message", "place"),
    [
        ({"End": True}, "The field 'Type' is required but was missing", ""),
        ({**CHOICE, "Choices": [{"Variable": "$.a", "Next": "X"}]}, "only one of", "/Choices[0]"),
        (
            {**CHOICE, "Choices": [{**RULE, "Variable": "$["}]},
            "Value is not a Reference Path: ",
            "/Choices[0]/Variable",
        ),
        (
            {"Type": "Fail", "CausePath": "why"},
            "Value must be a valid JSONPath or a valid intrinsic function call",
            "/CausePath",
        ),
        (
            {"Type": "Wait", "Timestamp": 5, "End": True},
            "Expected value of type [STRING]",
            "/Timestamp",
        ),
        (
            {**PASS, "Assign": {"x" * 81: 1}},
            "the variable name exceeds 80 characters.",
            "/Assign",
        ),
        (
            {**PASS, "Parameters": {"a": 1, "a.$": "$"}},
            "The field 'a.$' and the field 'a' cannot be given together",
            "/Parameters",
        ),
        (
            {**PASS, "Parameters": {"a.$": 5}},
            "but was a NUMBER",
            "/Parameters",
        ),
        (
            {**PASS, "Parameters": {"a.$": True}},
            "but was a BOOLEAN",
            "/Parameters",
        ),
        (
            {**PARALLEL, "Holdfast": {"After": 5}},
            "Expected value of type [ARRAY]",
            "/Holdfast/After",
        ),
        (
            {**PARALLEL, "Holdfast": {"Needed": 2}},
            "Expected at most 1, the number of branches, found 2",
            "/Holdfast/Needed",
        ),
        (
            {**MAP, "ItemProcessor": DISTRIBUTED, "Holdfast": {"Needed": 2}},
            "A distributed Map has ToleratedFailureCount",
            "/Holdfast",
        ),
        ({"Type": "Sing"}, f"The field 'Type' should have one of these values: {TYPES}", "/Type"),
        ({"Type": ["Pass"]}, f"The field 'Type' should have one of these values: {TYPES}", "/Type"),
        (5, "Expected value of type [OBJECT]", ""),
        (
            {"Type": "Pass"},
            "This object should have only one of the following fields: [Next, End]",
            "",
        ),
        (
            {**PASS, "Next": "X"},
            "There should only be one of the following fields: [Next, End]",
            "",
        ),
        ({**PASS, "TimeoutSeconds": 5}, "Field 'TimeoutSeconds' is not supported", ""),
        ({**PASS, "Catch": []}, "Field 'Catch' is not supported", ""),
        ({"Type": "Succeed", "End": True}, "Field 'End' is not supported", ""),
        ({**PASS, "OutputPath": "Test"}, "Value must be a valid JSONPath.", "/OutputPath"),
        ({**PASS, "InputPath": 5}, "Expected value of type [STRING, NULL]", "/InputPath"),
        ({**PASS, "ResultPath": "$.a[*]"}, "Value is not a Reference Path", "/ResultPath"),
        ({**PASS, "ResultPath": "$foo"}, "Value is not a Reference Path", "/ResultPath"),
        (
            {**PASS, "ResultPath": "a"},
            "Value is not a Reference Path: Reference path didn't start with '$'",
            "/ResultPath",
        ),
        (
            {**PASS, "Parameters": {"a": {"parsed.$": "text"}}},
            (
                "The value for the field 'parsed.$' must be a valid JSONPath or a valid intrinsic "
                "function call"
            ),
            "/Parameters",
        ),
        (
            {**PASS, "Assign": {"states": 1}},
            "Cannot assign to reserved variable '$states'.",
            "/Assign",
        ),
        (
            {**PASS, "Assign": {"a-b.$": "$.a"}},
            "Invalid variable name 'a-b': the variable name contains invalid characters.",
            "/Assign",
        ),
        (
            {"Type": "Wait", "End": True},
            f"This object should have only one of the following fields: {TIMES}",
            "",
        ),
        (
            {"Type": "Wait", "Seconds": 1, "SecondsPath": "$.a", "End": True},
            f"There should only be one of the following fields: {TIMES}",
            "",
        ),
        (
            {"Type": "Wait", "Seconds": "5", "End": True},
            "Expected value of type Integer",
            "/Seconds",
        ),
        ({"Type": "Wait", "Seconds": -1, "End": True}, "Minimum value is 0", "/Seconds"),
        ({"Type": "Fail", "Error": "a", "ErrorPath": "$.a"}, "[Error, ErrorPath]", ""),
        ({"Type": "Fail", "Cause": 5}, "Expected value of type [STRING]", "/Cause"),
        ({**TASK, "Resource": "foo:bar"}, "Value is not a valid resource ARN", "/Resource"),
        (
            {**TASK, "Resource": "arn:aws:states:::dynamodb:query"},
            (
                "The resource provided arn:aws:states:::dynamodb:query is not recognized. The "
                "value is not a valid resource ARN, or the resource is not available in this "
                "region."
            ),
            "/Resource",
        ),
        ({"Type": "Task", "End": True}, "These fields are required: [Resource]", ""),
        ({**TASK, "TimeoutSeconds": 0}, "Minimum value is 1", "/TimeoutSeconds"),
        ({**TASK, "TimeoutSeconds": 5, "HeartbeatSeconds": 5}, "smaller", "/HeartbeatSeconds"),
        (
            {**TASK, "Credentials": {}},
            "The field 'RoleArn' is required but was missing",
            "/Credentials",
        ),
        ({**TASK, "Credentials": None}, "Expected value of type [OBJECT]", "/Credentials"),
        (
            {
                **TASK,
                "Resource": "arn:aws:states:eu-west-1:111111111111:activity:a",
                "Credentials": {"RoleArn": "arn"},
            },
            "The field 'Credentials' is not supported for activities",
            "",
        ),
        ({**TASK, "Retry": [{}]}, "These fields are required: [ErrorEquals]", "/Retry[0]"),
        (
            {**TASK, "Retry": [{"ErrorEquals": []}]},
            "Value cannot be empty",
            "/Retry[0]/ErrorEquals",
        ),
        (
            {**TASK, "Retry": [{"ErrorEquals": ["A", "States.ALL"]}]},
            "States.ALL must appear alone and at end of list",
            "/Retry[0]/ErrorEquals[1]",
        ),
        (
            {**TASK, "Retry": [{"ErrorEquals": ["A"], "BackoffRate": 0.5}]},
            "Minimum value is 1.0",
            "/Retry[0]/BackoffRate",
        ),
        (
            {**TASK, "Catch": [{"ErrorEquals": ["A"]}]},
            "These fields are required: [Next]",
            "/Catch[0]",
        ),
        (
            {"Type": "Parallel", "Branches": [], "End": True},
            "Value cannot be empty",
            "/Branches",
        ),
        (
            {"Type": "Map", "End": True},
            "This object should have only one of the following fields: [ItemProcessor, Iterator]",
            "",
        ),
        (
            {**MAP, "ItemProcessor": {**PROCESSOR, "QueryLanguage": "JSONata"}},
            "Field 'QueryLanguage' is not supported",
            "/ItemProcessor",
        ),
        ({**MAP, "MaxConcurrency": -1}, "Minimum value is 0", "/MaxConcurrency"),
        ({**MAP, "ItemsPath": None}, "Expected value of type [STRING]", "/ItemsPath"),
        (
            {**MAP, "MaxConcurrencyPath": "$$.Execution.Input.n"},
            "Value is not a Reference Path",
            "/MaxConcurrencyPath",
        ),
        (
            {**MAP, "ToleratedFailurePercentage": 101},
            "Maximum value is 100.0",
            "/ToleratedFailurePercentage",
        ),
        ({**CHOICE, "Choices": []}, "Value cannot be empty", "/Choices"),
        (
            {**CHOICE, "Choices": [{"Variable": "$.a", "IsNull": True}]},
            "These fields are required: [Next]",
            "/Choices[0]",
        ),
        (
            {**CHOICE, "Choices": [{"And": [RULE], "Next": "X"}]},
            "Field 'Next' is not supported",
            "/Choices[0]/And[0]",
        ),
        (
            {**CHOICE, "Choices": [{"Next": "X"}]},
            (
                "The object must have only one of the following fields, [And, Or, Not, Variable, "
                "Condition]"
            ),
            "/Choices[0]",
        ),
        (
            {**CHOICE, "Choices": [{**RULE, "StringLessThan": "c"}]},
            "There should only be one of the following fields: [StringEquals, StringLessThan]",
            "/Choices[0]",
        ),
        (
            {**CHOICE, "Choices": [{**RULE, "Variable": "a"}]},
            "Value is not a Reference Path: Reference path didn't start with '$'",
            "/Choices[0]/Variable",
        ),
    ],
)
def test_a_state_is_refused_in_awss_words(state: Any, message: str, place: str) -> None:
    found = [
        (text, where)
        for _, text, where in said(one(state))
        if where is not None and "reachable" not in text
    ]

    assert any(message in text and where == f"/States/X{place}" for text, where in found), found


@pytest.mark.parametrize(
    "timestamp",
    [
        "2016-13-05T21:29:29Z",
        "2016-02-30T21:29:29Z",
        "05-12-2016T21:29:29Z",
        "2016-12-05T25:29:29Z",
        "2016-12-05 21:29:29Z",
        "2016-12-05T21:29:29",
        "{% '2016-03-14T01:59:00Z' %}",
    ],
)
def test_a_timestamp_is_rfc_3339_with_its_zone(timestamp: str) -> None:
    message = "String does not match RFC3339 timestamp"

    assert said(one({"Type": "Wait", "Timestamp": timestamp, "End": True})) == [
        (SCHEMA, message, "/States/X/Timestamp")
    ]


@pytest.mark.parametrize(
    "state",
    [
        {**PASS, "InputPath": None, "OutputPath": "$$.a", "Result": [1], "ResultPath": None},
        {**PASS, "Assign": {"größe": 1, "b.$": "$.b", "c.$": "States.UUID()"}},
        {"Type": "Wait", "Timestamp": "2016-12-05T21:29:29.5+01:00", "End": True},
        {"Type": "Fail", "ErrorPath": "States.UUID()", "CausePath": "$.cause"},
        {**TASK, "Credentials": {"RoleArn.$": "$.role"}},
        {**TASK, "Parameters": "text", "Retry": [], "Catch": []},
        {**TASK, "Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": 0, "BackoffRate": 1}]},
        {**TASK, "Resource": "arn:aws-cn:lambda:cn-north-1:111111111111:function:f:PROD"},
        {**TASK, "Resource": "arn:aws:states:::states:startExecution.sync:2"},
        {**TASK, "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets.waitForTaskToken"},
        {**TASK, "Resource": "holdfast:task:ship"},
        {**MAP, "ItemsPath": "$$.items", "MaxConcurrency": 2**63, "ToleratedFailureCount": 1},
        {"Type": "Map", "Iterator": PROCESSOR, "Parameters": "$.a", "End": True},
        {**MAP, "QueryLanguage": "JSONata", "Items": "{% [1] %}", "Output": "{% $states.result %}"},
        {**MAP, "ItemProcessor": DISTRIBUTED, "Label": "a-b", "ItemBatcher": {}},
    ],
)
def test_a_state_that_aws_accepts_is_accepted(state: Any) -> None:
    assert not said(one(state))


# -- two languages ---------------------------------------------------------------------------------

ONLY_JSONATA = (
    "The QueryLanguage is set to 'JSONPath', but field '{}' is only supported for the 'JSONata' "
    "QueryLanguage"
)
ONLY_JSONPATH = (
    "The QueryLanguage is set to 'JSONata', but field '{}' is only supported for the 'JSONPath' "
    "QueryLanguage"
)
DOWNGRADED = "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine"
ENUM = "Value should be one of the following: [JSONPath, JSONata]"


def test_fields_of_the_other_language_are_refused_at_the_state() -> None:
    assert said(one({**TASK, "Arguments": {}})) == [
        (SCHEMA, ONLY_JSONATA.format("Arguments"), "/States/X")
    ]
    assert said(jsonata({**PASS, "InputPath": "$.a", "ResultPath": "$.b"})) == [
        (SCHEMA, ONLY_JSONPATH.format("InputPath"), "/States/X"),
        (SCHEMA, ONLY_JSONPATH.format("ResultPath"), "/States/X"),
    ]


def test_a_map_hands_the_machines_language_to_its_states_and_not_its_own() -> None:
    inner = {"StartAt": "P", "States": {"P": {**PASS, "Output": 1}}}
    place = "/States/X/ItemProcessor/States/P"
    for own in ({}, {"QueryLanguage": "JSONata"}):
        state = {**MAP, **own, "ItemProcessor": inner}
        assert said(one(state)) == [(SCHEMA, ONLY_JSONATA.format("Output"), place)]


def test_a_state_of_a_jsonata_machine_stays_in_jsonata() -> None:
    state = {**MAP, "QueryLanguage": "JSONPath", "Output": 1, "MaxConcurrency": -1}

    assert said(jsonata(state)) == [
        (SCHEMA, DOWNGRADED, "/States/X"),
        (SCHEMA, "Minimum value is 0", "/States/X/MaxConcurrency"),
    ]


@pytest.mark.parametrize("language", ["jsonata", "foo", "jsonpath"])
def test_an_unknown_language_is_taken_for_jsonata(language: str) -> None:
    assert said(one({**PASS, "QueryLanguage": language, "Output": 1})) == [
        (SCHEMA, ENUM, "/States/X/QueryLanguage")
    ]
    assert said(one({**PASS, "InputPath": "$.a"}, QueryLanguage=language)) == [
        (SCHEMA, ENUM, "/QueryLanguage"),
        (SCHEMA, ONLY_JSONPATH.format("InputPath"), "/States/X"),
    ]


# -- JSONata ---------------------------------------------------------------------------------------

INVALID = "INVALID_JSONATA_EXPRESSION"
UNSUPPORTED = "UNSUPPORTED_JSONATA_EXPRESSION"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a[1,2)", 'Expected "]", got ","'),
        ('"unterminated', "String literal must be terminated by a matching quote"),
        ("1 +", "Unexpected end of expression"),
        ('{"a":}', 'The symbol "}" cannot be used as a unary operator'),
        ("", "Unexpected end of expression"),
    ],
)
def test_an_expression_that_cannot_be_parsed_is_refused(expression: str, message: str) -> None:
    found = said(jsonata({**PASS, "Output": {"v": [f"{{% {expression} %}}"]}}))

    assert found == [(INVALID, message, "/States/X/Output/v[0]")]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("phone", "Reference to 'phone' at the top level is not supported."),
        ("$sum(a.b)", "Reference to 'a' at the top level is not supported."),
        ("$map([1], function($v) { x })", "Reference to 'x' at the top level is not supported."),
        ("$", "Reference to '$' at the top level is not supported."),
        ("*", "Reference to '*' at the top level is not supported."),
        ("$$", "Reference to '$$' is not supported."),
        ("$x[$$.a]", "Reference to '$$' is not supported."),
        ("$states.errorOutput", "Field '$states.errorOutput' does not exist."),
        ("$states.result", "Field '$states.result' does not exist."),
        ("$x[$states.errorOutput]", "Field '$states.errorOutput' does not exist."),
    ],
)
def test_an_expression_refers_to_nothing_that_is_not_there(expression: str, message: str) -> None:
    found = said(jsonata({**PASS, "Output": f"{{% {expression} %}}"}))

    assert found == [(UNSUPPORTED, message, "/States/X/Output")]


@pytest.mark.parametrize(
    "expression",
    [
        "$states.input.a[b = 1]",
        "$states.input.(x + y)",
        "$x^(y)",
        "$x{a: $sum(b)}",
        "$x ~> | a | {'b': c} |",
        "$x.{'a': b}",
        "$filter($x, function($v) { $v.a > 1 })",
        "($a := 1; $a.b)",
        "$unknown",
        "$states.context.Task.Token",
        "$x.$uppercase($)",
    ],
)
def test_a_name_inside_something_is_a_name_of_it(expression: str) -> None:
    assert not said(jsonata({**PASS, "Output": f"{{%{expression}%}}"}))


def test_the_fields_of_states_depend_on_the_place() -> None:
    result, error = "{% $states.result %}", "{% $states.errorOutput %}"
    catcher = {"ErrorEquals": ["A"], "Next": "X", "Output": error, "Assign": {"e": error}}
    task = {**TASK, "Output": result, "Assign": {"r": result}, "Catch": [catcher]}

    assert not said(jsonata(task))
    assert [place for _, _, place in said(jsonata({**task, "Arguments": result}))] == [
        "/States/X/Arguments"
    ]


def test_an_expression_that_does_not_end_is_refused() -> None:
    message = "JSONata string must start with {% and end with %}"

    assert said(jsonata({**PASS, "Output": "{% 1"})) == [(SCHEMA, message, "/States/X/Output")]


# -- the graph -------------------------------------------------------------------------------------


def graph(states: dict[str, Any], start: str = "A") -> list[tuple[str, str, str | None]]:
    return said({"StartAt": start, "States": states})


def goes(target: str) -> Any:
    return {"Type": "Pass", "Next": target}


def test_an_endless_loop_hides_unreachable_states() -> None:
    no_end = ("MISSING_END_STATE", "Workflow has no terminal state", None)

    assert graph({"A": goes("B"), "B": goes("A"), "Unused": goes("A")}) == [no_end]
    assert graph({"A": goes("Nope")}) == [
        (TARGET, "Missing 'Next' target: Nope", "/States/A/Next"),
        no_end,
    ]
    assert graph({"A": goes("B"), "B": goes("A"), "C": PASS}) == [
        (TARGET, 'State "C" is not reachable.', "/States/C")
    ]


def test_inner_machines_may_go_round_for_ever() -> None:
    inner = {"StartAt": "A", "States": {"A": goes("B"), "B": goes("A")}}

    assert not said(one({**MAP, "ItemProcessor": inner}))


def test_a_start_that_is_not_there_leaves_all_unreached() -> None:
    assert graph({"A": PASS}, "Nope") == [
        (TARGET, "Missing 'Next' target: Nope", "/StartAt"),
        (TARGET, 'State "A" is not reachable.', "/States/A"),
    ]


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"Type": "Choice", "Choices": [{**RULE, "Next": "Ghost"}], "Default": "Z"}, "Choices[0]"),
        ({**TASK, "End": None, "Catch": [{"ErrorEquals": ["A"], "Next": "Ghost"}]}, "Catch[0]"),
    ],
)
def test_every_target_is_called_next(state: Any, place: str) -> None:
    found = graph({"A": {**state}, "Z": PASS})

    assert (TARGET, "Missing 'Next' target: Ghost", f"/States/A/{place}/Next") in found


def test_an_unreachable_inner_state_is_named_with_its_place() -> None:
    inner = {"StartAt": "W", "States": {"W": PASS, "a/b": PASS}}
    parallel = {"Type": "Parallel", "Branches": [inner], "End": True}

    assert said(one(parallel)) == [
        (TARGET, 'State "a/b" is not reachable.', "/States/X/Branches[0]/States/a/b")
    ]


def test_a_state_has_a_name() -> None:
    document = {"StartAt": "", "States": {"": PASS}}
    empty = "Invalid State name: State name cannot be empty"
    assert ("INVALID_STATE_NAME", empty, "/States/") in said(document)


def test_a_long_name_is_refused_in_the_words_of_published_reports() -> None:
    name = (
        "This is an exceptionally long state name that I know will fail when I try to deploy to AWS"
    )
    document = {"StartAt": name, "States": {name: PASS}}
    assert sentence(diagnose(document)) == (
        "Invalid State Machine Definition: 'INVALID_STATE_NAME: Invalid State name: State "
        f"'{name}' exceeds the 80-character limit allowed by the service at /States/{name}'"
    )


@pytest.mark.parametrize(
    ("extension", "message", "place"),
    [
        ({"Shielded": [["Y"]]}, "The definition has no state 'Y'", "/Holdfast/Shielded[0][0]"),
        ({"Shielded": [[5]]}, "Expected value of type [STRING]", "/Holdfast/Shielded[0][0]"),
        ({"Undo": [5]}, "Expected value of type [OBJECT]", "/Holdfast/Undo[0]"),
        ({"Undo": 5}, "Expected value of type [ARRAY]", "/Holdfast/Undo"),
        (
            {"Undo": [{"States": ["Y"], "Begin": "X", "End": "X"}]},
            "The definition has no state 'Y'",
            "/Holdfast/Undo[0]/States[0]",
        ),
    ],
)
def test_a_part_of_the_extension_names_states_that_are_there(
    extension: Any, message: str, place: str
) -> None:
    assert (message, place) in [found[1:] for found in said(one(PASS, Holdfast=extension))]


def test_credentials_may_be_worked_out() -> None:
    assert not said(jsonata({**TASK, "Credentials": "{% $role %}"}))


def test_names_and_labels_are_used_once() -> None:
    inner = {"StartAt": "X", "States": {"X": PASS}}
    labelled = {**MAP, "ItemProcessor": {**DISTRIBUTED, **inner}, "Label": "l"}
    outer = {
        "StartAt": "X",
        "States": {
            "X": {**labelled, "End": None, "Next": "Y"},
            "Y": {**labelled, "ItemProcessor": DISTRIBUTED},
        },
    }
    codes = [(code, place) for code, _, place in said(outer) if code != SCHEMA]

    assert ("DUPLICATE_STATE_NAME", "/States/X/ItemProcessor/States/X") in codes
    assert ("DUPLICATE_LABEL_NAME", "/States/Y/Label") in codes


# -- express machines and distributed maps ---------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (
            "arn:aws:states:us-east-1:111111111111:activity:a",
            "Express state machine does not support Activity ARN",
        ),
        (
            "arn:aws:states:::sns:publish.waitForTaskToken",
            "Express state machine does not support '.waitForTaskToken' service integration ",
        ),
        (
            "arn:aws:states:::states:startExecution.sync:2",
            "Express state machine does not support '.sync' service integration ",
        ),
        (
            "holdfast:workflow:ship",
            "Express state machine does not support '.sync' service integration ",
        ),
    ],
)
def test_an_express_machine_cannot_wait_for_an_answer(resource: str, message: str) -> None:
    state = {**TASK, "Resource": resource}
    within = {"StartAt": "T", "States": {"T": state}}
    express = {**within, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}

    assert not said(one(state))
    assert not said(one(TASK), "EXPRESS")
    assert said(one(state), "EXPRESS") == [(SCHEMA, message, "/States/X/Resource")]
    assert said(one({**MAP, "ItemProcessor": express})) == [
        (SCHEMA, message, "/States/X/ItemProcessor/States/T/Resource")
    ]


def test_an_express_machine_has_no_distributed_map() -> None:
    message = (
        "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state machines"
    )

    assert said(one({**MAP, "ItemProcessor": DISTRIBUTED}), "EXPRESS") == [
        (SCHEMA, message, "/States/X/ItemProcessor/ProcessorConfig/Mode")
    ]


READER = {"Resource": "arn:aws:states:::s3:getObject", "Parameters": {"Bucket": "b"}}


@pytest.mark.parametrize(
    ("fields", "message", "place"),
    [
        (
            {"ItemReader": {**READER, "Resource": "arn:aws:states:::s3:putObject"}},
            "The field 'Resource' does not match any of the allowed values",
            "/ItemReader/Resource",
        ),
        (
            {"ItemReader": {**READER, "ReaderConfig": {"InputType": "CSV"}}},
            "The field 'CSVHeaderLocation' is required but was missing",
            "/ItemReader/ReaderConfig",
        ),
        (
            {"ItemReader": {**READER, "ReaderConfig": {"MaxItems": 1, "MaxItemsPath": "$.n"}}},
            "There should only be one of the following fields: [MaxItems, MaxItemsPath]",
            "/ItemReader/ReaderConfig",
        ),
        (
            {"ItemReader": {**READER, "ReaderConfig": {"MaxItems": 100_000_001}}},
            "Maximum value is 100000000",
            "/ItemReader/ReaderConfig/MaxItems",
        ),
        (
            {"ItemBatcher": {"MaxItemsPerBatch": -1}},
            "Minimum value",
            "/ItemBatcher/MaxItemsPerBatch",
        ),
        ({"Label": "x" * 41}, "exceeds the 40-character limit", "/Label"),
        ({"Label": 5}, "Expected value of type [STRING]", "/Label"),
        (
            {"ItemReader": {**READER, "Resource": 5}},
            "Expected value of type [STRING]",
            "/ItemReader/Resource",
        ),
        (
            {
                "ItemReader": {
                    **READER,
                    "ReaderConfig": {"InputType": "JSON", "CSVDelimiter": "COMMA"},
                }
            },
            "Field 'CSVDelimiter' is not supported",
            "/ItemReader/ReaderConfig",
        ),
        (
            {
                "ItemReader": {
                    **READER,
                    "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "GIVEN"},
                }
            },
            "These fields are required: [CSVHeaders]",
            "/ItemReader/ReaderConfig",
        ),
        ({"Label": "a b"}, "invalid characters", "/Label"),
        (
            {"ItemProcessor": {**PROCESSOR, "ProcessorConfig": {"Mode": "DISTRIBUTED"}}},
            "These fields are required: [ExecutionType]",
            "/ItemProcessor/ProcessorConfig",
        ),
    ],
)
def test_a_distributed_map(fields: Any, message: str, place: str) -> None:
    found = said(one({**MAP, "ItemProcessor": DISTRIBUTED, **fields}))

    assert [where for _, _, where in found] == [f"/States/X{place}"]
    assert message in found[0][1]


# -- one state alone -------------------------------------------------------------------------------


def test_a_state_alone_may_be_in_either_language_and_go_anywhere() -> None:
    assert diagnose_state({"Type": "Pass", "QueryLanguage": "JSONata", "Next": "elsewhere"}) == ()
    assert diagnose_state({"Type": "Parallel", "Branches": [], "End": True}) == (
        DefinitionProblem("ERROR", SCHEMA, "Value cannot be empty", "/States/StateName/Branches"),
    )
    assert diagnose_state([])[0].message == "Definition must be a valid JSON object"


# -- anything at all -------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *("Type", "Pass", "Map", "Choice", "Task", "Next", "End", "States", "StartAt", "A"),
        *("ItemProcessor", "Branches", "Catch", "ErrorEquals", "Variable", "And", "x.$", "$.a"),
        *("QueryLanguage", "JSONata", "Parameters", "States.Format('{}', $.a)", "{% $x.y %}"),
        *("Choices", "{% a", "ResultPath", "$.a['b','c']", "\ud800"),
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=examples(400), deadline=None, database=None, derandomize=True)
@given(VALUES)
@example(one({"Type": "Pass", "Parameters": {"a.$": "States.Format('" * 50}}))
def test_any_json_has_a_diagnosis(value: Any) -> None:
    states = value if isinstance(value, dict) else {"A": value}
    for document in (value, {"StartAt": "A", "States": states}, one(value), jsonata(value)):
        found = diagnose(document, warns=True)
        assert all(each.message for each in found)
        assert diagnose(document) == tuple(each for each in found if each.severity == "ERROR")


@settings(max_examples=examples(400), deadline=None, database=None, derandomize=True)
@given(st.text(alphabet='{}[]",:\\ \n01ab-.u', max_size=30))
def test_any_text_has_a_diagnosis(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=str)
    except ValueError:
        assert diagnose(text)
    else:
        if not _has_twins(text):
            assert read_json(text) == expected


def _has_twins(text: str) -> bool:
    twins: list[bool] = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twins.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    return any(twins)


def test_a_large_definition_is_looked_at_in_good_time() -> None:
    states = {f"S{number}": goes(f"S{number + 1}") for number in range(5_000)}
    with stopwatch() as watch:
        assert not graph({**states, "S5000": PASS}, "S0")
    assert watch.seconds < 2
