# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Callable

from holdfast import minutes, sleep, task, workflow


@task
def exists(path: str) -> bool: ...


def wait_until(ready: Callable[[], bool]) -> None:
    while not ready():
        sleep(minutes(1))


def run_with(function: Callable[[str], bool], path: str) -> bool:
    return function(path)


@workflow
def flow(path: str) -> bool:
    wait_until(lambda: exists(path))
    return run_with(exists, path)
