"""The list of executions: one entry for each, in a few partitions that all workflows share.

An execution enters the list when it waits for the first time, and it gets another entry when it has
ended. An entry is not an item of its own: attributes of a log record put the record into the index
`list` of the executions table. So an entry costs one index write and no write to the table.

    record 4, "Opened"            record 9, the end
    lp = default##open#2          lp = default##done#1
    ls = 001767225600000#run      ls = 001767225600000#run
         └── removed after record 9 is stored (`Unlist`)

**Partitions.** `lp` is tenant, scope, group and shard. There are three groups, by status, here with
the shards of spread 0 (`storage/spread.py`):

    group     statuses                     shards   writes a second in one shard
    open      RUNNING                      4        500, when all wait: 250 in and 250 out
    done      SUCCEEDED                    2        500, when all succeed
    failed    FAILED, TIMED_OUT, ABORTED   2        500, when all fail

These are the figures for 1,000 starts a second. DynamoDB takes 1,000 writes a second in one
partition of an index. The shard is a hash of the id, so one busy workflow spreads over all shards,
and a page of all workflows takes eight queries. A stack for 16,000 starts a second has 128
partitions; a page takes a query of each, and each reads a sixteenth.

**Scope.** The children of a distributed Map are executions, too. They are listed under their map
run only, because 10,000 of them would hide everything else. For every other execution the scope is
empty.

**Pages.** `ls` is start time and id: newest first, and the same in every partition. `read_page`
reads each partition down to some key and returns the entries above the highest of these keys. The
next page begins below the last key of this one, so no entry is skipped and none comes twice:

    partition 0:  9  7  4 |            read down to 4
    partition 1:  8  6  5  3 |         read down to 3     page: 9 8 7 6 5 4, next page: before 4

DynamoDB applies a filter after it has read an entry. One query therefore reads at most
`LIST_READ_FEW` entries at first. If the page is not full then, each query is repeated with
`LIST_READ_MAX` entries. The page may then be short or empty, and still says where the next page
begins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Final

from holdfast import resources
from holdfast.core.state import STATUSES, Attribute, Execution
from holdfast.core.subjects import Subject, indexed_subjects
from holdfast.errors import RequestError
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    ENDED_RETENTION_SECONDS,
    ERROR_CHARACTERS_MAX,
    LIST_READ_FEW,
    LIST_READ_MAX,
)
from holdfast.runtime import wait_text
from holdfast.runtime.effects import Condition, Effect, Item, ListPage, QueryList, Together
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.spread import LIST_ENDED, LIST_OPEN, Shards, Spread, share_of

OPEN: Final = "open"
DONE: Final = "done"
FAILED: Final = "failed"
#: The group of the rows of `wait_rows.py`, which are stored in the table `mail`.
WAITS: Final = "waits"

#: The shards of each group.
SHARDS: Final[Mapping[str, Shards]] = {OPEN: LIST_OPEN, DONE: LIST_ENDED, FAILED: LIST_ENDED}
#: This text sorts after every key of a list, so a page that begins before it has the newest
#: entries.
NEWEST: Final = "~"


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One execution as the list shows it. Times are UTC milliseconds.

    * `definition` is the beginning of the definition's hash.
    * `machine_name` and the fields after it belong to the execution of a state machine: its name
      there, version, alias, and how often it was redriven.
    * `paused_ms` is the time since which an operator has paused it, None without a pause.
    * `waits` are the subjects of its waits at the record with the entry; `wait_rows.py` has those
      of later records. `record` is the number of that record.
    """

    run: str
    started_ms: int
    name: str
    workflow: str
    status: str
    definition: str
    stopped_ms: int | None = None
    error: str | None = None
    machine_name: str | None = None
    version: str = ""
    alias: str = ""
    redrives: int = 0
    paused_ms: int | None = None
    paused_reason: str = ""
    waits: tuple[Subject, ...] = ()
    record: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        return keys.list_sort(self.started_ms, self.run)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the list. `after` is the place at which the next page begins, None when the
    oldest entry was read. `attributes` has the search attributes by execution, when the page was
    searched by them.
    """

    entries: list[ListEntry]
    after: str | None
    attributes: Mapping[str, Mapping[str, Attribute]] = field(default_factory=dict)


# -- entries ---------------------------------------------------------------------------------------


def entry_of(state: Execution, now_ms: int) -> ListEntry:
    origin = state.origin
    machine_name, version, alias = None, "", ""
    if origin is not None:
        machine_name = origin["execution_name"]
        version = origin.get("version_arn", "").rpartition(":")[2]
        alias = origin.get("alias_arn", "").rpartition(":")[2]
    return ListEntry(
        run=state.run,
        started_ms=state.started_ms,
        name=state.name or state.run,
        workflow=state.workflow,
        status=state.status,
        definition=state.definition[:12],
        stopped_ms=state.stopped_ms,
        error=state.error[:ERROR_CHARACTERS_MAX] if state.error else None,
        machine_name=machine_name,
        version=version,
        alias=alias,
        redrives=state.redrives,
        paused_ms=None if state.paused is None else state.paused.since_ms,
        paused_reason="" if state.paused is None else state.paused.reason[:ERROR_CHARACTERS_MAX],
        waits=tuple(indexed_subjects(state, now_ms)),
    )


def attributes_of(tenant: str, entry: ListEntry) -> dict[str, str | int]:
    """Return the attributes that put a record into the list. The status is already in the
    record.
    """
    attributes: dict[str, str | int | None] = {
        resources.LIST_PARTITION: partition_of(tenant, entry),
        resources.LIST_SORT: entry.key,
        resources.LIST_NAME: entry.name,
        resources.LIST_WORKFLOW: entry.workflow,
        resources.LIST_DEFINITION: entry.definition,
        resources.LIST_STOPPED: entry.stopped_ms,
        resources.LIST_ERROR: entry.error,
        resources.LIST_MACHINE_NAME: entry.machine_name,
        resources.LIST_VERSION: entry.version or None,
        resources.LIST_ALIAS: entry.alias or None,
        resources.LIST_REDRIVES: entry.redrives or None,
        resources.LIST_PAUSED: entry.paused_ms,
        resources.LIST_PAUSED_REASON: entry.paused_reason or None,
        resources.LIST_WAITS: wait_text.text_of(entry.waits) if entry.waits else None,
        resources.LIST_WAITING_SINCE: min((wait.since_ms for wait in entry.waits), default=None),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def row_attributes(tenant: str, entry: ListEntry) -> dict[str, str | int]:
    """Return the attributes of a row of the table `mail` that stands for the entry. The keys of the
    row say its place.
    """
    attributes = {resources.LIST_STATUS: entry.status, **attributes_of(tenant, entry)}
    place = {resources.LIST_PARTITION, resources.LIST_SORT}
    return {name: value for name, value in attributes.items() if name not in place}


def read_row(row: Item, *, record: int) -> ListEntry:
    """Return the entry for which a row of the table `mail` stands."""
    return read_entry({**row, resources.LIST_SORT: row["sk"], "sk": record})


def read_entry(item: Item) -> ListEntry:
    started, _, run = str(item[resources.LIST_SORT]).partition("#")
    stopped = item.get(resources.LIST_STOPPED)
    error = item.get(resources.LIST_ERROR)
    machine_name = item.get(resources.LIST_MACHINE_NAME)
    paused = item.get(resources.LIST_PAUSED)
    waits = str(item.get(resources.LIST_WAITS, wait_text.NOTHING))
    return ListEntry(
        run=run,
        started_ms=int(started),
        name=str(item[resources.LIST_NAME]),
        workflow=str(item[resources.LIST_WORKFLOW]),
        status=str(item[resources.LIST_STATUS]),
        definition=str(item[resources.LIST_DEFINITION]),
        stopped_ms=None if stopped is None else int(stopped),
        error=None if error is None else str(error),
        machine_name=None if machine_name is None else str(machine_name),
        version=str(item.get(resources.LIST_VERSION, "")),
        alias=str(item.get(resources.LIST_ALIAS, "")),
        redrives=int(item.get(resources.LIST_REDRIVES, 0)),
        paused_ms=None if paused is None else int(paused),
        paused_reason=str(item.get(resources.LIST_PAUSED_REASON, "")),
        waits=tuple(wait_text.read_subjects(waits)),
        record=int(item.get("sk", 0)),
    )


def is_listed(record: Item) -> bool:
    """Return True when the record still has an entry in the list."""
    return resources.LIST_PARTITION in record


def is_open_entry(record: Item) -> bool:
    """Return True when the record has an entry among the executions that have not ended."""
    group = str(record.get(resources.LIST_PARTITION, "")).split("#")[-2:-1]
    return group == [OPEN]


def listing(tenant: str, state: Execution, now_ms: int) -> Item:
    """Return the attributes that put the next record into the list: the record that opens the
    execution, or the one that ends it.
    """
    return attributes_of(tenant, entry_of(state, now_ms))


# -- partitions ------------------------------------------------------------------------------------


def partition_of(tenant: str, entry: ListEntry) -> str:
    return _place_of(tenant, entry.workflow, entry.run, _group_of(entry.status))


def partitions_of(
    tenant: str,
    spread: Spread,
    statuses: Iterable[str] = STATUSES,
    workflow: str | None = None,
) -> list[str]:
    """Return the partitions of the list with executions of these statuses. `workflow` is used only
    for the children of a map run, which have partitions of their own.
    """
    groups = dict.fromkeys(map(_group_of, statuses))
    scope = "" if workflow is None else _scope_of(workflow)
    return [
        _partition(tenant, scope, group, shard)
        for group in groups
        for shard in range(SHARDS[group].count(spread.read))
    ]


def places_of(tenant: str, workflow: str, run: str) -> list[str]:
    """Return the partitions in which the execution may have its entry: one of each group."""
    return [_place_of(tenant, workflow, run, group) for group in SHARDS]


def ended_places_of(tenant: str, workflow: str, run: str) -> list[str]:
    """Return the partitions in which the execution has its entry when it has ended."""
    return [_place_of(tenant, workflow, run, group) for group in (DONE, FAILED)]


def _place_of(tenant: str, workflow: str, run: str, group: str) -> str:
    return _partition(tenant, _scope_of(workflow), group, SHARDS[group].of(run))


def waits_partition(tenant: str, workflow: str, run: str) -> str:
    """Return the partition of the execution's row in the index of waits. Its shard is that of the
    list entry.
    """
    return _partition(tenant, _scope_of(workflow), WAITS, LIST_OPEN.of(run))


def waits_partitions(tenant: str, spread: Spread, workflow: str | None) -> list[str]:
    scope = "" if workflow is None else _scope_of(workflow)
    shards = range(LIST_OPEN.count(spread.read))
    return [_partition(tenant, scope, WAITS, shard) for shard in shards]


def _partition(tenant: str, scope: str, group: str, shard: int) -> str:
    return f"{tenant}#{scope}#{group}#{shard}"


def _group_of(status: str) -> str:
    match status:
        case "RUNNING":
            return OPEN
        case "SUCCEEDED":
            return DONE
        case _:
            return FAILED


def _scope_of(workflow: str) -> str:
    return workflow if keys.is_map_run_workflow(workflow) else ""


# -- pages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageFilter:
    """The entries of a page: up to `limit` of them below the key `before`, newest first, and none
    below the key `since`. `workflow` None: those of every workflow.
    """

    limit: int
    workflow: str | None = None
    statuses: tuple[str, ...] = STATUSES
    before: str = NEWEST
    since: str = ""
    where: tuple[Condition, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions that an index query checks."""
        if self.workflow is None:
            return self.where
        return (Condition(resources.LIST_WORKFLOW, "=", self.workflow), *self.where)


