# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import datetime
import os

from holdfast import workflow
from tests.golden.shop import Order, charge

RATES = {1.5: 'a'}
PRICES = list(range(20_000))


@workflow
def flow(order: Order) -> str:
    task = charge
    return os.environ["X"] + RATES[1.5] + missing + lost(order) + PRICES[7]
