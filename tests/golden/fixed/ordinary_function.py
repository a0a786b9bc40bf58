# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import logging
import os
from typing import Any

from holdfast import (pure, task, workflow)
from tests.golden.shop import Order, vat

log = logging.getLogger(__name__)


@pure
def join_of(total: Any) -> Any: return os.path.join(str(total), "x")


@pure
def vat_of(cents: int) -> int:
    return cents // 5


@workflow
def flow(order: Order) -> int:
    total = vat(order.lines[0].unit_cents)
    log.info("%s", total)
    folder = join_of(total)
    folder = vat_of(total)
    return total + round(2.5)
