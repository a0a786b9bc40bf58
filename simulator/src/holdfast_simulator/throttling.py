"""DynamoDB's limits of one partition: 1,000 write units and 3,000 read units a second.

Each partition key of a table, and of the index of the list, counts as a partition of its own. A
request above the limit of the current second is throttled. DynamoDB itself is milder: it has burst
capacity for some seconds above the limit, and adaptive capacity may split a partition between two
sort keys. Neither is modelled, because neither is promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from holdfast import cost, resources
from holdfast.runtime.effects import Get, Item, ListPage, Query, QueryList, TableName
from holdfast_simulator.faults import throttled
from holdfast_simulator.services import Services

WRITE_UNITS_MAX: Final = 1_000
READ_UNITS_MAX: Final = 3_000


class Throttling(Services):
    """Services that throttle a partition above its limits.

    `writes`, `reads`: the units by partition and second. `refused`: how many requests were
    throttled, by partition.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.writes: Counter[tuple[str, int]] = Counter()
        self.reads: Counter[tuple[str, int]] = Counter()
        self.refused: Counter[str] = Counter()

    def busiest(self, prefix: str) -> int:
        """Return the most write units of a second in a partition whose key begins so."""
        found = (units for (key, _), units in self.writes.items() if key.startswith(prefix))
        return max(found, default=0)

    def _write(self, table: TableName, before: Item | None, after: Item | None) -> None:
        second = self._clock() // 1_000
        units = _units(before, after)
        for partition, count in units.items():
            if self.writes[partition, second] + count > WRITE_UNITS_MAX:
                self.refused[partition] += 1
                raise throttled()
        for partition, count in units.items():
            self.writes[partition, second] += count
        super()._write(table, before, after)

    def _query(self, effect: Query) -> list[Item]:
        self._require_reads(effect.pk)
        found = super()._query(effect)
        self._note_reads(effect.pk, found)
        return found

    def _query_list(self, effect: QueryList) -> ListPage:
        self._require_reads(effect.partition)
        page = super()._query_list(effect)
        self._note_reads(effect.partition, page.items)
        return page

    def _get(self, effect: Get) -> Item | None:
        self._require_reads(effect.pk)
        found = super()._get(effect)
        self._note_reads(effect.pk, [found or {}])
        return found

    def _require_reads(self, partition: str) -> None:
        if self.reads[partition, self._clock() // 1_000] >= READ_UNITS_MAX:
            self.refused[partition] += 1
            raise throttled()

    def _note_reads(self, partition: str, found: Sequence[Item]) -> None:
        units = cost.read_units(sum(map(cost.item_bytes, found)))
        self.reads[partition, self._clock() // 1_000] += round(units)


def _units(before: Item | None, after: Item | None) -> Counter[str]:
    """Return the write units by partition. An index whose partition is throttled throttles the
    write to its table, too.
    """
    units: Counter[str] = Counter()
    item = after or before
    if item is not None:
        units[str(item["pk"])] = cost.refused_units(before, after)
    entries = [one.get(resources.LIST_PARTITION) for one in (before or {}, after or {})]
    if entries[0] != entries[1]:
        units.update(str(entry) for entry in entries if entry is not None)
    return units
