"""The two sources of ListExecutions, merged by start time.

The list index has executions that wait or have ended, by status, a moment late. The rows of starts
(`start_rows.py`) have executions that are not in the index yet; the newest record of the log gives
the status of such an execution. A page ends where the first source ends, so no execution between
two pages is lost. It may be shorter than requested.

A redriven execution is in neither source for a moment: the index has its end, until the redrive is
carried out and the execution waits again. A row of the redrive leads to its log.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.core.state import Execution
from holdfast.errors import HoldfastError, is_damage
from holdfast.runtime.commands.redrives import as_redriven, redrives_of
from holdfast.runtime.commands.start_rows import LISTED_MS, Start, read_start
from holdfast.runtime.effects import Clock, Effect, Item, Put, Query
from holdfast.runtime.listing import ListEntry, Page, cut_page, entry_of, read_page
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
    page = yield from read_page(
        tenant,
        spread,
        statuses=wanted.statuses,
        workflow=wanted.workflow,
        before=before,
        limit=size,
        now_ms=now_ms,
    )
    if wanted.map_run is not None:
        return _fitting(wanted, page.entries, page.after or "", size)
    indexed = {entry.run: entry for entry in page.entries}
    starts, floor = yield from _starts(tenant, spread, wanted, before, size)
    for _, start in starts:
        if start.run not in indexed:
            begun = yield from _of_log(tenant, start)
            if begun is not None:
                indexed[start.run] = begun
    for entry in (yield from _redriven(tenant, wanted)):
        if entry.key < before:
            indexed[entry.run] = entry
    return _fitting(wanted, indexed.values(), max(page.after or "", floor), size)


def _fitting(wanted: Wanted, found: Iterable[ListEntry], read_to: str, size: int) -> Page:
    return cut_page(filter(wanted.takes, found), read_to, size)


def _starts(
    tenant: str, spread: Spread, wanted: Wanted, before: str, size: int
) -> Generator[Effect, Any, tuple[list[tuple[str, Start]], str]]:
    now_ms = yield Clock()
    young = f"{now_ms - LISTED_MS:015d}#"
    found: list[tuple[str, Start]] = []
    floor = ""
    for shard in range(MACHINE_STARTS.count(spread.read)):
        partition = keys.starts(tenant, wanted.workflow, shard)
        items: Iterable[Item] = yield Query(
            tables.MAIL, partition, after=young, until=before, reverse=True, limit=size + 1
        )
        rows = [(str(item["sk"]), read_start(item)) for item in items if item["sk"] != before]
        found += rows[:size]
        floor = max(floor, rows[size - 1][0] if len(rows) >= size else "")
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


def note_redrive(tenant: str, state: Execution, now_ms: int) -> Put:
    """Return the effect that stores the row of a redrive, with which lists find the execution until
    the index shows it as running.
    """
    return Put(
        tables.MAIL,
        {
            "pk": keys.redriven(tenant, state.workflow),
            "sk": state.run,
            FORMAT_FIELD: FORMAT,
            "at": now_ms,
            "ttl": (now_ms + LISTED_MS) // 1_000,
        },
    )


def _redriven(tenant: str, wanted: Wanted) -> Generator[Effect, Any, list[ListEntry]]:
    """Return the executions with a recent redrive. Costs a query, and the read of each log."""
    now_ms = yield Clock()
    rows: Iterable[Item] = yield Query(tables.MAIL, keys.redriven(tenant, wanted.workflow))
    found: list[ListEntry] = []
    for row in rows:
        if int(row["at"]) < now_ms - LISTED_MS:
            continue
        log = Log(tenant, str(row["sk"]), "api", "")
        yield from _load(log)
        if log.state is not None:
            redrives = yield from redrives_of(tenant, log.state)
            found.append(entry_of(as_redriven(log.state, redrives), now_ms))
    return found


def _load(log: Log) -> Generator[Effect, Any, None]:
    """Load the log. If it is damaged, its state stays None, so it does not hide the other
    executions.
    """
    try:
        yield from log.load()
    except HoldfastError as error:
        if not is_damage(error):
            raise
