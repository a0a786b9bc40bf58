"""Limited tasks through the whole engine, on virtual time: never too many, in order, to the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count, pairwise
from typing import Any, Final

import pytest

from holdfast.runtime.effects import (
    Begin,
    Condition,
    Delete,
    Put,
    PutIfAbsent,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
    TaskThrottled,
    Update,
)
from holdfast.runtime.gates import dispense, gate, permits, queue
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.rules import Breaker, LimitRule, LimitUse
from holdfast.runtime.storage import tables
from holdfast_simulator import flow_worlds
from holdfast_simulator.flow import START_MS, Faults, FlowWorld, Work, machine
from tests.thorough import IS_THOROUGH, some, worlds

BANK = LimitRule("bank", interval_us=50_000, burst=2)
LEDGER = LimitRule("ledger", concurrency=5)
MINUTE_MS = 60_000


def world_of(*uses: LimitUse, tasks: int = 1, seed: int = 1, **options: Any) -> FlowWorld:
    """A world whose executions run `tasks` tasks in a row, each with these limits."""
    names = tuple(f"task{number}" for number in range(tasks))
    return FlowWorld(dict.fromkeys(names, uses), machine(names, 20), seed=seed, **options)


def ran(world: FlowWorld, works: Iterable[Work], minutes: float = 30) -> FlowWorld:
    for number, work in enumerate(works):
        world.start(work, f"o{number}")
    world.run(START_MS + int(minutes * MINUTE_MS))
    assert world.errors == []
    return world


def starts_of(world: FlowWorld) -> list[float]:
    """Return when attempts began, in seconds after the start of the world."""
    return sorted((one.began.at_ms - START_MS) / 1_000 for one in world.task_runs)


# -- never too many, and never idle ----------------------------------------------------------------


def test_a_rate_lets_no_more_attempts_begin_in_any_window_and_wastes_no_token() -> None:
    executions = worlds(400)
    world = ran(world_of(LimitUse(BANK)), [Work(number) for number in range(executions)])
    assert world.open_runs() == []
    starts = starts_of(world)
    assert len(starts) == executions
    for first in range(executions):
        in_window = sum(starts[first] <= start < starts[first] + 5 for start in starts)
        assert in_window <= 2 + 20 * (5 + 0.2)  # messages take up to 0.12 s
    assert starts[-1] <= executions / 20 * 1.01 + 1.2


def test_a_concurrency_limit_is_full_and_never_overfull() -> None:
    works = [Work(number, seconds=2) for number in range(200)]
    world = ran(world_of(LimitUse(LEDGER)), works)
    assert world.open_runs() == []
    assert list(flow_worlds._holders(world, [LEDGER])) == []
    busy_seconds = sum((one.ended_ms or 0) - one.began.at_ms for one in world.task_runs) / 1_000
    assert busy_seconds / (starts_of(world)[-1] + 2) / 5 >= 0.94


def test_two_slow_rates_of_one_task_are_both_kept_and_the_slower_one_is_used_to_the_full() -> None:
    slow = LimitUse(LimitRule("slow", interval_us=15_000_000, burst=1))
    slower = LimitUse(LimitRule("slower", interval_us=20_000_000, burst=1))
    world = ran(world_of(slow, slower), [Work(number * 10) for number in range(20)])
    starts = starts_of(world)
    assert len(starts) == 20
    assert all(later - earlier >= 19.9 for earlier, later in pairwise(starts))
    assert starts[-1] <= 19 * 20 * 1.05


def test_each_key_has_a_limit_of_its_own() -> None:
    one_each = LimitUse(LimitRule("customer", concurrency=1), key="customer")
    works = [Work(number, seconds=1, customer=f"c{number % 20}") for number in range(100)]
    world = ran(world_of(one_each), works)
    assert world.open_runs() == []
    assert starts_of(world)[-1] < 7  # five after each other, twenty side by side
    runs = sorted(world.task_runs, key=lambda one: one.began.at_ms)
    for customer in {one.began.customer for one in runs}:
        own = [one for one in runs if one.began.customer == customer]
        assert all(b.began.at_ms >= (a.ended_ms or 0) for a, b in pairwise(own))


def test_a_task_with_two_limits_keeps_both() -> None:
    works = [Work(number, seconds=1) for number in range(100)]
    world = ran(world_of(LimitUse(BANK), LimitUse(LEDGER)), works)
    assert world.open_runs() == []
    assert list(flow_worlds._holders(world, [LEDGER])) == []
    assert list(flow_worlds._starts(world, [BANK])) == []
    assert starts_of(world)[-1] < 100 / 5 * 1.3


# -- order -----------------------------------------------------------------------------------------


def test_work_in_flight_ends_before_new_work_begins() -> None:
    """An execution's second task waits at the same limit as the first tasks of younger ones."""
    works = [Work(number * 10, seconds=0.1) for number in range(100)]
    world = ran(world_of(LimitUse(BANK), tasks=2), works)
    ends = {one.began.run: (one.ended_ms or 0) for one in world.task_runs}
    assert len(ends) == 100
    in_order = [ends[run] for run in world.works]  # in the order of their starts
    late = sum(b < a - 3_000 for a, b in pairwise(in_order))
    assert late == 0


