# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (first, minutes, publish, shielded, sleep, workflow)


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


def seldom(n: int) -> None:
    while True:
        if n > 5:
            sleep(minutes(5))
        else:
            sleep(minutes(1))


def kept() -> None:
    while True:
        with shielded():
            publish("status", "open")
            sleep(minutes(5))
        sleep(minutes(1))


@workflow
def late(n: int) -> None:
    first(lambda: seldom(n), lambda: kept(), lambda: sleep(minutes(n)))
