"""The entry point for the calls that the tasks of state machines request.

A call is made once; the definition says what to retry. Every failure is returned as a value, with
AWS's error name and AWS's text.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.asl import error_names
from holdfast.asl.resources import CONTAINER
from holdfast.core.run_ids import TOO_DEEP
from holdfast.integrations import faults, item_reader, item_writer, lambdas, optimised
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.constraints import find_refusal, find_unsent
from holdfast.integrations.metadata import own_metadata, sdk_metadata
from holdfast.integrations.problems import Refusal, Unusable, unusable
from holdfast.integrations.shaping import Style, iso, request_of, result_of, with_content_type
from holdfast.runtime.effects import RunTask, TaskFailed, TaskPending, TaskResult, TaskSucceeded
from holdfast.service_names import (
    botocore_name,
    class_name,
    operation_name,
    optimised_operation,
    optimised_service,
    sdk_field,
)

CallResult: TypeAlias = TaskSucceeded | TaskFailed
#: A function that performs an operation of Step Functions. It gets the operation, the request and
#: the task that calls it, and returns the response. Request and response are as they are sent, with
#: times in seconds. It raises `stepfunctions.faults.StatesFault`.
StatesCall: TypeAlias = Callable[[str, dict[str, Any], RunTask], dict[str, Any]]

SDK_PREFIX: Final = "aws-sdk:"
STATES: Final = "stepfunctions"
#: The actions that start an execution. A notice reports the end of the execution, so it is not
#: polled.
NESTED: Final = frozenset({"states:startExecution"})

_INVOKE: Final = "lambda:invoke"
_HTTP: Final = "http:invoke"
_GATEWAY: Final = "apigateway:invoke"
_KUBERNETES_JOB: Final = "eks:runJob"
_KUBERNETES: Final = frozenset({"eks:call", _KUBERNETES_JOB})
_BY_NAME: Final = "ByName"

SDK_STYLE: Final = Style(field=sdk_field, date=iso)


@dataclass(frozen=True, slots=True)
class _Call:
    """One action of one service. `service` is botocore's name, `family` the name in the
    Resource.
    """

    effect: RunTask
    family: str
    service: str
    operation: str
    is_sdk: bool

    @property
    def style(self) -> Style:
        return SDK_STYLE if self.is_sdk else optimised.STYLE


class Integrations:
    """Calls services for tasks of the kinds lambda, service, callback and sync.

    `states_api` answers the actions of Step Functions itself in this process.
    """

    def __init__(self, clients: ServiceClients, states_api: StatesCall) -> None:
        self._clients = clients
        self._states_api = states_api

    def perform(self, effect: RunTask) -> TaskResult:
        """Call the service. Never raises."""
        try:
            return self._poll(effect) if effect.is_poll else self._perform(effect)
        except Unusable as problem:
            return unusable(effect.arguments, problem)
        except Exception as error:  # noqa: BLE001 - a task fails, its worker does not
            is_sdk = effect.name.startswith(SDK_PREFIX)
            return faults.unreachable(_prefix(effect), error, is_sdk=is_sdk)

    def find_misuse(self, target: str, arguments: Any) -> str | None:
        """Return AWS's sentence about arguments that are no request of the action. None: they are,
        or only the call itself can tell. Calls nothing, and never raises.
        """
        asked = RunTask(target, "service", arguments, "", "", None, "", 0, 1, deadline_ms=0)
        try:
            self._require_usable(asked)
        except Unusable as problem:
            return unusable(arguments, problem).cause
        except Exception:  # noqa: BLE001 - the call meets the same fault, and its task fails
            return None
        return None

    def _require_usable(self, effect: RunTask) -> None:
        """Raise Unusable when the arguments are no request of the action."""
        _require_fields(effect)
        if effect.name == _INVOKE:
            lambdas.invoke_request(effect.arguments or {})
        elif effect.name == _HTTP:
            from holdfast.integrations import http_task  # noqa: PLC0415 - few tasks are such

            http_task.require_fields(effect.arguments or {})
        elif effect.name == _GATEWAY:
            from holdfast.integrations import apigateway  # noqa: PLC0415 - few tasks are such

            apigateway.request_of(effect.arguments or {})
        elif effect.name not in _KUBERNETES and not effect.name.endswith(_BY_NAME):
            call = self._call_of(effect)
            if call is None:
                return
            model = self._clients.model(call.service)
            if call.operation in model.operation_names:
                _request(call, model.operation_model(call.operation))

    def _poll(self, effect: RunTask) -> TaskResult:
        from holdfast.integrations import jobs  # noqa: PLC0415 - few tasks are such

        if effect.name == _KUBERNETES_JOB:
            from holdfast.integrations import eks  # noqa: PLC0415 - few tasks are such

            return eks.poll(effect, self._clients)
        if effect.name not in jobs.JOBS:
            return _unsupported(effect)
        return jobs.poll(effect, effect.submitted, self._clients) or TaskPending()

    def _perform(self, effect: RunTask) -> CallResult:
        if effect.kind == "read":
            return item_reader.read(effect, self._clients)
        if effect.kind == "write":
            return item_writer.write(effect, self._clients)
        if effect.name.startswith(CONTAINER):
            from holdfast.integrations import containers  # noqa: PLC0415 - few tasks are such

            return containers.start(effect, self._perform)
        if effect.kind == "lambda":
            return self._function(effect, lambda client: _called(client, effect))
        _require_fields(effect)
        if effect.name == _INVOKE:
            return self._function(effect, lambda client: _invoked(client, effect))
        if effect.name == _HTTP:
            from holdfast.integrations import http_task  # noqa: PLC0415 - few tasks are such

            return http_task.invoke(effect, self._clients)
        if effect.name == _GATEWAY:
            from holdfast.integrations import apigateway  # noqa: PLC0415 - few tasks are such

            return apigateway.invoke(effect, self._clients)
        if effect.name in _KUBERNETES:
            from holdfast.integrations import eks  # noqa: PLC0415 - few tasks are such

            return eks.call(effect, self._clients)
        if effect.name.endswith(_BY_NAME):
            return self._named_part(effect)
        return self._action(effect)

    def _named_part(self, effect: RunTask) -> CallResult:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        from holdfast.integrations import emr  # noqa: PLC0415 - few tasks are such

        if effect.name not in emr.BY_NAME:
            return _unsupported(effect)
        try:
            return self._action(emr.with_id(effect, self._clients))
        except ClientError as error:
            family, model = effect.name.partition(":")[0], self._clients.model("emr")
            return faults.optimised_failure(family, faults.refusal_of(error), model)

    def _action(self, effect: RunTask) -> CallResult:
        call = self._call_of(effect)
        if call is None or not _can_wait(effect):
            return _unsupported(effect)
        return self._own(call) if call.service == STATES else self._service(call)

    def _call_of(self, effect: RunTask) -> _Call | None:
        is_sdk = effect.name.startswith(SDK_PREFIX)
        family, _, action = effect.name.removeprefix(SDK_PREFIX).rpartition(":")
        named = family if is_sdk else optimised_service(effect.name)
        service = botocore_name(named, self._clients.available())
        if service is None:
            return None
        operation = operation_name(action)
        if not is_sdk:
            operation = optimised_operation(effect.name, operation)
        return _Call(effect, family, service, operation, is_sdk)

    def _function(self, effect: RunTask, do: Callable[[Any], CallResult]) -> CallResult:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        client = self._clients.get("lambda", effect.credentials)
        try:
            return do(client)
        except ClientError as error:
            refusal = faults.refusal_of(error)
            return faults.optimised_failure("lambda", refusal, client.meta.service_model)

    def _service(self, call: _Call) -> CallResult:
        from botocore import xform_name  # noqa: PLC0415
        from botocore.exceptions import ClientError  # noqa: PLC0415

        client = self._clients.get(call.service, call.effect.credentials)
        model = client.meta.service_model
        if call.operation not in model.operation_names:
            return _unsupported(call.effect)
        operation = model.operation_model(call.operation)
        if operation.has_event_stream_input or operation.has_event_stream_output:
            return _unsupported(call.effect)
        request = _request(call, operation)
        if not call.is_sdk:
            request = optimised.adjusted(call.effect, request)
        unsent = find_unsent(operation, request) if call.is_sdk else None
        if unsent is not None:
            return faults.unsent(model, unsent)
        request = with_content_type(operation, request)
        refusal = find_refusal(call.service, operation, request)
        if refusal is not None:
            return _refused(call, refusal, model)
        try:
            response = getattr(client, xform_name(call.operation))(**request)
        except ClientError as error:
            return _refused(call, faults.refusal_of(error), model)
        except Exception as error:  # noqa: BLE001 - a response that botocore cannot read, too
            prefix = class_name(model.service_id) if call.is_sdk else _prefix(call.effect)
            return faults.unreachable(prefix, error, is_sdk=call.is_sdk)
        return _shown(call, operation, response, sdk_metadata(response))

    def _own(self, call: _Call) -> CallResult:
        from holdfast.stepfunctions.faults import HTTP_STATUS, StatesFault  # noqa: PLC0415

        model = self._clients.model(STATES)
        if call.operation not in model.operation_names:
            return _unsupported(call.effect)
        operation = model.operation_model(call.operation)
        request = _request(call, operation)
        request_id = str(uuid.uuid4())
        try:
            response = self._states_api(call.operation, request, call.effect)
        except StatesFault as fault:
            if fault.code == TOO_DEEP:
                return TaskFailed(fault.code, fault.message)
            return _refused(
                call, Refusal(fault.code, fault.message, HTTP_STATUS, request_id), model
            )
        length = len(json.dumps(response, default=str))
        return _shown(call, operation, response, own_metadata(request_id, length))


def _require_fields(effect: RunTask) -> None:
    """Raise Unusable for arguments that are no object. Only a function that is named by its ARN
    takes other JSON.
    """
    if not isinstance(effect.arguments, Mapping | None):
        raise Unusable("The value for the field 'Parameters' must be an OBJECT")


def _request(call: _Call, operation: Any) -> dict[str, Any]:
    """Return botocore's request. Raises Unusable."""
    given = call.effect.arguments if call.is_sdk else optimised.arguments_of(call.effect)
    return request_of(operation.input_shape, given, call.style)


