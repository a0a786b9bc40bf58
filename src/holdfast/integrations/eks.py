"""The Kubernetes API of an EKS cluster: `eks:call`, `eks:runJob` and `eks:runJob.sync`.

A request goes to the cluster's endpoint, which must have the certificate authority that the task
names. Its bearer token is a signed request that asks STS for the caller's identity: the cluster
sends that request to STS and so learns which role calls.

    k8s-aws-v1. + base64url("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&…")

A response of 400 and above is the error `EKS.<status>`. Source: AWS docs, "Create and manage Amazon
EKS clusters with Step Functions".
"""

from __future__ import annotations

import base64
import http
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from holdfast.asl import error_names
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.exchange import Request, Response, exchange
from holdfast.integrations.problems import Unusable
from holdfast.integrations.shaping import to_text
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskPending, TaskSucceeded
from holdfast.service_names import unsupported_field

CALL: Final = "eks:call"
RUN_JOB: Final = "eks:runJob"

_TIMEOUT_SECONDS: Final = 60
_TOKEN_SECONDS: Final = 60
_ERROR_STATUS_MIN: Final = 400
_METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"})
_CLUSTER_FIELDS: Final = ("ClusterName", "CertificateAuthority", "Endpoint")
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    CALL: (*_CLUSTER_FIELDS, "Method", "Path"),
    RUN_JOB: (*_CLUSTER_FIELDS, "Job"),
}
_OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    CALL: ("QueryParameters", "RequestBody"),
    RUN_JOB: ("Namespace", "LogOptions"),
}


def call(effect: RunTask, clients: ServiceClients) -> TaskSucceeded | TaskFailed:
    """Call the Kubernetes API, or create the job. Raises Unusable, and botocore's errors when the
    cluster does not answer.
    """
    arguments = _checked(effect)
    cluster = _Cluster(effect, clients)
    if effect.name == RUN_JOB:
        return _result_of(cluster.send("POST", _jobs_path(arguments), body=arguments["Job"]))
    if arguments["Method"] not in _METHODS:
        raise Unusable(f"The value for the field 'Method' must be one of {sorted(_METHODS)}")
    query, body = arguments.get("QueryParameters") or {}, arguments.get("RequestBody")
    return _result_of(cluster.send(arguments["Method"], arguments["Path"], query, body))


def poll(effect: RunTask, clients: ServiceClients) -> TaskSucceeded | TaskFailed | TaskPending:
    """Return the end of the job that `call` has created. Its output is the job, and with
    LogOptions the logs of its containers.
    """
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    arguments, cluster = effect.arguments, _Cluster(effect, clients)
    name = effect.submitted["ResponseBody"]["metadata"]["name"]
    try:
        response = cluster.send("GET", f"{_jobs_path(arguments)}/{quote(name)}")
    except BotoCoreError:
        return TaskPending()
    job = _parsed(response.body)
    if response.status >= _ERROR_STATUS_MIN or not isinstance(job, dict):
        return TaskPending()
    ends = {
        condition.get("type")
        for condition in job.get("status", {}).get("conditions") or ()
        if condition.get("status") == "True"
    }
    if not ends & {"Complete", "Failed"}:
        return TaskPending()
    options = arguments.get("LogOptions") or {}
    if options.get("RetrieveLogs"):
        job["logs"] = {"pods": _logs(cluster, arguments, name, options)}
    if "Failed" in ends:
        return TaskFailed(error_names.TASK_FAILED, to_text(job))
    return TaskSucceeded(job)


def _checked(effect: RunTask) -> Mapping[str, Any]:
    arguments = effect.arguments or {}
    required = _REQUIRED[effect.name]
    for field in arguments:
        if field not in (*required, *_OPTIONAL[effect.name]):
            raise Unusable(unsupported_field(field))
    for field in required:
        if field not in arguments:
            raise Unusable(f"The field '{field}' is required but was missing")
        if field != "Job" and not isinstance(arguments[field], str):
            raise Unusable(f"The value for the field '{field}' must be a STRING")
    if urlsplit(arguments["Endpoint"]).scheme != "https":
        raise Unusable("The value for the field 'Endpoint' must be an HTTPS URL")
    return arguments


def _namespace(arguments: Mapping[str, Any]) -> str:
    return quote(str(arguments.get("Namespace") or "default"))


