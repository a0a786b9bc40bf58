"""The records of a log as a worker keeps them, and those of each message.

A delivery asks which of the records were written under its message, to find a concurrent delivery
and the work that it owes. A log that is kept between deliveries has all records since its newest
snapshot, and the snapshots of a large state are far apart. So the records of a message are found
without a look at the others: each end of a thousand children would otherwise visit hundreds of
records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from holdfast.runtime.storage.codec import Record


class Records:
    """Records of one log, the oldest first. Mutable: a log that continues another one takes its
    records over.
    """

    __slots__ = ("_all", "_by_message")

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._all: deque[Record] = deque()
        self._by_message: dict[str, deque[Record]] = {}
        self.extend(records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: int) -> Record:
        return self._all[index]

    def extend(self, records: Iterable[Record]) -> None:
        for record in records:
            self._all.append(record)
            self._by_message.setdefault(record.message, deque()).append(record)

    def forget_before(self, sequence: int) -> None:
        """Drop the records with smaller numbers."""
        while self._all and self._all[0].sequence < sequence:
            message = self._all.popleft().message
            own = self._by_message[message]
            own.popleft()
            if not own:
                del self._by_message[message]

    def of_messages(self, messages: Iterable[str]) -> list[Record]:
        """Return the records that were written under one of the messages, the oldest first."""
        found = [record for message in messages for record in self._by_message.get(message, ())]
        return sorted(found, key=lambda record: record.sequence)
