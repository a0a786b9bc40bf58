# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Callable

from holdfast import minutes, sleep, task, workflow


@task
def exists(path: str) -> bool: ...


@workflow
def flow(path: str) -> bool:
    def wait_until() -> None:
        while not exists(path):
            sleep(minutes(1))

    def run_with(path: str) -> bool:
        return exists(path)

    wait_until()
    return run_with(path)
