"""Requests against AWS's model, in AWS's words."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.stepfunctions.api import OPERATIONS
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.shapes import input_shape, require_valid

FAILED = "failed to satisfy constraint: Member must"


def refused(operation: str, request: Any, code: str = "ValidationException") -> str:
    with pytest.raises(StatesFault) as refusal:
        require_valid(operation, request)
    assert refusal.value.code == code
    return refusal.value.message


def test_every_operation_of_the_table_is_one_of_the_model() -> None:
    for operation in OPERATIONS:
        assert input_shape(operation) == f"{operation}Input"


def test_a_valid_request_comes_back_without_nulls_and_unknown_members() -> None:
    request = {"stateMachineArn": "x", "nextToken": None, "colour": "red", "maxResults": 5.0}

    assert require_valid("ListExecutions", request) == {"stateMachineArn": "x", "maxResults": 5}


def test_a_missing_member_is_null() -> None:
    assert refused("DescribeStateMachine", {}) == (
        f"1 validation error detected: Value null at 'stateMachineArn' {FAILED} not be null"
    )


def test_all_errors_are_reported_at_once_in_the_order_of_the_model() -> None:
    message = refused("CreateStateMachine", {"name": "n" * 81, "type": "FAST"})

    told, problems = message.split(": ", 1)
    assert told == "4 validation errors detected"
    assert problems.split("; ") == [
        f"Value '{'n' * 81}' at 'name' {FAILED} have length less than or equal to 80",
        f"Value null at 'definition' {FAILED} not be null",
        f"Value null at 'roleArn' {FAILED} not be null",
        f"Value 'FAST' at 'type' {FAILED} satisfy enum value set: [STANDARD, EXPRESS]",
    ]


@pytest.mark.parametrize(
    ("operation", "request_", "problem"),
    [
        (
            "ListActivities",
            {"maxResults": 1001},
            "'1001' at 'maxResults' … value less than or equal to 1000",
        ),
        (
            "ListActivities",
            {"maxResults": -1},
            "'-1' at 'maxResults' … value greater than or equal to 0",
        ),
        ("CreateActivity", {"name": ""}, "'' at 'name' … length greater than or equal to 1"),
        (
            "CreateActivity",
            {"name": "a", "tags": [{"key": "", "value": ""}]},
            "'' at 'tags.1.member.key' … length greater than or equal to 1",
        ),
    ],
)
def test_bounds_are_reported_with_the_value_and_its_place(
    operation: str, request_: dict[str, Any], problem: str
) -> None:
    expected = problem.replace("…", f"{FAILED} have")

    assert refused(operation, request_) == f"1 validation error detected: Value {expected}"


def test_a_secret_is_not_returned_in_the_message() -> None:
    message = refused("SendTaskHeartbeat", {"taskToken": "t" * 2_049})

    assert message == (
        f"1 validation error detected: Value at 'taskToken' {FAILED} have length less than or "
        "equal to 2048"
    )


def test_a_list_prints_its_members_as_objects_do() -> None:
    route = {"stateMachineVersionArn": "v", "weight": 50}
    message = refused("CreateStateMachineAlias", {"name": "a", "routingConfiguration": [route] * 3})
    item = "RoutingConfigurationListItem(stateMachineVersionArn=v, weight=50)"

    assert f"Value '[{item}, {item}, {item}]' at 'routingConfiguration' {FAILED}" in message


def test_patterns_are_those_of_the_model() -> None:
    route = {"stateMachineVersionArn": "v", "weight": 100}
    message = refused("CreateStateMachineAlias", {"name": "12", "routingConfiguration": [route]})

    assert message.endswith(
        r"Member must satisfy regular expression pattern: ^(?=.*[a-zA-Z_\-\.])[a-zA-Z0-9_\-\.]+$"
    )
    assert require_valid("StartExecution", {"stateMachineArn": "x", "traceHeader": "Root=1"})
    assert "traceHeader" in refused("StartExecution", {"stateMachineArn": "x", "traceHeader": "é"})


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("ListActivities", [], "Unexpected value type in payload"),
        ("CreateActivity", {"name": 5}, "NUMBER_VALUE can not be converted to a String"),
        ("CreateActivity", {"name": True}, "TRUE_VALUE can not be converted to a String"),
        ("ListActivities", {"maxResults": "5"}, "STRING_VALUE can not be converted to an Integer"),
        ("ListActivities", {"maxResults": 5.5}, "DECIMAL_VALUE can not be converted to an Integer"),
        ("CreateActivity", {"name": {}}, "Start of structure or map found where not expected."),
        ("CreateActivity", {"name": []}, "Start of list found where not expected"),
        ("CreateActivity", {"name": "\ud800"}, "A text holds half of a surrogate pair"),
        ("CreateActivity", {"name": "a", "tags": "x"}, "Expected list or null"),
        ("CreateActivity", {"name": "a", "tags": ["x"]}, "Expected map or null"),
    ],
)
def test_a_value_of_the_wrong_kind_ends_the_reading(
    operation: str, request_: Any, message: str
) -> None:
    assert refused(operation, request_, "SerializationException") == message


def test_the_bound_of_payloads_goes_with_the_limit_of_the_stack() -> None:
    request = {"stateMachineArn": "x", "input": '"' + "x" * 300_000 + '"'}

    assert "262144" in refused("StartExecution", request)
    assert require_valid("StartExecution", request, is_payload_limited=False) == request
