"""One Holdfast stack on a local machine: the handlers of a deployed stack, with the local cloud.

The host, the worker, the sweeper and the API's handler are the same as in Lambda. Only their
surroundings differ: an SQLite file or moto replaces AWS's services, the pump invokes the handlers,
and faults are written to the log.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from holdfast import resources
from holdfast.api.sealing import LocalVault
from holdfast.api.surface import Workflow
from holdfast.asl.program import Json
from holdfast.aws import protocol
from holdfast.aws.bus import Bus
from holdfast.aws.function_tasks import elsewhere_of
from holdfast.aws.host import Host
from holdfast.aws.http import api_handler
from holdfast.aws.ports import AwsPorts, Ports
from holdfast.aws.tasks import TaskRunner
from holdfast.aws.telemetry import Metrics
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.steps.callables import for_this_machine
from holdfast.deployment import Deployment
from holdfast.integrations import Integrations
from holdfast.limits import LOCAL_TIMEOUT_SECONDS_MAX, PAYLOAD_BYTES_MAX
from holdfast.local import endpoint, gateway, wall
from holdfast.local.announcing import announced
from holdfast.local.build import import_module, require_schedules
from holdfast.local.clock import VirtualClock
from holdfast.local.gateway import REGION
from holdfast.local.group_calls import own_tasks
from holdfast.local.pump import Cloud, Handlers, LambdaContext, Pump
from holdfast.local.sqlite.cloud import SqliteCloud
from holdfast.local.sqlite.ports import SqlitePorts
from holdfast.local.task_services import TaskServices
from holdfast.local.wall import AwsRequest, AwsResponse
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import Effect, Measure
from holdfast.runtime.status_events import AWS_SOURCE
from holdfast.runtime.storage.warm_logs import WarmLogs

if TYPE_CHECKING:
    from holdfast.local.cloud import LocalCloud

# A call of the API may wait: GetActivityTask for a minute, StartSyncExecution for five minutes. So
# give the API more time than on AWS.
_PATIENT_API: Final = replace(resources.API, timeout_seconds=330)

#: The time of one invocation of a worker. This machine ends no invocation, so it may last as long
#: as the longest attempt, and a minute more for the write of the result.
_WORKER_SECONDS: Final = LOCAL_TIMEOUT_SECONDS_MAX + 60

_logger: Final = logging.getLogger(__name__)


def deployment_of(modules: Sequence[str]) -> Deployment:
    """Compile the present source. A local stack does not need compiled files."""
    for name in modules:
        import_module(name)
    deployment = Deployment.from_modules(modules, _compile, LocalVault())
    require_schedules(deployment.registry)
    return deployment


def _compile(workflow: Workflow[..., Any]) -> tuple[Json, dict[str, Any]]:
    with for_this_machine():
        compiled = compile_workflow(workflow)
    return compiled.asl, json.loads(compiled.map_text)


AnyCloud = TypeVar("AnyCloud", bound=Cloud)


@dataclass(frozen=True, slots=True)
class LocalStack(Generic[AnyCloud]):
    cloud: AnyCloud
    host: Host
    pump: Pump
    api: Callable[[Mapping[str, Any], Any], dict[str, Any]]

    def request(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> gateway.HttpAnswer:
        """Return the response of the API's handler to the request."""
        event = gateway.event_of(method, target, headers or {}, body, self.cloud.clock())
        return gateway.answer_of(self._handle(event, resources.API))

    def aws_request(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], here: str
    ) -> AwsResponse:
        """Return AWS's response: Holdfast's own API answers for Step Functions, moto for all other
        services.

        Names of `headers` are in lower case; `here` is the URL to which the request was sent.
        """
        if endpoint.is_for_states(headers):
            return self._states(body, headers)
        return endpoint.answer(method, target, headers, body, here)

    def states_door(self, call: AwsRequest) -> AwsResponse | None:
        """Answer requests to Step Functions from clients in this process, which are those of
        functions and tasks.
        """
        if not endpoint.is_states_host(call.url):
            return None
        return self._states(call.body, {name.lower(): text for name, text in call.headers.items()})

    def _states(self, body: bytes, headers: Mapping[str, str]) -> AwsResponse:
        event = gateway.event_of("POST", "/", headers, body, self.cloud.clock())
        response = self._handle(event, _PATIENT_API)
        answer = gateway.answer_of(response)
        return AwsResponse(answer.status, answer.headers, answer.body)

    def _handle(self, event: dict[str, Any], function: resources.LambdaFunction) -> dict[str, Any]:
        meter, clock = self.cloud.meter, self.cloud.clock
        meter.usage.api_requests += 1
        meter.invoked(resources.API.name)
        context = LambdaContext(function, event["requestContext"]["requestId"], clock)
        return self.api(event, context)


