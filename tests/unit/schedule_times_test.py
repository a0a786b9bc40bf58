"""Nominal times against another reading of the rules, over daylight saving time in five zones.

The other reading takes local times from dateutil's `rrule`. It finds their instants in a table of
the zone's offsets, hour by hour, and knows nothing of PEP 495.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise, product
from time import perf_counter
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from dateutil import rrule

from holdfast.core.schedules import MINUTE_MS, Rule, due_ms, fault_in, next_after

FROM: Final = datetime(2025, 1, 1, tzinfo=UTC)
UNTIL: Final = datetime(2028, 1, 1, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
#: With Lord Howe's half an hour, Chatham's quarters, and Casablanca's two changes for Ramadan.
ZONES: Final = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Africa/Casablanca",
)
DAILY: Final[dict[str, Any]] = {"freq": rrule.DAILY, "bysecond": 0}
RULES: Final[dict[str, dict[str, Any]]] = {
    "30 2 * * *": {**DAILY, "byhour": 2, "byminute": 30},
    "0 9 * * MON-FRI": {**DAILY, "byhour": 9, "byminute": 0, "byweekday": range(5)},
    "*/15 1-3 * * *": {**DAILY, "byhour": (1, 2, 3), "byminute": (0, 15, 30, 45)},
    "15 2 1,15 * *": {**DAILY, "byhour": 2, "byminute": 15, "bymonthday": (1, 15)},
    "45 2 * 3,4,10 SUN": {
        **DAILY,
        "byhour": 2,
        "byminute": 45,
        "bymonth": (3, 4, 10),
        "byweekday": rrule.SU,
    },
    "0,59 1-2/1 L * *": {**DAILY, "byhour": (1, 2), "byminute": (0, 59), "bymonthday": -1},
    "30 2 * MAR-NOV SUN#1,SUN#5": {
        **DAILY,
        "freq": rrule.MONTHLY,
        "byhour": 2,
        "byminute": 30,
        "bymonth": range(3, 12),
        "byweekday": (rrule.SU(1), rrule.SU(5)),
    },
    "15 */6 * * 7": {
        **DAILY,
        "byhour": (0, 6, 12, 18),
        "byminute": 15,
        "byweekday": rrule.SU,
    },
    # A day of the month beside a day of the week: either of them is enough.
    "30 2 29 * FRI": {**DAILY, "byhour": 2, "byminute": 30, "bymonthday": 29},
}
EITHER: Final[dict[str, dict[str, Any]]] = {
    "30 2 29 * FRI": {**DAILY, "byhour": 2, "byminute": 30, "byweekday": rrule.FR},
}


@cache
def changes(zone: str) -> tuple[list[datetime], list[timedelta]]:
    """Return the hours at which the offset of the zone is another one, and those offsets."""
    at, starts, offsets = FROM - timedelta(days=30), list[datetime](), list[timedelta]()
    while at < UNTIL + timedelta(days=30):
        offset = at.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()
        if not offsets or offsets[-1] != offset:
            starts.append(at)
            offsets.append(offset)
        at += timedelta(minutes=30)
    return starts, offsets


def instant(zone: str, local: datetime, missing: str, repeated: str) -> datetime | None:
    """Return the instant of a local time, from the table alone."""
    starts, offsets = changes(zone)
    found = []
    for number, offset in enumerate(offsets):
        at = (local - offset).replace(tzinfo=UTC)
        end = starts[number + 1] if number + 1 < len(starts) else UNTIL + timedelta(days=99)
        if starts[number] <= at < end:
            found.append(at)
    if found:
        return found[0] if repeated == "first" else found[-1]
    if missing == "skip":
        return None
    before = offsets[bisect_right(starts, (local - timedelta(hours=26)).replace(tzinfo=UTC)) - 1]
    return (local - before).replace(tzinfo=UTC)


def read_otherwise(
    cron: str, zone: str, missing: str, repeated: str, until: datetime = UNTIL
) -> list[datetime]:
    day = timedelta(days=2)
    begin, end = (FROM - day).replace(tzinfo=None), (until + day).replace(tzinfo=None)
    locals_ = set(rrule.rrule(dtstart=begin, until=end, **RULES[cron]))
    if cron in EITHER:
        locals_ |= set(rrule.rrule(dtstart=begin, until=end, **EITHER[cron]))
    found = {instant(zone, local, missing, repeated) for local in locals_}
    return sorted(at for at in found if at is not None and FROM < at < until)


def read(rule: Rule, begin: datetime = FROM, end: datetime = UNTIL) -> Iterator[datetime]:
    at_ms = next_after(rule, int(begin.timestamp() * 1_000))
    while at_ms is not None and at_ms < end.timestamp() * 1_000:
        yield datetime.fromtimestamp(at_ms / 1_000, UTC)
        at_ms = next_after(rule, at_ms)


def require_same(cron: str, zone: str, missing: Any, repeated: Any, until: datetime = UNTIL) -> int:
    found = list(read(Rule(cron, zone, missing=missing, repeated=repeated), end=until))
    expected = read_otherwise(cron, zone, missing, repeated, until)
    assert found == expected, (cron, zone, missing, repeated)
    return len(found)


@pytest.mark.parametrize("zone", ZONES)
def test_three_years_of_half_past_two_in_five_zones(zone: str) -> None:
    require_same("30 2 * * *", zone, "shift", "first")


@pytest.mark.parametrize("cron", RULES)
def test_every_rule_over_a_year_where_half_an_hour_is_missing(cron: str) -> None:
    require_same(cron, "Australia/Lord_Howe", "shift", "first", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("repeated", ["first", "last"])
def test_the_next_time_after_any_instant_around_a_change_is_the_next_of_all(
    zone: str, repeated: Any
) -> None:
    rule = Rule("30 2 * * *", zone, repeated=repeated)
    times = read_otherwise(rule.cron, zone, "shift", repeated)
    around = [at for at in changes(zone)[0] if FROM + 3 * HOUR < at < UNTIL - 3 * HOUR]
    assert len(around) >= 6
    for change, minutes in product(around, range(-180, 180, 10)):
        at = change + timedelta(minutes=minutes)
        found = next_after(rule, int(at.timestamp() * 1_000))
        assert found == int(times[bisect_right(times, at)].timestamp() * 1_000), (zone, at)


@pytest.mark.slow
def test_every_rule_with_every_setting_in_five_zones_over_three_years() -> None:
    begun, times = perf_counter(), 0
    settings = list(product(RULES, ZONES, ("shift", "skip"), ("first", "last")))
    for cron, zone, missing, repeated in settings:
        times += require_same(cron, zone, missing, repeated)
    print(f"{len(settings)} readings, {times} nominal times, {perf_counter() - begun:.0f} s")


def _on(day: str, **settings: Any) -> list[str]:
    """Return the local times of one day in Berlin, with their offsets."""
    zone = ZoneInfo("Europe/Berlin")
    begin = datetime.fromisoformat(day).replace(tzinfo=zone)
    rule = Rule("30 2 * * *", "Europe/Berlin", **settings)
    found = read(rule, begin, begin + timedelta(days=1))
    return [f"{at.astimezone(zone):%H:%M%z}" for at in found]


def test_a_missing_local_time_is_shifted_or_skipped_and_a_repeated_one_is_first_or_last() -> None:
    assert _on("2026-03-29") == ["03:30+0200"]
    assert _on("2026-03-29", missing="skip") == []
    assert _on("2026-10-25") == ["02:30+0200"]
    assert _on("2026-10-25", repeated="last") == ["02:30+0100"]


def test_a_day_that_a_zone_left_out_is_shifted_to_the_next_one() -> None:
    """Samoa had no 30 December 2011."""
    rule = Rule("0 12 30 12 *", "Pacific/Apia")
    begin = datetime(2011, 12, 1, tzinfo=UTC)
    (at,) = read(rule, begin, begin + timedelta(days=60))
    assert at.astimezone(ZoneInfo("Pacific/Apia")).isoformat() == "2011-12-31T12:00:00+14:00"


def test_an_interval_knows_no_local_time() -> None:
    rule = Rule(every_ms=30 * MINUTE_MS)
    begin = datetime(2026, 3, 28, 23, 15, tzinfo=UTC)
    found = list(read(rule, begin, begin + timedelta(hours=3)))
    assert found[0] == datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    assert {later - one for one, later in pairwise(found)} == {HOUR / 2}


def test_jitter_is_always_the_same_within_its_bound_and_differs_between_times() -> None:
    rule = Rule("0 9 * * *", jitter_ms=10 * MINUTE_MS)
    nominal = [int(at.timestamp() * 1_000) for at in read(rule, end=FROM + timedelta(days=99))]
    spread = [due_ms(rule, "report", one) - one for one in nominal]
    assert spread == [due_ms(rule, "report", one) - one for one in nominal]
    assert all(0 <= one < 10 * MINUTE_MS for one in spread)
    assert len(set(spread)) > len(spread) / 2


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [
        ("0 9 * *", "UTC", "five fields"),
        ("0 0 9 * * *", "UTC", "five fields"),
        ("61 9 * * *", "UTC", "cannot be read"),
        ("0 9 * * *", "Europe/Atlantis", "no time zone"),
        ("0 9 31 2 *", "UTC", "cannot be read"),
    ],
)
def test_an_expression_or_zone_that_cannot_be_read_is_said(cron: str, zone: str, said: str) -> None:
    assert said in str(fault_in(Rule(cron, zone)))
