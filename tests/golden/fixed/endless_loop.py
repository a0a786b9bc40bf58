# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (minutes, sleep, workflow)


@workflow
def flow(n: int) -> None:
    while True:
        while True:
            break
        sleep(minutes(n))
        if n > 5:
            break
