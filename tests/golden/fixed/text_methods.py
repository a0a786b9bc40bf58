# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, workflow)
from tests.golden.shop import notify


@pure
def titled(text: str) -> str:
    return text.title()


@pure
def is_number(text: str) -> bool:
    return text.isdigit()


@pure
def halves(text: str) -> list[str]:
    return text.split(",", 2)


@pure
def every_second(text: str) -> str:
    return text[::2]


@pure
def capitalize_of(text: str) -> Any:
    return text.capitalize()


@pure
def splitlines_of(text: str) -> Any:
    return text.splitlines(True)


@pure
def zfill_of(text: str, n: int) -> Any:
    return text.zfill(n)


@pure
def strip_of(text: str) -> Any:
    return text.strip(text)


@pure
def format_of(text: str, n: int) -> Any:
    return text.format(n)


@pure
def rjust_of(text: str, n: int) -> Any:
    return text.rjust(n)


@pure
def replace_of(text: str) -> Any:
    return text.replace(text, "")


@pure
def count_of(text: str) -> Any:
    return text.count("")


@pure
def text_of(x: float) -> str:
    return f"{x:.2f}"


@pure
def text_of_2(n: int) -> str:
    return f"{n:{n}}"


@pure
def text_of_3(text: str) -> str:
    return f"{text!r}"


@pure
def text_of_4(b: bool) -> str:
    return f"{b:>5}"


@pure
def text_of_5(n: int) -> str:
    return f"{n:+d}"


@pure
def text_of_6(n: int) -> str:
    return f"{n:#x}"


@pure
def encode_of(text: str) -> Any:
    return text.encode()


@pure
def value_of(text: str, n: int) -> Any:
    return text % n


@workflow
def flow(text: str, maybe: str | None, n: int, x: float, b: bool, cents: int) -> None:
    capitalize_of(text)
    splitlines_of(text)
    zfill_of(text, n)
    strip_of(text)
    format_of(text, n)
    rjust_of(text, n)
    replace_of(text)
    count_of(text)
    text_of(x)
    text_of_2(n)
    text_of_3(text)
    text_of_4(b)
    text_of_5(n)
    text_of_6(n)
    encode_of(text)
    value_of(text, n)
    a = titled(text)
    d = is_number(text)
    e = halves(text)
    if maybe is not None:
        l = maybe.strip()
    m = every_second(text)
    p = f"{cents // 100}.{cents % 100:02d}"
    w = ",".join(str(one) for one in [n])