def test_an_urgent_execution_goes_first() -> None:
    works = [Work(number) for number in range(200)]
    world = ran(world_of(LimitUse(BANK)), [*works, Work(3_000, priority=0)])
    urgent = next(run for run, work in world.works.items() if work.priority == 0)
    began = next(one.began.at_ms for one in world.task_runs if one.began.run == urgent)
    assert began - START_MS - 3_000 <= 3_500  # tokens of two seconds were given out already


def test_a_waiting_execution_gets_another_priority_and_changes_its_place() -> None:
    world = world_of(LimitUse(replace(LEDGER, concurrency=1)), tasks=2)
    world.at(START_MS + 5_100, lambda: world.prioritise(list(world.works)[-1], 0))
    world.at(START_MS + 5_200, lambda: world.prioritise(list(world.works)[-2], 9))
    ran(world, [Work(number, seconds=0.5) for number in range(60)])
    assert world.open_runs() == []
    began: dict[str, int] = {}
    for one in sorted(world.task_runs, key=lambda run: run.began.at_ms):
        began.setdefault(one.began.run, one.began.at_ms - START_MS)
    *_, last, urgent = (began[run] for run in world.works)
    assert 5_100 < urgent <= 6_500  # one attempt was at work, another was let in already
    assert last == max(began.values())
    rows = [row for row in world.services.items("mail") if str(row["pk"]).startswith("~wait")]
    assert rows == []


def test_two_tenants_share_by_weight_however_long_their_queues_are() -> None:
    fair = LimitUse(replace(BANK, weights={"small": 1, "large": 1}), fair="tenant")
    large, small_ones = (1_000, 100) if IS_THOROUGH else (300, 50)
    works = [Work(number, tenant="large") for number in range(large)]
    works += [Work(large + number, tenant="small") for number in range(small_ones)]
    world = ran(world_of(fair), works, minutes=10)
    small = sorted(one.began.at_ms for one in world.task_runs if one.began.tenant == "small")
    before = [one for one in world.task_runs if small[0] <= one.began.at_ms <= small[-1]]
    shares = Counter(one.began.tenant for one in before)
    assert 0.9 <= shares["small"] / shares["large"] <= 1.1


# -- slowing down, pausing, stopping ---------------------------------------------------------------


def test_a_throttled_attempt_counts_no_retry_and_slows_the_limit() -> None:
    works = [Work(number, throttled=number == 0) for number in range(100)]
    names = ("task0",)
    world = FlowWorld({"task0": (LimitUse(BANK),)}, machine(names, 20, retry=False), seed=3)
    told: list[str] = []

    def act(work: Work, effect: Begin) -> TaskResult:
        if work.throttled and not told:
            told.append(effect.effect.run)
            return TaskThrottled(10_000, "busy")
        return TaskSucceeded(None)

    world.act = act
    ran(world, works)
    assert world.open_runs() == []  # with a retry counted, the first would have failed
    assert {item["st"] for item in world.services.items("executions")} == {"RUNNING", "SUCCEEDED"}
    gaps = [b - a for a, b in pairwise(starts_of(world))]
    assert max(gaps) >= 7  # closed for ten seconds; two seconds' tokens were given out before


