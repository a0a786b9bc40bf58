# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import notify


@workflow
def flow(text: str, maybe: str | None, n: int, x: float, b: bool) -> None:
    f = text.splitlines(True)
    i = text.format(n)
    l = maybe.strip()
    m = text[3:1:-1]
    s = f"{b:>5}"
    t = f"{b:{n}}"
    v = text.encode()
    w = ",".join([n])
    y = text % n
