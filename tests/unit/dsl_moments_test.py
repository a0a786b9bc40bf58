"""Dates and moments in workflows: the compiled expression gives what Python gives."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsl_kit import EXPRESSION_ERROR, assert_same, loaded

HEADER = """
from __future__ import annotations
from datetime import date, datetime, timedelta
from typing import Any
from holdfast import days, hours, minutes, seconds, sleep_until, task, workflow
"""
DATES = """
@workflow
def moved(day: date, wait: timedelta) -> list[date]:
    return [day + wait, wait + day, day - wait, day + days(1)]

@workflow
def between(day: date, other: date) -> list[int]:
    left = day - other
    return [left.days, left.seconds, (other - day).days]

@workflow
def parts(day: date) -> list[int]:
    return [day.weekday(), day.isoweekday(), day.year, day.month, day.day]

@workflow
def every_day(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]

@workflow
def parts_of(wait: timedelta) -> list[int]:
    return [wait.days, wait.seconds, (wait - hours(30)).days, (wait - hours(30)).seconds]
"""
MOMENTS = """
@workflow
def moved(at: datetime, wait: timedelta) -> list[datetime]:
    return [at + wait, wait + at, at - wait, at + minutes(90)]

@workflow
def ordered(at: datetime, other: datetime) -> list[bool]:
    return [at < other, at <= other, at > other, at >= other, at == other, at != other]

@workflow
def in_order(moments: list[datetime]) -> list[Any]:
    late = max(enumerate(moments), key=lambda row: row[1])[0]
    first = min(moments, default=None)
    return [sorted(moments), sorted(moments, reverse=True), late, first,
        [row[0] for row in sorted(enumerate(moments), key=lambda row: (row[1], -row[0]))]]

@workflow
def latest(at: datetime, other: datetime) -> datetime:
    return max(at, other)

@workflow
def equal(at: datetime, other: datetime) -> list[bool]:
    return [at == other, at != other]

@workflow
def parts(at: datetime) -> list[int]:
    clock = [at.year, at.month, at.day, at.hour, at.minute, at.second]
    return [*clock, at.weekday(), at.isoweekday()]

@workflow
def day_of(at: datetime) -> date:
    return at.date() - days(1)

@workflow
def slept(at: datetime) -> bool:
    until = at + minutes(5)
    sleep_until(until)
    return until > at
"""
DAYS = (
    date(2026, 3, 1), date(2024, 2, 29), date(1969, 12, 31), date(1, 1, 2), date(9999, 12, 30),
    date(1900, 3, 1), date(2000, 2, 28),
)  # fmt: skip
WAITS = (
    timedelta(0), timedelta(days=1), timedelta(hours=30), timedelta(hours=-30), timedelta(days=-1),
    timedelta(days=400, seconds=1),
)  # fmt: skip
EAST, WEST = timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=8))
AWARE = (
    datetime(2026, 3, 1, 9, 0, 0, 250_000, UTC),
    datetime(2026, 3, 1, 9, 0, 0, 250_000, UTC).astimezone(EAST),
    datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC),
    datetime(2026, 3, 1, 9, 0, 0, 1, UTC).astimezone(WEST),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime(9999, 12, 31, 23, 0, tzinfo=WEST),
    datetime(1, 1, 1, 1, 0, tzinfo=EAST),
)
NAIVE = ("2026-03-01T09:00:00", "2026-03-01T09:00:00.5", "2024-02-29T00:00:00")


def test_a_date_is_moved_by_whole_days_and_keeps_to_the_calendar(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + DATES) as module:
        for day in DAYS:
            assert_same(module.parts, {"day": day})
            for other in DAYS:
                assert_same(module.between, {"day": day, "other": other})
            for wait in WAITS:
                assert_same(module.moved, {"day": day, "wait": wait})
        for wait in WAITS:
            assert_same(module.parts_of, {"wait": wait})
        found = assert_same(module.every_day, {"first": date(2024, 2, 28), "last": "2024-03-01"})
        assert found.output == ["2024-02-28", "2024-02-29", "2024-03-01"]


@pytest.mark.parametrize("workflow", ["moved", "every_day"])
def test_a_day_after_the_last_one_is_an_error_of_the_expression(
    workflow: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"day": date(9999, 12, 31), "wait": timedelta(days=1)}
    if workflow == "every_day":
        given = {"first": date(9999, 12, 31), "last": date(9999, 12, 31)}
    with loaded(tmp_path, HEADER + DATES) as module:
        found = assert_same(getattr(module, workflow), given)
    assert found.error == (EXPRESSION_ERROR if workflow == "moved" else None)


def test_a_moment_keeps_its_offset_and_its_fraction(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + MOMENTS) as module:
        for at in (*AWARE, *NAIVE):
            assert_same(module.parts, {"at": at})
            assert_same(module.day_of, {"at": at})
            for wait in WAITS:
                assert_same(module.moved, {"at": at, "wait": wait})
        found = assert_same(module.moved, {"at": AWARE[1], "wait": timedelta(hours=1)})
    assert found.output[0] == "2026-03-01T15:30:00.250000+05:30"


def test_moments_are_ordered_by_their_instant(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + MOMENTS) as module:
        for group in (AWARE, NAIVE):
            for at in group:
                for other in group:
                    assert_same(module.ordered, {"at": at, "other": other})
        found = assert_same(module.ordered, {"at": AWARE[0], "other": AWARE[1]})
        assert found.output == [False, True, False, True, True, False]


def test_sorted_min_and_max_order_moments_by_their_instant(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + MOMENTS) as module:
        for group in (AWARE, NAIVE):
            assert_same(module.in_order, {"moments": list(group)})
            assert_same(module.in_order, {"moments": [*group[::-1], *group]})
        assert_same(module.in_order, {"moments": [AWARE[1]]})
        # The instants are equal, so the first one stays the first.
        found = assert_same(module.latest, {"at": AWARE[1], "other": AWARE[0]})
    assert found.output == "2026-03-01T14:30:00.250000+05:30"


def test_moments_with_and_without_an_offset_are_not_sorted(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + MOMENTS) as module:
        for moments in ([AWARE[0], NAIVE[0]], [*NAIVE, AWARE[1]]):
            assert assert_same(module.in_order, {"moments": moments}).error == EXPRESSION_ERROR
        found = assert_same(module.latest, {"at": AWARE[0], "other": NAIVE[0]})
    assert found.error == EXPRESSION_ERROR


def test_a_moment_without_an_offset_has_no_order_beside_one_with_an_offset(tmp_path: Path) -> None:
    given = {"at": AWARE[0], "other": NAIVE[0]}
    with loaded(tmp_path, HEADER + MOMENTS) as module:
        assert assert_same(module.ordered, given).error == EXPRESSION_ERROR
        assert assert_same(module.equal, given).output == [False, True]


def test_a_workflow_sleeps_until_a_computed_moment(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + MOMENTS) as module:
        assert assert_same(module.slept, {"at": AWARE[0]}).output is True
