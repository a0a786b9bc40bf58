# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (compensating, hours, shielded, timeout, workflow)
from tests.golden.shop import notify


@workflow
def flow(n: int) -> None:
    with open("in.csv") as f:
        pass
    with compensating():
        pass
    with compensating() as undo, compensating() as other:
        pass
    with compensating(on_undo_failure="retry") as undo:
        pass
    with timeout():
        pass
    with timeout(90):
        pass
    with timeout(hours(0)):
        pass
    with timeout(hours(1)) as clock:
        pass
    with shielded(n), open("x"):
        pass
