# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import compensating, workflow


@workflow
def flow(n: int) -> None:
    with open("in.csv") as f:
        pass
    with compensating():
        pass
    with compensating() as undo, compensating() as other:
        pass