def read_page(
    tenant: str, spread: Spread, wanted: PageFilter, now_ms: int
) -> Generator[Effect, Any, Page]:
    """Return a page of the list.

    This takes one query for each partition, in parallel: eight for all statuses at spread 0. With
    `where` it may take a second round. With more partitions each query reads fewer entries. The
    index may be a moment behind the table.
    """
    statuses, before, limit = wanted.statuses, wanted.before, wanted.limit
    where = wanted.conditions
    if len(statuses) == 1 and _group_of(statuses[0]) == FAILED:
        where = (Condition(resources.LIST_STATUS, "=", statuses[0]), *where)
    page = Page([], before)
    for reads in (share_of(LIST_READ_FEW, spread), LIST_READ_MAX) if where else (limit,):
        queries = [
            QueryList(partition, share_of(limit, spread), before, where, reads=reads)
            for partition in partitions_of(tenant, spread, statuses, wanted.workflow)
        ]
        pages: list[ListPage] = yield Together(tuple(queries))
        entries = [read_entry(item) for one in pages for item in one.items]
        kept = without_stale([entry for entry in entries if is_kept(entry, now_ms)])
        fitting = [one for one in kept if one.status in statuses and one.key >= wanted.since]
        page = cut_page(fitting, max(one.read_to for one in pages), limit)
        if page.after is None or page.after <= wanted.since:
            return replace(page, after=None)
        if len(page.entries) == limit:
            break
    return page