@contextmanager
def local_stack(
    deployment: Deployment,
    clock: Callable[[], int],
    *,
    measured: Callable[[Measure], None] = lambda _: None,
    payload_bytes_max: int | None = PAYLOAD_BYTES_MAX,
) -> Iterator[LocalStack[LocalCloud]]:
    """Run a stack in memory inside the context. `measured` receives the measurements of the
    handlers.

    With a virtual clock everything runs in one thread, so the same orders always give the same run.
    """
    from holdfast.local.cloud import LocalCloud  # noqa: PLC0415  # it loads moto

    with LocalCloud(clock) as cloud:

        def perform(effect: Effect) -> Any:
            return ports.perform(effect)

        deployment = replace(deployment, perform=perform)
        tasks = _Tasks(deployment)
        ports = AwsPorts(
            cloud.clients,
            cloud.names,
            tasks=tasks.perform,
            clock=clock,
            metrics=measured,
            publish=announced(Bus(cloud.clients).publish),
        )
        # The cloud loses its data when its process ends, so its signing keys need not be stored
        # either.
        keys = SigningKeys("local", {"local": os.urandom(32)})
        host = _host(deployment, ports, tasks, keys, payload_bytes_max)
        if isinstance(clock, VirtualClock):
            host.has_threads = False
        yield _stack(cloud, host)


@contextmanager
def stored_stack(
    deployment: Deployment,
    path: Path,
    clock: Callable[[], int],
    *,
    payload_bytes_max: int | None,
    archive: Path | None,
) -> Iterator[LocalStack[SqliteCloud]]:
    """Run a stack in an SQLite file, which continues with the content of the file. `archive` is the
    folder in which it stores executions that have ended.

    The AWS services that tasks call are emulated in memory, from the first call on.
    """
    archives = archive is not None
    with SqliteCloud(path, clock, archives=archives) as cloud, _wall_of(cloud) as services:

        def perform(effect: Effect) -> Any:
            return ports.perform(effect)

        deployment = replace(deployment, perform=perform)
        tasks = _Tasks(deployment)
        ports = SqlitePorts(
            cloud.database,
            cloud.queues,
            tasks=tasks.perform,
            clock=cloud.clock,
            publish=announced(services.publish),
            archive=archive,
        )
        host = _host(deployment, ports, tasks, cloud.signing_keys(), payload_bytes_max)
        host.setting = replace(host.setting, archives=archives)
        yield _stack(cloud, host)


@contextmanager
def _wall_of(cloud: SqliteCloud) -> Iterator[TaskServices]:
    services = TaskServices(cloud.clock, cloud.queues.send_event)
    wall.begin(cloud.clock, services.answer)
    try:
        yield services
    finally:
        services.close()
        wall.end()


class _Tasks(TaskRunner):
    """The tasks of a deployment, and the calls of services, which need the host."""

    host: Host

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(
            own_tasks(deployment), lambda: _services(self.host), elsewhere_of(deployment)
        )


def _host(
    deployment: Deployment,
    ports: Ports,
    tasks: _Tasks,
    keys: SigningKeys,
    payload_bytes_max: int | None,
) -> Host:
    programs = deployment.programs()
    ended = WarmLogs(of_ended=True)
    setting = deployment.setting(programs, lambda: keys, AWS_SOURCE)
    tasks.host = Host(
        ports,
        replace(
            setting,
            attempt_seconds_max=LOCAL_TIMEOUT_SECONDS_MAX,
            ended_logs=ended,
            misuse=tasks.find_misuse,
        ),
        lambda: replace(deployment.front(programs, keys), ended_logs=ended),
        Metrics("local"),
        log_fault=_log_fault,
        payload_bytes_max=payload_bytes_max,
        schedules=deployment.schedules,
    )
    return tasks.host


def _stack(cloud: AnyCloud, host: Host) -> LocalStack[AnyCloud]:
    handlers = Handlers(
        worker=host.worker,
        worker_single=host.worker,
        events=lambda event, _: host.events(event),
        sweeper=lambda _, context: host.sweeper(context),
    )
    stack = LocalStack(
        cloud, host, Pump(cloud, handlers, _WORKER_SECONDS), api_handler(host, REGION)
    )
    wall.open_door(stack.states_door)
    return stack


def _services(host: Host) -> Integrations:
    states = protocol.states_call(host, REGION, gateway.ACCOUNT)
    return Integrations(wall.service_clients(), states)


def _log_fault(what: str, error: Exception, **ids: str) -> None:
    _logger.warning("%s: %s: %s %s", what, type(error).__name__, error, ids or "")