def test_a_paused_limit_lets_nothing_begin_until_it_is_resumed() -> None:
    world = world_of(LimitUse(BANK))
    world.change(BANK, 1_000, is_paused=True, by="kim", reason="outage")
    world.change(BANK, 31_000, is_paused=False)
    ran(world, [Work(number * 50) for number in range(worlds(200))])
    assert world.open_runs() == []
    assert not any(1 + 4.5 < start < 31 for start in starts_of(world))


def test_a_rate_that_an_operator_lowers_holds_at_once() -> None:
    world = world_of(LimitUse(BANK))
    world.change(BANK, 2_000, interval_us=1_000_000)
    ran(world, [Work(number) for number in range(100)])
    starts = starts_of(world)
    assert sum(start > 5 for start in starts) >= 5
    assert sum(10 <= start < 40 for start in starts) <= 30 + 2


def test_a_stopped_execution_leaves_the_queue() -> None:
    world = world_of(LimitUse(replace(BANK, interval_us=10_000_000)))
    world.at(START_MS + 5_000, lambda: world.stop(list(world.works)[10]))
    ran(world, [Work(number) for number in range(20)], minutes=1)
    stopped = list(world.works)[10]
    assert stopped not in world.open_runs()
    assert not any(stopped in str(row["sk"]) for row in world.stored("~wait"))


# -- limits of a workflow, and circuit breakers ----------------------------------------------------


def _executions_at_once(world: FlowWorld) -> int:
    """Return the most executions that were between the begin of their first task and their last
    end.
    """
    spans: dict[str, list[int]] = {}
    for one in world.task_runs:
        spans.setdefault(one.began.run, []).extend((one.began.at_ms, one.ended_ms or 0))
    moments = [(min(span), 1) for span in spans.values()]
    moments += [(max(span), -1) for span in spans.values()]
    running, most = 0, 0
    for _, change in sorted(moments):
        running += change
        most = max(most, running)
    return most


ONBOARDING = LimitUse(LimitRule("onboarding", concurrency=3))


def test_a_workflow_lets_so_many_executions_run_and_the_rest_wait_for_their_turn() -> None:
    works = [Work(number * 10, seconds=1) for number in range(20)]
    world = ran(world_of(tasks=2, running=(ONBOARDING,)), works)
    assert world.open_runs() == []
    assert _executions_at_once(world) == 3
    assert starts_of(world)[-1] < 20 / 3 * 2 * 1.4
    (gate_item,) = world.stored("~gate")
    assert gate_item["n"] == 0


def test_a_waiting_execution_can_be_stopped_and_leaves_its_place_to_others() -> None:
    world = world_of(running=(LimitUse(LimitRule("one", concurrency=1)),))
    stopped: list[str] = []

    def stop_one() -> None:
        begun = {one.began.run for one in world.task_runs}
        stopped.append(next(run for run in world.works if run not in begun))
        world.stop(stopped[0])

    world.at(START_MS + 2_000, stop_one)
    ran(world, [Work(number * 10, seconds=5) for number in range(3)])
    assert world.open_runs() == []
    assert {one.began.run for one in world.task_runs} == set(world.works) - set(stopped)
    assert world.stored("~wait") == []


def test_the_place_of_an_execution_whose_worker_died_at_its_end_is_found() -> None:
    """The worker commits the end and dies before it gives the place back."""
    world = world_of(running=(LimitUse(LimitRule("one", concurrency=1)),))
    ran(world, [Work(number * 10, seconds=1) for number in range(3)], minutes=1)
    assert world.open_runs() == []
    first = next(iter(world.works))
    (item,) = world.stored("~gate")
    until = {f"u:{first}": gate.NEVER_MS, "n": 1}
    world.services.perform(Put("mail", {**item, **until, f"o:{first}": "default"}))
    world.start(Work(world.now_ms - START_MS + 1_000), "late")
    world.run(world.now_ms + 5 * MINUTE_MS)
    assert world.open_runs() == []


