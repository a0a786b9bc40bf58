"""Keyed workflows at their edges: retries, crashes between two writes, and several workers."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Client
from holdfast.errors import HoldfastError, RequestError, ServiceFault
from holdfast.runtime.effects import Effect, Put, PutIfAbsent, QueueName, RunTask, Update
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT_FIELD
from holdfast_simulator.services import WORK_QUEUES
from holdfast_simulator.world import Killed, no_faults
from tests.builders import CHANCE
from tests.unit import keyed_flows
from tests.unit.client_kit import MemoryStack
from tests.unit.keyed_test import ADD, CHECKOUT, executions

MINUTE_MS = 60_000


@pytest.fixture
def stack() -> MemoryStack:
    stack = MemoryStack(keyed_flows.__name__)
    stack.site.ports.performs = stack.world.perform
    return stack


@pytest.fixture
def client(stack: MemoryStack) -> Client:
    return Client.of(stack.api)


def pass_time(stack: MemoryStack, milliseconds: int) -> None:
    until_ms = stack.world.now_ms + milliseconds
    stack.world.run(until_ms=until_ms)
    stack.world.now_ms = max(stack.world.now_ms, until_ms)


def outputs(client: Client, workflow: str = "cart") -> list[Any]:
    return [one.get("output", one["status"]) for one in executions(client, workflow)]


def killed_at(stack: MemoryStack, kind: type[Effect], mark: str, when: str = "after") -> None:
    """Kill the process at the first effect of the kind whose text holds the mark."""

    def hook(_world: Any, effect: Effect, at: str) -> None:
        if at == when and isinstance(effect, kind) and mark in repr(effect):
            stack.world.hook = lambda *_: None
            raise Killed

    stack.world.hook = hook


def is_refused_for_now(client: Client, event: str, data: Any) -> bool:
    with pytest.raises(ServiceFault) as refused:
        client.event(event, "c1", data)
    return refused.value.code == "HF562"


# -- retries ---------------------------------------------------------------------------------------


def test_an_event_after_the_end_of_a_retried_execution_starts_the_next_one(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    client.stop(run)
    client.retry(run)
    client.event("cart", "c1", CHECKOUT)
    assert client.describe(run)["status"] == "SUCCEEDED"
    stack.world.now_ms += 1
    assert client.event("cart", "c1", ADD | {"sku": "jam"})["execution"] != run
    client.event("cart", "c1", CHECKOUT)
    assert outputs(client) == [["tea"], ["jam"]]


def test_events_that_a_retried_execution_has_not_used_start_the_next_one(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    client.stop(run)
    client.retry(run)
    stack.works = False
    for one in (CHECKOUT, ADD | {"sku": "jam"}, CHECKOUT):
        client.event("cart", "c1", one)
        stack.world.now_ms += 1
    pass_time(stack, MINUTE_MS)
    assert outputs(client) == [["tea"], ["jam"]]


def test_an_event_is_refused_for_now_between_a_retry_and_its_record(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    client.stop(run)
    stack.works = False
    client.retry(run)
    assert is_refused_for_now(client, "cart", CHECKOUT)
    stack.works = True
    pass_time(stack, 1_000)
    assert client.event("cart", "c1", CHECKOUT)["execution"] == run


def test_an_event_from_the_bus_or_a_workflow_waits_for_the_record_of_a_retry(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    client.stop(run)
    stack.works = False
    client.retry(run)
    sent = {"name": "cart", "key": "c1", "data": CHECKOUT}
    with pytest.raises(ServiceFault, match="HF562"):  # so Lambda delivers it again
        stack.world.call(stack.front.bus_event("default", "b1", sent, CHANCE))
    shopper = client.start("shopper", {"cart_id": "c1"}).execution
    _deliver(stack, "starts")
    assert "is about to be retried" in str(stack.world.faults)
    pass_time(stack, 5 * MINUTE_MS)
    assert client.describe(shopper)["status"] == "SUCCEEDED"
    assert client.events() == []
    stack.works = True
    client.event("cart", "c1", CHECKOUT)
    assert outputs(client)[0] == ["tea", "tea"]


def _deliver(stack: MemoryStack, queue: QueueName) -> None:
    for received in stack.world.services.receive(queue):
        stack.world.deliver(received, queue)


def test_events_of_an_end_wait_for_a_retry_that_never_comes(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    stack.works = False
    client.event("cart", "c1", ADD | {"sku": "jam"})
    client.stop(run)

    def hook(_world: Any, effect: Effect, at: str) -> None:
        # the end is stored; the API holds the key, and crashes before it stores the retry
        if at == "before" and isinstance(effect, Update) and f"'{run}'" in repr(effect.where):
            killed_at(stack, Update, "'held'")
            with pytest.raises(Killed):
                client.retry(run)

    stack.world.hook = hook
    pass_time(stack, 40 * MINUTE_MS)
    stack.works = True
    client.event("cart", "c1", CHECKOUT)
    found = {one["execution"]: one.get("output") for one in executions(client, "cart")}
    assert found.pop(run) is None
    assert [sku for output in found.values() for sku in output] in (["jam"], [])


def test_a_late_retry_is_void_when_another_execution_has_the_key(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("move", "c1", 1)["execution"]
    client.stop(run)
    stack.works = False
    client.retry(run)
    stack.world.now_ms += 17 * MINUTE_MS  # the workers are behind
    other = client.event("move", "c1", 2)["execution"]
    pass_time(stack, 1_000)
    found = {one["execution"]: one["status"] for one in client.list(workflow="account")}
    assert found == {run: "ABORTED", other: "RUNNING"}
    told = client.describe(run)["void_retry"]
    assert told == f"[HF561] execution {other} runs for the key 'c1' of account"
    client.stop(other)
    pass_time(stack, 1_000)
    client.retry(run)
    pass_time(stack, 1_000)
    client.stop(run)
    assert "void_retry" not in client.describe(run)


def test_a_retried_execution_keeps_the_rows_of_its_key(stack: MemoryStack, client: Client) -> None:
    run = client.event("move", "c1", 1)["execution"]
    client.stop(run)
    rows = [
        (keys.slot("default", "account", "c1"), keys.ONLY),
        (keys.inbox("default", run), keys.BUSINESS_KEY),
    ]

    def has_ttl() -> list[bool]:
        items = {(i["pk"], i["sk"]): i for i in stack.world.services.items(tables.MAIL)}
        return ["ttl" in items[row] for row in rows]

    assert has_ttl() == [True, True]
    stack.works = False
    client.retry(run)
    assert has_ttl() == [True, True]  # the retry may never be carried out
    pass_time(stack, 1_000)
    assert has_ttl() == [False, False]


def test_a_second_request_of_a_retry_gives_a_continued_execution_no_end(
    stack: MemoryStack, client: Client
) -> None:
    """It comes between the worker's hold of the key and the record of the retry."""
    run = client.event("move", "c1", 1)["execution"]
    client.stop(run)

    def ask_again(_world: Any, effect: Effect, at: str) -> None:
        if at == "before" and isinstance(effect, PutIfAbsent) and run in repr(effect.item["pk"]):
            stack.world.hook, stack.works = no_faults, False
            client.retry(run)

    stack.works = False
    client.retry(run)
    stack.world.hook = ask_again
    pass_time(stack, 1_000)
    assert stack.world.hook is no_faults
    assert client.describe(run)["status"] == "RUNNING"
    slot = (keys.slot("default", "account", "c1"), keys.ONLY)
    [row] = [i for i in stack.world.services.items(tables.MAIL) if (i["pk"], i["sk"]) == slot]
    assert "ttl" not in row


