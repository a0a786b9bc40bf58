"""Messages that one worker deletes while another continues with them and then fails."""

from __future__ import annotations

from typing import Final

from holdfast.core.waits import attempts_of
from holdfast.errors import HoldfastError
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import history


class Orphans:
    """Record an execution as `lost` or `unhidden` if a worker continued without a message and
    failed.

    That worker cannot find out about the other one, which wrote nothing: it is as if the message
    had vanished (see "What cannot be claimed" in docs/explanation/guarantees.md). Or it has read
    the other worker's record and put a watchdog row (R11); but its leases last until their end.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence: Final = evidence
        #: For each message the owners that wrote records while they had it.
        self._written: dict[str, set[str]] = {}
        self._deleted: set[str] = set()
        #: The messages under which no record was written.
        self._unseen: set[str] = set()
        #: For each owner the tenant and execution of its log, and whether it has read the other
        #: worker's record.
        self._bereft: dict[str, tuple[str, str, bool]] = {}
        self._failed: set[str] = set()

    def deleted(self, message_id: str) -> None:
        """Note that a delivery has deleted the message."""
        if self._evidence.services.has_message(message_id):
            return
        self._deleted.add(message_id)
        if message_id not in self._written:
            self._unseen.add(message_id)

    def wrote(self, place: tuple[str, str, int], message_id: str, owner: str) -> None:
        """Note a record. `place`: tenant, execution, sequence. The message of a start must not be
        deleted before record 0.
        """
        tenant, run, sequence = place
        writers = self._written.setdefault(message_id, set())
        has_twin = bool(writers - {owner})
        writers.add(owner)
        if sequence == 0:
            self._unseen.discard(message_id)
        if message_id in self._unseen or (has_twin and message_id in self._deleted):
            self._bereft[owner] = (tenant, run, has_twin)
            # The outcome of its write was unknown, and the write arrives only now
            if owner in self._failed:
                self._excuse(owner)

    def failed(self, owner: str) -> None:
        self._failed.add(owner)
        if owner in self._bereft:
            self._excuse(owner)

    def _excuse(self, owner: str) -> None:
        tenant, run, has_twin = self._bereft[owner]
        if not has_twin:
            self._evidence.lost.add(run)
        elif self._has_claim(tenant, run, owner):
            self._evidence.unhidden.add(run)

    def _has_claim(self, tenant: str, run: str, owner: str) -> bool:
        try:
            states = history(self._evidence.services, tenant, run).states
        except HoldfastError:
            return False
        attempts = attempts_of(states[-1]) if states else []
        return any(one.claim is not None and one.claim.owner == owner for one in attempts)
