"""Pointers to unread events: an execution that receives many events reads the unread ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.runtime import event_pointers, inbox
from holdfast.runtime.effects import Effect, Put
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import CrashAt, Hook, SimulatorWorld, When, no_faults
from tests.builders import Machine, Shop, machine, wait_for
from tests.thorough import some

#: The tests change over after so many events, so that they are quick.
FEW = 2


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pointers, "EVENT_POINTERS_FROM", FEW)


def entity(events: int, *, naps: bool = False) -> Machine:
    """Return a machine that waits for events and keeps their numbers. With `naps` it then waits for
    ten seconds, and the wakes of other events find it in another state.
    """
    got = {"got": "{% $append($got, [$states.result]) %}"}
    again = {"Condition": f"{{% $count($got) < {events} %}}", "Next": "waiting"}
    return machine(
        {
            "begin": {"Type": "Pass", "Assign": {"got": []}, "Next": "waiting"},
            "waiting": wait_for("paid", "nap" if naps else "again?", Assign=got),
            "nap": {"Type": "Wait", "Seconds": 10, "Next": "again?"},
            "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
            "done": {"Type": "Succeed", "Output": "{% $got %}"},
        }
    )


class Entity:
    def __init__(
        self, events: int, hook: Hook = no_faults, *, naps: bool = False, shop: Shop | None = None
    ) -> None:
        self.shop = shop or Shop(entity(events, naps=naps), hook=hook)
        self.run = self.shop.start()
        self.rest()

    def rest(self, seconds: float = 1) -> None:
        self.shop.world.run(until_ms=self.shop.world.now_ms + int(seconds * 1_000))

    def send(self, numbers: Iterable[int]) -> None:
        """Send the events at once. Their ids are not in the order of their times."""
        for number in numbers:
            self.shop.world.now_ms += 1
            self.shop.send_event(data=number, event_id=f"e{97 * number % 101:03d}")

    def got(self, seconds: float = 600) -> list[int]:
        """Return the events that the execution has got. It ends before the sweeper looks for unread
        events, an hour after its last record.
        """
        self.rest(seconds)
        state = self.shop.history(self.run).state
        assert check(self.shop.world) == lost(self.shop.world) == []
        assert state.status == "SUCCEEDED"
        output: Any = state.output
        return list(output)


def pointers(shop: Shop) -> list[str]:
    rows = shop.world.services.items("mail")
    return [str(row["id"]) for row in rows if str(row["sk"]).startswith("e#") and "id" in row]


def registration(shop: Shop) -> Any:
    rows = shop.world.services.items("mail")
    return next(dict(row) for row in rows if str(row["sk"]).startswith("w#"))


def without_mark(shop: Shop) -> None:
    """Put the registration as older code does, and as a worker that was frozen does."""
    row = {name: value for name, value in registration(shop).items() if name not in ("pt", "pc")}
    shop.world.services.perform(Put("mail", row))


def test_a_late_event_costs_what_an_early_one_costs() -> None:
    entity = Entity(80)
    bills = []
    for number in range(79):
        before = entity.shop.world.services.usage.copy()
        entity.send([number])
        entity.rest()
        used = entity.shop.world.services.usage.minus(before)
        bills.append((used.write_units, used.read_units, used.sqs_send_requests))

    # The event, its claim, its pointer and the end of that, a record, the waits in the index;
    # registrations before and after the event is stored, the log, pointers, the event, and for the
    # next wait the registration and the pointers. A record with a snapshot has further write units.
    assert {bill[1:] for bill in bills[10:]} == {(6.5, 1)}
    assert sorted(writes for writes, _, _ in bills[10:])[: 69 - 8] == [6] * 61
    assert len(pointers(entity.shop)) <= 1


def test_old_events_cost_a_wait_nothing_that_takes_no_kept_ones() -> None:
    flow = entity(20)
    flow["States"]["waiting"]["Arguments"]["kept"] = False
    shop = Shop(flow)
    for number in range(50):
        shop.send_event(data=-1, event_id=f"old{number}")
    shop.world.now_ms += 600_000
    late = Entity(20, shop=shop)
    bills = []
    for number in range(19):
        before = shop.world.services.usage.copy()
        late.send([number])
        late.rest()
        bills.append(shop.world.services.usage.minus(before).read_units)
    late.send([19])

    assert set(bills[FEW + 1 :]) == {6.5}
    assert late.got() == list(range(20))


@pytest.mark.parametrize("naps", [False, True])
def test_events_are_used_in_the_order_in_which_they_were_stored(*, naps: bool) -> None:
    entity = Entity(40, naps=naps)
    for begin in range(0, 40, 8):
        entity.send(range(begin, begin + 8))
        entity.rest(0 if begin % 16 else 5)

    assert entity.got() == list(range(40))


def test_an_event_whose_sender_knows_no_pointers_is_used_at_its_wake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entity = Entity(FEW + 4)
    for number in range(FEW + 2):
        entity.send([number])
        entity.rest()
    with monkeypatch.context() as patch:
        patch.setattr(event_pointers, "put_for", lambda *_: iter(()))
        entity.send([FEW + 2])
        entity.rest()
    entity.send([FEW + 3])

    assert entity.got() == list(range(FEW + 4))


def test_a_registration_that_lost_its_mark_makes_the_next_wait_read_all_events() -> None:
    entity = Entity(FEW + 5, naps=True)
    for number in range(FEW + 2):
        entity.send([number])
        entity.rest(30)
    assert registration(entity.shop)[event_pointers.ASKED]
    without_mark(entity.shop)
    entity.send([FEW + 2, FEW + 3])
    entity.rest()
    entity.send([FEW + 4])

    assert entity.got() == list(range(FEW + 5))


def test_an_event_behind_a_page_of_dropped_events_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_pointers, "_POINTERS_READ_MAX", 2)
    entity = Entity(FEW + 3, naps=True)
    services = entity.shop.world.services
    for number in range(FEW + 1):
        entity.send([number])
        entity.rest(30)
    entity.send([FEW + 1])
    entity.rest()
    dropped = range(50, 55)
    entity.send(dropped)
    for row in services.items("mail"):
        if str(row["sk"]).startswith("e#e") and json.loads(str(row["v"])) in dropped:
            services.perform(Put("mail", {**row, inbox.ADDRESSEE: inbox.DROPPED}))
    entity.send([FEW + 2])

    assert entity.got() == list(range(FEW + 3))
    assert len(pointers(entity.shop)) <= 1


def test_a_change_over_that_lost_its_mark_does_not_count() -> None:
    """A worker that was frozen puts the registration between the two steps of a change-over. An
    event that comes then has no pointer.
    """
    done: list[Effect] = []

    def thaw(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_asked = isinstance(effect, Put) and event_pointers.ASKED in effect.item
        if is_asked and when == "after" and not done:
            done.append(effect)
            without_mark(shop)

    entity = Entity(FEW + 4, thaw, naps=True)
    shop = entity.shop
    for number in range(FEW + 1):
        entity.send([number])
        entity.rest(30)
    assert done
    entity.send(range(FEW + 1, FEW + 4))

    assert entity.got() == list(range(FEW + 4))


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_event_is_lost_or_used_twice_when_a_host_crashes_at_any_effect(when: When) -> None:
    def story(hook: Hook) -> list[int]:
        entity = Entity(FEW + 3, hook)
        for numbers in ([0], [1], [2, 3], [4]):
            entity.send(numbers)
            entity.rest(300)
        return entity.got(86_400)

    counting = CrashAt(None, when)
    assert story(counting) == list(range(FEW + 3))
    for number in some(counting.numbers):
        # A late event may overtake: the wake of the event before it came back after a crash.
        assert sorted(story(CrashAt(number, when))) == list(range(FEW + 3)), number


def test_a_retry_of_the_execution_registers_anew() -> None:
    entity = Entity(FEW + 3)
    for number in range(FEW + 1):
        entity.send([number])
        entity.rest()
    entity.shop.stop(entity.run)
    entity.rest(120)
    assert entity.shop.history(entity.run).state.status == "ABORTED"
    entity.send([FEW + 1])
    entity.shop.insist(
        lambda: entity.shop.front.retry("default", entity.run, {"reason": "again"}, bytes(8))
    )
    entity.rest(120)
    assert registration(entity.shop)[inbox.RETRIES] == 1
    entity.send([FEW + 2])

    assert entity.got() == list(range(FEW + 3))
