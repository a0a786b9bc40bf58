"""The bank of the simulated world: what it sends about the payment of an order, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from statemachines.fates import Fate, fate_of
from statemachines.shop import BankConfirmation, Order, payment_id_of

EVENT_NAME = "bank.confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BankMessage:
    """One event, `delay_seconds` after the order was accepted; at 0 it is sent before the start."""

    delay_seconds: int
    event_id: str
    name: str
    key: str
    data: dict[str, str | bool]


def bank_messages(order: Order) -> list[BankMessage]:
    """Everything the bank sends for this order, in the order of sending.

    A repeated message keeps its event id, as at-least-once senders do. Orders that leave nothing to
    charge, such as cancellations and returns, never reach the bank.
    """
    if sum(line.qty * line.unit_pence for line in order.lines) <= 0:
        return []
    fate = fate_of(order.id)
    return [
        _message(order.id, settled=fate is not Fate.UNSETTLED, delay=delay)
        for delay in _delays(fate)
    ]


def _delays(fate: Fate) -> tuple[timedelta, ...]:
    match fate:
        case Fate.EARLY:
            return (timedelta(0),)
        case Fate.MINUTES:
            return (timedelta(minutes=4),)
        case Fate.HOURS:
            return (timedelta(hours=5),)
        case Fate.DAYS:
            return (timedelta(days=2),)
        case Fate.TWICE:
            return (timedelta(minutes=30), timedelta(minutes=31))
        case Fate.UNSETTLED:
            return (timedelta(hours=26),)
        case Fate.LATE:
            return (timedelta(days=3, hours=6),)
        case _:
            return ()


def _message(order_id: str, *, settled: bool, delay: timedelta) -> BankMessage:
    payment = payment_id_of(order_id)
    return BankMessage(
        delay_seconds=int(delay.total_seconds()),
        event_id=f"bank-{payment}",
        name=EVENT_NAME,
        key=payment,
        data=BankConfirmation(payment_id=payment, settled=settled).model_dump(mode="json"),
    )