def _jobs_path(arguments: Mapping[str, Any]) -> str:
    return f"/apis/batch/v1/namespaces/{_namespace(arguments)}/jobs"


class _Cluster:
    """The Kubernetes API server of a task's cluster."""

    def __init__(self, effect: RunTask, clients: ServiceClients) -> None:
        self._effect = effect
        self._clients = clients
        self._arguments = effect.arguments

    def send(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> Response:
        """Raises BotoCoreError when the cluster does not answer."""
        url = self._arguments["Endpoint"].rstrip("/") + "/" + path.lstrip("/")
        if query:
            url += "?" + urlencode(dict(query), doseq=True)
        headers = {"authorization": f"Bearer {self._token()}", "accept": "application/json"}
        if body is not None:
            is_patch = method == "PATCH"
            kind = "application/strategic-merge-patch+json" if is_patch else "application/json"
            headers["content-type"] = kind
        content = None if body is None else to_text(body).encode()
        with tempfile.TemporaryDirectory() as folder:
            authority = Path(folder) / "authority.pem"
            authority.write_bytes(_decoded(self._arguments["CertificateAuthority"]))
            request = Request(method, url, headers, content)
            return exchange(request, _TIMEOUT_SECONDS, PAYLOAD_BYTES_MAX + 1, str(authority))

    def _token(self) -> str:
        from botocore.auth import SigV4QueryAuth  # noqa: PLC0415
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        region = self._clients.region
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        asked = AWSRequest(
            method="GET",
            url=f"https://sts.{region}.{domain}/?Action=GetCallerIdentity&Version=2011-06-15",
            headers={"x-k8s-aws-id": self._arguments["ClusterName"]},
        )
        credentials = self._clients.credentials(self._effect.credentials)
        SigV4QueryAuth(credentials, "sts", region, expires=_TOKEN_SECONDS).add_auth(asked)
        text = base64.urlsafe_b64encode(asked.url.encode()).decode().rstrip("=")
        return f"k8s-aws-v1.{text}"


def _decoded(authority: str) -> bytes:
    try:
        return base64.b64decode(authority, validate=True)
    except ValueError:
        problem = "The value for the field 'CertificateAuthority' must be a valid base 64 text"
        raise Unusable(problem) from None


def _result_of(response: Response) -> TaskSucceeded | TaskFailed:
    if len(response.body) > PAYLOAD_BYTES_MAX:
        return TaskFailed(
            error_names.DATA_LIMIT_EXCEEDED,
            "The state/task 'eks' returned a result with a size exceeding the maximum number of "
            "bytes service limit.",
        )
    result = {
        "ResponseBody": _parsed(response.body),
        "StatusCode": response.status,
        "StatusText": _phrase(response.status),
    }
    if response.status >= _ERROR_STATUS_MIN:
        return TaskFailed(f"EKS.{response.status}", to_text(result))
    return TaskSucceeded(result)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def _parsed(body: bytes) -> Any:
    text = body.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _logs(
    cluster: _Cluster, arguments: Mapping[str, Any], job: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the logs by pod and container. A log that cannot be read has an error in its place."""
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    pods = f"/api/v1/namespaces/{_namespace(arguments)}/pods"
    try:
        found = _parsed(cluster.send("GET", pods, {"labelSelector": f"job-name={job}"}).body)
    except BotoCoreError:
        return {}
    logs: dict[str, Any] = {}
    for pod in found.get("items") or () if isinstance(found, dict) else ():
        name = pod["metadata"]["name"]
        containers = [one["name"] for one in pod.get("spec", {}).get("containers") or ()]
        logs[name] = {
            "containers": {
                one: _log(cluster, f"{pods}/{quote(name)}/log", one, options) for one in containers
            }
        }
    return logs


def _log(
    cluster: _Cluster, path: str, container: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    query = {"container": container, **(options.get("LogParameters") or {})}
    try:
        response = cluster.send("GET", path, query)
    except BotoCoreError as error:
        return {"error": "EKS.SdkClientException", "cause": f"{type(error).__name__}"}
    if response.status >= _ERROR_STATUS_MIN:
        failed = _result_of(response)
        assert isinstance(failed, TaskFailed)
        return {"error": failed.error, "cause": failed.cause}
    is_raw = options.get("RawLogs")
    return {"log": response.body.decode(errors="replace") if is_raw else _parsed(response.body)}
