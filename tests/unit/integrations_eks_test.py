"""The Kubernetes API of an EKS cluster, with scripted answers and no network."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.httpsession
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError

from holdfast.integrations import Integrations
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import TaskFailed, TaskPending, TaskResult, TaskSucceeded
from tests.unit.integrations_kit import Clients, effect, perform

ENDPOINT = "https://4444.yl4.eu-west-1.eks.amazonaws.com"
CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
CLUSTER = {
    "ClusterName": "shop",
    "CertificateAuthority": base64.b64encode(CERTIFICATE).decode(),
    "Endpoint": ENDPOINT,
}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pi"}}


class Kubernetes:
    """An API server. `answers` has status and body by the path; a path without one is not found."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.requests: list[Any] = []
        self.authorities: list[bytes] = []

    def send(self, authority: Any, request: Any) -> AWSResponse:
        self.requests.append(request)
        self.authorities.append(Path(authority).read_bytes())
        status, body = self.answers.get(urlsplit(request.url).path, (404, {"kind": "Status"}))
        if status == 0:
            raise EndpointConnectionError(endpoint_url=request.url)
        text = body if isinstance(body, str) else json.dumps(body)
        return AWSResponse(request.url, status, {}, io.BytesIO(text.encode()))


@pytest.fixture
def kubernetes(monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    server = Kubernetes()
    session = botocore.httpsession.URLLib3Session
    monkeypatch.setattr(session, "send", lambda own, request: server.send(own._verify, request))
    return server


def _call(**arguments: Any) -> Any:
    given = {**CLUSTER, "Method": "GET", "Path": "/api/v1/pods", **arguments}
    return perform(effect("eks:call", given), {})[0]


def test_the_answer_is_the_body_with_its_status(kubernetes: Kubernetes) -> None:
    kubernetes.answers["/api/v1/pods"] = 200, {"items": []}
    result = _call(QueryParameters={"labelSelector": ["job-name=pi", "a=b"]})
    assert result == TaskSucceeded(
        {"ResponseBody": {"items": []}, "StatusCode": 200, "StatusText": "OK"}
    )
    (request,) = kubernetes.requests
    assert request.url == f"{ENDPOINT}/api/v1/pods?labelSelector=job-name%3Dpi&labelSelector=a%3Db"
    assert (request.method, request.body) == ("GET", None)
    assert kubernetes.authorities == [CERTIFICATE]


def test_the_token_is_a_signed_request_for_the_identity_of_the_caller(
    kubernetes: Kubernetes,
) -> None:
    _call()
    kind, token = kubernetes.requests[0].headers["authorization"].split()
    assert kind == "Bearer"
    text = token.removeprefix("k8s-aws-v1.")
    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    query = parse_qs(url.query)
    assert url.hostname == "sts.eu-west-1.amazonaws.com"
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Expires"] == ["60"]


def test_a_refusal_is_an_error_with_the_status(kubernetes: Kubernetes) -> None:
    status = {"kind": "Status", "message": "Unauthorized", "code": 401}
    kubernetes.answers["/api/v1/pods"] = 401, status
    cause = {"ResponseBody": status, "StatusCode": 401, "StatusText": "Unauthorized"}
    assert _call() == TaskFailed("EKS.401", json.dumps(cause, separators=(",", ":")))


@pytest.mark.parametrize(("method", "kind"), [("POST", "application/json"), ("PATCH", "strategic")])
def test_a_body_is_json_or_text(kubernetes: Kubernetes, method: str, kind: str) -> None:
    for body in ({"a": 1}, '{"a":1}'):
        _call(Method=method, RequestBody=body)
        assert kubernetes.requests[-1].body == b'{"a":1}'
        assert kind in kubernetes.requests[-1].headers["content-type"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"Path": 3}, "The value for the field 'Path' must be a STRING"),
        ({"Job": {}}, 'The field "Job" is not supported by Step Functions'),
        ({"Method": "TRACE"}, "The value for the field 'Method' must be one of"),
        ({"Endpoint": "http://x"}, "The value for the field 'Endpoint' must be an HTTPS URL"),
        ({"CertificateAuthority": "é"}, "'CertificateAuthority' must be a valid base 64 text"),
    ],
)
def test_arguments_that_will_not_do_are_refused_before_a_call(
    kubernetes: Kubernetes, arguments: dict[str, Any], problem: str
) -> None:
    result = _call(**arguments)
    assert result.error == "States.Runtime"
    assert problem in result.cause
    assert kubernetes.requests == []


