"""Describe and list executions, read a history, and report executions that should continue and do
not.

Values that a workflow declares as secrets are hidden here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holdfast.core.decision import iso_time
from holdfast.core.state import STATUSES, Awaiting, Execution, Frame
from holdfast.errors import RequestError
from holdfast.limits import PAGE_BYTES_MAX, SHOWN_BYTES_MAX, TOKEN_SECONDS_MAX
from holdfast.runtime import inbox, pending_starts
from holdfast.runtime.attribute_filter import is_ordered_by_value
from holdfast.runtime.commands import archived, keyed, limits, pools, presentation
from holdfast.runtime.commands.fork import forks_of
from holdfast.runtime.commands.graphs import require_listed
from holdfast.runtime.commands.list_filter import ListFilter, among, list_filter
from holdfast.runtime.commands.lookup import Lookup, no_execution
from holdfast.runtime.commands.search_list import read_search_page
from holdfast.runtime.commands.tokens import Token, make_token
from holdfast.runtime.effects import Clock, Effect, JsonResult
from holdfast.runtime.listing import NEWEST, Page, read_page, unknown_page
from holdfast.runtime.maintenance import doctor, quarantine
from holdfast.runtime.maintenance.diagnostics import Diagnosed, Repair, Symptom
from holdfast.runtime.storage.histories import Forwards
from holdfast.runtime.storage.json_values import json_text
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import Spread
from holdfast.runtime.waiting_list import read_waiting_page, with_present_waits
from holdfast.sealed import hidden

#: The place of the last event of a page: the number of its record, and its number in the record.
_AFTER: Final = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})")


def describe(
    known: Lookup, tenant: str, identifier: str, *, with_forks: bool = False
) -> JsonResult:
    """Describe an execution. `identifier` is its id, name or ARN; see `lookup`. `with_forks`: also
    read which executions began as copies of it, with one more query.

    An execution that TTL has deleted is read from the archive; `archived` then says where it is.
    `void_retry` says why workers did not carry out an accepted retry of a keyed execution.
    `omitted` names the fields that are too large for the answer, if any. `last_failure` has the
    traceback of the newest failed attempt, if the records since the last snapshot have one.
    """
    try:
        log = yield from known.require_log(tenant, identifier)
    except RequestError:
        kept = yield from archived.describe(tenant, identifier)
        if kept is None:
            raise
        return _without_large(kept)
    held = yield from quarantine.held_in(log)
    if log.state is None and held is not None:
        return quarantine.not_begun(held)
    if log.state is None:
        return _without_large((yield from _not_begun(tenant, log.run)))
    shown = yield from _begun(known, log, log.state)
    forks = (yield from forks_of(tenant, log.run)) if with_forks else []
    if forks:
        shown["forks"] = forks
    if held is not None:
        shown["waits"] = [quarantine.wait_of(held), *shown["waits"]]
    return _without_large(shown)


def _begun(known: Lookup, log: Log, state: Execution) -> JsonResult:
    """Describe an execution that has a log."""
    definition = yield from known.programs.fetch(log.tenant, state.definition)
    now_ms = yield Clock()

    def token_of(_: Execution, frame: Frame) -> str:
        waiting = frame.waiting
        assert isinstance(waiting, Awaiting)
        expires_ms = waiting.due_ms or now_ms + TOKEN_SECONDS_MAX * 1_000
        token = Token(log.tenant, state.run, waiting.entry, waiting.attempt, expires_ms)
        return make_token(token, known.keys)

    shown: dict[str, Any] = hidden(presentation.execution(state, definition.source_map, token_of))
    failure = presentation.last_failure(log.records)
    if failure is not None and state.status != "SUCCEEDED":
        shown["last_failure"] = hidden(failure)
    if state.is_ended and state.status != "SUCCEEDED" and "keyed" in definition.source_map:
        void = yield from keyed.void_retry(log.tenant, log.run, state.redrives)
        shown |= {} if void is None else {"void_retry": void}
    if "waits" in shown:
        waits = yield from pools.with_workers(log.tenant, log.run, shown["waits"])
        shown["waits"] = yield from limits.with_places(known, state, waits)
    return shown


def _not_begun(tenant: str, run: str) -> JsonResult:
    """Describe an execution without a log, by its start message if that is found."""
    waits = [{"kind": "start"}]
    shown: dict[str, Any] = {"execution": run, "status": "RUNNING", "waits": waits}
    body = yield from pending_starts.find(tenant, run)
    if body is None:
        return shown
    shown |= {
        "name": body.get("name"),
        "workflow": body["workflow"],
        "definition": body["definition"],
        "started": iso_time(int(body["t0"])),
    }
    if not body.get("fork"):
        # The input of a fork's start is the request of the fork.
        shown["input"] = hidden((yield from inbox.unstow(tenant, run, body["input"])))
    return shown


def _without_large(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the description without data that does not fit into the response. It keeps the waits,
    because a caller needs their tokens to answer.
    """
    large = [
        key
        for key in ("input", "output", "published")
        if len(json_text(shown.get(key)).encode()) > SHOWN_BYTES_MAX
    ]
    return {**shown, **dict.fromkeys(large), "omitted": large} if large else shown


