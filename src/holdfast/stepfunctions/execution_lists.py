"""The two sources of ListExecutions, merged by start time.

The list index has executions that wait or have ended, by status, a moment late. The rows of starts
(`start_rows.py`) have executions that are not in the index yet; the newest record of the log gives
the status of such an execution. A page ends where the first source ends, so no execution between
two pages is lost. It may be shorter than requested.

A redriven execution is in neither source for a moment: the index has its end, until the redrive is
carried out and the execution waits or ends again. Each accepted redrive has a row in the table
`mail`, partition `T#rds#WORKFLOW`, sorted as the list is. The row is the entry that the index will
have: RUNNING, with the number of the redrive.

    index                        row             listed as
    FAILED, redriven 0 times     redrive 1       RUNNING, redriven once
    RUNNING, redriven once       redrive 1       what the index says
    FAILED, redriven once        redrive 1       what the index says

So no log is read. Lists read only rows younger than `LISTED_MS`: by then the index has the entry.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.state import Execution
from holdfast.errors import HoldfastError, is_damage
from holdfast.runtime import listing
from holdfast.runtime.commands.keyed import void_retry
from holdfast.runtime.commands.redrives import running_again
from holdfast.runtime.commands.start_rows import LISTED_MS, Start, read_start
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Item,
    ListPage,
    Put,
    Query,
    QueryList,
    Together,
)
from holdfast.runtime.listing import ListEntry, Page, PageFilter, cut_page, read_page
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import MACHINE_STARTS, Spread
from holdfast.stepfunctions.arns import MachineArn


@dataclass(frozen=True, slots=True)
class Wanted:
    """The executions that a request lists: of a machine or, with `map_run`, of a map run.

    `is_workflow`: the machine is a deployed workflow.
    """

    machine: MachineArn
    statuses: tuple[str, ...]
    redrive: str | None
    map_run: str | None = None
    is_workflow: bool = False

    @property
    def workflow(self) -> str:
        if self.map_run is not None:
            return keys.map_run_workflow(self.map_run)
        if self.is_workflow:
            return self.machine.name
        return keys.machine_workflow(self.machine.name)

    def takes(self, listed: ListEntry) -> bool:
        machine = self.machine
        return (
            listed.status in self.statuses
            and (machine.version is None or listed.version == str(machine.version))
            and (machine.alias is None or listed.alias == machine.alias)
            and (self.redrive is None or (self.redrive == "REDRIVEN") == (listed.redrives > 0))
        )


def page_of(
    tenant: str, spread: Spread, wanted: Wanted, before: str, size: int
) -> Generator[Effect, Any, Page]:
    """Return the matching executions from all sources, newest first. `before` is a key of the
    list.
    """
    now_ms = yield Clock()
    listed = PageFilter(size, wanted.workflow, wanted.statuses, before)
    page = yield from read_page(tenant, spread, listed, now_ms)
    if wanted.map_run is not None:
        return _fitting(wanted, page.entries, page.after or "", size)
    indexed = {entry.run: entry for entry in page.entries}
    starts, floor = yield from _starts(tenant, spread, wanted, before, size)
    for start in starts:
        if start.run not in indexed:
            begun = yield from _of_log(tenant, start)
            if begun is not None:
                indexed[start.run] = begun
    redriven, redriven_floor = yield from _redriven(tenant, wanted, before, size)
    running = yield from _still_running(tenant, wanted, redriven, indexed)
    indexed |= {entry.run: entry for entry in running}
    read_to = max(page.after or "", floor, redriven_floor)
    return _fitting(wanted, indexed.values(), read_to, size)


def _fitting(wanted: Wanted, found: Iterable[ListEntry], read_to: str, size: int) -> Page:
    return cut_page(filter(wanted.takes, found), read_to, size)


def _starts(
    tenant: str, spread: Spread, wanted: Wanted, before: str, size: int
) -> Generator[Effect, Any, tuple[list[Start], str]]:
    now_ms = yield Clock()
    young = f"{now_ms - LISTED_MS:015d}#"
    found: list[Start] = []
    floor = ""
    for shard in range(MACHINE_STARTS.count(spread.read)):
        partition = keys.starts(tenant, wanted.workflow, shard)
        rows, read_to = yield from _newest_rows(partition, before, size, after=young)
        found += map(read_start, rows)
        floor = max(floor, read_to)
    return found, floor


def _of_log(tenant: str, start: Start) -> Generator[Effect, Any, ListEntry | None]:
    """Return an execution that is not in the index yet, from its log or from its start.

    Return None for the row of a repeated nested start: another row of the execution has the start
    time.
    """
    log = Log(tenant, start.run, "api", "")
    # If a damaged execution has ended, its entry in the index lists it.
    yield from _load(log)
    state, origin = log.state, start.origin
    assert origin is not None
    if state is not None and state.started_ms != start.started_ms:
        return None
    return ListEntry(
        run=start.run,
        started_ms=start.started_ms,
        name=start.name or start.run,
        workflow=start.workflow,
        status="RUNNING" if state is None else state.status,
        definition=start.definition[:12],
        stopped_ms=None if state is None else state.stopped_ms,
        machine_name=origin["execution_name"],
        version=origin.get("version_arn", "").rpartition(":")[2],
        alias=origin.get("alias_arn", "").rpartition(":")[2],
        redrives=0 if state is None else state.redrives,
    )


# -- redriven executions ---------------------------------------------------------------------------


def note_redrive(tenant: str, state: Execution, now_ms: int) -> Put:
    """Return the effect that stores the row of an accepted redrive. `state` is that of the end.

    It is stored after the request: a row of a request that was never stored would list the
    execution as RUNNING.
    """
    entry = listing.entry_of(running_again(state), now_ms)
    return Put(
        tables.MAIL,
        {
            "pk": keys.redriven(tenant, state.workflow),
            "sk": entry.key,
            FORMAT_FIELD: FORMAT,
            "at": now_ms,
            "ttl": (now_ms + LISTED_MS) // 1_000,
            **listing.row_attributes(tenant, entry),
        },
    )


def _redriven(
    tenant: str, wanted: Wanted, before: str, size: int
) -> Generator[Effect, Any, tuple[list[ListEntry], str]]:
    """Return the entries that the rows of recent redrives say, and the key down to which the rows
    were read. Costs a query.
    """
    now_ms = yield Clock()
    partition = keys.redriven(tenant, wanted.workflow)
    items, floor = yield from _newest_rows(partition, before, size)
    recent = [item for item in items if int(item["at"]) >= now_ms - LISTED_MS]
    return [listing.read_row(item, record=0) for item in recent], floor


def _still_running(
    tenant: str, wanted: Wanted, redriven: list[ListEntry], indexed: Mapping[str, ListEntry]
) -> Generator[Effect, Any, list[ListEntry]]:
    """Return those of the redriven executions that the index does not have yet as redriven."""
    unknown = [one for one in redriven if not _has(indexed, one)]
    if wanted.statuses == ("RUNNING",):
        # The page was read without the executions that have ended.
        ended = yield from _ended(tenant, unknown)
        unknown = [one for one in unknown if not _has(ended, one)]
    if not wanted.is_workflow:
        return unknown
    # No worker carries out the redrive of an execution whose business key another one has.
    void = set[str]()
    for one in unknown:
        if (yield from void_retry(tenant, one.run, one.redrives - 1)) is not None:
            void.add(one.run)
    return [one for one in unknown if one.run not in void]


def _has(indexed: Mapping[str, ListEntry], redriven: ListEntry) -> bool:
    entry = indexed.get(redriven.run)
    return entry is not None and entry.redrives >= redriven.redrives


def _ended(
    tenant: str, executions: list[ListEntry]
) -> Generator[Effect, Any, Mapping[str, ListEntry]]:
    """Return the entries in the index of those of the executions that have ended. Costs two queries
    in parallel for each, of two entries at most: the old end may be there beside the new one.
    """
    queries = [
        QueryList(partition, 2, before=f"{one.key}~")
        for one in executions
        for partition in listing.ended_places_of(tenant, one.workflow, one.run)
    ]
    pages: list[ListPage] = (yield Together(tuple(queries))) if queries else []
    found = [listing.read_entry(item) for page in pages for item in page.items]
    runs = {one.run for one in executions}
    return {one.run: one for one in listing.without_stale(found) if one.run in runs}


def _newest_rows(
    partition: str, before: str, size: int, after: str | None = None
) -> Generator[Effect, Any, tuple[list[Item], str]]:
    """Return up to `size` rows below the key `before`, the newest first, and the key down to which
    they were read.
    """
    items: Iterable[Item] = yield Query(
        tables.MAIL, partition, after=after, until=before, reverse=True, limit=size + 1
    )
    rows = [item for item in items if item["sk"] != before][:size]
    return rows, str(rows[-1]["sk"]) if len(rows) == size else ""


def _load(log: Log) -> Generator[Effect, Any, None]:
    """Load the log. If it is damaged, its state stays None, so it does not hide the other
    executions.
    """
    try:
        yield from log.load()
    except HoldfastError as error:
        if not is_damage(error):
            raise
