"""Tasks that run in a container of ECS or Batch: docs/how-to/long-tasks.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import BatchJob, Client, Fargate, WaitTimeout, minutes, wait_for_condition
from holdfast.cli import main
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.deployment import Deployment
from holdfast.errors import RequestError, WorkflowError
from holdfast.integrations.containers import start
from holdfast.limits import CLOCK_ERROR_MS, CONTAINER_HEARTBEAT_SECONDS
from holdfast.local.pool_worker import PoolWorker
from holdfast.remote import pools
from holdfast.runtime.driver import run
from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.testing import World, real
from holdfast_simulator.invariants import check, lost
from tests.unit import pool_flows
from tests.unit.client_kit import MemoryStack, _compile
from tests.unit.pool_flows import graded, mixed

MODULE = pool_flows.__name__
LAPSE_MS = CONTAINER_HEARTBEAT_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS + 5_000


class Site:
    """A stack in memory whose calls of ECS and Batch are noted."""

    def __init__(self) -> None:
        self.stack = MemoryStack(MODULE)
        self.world = self.stack.world
        self.client = Client.of(self.stack.api)
        self.calls: list[RunTask] = []
        self.answer: dict[str, Any] = {"Tasks": [{"TaskArn": "arn"}], "Failures": []}
        self.world.tasks = self._perform
        self.said: list[str] = []

    def _perform(self, effect: RunTask) -> TaskResult:
        return start(effect, self._call)

    def _call(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        self.calls.append(effect)
        return TaskSucceeded(self.answer)

    def token(self) -> str:
        request = self.calls[-1].arguments
        overrides = request.get("Overrides", {}).get("ContainerOverrides", [{}])[0]
        (one,) = (overrides or request["ContainerOverrides"])["Environment"]
        assert one["Name"] == "HOLDFAST_TOKEN"
        return str(one["Value"])

    def container(self) -> PoolWorker:
        deployment = Deployment.from_modules([MODULE], _compile)
        worker = PoolWorker(deployment, self.client, "containers", say=self.said.append)
        worker.pause = lambda _: None
        return worker

    def beat(self, token: str) -> bool:
        return self.client.perform(pools.heartbeat("containers", token))

    def read_pauses(self) -> None:
        """The worker's host reads the pauses before its first message."""
        gates = self.stack.site.shop.world.setting.gates
        run(gates.look(self.world.now_ms), self.world.perform)

    def later(self, milliseconds: int) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def shown(self, execution: str) -> Any:
        return self.client.describe(execution)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    assert (check(site.world), lost(site.world)) == ([], [])


def test_a_container_is_started_with_its_token_and_fetches_its_attempt(site: Site) -> None:
    big = (1 << 53) - 1  # no digit is lost on the way
    site.client.start(mixed, "Alien", big, name="m1")
    (call,) = site.calls
    assert (call.name, call.kind) == ("ecs:runTask", "service")
    token = site.token()
    network = {
        "Subnets": ["subnet-1", "subnet-2"],
        "AssignPublicIp": "DISABLED",
        "SecurityGroups": ["sg-1"],
    }
    environment = [{"Name": "HOLDFAST_TOKEN", "Value": token}]
    assert call.arguments == {
        "Cluster": "films",
        "TaskDefinition": "mix:3",
        "LaunchType": "FARGATE",
        "NetworkConfiguration": {"AwsvpcConfiguration": network},
        "Overrides": {"ContainerOverrides": [{"Name": "main", "Environment": environment}]},
    }
    (waits,) = site.shown("m1")["waits"]
    assert (waits["kind"], waits["on"], waits["task"]) == ("container", "ecs:runTask", "mix")
    assert "token" not in waits
    assert site.beat(token)
    assert "heartbeat" in site.shown("m1")["waits"][0]
    assert site.container().run_token(token)
    assert site.shown("m1")["output"] == f"Alien {big} mixed"


def test_a_job_of_batch_does_the_same(site: Site) -> None:
    site.answer = {"JobId": "j1", "JobName": "grade", "JobArn": "arn"}
    site.client.start(graded, "Alien", name="g1")
    (call,) = site.calls
    assert call.name == "batch:submitJob"
    shown = {name: call.arguments[name] for name in ("JobName", "JobQueue", "JobDefinition")}
    assert shown == {"JobName": "grade", "JobQueue": "gpu", "JobDefinition": "grade:1"}
    assert site.container().run_token(site.token())
    assert site.shown("g1")["output"] == "graded Alien"


