# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import logging

from pydantic import SecretStr

from holdfast import workflow
from tests.golden.shop import Order

log = logging.getLogger("shop")


@workflow
def flow(order: Order, text: str, token: SecretStr, ratio: float) -> None:
    log.info("order", extra={"id": order.id})
    log.info(text, order.id)
    log.info("%s and %s", order.id)
    log.info("%r", order.id)
    log.info("token %s", token)
    log.info("%d percent", ratio)
    log.info("order %s", order)
