"""The list of executions by what they wait for: kinds, targets, ages, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import RequestError
from holdfast.limits import WAIT_ROW_KEPT_SECONDS
from holdfast.runtime.effects import Effect, RunTask, TaskFailed
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import Machine, Shop, add, ask, call, machine, wait_for
from tests.thorough import stride
from tests.unit.child_kit import TENANT, Family, call_of

HOUR_MS = 3_600_000
#: An event, a moment of work, then a person.
ORDER = machine(
    {
        "paid?": wait_for("paid", "pack"),
        "pack": call("add", "ok?", Arguments={"n": 1}),
        "ok?": ask(),
    }
)


def found(shop: Shop, **request: str) -> list[str]:
    """Return the names that the list finds."""
    return [row["name"] for row in rows(shop, **request)]


def rows(shop: Shop, **request: str) -> list[Mapping[str, Any]]:
    listed: list[Mapping[str, Any]] = shop.insist(
        lambda: shop.front.executions(shop.tenant, request)
    )["executions"]
    return listed


def started(definition: Machine, tasks: Any = add, seconds: float = 1) -> Shop:
    """Return a shop whose one execution, `order-1`, has run for so long."""
    shop = Shop(definition, tasks)
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + int(seconds * 1_000))
    return shop


def rows_in_mail(shop: Shop) -> list[Any]:
    """Return the rows that do not end soon."""
    items = shop.world.services.items("mail")
    later = shop.world.now_ms // 1_000 + WAIT_ROW_KEPT_SECONDS
    return [item for item in items if "#waits#" in str(item["pk"]) and int(item["ttl"]) > later]


def busy(effect: RunTask) -> TaskFailed:
    return TaskFailed("Busy", "the bank is closed")


RETRIED = call("add", Arguments={"n": 1}, Retry=[{"ErrorEquals": ["Busy"], "IntervalSeconds": 60}])
NAP = {"Type": "Wait", "Seconds": 600, "End": True}
LANES = {
    "Type": "Parallel",
    "Branches": [
        {"StartAt": "paid?", "States": {"paid?": wait_for("paid")}},
        {"StartAt": "ok?", "States": {"ok?": ask()}},
    ],
    "End": True,
}


@pytest.mark.parametrize(
    ("state", "tasks", "wait"),
    [
        (wait_for("paid"), add, "event:paid"),
        (ask(), add, "ask:role:clerk"),
        (NAP, add, "timer:only"),
        (RETRIED, busy, "retry:add"),
        (LANES, add, "event:paid"),
        (LANES, add, "ask:role:clerk"),
    ],
)
def test_the_first_wait_of_an_execution_is_found_by_its_kind_and_its_target(
    state: Machine, tasks: Any, wait: str
) -> None:
    shop = started(machine({"only": state}), tasks)
    kind, _, target = wait.partition(":")

    assert found(shop, waiting_for=wait) == ["order-1"]
    assert found(shop, waiting_for=kind) == ["order-1"]
    assert found(shop, waiting_for=f"{kind}:{target}2") == []
    assert found(shop, waiting_for="limit") == []
    assert rows_in_mail(shop) == []  # its entry says it


def test_a_later_wait_replaces_the_first_one_and_ends_with_the_execution() -> None:
    shop = started(ORDER)
    run = rows(shop)[0]["execution"]
    shop.send_event()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)

    assert found(shop, waiting_for="event:paid") == []
    assert found(shop, waiting_for="ask:role:clerk") == ["order-1"]
    assert [wait["target"] for wait in rows(shop)[0]["waits"]] == ["role:clerk"]
    assert len(rows_in_mail(shop)) == 1

    shop.answer(run, output={})
    shop.world.run()

    assert found(shop, waiting_for="ask") == []
    assert rows_in_mail(shop) == []


def test_a_pause_moves_the_wait_into_the_new_entry() -> None:
    shop = started(ORDER)
    run = rows(shop)[0]["execution"]
    shop.send_event()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    request = {"reason": "the bank is closed"}
    shop.insist(lambda: shop.front.pause(shop.tenant, run, request, b"12345678"))
    shop.world.run(until_ms=shop.world.now_ms + 1_000)

    assert found(shop, waiting_for="ask:role:clerk", paused="true") == ["order-1"]
    assert rows_in_mail(shop) == []


def test_a_retry_is_listed_with_its_last_error() -> None:
    shop = started(machine({"only": RETRIED}), busy)

    assert found(shop, waiting_for="retry", last_error="Busy") == ["order-1"]
    assert found(shop, last_error="Other") == []
    assert rows(shop)[0]["waits"][0]["error"] == "Busy"


def test_a_wait_is_found_by_its_age() -> None:
    shop = started(ORDER)
    begun = _iso(shop.world.now_ms)
    before = _iso(shop.world.now_ms - 2_000)

    assert found(shop, waiting_since=begun) == ["order-1"]
    assert found(shop, waiting_for="event:paid", waiting_since=begun) == ["order-1"]
    assert found(shop, waiting_since=before) == []
    assert found(shop, waiting_for="ask", waiting_since=begun) == []


def test_a_wait_of_a_few_seconds_and_a_task_in_hand_write_no_row() -> None:
    nap = {"Type": "Wait", "Seconds": 3, "Next": "pack"}
    pack = call("add", "nap again", Arguments={"n": 1})
    again = {"Type": "Wait", "Seconds": 4, "End": True}
    shop = started(machine({"nap": nap, "pack": pack, "nap again": again}), seconds=60)

    assert rows(shop)[0]["status"] == "SUCCEEDED"
    assert shop.world.services.effects["Update"] == 0


def test_executions_are_found_by_definition_and_by_the_end_of_their_run() -> None:
    shop = started(machine({"only": call("add", Arguments={"n": 1})}))
    beginning = shop.definition.hash[:7]

    assert found(shop, definition=beginning, ended_since=_iso(0)) == ["order-1"]
    assert found(shop, definition="0000000") == []
    assert found(shop, ended_until=_iso(shop.world.now_ms - HOUR_MS)) == []


def test_children_are_found_by_their_parent_and_the_parent_by_the_child_it_waits_for() -> None:
    family = Family({"outer": machine({"call": call_of("inner")}), "inner": machine({"nap": NAP})})
    run = family.start()
    family.settle()

    def listed(**request: str) -> list[str]:
        answer = family.insist(lambda: family.front.executions(TENANT, request))
        return [row["execution"] for row in answer["executions"]]

    assert listed(parent=run) == [family.children[0].run]
    assert listed(waiting_for="child:inner") == [run]
    assert listed(waiting_for="timer:nap") == [family.children[0].run]


@pytest.mark.parametrize(
    "request_",
    [
        {"waiting_for": "lunch"},
        {"waiting_for": ""},
        {"waiting_for": "event", "status": "FAILED"},
        {"waiting_since": "2d"},
        {"last_error": "Busy", "error": "Busy"},
        {"parent": "order-1"},
    ],
)
def test_a_filter_that_nothing_can_fulfil_is_refused(request_: dict[str, str]) -> None:
    shop = Shop(ORDER)

    with pytest.raises(RequestError) as refused:
        shop.world.call(shop.front.executions(shop.tenant, request_))
    assert refused.value.code == "HF204"


def test_a_later_wait_costs_one_write_and_one_at_its_end() -> None:
    """Beside the record of the wait, and the messages, which cost the same for every wait."""

    def units(state: Machine) -> float:
        shop = started(
            machine({"nap": {"Type": "Wait", "Seconds": 10, "Next": "last"}, "last": state})
        )
        before = replace(shop.world.services.usage)
        shop.world.run()
        assert rows(shop)[0]["status"] == "SUCCEEDED"
        return shop.world.services.usage.write_units - before.write_units

    short = units({"Type": "Wait", "Seconds": 4, "End": True})
    long = units({"Type": "Wait", "Seconds": 10, "End": True})

    assert long - short == 2


class KillAt:
    """Kills the process before or after the effect of this number."""

    def __init__(self, number: int, moment: When) -> None:
        self.left, self.moment = number, moment

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == self.moment:
            self.left -= 1
            if self.left == 0:
                raise Killed


@pytest.mark.parametrize("moment", ["before", "after"])
def test_whatever_effect_kills_its_worker_the_index_agrees_with_the_log_in_the_end(
    moment: When,
) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride(1, 7)
        hook = KillAt(number, moment)
        shop = Shop(ORDER, hook=hook)
        run = shop.start()
        shop.world.run(until_ms=shop.world.now_ms + HOUR_MS)
        shop.send_event()
        shop.world.run(until_ms=shop.world.now_ms + HOUR_MS)
        asked = found(shop, waiting_for="ask:role:clerk"), found(shop, waiting_for="event")
        assert asked == (["order-1"], []), f"killed {moment} effect {number}"
        shop.answer(run, output={})
        shop.world.run()
        assert found(shop, waiting_for="ask") == rows_in_mail(shop) == [], f"effect {number}"
        is_over = hook.left > 0
    assert number > 20


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()
