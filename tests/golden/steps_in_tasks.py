# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import publish, seconds, sleep, task, workflow


@task
def copy_part(part: int) -> int:
    publish("progress", part)
    return part


@task
def rest(n: int) -> list[None]:
    return [sleep(seconds(n)) for _ in range(n)]


@workflow
def flow(n: int) -> int:
    rest(n)
    return copy_part(n)
