# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import time

from holdfast import publish, task, workflow


@task
def copy_part(part: int) -> int:
    return part


@task
def rest(n: int) -> list[None]:
    return [time.sleep(n) for _ in range(n)]


@workflow
def flow(n: int) -> int:
    rest(n)
    publish("progress", n)
    return copy_part(n)
