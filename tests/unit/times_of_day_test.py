"""Times of day: of moments, as constants and in comparisons; ratios of durations."""

from __future__ import annotations

from datetime import time, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.types.annotations import written
from holdfast.testing import Difference, World
from tests.unit.dsl_kit import EXPRESSION_ERROR, assert_same, loaded

HEADER = """
from __future__ import annotations
from datetime import UTC, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo
from holdfast import hours, task, workflow
OPEN = time(9)
CLOSE = time(17, 30, 15, 250000)
ZONED = time(10, tzinfo=UTC)
SUMMER = time(9, tzinfo=ZoneInfo("Europe/Berlin"))
@task
def say(text: str) -> None: ...
@workflow
def ordered(one: time, other: time) -> list[bool]:
    return [one < other, one <= other, one > other, one >= other, one == other, one != other]
@workflow
def equal(one: time, other: time) -> list[bool]:
    return [one == other, one != other, one == ZONED]
@workflow
def told(one: time, other: time) -> str:
    try:
        say("a")
        return "before" if one < other else "after"
    except TypeError as err:
        return str(err)
@workflow
def parts(at: datetime) -> list[Any]:
    clock = at.time()
    return [clock, clock.hour, clock.minute, clock.second, f"{clock}", OPEN, CLOSE, ZONED]
@workflow
def is_open(at: datetime) -> bool:
    return at.weekday() < 5 and OPEN <= at.time() < CLOSE
@workflow
def ratios(wait: timedelta, at: datetime, other: datetime) -> list[Any]:
    return [
        wait / hours(1), wait // hours(1), (wait % hours(7)).total_seconds(),
        (at - other) / hours(5), (at - other) // wait, (at - other) / (other - at)
    ]
"""
NAIVE = ("09:00", "09:00:00.000001", "08:59:59.999999", "23:00:01", "00:00:00")
AWARE = ("09:00Z", "10:00+01:00", "09:00:00.5Z", "00:30+02:00", "23:30-02:00", "09:00-00:30")
MOMENTS = (
    "2026-01-02T09:00:00Z",
    "2026-01-02T17:30:15.250000+01:00",
    "2026-01-02T17:30:15.249999-05:30",
    "2026-01-03T12:00:00",
    "0001-01-01T00:00:00.000001",
)


def run(tmp_path: Path, name: str, **given: Any) -> Any:
    with loaded(tmp_path, HEADER) as module:
        return assert_same(getattr(module, name), given)


@pytest.mark.parametrize("times", [NAIVE, AWARE])
def test_times_have_the_order_of_python(tmp_path: Path, times: tuple[str, ...]) -> None:
    with loaded(tmp_path, HEADER) as module:
        for one in times:
            for other in times:
                assert assert_same(module.ordered, {"one": one, "other": other}).error is None


def test_a_naive_and_an_aware_time_differ_and_have_no_order(tmp_path: Path) -> None:
    given = {"one": NAIVE[0], "other": AWARE[0]}
    assert run(tmp_path, "equal", **given).output == [False, True, False]
    assert run(tmp_path, "ordered", **given).error == EXPRESSION_ERROR
    text = "can't compare offset-naive and offset-aware times"
    assert run(tmp_path, "told", **given).output == text


@pytest.mark.parametrize("at", MOMENTS)
def test_a_moment_has_the_time_of_its_clock(tmp_path: Path, at: str) -> None:
    assert run(tmp_path, "parts", at=at).error is None
    assert run(tmp_path, "is_open", at=at).error is None


def test_a_workflow_knows_whether_a_shop_is_open(tmp_path: Path) -> None:
    assert run(tmp_path, "is_open", at=MOMENTS[0]).output is True
    assert run(tmp_path, "is_open", at=MOMENTS[1]).output is False


@pytest.mark.parametrize("wait", ["PT1H", "P3DT4H5M6S", "-PT5H1S", "PT0S"])
@pytest.mark.parametrize("other", [*MOMENTS[:3], "1999-12-31T23:59:59.999999Z"])
def test_durations_are_divided_as_in_python(tmp_path: Path, wait: str, other: str) -> None:
    found = run(tmp_path, "ratios", wait=wait, at=MOMENTS[0], other=other)
    is_zero = wait == "PT0S" or other == MOMENTS[0]
    assert found.error == (EXPRESSION_ERROR if is_zero else None)


@pytest.mark.parametrize(
    "at",
    ["2137-03-30T17:23:43.596853Z", "2272-03-01T12:00:00.000001Z", "1728-01-01T00:00:00.999999Z"],
)
def test_a_microsecond_counts_in_a_ratio_over_centuries(tmp_path: Path, at: str) -> None:
    for other in ("2000-01-01T00:00:00Z", "2000-01-01T00:00:00.000001Z"):
        assert run(tmp_path, "ratios", wait="PT1S", at=at, other=other).error is None


def test_a_difference_that_a_number_cannot_hold_is_an_error(tmp_path: Path) -> None:
    given = {"wait": "PT1S", "other": "2000-01-01T00:00:00Z"}
    with loaded(tmp_path, HEADER) as module, pytest.raises(Difference) as found:
        World().run_json(module.ratios, {**given, "at": "2281-07-29T14:11:10.000001Z"})
    assert EXPRESSION_ERROR in str(found.value)


def test_a_constant_is_written_as_pydantic_writes_it() -> None:
    zones = (timezone.utc, timezone(timedelta(hours=-5, minutes=-30)))  # noqa: UP017
    found = [written(time(9, 0, 0, 5, zone)) for zone in (None, *zones)]
    assert found == ["09:00:00.000005", "09:00:00.000005Z", "09:00:00.000005-05:30"]


def test_a_constant_whose_offset_changes_with_the_date_is_refused(tmp_path: Path) -> None:
    text = "@workflow\ndef flow(one: time) -> bool:\n    return one < SUMMER\n"
    with loaded(tmp_path, HEADER + text) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "error[HF003]" in str(refused.value)
