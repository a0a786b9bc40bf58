# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Line


@workflow
def flow(lines: list[Line], xs: list[int]) -> None:
    a = next(lines)
    b = next((10 // x for x in xs), 0)
    for c in map(str, xs):
        pass
