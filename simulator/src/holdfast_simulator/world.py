"""The small world of ordinary tests: the real handlers, one by one, and a hook at each effect.

For tests that say themselves what goes wrong, and when; `simulation` draws it, and lets handlers
overlap. Here every handler runs to its end or its death before the next begins, unless a hook lets
another one in between two effects. A hook sees each effect before and after it happens; it may
raise `Killed` (the process dies there), `Doubt` (the answer is lost), or make something else
happen first. The same hook and the same programs give the same trace.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any, Literal, TypeAlias

from holdfast.errors import HoldfastError
from holdfast.limits import (
    LIMIT_MARGIN_MS,
    SWEEP_AHEAD_SECONDS,
    SWEEP_SECONDS,
    VISIBILITY_SECONDS,
)
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Clock,
    Deadline,
    Effect,
    Handler,
    Item,
    QueueName,
    RunTask,
    SetVisibility,
    TaskResult,
    WriteDeadline,
)
from holdfast.runtime.maintenance import dead_letters, due_archives, lost_starts, sweeper
from holdfast.runtime.pending_starts import FIRST_MS
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import DUE, STARTS
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import deliver
from holdfast_simulator.queues import Received
from holdfast_simulator.services import DEAD_LETTERS, WORK_QUEUES, Services
from holdfast_simulator.unreported import is_unreported

When: TypeAlias = Literal["before", "after"]
Hook: TypeAlias = Callable[["SimulatorWorld", Effect, When], None]
#: -> how far the clock of the host of the nth delivery is from the truth, in milliseconds.
Skew: TypeAlias = Callable[[int], int]
RunsTask: TypeAlias = Callable[[RunTask], TaskResult]

START_MS = 1_800_000_000_000
HORIZON_MS = 2 * 365 * 86_400_000  # An endless simulation must stop too


class Killed(BaseException):
    """The process is gone. No handler can catch it, as no process outlives its own death."""


def no_faults(world: SimulatorWorld, effect: Effect, when: When) -> None:
    """The hook of a world in which nothing goes wrong."""


@dataclass
class SimulatorWorld:
    setting: WorkerConfig
    tasks: RunsTask
    hook: Hook = no_faults
    skew: Skew = lambda _number: 0
    now_ms: int = START_MS
    services: Services = field(init=False)
    task_runs: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    happened: Counter[tuple[str, When]] = field(default_factory=Counter)
    kills: int = 0
    faults: list[Exception] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _scheduled: list[tuple[int, int, Callable[[], Any]]] = field(default_factory=list)
    _last_sweep_ms: int = 0

    def __post_init__(self) -> None:
        self.services = Services(lambda: self.now_ms, tasks=self._run_task, pause=self._pause)

    def _pause(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    def _run_task(self, effect: RunTask) -> TaskResult:
        self.task_runs[effect.run, effect.entry, effect.attempt] += 1
        return self.tasks(effect)

    @property
    def spread(self) -> int:
        """Return the greatest spread that the sweeper reads."""
        return self.setting.spread.read

    # -- effects -----------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> Any:
        """An effect of a handler that belongs to no message."""
        return self._performed(effect, self.services.perform)

    def _performed(self, effect: Effect, perform: Callable[[Effect], Any]) -> Any:
        self._tell(effect, "before")
        result = perform(effect)
        self._tell(effect, "after")
        return result

    def _tell(self, effect: Effect, when: When) -> None:
        self.hook(self, effect, when)

    def call(self, handler: Generator[Effect, Any, Any]) -> Any:
        """Runs a handler of the front door or the sweeper; it may die of `Killed`."""
        return run(handler, self.perform)

    # -- deliveries --------------------------------------------------------------------------------

    def deliver(self, received: Received, queue: QueueName) -> bool:
        """Deliver one message to one worker. Return False when it crashed or gave the
        message back.
        """
        bound = self.services.for_message(queue, received.receipt)
        number = next(self._numbers)
        skew_ms = self.skew(number)
        limit_ms = self.now_ms + skew_ms + VISIBILITY_SECONDS * 1_000 - LIMIT_MARGIN_MS

        def perform(effect: Effect) -> Any:
            if isinstance(effect, WriteDeadline | Deadline):
                return limit_ms
            result = self._performed(effect, bound)
            return result + skew_ms if isinstance(effect, Clock) else result

        delivery = ReceivedMessage(
            body=received.body,
            message_id=received.message_id,
            receive_count=received.receive_count,
            owner=f"worker{number}",
            sent_ms=received.sent_at,
            is_alone=queue == "single",
        )
        try:
            self._performed(SetVisibility(VISIBILITY_SECONDS), bound)
            is_done = bool(run(deliver(self.setting, delivery), perform))
        except Killed:
            self.kills += 1
            return False
        except HoldfastError as fault:
            self.faults.append(fault)
            return False
        if is_done:
            self.services.delete(received.receipt)
        return is_done

    def sweep(self) -> None:
        """Run one round of the sweeper; after a crash the next minute continues."""
        self._last_sweep_ms = self.now_ms
        try:
            for shard in range(DUE.count(self.spread)):
                if self._has_rows(keys.due_partition(shard)):
                    sweep = partial(
                        sweeper.sweep, archives=self.setting.archives, spread=self.spread
                    )
                    self._sweep_shard(sweep, shard)
            for shard in range(STARTS.count(self.spread)):
                if self._has_rows(keys.pending_starts(shard)):
                    self._sweep_shard(lost_starts.sweep, shard)
            if self.setting.archives:
                for shard in range(DUE.count(self.spread)):
                    if self._has_rows(keys.archive_partition(shard)):
                        self._sweep_shard(due_archives.sweep, shard)
            for queue in DEAD_LETTERS:
                for letter in self.services.receive(queue):
                    self._revive(letter)
        except Killed:
            self.kills += 1

    def _sweep_shard(self, sweep: Callable[..., Handler], shard: int) -> None:
        owner = f"sweeper{next(self._numbers)}"
        try:
            self.call(sweep(shard, owner, self.setting.formats))
        except HoldfastError as fault:
            self.faults.append(fault)

    def _revive(self, letter: Received) -> None:
        """A letter that cannot be revived stays in its queue."""
        found = dead_letters.StoredDeadLetter(letter.body, letter.message_id)
        try:
            self.call(dead_letters.revive(found, self.setting.formats))
        except HoldfastError as fault:
            self.faults.append(fault)
            return
        self.services.delete(letter.receipt)

    # -- time --------------------------------------------------------------------------------------

    def at(self, at_ms: int, action: Callable[[], Any]) -> None:
        heappush(self._scheduled, (at_ms, next(self._numbers), action))

    def run(self, *, until_ms: int | None = None) -> None:
        """Run until no event is left, until the given moment, or for two years; time is virtual."""
        while True:
            if self._deliver_visible():
                continue
            next_ms = self._next_ms()
            if next_ms is None or next_ms > (until_ms or START_MS + HORIZON_MS):
                return
            self.now_ms = max(self.now_ms, next_ms)
            while self._scheduled and self._scheduled[0][0] <= self.now_ms:
                heappop(self._scheduled)[2]()
            if self._sweep_ms() == self.now_ms:
                self.sweep()

    def _deliver_visible(self) -> bool:
        for queue in WORK_QUEUES:
            received = self.services.receive(queue)
            for message in received:
                self.deliver(message, queue)
            if received:
                return True
        return False

    def _next_ms(self) -> int | None:
        times = [self.services.next_visible_ms(), self._sweep_ms()]
        times += [self._scheduled[0][0]] if self._scheduled else []
        return min((at for at in times if at is not None), default=None)

    def _sweep_ms(self) -> int | None:
        """The next full minute at which a sweep finds anything; the others are left out."""
        shards = range(DUE.count(self.spread))
        looks = self._earliest(map(keys.due_partition, shards))
        archives = self._earliest(map(keys.archive_partition, shards))
        looks += [at_ms + SWEEP_AHEAD_SECONDS * 1_000 for at_ms in archives]
        looks += [at_ms + SWEEP_AHEAD_SECONDS * 1_000 for at_ms in self._lost_start_ms()]
        if self.services.next_visible_ms(DEAD_LETTERS) is not None:
            looks.append(self.now_ms)
        if not looks:
            return None
        period_ms = SWEEP_SECONDS * 1_000
        earliest_ms = max(min(looks) - SWEEP_AHEAD_SECONDS * 1_000, self._last_sweep_ms + 1)
        return max(-(-earliest_ms // period_ms) * period_ms, self.now_ms)

    def _lost_start_ms(self) -> list[int]:
        """Return when the sweeper reads the rows of starts that have no log, and of children that
        have ended without a report to their parent. Other rows lead to nothing as a rule, and a
        sweep for them would only move the clock.
        """
        found: list[int] = []
        for shard in range(STARTS.count(self.spread)):
            partition = keys.pending_starts(shard)
            if not self._has_rows(partition):
                continue
            read = self._starts_read(shard)
            found += [
                int(str(row["sk"])[:15]) + FIRST_MS
                for row in self.services.partition(tables.MAIL, partition)
                if str(row["sk"]) > read
                and (
                    not self.services.has_partition(tables.EXECUTIONS, _log_of(row))
                    or is_unreported(self.services, row)
                )
            ]
        return found

    def _has_rows(self, partition: str) -> bool:
        return self.services.has_partition(tables.MAIL, partition)

    def _starts_read(self, shard: int) -> str:
        """Return the sort key up to which the sweeper has read the shard."""
        row = self.services.row(tables.MAIL, keys.STARTS_READ, keys.starts_read(shard))
        return "" if row is None else str(row["to"])

    def _earliest(self, partitions: Iterable[str]) -> list[int]:
        """Return the time of the first row of each partition: the rows are in the order of time."""
        firsts = (self.services.first_key(tables.MAIL, partition) for partition in partitions)
        return [int(str(first).partition("#")[0]) for first in firsts if first is not None]


def _log_of(start: Item) -> str:
    return keys.execution(str(start["t"]), str(start["run"]))


# -- hooks -----------------------------------------------------------------------------------------


@dataclass
class CrashAt:
    """Kills at one effect, counted over all handlers from 0. `None` kills nowhere: it counts."""

    number: int | None
    when: When
    seen: int = 0

    @property
    def numbers(self) -> range:
        """The effects at which a test crashes that runs with "before" and with "after".

        A crash after one effect and a crash before the next leave the same behind. So every second
        effect is enough: the two runs together crash at each place once.
        """
        return range(0, self.seen, 2)

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when != self.when:
            return
        number, self.seen = self.seen, self.seen + 1
        if number == self.number:
            world.happened[type(effect).__name__, when] += 1
            raise Killed


@dataclass
class RandomCrashes:
    """Kills with a chance at each effect, drawn from a seed, until `crashes_max` were had."""

    seed: int
    chance: float
    crashes_max: int
    draws: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draws = random.Random(self.seed)  # noqa: S311  # repeatable, not secret

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if world.kills < self.crashes_max and self.draws.random() < self.chance:
            world.happened[type(effect).__name__, when] += 1
            raise Killed


@dataclass
class CrashEachKind:
    """Crash before and after every kind of effect, at each given occurrence of it."""

    occurrences: frozenset[int]
    seen: Counter[tuple[str, When]] = field(default_factory=Counter)

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        kind = (type(effect).__name__, when)
        self.seen[kind] += 1
        if self.seen[kind] in self.occurrences:
            world.happened[kind] += 1
            raise Killed
