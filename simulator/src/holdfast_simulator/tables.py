"""DynamoDB's two tables in memory: items by partition and sort key, the index kept in step."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from holdfast import cost, resources
from holdfast.runtime.effects import Item, ListPage, Query, QueryList, list_page
from holdfast.runtime.storage.items import check_item, holds

KeyValue: TypeAlias = int | str

LAST_CHARACTER: Final = chr(0x10FFFF)  # sorts after anything that may follow a prefix


class MemoryTable:
    """Items by partition and sort key, with the index kept in step. Stored items never change.

    `gone`: the items that TTL has deleted, for invariants that read the past.
    """

    def __init__(self, table: resources.Table, clock: Callable[[], int]) -> None:
        self.table = table
        self._clock = clock
        self._items: dict[str, dict[KeyValue, Item]] = {}
        self._keys: dict[str, list[Any]] = {}
        self._index: dict[str, list[tuple[str, str, Any]]] = {}
        self.gone: list[Item] = []
        #: The entries that came into the index (True) and left it, with times, in order.
        self._listed: list[tuple[int, bool, Item]] = []

    def __iter__(self) -> Iterator[Item]:
        return (self._items[pk][sk] for pk, keys in self._keys.items() for sk in keys)

    def key(self, item: Item) -> tuple[str, KeyValue]:
        return item["pk"], item["sk"]  # type: ignore[return-value]  # `checked` has seen to it

    def checked(self, item: Item) -> Item:
        """Return a frozen copy, or the fault with which DynamoDB refuses it."""
        check_item(self.table, item)
        return MappingProxyType(dict(item))

    def get(self, pk: str, sk: KeyValue) -> Item | None:
        partition = self._items.get(pk)
        return None if partition is None else partition.get(sk)

    def add(self, item: Item) -> None:
        pk, sk = self.key(item)
        partition = self._items.setdefault(pk, {})
        if sk not in partition:
            insort(self._keys.setdefault(pk, []), sk)
        partition[sk] = item
        if resources.LIST_PARTITION in item and resources.LIST_SORT in item:
            insort(
                self._index.setdefault(str(item[resources.LIST_PARTITION]), []),
                (str(item[resources.LIST_SORT]), pk, sk),
            )
            self._listed.append((self._clock(), True, item))

    def remove(self, item: Item) -> None:
        pk, sk = self.key(item)
        keys = self._keys[pk]
        del self._items[pk][sk]
        del keys[bisect_left(keys, sk)]
        if not keys:
            del self._keys[pk], self._items[pk]
        if resources.LIST_PARTITION in item and resources.LIST_SORT in item:
            entries = self._index[str(item[resources.LIST_PARTITION])]
            del entries[bisect_left(entries, (str(item[resources.LIST_SORT]), pk, sk))]
            self._listed.append((self._clock(), False, item))

    def expired(self, now_seconds: int) -> list[Item]:
        """Return items that TTL may take by then."""
        return [item for item in self if "ttl" in item and int(item["ttl"]) < now_seconds]

    def expire(self, item: Item) -> None:
        self.remove(item)
        self.gone.append(item)

    def has_partition(self, pk: str) -> bool:
        return pk in self._keys

    def first_key(self, pk: str) -> KeyValue | None:
        keys = self._keys.get(pk)
        return keys[0] if keys else None

    def partition(self, pk: str) -> list[Item]:
        keys = self._keys.get(pk)
        return [] if keys is None else [self._items[pk][key] for key in keys]

    def query(self, effect: Query) -> list[Item]:
        keys = self._keys.get(effect.pk, [])
        low = 0 if effect.after is None else bisect_right(keys, effect.after)
        high = len(keys) if effect.until is None else bisect_right(keys, effect.until)
        if effect.begins_with is not None:
            low = max(low, bisect_left(keys, effect.begins_with))
            high = min(high, bisect_right(keys, effect.begins_with + LAST_CHARACTER))
        limit = len(keys) if effect.limit is None else effect.limit
        partition = self._items.get(effect.pk, {})
        if effect.reverse:
            return [partition[key] for key in keys[max(low, high - limit) : high][::-1]]
        return [partition[key] for key in keys[low : min(high, low + limit)]]

    def query_list(self, effect: QueryList, lag_ms: int = 0) -> ListPage:
        """Read the index as it was `lag_ms` ago: it follows the table with a delay. A table without
        an index is read itself.
        """
        if self.table.index is None:
            return self._query_items(effect)
        entries, items = self._index.get(effect.partition, []), self._items
        if lag_ms:
            entries, items = self._index_at(effect.partition, self._clock() - lag_ms)
        high = len(entries)
        if effect.before is not None:
            # A one-element tuple sorts before every entry with the same `ls`.
            high = bisect_left(entries, (effect.before,))
        size = effect.reads if effect.where else effect.limit
        newest_first = entries[max(0, high - size) : high][::-1]
        read = [
            MappingProxyType(cost.index_entry(self.table, self.table.index, items[pk][sk]))
            for _, pk, sk in newest_first
        ]
        found = [item for item in read if all(holds(item, condition) for condition in effect.where)]
        return list_page(effect, found, newest_first[-1][0] if high > size else "")

    def _query_items(self, effect: QueryList) -> ListPage:
        keys, items = self._keys.get(effect.partition, []), self._items.get(effect.partition, {})
        high = len(keys) if effect.before is None else bisect_left(keys, effect.before)
        size = effect.reads if effect.where else effect.limit
        read = keys[max(0, high - size) : high][::-1]
        found = [
            items[key]
            for key in read
            if all(holds(items[key], condition) for condition in effect.where)
        ]
        return list_page(effect, found, read[-1] if high > size else "")

    def _index_at(
        self, partition: str, at_ms: int
    ) -> tuple[list[tuple[str, str, Any]], dict[str, dict[KeyValue, Item]]]:
        """Return the entries of a partition then, and the items that they were of."""
        found: dict[tuple[str, str, Any], Item] = {}
        for when_ms, is_added, item in self._listed:
            if when_ms > at_ms or item[resources.LIST_PARTITION] != partition:
                continue
            entry = (str(item[resources.LIST_SORT]), *self.key(item))
            if is_added:
                found[entry] = item
            else:
                found.pop(entry, None)
        items: dict[str, dict[KeyValue, Item]] = {}
        for (_, pk, sk), item in found.items():
            items.setdefault(pk, {})[sk] = item
        return sorted(found), items
