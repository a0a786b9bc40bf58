# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import notify


@workflow
def flow(text: str, maybe: str | None, n: int, x: float, b: bool) -> None:
    a = text.title()
    c = text.capitalize()
    d = text.isdigit()
    e = text.split(",", 2)
    f = text.splitlines(True)
    g = text.zfill(n)
    h = text.strip(text)
    i = text.format(n)
    j = text.rjust(n)
    k = text.replace(text, "")
    l = maybe.strip()
    m = text[::2]
    o = text.count("")
    p = f"{x:.2f}"
    q = f"{n:{n}}"
    r = f"{text!r}"
    s = f"{b:>5}"
    t = f"{n:+d}"
    u = f"{n:#x}"
    v = text.encode()
    w = ",".join([n])
    y = text % n
