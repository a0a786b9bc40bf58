"""Entry points of the Lambda handlers in functions/. The first event creates the process's
`Host`.
"""

from __future__ import annotations

import functools
import os
import time
from dataclasses import replace
from typing import Any

from holdfast import resources
from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.aws.function_tasks import elsewhere_of
from holdfast.aws.host import Host
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import AwsPorts
from holdfast.aws.tasks import Services, TaskPerformer, TaskRunner
from holdfast.aws.telemetry import Metrics, log_to_cloudwatch
from holdfast.deployment import Deployment
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.commands.tokens import SigningKeys, parse_keys
from holdfast.runtime.effects import Effect
from holdfast.runtime.status_events import OWN_SOURCE
from holdfast.runtime.storage.spread import STARTS_PER_SECOND, spread_for

NO_KEYS = SigningKeys("-", {"-": b""})


def prepare_worker() -> None:
    """Create the host before Lambda takes its snapshot, so that each restored process already has
    it.

    At that time the host has no open connection, no random state and no credentials, which must not
    be shared by processes.
    """
    if _is_snapshotted():
        _host()


def prepare_api() -> None:
    """Import the routes before Lambda takes its snapshot. The keys that sign tokens are read later,
    because they may be rotated after the snapshot.
    """
    if _is_snapshotted():
        import holdfast.aws.http  # noqa: F401, PLC0415


def _is_snapshotted() -> bool:
    return os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start"


def worker_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _host().worker(event, context)


def events_handler(event: dict[str, Any], _context: Any) -> None:
    _host().events(event)


def sweeper_handler(_event: dict[str, Any], context: Any) -> None:
    _host().sweeper(context)


def api_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    answer: dict[str, Any] = _api()(event, context)
    return answer


@functools.cache
def _host() -> Host:
    # Set up logging before the import of the user's modules. A Powertools Logger in such a module
    # looks for log handlers when it is created.
    log_to_cloudwatch(os.environ)
    return make_host(NO_KEYS)


@functools.cache
def _api() -> Any:
    from holdfast.aws.http import api_handler as routes  # noqa: PLC0415

    return routes(make_host(_signing_keys()))


def make_host(keys: SigningKeys) -> Host:
    modules = os.environ[resources.ENV_MODULES].split(",")
    clients, key_arn = Clients(), os.environ.get(resources.ENV_SECRETS_KEY)
    deployment = Deployment.from_modules(name.strip() for name in modules)
    if key_arn:
        # Imported here because most stacks have no secrets. Each module delays a cold start.
        from holdfast.aws.vault import KmsVault  # noqa: PLC0415

        deployment = replace(deployment, vault=KmsVault(clients, key_arn))

    def perform(effect: Effect) -> Any:
        return ports.perform(effect)

    deployment = replace(deployment, perform=perform)
    programs = deployment.programs()
    metrics = Metrics(os.environ[resources.ENV_STACK])
    own = _own_tasks(deployment, clients)
    tasks = TaskRunner(own, lambda: _services(host), elsewhere_of(deployment))
    ports = AwsPorts(
        clients,
        ResourceNames.from_environment(os.environ),
        tasks=tasks.perform,
        clock=lambda: time.time_ns() // 1_000_000,
        metrics=metrics,
        has_threads=True,
    )
    tells_status = os.environ.get(resources.ENV_STATUS_EVENTS) == "on"
    setting = deployment.setting(programs, _signing_keys, OWN_SOURCE if tells_status else None)
    setting = replace(setting, misuse=tasks.find_misuse)
    forms_url = os.environ.get(resources.ENV_FORMS_URL, "")
    if os.environ.get(resources.ENV_QUESTION_EVENTS) == "on":
        from holdfast.runtime.question_events import QuestionEvents  # noqa: PLC0415

        told = QuestionEvents(os.environ[resources.ENV_STACK], forms_url, _signing_keys)
        setting = replace(setting, question_events=told)
    if ports.names.archive_bucket:
        setting = replace(setting, archives=True)
    is_unlimited = os.environ.get(resources.ENV_PAYLOAD_LIMIT) == "off"
    host = Host(
        ports,
        setting,
        lambda: deployment.front(programs, keys),
        metrics,
        payload_bytes_max=None if is_unlimited else PAYLOAD_BYTES_MAX,
        has_history_limit=os.environ.get(resources.ENV_HISTORY_LIMIT) == "on",
        schedules=deployment.schedules,
        forms_scheme="https" if forms_url else None,
        spread=spread_for(int(os.environ.get(resources.ENV_STARTS_PER_SECOND, STARTS_PER_SECOND))),
    )
    return host


def _own_tasks(deployment: Deployment, clients: Clients) -> TaskPerformer:
    if not deployment.groups:
        return deployment.run_task
    # Imported here because most deployments have no group. Each module that is imported makes the
    # start of a Lambda function slower.
    from holdfast.aws.group_tasks import GroupTasks, lambda_call  # noqa: PLC0415

    call = lambda_call(clients, os.environ.get(resources.ENV_GROUP_FUNCTIONS, ""))
    return GroupTasks(deployment, call).perform


def _services(host: Host) -> Services:
    """Return the calls of services. They perform actions of Step Functions inside this
    process.
    """
    from holdfast.aws.protocol import states_call  # noqa: PLC0415
    from holdfast.integrations import Integrations, ServiceClients  # noqa: PLC0415

    # The worker itself reads no tokens, so its host has no signing keys. But the tasks of a
    # definition may call the API, which reads and creates tokens and needs the keys.
    signing = replace(host, make_front=lambda: replace(host.front, keys=_signing_keys()))
    account = os.environ[resources.ENV_ACCOUNT]
    states = states_call(signing, os.environ["AWS_REGION"], account)
    # Calls in a definition use the permissions of tasks, never those of the worker.
    clients = ServiceClients(tasks_role_arn=os.environ[resources.ENV_TASKS_ROLE])
    return Integrations(clients, states)


@functools.cache
def _signing_keys() -> SigningKeys:
    secret_id = os.environ[resources.ENV_SECRET_ID]
    secrets = Clients().get("secrets")
    try:
        found = secrets.get_secret_value(SecretId=secret_id)
    except Exception as error:
        raise fault("get_secret_value", error) from error
    return parse_keys(found["SecretString"])
