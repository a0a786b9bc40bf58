"""Leases: which worker runs an attempt, until when, and when another worker may take it over.

Two workers can see the same attempt: the queue delivers a message twice, a recovery reads the log
while the first worker still runs. Running a user's task twice costs money and may charge a card
twice. A lease prevents most of that. It is a field of the attempt in the log:

    owner          the worker's name, one for each delivery
    message        the id of the queue message that the worker has
    receive_count  which delivery of that message it is
    until_ms       the end of the lease

**A lease is not a lock.** The log decides: of two results of one attempt it applies the first. So a
lease can be simple: it is written together with the event that schedules the attempt, costs no
write of its own, is never renewed, and is never given back.

**Its end** is the time-out of the task plus a grace. If a delivery has more attempts than places to
run them, later attempts begin when earlier ones end, so their leases last longer.

**Take-over.** Another delivery may run the attempt in three cases: the lease has ended; the message
of the lease has come again with a higher receive count, so its worker has crashed; or the worker
handed the attempt on, and the `go` message names it.

    10:00:00  worker A schedules attempt 1, time-out 60 s, lease until 10:01:05
    10:00:05  A crashes
    10:02:00  SQS delivers A's message again, receive count 2: worker B takes attempt 1 over
              the event says `takeovers` 1; after three lost owners the attempt runs alone
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final, assert_never

from holdfast.core import facts
from holdfast.core.facts import Fact
from holdfast.core.state import Attempt, Execution, Lease
from holdfast.core.waits import attempts_of
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    CLAIM_GRACE_MS,
    CLAIM_SECONDS_DEFAULT,
    CLOCK_ERROR_MS,
    INLINE_TIMEOUT_SECONDS_MAX,
)
from holdfast.runtime.effects import (
    TaskFailed,
    TaskPending,
    TaskResult,
    TaskSucceeded,
    TaskThrottled,
    Ticket,
)
from holdfast.runtime.messages import replaced_by


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One receipt of one message. `owner` is random and belongs to this delivery alone.

    `sent_ms`: when SQS got the message. `is_alone`: no other message dies with this one's worker.
    """

    body: Any
    message_id: str
    receive_count: int
    owner: str
    sent_ms: int
    is_alone: bool = True


def ticket_of(attempt: Attempt) -> Ticket:
    return attempt.entry, attempt.attempt


class Claims:
    """Makes the leases of one decision upon `state`; mutable, lives for that decision.

    Each leased attempt holds a place until its end, also one that was handed on and has the name of
    the previous worker. `told`: attempts that end, or get a new lease, with this decision.
    """

    def __init__(
        self, delivery: ReceivedMessage, state: Execution | None, now_ms: int, told: Iterable[Fact]
    ) -> None:
        self._delivery, self._state, self._now_ms, self._told = delivery, state, now_ms, told
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
        told = {(one.entry, one.attempt) for one in self._told if isinstance(one, _OF_ATTEMPTS)}
        return [
            attempt
            for attempt in ([] if self._state is None else attempts_of(self._state))
            if attempt.claim is not None
            and attempt.claim.until_ms > self._now_ms
            and ticket_of(attempt) not in told
        ]

    def _take_place(self, timeout_seconds: int | None) -> int:
        """-> when it is free again, at the latest."""
        begins_ms = heappop(self._free_ms)
        until_ms = begins_ms + run_seconds(timeout_seconds) * 1_000 + CLAIM_GRACE_MS
        heappush(self._free_ms, until_ms)
        return until_ms


#: The error of a task that asks to be called later and has no limit to slow down.
THROTTLED: Final = "Throttled"
_OF_ATTEMPTS: Final = (
    facts.FailedWith,
    facts.Refused,
    facts.Submitted,
    facts.Succeeded,
    facts.TakenOver,
    facts.TaskUnknown,
    facts.TimedOut,
)


def is_lost(claim: Lease, delivery: ReceivedMessage, now_ms: int) -> bool:
    """The claim has lapsed, or its holder had an earlier receipt of this very message, or one of a
    message that this one replaces: that was not sent before those receipts had run out.
    """
    if claim.owner == delivery.owner:
        return False
    is_earlier_receipt = (
        claim.message == delivery.message_id and claim.receive_count < delivery.receive_count
    )
    is_replaced = claim.message in replaced_by(delivery.body)
    is_lapsed = claim.until_ms + 2 * CLOCK_ERROR_MS < now_ms
    return is_earlier_receipt or is_replaced or is_lapsed


def run_seconds(timeout_seconds: int | None) -> int:
    """No attempt is longer than an invocation can be, whatever a foreign definition says."""
    return min(timeout_seconds or CLAIM_SECONDS_DEFAULT, INLINE_TIMEOUT_SECONDS_MAX)


def result_fact(
    ticket: Ticket, result: TaskResult, *, is_answered_later: bool, polls: int = 0
) -> Fact:
    """`polls`: how often the job had been asked for when this was asked."""
    match result:
        case TaskSucceeded(output) if is_answered_later:
            return facts.Submitted(*ticket, output)
        case TaskSucceeded(output):
            return facts.Succeeded(*ticket, output)
        case TaskFailed(error, cause):
            return facts.FailedWith(*ticket, error, cause)
        case TaskPending():
            return facts.Polled(*ticket, polls)
        case TaskThrottled(_, cause):
            return facts.FailedWith(*ticket, THROTTLED, cause)
        case _:
            assert_never(result)
