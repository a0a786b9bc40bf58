"""What people see: one execution, its history, the list, and what does not move.

What a workflow marked as secret is hidden here, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeAlias

from holdfast.core.state import STATUSES, Awaiting, Execution, Frame
from holdfast.errors import RequestError
from holdfast.limits import LIST_SHARDS, SHOWN_BYTES_MAX, TOKEN_SECONDS_MAX
from holdfast.runtime import doctor, keys, quarantine, view
from holdfast.runtime.effects import Clock, Effect, Query, QueryList
from holdfast.runtime.known import Known, no_execution
from holdfast.runtime.log import Log
from holdfast.runtime.quarantine import Quarantined
from holdfast.runtime.tokens import Token, make_token
from holdfast.sealed import hidden

Answer: TypeAlias = Generator[Effect, Any, dict[str, Any]]

LISTED_MAX = 100


def describe(known: Known, tenant: str, identifier: str) -> Answer:
    """`identifier`: an execution's id, or its name: the business key of what it works for.

    `omitted` names what is too large to be shown, if anything is.
    """
    log = yield from known.require_log(tenant, identifier)
    held = yield from _held(log)
    if log.state is None and held is not None:
        return quarantine.not_begun(held)
    if log.state is None:
        return {"execution": log.run, "status": "RUNNING", "waits": [{"kind": "start"}]}
    definition = yield from known.programs.fetch(tenant, log.state.definition)
    now_ms = yield Clock()

    def token_of(state: Execution, frame: Frame) -> str:
        assert isinstance(frame.waiting, Awaiting)
        expires_ms = frame.waiting.due_ms or now_ms + TOKEN_SECONDS_MAX * 1_000
        waiting = frame.waiting
        token = Token(tenant, state.run, waiting.entry, waiting.attempt, expires_ms)
        return make_token(token, known.keys)

    shown: dict[str, Any] = hidden(view.execution(log.state, definition.source_map, token_of))
    if held is not None:
        shown["waits"] = [quarantine.wait_of(held), *shown["waits"]]
    return _without_large(shown)


def _without_large(shown: dict[str, Any]) -> dict[str, Any]:
    """What an execution waits for has to fit the answer, or nobody could give it; data need not."""
    large = [
        key
        for key in ("input", "output")
        if len(view.json_text(shown.get(key)).encode()) > SHOWN_BYTES_MAX
    ]
    return {**shown, **dict.fromkeys(large), "omitted": large} if large else shown


def _held(log: Log) -> Generator[Effect, Any, Quarantined | None]:
    """-> why nobody works on it, if it rests in quarantine."""
    if log.state is not None and log.state.is_ended:
        return None
    held = yield from quarantine.find(log.tenant, log.run)
    return held if held is not None and held.holds(log) else None


def history(known: Known, tenant: str, identifier: str) -> Answer:
    """-> every event since the start, in AWS's form; ours under `holdfast`."""
    run = yield from known.find_run(tenant, identifier)
    if run is None:
        raise no_execution(identifier)
    items = yield Query("executions", keys.execution(tenant, run))
    events = yield from view.history(tenant, run, items, known.formats)
    if not events:
        run = (yield from known.require_log(tenant, identifier)).run
    return {"execution": run, "events": hidden(events)}


def executions(known: Known, tenant: str, workflow: str | None, status: str | None) -> Answer:
    """-> the newest executions. The list may be a moment behind; describe is not."""
    if status is not None and status not in STATUSES:
        expected = ", ".join(STATUSES)
        raise RequestError("HF204", f"status {status!r} is not one of {expected}")
    if workflow is not None:
        known.workflow(workflow)
    found = []
    for name in [workflow] if workflow is not None else sorted(known.workflows):
        for wanted in [status] if status is not None else STATUSES:
            for shard in range(LIST_SHARDS):
                partition = keys.list_partition(tenant, name, wanted, shard)
                found += yield QueryList(partition, LISTED_MAX)
    now_ms = yield Clock()
    kept = [item for item in found if view.is_kept(item, now_ms)]
    rows = view.without_stale([view.listed(item) for item in kept])
    if status in {None, "RUNNING"}:
        rows = yield from _with_held(tenant, workflow, rows)
    rows.sort(key=lambda row: row["started_ms"], reverse=True)
    return {"executions": rows[:LISTED_MAX]}


def _with_held(
    tenant: str, workflow: str | None, rows: list[dict[str, Any]]
) -> Generator[Effect, Any, list[dict[str, Any]]]:
    """Marks what rests in quarantine, and adds what was accepted and never began."""
    resting = yield from quarantine.resting(tenant)
    runs = {held.run for held in resting}
    marked = [
        {**row, "waits_for": quarantine.WAIT}
        if row["status"] == "RUNNING" and row["execution"] in runs
        else row
        for row in rows
    ]
    unlisted = runs.difference(row["execution"] for row in rows)
    more = [quarantine.listed(held) for held in resting if held.run in unlisted]
    return [*marked, *(row for row in more if workflow in {None, row["workflow"]})]


def report(known: Known, tenant: str, request: Mapping[str, Any], *, is_repairing: bool) -> Answer:
    """What should move and does not. `request`: execution?, or after? (`doctor.report`)."""
    identifier = request.get("execution")
    if identifier is None:
        after = request.get("after")
        return (yield from doctor.report(tenant, known.workflows, after, is_repairing=is_repairing))
    run = yield from known.find_run(tenant, str(identifier))
    if run is None:
        raise no_execution(str(identifier))
    name = None if run == identifier else str(identifier)
    answer = yield from doctor.report_one(tenant, run, name, is_repairing=is_repairing)
    if not answer["examined"]:
        yield from known.require_log(tenant, str(identifier))  # or nobody has accepted it
    return answer
