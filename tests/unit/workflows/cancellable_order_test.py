"""An order that its customer may cancel: before the van is called, and after."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import days, hours, seconds
from holdfast.testing import World, check_workflow, fails, real, takes
from statemachines.bank import bank_messages
from statemachines.cancellable_order import (
    CANCELLATION_DAYS,
    RETURN_DAYS,
    Cancellation,
    ReturnArrived,
    WarehouseClosed,
    fulfil_unless_cancelled,
    make_return_label,
    restock,
)
from statemachines.fates import Fate, fate_of
from statemachines.order_fulfilment import fulfil
from statemachines.orders import OrderRequest, read_orders
from statemachines.shop import CardDeclined, Line, Order, refund
from tests.thorough import worlds

SAMPLE = Path(__file__).parents[3] / "statemachines" / "orders-sample.jsonl"
CONFIRMED_AFTER = hours(5)
UNDONE = ["refund", "release"]
CHANGED = Cancellation(reason="changed my mind")


def id_with(fate: Fate) -> str:
    return next(str(number) for number in range(700_100, 700_200) if fate_of(str(number)) is fate)


def order_of(fate: Fate = Fate.PLAIN) -> Order:
    return Order(
        id=id_with(fate),
        placed_at="2026-03-02 09:00:00",
        customer_id="4001",
        country="Norway",
        lines=[Line(sku="LH01", qty=2, unit_pence=450), Line(sku="GL77", qty=1, unit_pence=900)],
    )


def world_of(order: Order, **outcomes: object) -> World:
    """The bank speaks as it does to `order_fulfilment`; `outcomes` by the name of the task."""
    world = World(outcomes, others=real)
    for message in bank_messages(order):
        at = timedelta(seconds=message.delay_seconds)
        world.send(message.name, message.data, key=message.key, at=at)
    return world


def cancelled(order: Order, at: timedelta, **outcomes: object) -> World:
    world = world_of(order, **outcomes)
    world.send("order.cancelled", CHANGED, key=order.id, at=at)
    return world


def returned(order: Order, at: timedelta, *, is_complete: bool = True) -> World:
    """Cancelled a day after it shipped; back after `at`."""
    world = cancelled(order, days(1))
    arrived = ReturnArrived(is_complete=is_complete)
    world.send("return.arrived", arrived, key=order.id, at=at)
    return world


# -- no cancellation -------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", read_orders(SAMPLE).requests, ids=lambda one: one.name)
def test_an_order_without_a_cancellation_ends_as_any_order(request_: OrderRequest) -> None:
    order = request_.order
    expected = world_of(order).run(fulfil, order)
    run = world_of(order).run(fulfil_unless_cancelled, order)
    assert run.output == expected.output
    assert [name for name in run.steps if name != "order.cancelled"] == expected.steps


def test_it_stays_open_for_two_weeks_after_it_shipped() -> None:
    run = world_of(order_of()).run(fulfil_unless_cancelled, order_of())
    assert (run.output.reason, run.ended) == ("shipped", days(CANCELLATION_DAYS))


# -- before it ships -------------------------------------------------------------------------------


def test_an_order_cancelled_while_the_bank_thinks_is_undone() -> None:
    order = order_of(Fate.HOURS)
    run = cancelled(order, hours(1)).run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.output.reason) == ("cancelled", "cancelled")
    assert run.ended == hours(1)
    assert run.steps[-3:] == [*UNDONE, "notify"]
    assert "pack" not in run.steps


def test_an_order_cancelled_while_it_is_packed_is_undone_and_does_not_ship() -> None:
    order = order_of()
    world = cancelled(order, seconds(30), pack=takes(seconds(60), real))
    run = world.run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.ended) == ("cancelled", seconds(30))
    assert run.steps[-3:] == [*UNDONE, "notify"]
    assert "ship" not in run.steps


def test_a_cancellation_while_the_card_is_charged_is_kept_and_undoes_the_charge() -> None:
    order = order_of(Fate.HOURS)
    world = cancelled(order, seconds(1), charge=takes(seconds(10), real))
    run = world.run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.ended) == ("cancelled", seconds(10))
    assert run.steps[-3:] == [*UNDONE, "notify"]


def test_a_cancellation_that_comes_twice_counts_once() -> None:
    order = order_of(Fate.HOURS)
    world = cancelled(order, hours(1))
    world.send("order.cancelled", CHANGED, key=order.id, at=hours(1) + seconds(1))
    run = world.run(fulfil_unless_cancelled, order)
    assert (run.output.status, len(run.calls_of(refund))) == ("cancelled", 1)


def test_the_cancellation_of_another_order_has_no_effect() -> None:
    order = order_of(Fate.HOURS)
    world = world_of(order)
    world.send("order.cancelled", CHANGED, key="another", at=hours(1))
    assert world.run(fulfil_unless_cancelled, order).output.reason == "shipped"


# -- after it shipped ------------------------------------------------------------------------------


def test_a_cancellation_while_the_van_is_loaded_waits_for_it_and_becomes_a_return() -> None:
    order = order_of()
    world = cancelled(order, seconds(5), ship=takes(seconds(60), real))
    run = world.run(fulfil_unless_cancelled, order)
    assert run.calls_of(make_return_label)[0].at == 60
    assert run.output.reason == "not_returned"


def test_an_order_that_comes_back_is_refunded_and_restocked() -> None:
    order = order_of()
    run = returned(order, days(9)).run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.output.reason, run.ended) == ("returned", "returned", days(9))
    assert run.output.tracking == f"track-{order.id}"
    assert sorted(run.steps[-3:-1]) == ["refund", "restock"]
    assert run.calls_of(refund)[0].arguments == {"payment_id": f"payment-{order.id}"}


def test_an_order_that_comes_back_in_part_stays_sold() -> None:
    order = order_of()
    run = returned(order, days(9), is_complete=False).run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.output.reason) == ("shipped", "return_refused")
    assert run.calls_of(refund) == []


def test_an_order_that_does_not_come_back_stays_sold() -> None:
    order = order_of()
    run = cancelled(order, days(1)).run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.output.reason) == ("shipped", "not_returned")
    assert run.ended == days(1 + RETURN_DAYS)
    assert run.calls_of(refund) == []


def test_goods_that_are_not_returned_can_no_longer_be_cancelled() -> None:
    order = order_of()
    world = cancelled(order, days(1), make_return_label=None)
    run = world.run(fulfil_unless_cancelled, order)
    assert (run.output.status, run.output.reason) == ("shipped", "cancellation_refused")
    assert run.ended == days(1)


def test_a_cancellation_after_two_weeks_has_no_effect() -> None:
    order = order_of()
    run = cancelled(order, days(CANCELLATION_DAYS + 1)).run(fulfil_unless_cancelled, order)
    assert run.output.reason == "shipped"


# -- faults and stops ------------------------------------------------------------------------------


def test_a_declined_card_is_reported_before_a_cancellation() -> None:
    order = order_of()
    world = cancelled(order, timedelta(), charge=CardDeclined("no"))
    run = world.run(fulfil_unless_cancelled, order)
    assert (run.output.reason, run.steps[-2:]) == ("card_declined", ["release", "turn_down"])


def test_a_van_that_never_comes_undoes_the_order() -> None:
    order = order_of()
    run = world_of(order, ship=RuntimeError("flat tyre")).run(fulfil_unless_cancelled, order)
    assert (run.status, run.error, run.steps[-2:]) == ("FAILED", "RuntimeError", UNDONE)


def test_a_warehouse_that_is_closed_is_asked_again() -> None:
    order = order_of()
    world = returned(order, days(9))
    run = world.run(fulfil_unless_cancelled, order)
    assert len(run.calls_of(restock)) == 1
    closed = World(
        {
            "order.cancelled": takes(days(1), CHANGED),
            "return.arrived": takes(days(2), ReturnArrived(is_complete=True)),
            restock: fails(WarehouseClosed("at night"), times=4, then=real),
        },
        others=real,
    )
    again = closed.run(fulfil_unless_cancelled, order)
    assert (again.output.reason, len(again.calls_of(restock))) == ("returned", 5)


@pytest.mark.parametrize(
    ("at", "undone"),
    [(hours(1), UNDONE), (CONFIRMED_AFTER + seconds(5), UNDONE), (days(2), ["notify"])],
)
def test_an_order_that_is_stopped_is_undone_until_it_has_shipped(
    at: timedelta, undone: list[str]
) -> None:
    order = order_of(Fate.HOURS)
    world = world_of(order, pack=takes(seconds(60), real))
    world.stop(at=at)
    run = world.run(fulfil_unless_cancelled, order)
    assert run.status == "ABORTED"
    done = [name for name in run.steps if name != "order.cancelled"]
    assert done[-len(undone) :] == undone


def test_fulfil_unless_cancelled_behaves_as_its_python() -> None:
    assert check_workflow(fulfil_unless_cancelled, examples=worlds(60))["SUCCEEDED"] > 0
