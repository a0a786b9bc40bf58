"""Calls that follow each other on the way to the next task: docs/explanation/scale.md has them.

A call is a round trip to DynamoDB or SQS. The clock, metrics and the function's own deadline take
none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.runtime.effects import Clock, Deadline, Effect, Measure, RunTask, WriteDeadline
from holdfast_simulator.world import SimulatorWorld, When
from tests.builders import Machine, Shop, ask, call, chain, machine, wait_for
from tests.unit.states_world import Office, states

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "scale.md").read_text()
FREE = (Clock, Measure, Deadline, WriteDeadline)
HIDE, LOAD, COMMIT = "SetVisibility", "Query executions", "PutIfAbsent executions"


@dataclass
class Watch:
    """The calls since `begin`, up to the next task. Those before the first message is received are
    the API's.
    """

    calls: list[str] = field(default_factory=list)

    def __call__(self, _world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and not isinstance(effect, FREE):
            table = str(getattr(effect, "table", ""))
            self.calls.append(f"{type(effect).__name__} {table}".strip())

    def of_api_and_worker(self) -> tuple[list[str], list[str]]:
        calls = self.calls[: self.calls.index(RunTask.__name__)]
        received = calls.index(HIDE) if HIDE in calls else 0
        return calls[:received], calls[received:]


def waiting(state: Machine, act: Callable[[Shop, str], object]) -> Watch:
    """Return the calls from what ends a wait to the task after it."""
    watch = Watch()
    first = call("add", "wait", Arguments={"n": 1})
    last = call("add", Arguments={"n": 1})
    shop = Shop(machine({"first": first, "wait": state, "last": last}), hook=watch)
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    token = next(
        (one["token"] for one in shop.describe(run).get("waits", ()) if "token" in one), ""
    )
    watch.calls.clear()
    act(shop, token)
    shop.world.run()
    return watch


def answer(shop: Shop, token: str) -> None:
    request = {"token": token, "output": {"approved": True}}
    shop.world.call(shop.front.answer("default", request))


def started(name: str | None) -> Watch:
    watch = Watch()
    shop = Shop(chain(2), hook=watch)
    shop.start({"n": 0}, "warm")  # stores the definition
    shop.world.run()
    watch.calls.clear()
    request = {"workflow": "flow", "name": name, "input": {"n": 0}}
    shop.world.call(shop.front.start("default", request, b"another."))
    shop.world.run()
    return watch


def step() -> Watch:
    watch = started(None)
    del watch.calls[: watch.calls.index(RunTask.__name__) + 1]
    return watch


def start_execution() -> Watch:
    watch = Watch()
    office = Office(hook=watch)
    task = {"Type": "Task", "Resource": "holdfast:task:work", "Arguments": {}}
    arn = office.create(states(a=task))
    office.start(arn)  # the worker reads the definition
    office.world.run()
    watch.calls.clear()
    office.start(arn)
    office.world.run()
    return watch


PATHS = {
    "StartExecution → first task": (
        start_execution,
        ["Get mail", "PutIfAbsent mail", "Put mail", "Send"],
        [HIDE, LOAD],
    ),
    "start without a name → first task": (
        lambda: started(None),
        ["Put mail", "Send"],
        [HIDE, LOAD],
    ),
    "start with a name → first task": (
        lambda: started("order-1"),
        ["PutIfAbsent mail", "Put mail", "Send"],
        [HIDE, LOAD],
    ),
    "result of a task → next task": (step, [], [COMMIT]),
    "timer due → next task": (
        lambda: waiting({"Type": "Wait", "Seconds": 10, "Next": "last"}, lambda *_: None),
        [],
        [HIDE, LOAD, COMMIT],
    ),
    "event → next task": (
        lambda: waiting(wait_for("paid", "last"), lambda shop, _: shop.send_event()),
        ["Query mail", "PutIfAbsent mail", "Send"],
        [HIDE, LOAD, "Query mail", COMMIT],
    ),
    "answer → next task": (
        lambda: waiting(ask("last"), answer),
        ["Query executions", "PutIfAbsent mail", "Send"],
        [HIDE, LOAD, "Get mail", COMMIT, "Delete mail"],
    ),
}


@pytest.mark.parametrize("path", PATHS)
def test_the_calls_between_two_tasks_are_those_of_the_page(path: str) -> None:
    play, by_api, by_worker = PATHS[path]
    assert play().of_api_and_worker() == (by_api, by_worker)
    assert f"| {path} | {len(by_api)} | {len(by_worker)} |" in PAGE
