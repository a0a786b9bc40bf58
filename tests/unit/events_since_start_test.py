"""`wait_for_event(…, kept=False)`: events that were stored before the start are not used.

The event of last week must not cancel the run of today. An event between the start and the wait
counts, so there is no gap in which a cancellation is lost.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Client, days, hours, minutes
from holdfast.core.state import Awaiting
from holdfast.runtime import event_claims, event_pointers, inbox
from holdfast.runtime.maintenance import doctor
from holdfast.runtime.storage.spread import Spread
from holdfast.testing import ScriptError, World
from holdfast_simulator.invariants import check, lost
from tests.builders import CHANCE, Shop, machine, wait_for
from tests.unit import events_since_start_flows as flows
from tests.unit.client_kit import MemoryStack

FRESH = {"event": "paid", "key": "k1", "kept": False}


def fresh(target: str | None = None, **fields: Any) -> Any:
    return wait_for("paid", target, **fields) | {"Arguments": FRESH}


class Stage:
    """Executions of one machine, which waits for the event `paid`."""

    def __init__(self, definition: Any) -> None:
        self.shop = Shop(definition)
        self.world = self.shop.world

    def rest(self, milliseconds: int = 1_000) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def begin(self, name: str = "order-1") -> str:
        run = self.shop.start(name=name)
        self.rest()
        return run

    def send(self, event_id: str, data: Any = None) -> None:
        self.shop.send_event(data=data or event_id, event_id=event_id)
        self.rest()

    def outcome(self, run: str) -> Any:
        state = self.shop.history(run).state
        return state.output if state.status == "SUCCEEDED" else state.status

    def require_sound(self) -> None:
        assert check(self.world) == lost(self.world) == []


SLEEPER = machine(
    {"nap": {"Type": "Wait", "Seconds": 600, "Next": "wait"}, "wait": fresh(TimeoutSeconds=86_400)}
)
WAITER = machine({"wait": fresh(TimeoutSeconds=20 * 86_400)})


def test_an_event_of_last_week_is_left_to_others_and_one_after_the_start_is_used() -> None:
    stage = Stage(WAITER)
    stage.send("old")
    stage.rest(7 * 86_400_000)
    run = stage.begin()
    assert stage.outcome(run) == "RUNNING"
    assert "to" not in stage.world.services.items("mail")[0]
    stage.send("new")
    assert stage.outcome(run) == "new"
    stage.require_sound()


def test_an_event_between_the_start_and_the_wait_is_used() -> None:
    stage = Stage(SLEEPER)
    stage.send("old")
    stage.rest(10_000)
    run = stage.begin()
    stage.send("during")
    assert stage.outcome(run) == "RUNNING"
    stage.rest(700_000)
    assert stage.outcome(run) == "during"
    stage.require_sound()


@pytest.mark.parametrize(("before_ms", "is_used"), [(900, True), (1_100, False)])
def test_the_clocks_of_two_hosts_may_differ_by_a_second(before_ms: int, is_used: bool) -> None:
    stage = Stage(WAITER)
    stage.shop.send_event(data="sent", event_id="e1")
    stage.world.now_ms += before_ms
    run = stage.begin()
    assert stage.outcome(run) == ("sent" if is_used else "RUNNING")


def test_a_wait_beside_it_uses_the_kept_event() -> None:
    both = {
        "Type": "Parallel",
        "End": True,
        "Branches": [
            {"StartAt": "new", "States": {"new": fresh()}},
            {"StartAt": "any", "States": {"any": wait_for("paid")}},
        ],
    }
    stage = Stage(machine({"both": both}))
    stage.send("old")
    stage.rest(60_000)
    run = stage.begin()
    stage.send("new")
    assert stage.outcome(run) == ["new", "old"]
    stage.require_sound()


def test_a_retry_counts_from_the_start_of_the_execution() -> None:
    stage = Stage(
        machine({"nap": fresh("wait", TimeoutSeconds=600), "wait": fresh(TimeoutSeconds=86_400)})
    )
    stage.send("old")
    stage.rest(60_000)
    run = stage.begin()
    stage.rest(1_300_000)
    assert stage.outcome(run) == "FAILED"
    stage.send("while-it-had-failed")
    stage.shop.insist(lambda: stage.shop.front.retry(stage.shop.tenant, run, {}, b"12345678"))
    stage.rest()
    stage.send("after")
    assert stage.outcome(run) == "after"
    assert list(stage.shop.history(run).state.used_events) == ["while-it-had-failed", "after"]


def test_an_execution_with_pointers_skips_old_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pointers, "EVENT_POINTERS_FROM", 2)
    names = [f"wait {number}" for number in range(8)]
    states = {
        name: fresh(following) for name, following in zip(names, [*names[1:], None], strict=True)
    }
    stage = Stage(machine(states))
    for number in range(3):
        stage.send(f"old-{number}")
    stage.rest(60_000)
    run = stage.begin()
    for number in range(8):
        stage.send(f"new-{number}")
    assert stage.outcome(run) == "new-7"
    stage.require_sound()


def test_the_sweeper_and_the_doctor_find_nothing_to_do_for_an_old_event() -> None:
    stage = Stage(WAITER)
    stage.send("old")
    stage.rest(60_000)
    run = stage.begin()
    state = stage.shop.history(run).state
    (frame,) = state.frames.values()
    assert isinstance(frame.waiting, Awaiting)
    tenant, now_ms = stage.shop.tenant, stage.world.now_ms
    served = event_pointers.is_served(tenant, state, frame.waiting, now_ms)
    assert stage.world.call(served)
    stage.rest(2 * 3_600_000)
    seen = doctor.report_one(stage.shop.tenant, Spread(), run, None, is_repairing=False)
    assert stage.world.call(seen) == {"examined": 1, "findings": []}


def test_a_fork_counts_from_its_own_start() -> None:
    stage = Stage(machine({"nap": {"Type": "Wait", "Seconds": 1, "Next": "wait"}, "wait": fresh()}))
    run = stage.begin()
    stage.rest(60_000)
    stage.send("first")
    assert stage.outcome(run) == "first"
    stage.send("before-the-fork")
    stage.rest(60_000)
    request = {"step": "wait", "reason": "again", "by": "ann"}
    front, tenant = stage.shop.front, stage.shop.tenant
    told = stage.shop.insist(lambda: front.fork(tenant, run, request, CHANCE[::-1]))
    stage.rest()
    assert stage.outcome(told["execution"]) == "RUNNING"
    stage.send("after-the-fork")
    assert stage.outcome(told["execution"]) == "after-the-fork"


def test_a_claim_of_an_old_event_is_freed_by_the_next_execution() -> None:
    """The claim is of an execution that now waits for new events alone."""
    stage = Stage(WAITER)
    stage.send("old")
    stage.rest(60_000)
    run = stage.begin()
    claim = event_claims.Claim("old", "paid", "k1", "a-worker-that-crashed.3")
    assert stage.world.call(event_claims.take(stage.shop.tenant, run, claim))
    (item,) = stage.world.call(inbox.stored_events(stage.shop.tenant, "paid", "k1"))
    freed = event_claims.freed(stage.shop.tenant, "another", [item], stage.world.now_ms, 0)
    assert [inbox.event_id(one) for one in stage.world.call(freed)] == ["old"]


def test_a_wait_leaves_the_abandoned_claim_of_an_old_event() -> None:
    """Otherwise no worker would wake the executions that use the event."""
    stage = Stage(WAITER)
    stage.send("old")
    stage.rest(600_000)
    claimant = stage.begin("order-1")
    claim = event_claims.Claim("old", "paid", "k1", "a-worker-that-crashed.3")
    assert stage.world.call(event_claims.take(stage.shop.tenant, claimant, claim))
    run = stage.begin("order-2")
    stage.rest(600_000)
    (item,) = stage.world.call(inbox.stored_events(stage.shop.tenant, "paid", "k1"))
    assert (stage.outcome(run), item["cl"]) == ("RUNNING", claim.claim)


# -- in Python -------------------------------------------------------------------------------------


def test_a_cancellation_of_last_week_does_not_cancel_the_run_in_a_test() -> None:
    world = World()
    world.send("app/user.unsubscribed", key="ann", at=-days(7))
    assert world.run(flows.campaign, "ann").output == "sent"
    assert world.run(flows.eager, "ann").output == "cancelled"
    world.send("app/user.unsubscribed", key="ann", at=hours(2))
    assert world.run(flows.campaign, "ann").output == "cancelled"


def test_a_child_counts_from_its_own_start() -> None:
    world = World()
    world.send("app/user.unsubscribed", key="ann", at=minutes(5))
    assert world.run(flows.parent, "ann").output == "sent"


def test_an_event_counts_for_all_rounds_of_an_execution() -> None:
    world = World()
    world.send("go", 1, key="ann", at=minutes(5))
    world.send("go", 2, key="ann", at=minutes(6))
    run = world.run(flows.rounds, "ann", 0)
    assert (run.output, run.ended) == (2, hours(1))


@pytest.mark.parametrize("at", [-days(15), -1])
def test_an_event_before_the_start_is_at_most_as_old_as_kept_events_are(at: Any) -> None:
    with pytest.raises(ScriptError, match=r"send\(at=…\)"):
        World().send("go", 1, key="ann", at=at)


def test_an_old_event_stays_in_the_list_of_kept_events() -> None:
    stack = MemoryStack(flows.__name__)
    client = Client.of(stack.api)
    client.event("app/user.unsubscribed", "ann", None, id="old")
    stack.world.now_ms += 60_000
    run = client.start("campaign", {"user": "ann"}).execution
    stack.world.run(until_ms=stack.world.now_ms + 1_000)
    assert client.describe(run)["status"] == "RUNNING"
    assert [one["event"] for one in client.events()] == ["old"]
    client.event("app/user.unsubscribed", "ann", None, id="new")
    stack.world.run(until_ms=stack.world.now_ms + 1_000)
    assert client.describe(run)["output"] == "cancelled"
    assert [one["event"] for one in client.events()] == ["old"]
