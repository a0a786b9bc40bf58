"""Tasks of a group while workers die and answers are lost: each step's result stands once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from holdfast import task, task_context, workflow
from holdfast.aws import group_tasks
from holdfast.aws.group_tasks import GroupTasks
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.limits import TAKEOVERS_MAX
from holdfast.local.group_calls import local_call
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import (
    CrashAt,
    Hook,
    Killed,
    RandomCrashes,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import CHANCE, KEYS
from tests.thorough import some

TENANT = "default"
#: The calls of the bank by idempotency key. The bank pays a key once, and repeats its receipt.
bank: Counter[str] = Counter()


@task
def reserve(order: str) -> str:
    return f"{order} reserved"


@task(group="payments")
def charge(order: str) -> str:
    key = task_context().idempotency_key
    bank[key] += 1
    return f"receipt {sorted(bank).index(key)} of {order}"


@task(group="payments")
def book(receipt: str) -> str:
    return f"{receipt} booked"


@workflow
def grouped_shop(order: str) -> str:
    reserved = reserve(order)
    receipt = charge(reserved)
    return book(receipt)


OUTPUT = "receipt 0 of o1 reserved booked"


def _compiled(found: Any) -> tuple[Any, dict[str, Any]]:
    compiled = compile_workflow(found)
    return compiled.asl, json.loads(compiled.map_text)


@cache
def deployment() -> Deployment:
    return Deployment.from_modules([__name__], _compiled)


class Network:
    """Calls the function of the group, and may lose the request, or the answer of a call that
    has run.
    """

    def __init__(self, loses: Callable[[int], bool]) -> None:
        self._call = local_call(deployment())
        self._loses = loses
        self.lost = 0

    def __call__(self, group: str, payload: bytes) -> tuple[bool, bytes]:
        self._lose(0)
        answer = self._call(group, payload)
        self._lose(1)
        return answer

    def _lose(self, place: int) -> None:
        if self._loses(place):
            self.lost += 1
            raise ReadTimeoutError(endpoint_url="https://lambda.example.com")


def sold(hook: Hook, network: Network) -> tuple[SimulatorWorld, StoredHistory]:
    """Return the world after all that happens, and the one history in it."""
    bank.clear()
    found = deployment()
    programs = found.programs()
    front = found.front(programs, KEYS)
    tasks = GroupTasks(found, network, lambda _: None, lambda: 0)
    world = SimulatorWorld(found.setting(programs, lambda: KEYS), tasks.perform, hook)
    given = {"workflow": "grouped_shop", "name": "o1", "input": {"order": "o1"}}
    for _ in range(20):
        try:
            world.call(front.start(TENANT, given, CHANCE))
        except Killed:
            world.kills += 1
        else:
            break
    world.run()
    [history] = histories(world)
    return world, history


def assert_sold_once(world: SimulatorWorld, history: StoredHistory, note: object) -> None:
    assert history.state.output == OUTPUT, note
    succeeded = [event for event in history.events if event.type == "TaskSucceeded"]
    assert len(succeeded) == 3, note
    assert len(bank) == 1, f"{note}: the bank has paid {bank}"
    assert (check(world), lost(world)) == ([], []), note


def quiet() -> Network:
    return Network(lambda _: False)


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_of_a_worker_at_any_effect_changes_nothing(when: When) -> None:
    count = CrashAt(None, when)
    sold(count, quiet())
    for number in some(count.numbers):
        world, history = sold(CrashAt(number, when), quiet())
        assert world.kills == 1
        assert_sold_once(world, history, number)


def test_crashes_and_lost_answers_at_random_change_nothing() -> None:
    kills = lost_answers = doubled = 0
    for seed in range(60):
        print(f"seed {seed}")
        draws = random.Random(seed)  # repeatable, not secret
        left = [2]

        def loses(_: int, draws: random.Random = draws, left: list[int] = left) -> bool:
            left[0] -= (is_lost := left[0] > 0 and draws.random() < 0.3)
            return is_lost

        network = Network(loses)
        crashes = RandomCrashes(seed, chance=0.05, crashes_max=TAKEOVERS_MAX)
        world, history = sold(crashes, network)
        assert_sold_once(world, history, seed)
        kills += world.kills
        lost_answers += network.lost
        doubled += sum(bank.values()) > 1
    assert min(kills, lost_answers, doubled) >= 15, (kills, lost_answers, doubled)


def test_an_engine_that_does_not_ask_again_for_a_lost_answer_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_tasks, "LOST_MAX", 1)
    answers = iter([False, True])
    world, history = sold(no_faults, Network(lambda _: next(answers, False)))
    with pytest.raises(AssertionError):
        assert_sold_once(world, history, "planted")
