# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import pure, workflow
from tests.golden.shop import Line


@pure
def next_of(xs: list[int]) -> int:
    return next((10 // x for x in xs), 0)


@workflow
def flow(lines: list[Line], xs: list[int]) -> None:
    a = next((line for line in lines if line.unit_cents), None)
    b = next_of(xs)
    for c in list(map(str, xs)):
        pass
