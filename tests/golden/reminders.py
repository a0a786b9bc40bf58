# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta

from holdfast import ask, days, hours, workflow


@workflow
def flow(order: str, ahead: timedelta, count: int) -> None:
    ask("Sure?", bool, assignee="ada", remind=hours(4))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=4)
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=(hours(4), count))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=(hours(1), hours(2), hours(3), hours(4), hours(5),
        hours(6), hours(7), hours(8), hours(9), hours(10), hours(11)))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=(ahead, hours(4)))
