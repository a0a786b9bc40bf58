"""DynamoDB's TTL: expired rows are deleted up to two days late and in any order."""

from __future__ import annotations

from typing import Final

from holdfast.runtime.effects import Item, TableName
from holdfast.runtime.storage import tables
from holdfast_simulator.marks import Seen
from holdfast_simulator.simulation import Simulation

_TABLES: Final[tuple[TableName, ...]] = (tables.EXECUTIONS, tables.MAIL)
#: AWS: typically within a few days.
LATE_MS_MAX: Final = 2 * 86_400_000
_HOUR_MS: Final = 3_600_000
#: An expired row is deleted in one of so many sweeps on average, and at the last possible one at
#: the latest.
_LEFT: Final = 2


class Expiry:
    """Sweeps once a day, at a drawn hour, while anything is open."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._plan()

    def _plan(self) -> None:
        hours = 24 - self._simulation.tape.number("ttl hour", 24)
        self._simulation.after(hours * _HOUR_MS, self._sweep)

    def _sweep(self) -> None:
        simulation = self._simulation
        if not simulation.open:
            return
        for table in _TABLES:
            for item in simulation.services.expired(table):
                if self._goes(item):
                    simulation.services.expire(table, item)
                    self._note(item)
        self._plan()

    def _note(self, item: Item) -> None:
        tenant, _, run = str(item["pk"]).partition("#")
        if (tenant, run) in self._simulation.open:
            self._simulation.evidence.marks[Seen.EXPIRED] += 1

    def _goes(self, item: Item) -> bool:
        late_ms = self._simulation.now_ms - int(item["ttl"]) * 1_000
        is_last = late_ms > LATE_MS_MAX - 24 * _HOUR_MS
        return is_last or self._simulation.tape.number("ttl", _LEFT) == 0
