# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (TaskError, workflow)
from tests.golden.shop import CardDeclined, Order, charge


class Quiet(TaskError): ...
class OutOfStock(TaskError): ...
class PaymentFailed(TaskError): ...


@workflow
def flow(order: Order, n: int) -> None:
    if n == 1:
        raise OutOfStock("nothing left")
    if n == 2:
        raise Quiet("x")
    if n == 3:
        raise CardDeclined(f"a {n}")
    if n == 4:
        raise CardDeclined(str(n))
    try:
        charge(order.id, n)
    except CardDeclined as err:
        raise PaymentFailed("x") from err
    last = None
    for attempt in range(n):
        try:
            charge(order.id, n)
        except CardDeclined as err:
            last = err
    if last is not None:
        kind = type(last).__name__
    assert last is not None
    raise last
