"""The workflows of the processes: one small workflow for each function that a crash could break.

Every outcome follows from the input alone, in spite of crashes, so that it can be predicted.
"""

from __future__ import annotations

import time

from pydantic import BaseModel

from holdfast import (
    Retry,
    TaskError,
    ask,
    compensating,
    each,
    parallel,
    role,
    seconds,
    sleep,
    task,
    task_context,
    wait_for_event,
    workflow,
)

FAILURES = 2
"""So many attempts of `unsteady` fail before one succeeds."""


class Payment(BaseModel):
    amount: int


class Verdict(BaseModel):
    approved: bool


class NotYetError(TaskError):
    """The next attempt may succeed."""


class SoldOutError(TaskError):
    """No attempt will succeed."""


@task
def add(n: int) -> int:
    _take_a_while()
    return n + 1


@task(retry=Retry(max_attempts=5, interval=seconds(1), backoff=1.0, on=(NotYetError,)))
def unsteady(n: int) -> int:
    _take_a_while()
    if task_context().attempt <= FAILURES:
        raise NotYetError(f"attempt {task_context().attempt}")
    return n + 10


@task
def book(ref: str, seat: int) -> str:
    _take_a_while()
    return f"{ref}/{seat}"


@task(retry=Retry(max_attempts=3))
def unbook(booking: str) -> None:
    _take_a_while()


@task
def print_ticket(ref: str) -> None:
    _take_a_while()
    raise SoldOutError(ref)


@workflow(name="p_chain")
def chain(n: int) -> int:
    n = add(n)
    n = add(n)
    n = add(n)
    n = add(n)
    return add(n)


@workflow(name="p_pauses")
def pauses(n: int) -> int:
    n = add(n)
    sleep(seconds(2))
    n = add(n)
    sleep(seconds(3))
    return add(n)


@workflow(name="p_long")
def long(n: int) -> int:
    sleep(seconds(30))
    return add(n)


@workflow(name="p_paid")
def paid(ref: str, n: int) -> int:
    n = add(n)
    payment = wait_for_event("process.paid", Payment, key=ref)
    n = add(n + payment.amount)
    second = wait_for_event("process.paid", Payment, key=f"{ref}-second")
    return add(n + second.amount)


@workflow(name="p_asked")
def asked(ref: str, n: int) -> int:
    n = add(n)
    verdict = ask(f"Approve {ref}?", Verdict, assignee=role("clerk"))
    if verdict.approved:
        return add(n)
    return 0


@workflow(name="p_unsteady")
def retried(n: int) -> int:
    n = unsteady(n)
    return unsteady(n)


@workflow(name="p_fan")
def fan(ref: str, n: int) -> list[int]:
    def by_event() -> int:
        payment = wait_for_event("process.paid", Payment, key=ref)
        return add(payment.amount)

    def by_time() -> int:
        sleep(seconds(2))
        return add(n)

    def by_retry() -> int:
        return unsteady(n)

    first, second, third = parallel(by_event, by_time, by_retry)
    rest = each([n, n + 1, n + 2, n + 3], add, concurrency=2)
    return [first, second, third, *rest]


@workflow(name="p_saga")
def saga(ref: str) -> str:
    try:
        with compensating() as undo:
            one = book(ref, 1)
            undo(unbook, one)
            sleep(seconds(1))
            two = book(ref, 2)
            undo(unbook, two)
            three = book(ref, 3)
            undo(unbook, three)
            print_ticket(ref)
    except SoldOutError:
        return "sold out"
    return "printed"


@workflow(name="p_parent")
def parent(n: int) -> int:
    n = chain(n)
    n = pauses(n)
    return add(n)


@workflow(name="p_stopped")
def stopped(ref: str) -> str:
    with compensating() as undo:
        booking = book(ref, 1)
        undo(unbook, booking)
        ask(f"Keep {ref}?", Verdict, assignee=role("clerk"))
    return "kept"


def _take_a_while() -> None:
    """Long enough that a worker is often killed or frozen in the middle of it."""
    time.sleep(0.05 + (time.time_ns() % 300) / 1_000)
