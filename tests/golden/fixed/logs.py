# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import logging

from pydantic import SecretStr

from holdfast import pure, workflow
from tests.golden.shop import Order

log = logging.getLogger("shop")


@pure
def shown(order: Order) -> str:
    return str(order)


@workflow
def flow(order: Order, text: str, token: SecretStr, ratio: float) -> None:
    log.info("order %s has %s lines", order.id, len(order.lines))
    log.info("%s %s", text, order.id)
    log.info("%s percent", ratio)
    log.info("order %s", shown(order))
