"""The entry points of the functions: what the environment of a function makes of its host."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast import resources
from holdfast.aws import entry, group_function, protocol
from holdfast.aws.clients import Clients
from holdfast.aws.entry import NO_KEYS, make_host
from holdfast.aws.group_tasks import GroupTasks
from holdfast.aws.host import Host
from holdfast.aws.names import ResourceNames
from holdfast.deployment import Deployment
from holdfast.errors import ServiceFault
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import Clock, Together
from holdfast.runtime.status_events import OWN_SOURCE
from holdfast.runtime.storage.spread import STARTS_PER_SECOND, spread_for

NAMES = ResourceNames("e", "m", "b", "https://q/w", "https://q/s", "https://q/t")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Host]:
    """Make a host with these further variables. Nothing reaches AWS."""
    for name in [name for name in vars(resources) if name.startswith("ENV_")]:
        monkeypatch.delenv(getattr(resources, name), raising=False)
    for name, value in NAMES.to_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(resources.ENV_MODULES, " statemachines.loan_approval , tests.order_shop")
    monkeypatch.setenv(resources.ENV_STACK, "Shop")

    def make(**variables: str) -> Host:
        for name, value in variables.items():
            monkeypatch.setenv(getattr(resources, name), value)
        return make_host(NO_KEYS)

    return make


def test_a_host_without_choices_has_aws_limits_and_no_events(made: Callable[..., Host]) -> None:
    host = made()
    assert host.payload_bytes_max == PAYLOAD_BYTES_MAX
    assert host.has_history_limit is False
    assert host.forms_scheme is None
    assert host.setting.status_source is None
    assert host.setting.question_events is None
    assert host.setting.archives is False
    assert host.has_threads is True
    # Of the store, for queries that are sent together.
    assert cast(Any, host.ports)._performers[Together].__self__._has_threads is True
    assert host.spread == spread_for(STARTS_PER_SECOND) != spread_for(10_000)
    assert host.ports.names == NAMES
    assert host.metrics._stack == "Shop"
    # The models of the services check the arguments of a call before its task is scheduled.
    assert host.setting.misuse.__name__ == "find_misuse"
    assert "loan_approval" in host.front.workflows
    assert host.front.keys is NO_KEYS
    # An id that the API makes has the spread that this process has last read.
    assert host.front.spread is host.setting.spread


def test_each_choice_is_one_variable(made: Callable[..., Host]) -> None:
    assert made(ENV_PAYLOAD_LIMIT="off").payload_bytes_max is None
    assert made(ENV_PAYLOAD_LIMIT="on").payload_bytes_max == PAYLOAD_BYTES_MAX
    assert made(ENV_HISTORY_LIMIT="on").has_history_limit is True
    assert made(ENV_HISTORY_LIMIT="off").has_history_limit is False
    assert made(ENV_STATUS_EVENTS="on").setting.status_source == OWN_SOURCE
    assert made(ENV_STATUS_EVENTS="off").setting.status_source is None
    assert made(ENV_QUESTION_EVENTS="off").setting.question_events is None
    assert made(ENV_ARCHIVE_BUCKET="archive").setting.archives is True
    assert made(ENV_FORMS_URL="https://forms").forms_scheme == "https"
    assert made(ENV_STARTS_PER_SECOND="10000").spread == spread_for(10_000)
    events = made(ENV_QUESTION_EVENTS="on").setting.question_events
    assert events is not None
    assert (events.stack, events.url) == ("Shop", "https://forms")


def test_a_task_stores_its_progress_by_the_ports_of_its_host(
    made: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Deployment] = []
    monkeypatch.setattr(entry, "_own_tasks", lambda deployment, _: found.append(deployment))
    ports = made().ports
    [deployment] = found
    assert deployment.perform is not None
    cast(Any, ports)._performers[Clock] = lambda _: 17
    assert deployment.perform(Clock()) == 17


@pytest.mark.parametrize("missing", NAMES.to_environment())
def test_a_function_without_the_name_of_a_resource_ends_for_good_and_names_the_variable(
    missing: str,
) -> None:
    environment = {**dict.fromkeys(NAMES.to_environment(), "x"), missing: ""}
    if missing.endswith("_DLQ_URL") or missing == resources.ENV_ARCHIVE_BUCKET:
        assert ResourceNames.from_environment(environment).to_environment() == environment
        return
    with pytest.raises(ServiceFault) as refused:
        ResourceNames.from_environment(environment)
    assert (refused.value.code, refused.value.retry) == ("HF325", "never")
    assert refused.value.message == f"environment variable {missing} is not set"


def test_the_clock_is_utc_in_milliseconds(made: Callable[..., Host]) -> None:
    host, before_ms = made(), int(time.time() * 1_000)
    assert before_ms - 1 <= host.ports.perform(Clock()) <= time.time() * 1_000 + 1


def test_tasks_call_the_state_machines_of_the_functions_own_region_and_account(
    made: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[tuple[str, str]] = []

    def states_call(_host: Host, region: str, account: str) -> None:
        places.append((region, account))

    monkeypatch.setattr(protocol, "states_call", states_call)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    host = made(ENV_ACCOUNT="210987654321", ENV_TASKS_ROLE="arn:aws:iam::210987654321:role/tasks")
    entry._services(host)
    assert places == [("eu-central-1", "210987654321")]


@pytest.mark.parametrize("groups", [{}, {"payments": "of one task"}])
def test_a_host_calls_the_functions_of_groups_only_for_groups(groups: dict[str, Any]) -> None:
    deployment: Any = SimpleNamespace(groups=groups, run_task=print)
    performer: Any = entry._own_tasks(deployment, Clients())
    assert isinstance(getattr(performer, "__self__", None), GroupTasks) is bool(groups)
    assert (performer is print) is not bool(groups)


class Answers:
    """A host that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self.calls.append((name, *given))
            return {"answer": name}

        return call


