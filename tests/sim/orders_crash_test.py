"""Orders through the real handlers, killed at every effect: the outcome is always the same."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import CrashAt, CrashEachKind, RandomCrashes, When
from statemachines.fates import Fate, fate_of
from statemachines.orders import OrderRequest, read_orders
from statemachines.shop import Line, Order
from tests.order_shop import OrderShop
from tests.thorough import some

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
DAYS = {"2010-12-01": 143, "2010-12-02": 167}


def an_order(fate: Fate, lines: int = 3) -> OrderRequest:
    """Return an order of three lines; `fate` selects the outcome of the simulated world."""
    number = next(n for n in range(10_000, 90_000) if fate_of(str(n)) is fate)
    articles = [
        Line(sku=f"sku{n}", description="A CANDLE", qty=n + 1, unit_pence=250) for n in range(lines)
    ]
    order = Order(
        id=str(number),
        placed_at="2026-03-02 10:00:00",
        customer_id="c1",
        country="UK",
        lines=articles,
    )
    return OrderRequest(order)


#: A bank that confirms after minutes; one that is waited for in vain, for days of sweeps.
FATES = [
    pytest.param(Fate.MINUTES, id="minutes"),
    pytest.param(Fate.LATE, id="late", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fate", FATES)
def test_one_crash_at_any_effect_changes_nothing(fate: Fate, when: When) -> None:
    count = CrashAt(None, when)
    expected = OrderShop(count).fulfil([an_order(fate)])
    assert count.seen >= 90

    for number in some(count.numbers):
        crash = CrashAt(number, when)
        shop = OrderShop(crash)
        outcomes = shop.fulfil([an_order(fate)])
        assert shop.world.kills == 1
        assert (outcomes, check(shop.world), lost(shop.world)) == (expected, [], []), number


def test_crashes_at_random_lose_no_order_of_the_sample() -> None:
    requests = read_orders(ROOT / "statemachines" / "orders-sample.jsonl").requests
    expected = OrderShop().fulfil(requests)
    for seed in some(range(3)):
        print(f"seed {seed}")
        shop = OrderShop(RandomCrashes(seed, chance=0.004, crashes_max=200))

        assert shop.fulfil(requests) == expected
        assert check(shop.world) == []
        assert lost(shop.world) == []
        assert shop.world.kills > 10


@pytest.mark.slow
@pytest.mark.parametrize("day", DAYS)
def test_a_day_of_orders_survives_a_crash_of_every_kind(day: str) -> None:
    """Every kind of effect is hit at least once before and once after; the counts are printed."""
    file = DATA / f"orders-{day}.jsonl"
    if not file.exists():
        pytest.skip("the shop's own days of orders are not here")
    requests = read_orders(file).requests
    expected = OrderShop().fulfil(requests)
    assert expected.total() == DAYS[day]
    shop = OrderShop(CrashEachKind(frozenset({1, 20, 60, 200, 700, 2_000})))

    assert shop.fulfil(requests) == expected
    assert check(shop.world) == []
    assert lost(shop.world) == []
    happened = Counter(shop.world.happened)
    print(json.dumps({f"{kind} {when}": n for (kind, when), n in sorted(happened.items())}))
    kinds = set(shop.world.services.effects)
    assert {(kind, when) for kind in kinds for when in ("before", "after")} <= set(happened)
