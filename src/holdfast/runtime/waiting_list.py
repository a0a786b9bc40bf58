"""Pages of the list with the present waits of each execution. They are made of list entries and of
the rows that replace some of them (`wait_rows.py`).

At spread 0 a page of executions that wait for something takes eight queries and one batch of reads:

    4 queries   entries of running executions whose waits match
    4 queries   rows whose waits match; a row replaces the entry of its execution
    1 batch     the rows of those entries: an entry that a later row replaces does not match
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any

from holdfast import resources
from holdfast.core.subjects import Subject, WaitKind
from holdfast.runtime import wait_text
from holdfast.runtime.effects import Condition, Effect, GetMany, Item, ListPage, QueryList, Together
from holdfast.runtime.listing import (
    ListEntry,
    Page,
    PageFilter,
    cut_page,
    partitions_of,
    read_entry,
    waits_partition,
    waits_partitions,
)
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.spread import Spread, share_of
from holdfast.runtime.wait_rows import read_row


@dataclass(frozen=True, slots=True)
class WaitFilter:
    """Selects executions by one of their waits. None selects all.

    `error` is the last failure of a state that is tried again. `until_ms`: the wait began then or
    earlier.
    """

    kind: WaitKind | None = None
    target: str | None = None
    error: str | None = None
    until_ms: int | None = None

    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions that DynamoDB tests. An execution with several waits may fulfil all
        of them without a single wait that does, so the result must be tested again.
        """
        found = []
        if self.kind is not None:
            needle = wait_text.needle(self.kind, self.target)
            found.append(Condition(resources.LIST_WAITS, "contains", needle))
        if self.error is not None:
            needle = wait_text.error_needle(self.error)
            found.append(Condition(resources.LIST_WAITS, "contains", needle))
        if self.until_ms is not None:
            found.append(Condition(resources.LIST_WAITING_SINCE, "<=", self.until_ms))
        return tuple(found)

    def fits(self, waits: Iterable[Subject]) -> bool:
        return any(
            self.kind in {None, wait.kind}
            and self.target in {None, wait.target}
            and self.error in {None, wait.error}
            and (self.until_ms is None or wait.since_ms <= self.until_ms)
            for wait in waits
        )


def read_waiting_page(
    tenant: str,
    spread: Spread,
    waits: WaitFilter,
    wanted: PageFilter,
) -> Generator[Effect, Any, Page]:
    """Return running executions with such a wait, in the order and the pages of
    `listing.read_page`.
    """
    where = (*wanted.conditions, *waits.conditions())
    entries = partitions_of(tenant, spread, ["RUNNING"], wanted.workflow)
    rows = waits_partitions(tenant, spread, wanted.workflow)
    share, before = share_of(wanted.limit, spread), wanted.before
    pages: list[ListPage] = yield Together(
        (
            *(QueryList(partition, share, before, where) for partition in entries),
            *(QueryList(partition, share, before, where, tables.MAIL) for partition in rows),
        )
    )
    found = [read_entry(item) for page in pages[: len(entries)] for item in page.items]
    found += [read_row(item) for page in pages[len(entries) :] for item in page.items]
    newest: dict[str, ListEntry] = {}
    for entry in sorted(found, key=lambda one: one.record):
        newest[entry.run] = entry
    since = wanted.since
    fitting = [one for one in newest.values() if one.key >= since and waits.fits(one.waits)]
    page = cut_page(fitting, max(page.read_to for page in pages), wanted.limit)
    current = yield from with_present_waits(tenant, page.entries)
    is_last = page.after is not None and page.after <= since
    kept = [entry for entry in current if waits.fits(entry.waits)]
    return Page(kept, None if is_last else page.after)


def with_present_waits(
    tenant: str, entries: list[ListEntry]
) -> Generator[Effect, Any, list[ListEntry]]:
    """Return the entries with the waits of their rows. Costs one batch of reads."""
    keys = tuple(
        (waits_partition(tenant, entry.workflow, entry.run), entry.key)
        for entry in entries
        if entry.status == "RUNNING"
    )
    items: list[Item] = (yield GetMany(tables.MAIL, keys)) if keys else []
    rows = {row.run: row for row in map(read_row, items)}
    return [_replaced(entry, rows.get(entry.run)) for entry in entries]


def _replaced(entry: ListEntry, row: ListEntry | None) -> ListEntry:
    if row is None or row.record <= entry.record:
        return entry
    return replace(entry, waits=row.waits, record=row.record)
