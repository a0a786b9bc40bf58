"""`@task(cache=days(1))`: a call with equal arguments takes the result of an earlier one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import BatchJob, Client, Worker, days, minutes, task, wait_for_condition
from holdfast.api.batches import Batch
from holdfast.aws.group_tasks import GroupTasks
from holdfast.cli.execution_screen import history
from holdfast.deployment import Deployment
from holdfast.errors import ServiceFault, WorkflowError
from holdfast.local.group_calls import local_call
from holdfast.runtime.effects import Effect, Put
from holdfast.runtime.worker.cached_results import place_of
from holdfast.runtime.worker.config import CacheRule
from holdfast.sealed import Sealed
from holdfast.testing import World, real, takes
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import CrashAt, Hook, SimulatorWorld, When
from tests.builders import CHANCE, KEYS, Shop, call, machine
from tests.unit import cached_flows as flows
from tests.unit.client_kit import MemoryStack, _compile
from tests.unit.dsl_kit import loaded

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def _calls() -> None:
    flows.CALLS.clear()


class Stage:
    def __init__(self) -> None:
        self.stack = MemoryStack(flows.__name__)
        self.stack.site.ports.performs = self.stack.world.perform
        self.world = self.stack.world
        self.client = Client.of(self.stack.api)

    def rest(self, milliseconds: int = 10_000) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def run(self, workflow: str, sku: str = "tea") -> str:
        run = self.client.start(workflow, {"sku": sku}).execution
        self.rest()
        return run

    def output(self, run: str) -> Any:
        return self.client.describe(run).get("output")

    def events(self, run: str) -> list[dict[str, Any]]:
        return list(self.client.history(run))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_another_execution_takes_the_result_without_an_attempt(stage: Stage) -> None:
    earlier = stage.run("quoted")
    later = stage.run("quoted")
    assert (stage.output(earlier), stage.output(later)) == (100, 100)
    assert flows.CALLS == ["tea 1"]
    types = [event["type"] for event in stage.events(later)]
    assert "TaskStarted" not in types
    (taken,) = [one for one in stage.events(later) if one["type"] == "TaskSucceeded"]
    assert taken["holdfast"]["cached"]["execution"] == earlier
    (ran,) = [one for one in stage.events(earlier) if one["type"] == "TaskSucceeded"]
    assert "cached" not in ran.get("holdfast", {})


def test_another_workflow_takes_it_and_other_arguments_do_not(stage: Stage) -> None:
    stage.run("quoted")
    run = stage.run("quoted_other")
    assert stage.output(run) == 300
    assert flows.CALLS == ["tea 1", "tea 2"]


def test_a_result_counts_until_it_expires(stage: Stage) -> None:
    stage.run("quoted")
    stage.rest(23 * HOUR_MS)
    stage.run("quoted")
    assert flows.CALLS == ["tea 1"]
    stage.rest(HOUR_MS)
    stage.run("quoted")
    assert flows.CALLS == ["tea 1", "tea 1"]


def test_a_failure_is_not_stored_and_a_retry_that_succeeds_is(stage: Stage) -> None:
    stage.run("quoted", "unknown")
    stage.run("quoted", "unknown")
    assert flows.CALLS == ["unknown 1"] * 4
    flows.CALLS.clear()
    stage.run("quoted", "flaky")
    stage.run("quoted", "flaky")
    assert flows.CALLS == ["flaky 1"] * 2


def test_a_large_result_is_stored_as_a_blob_that_expires_by_its_prefix(stage: Stage) -> None:
    stage.run("quoted", "large")
    run = stage.run("quoted", "large")
    assert (stage.output(run), flows.CALLS) == (100, ["large 1"])
    (item,) = [one for one in stage.world.services.items("mail") if "#ca#" in str(one["pk"])]
    tenant = str(item["pk"]).partition("#")[0]
    assert f".cache/{tenant}/{item['ref']!s}" in stage.world.services.blobs()


@pytest.mark.parametrize("damage", [{"f": 99}, {"at": "x"}, {"ref": "0" * 64}])
def test_a_result_that_cannot_be_read_counts_as_none(stage: Stage, damage: dict[str, Any]) -> None:
    stage.run("quoted", "large")
    (item,) = [one for one in stage.world.services.items("mail") if "#ca#" in str(one["pk"])]
    stage.world.services.perform(Put("mail", {**item, **damage}))
    for _ in range(2):
        assert stage.output(stage.run("quoted", "large")) == 100
    assert flows.CALLS == ["large 1"] * 2


def test_a_result_that_cannot_be_stored_is_used_all_the_same(stage: Stage) -> None:
    def hook(_world: Any, effect: Effect, when: str) -> None:
        if isinstance(effect, Put) and "#ca#" in str(effect.item["pk"]) and when == "before":
            raise ServiceFault("HF275", "no route to host")

    stage.world.hook = hook
    run = stage.run("quoted")
    stage.rest(HOUR_MS)
    assert (stage.output(run), flows.CALLS) == (100, ["tea 1"])


def test_another_version_of_the_cache_takes_no_earlier_result(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run("quoted")
    monkeypatch.setattr(flows.price, "cache_version", "2")
    stage.run("quoted")
    stage.run("quoted")
    assert flows.CALLS == ["tea 1", "tea 1"]


def test_a_cached_result_waits_for_no_limit(stage: Stage) -> None:
    stage.run("limited")
    stage.client.change_limit("quotes", "test", paused=True)
    stage.rest(60_000)
    run = stage.run("limited")
    assert (stage.output(run), flows.CALLS) == (5, ["slow tea"])


def test_a_call_that_waits_at_a_limit_takes_the_result_of_the_one_before_it(stage: Stage) -> None:
    stage.client.change_limit("quotes", "test", paused=True)
    stage.rest(60_000)
    runs = [stage.run("limited") for _ in range(3)]
    assert [stage.output(run) for run in runs] == [None] * 3
    stage.client.change_limit("quotes", "test", paused=False)
    stage.rest(60_000)
    assert [stage.output(run) for run in runs] == [5, 5, 5]
    assert flows.CALLS == ["slow tea"]
    # The permit that the gate had granted was given back.
    assert stage.output(stage.run("limited", "milk")) == 5
    assert lost(stage.world) == []


def test_a_miss_costs_a_read_and_a_write_and_a_hit_a_read(stage: Stage) -> None:
    def cost(workflow: str) -> tuple[float, float]:
        usage = stage.world.services.usage
        before = usage.read_units, usage.write_units
        stage.run(workflow)
        return usage.read_units - before[0], usage.write_units - before[1]

    for workflow in ("plain", "quoted"):
        stage.run(workflow, "first")
    reads, writes = cost("plain")
    assert cost("quoted") == (reads + 1, writes + 1)
    assert cost("quoted") == (reads + 1, writes)


def test_the_history_in_the_terminal_says_that_the_result_is_from_the_cache(stage: Stage) -> None:
    earlier, later = stage.run("quoted"), stage.run("quoted")
    (row,) = [one for one in stage.events(later) if one["type"] == "TaskSucceeded"]
    printed = "\n".join(line.plain for line in history([row]).lines(300))
    assert f"from the cache, a result of {earlier}" in printed


GROUPED = """
from holdfast import days, task, workflow


