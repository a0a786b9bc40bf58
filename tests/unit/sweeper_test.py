"""The sweeper: rows that are due, rows that are damaged, and letters that are dead."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from holdfast.errors import HoldfastBug, ServiceFault
from holdfast.limits import (
    OVERDUE_SECONDS,
    SQS_DELAY_SECONDS_MAX,
    SWEEP_AHEAD_SECONDS,
    SWEEP_HANDED_SECONDS,
    WATCH_GRID_SECONDS,
    WATCH_LOOK_SECONDS_MAX,
    WATCH_LOOK_SECONDS_MIN,
    WATCH_WITHOUT_LOG_SECONDS_MAX,
)
from holdfast.runtime import follow_ups, messages, watchdog
from holdfast.runtime.driver import run as run_handler
from holdfast.runtime.effects import (
    Effect,
    Put,
    Query,
    RunTask,
    TaskFailed,
    TaskSucceeded,
    Unlist,
    WriteDeadline,
)
from holdfast.runtime.maintenance import dead_letters, quarantine, sweeper
from holdfast.runtime.maintenance.doctor import report_one
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.storage.spread import DUE, Shards, Spread
from holdfast_simulator.invariants import check
from holdfast_simulator.world import Killed, SimulatorWorld, When, no_faults
from tests.builders import Shop, ask, call, chain, machine, wait_for
from tests.unit.core_kit import START_MS, Case, one

DAY = 86_400
RUN = "0" * 26
NO = {"Type": "Fail", "Error": "E"}


def settle(shop: Shop, seconds: float = 1) -> None:
    until_ms = shop.world.now_ms + int(seconds * 1_000)
    shop.world.run(until_ms=until_ms)
    shop.world.now_ms = until_ms


def rows(shop: Shop) -> list[Any]:
    return [
        dict(item)
        for item in shop.world.services.items("mail")
        if str(item["pk"]).startswith("~due#")
    ]


def stored(shop: Shop) -> list[Any]:
    return shop.world.services.items("executions")


def queued(shop: Shop, queue: Any = "work") -> list[Any]:
    return [received.body for received in shop.world.services.receive(queue)]


def sweep(shop: Shop) -> None:
    for shard in range(DUE.least):
        shop.world.call(sweeper.sweep(shard, "sweeper"))


# -- rows ------------------------------------------------------------------------------------------


def test_a_long_wait_is_a_row_first_and_a_delayed_message_at_its_end() -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": DAY, "End": True}}))
    run = shop.start()
    settle(shop)
    assert shop.world.services.depth("work") == 0
    assert len([row for row in rows(shop) if "entry" in row]) == 1
    settle(shop, DAY - SQS_DELAY_SECONDS_MAX + 120)
    assert shop.world.services.depth("work") == 1
    assert [row for row in rows(shop) if "entry" in row] == []
    settle(shop, SQS_DELAY_SECONDS_MAX)

    history = shop.history(run)
    assert history.state.stopped_ms is not None
    assert 0 <= history.state.stopped_ms - history.state.started_ms - DAY * 1_000 <= 2_000


def test_the_time_out_of_a_wait_wakes_no_execution_that_has_ended() -> None:
    shop = Shop(machine({"it": wait_for("paid", TimeoutSeconds=DAY)}))
    shop.start()
    settle(shop)
    shop.send_event()
    settle(shop)
    shop.world.now_ms += DAY * 1_000
    sent = shop.world.services.usage.sqs_send_requests
    sweep(shop)

    assert shop.world.services.usage.sqs_send_requests == sent
    assert rows(shop) == []


def work_off(shop: Shop, page: Any) -> None:
    def perform(effect: Effect) -> Any:
        is_limit = isinstance(effect, WriteDeadline)
        return shop.world.now_ms + 60_000 if is_limit else shop.world.perform(effect)

    assert run_handler(sweeper.sweep_page(page, "worker"), perform) == []


def test_rows_beyond_the_first_page_go_to_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute with hundreds of rows in one shard: every timer fires at its time."""
    monkeypatch.setattr(sweeper, "SWEEP_ROWS_MAX", 2)
    for module in (follow_ups, sweeper, watchdog):
        monkeypatch.setattr(module, "DUE", Shards(1, 1))
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": DAY, "End": True}}))
    runs = []
    for number in range(9):
        request = {"workflow": "flow", "name": f"order-{number}"}
        asked = shop.front.start(shop.tenant, request, number.to_bytes(8, "big"))
        runs.append(str(shop.world.call(asked)["execution"]))
    settle(shop)
    shop.world.now_ms += (DAY - SQS_DELAY_SECONDS_MAX + 130) * 1_000
    shop.world.call(sweeper.sweep(0, "sweeper"))
    pages = []
    for _ in range(SWEEP_HANDED_SECONDS):
        found = [body for body in queued(shop) if body["k"] == messages.SWEEP]
        assert len(found) <= 1  # they do not all write to the partition at once
        pages += found
        shop.world.now_ms += 1_000
    assert len(pages) == 4  # nine rows, two in each page, the first page is the own one

    for page in pages:
        work_off(shop, page)
    assert [row for row in rows(shop) if "entry" in row] == []
    shop.world.run()
    for run in runs:
        state = shop.history(run).state
        assert state.stopped_ms is not None
        assert 0 <= state.stopped_ms - state.started_ms - DAY * 1_000 <= 2_000
    check(shop.world)