@pytest.mark.parametrize("seed", some(range(6)))
def test_with_faults_a_workflows_places_are_neither_lost_nor_given_twice(seed: int) -> None:
    faults = Faults(chance=0.02, end_ms=60_000, skew_ms=200, duplicates=0.02)
    world = world_of(tasks=2, running=(ONBOARDING,), seed=seed, faults=faults)
    ran(world, [Work(number * 200, seconds=0.5) for number in range(20)], minutes=40)
    assert world.open_runs() == [], f"seed {seed}"
    (gate_item,) = world.stored("~gate")
    assert gate_item["n"] == 0, f"seed {seed}"


def test_after_many_failures_nothing_begins_until_a_probe_succeeds() -> None:
    breaker = replace(BANK, trip=Breaker(failures=5, within_ms=60_000, hold_ms=30_000))
    world = world_of(LimitUse(breaker), tasks=1)

    def act(_: Work, __: Begin) -> TaskResult:
        is_down = world.now_ms < START_MS + 20_000
        return TaskFailed("Down", "no answer") if is_down else TaskSucceeded(None)

    world.act = act
    ran(world, [Work(number * 200) for number in range(150)])
    failed = sum(start < 20 for start in starts_of(world))
    assert failed <= 5 + 2 * 20 + 10  # those that were let in already, and the first retries
    assert world.open_runs() == []


# -- a bank that answers 429 -----------------------------------------------------------------------


class Bank:
    """A bank that accepts `per_second` calls, 20 at once after a pause, and refuses more."""

    def __init__(self, world: FlowWorld, per_second: Callable[[int], float], burst: float) -> None:
        self._world, self._per_second, self._burst = world, per_second, burst
        self._tokens, self._at_ms = burst, START_MS
        self.calls: list[tuple[int, bool]] = []

    def call(self, work: Work, effect: Begin) -> TaskResult:
        del work, effect
        now_ms = self._world.now_ms
        gained = (now_ms - self._at_ms) / 1_000 * self._per_second(now_ms - START_MS)
        self._tokens, self._at_ms = min(self._burst, self._tokens + gained), now_ms
        is_taken = self._tokens >= 1
        self._tokens -= is_taken
        self.calls.append((now_ms, is_taken))
        return TaskSucceeded(None) if is_taken else TaskThrottled(1_000, "429")


def test_with_an_exact_limit_a_bank_never_refuses_a_call() -> None:
    world = world_of(LimitUse(BANK))
    bank = Bank(world, lambda _: 20, burst=8)
    world.act = bank.call
    executions = 1_000 if IS_THOROUGH else 200
    ran(world, [Work(number, seconds=0.1) for number in range(executions)])
    assert world.open_runs() == []
    assert sum(not is_taken for _, is_taken in bank.calls) == 0


def _adapted(executions: int, seed: int) -> Bank:
    """A limit of 100/s before a bank that accepts 20/s, and 40/s after five minutes."""
    fast = LimitRule("bank", interval_us=10_000, burst=2)
    world = world_of(LimitUse(fast), seed=seed)
    bank = Bank(world, lambda ms: 20 if ms < 300_000 else 40, burst=8)
    world.act = bank.call
    ran(world, [Work(number, seconds=0.1) for number in range(executions)])
    assert world.open_runs() == []
    return bank


def _between(bank: Bank, first: int, last: int) -> tuple[float, float]:
    """Return the accepted calls a second, and the part of the calls that was refused."""
    window = [taken for ms, taken in bank.calls if first <= (ms - START_MS) / 1_000 < last]
    return sum(window) / (last - first), window.count(False) / len(window)


@pytest.mark.slow
def test_a_limit_that_does_not_know_the_banks_rate_finds_it() -> None:
    bank = _adapted(900, seed=1)
    accepted, refused = _between(bank, 10, 40)
    assert accepted >= 0.79 * 20
    assert refused <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_calls_use_a_banks_capacity_with_few_refusals(seed: int) -> None:
    bank = _adapted(10_000, seed)
    accepted = sum(taken for _, taken in bank.calls)
    ended_seconds = (bank.calls[-1][0] - START_MS) / 1_000
    assert accepted / (300 * 20 + (ended_seconds - 300) * 40) >= 0.79
    assert 1 - accepted / len(bank.calls) <= 0.06
    assert _between(bank, 350, 360)[0] >= 30  # within a minute after its rate has doubled


# -- cost ------------------------------------------------------------------------------------------


