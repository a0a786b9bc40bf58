"""What an invariant looks at."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.sim.evidence import Evidence
from holdfast.sim.histories import History
from holdfast.sim.services import Services


@dataclass(frozen=True, slots=True)
class Case:
    """`ran`: (run, entry, attempt) of all that ran. `evidence`: None outside of schedules."""

    services: Services
    histories: list[History]
    ran: frozenset[tuple[str, int, int]]
    evidence: Evidence | None = None

    @property
    def schedule(self) -> Evidence:
        assert self.evidence is not None
        return self.evidence
