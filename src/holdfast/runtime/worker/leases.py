"""Leases: which worker runs an attempt, until when, and when another worker may take it over.

Two workers can see the same attempt: the queue delivers a message twice, or a recovery reads the
log while the first worker still runs. Running a user's task twice costs money and may charge a card
twice. A lease prevents most of that. It is a field of the attempt in the log:

    owner          the worker's name, a new one for each delivery
    message        the id of the queue message that the worker has
    receive_count  which delivery of that message it is
    until_ms       the end of the lease

**A lease is not a lock.** The log decides: of two results of one attempt it applies the first. So a
lease can be simple: it is written together with the event that schedules the attempt, costs no
write of its own, is never renewed, and is never given back.

`Claims` in `decision_inputs.py` creates the leases of a decision.

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

from typing import Any

from holdfast.core.state import Lease
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime.messages import replaced_by


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One delivery of one queue message. `owner` is a random name of this delivery.

    `sent_ms`: when SQS received the message. `is_alone`: the worker has only this message, so that
    a crash does not affect others.
    """

    body: Any
    message_id: str
    receive_count: int
    owner: str
    sent_ms: int
    is_alone: bool = True


def is_lost(claim: Lease, delivery: ReceivedMessage, now_ms: int) -> bool:
    """Return True when the owner of the lease can no longer be running the attempt.

    Either the lease has ended. Or its owner had an earlier delivery of this message, or of a
    message that this one replaces: SQS delivers a message again only after the earlier delivery has
    run out of time.
    """
    if claim.owner == delivery.owner:
        return False
    is_earlier_receipt = (
        claim.message == delivery.message_id and claim.receive_count < delivery.receive_count
    )
    is_replaced = claim.message in replaced_by(delivery.body)
    is_lapsed = claim.until_ms + 2 * CLOCK_ERROR_MS < now_ms
    return is_earlier_receipt or is_replaced or is_lapsed
