# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import logging

from pydantic import SecretStr

from holdfast import workflow
from tests.golden.shop import Order

log = logging.getLogger("shop")


@workflow
def flow(order: Order, text: str, token: SecretStr) -> None:
    log.info("order %s has %s lines", order.id, len(order.lines))
    log.info("%s %s", text, order.id)
