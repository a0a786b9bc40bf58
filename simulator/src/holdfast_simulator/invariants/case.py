"""The case that an invariant examines."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.services import Services


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One simulation under examination. `ran`: (run, entry, attempt) of all that ran. `evidence`:
    None outside of schedules.

    A case equals only itself, so that one invariant can reuse the results of another.
    """

    services: Services
    histories: list[StoredHistory]
    ran: frozenset[tuple[str, int, int]]
    evidence: Evidence | None = None

    @property
    def schedule(self) -> Evidence:
        assert self.evidence is not None
        return self.evidence
