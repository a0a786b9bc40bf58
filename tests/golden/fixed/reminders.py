# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta

from holdfast import ask, days, hours, workflow


@workflow
def flow(order: str, ahead: timedelta, count: int) -> None:
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=hours(4))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=hours(4))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=(hours(4), hours(1)))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=(days(1), hours(4)))
    ask("Sure?", bool, assignee="ada", timeout=days(2), remind=(ahead, hours(4)))
