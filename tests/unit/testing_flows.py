"""Small workflows on which the testing kit is tried."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field, HttpUrl

from holdfast import (
    BlockTimeout,
    Retry,
    TaskError,
    WaitTimeout,
    ask,
    compensating,
    each,
    first,
    hours,
    minutes,
    publish,
    role,
    seconds,
    shielded,
    sleep,
    task,
    timeout,
    wait_for_event,
    workflow,
)


class Payment(BaseModel):
    id: str
    status: str = "paid"


class CardDeclined(TaskError): ...  # noqa: N818


@task(
    retry=Retry(max_attempts=3, interval=seconds(10), on=(ConnectionError,), jitter=False),
    timeout=minutes(2),
)
def charge(order: str, cents: int = 1) -> Payment:
    return Payment(id=f"real {order}")


@task
def refund(payment: str) -> None: ...


@task
def notify(text: str) -> None: ...


@task
def quick(number: int) -> str:
    return "quick"


@task
def slow(number: int) -> str:
    return "slow"


@workflow
def buy(order: str, cents: int) -> str:
    try:
        payment = charge(order, cents)
    except CardDeclined as err:
        return f"declined: {err}"
    notify(payment.id)
    return f"paid {payment.id}"


@workflow
def buy_twice(order: str) -> str:
    with compensating() as undo:
        one = charge(order)
        undo(refund, one.id)
        other = charge(order)
    return other.id


@workflow
def buy_often(orders: list[str]) -> list[str]:
    found: list[str] = []
    for order in orders:
        payment = charge(order)
        found.append(payment.id)
    return found


@workflow
def buy_side_by_side(orders: list[str]) -> list[str]:
    payments = each(orders, charge)
    return [payment.id for payment in payments]


@workflow
def buy_sixty_at_once(orders: list[str]) -> list[str]:
    payments = each(orders, charge, concurrency=60)
    return [payment.id for payment in payments]


@workflow
def confirm(key: str) -> str:
    try:
        settled = wait_for_event("bank.confirmed", bool, key=key, timeout=hours(3))
    except WaitTimeout:
        return "late"
    return "settled" if settled else "refused"


@workflow
def sleep_and_confirm(key: str) -> bool:
    sleep(hours(1))
    return wait_for_event("bank.confirmed", bool, key=key, timeout=hours(3))


@workflow
def wait_for_ever(key: str) -> bool:
    return wait_for_event("forever", bool, key=key)


@workflow
def approve(order: str) -> bool:
    return ask(f"Approve {order}?", bool, assignee=role("boss"))


@workflow
def pay_and_wait(order: str) -> str:
    with compensating() as undo:
        payment = charge(order)
        undo(refund, payment.id)
        sleep(hours(1))
    return payment.id


@workflow
def race(number: int) -> str:
    return first(lambda: quick(number), lambda: slow(number))


@workflow
def bounded(order: str) -> str:
    try:
        with timeout(minutes(5)), compensating() as undo:
            payment = charge(order)
            undo(refund, payment.id)
            slow(1)
    except BlockTimeout:
        return "too late"
    return payment.id


@workflow
def guarded(number: int) -> str:
    try:
        with timeout(minutes(5)):
            with shielded():
                slow(number)
            quick(number)
    except BlockTimeout:
        return "stopped after the slow one"
    return "both"


@workflow
def guarded_before_no_time(number: int) -> str:
    with shielded():
        slow(number)
    sleep(seconds(min(number, 0)))
    with shielded():
        return quick(number)


@workflow
def bounded_in_a_shield(number: int) -> str:
    try:
        with shielded(), timeout(minutes(5)):
            slow(number)
    except BlockTimeout:
        return "late"
    return "in time"


@workflow
def cleaned_up_in_time(number: int) -> str:
    with shielded():
        try:
            with timeout(minutes(5)):
                slow(number)
        except BlockTimeout:
            notify("gave up")
    return slow(number)


@task(retry=Retry(max_attempts=2, interval=seconds(30)))
def persistent(number: int) -> int:
    return number


@workflow
def first_of(numbers: list[int]) -> int:
    return persistent(numbers[0])


@workflow
def race_in_a_shield(number: int) -> str:
    with shielded():
        won = first(lambda: quick(number), lambda: slow(number))
    return won


@task
def poll(job: str) -> str:
    return "done"


@workflow
def poll_until_done(job: str) -> str:
    while poll(job) != "done":
        sleep(seconds(30))
    return job


@workflow
def parent(order: str) -> str:
    return buy(order, 5)


@workflow
def notify_and_confirm(key: str) -> bool:
    notify(key)
    return wait_for_event("bank.confirmed", bool, key=key)


@workflow
def sleep_notify_and_confirm(key: str) -> bool:
    sleep(hours(1))
    notify(key)
    return wait_for_event("bank.confirmed", bool, key=key)


@workflow
def draw_twice() -> list[str]:
    token = str(uuid.uuid4())
    return [token, str(random.randint(1, 6)), str(random.randint(1, 6))]


@workflow(key="counter", starts_on="count")
def count_for_ever(counter: str, link: HttpUrl | None = None) -> None:
    total = 0
    while True:
        total += wait_for_event("count", int, key=counter)
        publish("total", total)


@workflow
def sleep_for(wait: timedelta) -> None:
    sleep(wait)


@workflow
def numbered(n: int) -> str:
    return slow(n)


@workflow
def number_in(bag: dict[str, Any]) -> str:
    match bag:
        case {"n": int(n)}:
            return numbered(n)
    return ""


class Bounded(BaseModel):
    ratio: float = Field(ge=0, le=1)
    number: int = Field(gt=5, default=6)
    price: Decimal = Field(ge=Decimal("0.5"), lt=2)


@workflow
def within_bounds(given: Bounded, ratio: Annotated[float, Field(gt=0.25, lt=0.5)]) -> float:
    return given.ratio + ratio
