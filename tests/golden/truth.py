# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import anything


@workflow
def flow(extra: dict) -> str:
    if extra["x"]:
        return "x"
    if not anything():
        return "y"
    return "z" if extra.get("y") else "w"
