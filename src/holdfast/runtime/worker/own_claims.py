"""The events that one delivery has claimed (`runtime/event_claims.py`), and what becomes of those
that its execution does not use.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.facts import Fact
from holdfast.core.state import Awaiting, Execution
from holdfast.runtime import event_claims, inbox, kept_events
from holdfast.runtime.effects import Effect, NoResult, Query
from holdfast.runtime.event_claims import Claim
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log


@dataclass
class OwnClaims:
    """The events that a delivery has claimed for its execution, by their ids. Mutable."""

    log: Log
    taken: dict[str, Claim] = field(default_factory=dict)

    def take(
        self, before: Execution, after: Execution, offered: Iterable[Fact]
    ) -> Generator[Effect, Any, Claim | None]:
        """Claim the events that the decision from `before` to `after` uses. Return the first event
        that another execution has claimed, None when there is none.
        """
        # The number of the next record makes the claim differ from an earlier one of this delivery,
        # whose commit was refused.
        value = f"{self.log.owner}.{self.log.sequence + 1}"
        for claim in event_claims.claims_of(before, after, offered, value).values():
            if self.taken.get(claim.event_id) == claim:
                continue
            if not (yield from event_claims.take(self.log.tenant, before.run, claim)):
                return claim
            self.taken[claim.event_id] = claim
        return None

    def give_back(self) -> NoResult:
        """Give back the events that are not used, because another worker has ended the wait or the
        execution.

        While another wait of the execution is open for the event, the claim stays: the sender may
        have claimed the event for that wait, which would then use a free event without a claim.
        """
        for claim in self.taken.values():
            if not _needs(self.log.state, claim):
                yield from kept_events.give_back(self.log.tenant, self.log.run, claim)


def _needs(state: Execution | None, claim: Claim) -> bool:
    return state is not None and (
        claim.event_id in state.used_events or state.awaits_event(claim.name, claim.key)
    )


def give_on(log: Log, event: Mapping[str, Any]) -> NoResult:
    """Give the event of a message, which the execution has not used, to the other executions that
    have registered, unless this one waits for it. The sender has claimed the event for a wait that
    has ended. Or a worker that received the message before has claimed it, and crashed.

    If no other execution has registered, the event keeps the claim: a later wait frees it.
    """
    name, key = event["name"], event["key"]
    partition = keys.event(log.tenant, name, key)
    rows = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
    if any(inbox.registered(row) != log.run and inbox.OVER not in row for row in rows):
        yield from kept_events.free_abandoned(log.tenant, log.run, name, key)


def free_resting(log: Log, ended: Execution) -> NoResult:
    """Free the events that the ended execution has claimed and not used. The worker of the claim
    has crashed, and SQS has delivered its message again.
    """
    awaited = {
        (frame.waiting.event_name, frame.waiting.event_key)
        for frame in ended.resting.values()
        if isinstance(frame.waiting, Awaiting) and frame.waiting.kind == "event"
    }
    for name, key in sorted(awaited):
        yield from kept_events.free_abandoned(log.tenant, log.run, name, key)
