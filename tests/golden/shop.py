"""The models and tasks of the refused programs in this folder."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from holdfast import (TaskError, minutes, pure, task, workflow)


class Line(BaseModel):
    sku: str
    qty: int
    unit_cents: int


class Order(BaseModel):
    id: str
    customer_email: str
    lines: list[Line]
    coupon: str | None = None


class Payment(BaseModel):
    id: str
    status: str


class Outcome(BaseModel):
    order_id: str
    status: Literal["shipped", "refused"]
    total: float = 0.0


class Checked(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def strip(cls, text: str) -> str:
        return text.strip()


class Bounded(BaseModel):
    amount: int = Field(gt=0)
    at: datetime.datetime | None = None


class Colour(Enum):
    RED = "red"


class CardDeclined(TaskError):
    pass


class Shouting(TaskError):
    def __str__(self) -> str:
        return "!"


@task
def charge(order_id: str, cents: int) -> Payment:
    return Payment(id=order_id, status=str(cents))


@task
def refund(payment_id: str) -> None:
    del payment_id


@task
def notify(to: str, text: str) -> None:
    del to, text


@task
def gather(*parts: str) -> None:
    del parts


@task(timeout=minutes(20))
def render(order_id: str) -> None:
    del order_id


@task
def anything() -> Any:
    return 1


@pure
def is_valid(order: Order) -> bool:
    return bool(order.lines)


@workflow
def other(order_id: str) -> str:
    return order_id


def vat(cents: int) -> int:
    return cents // 5
