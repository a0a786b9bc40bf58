"""The functions' bodies: batches with partial failures, events from the bus, the minute's round."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import pytest

from holdfast import resources
from holdfast.aws import host
from holdfast.core.run_ids import spread_of
from holdfast.errors import HoldfastBug, ServiceFault
from holdfast.limits import OPEN_COUNT_MINUTES, VISIBILITY_SECONDS
from holdfast.runtime import messages
from holdfast.runtime.commands import counts, pools, schedules
from holdfast.runtime.effects import Effect, Message, PutIfAbsent, Send
from holdfast.runtime.storage.format_control import SPREAD_MINTED_MS
from holdfast.runtime.worker.leases import ReceivedMessage
from tests.builders import CHANCE, Shop, chain, machine, wait_for
from tests.unit.host_kit import Context, Site, site

RUN = "0" * 26


def send(found: Site, *bodies: Any) -> None:
    found.shop.world.services.perform(Send(tuple(Message(body) for body in bodies)))


def test_a_batch_runs_its_executions_to_their_ends() -> None:
    found = site(chain(2))
    runs = []
    for number in range(3):
        request = {"workflow": "flow", "input": {"n": number}}
        answer = found.shop.world.call(found.host.front.start("default", request, bytes([number])))
        runs.append(answer["execution"])

    assert found.work() == []
    assert [found.shop.history(run).state.output for run in runs] == [{"n": 2}, {"n": 3}, {"n": 4}]
    assert found.shop.world.services.depth("work") == 0


def test_messages_and_their_tasks_run_in_threads_where_there_are_any() -> None:
    found = Site(Shop(chain(2)), has_threads=True)
    runs = [found.shop.start({"n": 0}, name="a")]
    found.shop.world.now_ms += 1
    runs.append(found.shop.start({"n": 5}, name="b"))

    assert found.work() == []
    assert [found.shop.history(run).state.output for run in runs] == [{"n": 2}, {"n": 7}]


def test_a_task_that_hangs_takes_no_thread_from_the_next_invocation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "ATTEMPTS_IN_FLIGHT_MAX", 1)
    found, gate = Site(Shop(chain(1)), has_threads=True), threading.Event()
    with found.host.task_pool() as pool:
        assert pool is not None
        hanging = [pool.submit(gate.wait) for _ in range(resources.WORK.batch_size)]
        queued = pool.submit(gate.wait)
    with found.host.task_pool() as pool:
        assert pool is not None
        told = pool.submit(lambda: "ran").result(timeout=60)
    gate.set()

    assert told == "ran"
    assert queued.cancelled()
    assert all(future.result(timeout=60) for future in hanging)


def test_a_process_in_which_too_many_tasks_hang_ends_before_it_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "ATTEMPTS_IN_FLIGHT_MAX", 1)
    monkeypatch.setattr("os._exit", sys.exit)
    found, gate = Site(Shop(chain(1)), has_threads=True), threading.Event()
    for _ in range(2):
        with found.host.task_pool() as pool:
            assert pool is not None
            for _ in range(resources.WORK.batch_size):
                pool.submit(gate.wait)
    with pytest.raises(SystemExit), found.host.task_pool():
        raise AssertionError("it goes on")
    gate.set()

    assert [what for what, _ in found.faults] == ["the process ends"]


def test_one_bad_message_comes_back_alone() -> None:
    found = site(chain(1))
    run = found.shop.start({"n": 0})
    send(found, {"k": "?"}, "text", {**messages.start("default", RUN), "f": 99}, [])
    (start,) = found.shop.world.services.receive("starts")
    send(found, start.body)

    assert len(found.work()) == 4
    assert found.shop.history(run).state.output == {"n": 1}
    assert len(found.faults) == 3  # newer code's message is no fault
    assert all(isinstance(error, HoldfastBug) for _, error in found.faults)


def test_a_start_without_its_fields_comes_back_and_is_logged() -> None:
    found = site(chain(1))
    send(found, messages.start("default", RUN))

    assert len(found.work()) == 1
    assert len(found.faults) == 1


def test_the_batch_is_hidden_for_as_long_as_a_worker_may_live_unseen() -> None:
    found = site(chain(1))
    found.shop.start({"n": 0})
    found.work()

    assert [seconds for _, seconds in found.ports.hidden] == [VISIBILITY_SECONDS]


def test_past_its_limit_an_invocation_writes_nothing_and_gives_its_message_back() -> None:
    found = site(chain(1))
    found.shop.start({"n": 0})

    assert len(found.work(context=Context(left_ms=100))) == 1
    assert found.shop.world.services.items("executions") == []


def test_a_message_of_the_single_queue_is_hidden_there() -> None:
    found = site(machine({"it": wait_for("paid")}))
    body = messages.recover("default", RUN, ("m1",))
    found.shop.world.services.perform(Send((Message(body),), queue="single"))

    assert found.work("single") == []
    assert found.shop.world.services.depth("single") == 0


# -- events and the minute -------------------------------------------------------------------------


def test_an_event_from_the_bus_reaches_the_waiting_execution() -> None:
    found = site(machine({"it": wait_for("paid")}))
    run = found.shop.start()
    found.work()
    found.host.events({"id": "b1", "detail": {"name": "paid", "key": "k1", "data": 5}})
    found.work()

    assert found.shop.history(run).state.output == 5


def test_a_fault_while_an_event_arrives_is_thrown_back_to_the_bus() -> None:
    def down(world: Any, effect: Effect, when: str) -> None:
        raise AssertionError

    found = site(machine({"it": wait_for("paid")}))

    def perform(effect: Effect) -> Any:
        if isinstance(effect, PutIfAbsent):
            raise ServiceFault("HF321", "slow down")
        return found.shop.world.services.perform(effect)

    found.ports.perform = perform  # type: ignore[method-assign]
    with pytest.raises(ServiceFault):
        found.host.events({"id": "b1", "detail": {"name": "paid", "key": "k1", "data": 5}})


def test_the_minute_sweeps_every_shard_and_sends_dead_letters_round() -> None:
    found = site(machine({"it": wait_for("paid")}))
    services = found.shop.world.services
    run = found.shop.start()
    found.work()
    send(found, messages.wake_mail("default", run, "e"), {"k": "?"})
    while services.depth("work"):
        services.receive("work")
        found.shop.world.now_ms += 3_600_000
    assert services.depth("work-dlq") == 2
    found.host.sweeper(Context())

    revived = [received.body for received in services.receive("single")]
    assert [(body["k"], body["run"]) for body in revived] == [("recover", run)]
    assert services.depth("work-dlq") == 1  # An unreadable message stays for a person
    assert [what for what, _ in found.faults] == ["a dead letter was not revived"]
    assert services.metrics[resources.METRIC_SWEEP_REFUSED] == 1


def test_a_shard_that_fails_does_not_keep_the_others_from_being_swept() -> None:
    found = site(machine({"it": wait_for("paid")}))
    asked: list[str] = []

    def perform(effect: Effect) -> Any:
        partition = str(getattr(effect, "pk", ""))
        if partition.startswith("~due#"):
            asked.append(partition)
            if partition == "~due#3":
                raise ServiceFault("HF321", "slow down")
        return found.shop.world.services.perform(effect)

    found.ports.perform = perform  # type: ignore[method-assign]
    found.host.sweeper(Context())

    assert len(asked) == 16
    assert [what for what, _ in found.faults] == ["a shard was not swept"]
    assert found.shop.world.services.metrics[resources.METRIC_SWEEP_REFUSED] == 1


def test_a_greater_spread_of_the_deployment_reaches_the_ids_and_the_sweep() -> None:
    """The sweeper stores it; the API and the workers read it once a minute."""
    found = site(machine({"it": wait_for("paid")}))
    world = found.shop.world

    def start() -> str:
        request = {"workflow": "flow", "input": {"n": 0}}
        return str(found.request("POST", "/executions", request)[1]["execution"])

    runs = [start()]
    found.host.spread = 4
    found.host.sweeper(Context())
    runs.append(start())
    world.now_ms += SPREAD_MINTED_MS
    runs.append(start())
    assert [spread_of(run) for run in runs] == [0, 0, 4]

    asked: set[str] = set()

    def perform(effect: Effect) -> Any:
        asked.add(str(getattr(effect, "pk", "")))
        return world.services.perform(effect)

    found.ports.perform = perform  # type: ignore[method-assign]
    while found.work() or world.services.depth("starts"):
        pass
    found.host.sweeper(Context())
    assert {f"~due#{shard}" for shard in range(128)} <= asked
    handed = [json.loads(one.text) for one in world.services.queue("work").messages.values()]
    shards = [body["shard"] for body in handed if body["k"] == messages.SWEEP_STARTS]
    assert shards == [*range(128)] * 2  # one of each sweep
    while world.services.depth("work"):
        assert found.work("work") == []
    assert found.faults == []


def test_ids_of_starts_differ_though_they_come_in_the_same_moment() -> None:
    found = site(chain(1))
    statuses = [
        found.request("POST", "/executions", {"workflow": "flow", "input": {"n": 0}})
        for _ in range(3)
    ]

    assert len({answer["execution"] for _, answer in statuses}) == 3
    assert CHANCE.hex() not in str(statuses)


def test_a_delivery_knows_whether_others_would_die_with_its_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def note(_setting: Any, delivery: ReceivedMessage) -> Any:
        seen.append(delivery.is_alone)
        return True
        yield

    monkeypatch.setattr("holdfast.aws.host.deliver", note)
    found = site(chain(1))
    send(found, messages.recover("default", RUN))
    found.work()
    send(found, messages.recover("default", RUN), messages.recover("default", RUN))
    found.work()

    assert seen == [True, False, False]


def test_a_sweep_stores_the_schedules_of_the_code_for_the_tenant_of_iam_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployed: list[tuple[str, Any]] = []

    def deploy(tenant: str, plans: Any) -> Any:
        deployed.append((tenant, plans))
        return
        yield  # a handler is a generator

    monkeypatch.setattr(schedules, "deploy", deploy)
    found = site(chain(1))
    found.host.schedules = {}
    found.host.sweeper(Context())
    assert deployed == [("default", found.host.schedules)]


def test_a_sweep_counts_the_open_executions_and_the_pools_in_some_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []

    def counting(what: str) -> Any:
        def count(*given: Any) -> Any:
            assert "default" in given
            counted.append(what)
            return
            yield  # a handler is a generator

        return count

    monkeypatch.setattr(counts, "measure_open", counting("executions"))
    monkeypatch.setattr(pools, "measure_pools", counting("pools"))
    found = site(chain(1))
    found.shop.world.now_ms -= found.shop.world.now_ms % (OPEN_COUNT_MINUTES * 60_000)
    found.host.sweeper(Context())
    assert counted == ["executions", "pools"]
    found.shop.world.now_ms += 60_000
    found.host.sweeper(Context())
    assert counted == ["executions", "pools"]