def test_a_paused_task_starts_no_container() -> None:
    site = Site()
    site.client.change_pause("the cluster is moved", paused=True, task="mix")
    site.read_pauses()
    site.client.start(mixed, "Alien", 1, name="m1")
    assert site.calls == []
    site.client.change_pause("it is moved", paused=False, task="mix")
    site.later(60_000)
    assert site.container().run_token(site.token())
    assert site.shown("m1")["status"] == "SUCCEEDED"


def test_a_container_that_ends_without_an_answer_is_started_again(site: Site) -> None:
    site.client.start(mixed, "Alien", 1, name="m1")
    first = site.token()
    site.later(LAPSE_MS)
    assert len(site.calls) == 2
    assert not site.beat(first)
    assert not site.container().run_token(first)
    assert site.container().run_token(site.token())
    assert site.shown("m1")["status"] == "SUCCEEDED"


def test_a_container_that_ecs_cannot_place_fails_the_task(site: Site) -> None:
    site.answer = {"Tasks": [], "Failures": [{"Reason": "RESOURCE:MEMORY"}]}
    site.client.start(mixed, "Alien", 1, name="m1")
    shown = site.shown("m1")
    assert (shown["status"], shown["error"]) == ("FAILED", "ContainerNotStarted")
    assert "RESOURCE:MEMORY" in shown["cause"]


def test_the_time_out_ends_the_wait_and_the_container_hears_of_it(site: Site) -> None:
    site.client.start(mixed, "Alien", 1, name="m1")
    token = site.token()
    for _ in range(2 * 15):
        assert site.beat(token)
        site.later(4 * 60_000)
    site.later(60_000)
    assert not site.beat(token)
    assert site.shown("m1")["output"] == "too late"


def test_a_cancelled_task_that_runs_on_is_ended_with_its_container(
    site: Site, monkeypatch: Any
) -> None:
    site.client.start(mixed, "Alien", 1, name="m1")
    left: list[bool] = []

    def stop_and_run_on() -> None:
        site.client.stop("m1")
        while not left:
            pass

    monkeypatch.setattr(pool_flows, "MEANWHILE", [stop_and_run_on])
    monkeypatch.setattr("holdfast.local.pool_worker._BEATS", 60_000)
    monkeypatch.setattr("holdfast.local.pool_worker.LEAVE_SECONDS", 0.01)
    container = site.container()
    container.leave = lambda: left.append(True)
    assert container.run_token(site.token())
    assert left == [True]
    assert "no longer waited" in site.said[-1]


def test_the_token_of_something_else_is_refused(site: Site) -> None:
    site.client.start(pool_flows.film, "Alien", 1, name="f1")
    handed = site.client.perform(pools.poll("gpu", "w", ["render"]))
    assert handed is not None
    with pytest.raises(RequestError) as refused:
        site.client.perform(pools.fetch("containers", handed.token))
    assert refused.value.code == "HF432"
    site.client.stop("f1")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fargate("c", "t", "main", subnets=()),
        lambda: Fargate("", "t", "main", subnets=("s",)),
        lambda: Fargate("c", "t", "main", subnets="s"),  # type: ignore[arg-type]
        lambda: BatchJob(queue="", definition="d"),
    ],
)
def test_a_place_without_its_names_is_refused(make: Any) -> None:
    with pytest.raises(WorkflowError) as refused:
        make()
    assert refused.value.code == "HF436"


def test_the_kit_runs_the_task_in_line_and_compares() -> None:
    assert World({"mix": real}).run(mixed, "Alien", 2).output == "Alien 2 mixed"
    assert World({"mix": WaitTimeout("late")}).run(mixed, "Alien", 2).output == "too late"


def test_step_functions_has_no_such_containers() -> None:
    with pytest.raises(CompileErrors, match="fetches its attempt from Holdfast"):
        to_step_functions(compile_workflow(mixed), Source.of(pool_flows))


def test_a_worker_without_a_pool_and_a_token_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    with pytest.raises(SystemExit):
        main(["worker", "--once"])
    assert "--pool NAME is missing" in capsys.readouterr().err


def test_a_task_in_a_container_is_not_polled_for_a_condition() -> None:
    with pytest.raises(WorkflowError, match="not in a pool or a container"):
        wait_for_condition(pool_flows.grade, every=minutes(5))  # type: ignore[arg-type]
