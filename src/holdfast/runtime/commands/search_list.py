"""Pages of the list by search attributes: value rows, joined with the list (`search_rows.py`).

At spread 0 a page of `customer=C-17` takes four queries, one batch, and up to three queries for
each execution that it finds:

    4 queries   value rows of the condition that selects the fewest executions
    1 batch     the rows of changed attributes: the present values must meet all conditions
    3 queries   for each: its entry among those that are open, done and failed
    1 batch     the rows of later waits (`waiting_list.py`)

The status is in the list entry, so the value rows of an execution do not change when it ends. Rows
of one value are in the order of the list, newest first. Rows between two values are in the order of
the value, the greatest first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast import resources
from holdfast.core.state import Attribute
from holdfast.runtime.attribute_filter import AttributeCondition
from holdfast.runtime.commands.list_filter import ListFilter
from holdfast.runtime.effects import Effect, GetMany, Item, ListPage, QueryList, Together
from holdfast.runtime.listing import (
    ListEntry,
    Page,
    attributes_of,
    is_kept,
    places_of,
    read_entry,
    without_stale,
)
from holdfast.runtime.search_rows import WORKFLOW, read_values
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.items import holds
from holdfast.runtime.storage.spread import Spread, share_of
from holdfast.runtime.waiting_list import with_present_waits

#: A backwards query from the key of an execution plus this character begins with the execution
#: itself. The character sorts after the end of the key and before the ".", with which the keys of
#: its children continue.
_AFTER: Final = "!"


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A value row: the execution has, or has had, the value. `place` is the key of its list
    entry.
    """

    key: str
    place: str
    workflow: str
    attributes: Mapping[str, Attribute]

    @property
    def run(self) -> str:
        return self.place.partition("#")[2]


def read_search_page(
    tenant: str, spread: Spread, wanted: ListFilter, now_ms: int
) -> Generator[Effect, Any, Page]:
    """Return up to `wanted.limit` executions that meet all conditions and the other filters."""
    rows, after = yield from _rows(tenant, spread, wanted, wanted.attributes[0])
    present = yield from _present(tenant, rows)
    fitting = [
        row
        for row in rows
        if all(one.fits(present[row.run]) for one in wanted.attributes)
        and wanted.workflow in {None, row.workflow}
        and wanted.since <= row.place < wanted.before
    ]
    entries = yield from _entries(tenant, fitting, wanted.statuses, now_ms)
    kept = [entry for entry in entries if _meets(tenant, entry, wanted)]
    current = yield from with_present_waits(tenant, kept)
    if wanted.waits is not None:
        current = [entry for entry in current if wanted.waits.fits(entry.waits)]
    order = {row.run: number for number, row in enumerate(rows)}
    current.sort(key=lambda entry: order[entry.run])
    return Page(current, after, {run: present[run] for run in (one.run for one in current)})


def _rows(
    tenant: str, spread: Spread, wanted: ListFilter, condition: AttributeCondition
) -> Generator[Effect, Any, tuple[list[FoundRow], str | None]]:
    """Return the value rows of one page, and where the next page begins."""
    low, high = condition.bounds()
    if condition.is_equality:
        high = f"{low}{wanted.before}"
    elif wanted.after_value is not None:
        high = min(high, wanted.after_value)
    share = share_of(wanted.limit, spread)
    pages: list[ListPage] = yield Together(
        tuple(
            QueryList(partition, share, high, (), tables.MAIL)
            for partition in keys.search_partitions(tenant, condition.name, spread)
        )
    )
    # A query that has read a key below the value has passed the value, so it has read all of that
    # value's rows.
    read_to = max((page.read_to for page in pages if page.read_to > low), default="")
    found = [row for page in pages for row in map(_row, page.items) if row.key > low]
    found = sorted((row for row in found if row.key >= read_to), key=_key_of, reverse=True)
    if len(found) > wanted.limit:
        found = found[: wanted.limit]
        read_to = found[-1].key
    if condition.is_equality:
        read_to = read_to.removeprefix(low)
        return found, read_to if read_to > wanted.since else None
    return found, read_to or None


def _key_of(row: FoundRow) -> str:
    return row.key


def _row(item: Item) -> FoundRow:
    key = str(item["sk"])
    return FoundRow(key, key.partition("#")[2], str(item[WORKFLOW]), read_values(item))


def _present(
    tenant: str, rows: list[FoundRow]
) -> Generator[Effect, Any, dict[str, Mapping[str, Attribute]]]:
    """Return the present attributes of each execution."""
    wanted = tuple((keys.search_changes(tenant, row.run), keys.ONLY) for row in rows)
    items: list[Item] = (yield GetMany(tables.MAIL, wanted)) if wanted else []
    changed = {str(item["pk"]).rpartition("#")[2]: read_values(item) for item in items}
    return {row.run: changed.get(row.run, row.attributes) for row in rows}


def _entries(
    tenant: str, rows: list[FoundRow], statuses: Iterable[str], now_ms: int
) -> Generator[Effect, Any, list[ListEntry]]:
    """Return the list entries of the executions. An execution that is in no list is left out."""
    wanted = tuple(statuses)
    queries = [
        QueryList(partition, 1, f"{row.place}{_AFTER}")
        for row in rows
        for partition in places_of(tenant, row.workflow, row.run)
    ]
    pages: list[ListPage] = (yield Together(tuple(queries))) if queries else []
    places = {row.place for row in rows}
    found = [read_entry(item) for page in pages for item in page.items]
    own = without_stale([one for one in found if one.key in places and is_kept(one, now_ms)])
    return [entry for entry in own if entry.status in wanted]


def _meets(tenant: str, entry: ListEntry, wanted: ListFilter) -> bool:
    item = {**attributes_of(tenant, entry), resources.LIST_STATUS: entry.status}
    return all(holds(item, condition) for condition in wanted.where)
