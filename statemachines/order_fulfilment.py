"""Fulfil an order: reserve, charge, wait for the bank, pack, ship; undo what was done if it fails.

Every order that is accepted ends with an `Outcome` that says why: refusals and failed payments are
answers of the business, not errors of the run.
"""

from __future__ import annotations

from holdfast import WaitTimeout, compensating, days, each, wait_for_event, workflow
from statemachines.shop import (
    BankConfirmation,
    CardDeclined,
    NotSettled,
    Order,
    Outcome,
    OutOfStock,
    charge,
    notify,
    pack,
    refund,
    release,
    reserve,
    ship,
    turn_down,
)

SERVICES = ["POST", "DOT", "D", "M", "C2", "BANK CHARGES"]
"""Postage, discounts and charges: paid for, never packed."""


@workflow(name="order_fulfilment")
def fulfil(order: Order) -> Outcome:
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
            if payment.status == "pending":
                bank = wait_for_event(
                    "bank.confirmed", BankConfirmation, key=payment.id, timeout=days(3)
                )
                if not bank.settled:
                    raise NotSettled(f"{payment.id} did not settle")
            if len(goods) == 0:
                return Outcome(order_id=order.id, status="charged", reason="nothing_to_pack")
            # An order may hold the same article twice, so a line is addressed by its position.
            parcels = each(
                range(len(goods)),
                lambda number: pack(order.id, number, goods[number]),
                concurrency=20,
            )
            shipment = ship(order.id, parcels)
    except CardDeclined:
        return turn_down(order.id, customer, "card_declined")
    except NotSettled:
        return turn_down(order.id, customer, "payment_not_settled")
    except WaitTimeout:
        return turn_down(order.id, customer, "payment_timed_out")
    except OutOfStock:
        return turn_down(order.id, customer, "out_of_stock")
    notify(customer, f"order {order.id} is on its way: {shipment.tracking}")
    return Outcome(
        order_id=order.id, status="shipped", reason="shipped", tracking=shipment.tracking
    )
