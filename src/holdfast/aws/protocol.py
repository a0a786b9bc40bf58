"""AWS's JSON protocol 1.0, with which clients of Step Functions call the API.

A call is a POST with the header `X-Amz-Target: AWSStepFunctions.<Operation>` and the request as its
body. A refusal has the status 400 and `{"__type": <name of the exception>, "message": …}`.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.aws.host import Host
from holdfast.aws.identity import caller_of
from holdfast.core.state import Parent
from holdfast.errors import HoldfastError
from holdfast.limits import BODY_BYTES_MAX, LIMIT_MARGIN_MS
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Clock, Deadline, Effect, RunTask, WriteDeadline
from holdfast.runtime.storage.json_values import parse_json

if TYPE_CHECKING:
    from holdfast.stepfunctions.api import StatesApi
    from holdfast.stepfunctions.catalogue import Service

TARGET_HEADER: Final = "x-amz-target"
TARGET_PREFIX: Final = "AWSStepFunctions"
CONTENT_TYPE: Final = "application/x-amz-json-1.0"
REQUEST_ID_HEADER: Final = "x-amzn-RequestId"
PARTITION: Final = "aws"

HttpAnswer = tuple[int, dict[str, Any]]


def is_states_call(request: Mapping[str, Any]) -> bool:
    """Return True when API Gateway's event is a call of AWS's protocol. An unknown target counts,
    too: it gets AWS's response.

    The path must match as well. Otherwise a caller that may only use `POST /answers` could reach
    state machines with a header.
    """
    method = request.get("requestContext", {}).get("http", {}).get("method")
    is_root = method == "POST" and request.get("rawPath") == "/"
    return is_root and TARGET_HEADER in request.get("headers", {})


def states_handler(
    host: Host, region: str | None = None
) -> Callable[[Mapping[str, Any], Any, str], dict[str, Any]]:
    """Return the handler: it takes request, Lambda context and tenant and returns API Gateway's
    response.

    `region` is the region in ARNs; by default that of the Lambda function.
    """

    def handle(request: Mapping[str, Any], context: Any, tenant: str) -> dict[str, Any]:
        place = (region or os.environ["AWS_REGION"], _account(request))
        try:
            status, answer = _answer(host, request, context, (tenant, *place))
        except HoldfastError as error:
            # AWS's text of a refusal names roles and tables, which callers must not see. So log it
            # and answer with a general text.
            host.log_fault("a request was not served", error)
            status, answer = 500, _problem("InternalFailure", "the request was not served")
        return _response(status, answer)

    return handle


def states_call(
    host: Host, region: str, account: str
) -> Callable[[str, dict[str, Any], RunTask], dict[str, Any]]:
    """Return the API without the HTTP protocol: a function from operation, request and calling task
    to the response.

    That function raises StatesFault. The execution of the task waits for the response, so the call
    must not wait for anything else.
    """

    def call(operation: str, request: dict[str, Any], effect: RunTask) -> dict[str, Any]:
        from holdfast.stepfunctions.api import CHANCE_BYTES  # noqa: PLC0415

        api = _api(host, (effect.tenant, region, account))
        perform = _performer(host, effect.deadline_ms)
        chance = os.urandom(CHANCE_BYTES)
        return dict(run(api.call(operation, request, chance, _parent(effect)), perform))

    return call


def _parent(effect: RunTask) -> Parent | None:
    """Return the task as the parent of the execution that it starts; None if it does not wait for
    its end.
    """
    if effect.kind != "sync":
        return None
    return {
        "run": effect.run,
        "entry": effect.entry,
        "attempt": effect.attempt,
        "as_json": effect.resource.endswith(":2"),
    }


def refusal(status: int, code: str, message: str) -> dict[str, Any]:
    """Return API Gateway's response for an error that was found before the operation was known."""
    return _response(status, _problem(code, message))


def _answer(
    host: Host, request: Mapping[str, Any], context: Any, place: tuple[str, str, str]
) -> HttpAnswer:
    from holdfast.stepfunctions.api import CHANCE_BYTES  # noqa: PLC0415
    from holdfast.stepfunctions.faults import HTTP_STATUS, StatesFault  # noqa: PLC0415

    prefix, _, operation = request["headers"][TARGET_HEADER].partition(".")
    if prefix != TARGET_PREFIX:
        return HTTP_STATUS, {"__type": "UnknownOperationException"}
    try:
        body = _body(request)
    except (ValueError, RecursionError):
        return HTTP_STATUS, {"__type": "SerializationException"}
    try:
        call = _api(host, place, caller_of(request)).call(operation, body, os.urandom(CHANCE_BYTES))
        with host.task_pool() as pool:
            return 200, run(call, _performer(host, _deadline_ms(host, context)), pool)
    except StatesFault as fault:
        return HTTP_STATUS, {**_problem(fault.code, fault.message), **fault.extra}


def _api(host: Host, place: tuple[str, str, str], caller: str | None = None) -> StatesApi:
    from holdfast.stepfunctions.api import StatesApi  # noqa: PLC0415

    return StatesApi(service_of(host, place, caller))


def service_of(host: Host, place: tuple[str, str, str], caller: str | None = None) -> Service:
    """Return the view of one tenant; `place` is the tenant, the region and the account."""
    from holdfast.stepfunctions.arns import ArnRegion  # noqa: PLC0415
    from holdfast.stepfunctions.catalogue import Service  # noqa: PLC0415

    tenant, region, account = place
    where = ArnRegion(region, account, PARTITION)
    front = host.front
    return Service(
        front.programs,
        front.keys,
        tenant,
        where,
        host.payload_bytes_max,
        front.workflows,
        front.types,
        caller,
        front.spread,
        host.has_history_limit,
        host.may_reveal_secrets,
        host.setting.knows,
    )


def _performer(host: Host, deadline_ms: int) -> Callable[[Effect], Any]:
    """Return `perform` for a call, which may wait until shortly before its caller's deadline."""

    def perform(effect: Effect) -> Any:
        match effect:
            case Deadline() | WriteDeadline():
                return deadline_ms - LIMIT_MARGIN_MS
            case _:
                return host.ports.perform(effect)

    return perform


def _deadline_ms(host: Host, context: Any) -> int:
    return int(host.ports.perform(Clock())) + int(context.get_remaining_time_in_millis())


def _account(request: Mapping[str, Any]) -> str:
    return str(request["requestContext"]["accountId"])


def _body(request: Mapping[str, Any]) -> Any:
    """Return the JSON value of the body. Raises ValueError and RecursionError for other text."""
    text = request.get("body") or ""
    raw = base64.b64decode(text) if request.get("isBase64Encoded") else text.encode()
    if len(raw) > BODY_BYTES_MAX:
        raise ValueError
    return parse_json(raw or b"{}")


def _problem(code: str, message: str) -> dict[str, Any]:
    return {"__type": code, "message": message}


def _response(status: int, answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "statusCode": status,
        "headers": {"Content-Type": CONTENT_TYPE, REQUEST_ID_HEADER: str(uuid.uuid4())},
        "body": json.dumps(answer, ensure_ascii=False),
        "isBase64Encoded": False,
    }
