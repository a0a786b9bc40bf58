"""The time for which an invocation holds the messages of its batch (R9 in docs/reference/log.md).
Pure.

SQS hides a message for two minutes at a time, so that a crash costs two minutes. The invocation
hides its whole batch again every minute; a message that could not be hidden keeps its old limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.limits import LIMIT_MARGIN_MS, VISIBILITY_SECONDS


class Holds:
    """The messages of one batch, by id, that a worker processes. Mutable; lives for one
    invocation.
    """

    def __init__(self, receipts: Mapping[str, str], deadline_ms: int, now_ms: int) -> None:
        #: The receipts of messages whose visibility time-out must be extended.
        self.receipts = dict(receipts)
        self._deadline_ms = deadline_ms
        self._until_ms = dict.fromkeys(receipts, self._hidden_until_ms(now_ms))

    @property
    def deadline_ms(self) -> int:
        """Return the time at which the invocation ends, less a margin."""
        return self._deadline_ms - LIMIT_MARGIN_MS

    def limit_ms(self, message_id: str) -> int:
        """Return the time after which nothing is written for this message."""
        return self._until_ms[message_id] - LIMIT_MARGIN_MS

    def extended(self, message_id: str, now_ms: int) -> None:
        """Note that the message was hidden again; `now_ms` is the time before the call.

        The time never passes the message's limit. SQS may accept an old receipt although another
        worker has received the message since: a host that was frozen would delete another worker's
        message.
        """
        if now_ms < self.limit_ms(message_id):
            self._until_ms[message_id] = self._hidden_until_ms(now_ms)
        else:
            self.let_go(message_id)

    def extended_to_the_end(self) -> None:
        """Note that the message needs no hiding: a host without threads is its only receiver."""
        self._until_ms = dict.fromkeys(self._until_ms, self._deadline_ms)

    def let_go(self, message_id: str) -> None:
        """Stop extending the visibility of a message that was given back, or whose receipt SQS
        refuses.
        """
        self.receipts.pop(message_id, None)

    def _hidden_until_ms(self, now_ms: int) -> int:
        return min(self._deadline_ms, now_ms + VISIBILITY_SECONDS * 1_000)
