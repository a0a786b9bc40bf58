"""Workflows whose names callers mistype, and whose variables and answers have types."""

from __future__ import annotations

from pydantic import BaseModel

from holdfast import ask, compensating, receive, send, task, wait_for_event, workflow


class Quote(BaseModel):
    pence: int
    notes: list[str]


@task
def quote(order_id: str) -> Quote:
    return Quote(pence=len(order_id), notes=[])


@task
def reserve(order_id: str) -> str:
    return f"r-{order_id}"


@task
def free(reservation: str) -> None: ...


@task
def ship(quoted: Quote, reservation: str) -> int:
    return quoted.pence + len(reservation)


@workflow
def approve(order_id: str) -> bool:
    return ask(f"ship {order_id}?", bool, assignee="clerk")


@workflow
def deliver(order_id: str) -> int:
    quoted = quote(order_id)
    with compensating() as undo:
        reservation = reserve(order_id)
        undo(free, reservation)
        undo(send, "goods.free", reservation, key=order_id)
        wait_for_event("bank.settled", int, key=order_id)
    return ship(quoted, reservation)


@workflow
def total(key: str) -> None:
    with receive("total", int, key=key) as request:
        request.reply(12 // request.data)
