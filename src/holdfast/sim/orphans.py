"""Messages that one of two deletes while the other goes on, and then fails."""

from __future__ import annotations

from typing import Final

from holdfast.sim.evidence import Evidence


class Orphans:
    """What fails then is not delivered again; docs/guarantees.md says what that costs.

    Had nobody written under the message before it was deleted, then it is as good as vanished:
    "What cannot be claimed". Else who writes under it knows that another has it, and has himself
    looked after; but what he has claimed stays his until its time-out: promise 3.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence: Final = evidence
        self._written: set[str] = set()
        self._vanished: set[str] = set()
        #: owner -> the execution into whose log he wrote, and what it is then among.
        self._writers: dict[str, tuple[str, set[str]]] = {}

    def deleted(self, message_id: str) -> None:
        if message_id not in self._written and not self._is_left(message_id):
            self._vanished.add(message_id)

    def wrote(self, run: str, message_id: str, owner: str) -> None:
        self._written.add(message_id)
        if message_id in self._vanished:
            self._writers[owner] = (run, self._evidence.lost)
        elif not self._is_left(message_id):
            self._writers[owner] = (run, self._evidence.unhidden)

    def over(self, owner: str, *, is_done: bool) -> None:
        wrote = self._writers.pop(owner, None)
        if wrote is not None and not is_done:
            run, among = wrote
            among.add(run)

    def _is_left(self, message_id: str) -> bool:
        return self._evidence.services.has_message(message_id)
