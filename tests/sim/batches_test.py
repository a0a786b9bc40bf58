"""Batch tasks through the whole engine: few calls, each item its own result, also after crashes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from holdfast.runtime.effects import Begin, TaskFailed, TaskResult, TaskSucceeded, TaskThrottled
from holdfast.runtime.gates.rules import BatchRule, LimitRule, LimitUse
from holdfast_simulator.flow import START_MS, Faults, FlowWorld, Work, machine
from tests.thorough import IS_THOROUGH, some

RULE = BatchRule("send", most=100, wait_ms=5_000)
MINUTE_MS = 60_000


class Batches:
    """A world with one batch task. `calls`: the sizes of the batches; `seen`: each item's runs."""

    def __init__(
        self,
        faults: Faults | None = None,
        seed: int = 1,
        *,
        retry: bool = True,
        limit: LimitRule | None = None,
    ) -> None:
        definition = machine(("send",), 20, retry=retry)
        uses = {} if limit is None else {"send": (LimitUse(limit),)}
        self.world = FlowWorld(uses, definition, seed=seed, faults=faults, batches={"send": RULE})
        self.world.act = self.act
        self.calls: list[int] = []
        self.seen: Counter[str] = Counter()

    def act(self, _: Work, effect: Begin) -> TaskResult:
        items = effect.effect.arguments
        assert effect.effect.is_batch
        self.calls.append(len(items))
        self.seen.update(item["customer"] for item in items)
        return self.result(items)

    def result(self, items: list[Any]) -> TaskResult:
        return TaskSucceeded([{"output": item["customer"]} for item in items])

    def run(self, count: int, minutes: float = 10, spread_ms: int = 1) -> None:
        for number in range(count):
            self.world.start(Work(number * spread_ms, customer=f"c{number}"), f"o{number}")
        self.world.run(START_MS + int(minutes * MINUTE_MS))
        assert self.world.errors == []

    def ends(self) -> Counter[str]:
        found = Counter(
            str(item["st"])
            for item in self.world.services.items("executions")
            if item["st"] != "RUNNING"
        )
        return found


def test_each_hundred_executions_need_one_call() -> None:
    batches, executions = Batches(), 1_000 if IS_THOROUGH else 300
    batches.run(executions)
    assert batches.ends() == {"SUCCEEDED": executions}
    assert len(batches.calls) <= executions // 100 + 3
    assert max(batches.calls) == 100
    assert set(batches.seen.values()) == {1}


def test_a_few_items_wait_no_longer_than_they_may() -> None:
    batches = Batches()
    batches.run(3)
    assert batches.calls == [3]
    (call,) = batches.world.task_runs
    assert call.began.at_ms - START_MS <= RULE.wait_ms + 1_500


class Poisoned(Batches):
    def result(self, items: list[Any]) -> TaskResult:
        return TaskSucceeded(
            [
                {"error": "BadAddress", "cause": "no such place"}
                if item["customer"] == "c7"
                else {"output": item["customer"]}
                for item in items
            ]
        )


def test_an_item_that_cannot_be_done_fails_alone() -> None:
    batches = Poisoned(retry=False)
    batches.run(50)
    assert batches.ends() == {"SUCCEEDED": 49, "FAILED": 1}


class Broken(Batches):
    def result(self, items: list[Any]) -> TaskResult:
        return TaskFailed("Down", "the whole call failed")


def test_an_exception_of_the_function_is_the_error_of_each_item() -> None:
    batches = Broken(retry=False)
    batches.run(20)
    assert batches.ends() == {"FAILED": 20}


class Deadly(Batches):
    """One input kills every worker that takes it."""

    def __init__(self) -> None:
        super().__init__(retry=False)
        self.world.is_deadly = lambda effect: any(
            item["customer"] == "c3" for item in effect.effect.arguments
        )


def test_an_input_that_kills_its_workers_fails_and_the_others_are_done() -> None:
    batches = Deadly()
    batches.run(10, minutes=60)
    ends = batches.ends()
    assert ends["SUCCEEDED"] == 9, batches.calls
    assert ends["FAILED"] == 1


@pytest.mark.parametrize("seed", some(range(8)))
def test_with_faults_each_item_is_done_and_its_result_is_applied_once(seed: int) -> None:
    faults = Faults(chance=0.02, end_ms=60_000, skew_ms=200, duplicates=0.02)
    batches = Batches(faults, seed)
    batches.run(60, minutes=40, spread_ms=300)
    assert batches.ends() == {"SUCCEEDED": 60}, f"seed {seed}"
    assert batches.world.stored("~wait") == [], f"seed {seed}"
    assert set(batches.seen) == {f"c{number}" for number in range(60)}


# -- limits beside a batch -------------------------------------------------------------------------

SLOW = LimitRule("post", interval_us=20_000_000, burst=1)  # a call in twenty seconds


def test_a_limit_bounds_the_calls_and_not_the_items() -> None:
    batches = Batches(limit=SLOW)
    batches.run(350)
    assert batches.ends() == {"SUCCEEDED": 350}
    assert sorted(batches.calls) == [50, 100, 100, 100]
    began = sorted(run.began.at_ms for run in batches.world.task_runs)
    assert all(later - earlier >= 19_900 for earlier, later in pairwise(began))
    assert began[-1] - began[0] <= 3 * 26_000


class Throttling(Batches):
    def result(self, items: list[Any]) -> TaskResult:
        return TaskThrottled(30_000, "429") if len(self.calls) == 1 else super().result(items)


def test_a_throttled_call_leaves_its_items_for_a_later_one_and_counts_no_attempt() -> None:
    batches = Throttling(retry=False, limit=LimitRule("post", interval_us=100_000, burst=1))
    batches.run(20)
    assert batches.ends() == {"SUCCEEDED": 20}
    first, second = sorted(run.began.at_ms for run in batches.world.task_runs)
    assert second - first >= 30_000


class Throttled4(Batches):
    def result(self, items: list[Any]) -> TaskResult:
        return TaskThrottled(1_000, "429") if len(self.calls) <= 4 else super().result(items)


def test_one_item_that_is_throttled_often_is_not_taken_for_one_that_crashes_workers() -> None:
    batches = Throttled4(retry=False, limit=LimitRule("post", interval_us=100_000, burst=1))
    batches.run(1)
    assert batches.ends() == {"SUCCEEDED": 1}
    assert batches.calls == [1] * 5


def test_a_batch_that_waits_for_one_limit_uses_up_no_tokens_of_another() -> None:
    batches = Batches(limit=SLOW)
    other = LimitRule("other", interval_us=1_000_000, burst=1)
    batches.world.book.of_task["send"] += (LimitUse(other),)  # type: ignore[index]
    batches.world.change(SLOW, 0, is_paused=True, reason="outage", by="kim")
    batches.run(1, minutes=5)
    assert batches.calls == []
    gates = [row for row in batches.world.services.items("mail") if "other" in str(row["pk"])]
    assert gates == []
