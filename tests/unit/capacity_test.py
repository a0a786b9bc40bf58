"""`holdfast capacity`: which limit binds first."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Limit, per_second
from holdfast.proofs.capacity import Capacity, capacity_of, measured_seconds
from holdfast.proofs.graph import levels_of
from holdfast.runtime.effects import TaskSucceeded
from tests.builders import Shop, call, machine
from tests.unit.host_kit import Site

BANK = Limit("bank", rate=per_second(20))
LEDGER = Limit("ledger", concurrency=10)
SHOP = machine(
    {"charge": call("charge", "book"), "book": call("book", "again"), "again": call("charge")}
)


def asked(starts: float, **seconds: float) -> Capacity:
    limits = {"charge": [BANK], "book": [LEDGER]}
    return capacity_of(
        "buy", levels_of(SHOP), limits, starts_per_second=starts, seconds=seconds, workers=50
    )


def test_two_calls_of_one_task_take_a_rate_twice() -> None:
    found = asked(5)
    (use,) = found.uses
    assert (use.name, round(use.part, 3)) == ("bank", 0.5)
    assert found.highest == pytest.approx(10)
    assert found.unknown == ("book", "charge")


def test_the_tightest_comes_first_and_workers_are_counted_when_run_times_are_known() -> None:
    found = asked(5, book=4, charge=0.5)
    assert [use.name for use in found.uses] == ["ledger", "bank", "workers"]
    assert found.uses[0].part == pytest.approx(2)  # 5 a second for 4 s each, of 10 places
    assert found.highest == pytest.approx(2.5)


def test_a_limit_with_keys_is_left_out() -> None:
    limits = {"charge": [BANK.by("customer")]}
    found = capacity_of("buy", levels_of(SHOP), limits, starts_per_second=1, seconds={}, workers=50)
    assert (found.uses, found.highest) == ((), None)


def test_run_times_are_measured_in_the_histories_of_executions() -> None:
    def slow(effect: Any) -> TaskSucceeded:
        shop.world.now_ms += 3_000 if effect.name == "book" else 500
        return TaskSucceeded({})

    shop = Shop(SHOP, tasks=slow)
    run = shop.start(name="o1")
    shop.world.run()
    _, body = Site(shop).request("GET", f"/executions/{run}/history")
    found = measured_seconds([body["events"]])
    assert found == {"charge": pytest.approx(0.5, abs=0.1), "book": pytest.approx(3, abs=0.1)}
