# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import again, compensating, workflow
from tests.golden.shop import charge


@workflow
def flow(n: int, who: str) -> int:
    with compensating() as undo:
        undo(charge, who, cents=n)
    goes_on = False
    try:
        if n > 3:
            goes_on = True
    finally:
        charge(who, n)
    if goes_on:
        return again(n - 1, who)
    return 1
