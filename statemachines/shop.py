"""The shop: what an order is made of, and the tasks that touch the world outside.

Nothing real is charged or shipped. Each task computes its answer from its arguments (see `fates`),
so an attempt that runs twice gives the same answer twice. What a real task would send is logged
with the idempotency key that a real bank, warehouse or carrier needs to do it only once.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from pydantic import BaseModel

from holdfast import Retry, TaskError, task, task_context
from statemachines.fates import PENDING, Fate, fate_of

LABEL_CHARACTERS: Final = 600

_outside = logging.getLogger("shop")


class Line(BaseModel):
    sku: str
    description: str | None = None
    qty: int
    unit_pence: int


class Order(BaseModel):
    id: str
    placed_at: str
    customer_id: str | None = None
    country: str
    lines: list[Line]


class Reservation(BaseModel):
    id: str


class Payment(BaseModel):
    id: str
    status: str
    """"settled", or "pending" until the bank confirms."""


class BankConfirmation(BaseModel):
    payment_id: str
    settled: bool


class Parcel(BaseModel):
    sku: str
    label: str


class Shipment(BaseModel):
    tracking: str


class Outcome(BaseModel):
    order_id: str
    status: str
    reason: str
    tracking: str | None = None


class OutOfStock(TaskError):
    """A reserved article was not on its shelf."""


class CardDeclined(TaskError):
    """The bank refused the card; asking again would not help."""


class NotSettled(TaskError):
    """The bank took the payment back."""


class BankUnavailable(TaskError):
    """The bank could not be reached; the next attempt may succeed."""


class CarrierBusy(TaskError):
    """The carrier took no orders just now; the next attempt may succeed."""


@task
def reserve(order_id: str, lines: list[Line]) -> Reservation:
    reservation = Reservation(id=f"reservation-{order_id}")
    _log(f"reserve {len(lines)} lines as {reservation.id}")
    return reservation


@task
def release(reservation_id: str) -> None:
    _log(f"release {reservation_id}")


@task(retry=Retry(max_attempts=3, on=(BankUnavailable,)))
def charge(order_id: str, customer: str, pence: int) -> Payment:
    fate = fate_of(order_id)
    if fate is Fate.BANK_DOWN and task_context().attempt == 1:
        raise BankUnavailable("the bank did not answer")
    if fate is Fate.DECLINED:
        raise CardDeclined(f"the bank declined the card of order {order_id}")
    payment = Payment(
        id=payment_id_of(order_id), status="pending" if fate in PENDING else "settled"
    )
    _log(f"charge {pence} pence to {customer} as {payment.id}")
    return payment


@task
def refund(payment_id: str) -> None:
    _log(f"refund {payment_id}, or void it if it never settled")


@task
def pack(order_id: str, number: int, line: Line) -> Parcel:
    if fate_of(order_id) is Fate.OUT_OF_STOCK and number == 0:
        raise OutOfStock(f"no {line.sku} on the shelf")
    _log(f"pack {line.qty} x {line.sku} as parcel {number} of order {order_id}")
    return Parcel(sku=line.sku, label=_label(order_id, number))


@task(retry=Retry(max_attempts=3, on=(CarrierBusy,)))
def ship(order_id: str, parcels: list[Parcel]) -> Shipment:
    if fate_of(order_id) is Fate.CARRIER_BUSY and task_context().attempt <= 2:
        raise CarrierBusy("no van is free")
    shipment = Shipment(tracking=f"track-{order_id}")
    _log(f"ship {len(parcels)} parcels as {shipment.tracking}")
    return shipment


@task
def notify(customer: str, text: str) -> None:
    _log(f"tell {customer}: {text}")


@task
def turn_down(order_id: str, customer: str, reason: str) -> Outcome:
    """Tells the customer why nothing comes, and says so in the order's outcome."""
    _log(f"tell {customer}: order {order_id} cannot be fulfilled, {reason}")
    return Outcome(order_id=order_id, status="failed", reason=reason)


def payment_id_of(order_id: str) -> str:
    """The bank's name for the payment of an order, known before it is charged."""
    return f"payment-{order_id}"


def _label(order_id: str, number: int) -> str:
    """A label as a printer gets it: LABEL_CHARACTERS of ASCII that hardly compress."""
    digest = hashlib.shake_256(f"{order_id}/{number}".encode())
    return digest.hexdigest(LABEL_CHARACTERS // 2)


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