def history(known: Lookup, tenant: str, identifier: str, after: Any = None) -> JsonResult:
    """Return the events since the start, in AWS's form. Holdfast's own fields are under `holdfast`.

    `after` is the `next` of the page before; None for the first page. A page has a `next` when
    there are more events. Costs a read of the page, and of the records between it and the snapshot
    before it. Raises RequestError HF209.
    """
    place = _place(after)
    run = yield from known.find_run(tenant, identifier)
    if run is None:
        raise no_execution(identifier)
    parts = Forwards(tenant, run, max(place[0], 0), known.formats)
    page = _HistoryPage()
    records = yield from parts.next()
    if not records:
        kept = yield from archived.events(tenant, run, place)
        if kept is not None:
            page.add(kept[1])
            return {"execution": kept[0], **page.shown()}
    if not records and after is None:
        run = (yield from known.require_log(tenant, identifier)).run
    while records and not page.is_full:
        page.add(presentation.history(records, place))
        records = yield from parts.next()
    return {"execution": run, **page.shown()}


@dataclass
class _HistoryPage:
    """As many events as fit into a response. At least one, so that each page makes progress."""

    events: list[dict[str, Any]] = field(default_factory=list)
    is_full: bool = False
    _last: presentation.EventPlace = presentation.BEGINNING
    _bytes: int = 0

    def add(self, events: Iterable[tuple[presentation.EventPlace, dict[str, Any]]]) -> None:
        for place, event in events:
            row = presentation.fitting(hidden(event))
            self._bytes += presentation.sent_bytes(row)
            self.is_full = bool(self.events) and self._bytes > PAGE_BYTES_MAX
            if self.is_full:
                return
            self.events.append(row)
            self._last = place

    def shown(self) -> dict[str, Any]:
        more = {"next": "{}.{}".format(*self._last)} if self.is_full else {}
        return {"events": self.events, **more}


def _place(after: Any) -> presentation.EventPlace:
    if after is None:
        return presentation.BEGINNING
    matched = _AFTER.fullmatch(after) if isinstance(after, str) else None
    if matched is None:
        raise unknown_page()
    return int(matched[1]), int(matched[2])


