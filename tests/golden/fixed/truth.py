# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (task, workflow)


@task
def anything() -> int: ...


@workflow
def flow(extra: dict[str, str]) -> str:
    if extra["x"] is not None:
        return "x"
    x = anything()
    if len(extra) > 0 and x == 1:
        return "y"
    return "z" if extra.get("y") else "w"
