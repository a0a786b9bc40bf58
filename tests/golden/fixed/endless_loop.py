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
        if n > 5:
            break


def tick() -> None:
    while True:
        sleep(minutes(5))


@workflow
def beside(n: int) -> None:
    first(lambda: tick(), lambda: sleep(minutes(n)))


def tell() -> None:
    while True:
        publish("status", "open")
        sleep(minutes(5))


@workflow
def told(n: int) -> None:
    first(lambda: tell(), lambda: sleep(minutes(n)))
