"""How long an invocation may work on the messages of its batch (R9 in docs/reference/log.md). Pure.

SQS hides a message for two minutes at a time, so that after a crash it is delivered again within
two minutes. The invocation extends the visibility time-out of its whole batch every minute. A
message whose time-out could not be extended keeps its old limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.limits import LIMIT_MARGIN_MS, VISIBILITY_SECONDS


class Holds:
    """The messages of one batch that a worker processes, by id. Mutable; lives for one
    invocation.
    """

    def __init__(self, receipts: Mapping[str, str], deadline_ms: int, now_ms: int) -> None:
        #: The receipt of each message whose visibility time-out must be extended.
        self.receipts = dict(receipts)
        self._deadline_ms = deadline_ms
        self._until_ms = dict.fromkeys(receipts, self._hidden_until_ms(now_ms))

    @property
    def deadline_ms(self) -> int:
        """Return the time at which the invocation ends, minus a margin."""
        return self._deadline_ms - LIMIT_MARGIN_MS

    def limit_ms(self, message_id: str) -> int:
        """Return the time after which nothing is written for this message."""
        return self._until_ms[message_id] - LIMIT_MARGIN_MS

    def extended(self, message_id: str, now_ms: int) -> None:
        """Record that the message was hidden again; `now_ms` is the time before the call.

        After a message's limit its time-out is not extended. SQS may accept an old receipt although
        another worker has received the message since. A host that was suspended could then delete
        the message of the other worker.
        """
        if now_ms < self.limit_ms(message_id):
            self._until_ms[message_id] = self._hidden_until_ms(now_ms)
        else:
            self.let_go(message_id)

    def extended_to_the_end(self) -> None:
        """Record that the message needs no extension: a host without threads is its only
        receiver.
        """
        self._until_ms = dict.fromkeys(self._until_ms, self._deadline_ms)

    def let_go(self, message_id: str) -> None:
        """Stop extending the time-out of a message that was returned, or whose receipt SQS
        refuses.
        """
        self.receipts.pop(message_id, None)

    def _hidden_until_ms(self, now_ms: int) -> int:
        return min(self._deadline_ms, now_ms + VISIBILITY_SECONDS * 1_000)
