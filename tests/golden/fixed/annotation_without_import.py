# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (task, workflow)
from tests.golden.shop import Order


@task
def send(order: Order) -> None:
    pass


@workflow
def flow(order: Order) -> None:
    send(order)
