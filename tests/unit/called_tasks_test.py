"""A worker waits for tasks on existing Lambda functions and in groups: their time-out and stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from types import ModuleType
from typing import ParamSpec, TypeVar

import pytest

from holdfast import Client
from holdfast.aws.function_tasks import elsewhere_of
from holdfast.aws.group_tasks import GroupTasks
from holdfast.aws.tasks import TaskRunner
from holdfast.deployment import Deployment
from holdfast.integrations import Integrations
from holdfast.local.group_calls import local_call
from holdfast.runtime.effects import RunTask, TaskResult, TaskSucceeded
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import SimulatorWorld
from tests.unit.client_kit import MemoryStack, _compile
from tests.unit.dsl_kit import loaded
from tests.unit.function_tasks_test import answered
from tests.unit.integrations_kit import Clients
from tests.unit.worker_test import deliver_all

P = ParamSpec("P")
T = TypeVar("T")

PROGRAM = """
from __future__ import annotations

from holdfast import Lambda, WaitTimeout, minutes, task, workflow


@task
def price(parcel: str) -> str:
    return parcel


@task(runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:weigh"), timeout=minutes(2))
def weigh(parcel: str) -> str:
    raise NotImplementedError


@task(group="payments", timeout=minutes(2))
def charge(parcel: str) -> str:
    return f"{parcel} has an answer"


@workflow
def on_lambda(parcel: str) -> str:
    priced = price(parcel)
    try:
        return weigh(priced)
    except WaitTimeout:
        return "too late"


@workflow
def in_group(parcel: str) -> str:
    priced = price(parcel)
    try:
        return charge(priced)
    except WaitTimeout:
        return "too late"
"""


class Depot:
    """A stack in memory. The functions answer; `meanwhile` runs before their answer arrives."""

    def __init__(self, module: ModuleType) -> None:
        self.stack = MemoryStack(module.__name__, works=False)
        self.world = self.stack.world
        self.client = Client.of(self.stack.api)
        self.meanwhile: Callable[[], object] = lambda: None
        self.answers: list[TaskResult] = []
        found = Deployment.from_modules([module.__name__], _compile)
        clients = Clients({"invoke": answered("p1 has an answer")})
        services = Integrations(clients, lambda *_: {})  # type: ignore[arg-type]
        groups = GroupTasks(found, local_call(found), lambda _: None, lambda: 0)
        tasks = TaskRunner(groups.perform, lambda: services, elsewhere_of(found))
        self.perform = tasks.perform
        self.world.tasks = self._call

    def _call(self, effect: RunTask) -> TaskResult:
        answer = self.perform(effect)
        if effect.name in {"weigh", "charge"}:
            self.meanwhile()
            self.answers.append(answer)
        return answer

    def end(self, pool: Executor | None = None) -> StoredHistory:
        if pool is not None:
            deliver_all(self, pool)  # type: ignore[arg-type]
        self.world.run()
        (history,) = histories(self.world)
        assert (check(self.world), lost(self.world)) == ([], [])
        return history


@pytest.fixture
def depot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Depot]:
    with loaded(tmp_path_factory.mktemp("called"), PROGRAM) as module:
        yield Depot(module)


class Hanging(Executor):
    """Runs the first task. The function of the second has not answered when its time is over."""

    def __init__(self, world: SimulatorWorld) -> None:
        self.world, self.begun = world, 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self.begun += 1
        future: Future[T] = Future()
        if self.begun == 1:
            future.set_result(fn(*args, **kwargs))
        else:
            self.world.now_ms += 121_000
        return future


@pytest.mark.parametrize("workflow", ["on_lambda", "in_group"])
def test_a_function_that_does_not_answer_in_time_has_timed_out(depot: Depot, workflow: str) -> None:
    depot.client.start(workflow, {"parcel": "p1"}, name="p1")
    history = depot.end(Hanging(depot.world))
    assert history.state.output == "too late"
    assert [event.type for event in history.events].count("TaskTimedOut") == 1


@pytest.mark.parametrize("workflow", ["on_lambda", "in_group"])
def test_the_answer_of_a_function_counts_only_when_no_stop_came_before(
    depot: Depot, workflow: str
) -> None:
    def stop() -> None:
        depot.client.stop("p1")
        assert depot.world._deliver_visible()

    depot.meanwhile = stop
    depot.client.start(workflow, {"parcel": "p1"}, name="p1")
    history = depot.end()
    assert depot.answers == [TaskSucceeded("p1 has an answer")]
    assert (history.state.status, history.state.output) == ("ABORTED", None)
    assert [event.type for event in history.events].count("TaskSucceeded") == 1


@pytest.mark.parametrize("workflow", ["on_lambda", "in_group"])
def test_the_answer_of_a_function_is_the_result_of_the_task(depot: Depot, workflow: str) -> None:
    depot.client.start(workflow, {"parcel": "p1"}, name="p1")
    assert depot.end().state.output == "p1 has an answer"
