"""Workflows with a business key, for the test of a whole stack."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from holdfast import again, publish, send, task, wait_for_event, workflow


class AddItem(BaseModel):
    kind: Literal["add"] = "add"
    sku: str


class Checkout(BaseModel):
    kind: Literal["checkout"] = "checkout"


@workflow(key="cart_id", starts_on="cart")
def cart(cart_id: str, skus: list[str] | None = None) -> list[str]:
    items = [] if skus is None else skus
    message: AddItem | Checkout = wait_for_event("cart", AddItem | Checkout, key=cart_id)
    match message:
        case AddItem(sku=sku):
            return again(cart_id, skus=[*items, sku])
        case Checkout():
            return items


@workflow(key="name", starts_on="once", unread="drop")
def once(name: str) -> int:
    number = wait_for_event("once", int, key=name)
    wait_for_event("go", bool, key=name)
    return number


@workflow(key="order", starts_on="placed")
def packing(order: str) -> str:
    return f"packed {wait_for_event('placed', int, key=order)}"


@workflow(key="order", starts_on="placed")
def billing(order: str) -> str:
    number = wait_for_event("placed", int, key=order)
    return f"billed {number} {wait_for_event('placed', int, key=order)}"


@workflow
def seller(order: str) -> None:
    send("placed", 7, key=order)


@workflow(key="name")
def door(name: str, floor: int = 0) -> None:
    while True:
        publish("floor", wait_for_event("floor", int, key=name))


@workflow
def shopper(cart_id: str) -> None:
    send("cart", AddItem(sku="tea"), key=cart_id)


@task
def load(owner: str) -> int:
    return 1


@workflow(key="owner", starts_on="move")
def account(owner: str) -> int:
    total = load(owner)
    while True:
        amount = wait_for_event("move", int, key=owner)
        if amount == 0:
            return total
        total = total + amount


#: While this is True, `hatch` fails before it uses an event.
is_broken = True


@task
def open_hatch(name: str) -> None:
    if is_broken:
        raise ValueError("stuck")


@workflow(key="name", starts_on="hatch")
def hatch(name: str) -> int:
    open_hatch(name)
    return wait_for_event("hatch", int, key=name)
