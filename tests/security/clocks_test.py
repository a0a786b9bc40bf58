"""Clocks that are far off, go backwards, or show times that there are not."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from holdfast.asl.timestamps import nanos_of
from holdfast.core.decision import iso_time
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.storage import keys
from holdfast_simulator.invariants import check
from tests.builders import Shop, ask, call, machine, wait_for
from tests.security.cases import Outcome, generator, run_generated
from tests.unit.core_kit import Case, one

DAY_MS: Final = 86_400_000
MOMENTS: Final = {
    "the beginning": 1,
    "the first second": 1_000,
    "the end of 1999": 946_684_799_999,
    "a leap second": 1_483_228_799_999,  # 2016-12-31T23:59:59.999Z, before :60
    "the end of 32 bits": (2**31 - 1) * 1_000,
    "past 32 bits": 2**31 * 1_000,
    "past unsigned 32 bits": 2**32 * 1_000,
    "a leap day of 2100 that there is not": 4_107_542_399_999,
    "the year 9000": 221_845_392_000_000,
    "two weeks before the end": 253_402_300_799_999 - 14 * DAY_MS,
    "the end of the year 9999": 253_402_300_799_999,
}
WORK: Final = machine(
    {
        "work": call("x", "nap", Retry=[{"ErrorEquals": ["E"], "IntervalSeconds": 2_000}]),
        "nap": {"Type": "Wait", "Seconds": 1_000, "Next": "race"},
        "race": {
            "Type": "Parallel",
            "End": True,
            "Branches": [
                machine({"event": wait_for("paid", TimeoutSeconds=90, Catch=[
                    {"ErrorEquals": ["States.Timeout"], "Next": "late"}]),
                    "late": {"Type": "Pass", "End": True}}),
                machine({"ask": ask(TimeoutSeconds=3_600, Catch=[
                    {"ErrorEquals": ["States.Timeout"], "Next": "over"}]),
                    "over": {"Type": "Pass", "End": True}}),
            ],
        },
    }
)  # fmt: skip


def second_time(effect: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskSucceeded(effect.attempt) if effect.attempt > 1 else TaskFailed("E", None)


@pytest.mark.parametrize("now_ms", MOMENTS.values(), ids=MOMENTS.keys())
def test_an_execution_of_any_year_ends_and_can_be_described(now_ms: int) -> None:
    shop = Shop(WORK, tasks=second_time)
    shop.world.now_ms = now_ms
    run = shop.start({"n": 1})
    seen = set()
    for hours in range(3):
        shop.world.run(until_ms=now_ms + hours * 3_000_000)
        seen.add(shop.describe(run)["status"])
        shop.insist(lambda: shop.front.history("default", run))
    shop.world.run(until_ms=now_ms + 2 * DAY_MS)

    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert "RUNNING" in seen
    assert check(shop.world) == []
    assert shop.insist(lambda: shop.front.executions("default", {}))["executions"]


BACKWARDS: Final = [1, 500, 999, 1_001, 60_000, 3_600_000, DAY_MS, 400 * DAY_MS]


@pytest.mark.parametrize("back_ms", BACKWARDS)
def test_a_clock_that_goes_backwards_fires_nothing_early_and_loses_nothing(back_ms: int) -> None:
    shop = Shop(WORK, tasks=second_time)
    world = shop.world
    run = shop.start({"n": 1})
    world.skew = lambda number: -back_ms if number % 3 == 1 else 0
    start_ms = world.now_ms
    world.run(until_ms=start_ms + 60_000)
    world.skew = lambda _: 0
    world.run(until_ms=start_ms + 3 * DAY_MS)

    assert shop.history(run).state.status == "SUCCEEDED"
    assert check(world) == []


TIMESTAMPS: Final = [
    # text, milliseconds since 1970; None: no time
    ("1970-01-01T00:00:00Z", 0),
    ("1969-12-31T23:59:59Z", -1_000),
    ("1970-01-01T00:00:00+00:00", 0),
    ("1970-01-01T00:00:00-00:00", 0),
    ("1970-01-01T05:30:00+05:30", 0),
    ("1969-12-31T12:00:00-12:00", 0),
    ("1970-01-01T14:00:00+14:00", 0),
    ("1970-01-01T18:00:00+18:00", 0),
    ("1970-01-01T18:01:00+18:01", None),
    ("1970-01-01T99:00:00+99:00", None),
    ("1970-01-01T00:00:00+05:60", None),
    ("1970-01-01T00:00:00.001Z", 1),
    ("1970-01-01T00:00:00.999999999Z", 999),
    ("1970-01-01T00:00:00.9999999999Z", None),
    ("1970-01-01T00:00:00.Z", None),
    ("2016-12-31T23:59:60Z", None),
    ("2016-12-31T24:00:00Z", None),
    ("2015-02-29T00:00:00Z", None),
    ("2100-02-29T00:00:00Z", None),
    ("2000-02-29T00:00:00Z", 951_782_400_000),
    ("2038-01-19T03:14:08Z", 2**31 * 1_000),
    ("9999-12-31T23:59:59Z", 253_402_300_799_000),
    ("9999-12-31T23:59:59-18:00", 253_402_300_799_000 + 18 * 3_600_000),
    ("0001-01-01T00:00:00Z", -62_135_596_800_000),
    ("0001-01-01T00:00:00+18:00", -62_135_596_800_000 - 18 * 3_600_000),
    ("0000-01-01T00:00:00Z", None),
    ("10000-01-01T00:00:00Z", None),
    ("-0001-01-01T00:00:00Z", None),
    ("1970-01-01t00:00:00z", None),
    ("1970-01-01 00:00:00Z", None),
    ("1970-01-01T00:00:00", None),
    ("1970-01-01T00:00Z", None),
    ("1970-W01-1T00:00:00Z", None),
    ("\u0661970-01-01T00:00:00Z", None),
    ("1970-01-01T00:00:00Z\n", None),
    (" 1970-01-01T00:00:00Z", None),
    ("1970-01-01T00:00:00+0100", None),
    ("1970-01-01T00:00:00[UTC]", None),
    ("", None),
    ("now", None),
]


@pytest.mark.parametrize(("text", "at_ms"), TIMESTAMPS)
def test_a_timestamp_is_the_moment_that_it_names_or_none(text: str, at_ms: int | None) -> None:
    nanos = nanos_of(text)

    assert (None if nanos is None else nanos // 1_000_000) == at_ms


@pytest.mark.parametrize(("text", "at_ms"), TIMESTAMPS)
def test_a_wait_until_any_timestamp_waits_ends_or_fails_by_name(
    text: str, at_ms: int | None
) -> None:
    definition = one({"Type": "Wait", "Timestamp": "{% $states.input %}"})
    case = Case(definition).start(text)
    if at_ms is None:
        assert case.failure[0] in {"States.Runtime", "States.QueryEvaluationError"}
        return
    assert case.state.is_ended == (at_ms <= case.now_ms)
    shop = Shop(definition)
    run = shop.start(text)
    shop.world.run(until_ms=shop.world.now_ms + DAY_MS)
    shown = shop.describe(run)
    assert shown["status"] == ("SUCCEEDED" if at_ms <= case.now_ms else "RUNNING")
    assert check(shop.world) == []


@pytest.mark.parametrize("at_ms", [-1, 0, 253_402_300_799_999, 253_402_300_800_000, 10**15 - 1])
def test_any_moment_that_a_key_can_hold_has_a_text(at_ms: int) -> None:
    text = iso_time(at_ms)

    assert nanos_of(text) is not None
    assert len(text) == 24


@pytest.mark.parametrize("now_ms", MOMENTS.values(), ids=MOMENTS.keys())
def test_an_id_made_at_any_time_is_known_again(now_ms: int) -> None:
    run = keys.mint_run("default", now_ms, b"01234567", b"secret")

    assert keys.is_minted("default", run, b"secret")
    assert keys.minted_ms(run) == now_ms % 2**45  # until the year 3084


# -- generated -------------------------------------------------------------------------------------


@generator("clocks", full=5_000)
def clock(draw: Random) -> Outcome:
    """A time of any kind to wait for, at any hour, on hosts whose clocks are anywhere near it."""
    now_ms = draw.choice([*MOMENTS.values(), draw.randrange(0, 253_402_300_799_999)])
    text = _timestamp(draw)
    states = {
        "nap": {"Type": "Wait", "Timestamp": "{% $states.input.until %}", "Next": "more"},
        "more": {
            "Type": "Wait",
            "Seconds": draw.choice([0, 1, 899, 900, 901, 86_400]),
            "End": True,
        },
    }
    shop = Shop(machine(states))
    shop.world.now_ms = now_ms
    far_ms = draw.choice([0, 400, 500])
    shop.world.skew = lambda number: far_ms if number % 2 else -far_ms
    run = shop.start({"until": text})
    shop.world.run(until_ms=now_ms + 3 * DAY_MS)
    shown = shop.describe(run)
    assert check(shop.world) == []
    at_ms = nanos_of(text)
    if at_ms is None:
        assert (shown["status"], shown["error"]) == ("FAILED", "States.QueryEvaluationError")
        return "refused"
    is_over = at_ms // 1_000_000 + DAY_MS < now_ms + 2 * DAY_MS
    assert shown["status"] == "SUCCEEDED" or not is_over
    return "accepted"


def _timestamp(draw: Random) -> str:
    if draw.random() < 0.3:
        text = str(draw.choice(TIMESTAMPS)[0])
        at = draw.randrange(len(text) + 1)
        return text[:at] + draw.choice("0123456789:-+TZ. ") + text[at + 1 :]
    day = (draw.randrange(1, 10_000), draw.randrange(1, 14), draw.randrange(1, 32))
    time = (draw.randrange(0, 25), draw.randrange(0, 61), draw.randrange(0, 62))
    fraction = draw.choice(["", ".5", ".123456789", ".000"])
    offset = draw.choice(["Z", "+00:00", "-12:00", "+14:00", "+18:00", "-18:30", "+05:45"])
    year, month, date = day
    hour, minute, second = time
    return f"{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}{fraction}{offset}"


def test_no_generated_clock_breaks_anything() -> None:
    tally: Any = run_generated("clocks", 150, seed=1)

    assert min(tally.refused, tally.accepted) > 10
