"""A slice of a busy stack: what a rate of starts writes to each partition, second by second.

A stack for 16,000 starts a second has 128 partitions of due rows. The whole rate cannot be
simulated, but one partition can: its rows are those of the executions whose id has one remainder of
128. `slices` says of how many equal parts of the stack this world has one. Everything in it is as
it is in the whole: the starts a second of a partition, the calls and their times, DynamoDB's limits
(`throttling.py`), the sweeps and the pages of the workers. Only the other partitions are missing.

One minute of starts is simulated, from the first start to the last end. In a stack that has run for
days, the writes of a minute are those of this minute's starts, and of the starts of each minute
before. So the writes of all minutes are added up by the second of the minute (`Steady`).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.errors import ServiceFault
from holdfast.limits import SWEEP_SECONDS
from holdfast.runtime import messages
from holdfast.runtime.effects import Clock, Handler, Measure, Message, Send, WriteDeadline
from holdfast.runtime.maintenance import sweeper
from holdfast.runtime.pending_starts import FIRST_MS
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import DUE, STARTS, Spread
from holdfast_simulator.flow import KEYS, START_MS, FlowWorld, Work
from holdfast_simulator.throttling import Throttling

#: A caller that got no answer starts again after this.
_AGAIN_MS: Final = 1_000
_MINUTE_MS: Final = SWEEP_SECONDS * 1_000


@dataclass(frozen=True, slots=True)
class Slice:
    """One of `slices` equal parts of a stack with this spread that takes `rate` starts a second."""

    rate: int
    spread: int
    slices: int

    @property
    def due_shards(self) -> range:
        return range(0, DUE.count(self.spread), self.slices)

    @property
    def start_shards(self) -> range:
        return range(0, STARTS.count(self.spread), self.slices)


class LoadWorld(FlowWorld):
    """A world in which `part` of a stack takes its starts."""

    services: Throttling

    def __init__(self, definition: dict[str, Any], part: Slice, seed: int) -> None:
        super().__init__({"work": ()}, definition, seed=seed)
        self.part = part
        self.services = Throttling(lambda: self.now_ms)
        spread = Spread(part.spread, part.spread)
        self.front = replace(self.front, spread=spread)

    def start_for(self, seconds: int) -> None:
        """Start executions for some seconds, at random times, at the rate of the slice."""
        for _ in range(self.part.rate * seconds // self.part.slices):
            self.at(START_MS + self.random.randrange(seconds * 1_000), self._start)

    def _start(self) -> None:
        chance = self._chance()
        request = {"workflow": "flow", "input": {"customer": "c1"}, "name": None}

        def again() -> None:
            self._spawn(self.front.start("default", request, chance), begun, again)

        def begun(answer: Any) -> None:
            self.works[str(answer["execution"])] = Work(0, seconds=0.05)
            self._poll()

        again()

    def _chance(self) -> bytes:
        """Return random bytes that give an id in this slice at this moment."""
        while True:
            chance = self.random.getrandbits(56).to_bytes(8, "big")
            spread = self.part.spread
            run = keys.mint_run("default", self.now_ms, chance, KEYS.secret, spread)
            if zlib.crc32(run.encode()) % self.part.slices == 0:
                return chance

    def _spawn(
        self, handler: Handler, done: Callable[[Any], None], failed: Callable[[], None]
    ) -> None:
        """Run a handler that belongs to no message: each call takes 1 to 8 ms."""

        def step(advance: Callable[[Handler], Any]) -> None:
            try:
                effect = advance(handler)
            except StopIteration as stop:
                done(stop.value)
                return
            except ServiceFault:
                self.at(self.now_ms + _AGAIN_MS, failed)
                return
            match effect:
                case Clock():
                    now_ms = self.now_ms
                    step(lambda h: h.send(now_ms))
                case WriteDeadline():
                    limit_ms = self.now_ms + _MINUTE_MS
                    step(lambda h: h.send(limit_ms))
                case Measure():
                    step(lambda h: h.send(None))
                case _:
                    try:
                        answer = self.services.perform(effect)
                    except ServiceFault as fault:
                        refusal = fault
                        self._later(lambda: step(lambda h: h.throw(refusal)))
                        return
                    self._later(lambda: step(lambda h: h.send(answer)))

        step(next)

    def _later(self, action: Callable[[], None]) -> None:
        self.at(self.now_ms + self.random.randint(1, 8), action)

    def _sweep(self) -> None:
        part, owner = self.part, f"sweeper{next(self._numbers)}"
        for shard in part.due_shards:
            if self.services.has_partition(tables.MAIL, keys.due_partition(shard)):
                sweep = sweeper.sweep(shard, owner, spread=part.spread)
                self._spawn(sweep, lambda _: self._poll(), lambda: None)
        if self.now_ms - START_MS < 2 * FIRST_MS:
            handed = [messages.sweep_starts(shard, self.now_ms) for shard in part.start_shards]
            self.services.perform(Send(tuple(map(Message, handed))))
        self._poll()
        self.at(self.now_ms + _MINUTE_MS, self._sweep)


@dataclass(frozen=True, slots=True)
class Steady:
    """The write units of each second of a minute in a stack that has run for days, by partition."""

    units: Mapping[tuple[str, int], int]

    @classmethod
    def of(cls, world: LoadWorld) -> Steady:
        found: Counter[tuple[str, int]] = Counter()
        for (partition, second), units in world.services.writes.items():
            found[partition, second % SWEEP_SECONDS] += units
        return cls(found)

    def seconds(self, prefix: str) -> dict[str, list[int]]:
        """Return the units of the 60 seconds, for each partition whose key begins so."""
        wanted = {partition for partition, _ in self.units if partition.startswith(prefix)}
        return {
            one: [self.units.get((one, second), 0) for second in range(SWEEP_SECONDS)]
            for one in sorted(wanted)
        }
