"""Calls of AWS's services and of HTTP endpoints, as steps of a workflow.

    stored = aws.s3.put_object(Bucket="invoices", Key=order.id, Body=invoice)
    answer = http.post("https://api.example.com/charges", json=order, connection=CONNECTION)

Each is a task without a function of the author: the engine makes the call, records its result and
retries it. The compiler checks its parameters against botocore's model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from holdfast.api.boundary import Boundary, JsonValue
from holdfast.api.harness import harness
from holdfast.api.sealing import NO_SEALS, Seals
from holdfast.api.task_errors import TaskError
from holdfast.api.tasks import Task
from holdfast.errors import WorkflowError

HTTP_TARGET: Final = "http:invoke"


class _AnyArguments(Boundary):
    """Accepts any arguments by name, because the compiler has checked them, and returns a JSON
    object.
    """

    def parse_arguments(
        self,
        arguments: Mapping[str, JsonValue],
        seals: Seals = NO_SEALS,  # noqa: ARG002 - there are no secrets
    ) -> dict[str, Any]:
        return dict(arguments)

    def default_arguments(self, seals: Seals = NO_SEALS) -> dict[str, JsonValue]:  # noqa: ARG002
        return {}


def _call(**arguments: Any) -> dict[str, Any]:
    raise WorkflowError(
        "HF186",
        f"a service was called outside an engine, with {', '.join(arguments) or 'nothing'}",
        help="holdfast.testing: World({aws.s3.put_object: {}}).run(workflow, …); or start it on an "
        "engine. `real` has no function to call here",
    )


class ServiceCall(Task[..., dict[str, Any]]):
    """An action of a service. Its arguments and its result have the names that Step Functions
    uses.
    """

    is_service = True

    def __init__(self, name: str) -> None:
        super().__init__(_call, name=name)
        self.boundary = _AnyArguments(_call)

    def perform(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call the service in a test. In the engine the action is a state of its own."""
        stand_in = harness.get()
        if stand_in is None:
            return _call(**arguments)
        result: dict[str, Any] = stand_in.run_task(self, arguments)
        return result


class AwsCall(ServiceCall):
    """An action of an AWS service, such as `aws.s3.put_object`, with parameters by name as in
    boto3.
    """

    def __init__(self, service: str, action: str) -> None:
        super().__init__(f"aws.{service}.{action}")
        self.service = service
        self.action = action

    def __call__(self, **arguments: Any) -> dict[str, Any]:
        return self.perform(arguments)


class AwsService:
    """One service. Its attributes are its actions, with the names of the methods of boto3's
    client.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, action: str) -> AwsCall:
        if action.startswith("_"):
            raise AttributeError(action)
        made = AwsCall(self._name, action)
        # Store the object, so that the next access returns the same one. The compiler compares
        # tasks by identity.
        setattr(self, action, made)
        return made


@cache
def service_of(name: str) -> AwsService:
    return AwsService(name)


class HttpCall(ServiceCall):
    """An action of `http`, such as `http.post`: a request to an HTTPS endpoint."""

    def __init__(self, method: str) -> None:
        super().__init__(f"http.{method.lower()}")
        self.method = method

    def __call__(
        self,
        url: str,
        *,
        json: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, object] | None = None,
        connection: str | None = None,
    ) -> dict[str, Any]:
        """Call `url`. `connection`: the ARN of the EventBridge connection that authorises it.

        The result has StatusCode, StatusText, Headers and ResponseBody. A status of 400 and above
        is an error, `http.status_error(404)`.
        """
        given = {"url": url, "json": json, "query": query, "headers": headers}
        parts = {name: value for name, value in given.items() if value is not None}
        return self.perform(self.request(parts, connection))

    def request(self, parts: Mapping[str, Any], connection: Any) -> dict[str, Any]:
        """Return the arguments of the state from those of the call. `connection` may be None."""
        found = {HTTP_FIELDS[name]: value for name, value in parts.items()}
        authentication = {} if connection is None else {"ConnectionArn": connection}
        extra = {"Authentication": authentication} if authentication else {}
        return {"Method": self.method, **found, **extra}


#: For each parameter of a call, the name of the field that it becomes in the state.
HTTP_FIELDS: Final[Mapping[str, str]] = {
    "url": "ApiEndpoint",
    "json": "RequestBody",
    "query": "QueryParameters",
    "headers": "Headers",
}


@cache
def error_class(name: str) -> type[TaskError]:
    """Return the class of a service's error, such as `S3.NoSuchKeyException`, for use in
    `except`.
    """
    return type(name, (TaskError,), {"__doc__": f"The error {name} of a service."})