def unknown_page() -> RequestError:
    return RequestError(
        "HF209",
        "`after` is not what a page gave as `next`",
        help="leave it out for the first page, or send the `next` of a page with the same filters",
    )


def cut_page(entries: Iterable[ListEntry], read_to: str, limit: int) -> Page:
    """Return the newest entries down to `read_to`, the highest of the keys at which the queries
    stopped. Below it the entries of some queries are missing, so the next page begins there.
    """
    found = sorted(
        (entry for entry in entries if entry.key >= read_to),
        key=lambda entry: entry.key,
        reverse=True,
    )
    if len(found) > limit:
        return Page(found[:limit], found[limit - 1].key)
    return Page(found, read_to or None)


def is_kept(entry: ListEntry, now_ms: int) -> bool:
    """Return True when the log of a list entry certainly still exists."""
    stopped_ms = entry.stopped_ms
    return stopped_ms is None or now_ms - stopped_ms < ENDED_RETENTION_SECONDS * 1_000


def without_stale(entries: list[ListEntry]) -> list[ListEntry]:
    """Return one entry for each execution: that of its newest record.

    After the record of the end is stored and before `Unlist`, an execution has two entries. So has
    one that was redriven, until the entry of its earlier end is removed.
    """
    chosen: dict[str, ListEntry] = {}
    for entry in entries:
        known = chosen.get(entry.run)
        if known is None or known.record < entry.record:
            chosen[entry.run] = entry
    return list(chosen.values())
