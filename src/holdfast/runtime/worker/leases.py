"""Attempts and claims as one delivery sees them: whose they are, which are lost.

A claim prevents double work; it is no lock. It ends a grace after its attempt's time-out, is never
renewed and never given back. Of more attempts than a delivery has places the later ones begin when
earlier ones have ended, so their claims last longer. Correctness rests on the log: of two results
one is applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final, assert_never

from holdfast.core import facts
from holdfast.core.commands import RunAttempt
from holdfast.core.facts import Fact
from holdfast.core.pending_commands import pending_commands
from holdfast.core.state import Attempt, Execution, Lease
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    CLAIM_GRACE_MS,
    CLAIM_SECONDS_DEFAULT,
    CLOCK_ERROR_MS,
    INLINE_TIMEOUT_SECONDS_MAX,
)
from holdfast.runtime.effects import TaskFailed, TaskPending, TaskResult, TaskSucceeded, Ticket
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


def attempts_of(state: Execution) -> list[Attempt]:
    return [
        command.attempt for command in pending_commands(state) if isinstance(command, RunAttempt)
    ]


def ticket_of(attempt: Attempt) -> Ticket:
    return attempt.entry, attempt.attempt


class Claims:
    """Makes the claims of one decision upon `state`; mutable, lives for that long.

    Of the attempts that are claimed each holds a place until its end, whoever has them: those that
    were handed on to us bear the name of who handed them on. `told` are over with this decision, or
    claimed anew.
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


_OF_ATTEMPTS: Final = (
    facts.FailedWith,
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
        case _:
            assert_never(result)
