# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import datetime
import os

from holdfast import (task, workflow)
from tests.golden.shop import Order, charge

RATES = {"1": 'a'}
missing = "found"
PRICES = list(range(20_000))


@task
def tomorrow() -> str:
    return str(datetime.datetime.now() + datetime.timedelta(days=1))


@task
def setting() -> str:
    return os.environ["X"]


@task
def price_text() -> str:
    return str(PRICES[7])


@task
def lost(order: Order) -> str: ...


@workflow
def flow(order: Order) -> str:
    when = tomorrow()
    task = charge("a", 1)
    text = setting() + RATES["1"] + missing
    return text + lost(order) + price_text()
