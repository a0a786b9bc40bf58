"""Random worlds of limited tasks, and the conditions that each must satisfy.

    S1     starts in any window t <= burst + rate x (t + 3 s + 4 x clock error)
    S2     at most n attempts run with a permit that has not expired
    LIVE   after the faults every execution ends, and within minutes
    CLEAN  then no row waits, no gate says that attempts wait, no permit is left
    BOUND  an execution needs at most so many messages

The seed determines a world: its limits, keys, tasks with one to three limits, executions and
faults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from holdfast.limits import CLAIM_GRACE_MS, CLOCK_ERROR_MS, GATE_TOKEN_MS
from holdfast.runtime.gates.rules import LimitRule, LimitUse
from holdfast_simulator.flow import START_MS, Faults, FlowWorld, TaskRun, Work, machine

_MINUTE_MS: Final = 60_000
#: The maximum for one execution: faults repeat messages, and each check of the sweeper sends one.
MESSAGES_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class FlowResult:
    """`violations` are sentences; `world` is at its end."""

    seed: int
    world: FlowWorld
    violations: tuple[str, ...]


def drawn(seed: int) -> tuple[FlowWorld, list[Work], tuple[LimitRule, ...]]:
    """Return a world whose executions and operators are scheduled, its executions, its limits."""
    draw = Random(f"flow {seed}")  # noqa: S311  # repeatable, not secret
    rules = tuple(_rule(draw, f"limit{number}") for number in range(draw.randint(1, 3)))
    tasks = tuple(f"task{number}" for number in range(draw.randint(1, 3)))
    uses = {task: _uses(draw, rules) for task in tasks}
    faulty = draw.random() < 0.8
    faults = Faults(
        chance=draw.choice([0.002, 0.01, 0.03]) if faulty else 0.0,
        end_ms=draw.choice([20_000, 90_000, 240_000]),
        skew_ms=draw.choice([0, 50, CLOCK_ERROR_MS // 2]),
        duplicates=draw.choice([0.0, 0.02]) if faulty else 0.0,
        late=draw.choice([0.0, 0.0, 0.2]) if faulty else 0.0,
    )
    world = FlowWorld(uses, machine(tasks, draw.choice([5, 20, 60])), seed=seed, faults=faults)
    spread_ms = draw.choice([1_000, 20_000, 120_000])
    works = [_work(draw, spread_ms) for _ in range(draw.randint(3, 60))]
    for number, work in enumerate(works):
        world.start(work, f"o{number}")
    if draw.random() < 0.3:
        rule = draw.choice([use.rule for found in uses.values() for use in found])
        at_ms = draw.randint(0, 60_000)
        world.change(rule, at_ms, is_paused=True)
        world.change(rule, at_ms + draw.choice([500, 5_000, 60_000]), is_paused=False)
    return world, works, rules


def _rule(draw: Random, name: str) -> LimitRule:
    if draw.random() < 0.5:
        per_second = draw.choice([1, 5, 20, 50])
        return LimitRule(name, interval_us=1_000_000 // per_second, burst=draw.randint(1, 10))
    return LimitRule(name, concurrency=draw.randint(1, 10))


def _uses(draw: Random, rules: Sequence[LimitRule]) -> tuple[LimitUse, ...]:
    chosen = draw.sample(list(rules), draw.randint(1, len(rules)))
    return tuple(
        LimitUse(rule, key="customer" if rule.name.endswith("2") else None, fair="tenant")
        for rule in chosen
    )


def _work(draw: Random, spread_ms: int) -> Work:
    return Work(
        at_ms=draw.randint(0, spread_ms),
        customer=f"c{draw.randint(1, 3)}",
        tenant=f"t{draw.randint(1, 3)}",
        seconds=draw.choice([0, 0.2, 1, 3]),
        priority=draw.choice([5, 5, 5, 1, 9]),
        throttled=draw.choice([0, 0, 0, 0, 1, 3]),
        failed=draw.choice([0, 0, 0, 0, 1, 2]),
        is_stopped=draw.random() < 0.1,
    )


def play(seed: int) -> FlowResult:
    world, works, rules = drawn(seed)
    _stop_some(world)
    ends_ms = START_MS + max([world.faults.end_ms, *(work.at_ms for work in works)])
    world.run(ends_ms)
    # A limit that refusals keep slow needs most of an hour for its queue.
    world.run(ends_ms + 60 * _MINUTE_MS)
    found = [*_starts(world, rules), *_holders(world, rules), *_rest(world)]
    return FlowResult(seed, world, tuple(found))


def _stop_some(world: FlowWorld) -> None:
    """Stop some executions while they wait or run, as a caller does."""

    def stop() -> None:
        for run, work in list(world.works.items()):
            if work.is_stopped and world.random.random() < 0.5:
                world.stop(run)

    for second in (2, 7, 30):
        world.at(START_MS + second * 1_000, stop)


# -- rules that must hold --------------------------------------------------------------------------


def _by_gate(
    world: FlowWorld, rules: Sequence[LimitRule]
) -> Iterator[tuple[LimitRule, list[TaskRun]]]:
    for rule in rules:
        of_key: dict[str, list[TaskRun]] = defaultdict(list)
        for one in world.task_runs:
            for use in world.book.uses(one.began.task):
                if use.rule.name == rule.name:
                    of_key[one.began.customer if use.key else ""].append(one)
        for runs in of_key.values():
            yield rule, sorted(runs, key=lambda one: one.began.at_ms)


def _starts(world: FlowWorld, rules: Sequence[LimitRule]) -> Iterator[str]:
    """Check S1 with a token bucket of the allowed size: each start takes a token from it."""
    slack_ms = GATE_TOKEN_MS + 4 * CLOCK_ERROR_MS
    for rule, runs in _by_gate(world, rules):
        if rule.interval_us is None:
            continue
        interval_ms = rule.interval_us / 1_000
        size = rule.burst + slack_ms / interval_ms
        level, before_ms = size, START_MS
        for one in runs:
            level = min(size, level + (one.began.at_ms - before_ms) / interval_ms) - 1
            before_ms = one.began.at_ms
            if level < -1e-6:
                yield f"S1 {rule.name}: too many starts at {one.began.at_ms - START_MS} ms"
                break


def _holders(world: FlowWorld, rules: Sequence[LimitRule]) -> Iterator[str]:
    """Check S2. A run counts from its beginning until its end, or until its lease expires."""
    for rule, runs in _by_gate(world, rules):
        if rule.concurrency is None:
            continue
        moments: list[tuple[int, int]] = []
        for one in runs:
            lease_ms = one.began.at_ms + one.timeout_ms + CLAIM_GRACE_MS - 4 * CLOCK_ERROR_MS
            ended_ms = min(one.ended_ms or world.now_ms, lease_ms)
            moments += [(one.began.at_ms, 1), (ended_ms, -1)]
        running = 0
        for at_ms, change in sorted(moments):
            running += change
            if running > rule.concurrency:
                yield f"S2 {rule.name}: {running} at once at {at_ms - START_MS} ms"
                break


def _rest(world: FlowWorld) -> Iterator[str]:
    for run in world.open_runs():
        yield f"LIVE {run} has not ended"
    for error in sorted(set(world.errors)):
        yield f"BUG {error}"
    yield from (f"CLEAN a row waits: {item['pk']} {item['sk']}" for item in world.stored("~wait"))
    for item in world.stored("~gate"):
        if "w" in item:
            yield f"CLEAN {item['pk']} says that attempts wait"
        late = [name for name in item if name.startswith("u:")]
        if any(int(item[name]) > world.now_ms for name in late):
            yield f"CLEAN {item['pk']} has permits beyond the end"
    for run, sent in world.sent.items():
        if run in world.works and sent > _messages_max(world, world.works[run]):
            yield f"BOUND {run} needed {sent} messages"


def _messages_max(world: FlowWorld, work: Work) -> int:
    """Return the maximum of messages: each attempt of each task may wait once at each of its
    limits, and be retried.
    """
    tries = 2 + work.throttled + work.failed
    waits = sum(1 + len(uses) for uses in world.book.of_task.values())
    return MESSAGES_MAX + tries * waits
