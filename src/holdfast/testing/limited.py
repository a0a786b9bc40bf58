"""Limits in virtual time: which attempt may begin, and when the next one may.

The limits of a World are those that its tasks declare. A test may replace one by name, as an
operator does with `holdfast limit set`. One run has one execution, so a limit has an effect only
between its branches or retries.

    now       attempt 1 of bank      admitted: the bucket has a token
    now       attempt 2 of bank      again at +0.5 s, when the next token is due
    +0.5 s    attempt 2              admitted

The slower speed after `Throttled`, and circuit breakers, are not simulated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from holdfast.api.limits import Limit
from holdfast.api.tasks import Task
from holdfast.api.throttling import retry_after
from holdfast.core.commands import argument_text
from holdfast.testing.places import WaitingPlace

#: The name of a limit and the value of its key, which is "" for a limit without a key.
_GateKey: TypeAlias = tuple[str, str]
#: The part of a millisecond by which a sum of intervals may be wrong because of rounding.
_ROUNDING_MS: Final = 1e-6


@dataclass(slots=True)
class _Gate:
    """The state of one limit. Times are UTC milliseconds.

    `next_ms`: when the bucket of a rate would be full again. `closed_until_ms`: nothing begins
    before. `holders`: the running attempts. `queue`: attempts that wait for one of them to end.
    """

    limit: Limit
    next_ms: float = 0
    closed_until_ms: int = 0
    holders: list[WaitingPlace] = field(default_factory=list)
    queue: list[WaitingPlace] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return self._free == 0

    @property
    def _free(self) -> int:
        most = self.limit.concurrency
        return 1 if most is None else max(0, most - len(self.holders))

    def next_of_queue(self) -> list[WaitingPlace]:
        """Remove the attempts for which there is room from the queue, and return them."""
        open_places = [place for place in self.queue if not place.is_closed]
        self.queue = open_places[self._free :]
        return open_places[: self._free]

    def opens_ms(self) -> int:
        """Return the time at which the rate has its next token."""
        if self.limit.rate is None:
            return self.closed_until_ms
        early_ms = (self.limit.starts_at_once - 1) * self._interval_ms
        return max(self.closed_until_ms, math.ceil(self.next_ms - early_ms - _ROUNDING_MS))

    def take(self, place: WaitingPlace, now_ms: int) -> None:
        if self.limit.rate is None:
            self.holders.append(place)
        else:
            self.next_ms = max(self.next_ms, now_ms) + self._interval_ms

    @property
    def _interval_ms(self) -> float:
        assert self.limit.rate is not None
        return 1_000 / self.limit.rate.per_second


class LimitGates:
    """The limits of one run. `replaced` are limits that a test gives in place of the declared
    ones.
    """

    def __init__(self, replaced: Iterable[Limit]) -> None:
        self._replaced = {limit.name: limit for limit in replaced}
        self._gates: dict[_GateKey, _Gate] = {}

    def admit(self, place: WaitingPlace, now_ms: int) -> int | None:
        """Let the attempt begin, and return `now_ms`; or return when to ask again. None: the
        attempt waits until `end` of another attempt returns it.
        """
        gates = self._gates_of(place)
        opens_ms = max((gate.opens_ms() for gate in gates), default=now_ms)
        if opens_ms > now_ms:
            return opens_ms
        full = next((gate for gate in gates if gate.is_full), None)
        if full is not None:
            full.queue.append(place)
            return None
        for gate in gates:
            gate.take(place, now_ms)
        return now_ms

    def end(self, place: WaitingPlace) -> list[WaitingPlace]:
        """Free the places of an attempt that has ended or was cancelled. Return the attempts to
        admit again.
        """
        again: list[WaitingPlace] = []
        for gate in self._gates_of(place):
            if place in gate.holders:
                gate.holders.remove(place)
            # This is needed also for an attempt that was cancelled after its turn had come and
            # before it began. Otherwise its turn would be lost.
            again += gate.next_of_queue()
        return again

    def throttle(self, place: WaitingPlace, error: BaseException, now_ms: int) -> bool:
        """Close the limits of the attempt if its error says that the dependency is called too
        often. Return False for any other error, and for an attempt without limits.
        """
        gates = self._gates_of(place)
        task = place.subject
        limits = task.limits if isinstance(task, Task) else ()
        pause = retry_after(error, limits, datetime.fromtimestamp(now_ms / 1_000, UTC))
        if pause is None:
            return False
        until_ms = now_ms + pause // timedelta(milliseconds=1)
        for gate in gates:
            gate.closed_until_ms = max(gate.closed_until_ms, until_ms)
        return bool(gates)

    def _gates_of(self, place: WaitingPlace) -> list[_Gate]:
        task = place.subject
        if place.kind != "task" or not isinstance(task, Task):
            return []
        return [self._gate(declared, place) for declared in task.limits]

    def _gate(self, declared: Limit, place: WaitingPlace) -> _Gate:
        # Use the key that the code declares, because a limit that the test replaces keeps it, as in
        # the engine.
        key = "" if declared.key is None else argument_text(place.arguments, declared.key)
        limit = self._replaced.get(declared.name, declared)
        return self._gates.setdefault((declared.name, key), _Gate(limit))
