# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (compensating, hours, minutes, shielded, task, timeout, workflow)


@task
def read() -> None: ...
@task
def tidy_up() -> None: ...


@workflow
def flow(n: int) -> None:
    try:
        read()
    finally:
        tidy_up()
    with compensating() as undo:
        read()
    with compensating() as undo, compensating() as other:
        read()
    with compensating(on_undo_failure="stop") as undo:
        read()
    with timeout(minutes(30)):
        read()
    with timeout(hours(1)):
        read()
    with shielded():
        read()
