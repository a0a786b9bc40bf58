"""Schedules on the real handlers: each nominal time starts one execution, whatever crashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from holdfast.core import schedules as rules
from holdfast.core.schedules import MINUTE_MS, Progress, Rule
from holdfast.errors import RequestError
from holdfast.limits import SCHEDULE_BURST_MAX
from holdfast.runtime import follow_ups, schedules
from holdfast.runtime.commands.schedules import deploy
from holdfast.runtime.effects import (
    Clock,
    Deadline,
    Delete,
    Get,
    Measure,
    Query,
    Replace,
    TaskFailed,
    TaskSucceeded,
    WriteDeadline,
)
from holdfast.runtime.maintenance import due_schedules
from holdfast.runtime.schedules import Plan
from holdfast.runtime.worker import scheduled
from holdfast_simulator.invariants import check, histories
from holdfast_simulator.world import Hook, Killed, SimulatorWorld, When, no_faults
from tests.builders import Machine, call, machine
from tests.unit.child_kit import Family

TENANT: Final = "default"
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
QUICK: Final = machine({"work": call("work", Arguments={})})
LONG: Final = machine({"wait": {"Type": "Wait", "Seconds": 5_400, "End": True}})
HOURLY: Final = {"name": "report", "workflow": "flow", "cron": "0 * * * *"}
WHY: Final = {"reason": "holidays", "by": "ann"}


def clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%H:%M}"


class Timetable(Family):
    """A world with the workflow `flow`. Its clock begins at 08:00:00."""

    def __init__(self, definition: Machine = QUICK, hook: Hook = no_faults) -> None:
        self.fails = False
        super().__init__({"flow": definition}, self._work, hook)

    def _work(self, effect: Any) -> Any:

        return TaskFailed("Broken", "") if self.fails else TaskSucceeded(effect.arguments)

    def ask(self, make: Callable[[], Any]) -> Any:
        return self.world.call(make())

    def create(self, **more: Any) -> Any:
        return self.ask(lambda: self.front.create_schedule(TENANT, {**HOURLY, **more}))

    def show(self) -> Any:
        return self.ask(lambda: self.front.schedule(TENANT, "report"))

    def change(self, how: str, **request: Any) -> Any:
        method = getattr(self.front, f"{how}_schedule")
        return self.ask(lambda: method(TENANT, "report", request))

    def pass_time(self, milliseconds: int) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def begun(self) -> dict[str, str]:
        """Return the execution of each nominal time, and the time at which it began."""
        return {
            str(one.state.name).rpartition("T")[2]: clock(one.records[0].at_ms)
            for one in sorted(histories(self.world), key=lambda one: str(one.state.name))
        }


def test_a_cron_schedule_starts_an_execution_at_each_nominal_time() -> None:
    table = Timetable()
    told = table.create(input={"n": 1}, time_as="due")
    assert told["next"] == "2027-01-15T09:00:00.000Z"
    table.pass_time(3 * HOUR_MS + MINUTE_MS)

    assert table.begun() == {"0900Z": "09:00", "1000Z": "10:00", "1100Z": "11:00"}
    first = min(histories(table.world), key=lambda one: str(one.state.name))
    assert first.state.name == "report-20270115T0900Z"
    assert first.state.input == {"n": 1, "due": "2027-01-15T09:00:00.000Z"}
    assert (table.show()["started"], table.show()["late"]) == (3, 0)
    check(table.world)


def test_show_lists_what_runs_now_and_not_what_ran_at_the_last_time() -> None:
    table = Timetable(LONG)
    table.create()
    table.pass_time(HOUR_MS + MINUTE_MS)
    assert len(table.show()["running"]) == 1
    (begun,) = histories(table.world)
    table.stop(begun.run)
    table.pass_time(MINUTE_MS)
    assert table.show()["running"] == []


def test_an_interval_starts_an_execution_at_each_of_its_multiples() -> None:
    table = Timetable()
    table.create(cron=None, every=1_800)
    table.pass_time(HOUR_MS + MINUTE_MS)
    assert list(table.begun()) == ["0830Z", "0900Z"]


def test_a_nominal_time_takes_ten_write_units_and_a_schedule_that_waits_takes_none() -> None:
    table = Timetable()
    table.create()
    table.create(name="yearly", cron="0 0 1 1 *")
    table.pass_time(HOUR_MS + MINUTE_MS)
    before = replace(table.world.services.usage)
    table.pass_time(4 * HOUR_MS)

    usage = table.world.services.usage
    assert usage.write_units - before.write_units == 4 * 10
    assert usage.sqs_send_requests - before.sqs_send_requests == 4 * 2


# -- kills -----------------------------------------------------------------------------------------

NOMINAL: Final = ("0900Z", "1000Z", "1100Z")
READS: Final = (Query, Get, Clock, Measure, WriteDeadline, Deadline)


class CrashesAtWrites:
    """Kill the process at these writes, counted over all handlers from 0. A crash at a read leaves
    the same world as one after the write before it.
    """

    def __init__(self, *numbers: int, when: When) -> None:
        self._numbers, self._when, self.seen = numbers, when, 0

    def __call__(self, world: SimulatorWorld, effect: Any, when: When) -> None:
        if when != self._when or isinstance(effect, READS):
            return
        self.seen += 1
        if self.seen - 1 in self._numbers:
            raise Killed


def _ticks(hook: Hook) -> Timetable:
    """Three nominal times. The crashes come around the first two."""
    table = Timetable()
    table.create()
    table.world.hook = hook
    table.pass_time(2 * HOUR_MS + 15 * MINUTE_MS)
    table.world.hook = no_faults
    table.pass_time(HOUR_MS)
    return table


def _times_of(table: Timetable) -> Counter[str]:
    """Return how many executions each nominal time has."""
    names = (str(one.state.name) for one in histories(table.world))
    return Counter(name.rpartition("T")[2].partition(".")[0] for name in names)


def _writes(when: When) -> int:
    counted = CrashesAtWrites(when=when)
    assert _times_of(_ticks(counted)) == dict.fromkeys(NOMINAL, 1)
    return counted.seen


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_write_around_two_ticks_neither_loses_nor_doubles_one(when: When) -> None:
    writes = _writes(when)
    assert writes > 20
    for number in range(writes):
        table = _ticks(CrashesAtWrites(number, when=when))
        assert table.world.kills == 1
        assert _times_of(table) == dict.fromkeys(NOMINAL, 1), (number, when)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_two_crashes_around_two_ticks_neither_lose_nor_double_one(when: When) -> None:
    writes = _writes(when)
    for one in range(writes):
        for other in range(one + 1, writes):
            found = _times_of(_ticks(CrashesAtWrites(one, other, when=when)))
            assert found == dict.fromkeys(NOMINAL, 1), (one, other, when)


def _store_first(patch: pytest.MonkeyPatch) -> None:
    """The progress is stored before the executions are started."""
    real = scheduled._start_all

    def start_all(setting: Any, found: Any, decision: Any) -> Any:
        later = schedules.later(found, progress=decision.progress)
        yield Replace("mail", schedules.item_of(later), found.rv)
        return (yield from real(setting, found, decision))

    patch.setattr(scheduled, "_start_all", start_all)


def _name_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    """The name of the execution does not hold the nominal time."""
    numbers = iter(range(10**6))

    def name(schedule: str, nominal_ms: int) -> str:
        return f"{rules.execution_name(schedule, nominal_ms)}.{next(numbers)}"

    patch.setattr(scheduled, "execution_name", name)


def _drop_the_row(patch: pytest.MonkeyPatch) -> None:
    """The row is deleted before it is put at its next time."""
    real = due_schedules._move

    def move(row: Any, moved: Any) -> Any:
        yield from follow_ups.drop_row(row)
        yield from real(row, moved)

    patch.setattr(due_schedules, "_move", move)


@pytest.mark.parametrize("plant", [_store_first, _name_by_the_clock, _drop_the_row])
def test_a_planted_bug_loses_or_doubles_a_nominal_time(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = (
        _times_of(_ticks(CrashesAtWrites(number, when="after")))
        for number in range(_writes("after"))
    )
    assert any(one != dict.fromkeys(NOMINAL, 1) for one in found)


# -- overlap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "begun"),
    [
        # Each execution takes an hour and a half.
        ("skip", {"0900Z": "09:00", "1100Z": "11:00", "1300Z": "13:00"}),
        ("queue-one", {"0900Z": "09:00", "1000Z": "10:31", "1100Z": "12:02", "1300Z": "13:33"}),
        ("queue-all", {"0900Z": "09:00", "1000Z": "10:31", "1100Z": "12:02", "1200Z": "13:33"}),
        (
            "allow",
            {
                "0900Z": "09:00",
                "1000Z": "10:00",
                "1100Z": "11:00",
                "1200Z": "12:00",
                "1300Z": "13:00",
            },
        ),
    ],
)
def test_an_execution_that_still_runs_when_the_next_is_due(
    overlap: str, begun: dict[str, str]
) -> None:
    table = Timetable(LONG)
    table.create(overlap=overlap)
    table.pass_time(6 * HOUR_MS - 5 * MINUTE_MS)
    found = table.begun()
    assert list(found) == list(begun)
    for nominal, at in begun.items():
        late = datetime.strptime(found[nominal], "%H:%M") - datetime.strptime(at, "%H:%M")  # noqa: DTZ007
        assert abs(late) <= timedelta(minutes=3), (nominal, found)


def test_cancel_other_stops_the_execution_that_runs() -> None:
    table = Timetable(LONG)
    table.create(overlap="cancel-other")
    table.pass_time(2 * HOUR_MS + 10 * MINUTE_MS)
    statuses = {str(one.state.name)[-5:]: one.state.status for one in histories(table.world)}
    assert statuses == {"0900Z": "ABORTED", "1000Z": "RUNNING"}


def test_a_failed_execution_pauses_the_schedule_that_asks_for_it() -> None:
    table = Timetable()
    table.create(pause_on_failure=True)
    table.fails = True
    table.pass_time(3 * HOUR_MS)
    assert list(table.begun()) == ["0900Z"]
    assert table.show()["paused"]["reason"] == "an execution has failed"
    table.fails = False
    table.change("resume", reason="mended")
    table.pass_time(2 * HOUR_MS + MINUTE_MS)
    assert list(table.begun()) == ["0900Z", "1200Z", "1300Z"]


def test_an_execution_whose_log_has_expired_does_not_run() -> None:
    table = Timetable()
    table.create(cron="0 9 15 1,7 *")
    table.pass_time(HOUR_MS + MINUTE_MS)
    services = table.world.services
    for record in list(services.items("executions")):
        services.perform(Delete("executions", str(record["pk"]), int(record["sk"])))
    table.world.now_ms += 181 * DAY_MS - 2 * HOUR_MS
    table.pass_time(3 * HOUR_MS)
    assert (table.show()["started"], table.show()["skipped"]) == (2, 0)


def test_an_execution_that_runs_through_a_pause_still_counts_after_it() -> None:
    table = Timetable(LONG)
    table.create()
    table.pass_time(HOUR_MS + MINUTE_MS)
    table.change("pause", **WHY)
    table.change("resume", **WHY)
    table.pass_time(HOUR_MS)
    assert (list(table.begun()), table.show()["skipped"]) == (["0900Z"], 1)


def test_executions_that_may_overlap_are_followed_only_for_a_pause_on_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduled, "SCHEDULE_OPEN_MAX", 2)
    for pauses, count in ((False, 0), (True, 2)):
        table = Timetable(LONG)
        table.create(overlap="allow", cron="*/10 * * * *", pause_on_failure=pauses)
        table.pass_time(HOUR_MS + MINUTE_MS)
        assert (table.show()["started"], len(table.show()["running"])) == (6, count)


def test_cancel_other_stops_an_execution_that_was_started_before_a_crash() -> None:
    table = Timetable(LONG)
    table.create(overlap="cancel-other")

    def crashes(world: SimulatorWorld, effect: Any, when: When) -> None:
        is_progress = isinstance(effect, Replace) and "#sch" in str(effect.item["pk"])
        if is_progress and when == "before":
            raise Killed

    table.world.hook = crashes
    table.pass_time(2 * HOUR_MS - MINUTE_MS)
    table.world.hook = no_faults
    _sleep(table, 2 * MINUTE_MS)
    table.pass_time(10 * MINUTE_MS)
    statuses = {str(one.state.name)[-5:]: one.state.status for one in histories(table.world)}
    assert statuses == {"0900Z": "ABORTED", "1000Z": "RUNNING"}


# -- time that has passed --------------------------------------------------------------------------


def _sleep(table: Timetable, milliseconds: int) -> None:
    """Nothing runs for so long: no sweeper, no worker."""
    table.world.now_ms += milliseconds


def test_nominal_times_that_nobody_started_are_made_up_for_in_bursts() -> None:
    table = Timetable()
    table.create(overlap="allow")
    _sleep(table, 50 * HOUR_MS)
    table.pass_time(1)
    first = table.show()["started"]
    table.pass_time(10 * MINUTE_MS)
    assert first <= SCHEDULE_BURST_MAX
    assert table.show()["started"] == 50
    assert table.show()["late"] == 49


def test_nominal_times_beyond_the_window_are_missed() -> None:
    table = Timetable()
    table.create(overlap="allow", catch_up=2 * 3_600)
    _sleep(table, 50 * HOUR_MS)
    table.pass_time(10 * MINUTE_MS)
    # 08:00, 09:00 and 10:00 are within two hours of 10:00.
    assert (table.show()["started"], table.show()["missed"]) == (3, 47)


def test_a_pause_starts_nothing_and_its_times_are_not_made_up_for() -> None:
    table = Timetable()
    table.create()
    assert table.change("pause", **WHY)["paused"]["reason"] == "holidays"
    table.pass_time(5 * HOUR_MS + 10 * MINUTE_MS)
    assert table.begun() == {}
    table.change("resume", **WHY)
    table.pass_time(HOUR_MS)
    assert list(table.begun()) == ["1400Z"]


def test_a_backfill_starts_each_time_of_the_range_once_and_one_after_another() -> None:
    table = Timetable()
    table.create()
    table.pass_time(2 * HOUR_MS + MINUTE_MS)
    assert list(table.begun()) == ["0900Z", "1000Z"]
    told = table.change("backfill", since="2027-01-15T06:00:00Z", until="2027-01-15T10:00:00Z")
    assert told["backfill"]["until"] == "2027-01-15T10:00:00.000Z"
    table.pass_time(20 * MINUTE_MS)
    assert list(table.begun()) == ["0600Z", "0700Z", "0800Z", "0900Z", "1000Z"]
    assert "backfill" not in table.show()
    check(table.world)


def test_jitter_moves_the_start_and_not_the_name() -> None:
    table = Timetable()
    table.create(jitter=1_800)
    table.pass_time(HOUR_MS + 35 * MINUTE_MS)
    (nominal, at), *_ = table.begun().items()
    assert nominal == "0900Z"
    due_ms = rules.due_ms(Rule("0 * * * *", jitter_ms=1_800_000), "report", _nominal(table))
    assert at == clock(due_ms)


def _nominal(table: Timetable) -> int:
    name = min(str(one.state.name) for one in histories(table.world))
    at = datetime.strptime(name.partition("-")[2], "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
    return int(at.timestamp() * 1_000)


# -- commands --------------------------------------------------------------------------------------


def refusal(make: Callable[[], Any]) -> tuple[str, int]:
    with pytest.raises(RequestError) as caught:
        make()
    return caught.value.code, caught.value.status


def test_schedules_are_listed_and_deleted() -> None:
    table = Timetable()
    table.create()
    assert table.create()["name"] == "report"  # the same request again
    assert refusal(lambda: table.create(cron="5 * * * *")) == ("HF247", 409)
    (listed,) = table.ask(lambda: table.front.schedules(TENANT))["schedules"]
    assert (listed["cron"], listed["declared"]) == ("0 * * * *", "by command")
    assert table.ask(lambda: table.front.schedules("other")) == {"schedules": []}
    table.ask(lambda: table.front.delete_schedule(TENANT, "report"))
    table.pass_time(3 * HOUR_MS)
    assert table.begun() == {}
    assert refusal(table.show) == ("HF245", 404)
    rows = [item for item in table.world.services.items("mail") if "schedule" in item]
    assert rows == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "0 9 * *"},
        {"cron": None},
        {"every": 60},
        {"cron": None, "every": 90},
        {"zone": "Europe/Atlantis"},
        {"overlap": "queue"},
        {"missing": "run"},
        {"jitter": -1},
        {"catch_up": "1d"},
        {"input": []},
        {"name": "x" * 61},
    ],
)
def test_a_schedule_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    assert refusal(lambda: Timetable().create(**wrong)) == ("HF246", 400)


def test_a_workflow_that_is_not_deployed_has_no_schedule() -> None:
    assert refusal(lambda: Timetable().create(workflow="other")) == ("HF205", 404)


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2027-01-15T07:00:00Z", "2027-01-15T06:00:00Z"),
        ("2027-01-15T07:00:00Z", "2027-01-16T06:00:00Z"),
        ("2027-01-15T07:00:00", "2027-01-15T07:30:00Z"),
        ("soon", "2027-01-15T07:30:00Z"),
    ],
)
def test_a_range_that_cannot_be_made_up_for_is_refused(since: str, until: str) -> None:
    table = Timetable()
    table.create()
    assert refusal(lambda: table.change("backfill", since=since, until=until)) == ("HF246", 400)


def test_a_second_range_waits_for_the_first() -> None:
    table = Timetable()
    table.create()
    past = {"since": "2027-01-14T00:00:00Z", "until": "2027-01-15T07:30:00Z"}
    table.change("backfill", **past)
    assert refusal(lambda: table.change("backfill", **past)) == ("HF249", 409)


# -- the deployed code -----------------------------------------------------------------------------


def test_a_deploy_changes_the_code_s_part_and_leaves_the_operator_s() -> None:
    table = Timetable()
    table.ask(lambda: deploy(TENANT, {"report": Plan("flow", Rule("0 * * * *"))}))
    table.pass_time(HOUR_MS + MINUTE_MS)
    table.change("pause", **WHY)
    table.ask(lambda: deploy(TENANT, {"report": Plan("flow", Rule("30 * * * *"), {"n": 2})}))
    shown = table.show()
    assert (shown["cron"], shown["input"], shown["started"]) == ("30 * * * *", {"n": 2}, 1)
    assert shown["paused"]["reason"] == "holidays"
    assert refusal(lambda: table.ask(lambda: table.front.delete_schedule(TENANT, "report"))) == (
        "HF248",
        409,
    )
    table.change("resume", **WHY)
    table.pass_time(HOUR_MS)
    assert list(table.begun()) == ["0900Z", "0930Z"]


def test_a_schedule_that_the_code_no_longer_declares_ends_and_one_by_command_stays() -> None:
    table = Timetable()
    table.create()
    table.ask(lambda: deploy(TENANT, {"nightly": Plan("flow", Rule("0 3 * * *"))}))
    table.ask(lambda: deploy(TENANT, {}))
    listed = table.ask(lambda: table.front.schedules(TENANT))["schedules"]
    assert [one["name"] for one in listed] == ["report"]


def test_a_worker_of_a_release_without_the_workflow_leaves_the_time_to_newer_code() -> None:
    table = Timetable()
    table.create()
    definition = table.known.pop("flow")
    table.pass_time(HOUR_MS + 10 * MINUTE_MS)
    assert table.begun() == {}
    table.known["flow"] = definition
    table.pass_time(5 * MINUTE_MS)
    assert list(table.begun()) == ["0900Z"]


def test_the_times_of_a_workflow_that_no_code_has_are_refused_after_an_hour() -> None:
    table = Timetable()
    table.create(cron="0 9 * * *")
    del table.known["flow"]
    table.pass_time(2 * HOUR_MS + 5 * MINUTE_MS)
    shown = table.show()
    assert (shown["refused"], shown["started"]) == (1, 0)
    assert shown["next"] == "2027-01-16T09:00:00.000Z"
    assert "HF205" in shown["fault"]


def test_a_start_that_is_refused_is_counted_and_shown() -> None:
    table = Timetable()
    table.create(input={"n": 1})
    taken = {"workflow": "flow", "input": {"n": 2}, "name": "report-20270115T0900Z"}
    table.ask(lambda: table.front.start(TENANT, taken, b"12345678"))
    table.pass_time(HOUR_MS + MINUTE_MS)
    shown = table.show()
    assert (shown["refused"], shown["started"]) == (1, 0)
    assert "HF212" in shown["fault"]


def test_a_decision_is_the_same_when_it_is_repeated() -> None:
    rule, policy = Rule(every_ms=MINUTE_MS), rules.Policy("queue-all", DAY_MS, 5)
    before = Progress(MINUTE_MS, open=("a",))
    one = rules.decide(rule, policy, "report", before, 3 * MINUTE_MS)
    assert one == rules.decide(rule, policy, "report", before, 3 * MINUTE_MS + 1)
    assert one.progress.queued == (MINUTE_MS, 2 * MINUTE_MS, 3 * MINUTE_MS)
