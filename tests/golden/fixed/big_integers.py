# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow


@workflow
def flow(n: str) -> bool:
    return n == "9007199254740993"