@task(cache=days(1), group="heavy")
def weigh(parcel: str) -> int:
    return len(parcel)


@workflow
def count(parcel: str) -> int:
    return weigh(parcel)
"""


def test_a_task_of_a_group_has_a_cache_too(tmp_path: Path) -> None:
    sent = []
    with loaded(tmp_path, GROUPED) as module:
        deployment = Deployment.from_modules([module.__name__], _compile)
        function, programs = local_call(deployment), deployment.programs()

        def called(group: str, payload: bytes) -> tuple[bool, bytes]:
            sent.append(payload)
            return function(group, payload)

        perform = GroupTasks(deployment, called).perform
        world = SimulatorWorld(deployment.setting(programs, lambda: KEYS), perform)
        front = deployment.front(programs, KEYS)
        for chance in (CHANCE, CHANCE[::-1]):
            request = {"workflow": "count", "input": {"parcel": "abc"}}
            run = world.call(front.start("default", request, chance))["execution"]
            world.run()
            assert world.call(front.describe("default", run))["output"] == 3
    assert len(sent) == 1


def test_a_call_with_a_sealed_secret_has_no_place_in_the_cache() -> None:
    text = Sealed("local", b"data", 4).text
    assert place_of(CacheRule(60, "task"), {"token": [text]}) is None
    assert place_of(CacheRule(60, "task"), {"token": ["plain"]}) is not None


CHAIN = machine(
    {
        "work": call("add", "again", Arguments={"n": 1}),
        "again": call("add", Arguments={"n": 1}),
    }
)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_effect_loses_no_result(when: When) -> None:
    def story(hook: Hook) -> list[Any]:
        shop = Shop(CHAIN, hook=hook)
        cached = replace(shop.world.setting, cache_of=lambda _, name: CacheRule(60, name))
        shop.world.setting = cached
        runs = []
        for name in ("one", "two"):
            runs.append(shop.start(name=name))
            shop.world.run(until_ms=shop.world.now_ms + 2 * HOUR_MS)
        assert check(shop.world) == lost(shop.world) == []
        return [shop.history(run).state.output for run in runs]

    counting = CrashAt(None, when)
    assert story(counting) == [{"n": 2}, {"n": 2}]
    for number in counting.numbers:
        assert story(CrashAt(number, when)) == [{"n": 2}, {"n": 2}], number


# -- in a test -------------------------------------------------------------------------------------


def test_a_world_has_one_cache_and_a_test_sees_a_hit() -> None:
    world = World({flows.price: real})
    run = world.run(flows.quoted, "tea")
    assert [call.from_cache for call in run.calls] == [False]
    run = world.run(flows.quoted, "tea")
    assert [call.from_cache for call in run.calls_of(flows.price)] == [True]
    assert run.output == 100
    assert flows.CALLS == ["tea 1"]
    assert World({flows.price: real}).run(flows.quoted, "tea").calls[0].from_cache is False


def test_a_call_that_takes_time_is_the_same_in_both_runs_of_a_test() -> None:
    world = World({flows.price: takes(minutes(5), flows.Quote(sku="tea", cents=7))})
    first, second = world.run(flows.quoted, "tea"), world.run(flows.quoted, "tea")
    assert (first.ended, second.ended) == (minutes(5), timedelta(0))
    assert second.output == 7


def test_a_result_expires_on_the_virtual_clock() -> None:
    run = World({flows.price: real}).run(flows.twice, "tea")
    assert [one.from_cache for one in run.calls_of(flows.price)] == [False, True, False]
    assert run.output == 300


#: Each row: the arguments of a call, and whether it takes the result of an earlier row.
WEIGHED: Final = (
    (1.0, 1, False),
    (1, 1, True),
    (1, 1.0, True),
    (1.0, True, False),
    (1.0, 2, False),
    (1.0, {"sizes": [1.0]}, False),
    (1.0, {"sizes": [1]}, True),
    (1.0, {"sizes": [True]}, False),
)


def test_the_engine_and_a_world_take_the_results_of_the_same_arguments(stage: Stage) -> None:
    workflow = flows.weighed
    world, taken = World({flows.weigh: real}), []
    for kilos, label, _ in WEIGHED:
        run = stage.client.start(workflow.name, {"kilos": kilos, "label": label}).execution
        stage.rest()
        (row,) = [one for one in stage.events(run) if one["type"] == "TaskSucceeded"]
        taken.append("cached" in row.get("holdfast", {}))
        assert world.run(workflow, kilos, label).calls[0].from_cache is taken[-1]
    assert taken == [one for _, _, one in WEIGHED]


# -- the parameters that count ---------------------------------------------------------------------


def test_only_the_named_parameters_have_to_be_equal(stage: Stage) -> None:
    for query, request in (("tea", "r1"), ("tea", "r2"), ("milk", "r3")):
        stage.client.start("searched", {"query": query, "request": request})
        stage.rest()
    assert flows.CALLS == ["tea r1", "milk r3"]


def test_only_the_named_parameters_have_to_be_equal_in_a_world() -> None:
    world = World({flows.search: real})
    runs = [("tea", "r1"), ("tea", "r2"), ("milk", "r3")]
    taken = [world.run(flows.searched, *run).calls[0].from_cache for run in runs]
    assert taken == [False, True, False]


@pytest.mark.parametrize("key", [(), ("other",), "query", ("query", "query")])
def test_a_key_names_parameters_of_the_task(key: Any) -> None:
    def search(query: str, request: str) -> str:
        return query + request

    with pytest.raises(WorkflowError) as refused:
        task(cache=days(1), cache_key=key)(search)
    assert refused.value.code == "HF437"
    assert refused.value.help == 'cache_key=("query",)'


def test_a_key_needs_a_cache() -> None:
    with pytest.raises(WorkflowError) as refused:
        task(cache_key=("query",))(flows.search.function)
    assert refused.value.code == "HF437"


# -- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [timedelta(0), timedelta(seconds=1.5), timedelta(days=91), 60])
def test_a_cache_lasts_from_a_second_to_ninety_days(cache: Any) -> None:
    with pytest.raises(WorkflowError) as refused:
        task(cache=cache)(lambda: 1)
    assert refused.value.code == "HF437"


@pytest.mark.parametrize(
    "options",
    [{"runs_on": Worker("gpu")}, {"runs_on": BatchJob("queue", "job")}, {"batch": Batch(10)}],
)
def test_a_task_whose_result_does_not_reach_the_worker_has_no_cache(
    options: dict[str, Any],
) -> None:
    def charge(items: list[str]) -> list[str]:
        return items

    with pytest.raises(WorkflowError) as refused:
        task(cache=days(1), **options)(charge)
    assert refused.value.code == "HF437"


def test_a_polled_task_has_no_cache() -> None:
    @task(cache=days(1))
    def arrived(parcel: str) -> str | None:
        return parcel or None

    with pytest.raises(WorkflowError) as refused:
        wait_for_condition(arrived, every=days(1))
    assert refused.value.code == "HF370"