def test_a_page_that_comes_after_the_next_sweep_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": DAY, "End": True}}))
    shop.start()
    settle(shop)
    due = next(row for row in rows(shop) if "entry" in row)
    shop.world.now_ms += DAY * 1_000
    shard = int(str(due["pk"]).removeprefix("~due#"))
    late_ms = shop.world.now_ms - 60_000
    work_off(shop, messages.sweep(shard, "", "9", late_ms))
    assert due in rows(shop)
    work_off(shop, messages.sweep(shard, "", "9", late_ms + 1))
    assert due not in rows(shop)


def test_nothing_is_done_for_a_row_that_is_not_due() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    shop.start()
    settle(shop)
    before = rows(shop)
    sweep(shop)

    assert rows(shop) == before
    assert queued(shop) == []


def test_an_execution_that_has_ended_leaves_no_row() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    shop.start()
    settle(shop)
    shop.send_event()
    shop.world.run()

    assert rows(shop) == []
    assert check(shop.world) == []


def damaged_rows(shop: Shop, shard: int) -> list[dict[str, Any]]:
    row = {"pk": keys.due_partition(shard), "f": 1, "t": "default", "run": RUN}
    found: list[dict[str, Any]] = [
        {**row, "sk": keys.watch_row(0, "default", "a")},
        {**row, "sk": keys.watch_row(1, "default", "b"), "f": 2, "seq": 0, "made": 0},
        {**row, "sk": keys.timer_row(2, "default", "c", 1), "entry": "x", "due": "y"},
        {"pk": row["pk"], "sk": keys.watch_row(3, "default", "d")},
        {**row, "sk": "no time at all"},
    ]
    for item in found:
        shop.world.services.perform(Put("mail", item))
    return found


def test_damaged_rows_do_not_hide_the_rows_behind_them() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    damaged_rows(shop, DUE.of(run))
    shop.world.now_ms += 8 * DAY * 1_000
    sweep(shop)

    assert [body["run"] for body in queued(shop) if body["k"] == "recover"] == [run]


def test_a_damaged_log_is_counted_and_looked_at_again_later() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    newest = shop.world.services.items("executions")[-1]
    torn = {key: value for key, value in newest.items() if key != "sn"}
    shop.world.services.perform(Put("executions", torn))
    shop.world.now_ms += 8 * DAY * 1_000
    sweep(shop)
    (row,) = rows(shop)

    assert shop.world.services.metrics["SweepRefused"] == 1
    assert row["run"] == run
    assert int(str(row["sk"])[:15]) >= shop.world.now_ms + WATCH_LOOK_SECONDS_MIN * 1_000


def test_a_row_whose_log_cannot_be_reached_for_a_moment_stays_where_it_is() -> None:
    def busy(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Query) and effect.table == "executions" and when == "before":
            raise ServiceFault("HF321", "slow down")

    shop = Shop(machine({"it": wait_for("paid")}))
    shop.start()
    settle(shop)
    before = rows(shop)
    shop.world.now_ms += 8 * DAY * 1_000
    shop.world.hook = busy
    sweep(shop)

    assert rows(shop) == before
    assert shop.world.services.metrics["SweepRefused"] == 1