@pytest.mark.parametrize(
    ("module", "call", "answer"),
    [
        ("worker", ("worker", "event", "context"), {"answer": "worker"}),
        ("events", ("events", "event"), None),
        ("sweeper", ("sweeper", "context"), None),
        ("api", ("api", "event", "context"), {"answer": "api"}),
    ],
)
def test_a_function_hands_its_event_to_its_part_of_the_host(
    monkeypatch: pytest.MonkeyPatch, module: str, call: tuple[Any, ...], answer: Any
) -> None:
    host = Answers()
    monkeypatch.setattr(entry, "_host", lambda: host)
    monkeypatch.setattr(entry, "_api", lambda: host.api)
    handler: Any = importlib.import_module(f"functions.{module}.app").handler
    assert handler("event", "context") == answer
    assert host.calls == [call]


def test_the_function_of_a_group_runs_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_function, "_runs_attempt", lambda: lambda event: {"ran": event})
    handler = importlib.import_module("functions.group.app").handler
    assert handler({"task": "charge"}, None) == {"ran": {"task": "charge"}}


@pytest.mark.parametrize("kind", ["snap-start", "on-demand", None])
def test_only_a_snapshot_is_prepared(monkeypatch: pytest.MonkeyPatch, kind: str | None) -> None:
    made: list[str] = []
    monkeypatch.setattr(entry, "_host", lambda: made.append("host"))
    monkeypatch.delenv("AWS_LAMBDA_INITIALIZATION_TYPE", raising=False)
    if kind is not None:
        monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", kind)
    entry.prepare_worker()
    entry.prepare_api()
    assert made == (["host"] if kind == "snap-start" else [])


def test_the_modules_of_the_functions_prepare_their_snapshots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[str] = []
    monkeypatch.setattr(entry, "prepare_worker", lambda: prepared.append("worker"))
    monkeypatch.setattr(entry, "prepare_api", lambda: prepared.append("api"))
    names = ("worker", "api", "events", "sweeper")
    modules = [importlib.import_module(f"functions.{name}.app") for name in names]
    prepared.clear()
    for module in modules:
        importlib.reload(module)
    assert prepared == ["worker", "api"]


def test_the_keys_come_from_the_secret_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    class Secrets:
        def get_secret_value(self, **request: Any) -> dict[str, Any]:
            asked.append(("secrets", request))
            if request["SecretId"] == "gone":
                raise OSError
            return {"SecretString": "a secret of the stack, as long as it must be"}

    monkeypatch.setattr(Clients, "get", lambda _self, name: {"secrets": Secrets()}[name])
    monkeypatch.setenv(resources.ENV_SECRET_ID, "arn:secret")
    entry._signing_keys.cache_clear()
    keys = entry._signing_keys()
    assert entry._signing_keys() is keys
    assert asked == [("secrets", {"SecretId": "arn:secret"})]
    entry._signing_keys.cache_clear()
    monkeypatch.setenv(resources.ENV_SECRET_ID, "gone")
    with pytest.raises(ServiceFault, match=r"\bget_secret_value\b"):
        entry._signing_keys()
    entry._signing_keys.cache_clear()