# -- starts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before record 0", "while the first task runs"])
def test_the_first_task_runs_once_in_a_burst_of_events(
    stack: MemoryStack, client: Client, moment: str
) -> None:
    stack.works = False
    client.event("move", "c1", 1)
    is_begun: list[bool] = []

    def hook(world: Any, effect: Effect, at: str) -> None:
        if at == "before" and isinstance(effect, RunTask) and not is_begun:
            is_begun.append(True)
            client.event("move", "c1", 2)
            while world._deliver_visible():
                pass

    if moment == "before record 0":
        client.event("move", "c1", 2)
    else:
        stack.world.hook = hook
    pass_time(stack, MINUTE_MS)
    assert list(stack.world.task_runs.values()) == [1]


def test_an_execution_whose_start_was_not_sent_begins_with_the_next_request(
    stack: MemoryStack, client: Client
) -> None:
    killed_at(stack, Update, "'body'")
    with pytest.raises(Killed):
        client.start("door", {"name": "c1", "floor": 1})
    with pytest.raises(RequestError, match="HF560"):
        client.start("door", {"name": "c1", "floor": 2})
    pass_time(stack, MINUTE_MS)
    (found,) = executions(client, "door")
    assert (found["status"], found["input"]["floor"]) == ("RUNNING", 1)