def test_a_row_of_an_execution_that_ended_unopened_is_dropped_without_a_message() -> None:
    """The worker that was about to open it lost a race to the worker that ended it."""
    shop = Shop(chain(1))
    run = shop.run({"n": 0}).run
    row = watchdog.watch_item("default", run, shop.world.now_ms, 0, shop.world.now_ms)
    shop.world.services.perform(Put("mail", row))
    sweep(shop)

    assert (rows(shop), queued(shop)) == ([], [])


def watch_without_log(shop: Shop) -> None:
    row = watchdog.watch_item("default", RUN, shop.world.now_ms, 0, shop.world.now_ms)
    shop.world.services.perform(Put("mail", row))


def test_a_row_waits_a_day_for_a_record_that_may_still_come_and_is_then_dropped() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    watch_without_log(shop)
    for _ in range(5):
        sweep(shop)
        assert len(rows(shop)) == 1
        shop.world.now_ms += 200_000
    shop.world.now_ms += WATCH_WITHOUT_LOG_SECONDS_MAX * 1_000
    sweep(shop)

    assert rows(shop) == []


def test_a_log_is_looked_at_although_the_record_that_its_row_announces_never_came() -> None:
    """Its worker crashed between the row and the record, and then the queue lost their message."""
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 10, "End": True}}))
    run = shop.start()
    settle(shop)
    queued(shop)
    shop.world.services._queues["work"].messages.clear()
    (row,) = rows(shop)
    shop.world.services.perform(Put("mail", {**row, "seq": row["seq"] + 1}))
    shop.world.run()

    state = shop.history(run).state
    assert state.stopped_ms is not None
    assert state.stopped_ms - state.started_ms <= 5 * 60_000
    assert rows(shop) == []


def test_a_row_without_its_record_is_looked_at_the_more_seldom_the_longer_it_waits() -> None:
    """Every two minutes for a day would be 720 rows."""
    shop = Shop(machine({"it": wait_for("paid")}))
    watch_without_log(shop)
    looks_ms = []
    while found := rows(shop):
        looks_ms.append(int(str(found[0]["sk"])[:15]))
        shop.world.now_ms = looks_ms[-1]
        sweep(shop)
    waits_ms = [later - look_ms for look_ms, later in pairwise(looks_ms)]

    assert len(looks_ms) < 40
    assert waits_ms[0] <= 2 * WATCH_GRID_SECONDS * 1_000
    assert max(waits_ms) <= (WATCH_LOOK_SECONDS_MIN + 2 * WATCH_GRID_SECONDS) * 1_000


def test_a_purged_queue_delays_a_leased_task_by_minutes_only() -> None:
    """The worker crashes with its message; only the watchdog row is left."""
    from holdfast_simulator.world import Killed

    deaths: list[int] = []

    def dies_once(effect: Any) -> Any:
        from holdfast.runtime.effects import TaskSucceeded

        if effect.name == "second" and not deaths:
            deaths.append(shop.world.now_ms)
            shop.world.services._queues["work"].messages.clear()
            shop.world.services._queues["work"]._heap.clear()
            raise Killed
        return TaskSucceeded("done")

    flow = {
        "first": call("first", "nap"),
        "nap": {"Type": "Wait", "Seconds": 10, "Next": "second"},
        "second": call("second"),
    }
    shop = Shop(machine(flow), tasks=dies_once)
    history = shop.run()

    assert history.state.output == "done"
    assert (history.state.stopped_ms or 0) - deaths[0] <= 5 * 60_000


@pytest.mark.parametrize(
    ("state", "seconds"),
    [
        (wait_for("paid"), 3 * 3_600),
        ({"Type": "Wait", "Seconds": 90 * DAY, "End": True}, 8 * DAY),
    ],
)
def test_rows_that_a_crash_has_parted_become_one_again(state: Any, seconds: int) -> None:
    """A worker that crashed between the two places of a row has left both."""
    shop = Shop(machine({"it": state}))
    shop.start()
    settle(shop)
    (row,) = [row for row in rows(shop) if "entry" not in row]
    for minutes in (4, 20, 50):
        look_ms = shop.world.now_ms + minutes * 60_000
        parted = {**row, "sk": keys.watch_row(look_ms, "default", str(row["run"]))}
        shop.world.services.perform(Put("mail", parted))
    settle(shop, seconds)

    assert len([row for row in rows(shop) if "entry" not in row]) == 1