def _can_wait(effect: RunTask) -> bool:
    """Refuse a job before it begins when its end could not be found out."""
    from holdfast.integrations import jobs  # noqa: PLC0415 - few tasks are such

    return effect.kind != "sync" or effect.name in jobs.JOBS or effect.name in NESTED


def _called(client: Any, effect: RunTask) -> CallResult:
    return lambdas.call_function(client, effect.name, effect.arguments)


def _invoked(client: Any, effect: RunTask) -> CallResult:
    return lambdas.invoke(client, effect.arguments or {})


def _refused(call: _Call, refusal: Refusal, model: Any) -> TaskFailed:
    if call.is_sdk:
        return faults.sdk_failure(refusal, model)
    return faults.optimised_failure(call.family, refusal, model)


def _shown(
    call: _Call, operation: Any, response: Mapping[str, Any], metadata: dict[str, Any]
) -> CallResult:
    result = result_of(operation.output_shape, response, call.style)
    if call.is_sdk:
        return TaskSucceeded(result)
    result = optimised.result_fields(call.effect.name, result)
    return optimised.judged(call.effect.name, dict(sorted({**result, **metadata}.items())))


def _unsupported(effect: RunTask) -> TaskFailed:
    return TaskFailed(
        error_names.RUNTIME, f"The resource 'arn:aws:states:::{effect.name}' is not supported"
    )


def _prefix(effect: RunTask) -> str:
    """Return the prefix of errors of the task's service, for a service without a model."""
    if effect.kind == "lambda":
        return "Lambda"
    family = effect.name.removeprefix(SDK_PREFIX).partition(":")[0]
    if family == "apigateway":
        return "ApiGateway"
    if not effect.name.startswith(SDK_PREFIX) and family in faults.DIALECTS:
        return faults.DIALECTS[family].prefix
    return operation_name(family)