def test_a_refused_start_leaves_its_name_free(stack: MemoryStack, client: Client) -> None:
    run = client.start("door", {"name": "c1"}).execution
    with pytest.raises(RequestError, match="HF560"):
        client.start("door", {"name": "c1", "floor": 1}, name="n1")
    client.stop(run)
    assert client.start("door", {"name": "c1", "floor": 3}, name="n1").execution != run


# -- ends ------------------------------------------------------------------------------------------


def test_the_next_execution_may_end_while_it_gets_its_events(
    stack: MemoryStack, client: Client
) -> None:
    stack.works = False
    for one in (CHECKOUT, CHECKOUT, ADD, CHECKOUT):
        client.event("cart", "c1", one)
        stack.world.now_ms += 1

    def hook(world: Any, effect: Effect, at: str) -> None:
        if at == "after" and isinstance(effect, Update) and "to" in effect.put:
            stack.world.hook = lambda *_: None
            while world._deliver_visible():
                pass

    stack.world.hook = hook
    pass_time(stack, MINUTE_MS)
    assert sorted(outputs(client)) == [[], [], ["tea"]]


def test_an_event_for_one_execution_alone_ends_with_it(stack: MemoryStack, client: Client) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    stack.works = False
    client.event("cart", "c1", CHECKOUT)
    client.event("cart", "c1", CHECKOUT, execution=run, id="own")
    client.event("cart", "c1", CHECKOUT, id="own")
    pass_time(stack, MINUTE_MS)
    assert outputs(client) == [["tea"]]


def test_a_crash_before_the_wake_of_the_next_execution_delays_no_event(
    stack: MemoryStack, client: Client
) -> None:
    stack.works = False
    for one in (0, 5, 6):
        client.event("move", "c1", one)
        stack.world.now_ms += 1
    moved: list[bool] = []

    def hook(world: Any, effect: Effect, at: str) -> None:
        if isinstance(effect, Update) and "to" in effect.put:
            if at == "before":
                moved.append(True)
            if at == "before" and len(moved) == 2:
                while world._deliver_visible():  # the next execution has read the first event
                    pass
            if at == "after" and len(moved) == 2:
                moved.append(True)
                raise Killed

    stack.world.hook = hook
    pass_time(stack, 16 * MINUTE_MS)
    (other,) = [one["execution"] for one in client.list(workflow="account", status="RUNNING")]
    assert [one["type"] for one in client.history(other)].count("TaskSucceeded") == 3


def test_the_sweeper_asks_again_for_the_hand_over_of_an_end(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("move", "c1", 1)["execution"]
    stack.works = False
    client.stop(run)
    client.event("move", "c1", 7)
    killed_at(stack, Update, "'run'", "before")  # the end is stored, and the key is not released
    stack.world.run(until_ms=stack.world.now_ms)
    for _ in range(2):
        stack.world.now_ms += 65 * MINUTE_MS
        stack.world.sweep()
        _lose_messages(stack)
    pass_time(stack, 130 * MINUTE_MS)
    stack.works = True
    client.event("move", "c1", 0)
    assert outputs(client, "account") == ["ABORTED", 8]


def _lose_messages(stack: MemoryStack) -> None:
    for queue in WORK_QUEUES:
        for received in stack.world.services.receive(queue):
            stack.world.services.delete(received.receipt)


# -- logs that cannot be read ----------------------------------------------------------------------


def _change_log(stack: MemoryStack, run: str, change: dict[str, Any]) -> None:
    items = stack.world.services.items(tables.EXECUTIONS)
    (first,) = (one for one in items if str(one["pk"]).endswith(run) and one["sk"] == 0)
    stack.world.services.perform(Put(tables.EXECUTIONS, {**first, **change}))


def test_an_execution_with_a_damaged_log_keeps_its_key(stack: MemoryStack, client: Client) -> None:
    run = client.start("door", {"name": "c1"}).execution
    _change_log(stack, run, {"ev": b"no record"})
    stack.world.now_ms += 71 * 86_400_000
    assert client.start("door", {"name": "c1"}).execution == run


def test_no_execution_starts_for_a_key_whose_log_has_a_newer_format(
    stack: MemoryStack, client: Client
) -> None:
    run = client.event("move", "c1", 1)["execution"]
    _change_log(stack, run, {FORMAT_FIELD: 99})
    stack.world.now_ms += 71 * 86_400_000
    with pytest.raises(HoldfastError, match="format 99"):
        client.event("move", "c1", 2)