def test_rows_that_a_crash_has_parted_wait_for_their_record_as_one() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    for minutes in (0, 30):
        later_ms = shop.world.now_ms + minutes * 60_000
        row = watchdog.watch_item("default", RUN, later_ms, 0, shop.world.now_ms)
        shop.world.services.perform(Put("mail", row))
    settle(shop, 2 * 3_600)

    assert len(rows(shop)) == 1


def asking(shop: Shop, run: str, sequence: int) -> None:
    row = watchdog.watch_item("default", run, 0, sequence, shop.world.now_ms)
    sk = keys.asking_row(shop.world.now_ms, "default", run, sequence)
    shop.world.services.perform(Put("mail", {**row, "sk": sk}))


def asks(shop: Shop) -> list[Any]:
    return [row for row in rows(shop) if keys.is_asking(str(row["sk"]))]


def at_rest() -> tuple[Shop, str, int]:
    """Return one that sleeps, and its newest record."""
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 600, "End": True}}))
    run = shop.start()
    settle(shop)
    return shop, run, max(int(item["sk"]) for item in stored(shop))


def test_a_row_that_asks_is_answered_once_its_record_is_there() -> None:
    shop, run, newest = at_rest()
    asking(shop, run, newest)
    sweep(shop)

    assert [body["k"] for body in queued(shop)] == ["recover"]
    assert asks(shop) == []


def test_rows_for_records_that_cannot_be_written_send_nothing() -> None:
    """Each receipt of a message puts one more of them, and their messages are received too."""
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    newest = max(int(item["sk"]) for item in stored(shop))
    asking(shop, run, newest + 1)
    sweep(shop)

    assert queued(shop) == []
    assert len(asks(shop)) == 1


def test_rows_that_ask_for_several_records_at_one_look_do_not_replace_each_other() -> None:
    shop, run, newest = at_rest()
    asking(shop, run, newest)
    asking(shop, run, newest + 1)
    look_ms = int(str(asks(shop)[0]["sk"])[:15])
    plain = watchdog.watch_item("default", run, look_ms, newest, look_ms)
    shop.world.services.perform(Put("mail", plain))

    assert len(asks(shop)) == 2
    sweep(shop)
    assert [body["k"] for body in queued(shop)] == ["recover"]
    assert [row["seq"] for row in asks(shop)] == [newest + 1]


@pytest.mark.parametrize("is_wake_lost", [True, False])
def test_a_check_sends_a_worker_only_for_an_event_that_it_has_not_read(
    *, is_wake_lost: bool
) -> None:
    """An operator purges the queue that has the wake of the event."""
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    if is_wake_lost:
        shop.send_event()
        shop.world.services.queue("work").messages.clear()
    sent = shop.world.services.usage.sqs_send_requests
    settle(shop, 2 * 3_600)

    assert shop.history(run).state.status == ("SUCCEEDED" if is_wake_lost else "RUNNING")
    assert shop.world.services.usage.sqs_send_requests - sent == is_wake_lost


# -- the next look ---------------------------------------------------------------------------------


def beside(*states: Any) -> Any:
    branches = [{"StartAt": f"b{n}", "States": {f"b{n}": one}} for n, one in enumerate(states)]
    return {"Type": "Parallel", "Branches": branches, "End": True}


@pytest.mark.parametrize(
    ("state", "rested_seconds", "look_seconds"),
    [
        (call("ship"), 0, WATCH_GRID_SECONDS),
        # The worker that checks the wait does not run the task beside it, and the task's worker may
        # have crashed.
        (beside(call("ship"), wait_for("paid")), 0, WATCH_GRID_SECONDS),
        (wait_for("paid"), 0, WATCH_LOOK_SECONDS_MIN),
        # The wake of its time-out may be lost as well as that of its inbox message.
        (wait_for("paid", TimeoutSeconds=1_200), 0, 1_200 + WATCH_GRID_SECONDS),
        (beside(wait_for("paid"), {"Type": "Wait", "Seconds": 240, "End": True}), 0, 360),
        (wait_for("paid"), 3_600, 4 * 3_600),
        # Looks are at one hour, 5, 25, 125, 293 and so on: a week after each at most.
        (ask(), 125 * 3_600, WATCH_LOOK_SECONDS_MAX),
        ({"Type": "Wait", "Seconds": 9_960}, 0, 9_960 + WATCH_GRID_SECONDS),
        ({"Type": "Wait", "Seconds": 365 * DAY}, 0, WATCH_LOOK_SECONDS_MAX),
    ],
)
def test_the_next_look_is_on_a_grid_sooner_or_later(
    state: Any, rested_seconds: int, look_seconds: int
) -> None:
    execution = Case(one(state)).start().state
    for offset_ms in (0, 1, 59_999):
        now_ms = START_MS + offset_ms
        parked_ms = now_ms - rested_seconds * 1_000
        look_ms = watchdog.next_look_ms(execution, parked_ms, now_ms)

        assert look_ms % (WATCH_GRID_SECONDS * 1_000) == 0
        assert abs(look_ms - START_MS - look_seconds * 1_000) <= WATCH_GRID_SECONDS * 1_000


