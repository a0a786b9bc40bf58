# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import minutes, send, start, wait_for_event, workflow


@workflow(key="number")
def numbered(number: str) -> None:
    send("seen", number, key="n")


@workflow(key="cart_id", starts_on="cart")
def cart(cart_id: str) -> int:
    return wait_for_event("cart", int, key=cart_id)


@workflow(key="room", starts_on="booking", unread="drop")
def booking(room: str) -> int:
    return wait_for_event("booking", int, key=room)


@workflow(key="name")
def door(name: str) -> str:
    return name


@workflow
def flow(name: str) -> str:
    send("knocked", name, key=name, delay=minutes(5))
    return start(door, name)