def _write_units(world: FlowWorld, works: list[Work]) -> float:
    ran(world, works, minutes=10)
    assert world.open_runs() == []
    return float(world.services.usage.write_units) / len(works)


def test_an_uncontended_start_costs_one_write_for_a_rate_and_two_for_concurrency() -> None:
    works = [Work(number * 1_000) for number in range(50)]
    free = _write_units(world_of(), works)
    assert _write_units(world_of(LimitUse(BANK)), works) - free == pytest.approx(1, abs=0.05)
    assert _write_units(world_of(LimitUse(LEDGER)), works) - free == pytest.approx(2, abs=0.05)


def test_an_idle_limit_costs_nothing() -> None:
    # By then the sweeper has checked the start.
    world = ran(world_of(LimitUse(BANK)), [Work(0)], minutes=20)
    before = world.services.usage.write_units, world.services.usage.sqs_send_requests
    world.run(START_MS + 60 * MINUTE_MS)
    assert (world.services.usage.write_units, world.services.usage.sqs_send_requests) == before


def test_five_thousand_starts_a_second_are_spread_over_gates() -> None:
    rule = LimitRule("wide", interval_us=200, burst=5_000)
    assert rule.shards == 25
    parts = [rule.of_shard(shard) for shard in range(rule.shards)]
    assert all(part.interval_us == 5_000 and part.burst == 200 for part in parts)
    wide = LimitRule("many", concurrency=101)
    places = [wide.of_shard(shard).concurrency or 0 for shard in range(wide.shards)]
    assert sum(places) == 101