def test_a_field_that_is_missing_is_named(kubernetes: Kubernetes) -> None:
    result, _ = perform(effect("eks:call", {"ClusterName": "c"}), {})
    assert "The field 'CertificateAuthority' is required but was missing" in str(result.cause)
    assert kubernetes.requests == []


def test_an_answer_that_is_too_large_fails_the_task(kubernetes: Kubernetes) -> None:
    kubernetes.answers["/api/v1/pods"] = 200, "x" * (PAYLOAD_BYTES_MAX + 1)
    assert _call().error == "States.DataLimitExceeded"


def test_a_cluster_that_does_not_answer_fails_the_task(kubernetes: Kubernetes) -> None:
    kubernetes.answers["/api/v1/pods"] = 0, None
    assert _call().error == "EKS.SdkClientException"


# -- jobs ------------------------------------------------------------------------------------------

JOBS_PATH = "/apis/batch/v1/namespaces/night/jobs"
PODS = "/api/v1/namespaces/night/pods"


def _run_job(kind: Any = "service", **arguments: Any) -> Any:
    given = {**CLUSTER, "Namespace": "night", "Job": JOB, **arguments}
    return effect("eks:runJob", given, kind)


def _poll(**arguments: Any) -> TaskResult:
    submitted = {"ResponseBody": JOB, "StatusCode": 201, "StatusText": "Created"}
    asked = replace(_run_job("sync", **arguments), is_poll=True, submitted=submitted)
    return Integrations(Clients({}), _nobody).perform(asked)  # type: ignore[arg-type]


def _nobody(*_: Any) -> Any:
    raise AssertionError("Step Functions was asked")


def _ended(how: str) -> dict[str, Any]:
    return {**JOB, "status": {"conditions": [{"type": how, "status": "True"}]}}


@pytest.mark.parametrize("kind", ["service", "sync"])
def test_a_job_is_created_in_its_namespace(kubernetes: Kubernetes, kind: str) -> None:
    kubernetes.answers[JOBS_PATH] = 201, JOB
    result, _ = perform(_run_job(kind), {})
    assert isinstance(result, TaskSucceeded)
    assert result.output["ResponseBody"] == JOB
    (request,) = kubernetes.requests
    assert (request.method, json.loads(request.body)) == ("POST", JOB)


@pytest.mark.parametrize(
    "answer",
    [
        (200, {**JOB, "status": {"active": 1}}),
        (200, {**JOB, "status": {"conditions": [{"type": "Complete", "status": "False"}]}}),
        (503, {"kind": "Status"}),
        (0, None),
    ],
)
def test_a_job_without_an_end_is_pending(kubernetes: Kubernetes, answer: tuple[int, Any]) -> None:
    kubernetes.answers[f"{JOBS_PATH}/pi"] = answer
    assert _poll() == TaskPending()


def test_the_end_of_a_job_is_its_result_or_its_failure(kubernetes: Kubernetes) -> None:
    kubernetes.answers[f"{JOBS_PATH}/pi"] = 200, _ended("Complete")
    assert _poll() == TaskSucceeded(_ended("Complete"))
    kubernetes.answers[f"{JOBS_PATH}/pi"] = 200, _ended("Failed")
    failed = _poll()
    assert isinstance(failed, TaskFailed)
    assert (failed.error, json.loads(str(failed.cause))) == ("States.TaskFailed", _ended("Failed"))


@pytest.mark.parametrize(("raw", "read"), [(False, json.loads), (True, lambda text: text)])
def test_the_logs_of_a_job_are_those_of_its_containers(
    kubernetes: Kubernetes, raw: bool, read: Callable[[str], Any]
) -> None:
    pod = {"metadata": {"name": "pi-1"}, "spec": {"containers": [{"name": "a"}]}}
    kubernetes.answers[f"{JOBS_PATH}/pi"] = 200, _ended("Complete")
    kubernetes.answers[PODS] = 200, {"items": [pod, {**pod, "metadata": {"name": "pi-2"}}]}
    kubernetes.answers[f"{PODS}/pi-1/log"] = 200, '{"n": 3.14}'
    options = {"RetrieveLogs": True, "RawLogs": raw, "LogParameters": {"tailLines": ["6"]}}
    result = _poll(LogOptions=options)

    assert isinstance(result, TaskSucceeded)
    pods = result.output["logs"]["pods"]
    assert pods["pi-1"] == {"containers": {"a": {"log": read('{"n": 3.14}')}}}
    assert pods["pi-2"]["containers"]["a"]["error"] == "EKS.404"
    assert kubernetes.requests[-1].url.endswith("/log?container=a&tailLines=6")
