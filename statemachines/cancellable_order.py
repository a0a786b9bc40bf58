"""Fulfil an order that its customer may cancel: until it ships all is undone, then it is returned.

Up to the van this is `order_fulfilment`, and an order that nobody cancels ends as it does there.
"""

from __future__ import annotations

import logging
from typing import Final, NoReturn

from pydantic import BaseModel

from holdfast import (
    Retry,
    TaskError,
    WaitTimeout,
    compensating,
    days,
    each,
    first,
    minutes,
    parallel,
    task,
    task_context,
    wait_for_event,
    workflow,
)
from statemachines.order_fulfilment import SERVICES
from statemachines.shop import (
    BankConfirmation,
    CardDeclined,
    Line,
    NotSettled,
    Order,
    Outcome,
    OutOfStock,
    Parcel,
    charge,
    notify,
    pack,
    refund,
    release,
    reserve,
    ship,
    turn_down,
)

CANCELLATION_DAYS: Final = 14
"""After it has shipped."""
RETURN_DAYS: Final = 21
"""From the label to the goods."""

_outside = logging.getLogger("shop")


class Cancellation(BaseModel):
    reason: str = ""


class ReturnArrived(BaseModel):
    is_complete: bool
    """Everything is there, and as it was."""


class OrderCancelled(TaskError):
    """The customer cancelled before the order shipped."""


class WarehouseClosed(TaskError):
    """Nobody is at the shelves; the next attempt may succeed."""


@task(timeout=minutes(1))
def make_return_label(order_id: str, reason: str) -> str | None:
    """-> the label, or None: these goods are not taken back."""
    if reason == "opened":
        return None
    _log(f"make a return label for order {order_id}")
    return f"return-{order_id}"


@task(timeout=minutes(10), retry=Retry(max_attempts=5, on=(WarehouseClosed,)))
def restock(order_id: str, lines: list[Line]) -> None:
    _log(f"put {len(lines)} lines of order {order_id} back on their shelves")


@workflow(name="cancellable_order", timeout=days(60))
def fulfil_unless_cancelled(order: Order) -> Outcome:
    if order.id.startswith("C"):
        return Outcome(order_id=order.id, status="refused", reason="cancellation")
    goods = [line for line in order.lines if line.sku not in SERVICES]
    if any(line.qty < 0 for line in goods):
        return Outcome(order_id=order.id, status="refused", reason="return")
    total_pence = sum(line.qty * line.unit_pence for line in order.lines)
    if total_pence <= 0:
        return Outcome(order_id=order.id, status="refused", reason="non_positive_total")

    customer = "guest" if order.customer_id is None else order.customer_id
    try:
        with compensating() as undo:
            reservation = reserve(order.id, goods)
            undo(release, reservation.id)
            payment = charge(order.id, customer, total_pence)
            undo(refund, payment.id)

            def packed() -> list[Parcel]:
                if payment.status == "pending":
                    bank = wait_for_event(
                        "bank.confirmed", BankConfirmation, key=payment.id, timeout=days(3)
                    )
                    if not bank.settled:
                        raise NotSettled(f"{payment.id} did not settle")
                return each(
                    range(len(goods)),
                    lambda number: pack(order.id, number, goods[number]),
                    concurrency=20,
                )

            def cancelled() -> NoReturn:
                cancellation = wait_for_event("order.cancelled", Cancellation, key=order.id)
                raise OrderCancelled(cancellation.reason)

            # A cancellation that comes while the customer is charged is kept, and heard here. Once
            # the van is called it is too late: the goods have to come back.
            parcels = first(packed, cancelled)
            if len(parcels) == 0:
                return Outcome(order_id=order.id, status="charged", reason="nothing_to_pack")
            shipment = ship(order.id, parcels)
    except OrderCancelled:
        notify(customer, f"order {order.id} is cancelled: you get your money back")
        return Outcome(order_id=order.id, status="cancelled", reason="cancelled")
    except CardDeclined:
        return turn_down(order.id, customer, "card_declined")
    except NotSettled:
        return turn_down(order.id, customer, "payment_not_settled")
    except WaitTimeout:
        return turn_down(order.id, customer, "payment_timed_out")
    except OutOfStock:
        return turn_down(order.id, customer, "out_of_stock")
    notify(customer, f"order {order.id} is on its way: {shipment.tracking}")

    shipped = Outcome(
        order_id=order.id, status="shipped", reason="shipped", tracking=shipment.tracking
    )
    try:
        late = wait_for_event(
            "order.cancelled", Cancellation, key=order.id, timeout=days(CANCELLATION_DAYS)
        )
    except WaitTimeout:
        return shipped
    label = make_return_label(order.id, late.reason)
    if label is None:
        notify(customer, f"order {order.id} cannot be cancelled any more")
        return shipped.model_copy(update={"reason": "cancellation_refused"})
    notify(customer, f"send order {order.id} back with {label} within {RETURN_DAYS} days")
    try:
        arrived = wait_for_event(
            "return.arrived", ReturnArrived, key=order.id, timeout=days(RETURN_DAYS)
        )
    except WaitTimeout:
        notify(customer, f"order {order.id} did not come back: it stays sold")
        return shipped.model_copy(update={"reason": "not_returned"})
    if not arrived.is_complete:
        notify(customer, f"order {order.id} came back used or in part: it stays sold")
        return shipped.model_copy(update={"reason": "return_refused"})
    parallel(lambda: refund(payment.id), lambda: restock(order.id, goods))
    notify(customer, f"order {order.id} is back: you get your money back")
    return shipped.model_copy(update={"status": "returned", "reason": "returned"})


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
