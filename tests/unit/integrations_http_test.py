"""HTTP tasks, with a connection's credentials and no network."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import botocore.httpsession
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError
from urllib3.exceptions import ProtocolError

from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.local import wall
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.integrations_kit import effect, perform

URL = "https://api.example.com/v1/orders"
CONNECTION = "arn:aws:events:eu-west-1:123456789012:connection/shop/0a1b"


class Endpoint:
    """An endpoint that gives scripted answers to every request of the process."""

    def __init__(self) -> None:
        self.status = 200
        self.headers = {"Content-Type": "application/json"}
        self.body = b'{"ok":true}'
        self.requests: list[Any] = []

    def send(self, request: Any) -> AWSResponse:
        self.requests.append(request)
        return AWSResponse(request.url, self.status, self.headers, io.BytesIO(self.body))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    endpoint = Endpoint()
    session = botocore.httpsession.URLLib3Session
    monkeypatch.setattr(session, "send", lambda _, request: endpoint.send(request))
    return endpoint


def _invoke(arguments: dict[str, Any], answers: dict[str, Any] | None = None) -> Any:
    arguments = {"ApiEndpoint": URL, "Method": "GET", **arguments}
    return perform(effect("http:invoke", arguments), answers or {})[0]


def test_an_answer_has_its_body_parsed(endpoint: Endpoint) -> None:
    assert _invoke({}) == TaskSucceeded(
        {
            "Headers": {"content-type": ["application/json"]},
            "ResponseBody": {"ok": True},
            "StatusCode": 200,
            "StatusText": "OK",
        }
    )
    (request,) = endpoint.requests
    assert (request.method, request.url, request.body) == ("GET", URL, None)
    assert request.headers["User-Agent"] == "Amazon|StepFunctions|HttpInvoke|eu-west-1"


def test_a_status_of_an_error_is_the_errors_name(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.body = 404, b'{"message": "none"}'
    assert _invoke({}) == TaskFailed("States.Http.StatusCode.404", '{"message":"none"}')


def test_a_connection_that_fails_is_a_socket_error(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise EndpointConnectionError(endpoint_url=URL)

    monkeypatch.setattr(endpoint, "send", refuse)
    assert _invoke({}).error == "States.Http.Socket"


def test_a_failure_does_not_contain_the_secrets_of_a_connection(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: Any) -> Any:
        raise EndpointConnectionError(endpoint_url=request.url)

    monkeypatch.setattr(endpoint, "send", refuse)
    secret = {
        "api_key_name": "X-Key",
        "api_key_value": "k",
        "invocation_http_parameters": {
            "query_string_parameters": [{"key": "key", "value": "hidden"}]
        },
    }
    authentication = {"Authentication": {"ConnectionArn": CONNECTION}}
    result = _invoke(authentication, _connection("API_KEY", secret))

    assert result == TaskFailed(
        "States.Http.Socket", f"Unable to call {URL}: EndpointConnectionError"
    )


def test_a_connection_that_breaks_in_the_answer_is_a_socket_error(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise ProtocolError("Connection broken")

    monkeypatch.setattr(
        endpoint, "send", lambda request: AWSResponse(request.url, 200, {}, Broken())
    )
    assert _invoke({}).error == "States.Http.Socket"


@pytest.mark.parametrize(
    ("headers", "body", "error"),
    [
        ({"Content-Type": "image/png"}, b"text", "States.Runtime"),
        ({"Content-Type": "text/plain"}, b"\xff\xfe", "States.Runtime"),
        ({}, b"x" * (PAYLOAD_BYTES_MAX + 1), "States.DataLimitExceeded"),
    ],
)
def test_an_answer_that_cannot_be_data(
    endpoint: Endpoint, headers: Any, body: bytes, error: str
) -> None:
    endpoint.headers, endpoint.body = headers, body
    assert _invoke({}).error == error


@pytest.mark.parametrize(
    ("array_format", "encoded"),
    [
        ("INDICES", b"a%5B0%5D=1&a%5B1%5D=2&b%5Bc%5D=x+y"),
        ("REPEAT", b"a=1&a=2&b%5Bc%5D=x+y"),
        ("COMMAS", b"a=1%2C2&b%5Bc%5D=x+y"),
        ("BRACKETS", b"a%5B%5D=1&a%5B%5D=2&b%5Bc%5D=x+y"),
        ("NONE", b"a=%5B1%2C2%5D&b%5Bc%5D=x+y"),
    ],
)
def test_a_body_may_be_a_form(endpoint: Endpoint, array_format: str, encoded: bytes) -> None:
    _invoke(
        {
            "Method": "POST",
            "RequestBody": {"a": [1, 2], "b": {"c": "x y"}},
            "Headers": {"Content-Type": "application/x-www-form-urlencoded"},
            "Transform": {
                "RequestBodyEncoding": "URL_ENCODED",
                "RequestEncodingOptions": {"ArrayFormat": array_format},
            },
        }
    )
    assert endpoint.requests[0].body == encoded


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"ApiEndpoint": "http://x/"},
            "The value for the field 'ApiEndpoint' must be an HTTPS URL",
        ),
        ({"ApiEndpoint": None}, "The field 'ApiEndpoint' is required but was missing"),
        ({"Url": "x"}, 'The field "Url" is not supported by Step Functions'),
        ({"Headers": {"Host": "x"}}, "The 'Headers' field contains unsupported values: [host]"),
        ({"Headers": ["x"]}, "The value of the field 'Headers' has an invalid format"),
    ],
)
def test_a_request_that_is_not_made(
    endpoint: Endpoint, arguments: dict[str, Any], problem: str
) -> None:
    result = _invoke(arguments)
    assert result.error == "States.Runtime"
    assert result.cause.endswith(f"[{problem}]")
    assert not endpoint.requests


def _connection(kind: str, secret: dict[str, Any], parameters: Any = None) -> dict[str, Any]:
    return {
        "describe_connection": {
            "SecretArn": "s",
            "AuthorizationType": kind,
            "AuthParameters": parameters or {},
        },
        "get_secret_value": {"SecretString": json.dumps(secret)},
    }


@pytest.mark.parametrize(
    ("kind", "secret", "header", "value"),
    [
        ("BASIC", {"username": "u", "password": "p"}, "authorization", "Basic dTpw"),
        ("API_KEY", {"api_key_name": "X-Key", "api_key_value": "k"}, "x-key", "k"),
    ],
)
def test_a_connection_puts_its_credentials_into_the_request(
    endpoint: Endpoint, kind: str, secret: dict[str, Any], header: str, value: str
) -> None:
    extra = {
        "query_string_parameters": [{"key": "q", "value": "theirs"}],
        "body_parameters": [{"key": "b", "value": "theirs"}],
    }
    _invoke(
        {
            "Method": "POST",
            "Authentication": {"ConnectionArn": CONNECTION},
            "QueryParameters": {"q": "ours", "r": [1, 2]},
            "RequestBody": {"b": "ours", "c": 1},
        },
        _connection(kind, secret | {"invocation_http_parameters": extra}),
    )
    (request,) = endpoint.requests
    assert request.headers[header] == value
    assert request.url == f"{URL}?q=theirs&r=1&r=2"
    assert json.loads(request.body) == {"b": "theirs", "c": 1}


def _traced(trace: Any, arguments: Mapping[str, Any], answers: Mapping[str, Any]) -> Any:
    whole = {"ApiEndpoint": URL, "Method": "POST", **arguments}
    task = replace(effect("http:invoke", whole), trace=trace)
    return perform(task, answers)[0]


SECRETS: Final = {
    "api_key_name": "X-Key",
    "api_key_value": "hidden key",
    "invocation_http_parameters": {
        "header_parameters": [{"key": "X-More", "value": "hidden header"}],
        "query_string_parameters": [{"key": "s", "value": "hidden-query"}],
        "body_parameters": [{"key": "s", "value": "hidden body"}],
    },
}
GIVEN: Final = {
    "Headers": {"Shown": "h"},
    "QueryParameters": {"q": "1"},
    "RequestBody": {"b": 1},
    "Authentication": {"ConnectionArn": CONNECTION},
}


def test_a_request_that_the_local_cloud_stops_is_traced(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: Any) -> Any:
        raise wall.refusal("api.example.com")

    monkeypatch.setattr(endpoint, "send", stop)
    found = _traced("ALL", GIVEN, _connection("API_KEY", SECRETS))
    assert found.error == "Http.SdkClientException"
    assert "a request to api.example.com was stopped" in found.cause
    assert found.exchange.headers["x-key"] == "hidden key"
    assert found.exchange.status is None


@pytest.mark.parametrize("status", [200, 500])
def test_a_trace_has_the_request_as_it_was_sent(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status
    found = _traced("ALL", GIVEN, _connection("API_KEY", SECRETS)).exchange
    (sent,) = endpoint.requests
    assert (found.method, found.url, found.body) == (sent.method, sent.url, sent.body.decode())
    assert dict(found.headers) == dict(sent.headers)
    assert (found.status, found.response_body) == (status, '{"ok":true}')
    assert found.response_headers == {"content-type": "application/json"}
    assert "hidden" in found.url + str(found.headers) + found.body


def test_a_public_trace_has_what_the_definition_says_and_no_secret(endpoint: Endpoint) -> None:
    found = _traced("PUBLIC", GIVEN, _connection("API_KEY", SECRETS)).exchange
    assert found.url == f"{URL}?q=1"
    assert found.body == '{"b":1}'
    assert dict(found.headers) == {
        "shown": "h",
        "user-agent": "Amazon|StepFunctions|HttpInvoke|eu-west-1",
        "range": f"bytes=0-{PAYLOAD_BYTES_MAX}",
        "content-type": "application/json",
    }
    assert "hidden" not in str(found)
    assert "hidden" in str(endpoint.requests[0].headers)


def test_a_body_that_needs_the_connections_content_type_is_left_out_in_public(
    endpoint: Endpoint,
) -> None:
    kind = "application/x-www-form-urlencoded"
    headers = [{"key": "Content-Type", "value": kind}]
    secret = {**SECRETS, "invocation_http_parameters": {"header_parameters": headers}}
    given = {**GIVEN, "Transform": {"RequestBodyEncoding": "URL_ENCODED"}}
    answers = _connection("API_KEY", secret)
    result = _traced("PUBLIC", given, answers)
    assert isinstance(result, TaskSucceeded)
    assert endpoint.requests[0].body == b"b=1"
    assert result.exchange is not None
    assert (result.exchange.body, result.exchange.status) == (None, 200)
    assert _traced("ALL", given, answers).exchange.body == "b=1"


def test_a_call_without_a_trace_has_none(endpoint: Endpoint) -> None:
    assert endpoint.status == 200
    assert _traced(None, {}, {}).exchange is None


def test_a_trace_of_a_call_without_an_answer_has_the_request(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: Any) -> Any:
        raise EndpointConnectionError(endpoint_url=request.url)

    monkeypatch.setattr(endpoint, "send", refuse)
    found = _traced("PUBLIC", {}, {})
    assert found.error == "States.Http.Socket"
    assert (found.exchange.url, found.exchange.status) == (URL, None)


def test_a_trace_shows_no_answer_that_is_not_text(endpoint: Endpoint) -> None:
    endpoint.body = b"\xff\xfe"
    assert _traced("PUBLIC", {}, {}).exchange.response_body == ""


def test_an_oauth_connection_asks_for_a_token_first(endpoint: Endpoint) -> None:
    endpoint.body = b'{"access_token": "t"}'
    where = {"OAuthParameters": {"HttpMethod": "POST", "AuthorizationEndpoint": "https://id/t"}}
    secret = {"client_id": "i", "client_secret": "s"}
    _invoke(
        {"Authentication": {"ConnectionArn": CONNECTION}},
        _connection("OAUTH_CLIENT_CREDENTIALS", secret, where),
    )
    asked, called = endpoint.requests
    assert asked.url == "https://id/t"
    assert asked.body == b"grant_type=client_credentials&client_id=i&client_secret=s"
    assert called.headers["authorization"] == "Bearer t"


# -- API Gateway -----------------------------------------------------------------------------------

API = {"ApiEndpoint": "a1.execute-api.eu-west-1.amazonaws.com", "Method": "POST", "Stage": "live"}


def test_an_api_is_called_with_stage_path_and_query(endpoint: Endpoint) -> None:
    arguments = API | {
        "Path": "/pets/a b",
        "QueryParameters": {"kind": ["dog", "cat"]},
        "Headers": {"X-Trace": ["1", "2"]},
        "RequestBody": {"a": 1},
    }
    result, _ = perform(effect("apigateway:invoke", arguments), {})
    assert result.output["ResponseBody"] == {"ok": True}
    (request,) = endpoint.requests
    assert request.url == f"https://{API['ApiEndpoint']}/live/pets/a%20b?kind=dog&kind=cat"
    assert request.headers["x-trace"] == "1, 2"
    assert request.body == b'{"a":1}'
    assert "authorization" not in request.headers


def test_an_api_behind_iam_gets_a_signed_request(endpoint: Endpoint) -> None:
    perform(effect("apigateway:invoke", API | {"AuthType": "IAM_ROLE"}), {})
    signature = endpoint.requests[0].headers["authorization"]
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=nobody/")
    assert "/eu-west-1/execute-api/" in signature


@pytest.mark.parametrize("name", ["Host", "X-Amz-Date", "Authorization"])
def test_no_header_of_a_signature_is_the_definitions(endpoint: Endpoint, name: str) -> None:
    arguments = API | {"AuthType": "IAM_ROLE", "Headers": {name: ["x"]}}
    result, _ = perform(effect("apigateway:invoke", arguments), {})

    assert result.error == "States.Runtime"
    assert not endpoint.requests


def test_an_apis_status_is_the_errors_name(endpoint: Endpoint) -> None:
    endpoint.status = 503
    result, _ = perform(effect("apigateway:invoke", API), {})
    assert result == TaskFailed("ApiGateway.503", '{"ok":true}')
