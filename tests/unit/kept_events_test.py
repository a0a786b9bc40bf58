"""Kept events: the list says which events no execution has used, and an operator can drop one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, ReplyTimeout, RequestRejected
from holdfast.errors import RequestError
from holdfast.runtime import inbox
from holdfast.runtime.effects import Effect, Update
from holdfast_simulator.world import no_faults
from tests.unit import conversation_flows
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

PLACE = ("order.paid", "k")

SLOW = """
from __future__ import annotations

from holdfast import minutes, receive, sleep, workflow


@workflow(key="key", starts_on="slow")
def slow(key: str) -> str:
    with receive("slow", int, key=key) as request:
        sleep(minutes(1))
        request.reply(request.data)
    return key
"""


@pytest.fixture
def stack() -> MemoryStack:
    stack = MemoryStack(conversation_flows.__name__)
    stack.site.ports.performs = stack.world.perform
    return stack


@pytest.fixture
def client(stack: MemoryStack) -> Client:
    return Client.of(stack.api)


def run_for(stack: MemoryStack, milliseconds: int = 1_000) -> None:
    until_ms = stack.world.now_ms + milliseconds
    stack.world.run(until_ms=until_ms)
    stack.world.now_ms = until_ms


def ended_order(stack: MemoryStack, client: Client) -> str:
    """Return an order of the key that has waited for a payment, and was stopped."""
    run = client.start("order", {"order_id": "k"}).execution
    run_for(stack)
    client.stop(run)
    run_for(stack)
    return run


def ids(rows: list[Any]) -> list[str]:
    return [row["event"] for row in rows]


def test_events_after_the_end_of_the_execution_that_waited_are_listed(
    stack: MemoryStack, client: Client
) -> None:
    ended_order(stack, client)
    client.event(*PLACE, 5, id="e1")
    run_for(stack)
    assert client.event(*PLACE, 6, id="e2")["waiting"] == 0
    newest, oldest = client.events()
    assert (newest["event"], oldest["event"]) == ("e2", "e1")
    assert (oldest["name"], oldest["key"], oldest["type"]) == (*PLACE, "int")
    assert oldest["at"] < newest["at"] < newest["expires"]


def test_an_event_that_the_ended_execution_has_used_is_not_kept(
    stack: MemoryStack, client: Client
) -> None:
    client.start("order", {"order_id": "k"})
    run_for(stack)
    client.event(*PLACE, 5, id="e1")
    client.event("order.delivered", "k", "at the door")
    run_for(stack)
    client.event(*PLACE, 5, id="e1")  # sent again by a caller that had no answer
    run_for(stack)
    assert client.events() == client.events(*PLACE) == []


def test_a_retried_execution_is_woken_again(stack: MemoryStack, client: Client) -> None:
    run = ended_order(stack, client)
    client.event(*PLACE, 5, id="e1", execution=run)
    run_for(stack)
    [kept] = client.events()
    assert kept["execution"] == run
    client.retry(run, "it was stopped too early")
    run_for(stack)
    assert client.describe(run)["published"]["paid"] == 5
    assert client.events() == []


def test_a_late_worker_does_not_hide_the_wait_of_a_retry(
    stack: MemoryStack, client: Client
) -> None:
    """The worker has loaded the ended log, and marks the registration after the retry."""
    run = ended_order(stack, client)

    def retry_first(_world: Any, effect: Effect, when: str) -> None:
        if when == "before" and isinstance(effect, Update) and inbox.OVER in effect.put:
            stack.world.hook = no_faults
            client.drop_event(*PLACE, "e1", "of another order")
            client.retry(run, "it was stopped too early")

    stack.world.hook = retry_first
    client.event(*PLACE, 5, id="e1")
    run_for(stack)
    assert stack.world.hook is no_faults
    assert client.event(*PLACE, 7, id="e2")["waiting"] == 1
    run_for(stack)
    assert client.describe(run)["published"]["paid"] == 7


def test_all_events_of_a_key_are_listed_with_the_execution_that_may_use_them(
    stack: MemoryStack, client: Client
) -> None:
    client.event("session.click", "ann", "home", id="e1")
    run_for(stack)
    stack.works = False
    run = client.event("session.click", "ann", "shop", id="e2")["execution"]
    [kept] = client.events("session.click", "ann")
    assert (kept["event"], kept["execution"]) == ("e2", run)
    assert client.events() == []


def test_a_dropped_event_is_used_by_no_execution(stack: MemoryStack, client: Client) -> None:
    client.event(*PLACE, 5, id="e1")
    client.event(*PLACE, 6, id="e2")
    assert client.drop_event(*PLACE, "e1", "paid by mistake", by="ann")["used_by"] == []
    assert ids(client.events()) == ids(client.events(*PLACE)) == ["e2"]
    run = client.start("order", {"order_id": "k"}).execution
    run_for(stack)
    assert client.describe(run)["published"]["paid"] == 6
    assert client.event(*PLACE, 5, id="e1")["dropped"] is True
    assert client.drop_event(*PLACE, "e2", "too late")["used_by"] == [run]


def test_a_dropped_request_is_rejected(stack: MemoryStack, client: Client) -> None:
    with pytest.raises(ReplyTimeout):
        client.request("review", "k", {"verdict": "edit"}, id="r1", timeout=0)
    assert client.events()[0]["name"] == "review?"
    client.drop_event("review?", "k", "r1", "the draft is gone")
    with pytest.raises(RequestRejected, match="the draft is gone") as rejected:
        client.reply("r1", timeout=0)
    assert rejected.value.error == "RequestDropped"


def test_a_request_that_an_execution_works_on_is_not_rejected(
    tmp_path: Path,
) -> None:
    with loaded(tmp_path, SLOW) as module:
        stack = MemoryStack(module.__name__)
        stack.site.ports.performs = stack.world.perform
        client = Client.of(stack.api)
        with pytest.raises(ReplyTimeout):
            client.request("slow", "k", 5, id="r1", timeout=0)
        run_for(stack)
        (run,) = client.drop_event("slow?", "k", "r1", "too slow")["used_by"]
        run_for(stack, 120_000)
        assert client.reply("r1", timeout=0) == 5
        assert client.describe(run)["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (("order.paid", "k", "e9", "why"), "HF340"),
        (("order.paid", "", "e1", "why"), "HF202"),
        (("", "k", "e1", "why"), "HF340"),
        (("x" * 2_000, "k", "e1", "why"), "HF340"),
        (("order.paid", "k", "a b", "why"), "HF201"),
        (("order.paid", "k", "e1", " "), "HF234"),
    ],
)
def test_a_wrong_drop_is_refused(client: Client, given: tuple[str, ...], code: str) -> None:
    client.event(*PLACE, 5, id="e1")
    with pytest.raises(RequestError) as refused:
        client.drop_event(*given)
    assert refused.value.code == code
    assert ids(client.events()) == ["e1"]
