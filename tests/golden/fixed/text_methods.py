# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, workflow)
from tests.golden.shop import notify


@pure
def value_of_2(text: str) -> str:
    return text[3:1:-1]


@pure
def splitlines_of(text: str) -> Any:
    return text.splitlines(True)


@pure
def format_of(text: str, n: int) -> Any:
    return text.format(n)


@pure
def text_of_2(b: bool, n: int) -> str:
    return f"{b:{n}}"


@pure
def text_of_4(b: bool) -> str:
    return f"{b:>5}"


@pure
def encode_of(text: str) -> Any:
    return text.encode()


@pure
def value_of(text: str, n: int) -> Any:
    return text % n


@workflow
def flow(text: str, maybe: str | None, n: int, x: float, b: bool) -> None:
    splitlines_of(text)
    format_of(text, n)
    text_of_2(b, n)
    text_of_4(b)
    encode_of(text)
    value_of(text, n)
    if maybe is not None:
        l = maybe.strip()
    m = value_of_2(text)
    w = ",".join(str(one) for one in [n])