def test_an_execution_overdue_in_many_places_is_looked_at_as_seldom_as_in_one() -> None:
    """A check sends a message: otherwise each of forty idle lanes would cause one an hour."""
    naps = [{"Type": "Wait", "Seconds": 60 + 97 * lane, "End": True} for lane in range(40)]
    execution = Case(one(beside(*naps))).start().state
    now_ms = START_MS + 5 * 3_600_000
    looks_ms = []
    while now_ms < START_MS + 10 * 3_600_000:
        now_ms = watchdog.next_look_ms(execution, START_MS, now_ms)
        looks_ms.append(now_ms)

    assert len(looks_ms) <= 6


def test_a_check_for_a_due_wait_finds_it_overdue() -> None:
    for due_ms in range(START_MS + 100_000, START_MS + 250_000, 250):
        visited_ms = (
            watchdog.on_grid(watchdog.look_after_ms(due_ms, START_MS)) - SWEEP_AHEAD_SECONDS * 1_000
        )

        assert due_ms + OVERDUE_SECONDS * 1_000 < visited_ms


# -- dead letters ----------------------------------------------------------------------------------


def revive(shop: Shop, body: Any, message_id: str) -> None:
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(body, message_id)))


def quarantine_items(shop: Shop) -> list[Any]:
    items = shop.world.services.items("mail")
    return [item for item in items if item["pk"] == keys.QUARANTINE]


def test_a_dead_letter_goes_round_twice_and_is_then_put_aside() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    revive(shop, messages.wake_timer("default", RUN, 0, 5, None), "m1")
    (second,) = queued(shop, "single")
    assert (second["k"], second["of"]) == ("recover", ["m1"])
    revive(shop, second, "m2")
    (third,) = queued(shop, "single")
    assert third["of"] == ["m1", "m2"]
    revive(shop, third, "m3")
    (hurt,) = quarantine_items(shop)

    assert queued(shop, "single") == []
    assert (hurt["sk"], hurt["of"]) == (f"default#{RUN}", "m1,m2,m3")
    assert shop.world.services.metrics["ExecutionsQuarantined"] == 1


def test_an_execution_in_quarantine_is_watched_in_every_format_of_its_log() -> None:
    """By the sweeper's own formats: those of a later release may differ."""

    def kill(_: RunTask) -> TaskSucceeded:
        raise Killed

    shop = Shop(machine({"it": call("ship", TimeoutSeconds=840)}), tasks=kill)
    shop.start()
    settle(shop)
    (record,) = shop.world.services.items("executions")
    shop.world.services.perform(Put("executions", {**record, "f": 3}))
    letter = messages.recover("default", str(record["pk"]).partition("#")[2], ("m1", "m2"))
    formats = Formats(oldest=2, newest=3, asked=2)
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(letter, "m3"), formats))

    assert len(quarantine_items(shop)) == 1
    assert len(rows(shop)) == 1


def test_the_reason_counts_the_rounds_without_isolated_messages() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    revive(shop, messages.recover("default", RUN, ("w1", "m1", "m2"), released=1), "m3")
    (held,) = shop.world.call(quarantine.of_tenant("default"))

    assert "in every delivery, 3 times round" in held.reason


def test_a_released_execution_has_its_tries_again() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    revive(shop, messages.recover("default", RUN, ("m1", "m2", "m3"), released=3), "m4")
    (second,) = queued(shop, "single")
    assert (second["of"], second["released"]) == (["m1", "m2", "m3", "m4"], 3)
    revive(shop, second, "m5")
    (third,) = queued(shop, "single")
    revive(shop, third, "m6")

    assert queued(shop, "single") == []
    assert [item["of"] for item in quarantine_items(shop)] == ["m1,m2,m3,m4,m5,m6"]