def executions(
    lookup: Lookup,
    tenant: str,
    request: Mapping[str, Any],
    *,
    statuses: Collection[str] = STATUSES,
) -> JsonResult:
    """Return the newest executions of every kind. The list may be a moment behind the logs;
    `describe` is not.

    `request`: the filters of `list_filter`, limit? (at most 100), after? (the field `next` of the
    last page). The response has `executions`, and `next` while there may be older ones. With a
    filter, a page may be short or empty and still have a `next`. `workflow` need not be deployed,
    as long as it has executions. Only executions with one of `statuses` are returned.

    Costs at most eight queries of the list and one batch of reads. If the first page of a workflow
    that is not deployed is empty, it costs eight more queries. Raises RequestError HF204, HF205,
    HF209.
    """
    wanted = among(list_filter(request, lookup.search_attributes()), statuses)
    now_ms = yield Clock()
    page = yield from _page_of(tenant, lookup.spread, wanted, now_ms)
    rows = [presentation.listed(entry, page.attributes.get(entry.run)) for entry in page.entries]
    rows = yield from _with_held(tenant, wanted, rows, page.after or "")
    is_known = wanted.workflow is None or wanted.workflow in lookup.workflows
    if not (is_known or rows or page.after) and wanted.before == NEWEST:
        yield from require_listed(lookup, tenant, wanted.workflow, now_ms)
    if not is_ordered_by_value(wanted.attributes):
        rows.sort(key=lambda row: row["started_ms"], reverse=True)
    return {"executions": rows} if page.after is None else {"executions": rows, "next": page.after}


def _page_of(
    tenant: str, spread: Spread, wanted: ListFilter, now_ms: int
) -> Generator[Effect, Any, Page]:
    if wanted.attributes:
        return (yield from read_search_page(tenant, spread, wanted, now_ms))
    if wanted.waits is not None:
        return (yield from read_waiting_page(tenant, spread, wanted.waits, wanted))
    page = yield from read_page(tenant, spread, wanted, now_ms)
    return replace(page, entries=(yield from with_present_waits(tenant, page.entries)))


def _with_held(
    tenant: str, wanted: ListFilter, rows: list[dict[str, Any]], after: str
) -> Generator[Effect, Any, list[dict[str, Any]]]:
    """Mark the listed executions that are in quarantine, and add quarantined executions that have
    no list entry.
    """
    resting = yield from quarantine.resting(tenant)
    is_redrive = {held.run: held.is_redrive for held in resting}
    marked = [
        {**row, "waits_for": quarantine.WAIT}
        if is_redrive.get(row["execution"]) is (row["status"] != "RUNNING")
        else row
        for row in rows
    ]
    begun = {row["execution"] for row in rows}
    unlisted = [held for held in resting if not (held.is_redrive or held.run in begun)]
    more = [quarantine.listed(held) for held in unlisted]
    return [*marked, *(row for row in more if wanted.fits_waiting(row, after))]


def report(
    known: Lookup, tenant: str, request: Mapping[str, Any], *, is_repairing: bool
) -> JsonResult:
    """Return executions that should continue and do not. `request`: execution?, or after?; see
    `doctor`.
    """
    identifier = request.get("execution")
    if identifier is None:
        after = request.get("after")
        told = yield from doctor.report(tenant, known.spread, after, is_repairing=is_repairing)
        if after is not None:
            return told
        waiting = yield from pools.unserved(known, tenant)
        return {**told, "findings": [*map(_of_pool, waiting), *told["findings"]]}
    run = yield from known.find_run(tenant, str(identifier))
    if run is None:
        raise no_execution(str(identifier))
    name = None if run == identifier else str(identifier).rpartition(":")[2]
    answer = yield from doctor.report_one(
        tenant, known.spread, run, name, is_repairing=is_repairing
    )
    if not answer["examined"]:
        yield from known.require_log(
            tenant, str(identifier)
        )  # Raises RequestError for an id that was never accepted
    return answer


def _of_pool(waiting: pools.Unserved) -> dict[str, Any]:
    """Return the finding for the longest wait in a pool."""
    return doctor.shown(
        Diagnosed(
            run=waiting.run,
            reason=Symptom.POOL_UNSERVED.name,
            says=f"{Symptom.POOL_UNSERVED}: {waiting.task}, pool {waiting.pool}",
            since_ms=waiting.since_ms,
            repair=Repair.NONE,
            name=waiting.name,
            workflow=waiting.workflow,
            state=waiting.state,
            advice=f"holdfast worker --pool {waiting.pool}; `holdfast pools` lists the workers",
        )
    )
