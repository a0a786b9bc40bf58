"""The inputs of a decision besides state and facts: the time, random numbers, leases and tokens.

Random numbers and tokens depend only on the execution and the record's number. So a worker that
repeats a decision of another worker writes the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from holdfast.core import facts
from holdfast.core.facts import DecisionInputs, Fact, Misuse
from holdfast.core.state import Attempt, Execution, Lease
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    CALLBACK_SECONDS_MAX,
    CLAIM_GRACE_MS,
    CLOCK_ERROR_MS,
)
from holdfast.runtime.commands.tokens import SigningKeys, Token, make_token
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log, draw
from holdfast.runtime.worker.attempts import run_seconds
from holdfast.runtime.worker.delivery import Delivery
from holdfast.runtime.worker.leases import ReceivedMessage

_OF_ATTEMPTS: Final = (
    facts.FailedWith,
    facts.Refused,
    facts.Submitted,
    facts.Succeeded,
    facts.TakenOver,
    facts.TaskUnknown,
    facts.TimedOut,
)


class Claims:
    """Creates the leases of one decision that changes `state`. Mutable.

    Each leased attempt occupies one of the places to run attempts until its lease ends. This
    includes an attempt that was handed on and whose lease still has the name of the previous
    worker. `told` holds the facts of the decision: attempts that end, or get a new lease, by them
    occupy no place.
    """

    def __init__(
        self,
        delivery: ReceivedMessage,
        state: Execution | None,
        now_ms: int,
        told: Iterable[Fact],
        seconds_max: int,
    ) -> None:
        self._delivery, self._state, self._now_ms, self._told = delivery, state, now_ms, told
        self._seconds_max = seconds_max
        self._free_ms: list[int] = []

    def make(self, timeout_seconds: int | None) -> Lease:
        if not self._free_ms:
            self._free_ms = [self._now_ms] * ATTEMPTS_IN_FLIGHT_MAX
            for attempt in self._held():
                self._take_place(attempt.timeout_seconds)
        until_ms = self._take_place(timeout_seconds)
        delivery = self._delivery
        return Lease(delivery.owner, delivery.message_id, delivery.receive_count, until_ms)

    def _held(self) -> list[Attempt]:
        """Return the attempts with a valid lease that this decision does not end, in the order of
        their entries.
        """
        if self._state is None:
            return []
        told = {(one.entry, one.attempt) for one in self._told if isinstance(one, _OF_ATTEMPTS)}
        held = [
            attempt
            for frame in self._state.frames.values()
            if isinstance(attempt := frame.waiting, Attempt)
            and attempt.claim is not None
            and attempt.claim.until_ms > self._now_ms
            and (attempt.entry, attempt.attempt) not in told
        ]
        return sorted(held, key=lambda attempt: attempt.entry)

    def _take_place(self, timeout_seconds: int | None) -> int:
        """Occupy the place that becomes free first. Return the latest time at which it is free
        again.
        """
        begins_ms = heappop(self._free_ms)
        seconds = run_seconds(timeout_seconds, self._seconds_max)
        until_ms = begins_ms + seconds * 1_000 + CLAIM_GRACE_MS
        heappush(self._free_ms, until_ms)
        return until_ms


@dataclass
class DecisionInputsFactory:
    """Creates the inputs of the decisions of one delivery. Mutable.

    `draws` counts the random numbers drawn for the next record.
    """

    delivery: Delivery
    log: Log
    keys: Callable[[], SigningKeys]
    #: The longest time for which an attempt may run on this worker
    #: (`WorkerConfig.attempt_seconds_max`).
    seconds_max: int
    misuse: Misuse
    draws: int = 0

    def at(
        self,
        now_ms: int,
        decided_ms: int,
        state: Execution | None = None,
        told: Iterable[Fact] = (),
    ) -> DecisionInputs:
        """Return the inputs of one decision. `decided_ms` is the time of its events, while leases
        count from `now_ms`. `state` is the state that the decision changes, `told` the facts that
        it gets.
        """
        sequence = self.log.sequence + 1

        def next_draw() -> float:
            self.draws += 1
            return draw(self.log.run, sequence, self.draws)

        return DecisionInputs(
            now_ms=decided_ms,
            draw=next_draw,
            claim=Claims(self.delivery.received, state, now_ms, told, self.seconds_max).make,
            clock_error_ms=CLOCK_ERROR_MS,
            token=self._token,
            misuse=self.misuse,
        )

    def _token(self, entry: int, attempt: int) -> str:
        """Return the callback token of the attempt. Its expiry counts from the time in the
        execution's id, so every worker creates the same token.
        """
        expires_ms = keys.minted_ms(self.log.run) + CALLBACK_SECONDS_MAX * 1_000
        token = Token(self.log.tenant, self.log.run, entry, attempt, expires_ms)
        return make_token(token, self.keys())
