# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (first, minutes, publish, sleep, workflow)


@workflow
def flow(n: int) -> None:
    while True:
        while True:
            break
        sleep(minutes(n))


def tick() -> None:
    while True:
        sleep(minutes(5))


@workflow
def beside(n: int) -> None:
    first(lambda: tick(), lambda: tick())


def tell() -> None:
    while True:
        publish("status", "open")


@workflow
def told(n: int) -> None:
    first(lambda: tell(), lambda: sleep(minutes(n)))
