"""Functions, called by ARN and through `lambda:invoke`."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.integrations_kit import effect, function_answer, perform

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:f"
RAISED = b'{"errorMessage": "No.", "errorType": "Refused", "requestId": "1", "stackTrace": []}'


def test_a_function_named_by_its_arn_gets_the_arguments_and_gives_its_result() -> None:
    answer = function_answer(b'{"b": 0.5}')
    result, clients = perform(effect(ARN, {"a": None}, "lambda"), {"invoke": answer})
    assert result == TaskSucceeded({"b": 0.5})
    assert clients.calls == [("invoke", {"FunctionName": ARN, "Payload": b'{"a":null}'})]


def test_the_cause_of_a_function_by_arn_is_the_runtimes_own_text() -> None:
    answer = function_answer(RAISED, FunctionError="Unhandled")
    result, _ = perform(effect(ARN, {}, "lambda"), {"invoke": answer})
    assert result == TaskFailed("Refused", RAISED.decode())


def test_the_cause_of_an_invocation_has_no_blanks() -> None:
    answer = function_answer(RAISED, FunctionError="Unhandled")
    result, _ = perform(effect("lambda:invoke", {"FunctionName": "f"}), {"invoke": answer})
    compact = json.dumps(json.loads(RAISED), separators=(",", ":"))
    assert result == TaskFailed("Refused", compact)


def test_a_failure_without_a_type_is_unknown() -> None:
    body = b'{"errorMessage":"Task timed out after 3.00 seconds"}'
    answer = function_answer(body, FunctionError="Unhandled")
    result, _ = perform(effect("lambda:invoke", {"FunctionName": "f"}), {"invoke": answer})
    assert result == TaskFailed(
        "Lambda.Unknown",
        "The cause could not be determined because Lambda did not return an error type. "
        f"Returned payload: {body.decode()}",
    )


@pytest.mark.parametrize(
    ("payload", "sent"),
    [({"a": 1}, b'{"a":1}'), ("0.0", b"0.0"), ('"x"', b'"x"'), ([], b"[]"), (None, b"{}")],
)
def test_a_payload_is_json_and_a_text_is_taken_for_it(payload: Any, sent: bytes) -> None:
    arguments = {"FunctionName": "f", "Payload": payload}
    _, clients = perform(effect("lambda:invoke", arguments), {"invoke": function_answer(b"1")})
    assert clients.calls[0][1]["Payload"] == sent


def test_an_invocation_gives_the_whole_response_in_alphabetical_order() -> None:
    metadata = {"RequestId": "r", "HTTPStatusCode": 200, "HTTPHeaders": {"x-amzn-requestid": "r"}}
    answer = function_answer(b'"Hello"', ResponseMetadata=metadata)
    result, _ = perform(effect("lambda:invoke", {"FunctionName": "f"}), {"invoke": answer})
    headers = {"x-amzn-RequestId": "r"}
    expected = {
        "ExecutedVersion": "$LATEST",
        "Payload": "Hello",
        "SdkHttpMetadata": {
            "AllHttpHeaders": {"x-amzn-RequestId": ["r"]},
            "HttpHeaders": headers,
            "HttpStatusCode": 200,
        },
        "SdkResponseMetadata": {"RequestId": "r"},
        "StatusCode": 200,
    }
    assert result == TaskSucceeded(expected)
    assert list(result.output) == list(expected)


def test_an_invocations_other_fields_reach_lambda() -> None:
    arguments = {
        "FunctionName": "f",
        "Qualifier": "live",
        "InvocationType": "Event",
        "LogType": "Tail",
        "ClientContext": {"custom": {"a": 1}},
    }
    answer = function_answer(b"", StatusCode=202)
    result, clients = perform(effect("lambda:invoke", arguments), {"invoke": answer})
    assert result.output["Payload"] is None
    sent = clients.calls[0][1]
    assert base64.b64decode(sent.pop("ClientContext")) == b'{"custom":{"a":1}}'
    assert sent == {
        "FunctionName": "f",
        "Qualifier": "live",
        "InvocationType": "Event",
        "LogType": "Tail",
        "Payload": b"{}",
    }


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "The field 'FunctionName' is required but was missing"),
        ({"FunctionName": "f", "Body": 1}, 'The field "Body" is not supported by Step Functions'),
        ({"FunctionName": 1}, "The value for the field 'FunctionName' must be a STRING"),
        ([], "The value for the field 'Parameters' must be an OBJECT"),
    ],
)
def test_an_invocation_that_cannot_be_made(arguments: Any, problem: str) -> None:
    result, _ = perform(effect("lambda:invoke", arguments), {})
    assert result.error == "States.Runtime"
    assert result.cause.endswith(f"could not be used to start the Task: [{problem}]")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("TooManyRequestsException", "Lambda.TooManyRequestsException"),
        ("ServiceException", "Lambda.ServiceException"),
        ("SomethingNew", "Lambda.AWSLambdaException"),
    ],
)
def test_a_refusal_of_lambda_is_named_after_its_code(code: str, error: str) -> None:
    metadata = {"HTTPStatusCode": 429, "RequestId": "r"}
    said = {"Error": {"Code": code, "Message": "Rate."}, "ResponseMetadata": metadata}
    result, _ = perform(effect(ARN, {}, "lambda"), {"invoke": ClientError(said, "Invoke")})
    assert result == TaskFailed(
        error,
        f"Rate. (Service: AWSLambda; Status Code: 429; Error Code: {code}; Request ID: r; "
        "Proxy: null)",
    )


def test_a_connection_that_breaks_is_the_clients_own_error() -> None:
    broken = ReadTimeoutError(endpoint_url="https://lambda")
    result, _ = perform(effect(ARN, {}, "lambda"), {"invoke": broken})
    assert result.error == "Lambda.SdkClientException"
    result, _ = perform(effect("aws-sdk:dynamodb:listTables", {}), {"list_tables": broken})
    assert result.error == "DynamoDb.SdkClientException"
