"""Workflows that applications start through the client."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, SecretStr

from holdfast import TaskError, ask, publish, task, wait_for_event, workflow


class Order(BaseModel):
    id: str
    cents: int
    due: date


class Receipt(BaseModel):
    order: str
    paid: int


class Paid(BaseModel):
    cents: int


class CardDeclined(TaskError):  # noqa: N818
    """The bank's word."""


#: The passwords that reached a task.
seen: list[str] = []


@task
def charge(order: Order, gift: bool) -> Receipt:
    if order.cents > 9_000:
        raise CardDeclined("over the limit of the card")
    return Receipt(order=order.id, paid=0 if gift else order.cents)


@task
def sign_in(password: SecretStr) -> str:
    seen.append(password.get_secret_value())
    return "in"


@workflow
def fulfil(order: Order, gift: bool = False) -> Receipt:
    return charge(order, gift)


@workflow
def log_in(password: SecretStr) -> str:
    return sign_in(password)


@workflow
def settle(order_id: str) -> int:
    paid = wait_for_event("client_paid", Paid, key=order_id)
    approved = ask("may it ship?", bool, assignee="clerk")
    return paid.cents if approved else 0


@workflow
def guided(order_id: str) -> str:
    publish("place", "shop")
    wait_for_event("client_paid", Paid, key=order_id)
    publish("place", "depot")
    wait_for_event("client_moved", str, key=order_id)
    return "home"