def _writes_of_hottest_partition(world: FlowWorld) -> Counter[tuple[str, int]]:
    """Count, from now on, the writes of each partition of the mail table in each second."""
    writes: Counter[tuple[str, int]] = Counter()
    perform = world.services.perform

    def counting(effect: Any) -> Any:
        match effect:
            case Update(table=tables.MAIL, pk=pk) | Delete(table=tables.MAIL, pk=pk):
                writes[pk, world.now_ms // 1_000] += 1
            case Put(table=tables.MAIL, item=item) | PutIfAbsent(table=tables.MAIL, item=item):
                writes[str(item["pk"]), world.now_ms // 1_000] += 1
            case _:
                pass
        return perform(effect)

    world.services.perform = counting  # type: ignore[method-assign]
    return writes


@pytest.mark.slow
def test_a_queue_before_a_fast_limit_heats_no_partition() -> None:
    """A gate of 200/s, the most that one gate has, with 250 arrivals a second before it."""
    world = world_of(LimitUse(LimitRule("wide", interval_us=5_000, burst=1)))
    writes = _writes_of_hottest_partition(world)
    ran(world, [Work(number * 4, seconds=0.05) for number in range(600)], minutes=3)
    assert world.open_runs() == []
    assert max(writes.values()) <= 500, writes.most_common(3)


@pytest.mark.slow
def test_five_thousand_starts_a_second_keep_every_partition_cool() -> None:
    world = world_of(LimitUse(LimitRule("wide", interval_us=200, burst=5_000)))
    writes = _writes_of_hottest_partition(world)
    ran(world, [Work(number // 6, seconds=0.05) for number in range(30_000)], minutes=3)
    assert world.open_runs() == []
    began = Counter(int(second) for second in starts_of(world))
    print(began, writes.most_common(3))
    assert max(writes.values()) <= 500
    assert began[2] + began[3] >= 0.95 * 10_000


@pytest.mark.slow
def test_a_hundred_thousand_keys_keep_every_partition_cool() -> None:
    each = LimitUse(replace(LEDGER, concurrency=1), key="customer")
    world = world_of(each)
    writes = _writes_of_hottest_partition(world)
    works = [Work(n // 5, customer=f"c{n % 100_000}", seconds=0.05) for n in range(110_000)]
    ran(world, works, minutes=10)
    assert world.open_runs() == []
    gates = Counter({where: n for where, n in writes.items() if where[0].startswith("~gate")})
    print(gates.most_common(3), writes.most_common(3))
    assert max(gates.values()) <= 50
    assert max(writes.values()) <= 500


# -- random worlds, and bugs that they find --------------------------------------------------------


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(10, 200, 10))]
)
def test_in_random_worlds_with_faults_every_promise_holds(first: int) -> None:
    for seed in some(range(first, first + 10)):
        assert flow_worlds.play(seed).violations == (), f"seed {seed}"


def test_a_permit_that_is_granted_again_lasts_for_the_whole_run() -> None:
    """In the world of this seed a dispenser grants a permit and freezes before it sends the wake.
    Another one sends it half a minute later, just before the permit's end.
    """
    assert flow_worlds.play(89).violations == ()


class _FrozenInRelease(FlowWorld):
    """The first worker that gives a permit back is frozen before it does, until the sweeper has
    begun the next try; and for ten seconds after it.
    """

    is_frozen = False

    def _do(self, host: Any, effect: Any, perform: Any, again: Any) -> None:
        gives_back = isinstance(effect, Update) and effect.add.get("n") == -1
        if not gives_back or self.is_frozen:
            super()._do(host, effect, perform, again)
            return

        def go_on() -> None:
            host.frozen_until_ms = self.now_ms + 10_000
            self._do_now(host, effect, perform, again, "")

        self.is_frozen = True
        host.frozen_until_ms = self.now_ms + 150_000
        self.at(host.frozen_until_ms, go_on)


def test_a_frozen_try_does_not_give_back_the_permit_of_the_next_one() -> None:
    rule = LimitRule("two", concurrency=2)
    world = _FrozenInRelease({"task0": (LimitUse(rule),)}, machine(("task0",), 600))
    others = [Work(at_ms, seconds=100) for at_ms in (225_000, 255_000)]
    ran(world, [Work(0, seconds=100, throttled=1), *others])
    assert world.is_frozen
    assert world.open_runs() == []
    assert list(flow_worlds._holders(world, [rule])) == []


def _without(condition: str) -> Callable[[Any], Any]:
    """Return the writes of a gate, each without its tests of one attribute."""
    plain = gate.update

    def update(gate_id: Any, now_ms: int, *where: Condition, **fields: Any) -> Any:
        kept = (one for one in where if not one.attribute.startswith(condition))
        return plain(gate_id, now_ms, *kept, **fields)

    return update  # type: ignore[return-value]


def _no_answer_to_none(*_: Any, **__: Any) -> Any:
    yield from ()


BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "F1 a place is taken without a look at how many are": lambda patch: patch.setattr(
        gate, "update", _without("n")
    ),
    "F2 a permit is given back by any caller": lambda patch: patch.setattr(
        gate, "update", _without(gate.OWNER)
    ),
    "F8 an empty queue is not looked at again": lambda patch: patch.setattr(
        dispense, "_serve_from_now_on", _no_answer_to_none
    ),
    "a permit lapses at once": lambda patch: patch.setattr(
        gate.Permit, "has_lapsed", lambda *_: True
    ),
    "a permit is not given back": lambda patch: patch.setattr(
        permits.Permits, "release", _no_answer_to_none
    ),
    "a row stays when its attempt is let in": lambda patch: patch.setattr(
        queue, "row_key", lambda *_: "x"
    ),
}


#: Seeds that have shown a bug; they are tried before the others.
SHOWN_BY: Final = (0, 2, 28, 34)


@pytest.mark.parametrize("bug", some(list(BUGS)))
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    assert any(flow_worlds.play(seed).violations for seed in (*SHOWN_BY, *range(40))), bug


RATE_BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "F1 a token is taken without a look at the time": lambda patch: patch.setattr(
        gate, "update", _without("tat")
    ),
    "F13 a late token is used": lambda patch: patch.setattr(dispense, "GATE_TOKEN_MS", 10**9),
}


def _held_up() -> list[str]:
    """Delay the wakes of twenty seconds by half a minute; return the violations of the rate."""
    world = world_of(LimitUse(BANK), faults=Faults(end_ms=20_000, late=1))
    ran(world, [Work(number) for number in range(1_200)], minutes=10)
    assert world.open_runs() == []
    return list(flow_worlds._starts(world, [BANK]))


@pytest.mark.slow
def test_wakes_that_were_held_up_do_not_exceed_the_rate() -> None:
    assert _held_up() == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", RATE_BUGS)
def test_a_planted_bug_of_a_rate_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RATE_BUGS[bug](monkeypatch)
    assert _held_up()


def _inversions() -> int:
    """Executions come a little faster than one place serves them; returns how often one was
    passed.
    """
    world = world_of(LimitUse(replace(LEDGER, concurrency=1)))
    ran(world, [Work(number * 50, seconds=0.05) for number in range(300 if IS_THOROUGH else 100)])
    began = {one.began.run: one.began.at_ms for one in world.task_runs}
    order = [began[run] for run in world.works]
    return sum(b < a for a, b in pairwise(order))


def test_new_attempts_do_not_overtake_waiting_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _inversions() == 0
    monkeypatch.setattr(GateMemory, "is_busy", lambda *_: False)
    monkeypatch.setattr(gate, "NO_WAITERS", Condition("ttl", ">", 0, or_absent=True))
    assert _inversions() > 0  # F9, planted


def _after_a_crash() -> FlowWorld:
    """Crash the worker of the only permit; its execution is stopped before the message
    comes back.
    """
    world = world_of(LimitUse(replace(LEDGER, concurrency=1)))
    world.at(START_MS + 2_000, lambda: world.kill(next(iter(world.works))))
    world.at(START_MS + 3_000, lambda: world.stop(next(iter(world.works))))
    return ran(world, [Work(0, seconds=5), Work(500), Work(600)], minutes=10)


def test_the_place_of_a_crashed_worker_is_free_when_its_permit_has_lapsed() -> None:
    world = _after_a_crash()
    assert world.open_runs() == []
    assert starts_of(world)[-1] < 20 + 5 + 2 + 62  # time-out, grace, clocks, the queue's tick


def test_a_permit_that_never_lapses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate.Permit, "has_lapsed", lambda *_: False)
    assert len(_after_a_crash().open_runs()) == 2


def _failed(_: Work, __: Begin) -> TaskResult:
    return TaskFailed("Broken", "it failed")


def test_a_failed_attempt_holds_nothing_while_it_waits_for_its_next_try() -> None:
    world = world_of(LimitUse(replace(LEDGER, concurrency=1)))
    failing = {"o0"}
    world.act = lambda work, effect: (
        _failed(work, effect)
        if effect.effect.run_name in failing and effect.effect.attempt < 4
        else TaskSucceeded(None)
    )
    ran(world, [Work(0), *(Work(200 + number) for number in range(5))], minutes=5)
    assert world.open_runs() == []
    others = [one for one in world.task_runs if one.began.run != next(iter(world.works))]
    assert max(one.began.at_ms for one in others) - START_MS < 10_000


# -- calls of services -----------------------------------------------------------------------------

TABLE = LimitRule("table", interval_us=100_000, burst=1)
PUT = "aws-sdk:dynamodb:putItem"


def _putting(limits: dict[str, tuple[LimitUse, ...]]) -> FlowWorld:
    """A world whose executions put one item; DynamoDB throttles the first attempt of the first."""
    definition = machine(("put",), 20, retry=False)
    definition["States"]["0"]["Resource"] = f"arn:aws:states:::{PUT}"
    world = FlowWorld(limits, definition)
    throttled = TaskFailed("DynamoDb.ThrottlingException", "Rate exceeded")
    calls = count()
    world.act = lambda *_: throttled if next(calls) == 0 else TaskSucceeded({})
    return ran(world, [Work(number, seconds=0.01) for number in range(30)])


@pytest.mark.parametrize("action", [PUT, "aws-sdk:dynamodb"])
def test_the_calls_of_a_service_keep_its_limit_and_a_throttled_one_waits(action: str) -> None:
    world = _putting({action: (LimitUse(TABLE),)})
    assert world.open_runs() == []
    ends = Counter(item["st"] for item in world.services.items("executions"))
    assert (ends["SUCCEEDED"], ends["FAILED"]) == (30, 0)
    starts = starts_of(world)
    assert len(starts) == 31
    assert (
        min(later - earlier for earlier, later in pairwise(starts)) >= 0.05
    )  # messages take 0.02 to 0.12 s


def test_without_a_limit_a_throttled_call_is_an_error() -> None:
    ends = Counter(item["st"] for item in _putting({}).services.items("executions"))
    assert ends == {"SUCCEEDED": 29, "FAILED": 1}
