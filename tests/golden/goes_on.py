# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import again, workflow
from tests.golden.shop import charge


@workflow
def flow(n: int, who: str) -> int:
    found = []
    found.append(lambda: charge(who, cents=n))
    try:
        if n > 3:
            return again(n - 1, who)
    finally:
        charge(who, n)
    return 1
