# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import (task, workflow)

if TYPE_CHECKING:
    from tests.golden.shop import Order


@task
def send(order: Order) -> None:
    pass


@workflow
def flow(order: Order) -> None:
    send(order)
