"""Counts of executions by workflow, status and wait, and the execution that has waited longest.

No counts are stored. Each request counts the entries of the list, so the result is right at that
time. One request counts a part of them, and says where the next part begins:

    each query reads its partition down to some key, at most 2,000 entries at spread 0
    the part is what lies above the highest of these keys, so no execution is counted twice

An entry takes about 300 bytes, so thirteen of them cost half a read unit. An execution with several
waits counts once, under the wait that has lasted longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final

from holdfast import resources
from holdfast.core.decision import iso_time
from holdfast.errors import RequestError
from holdfast.limits import LIST_READ_MAX, OPEN_COUNT_PARTS_MAX
from holdfast.runtime.commands.graphs import require_listed
from holdfast.runtime.commands.list_filter import ListFilter, list_filter
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import (
    Clock,
    Effect,
    JsonResult,
    Labels,
    ListPage,
    Measure,
    NoResult,
    QueryList,
    Together,
)
from holdfast.runtime.listing import (
    NEWEST,
    ListEntry,
    is_kept,
    partitions_of,
    read_entry,
    waits_partitions,
    without_stale,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import Spread, share_of
from holdfast.runtime.wait_rows import read_row

#: The properties by which executions can be counted.
GROUPS: Final = ("workflow", "status", "wait")


def counts(known: Lookup, tenant: str, request: Mapping[str, Any]) -> JsonResult:
    """Count one part of the executions. `request`: by? (names of `GROUPS` with commas, default
    status), workflow?, status?, since?, until?, after?.

    The answer has `counts`, one row for each group, `oldest`, the execution of this part that waits
    longest, if any waits, `at`, the time, and `next` while there are other parts. Costs at most
    twelve queries, and eight more when the first part of a workflow that is not deployed is empty.
    Raises RequestError HF204, HF205, HF209, HF482.
    """
    groups = _groups(request.get("by"))
    wanted = list_filter(
        {name: request.get(name) for name in ("workflow", "status", "since", "until", "after")}
    )
    now_ms = yield Clock()
    entries, after = yield from _part(tenant, known.spread, wanted, now_ms)
    is_known = wanted.workflow is None or wanted.workflow in known.workflows
    if not (is_known or entries or after) and wanted.before == NEWEST:
        yield from require_listed(known, tenant, wanted.workflow, now_ms)
    counted = Counter(tuple(_label(entry, group) for group in groups) for entry in entries)
    rows = [
        {**dict(zip(groups, labels, strict=True)), "count": number}
        for labels, number in sorted(counted.items())
    ]
    answer: dict[str, Any] = {"counts": rows, "at": iso_time(now_ms)}
    oldest = _oldest(entries)
    if oldest is not None:
        answer["oldest"] = oldest
    return answer if after is None else {**answer, "next": after}


def measure_open(tenant: str, spread: Spread) -> NoResult:
    """Measure how many executions are open, by workflow and by the kind of the longest wait. It
    reads at most `OPEN_COUNT_PARTS_MAX` parts of the list, so of very many executions it counts
    only the newest.

    The target of a wait is not a label, because it may be the name of a person.
    """
    now_ms = yield Clock()
    counted: Counter[tuple[str, str]] = Counter()
    after: str | None = None
    for _ in range(OPEN_COUNT_PARTS_MAX):
        wanted = list_filter({"status": "RUNNING", "after": after})
        entries, after = yield from _part(tenant, spread, wanted, now_ms)
        counted.update((entry.workflow, _label(entry, "kind")) for entry in entries)
        if after is None:
            break
    for (workflow, wait), number in sorted(counted.items()):
        is_machine = keys.is_machine_workflow(workflow)
        name = {"state_machine": workflow} if is_machine else {"workflow": workflow}
        yield Measure(resources.METRIC_OPEN, number, labels=Labels(**name, wait=wait))


def _groups(given: Any) -> list[str]:
    names = str(given or "status").split(",")
    if not set(names) <= set(GROUPS) or len(set(names)) < len(names):
        raise RequestError(
            "HF482",
            f"`by` is {given!r:.90}",
            help=f"names of {', '.join(GROUPS)}, with commas between them",
        )
    return names


def _part(
    tenant: str, spread: Spread, wanted: ListFilter, now_ms: int
) -> Generator[Effect, Any, tuple[list[ListEntry], str | None]]:
    """Return the entries of one part with their present waits, and the key at which the next part
    begins.
    """
    partitions = partitions_of(tenant, spread, wanted.statuses, wanted.workflow)
    is_open = "RUNNING" in wanted.statuses
    of_waits = waits_partitions(tenant, spread, wanted.workflow) if is_open else []
    share = share_of(LIST_READ_MAX, spread)
    pages: list[ListPage] = yield Together(
        (
            *(QueryList(one, share, wanted.before) for one in partitions),
            *(QueryList(one, share, wanted.before, table=tables.MAIL) for one in of_waits),
        )
    )
    read_to = max(page.read_to for page in pages)
    low = max(read_to, wanted.since)
    found = [read_entry(item) for page in pages[: len(partitions)] for item in page.items]
    rows = {
        row.run: row
        for page in pages[len(partitions) :]
        for row in map(read_row, page.items)
        if row.key >= low
    }
    kept = without_stale([one for one in found if one.key >= low and is_kept(one, now_ms)])
    present = [_present(entry, rows) for entry in kept if _is_wanted(entry, wanted)]
    return present, read_to if read_to > wanted.since else None


def _is_wanted(entry: ListEntry, wanted: ListFilter) -> bool:
    return entry.status in wanted.statuses and wanted.workflow in {None, entry.workflow}


def _present(entry: ListEntry, rows: Mapping[str, ListEntry]) -> ListEntry:
    row = rows.get(entry.run)
    is_later = entry.status == "RUNNING" and row is not None and row.record > entry.record
    return row if is_later and row is not None else entry


def _label(entry: ListEntry, group: str) -> str:
    match group:
        case "workflow":
            return entry.workflow
        case "status":
            return entry.status
        case _:
            longest = min(entry.waits, key=lambda wait: wait.since_ms, default=None)
            if longest is None:
                return ""
            kind: str = longest.kind.value
            return kind if group == "kind" else f"{kind}:{longest.target}"


def _oldest(entries: Iterable[ListEntry]) -> dict[str, Any] | None:
    waits = [(wait, entry) for entry in entries for wait in entry.waits]
    if not waits:
        return None
    wait, entry = min(waits, key=lambda one: (one[0].since_ms, one[1].run))
    return {
        "execution": entry.run,
        "name": entry.name,
        "workflow": entry.workflow,
        "wait": f"{wait.kind.value}:{wait.target}",
        "since": iso_time(wait.since_ms),
    }
