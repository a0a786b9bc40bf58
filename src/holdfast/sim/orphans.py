"""Messages that one of two deletes who had nothing to do, before the other writes under them."""

from __future__ import annotations

from typing import Final

from holdfast.sim.evidence import Evidence


class Orphans:
    """Such a message is as good as vanished if the other one then fails: docs/guarantees.md says so
    under "What cannot be claimed". Not if somebody had written under it before, or a copy is left.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence: Final = evidence
        self._written: set[str] = set()
        self._deleted: set[str] = set()
        #: owner -> the execution into whose log he wrote without a message.
        self._writers: dict[str, str] = {}

    def deleted(self, message_id: str) -> None:
        services = self._evidence.services
        if message_id not in self._written and not services.has_message(message_id):
            self._deleted.add(message_id)

    def wrote(self, run: str, message_id: str, owner: str) -> None:
        self._written.add(message_id)
        if message_id in self._deleted:
            self._writers[owner] = run

    def over(self, owner: str, *, is_done: bool) -> None:
        run = self._writers.pop(owner, None)
        if run is not None and not is_done:
            self._evidence.lost.add(run)