def test_an_unreported_end_waits_for_a_repair_and_is_not_quarantined() -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 5, "Next": "no"}, "no": NO}))

    def refuse(_: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Unlist) and when == "before":
            raise ServiceFault("HF321", "slow down")

    def doctor(*, is_repairing: bool) -> list[Any]:
        handler = report_one("default", Spread(), run, None, is_repairing=is_repairing)
        return [one["reason"] for one in shop.world.call(handler)["findings"]]

    def listed(status: str) -> list[Any]:
        rows = shop.insist(
            lambda: shop.front.executions(
                "default",
                {"status": status},
            )
        )["executions"]
        return [row.get("waits_for") for row in rows]

    shop.world.hook = refuse
    run = shop.start()
    settle(shop, 10)
    letters = ("m0", "m1", "m2", "m3")
    revive(shop, messages.recover("default", run, letters, released=2), "m4")
    assert shop.describe(run)["waits"] == []
    assert listed("FAILED") == [None]
    assert doctor(is_repairing=False) == ["QUARANTINED"]

    shop.world.hook = no_faults
    doctor(is_repairing=True)
    assert any("#open#" in str(item.get("lp")) for item in stored(shop))
    (again,) = shop.world.services.queue("single").messages.values()
    assert json.loads(again.text)["of"] == [*letters, "m4"]
    settle(shop)
    assert not any("#open#" in str(item.get("lp")) for item in stored(shop))
    assert doctor(is_repairing=False) == []


def test_a_retry_whose_wake_is_a_dead_letter_runs_as_soon_as_it_is_overdue() -> None:
    """An earlier replacement of the dead letter would leave the retry to a later check of the
    sweeper.
    """
    retry = [{"ErrorEquals": ["E"], "IntervalSeconds": 5}]
    shop = Shop(
        machine({"it": call("it", Retry=retry)}),
        tasks=lambda task: TaskFailed("E", "") if task.attempt == 1 else TaskSucceeded(None),
    )
    run = shop.start()
    settle(shop, 2)
    shop.world.now_ms += 10_000
    (wake,) = shop.world.services.receive("work")
    shop.world.services.delete(wake.receipt)
    revive(shop, wake.body, wake.message_id)
    settle(shop, OVERDUE_SECONDS - 1)

    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert len(shop.world.task_runs) == 2


def test_a_dead_renewal_still_evaluates_nothing() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    revive(shop, messages.renew("default", RUN), "m1")
    (second,) = queued(shop, "single")

    assert (second["held"], second["of"]) == (True, ["m1"])


def test_an_unreadable_log_is_put_aside_unwatched_and_a_slow_service_delays_it() -> None:
    """To watch it, should it never have been opened, its log is read."""
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    (record,) = shop.world.services.items("executions")
    letter = messages.recover("default", run, ("m1", "m2"))
    before = rows(shop)

    def slow(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Query) and effect.table == "executions" and effect.limit != 1:
            raise ServiceFault("HF321", "slow down")

    shop.world.hook = slow
    with pytest.raises(ServiceFault):
        revive(shop, letter, "m3")
    assert quarantine_items(shop) == []

    shop.world.hook = no_faults
    shop.world.services.perform(Put("executions", {**record, "at": "never"}))
    revive(shop, letter, "m3")
    (hurt,) = quarantine_items(shop)
    assert hurt["sk"] == f"default#{run}"
    assert rows(shop) == before


def test_however_often_it_is_released_it_names_the_last_dead_letters_only() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    letters = tuple(f"m{number}" for number in range(9))
    shop.world.call(quarantine.put(messages.recover("default", RUN), letters, START_MS))
    shop.world.call(quarantine.release(shop.world.call(quarantine.find("default", RUN))))

    (released,) = queued(shop, "single")
    assert (released["of"], released["released"]) == (["m6", "m7", "m8"], 3)


def test_a_dead_start_stays_a_start() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    fields = {"workflow": "flow", "definition": "d1", "input": {"v": "null"}, "t0": 5}
    body = messages.start("default", RUN, **fields)
    revive(shop, body, "m1")

    assert queued(shop, "single") == [{**body, "of": ["m1"]}]


def test_a_dead_letter_that_is_no_message_of_ours_is_refused() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))

    with pytest.raises(HoldfastBug):
        revive(shop, {"k": "?"}, "m1")
    assert queued(shop, "single") == []
