"""The doctor: finds executions that should continue and do not, says why, and sends their message
again.

It reads the list of running executions page by page and examines each execution. Then it reads the
watchdog rows, for executions that are missing in the list. A finding that is only a few minutes old
is not shown: a message for it may still be in the queue. A repair sends the message that a worker
would send; the only thing that it stores is a missing watchdog row.

An execution with neither a log nor a list entry, because its start message was lost, is found only
by its name.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, Final, TypeAlias, assert_never

from holdfast import resources
from holdfast.core.decision import iso_time
from holdfast.core.run_ids import child_run, parent_run
from holdfast.core.state import ChildExecutions
from holdfast.errors import HoldfastError, is_passing
from holdfast.limits import DOCTOR_EXAMINED_MAX, WATCH_GRID_SECONDS
from holdfast.runtime import messages, watchdog
from holdfast.runtime.effects import Clock, Effect, Item, JsonResult, Message, Put, QueryList, Send
from holdfast.runtime.listing import partitions_of, unknown_page
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.maintenance.diagnostics import (
    Diagnosed,
    Examination,
    Findings,
    Repair,
    Symptom,
    examine,
    finding_of,
    late,
    log_of,
    unreadable,
    watched_in,
)
from holdfast.runtime.maintenance.quarantine import Quarantined
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import DUE, LIST_OPEN, Spread

#: A page of findings, and the fields of the answer: `examined`, the number of executions, and
#: `next`, the place where the next page begins.
Page: TypeAlias = Generator[Effect, Any, tuple[list["Diagnosed"], dict[str, Any]]]

#: The form of `next` while the list is read: the shard, and the key in it that was read last.
_AFTER: Final = re.compile(r"([0-9]{1,3})#([0-9]{15}#[0-9A-Za-z.]{1,900})?")
#: The form of `next` while the watchdog rows are read: the shard, and the last execution examined.
_AFTER_WATCHED: Final = re.compile(r"w([0-9]{1,3})#([0-9A-Za-z.]{1,900})?")
#: Reading this many rows takes about as long as the examination of one execution.
_ROWS_PER_LOG: Final = 50
_WHOLE_LIST: Final = 1_000_000


# -- entry points ----------------------------------------------------------------------------------


def report(tenant: str, spread: Spread, after: Any, *, is_repairing: bool) -> JsonResult:
    """Return `findings`, `examined` (the number of executions examined), and `next` when there are
    more.

    `after` is the field `next` of the previous page, None for the first page. Raises RequestError
    HF209 for an invalid one.
    """
    place = yield from _place(tenant, spread)
    found = [] if after is not None else (yield from _of_quarantine(place))
    more, answer = yield from _page(place, after)
    if is_repairing and after is None:
        yield from quarantine.forget_moved(tenant)
    return (yield from _told(place, [*found, *more], answer, is_repairing=is_repairing))


def report_one(
    tenant: str, spread: Spread, run: str, name: str | None, *, is_repairing: bool
) -> JsonResult:
    """Return the same as `report`, for one execution, running or ended. `examined` is 0 when it has
    no log.
    """
    place = yield from _place(tenant, spread)
    if run in place.held:
        found = [(yield from _of_held(place, place.held[run]))]
        return (yield from _told(place, found, {"examined": 1}, is_repairing=is_repairing))
    log, found = yield from examine(place, run)
    is_there = bool(found) or log.state is not None
    if not is_there:
        found = [_not_begun(run, name)]
    answer = {"examined": int(is_there)}
    return (yield from _told(place, late(place, found), answer, is_repairing=is_repairing))


def _place(tenant: str, spread: Spread) -> Generator[Effect, Any, Examination]:
    now_ms = yield Clock()
    resting = yield from quarantine.to_repair(tenant)
    return Examination(tenant, spread, now_ms, {held.run: held for held in resting})


def _told(
    place: Examination, found: list[Diagnosed], answer: dict[str, Any], *, is_repairing: bool
) -> JsonResult:
    if is_repairing:
        yield from _repair_all(place, found)
    return {**answer, "findings": [shown(finding) for finding in found]}


def shown(finding: Diagnosed) -> dict[str, Any]:
    """Return the finding as the API does."""
    fields = {
        "execution": finding.run,
        "name": finding.name,
        "workflow": finding.workflow,
        "reason": finding.reason,
        "says": finding.says,
        "since": iso_time(finding.since_ms),
        "state": finding.state,
        "repair": finding.repair.value,
        "advice": finding.advice,
    }
    return {key: value for key, value in fields.items() if value}


# -- the pages of a report -------------------------------------------------------------------------


def _page(place: Examination, after: Any) -> Page:
    watched = _AFTER_WATCHED.fullmatch(after) if isinstance(after, str) else None
    if watched is not None:
        position = _shard(place, watched), watched[2] or ""
        return (yield from _of_watched(place, position, DOCTOR_EXAMINED_MAX))
    found, answer, left = yield from _of_lists(place, after)
    if "next" in answer:
        return found, answer
    more, rest = yield from _of_watched(place, (0, ""), left)
    return [*found, *more], {**rest, "examined": answer["examined"] + rest["examined"]}


def _of_lists(
    place: Examination, after: Any
) -> Generator[Effect, Any, tuple[list[Diagnosed], dict[str, Any], int]]:
    """Examine the executions of the list, shard by shard, so that the watchdog rows of a shard are
    read once for many executions. The third result says how many more this page may examine.
    """
    partitions = partitions_of(place.tenant, place.spread, ["RUNNING"])
    shard, before = _position(place, after)
    found: list[Diagnosed] = []
    examined, left = 0, DOCTOR_EXAMINED_MAX
    while shard < len(partitions) and left > 0:
        page = yield QueryList(partitions[shard], left, before)
        for row in page.items:
            found += yield from _of_row(place, row)
        examined += len(page.items)
        if page.read_to:
            return found, {"examined": examined, "next": f"{shard}#{page.read_to}"}, 0
        shard, before, left = shard + 1, None, left - len(page.items) - 1
    if shard == len(partitions):
        return found, {"examined": examined}, left
    return found, {"examined": examined, "next": f"{shard}#"}, 0


def _position(place: Examination, after: Any) -> tuple[int, str | None]:
    """Return the shard of the list in which the next page begins, and the key after which it
    begins.
    """
    if after is None:
        return 0, None
    matched = _AFTER.fullmatch(after) if isinstance(after, str) else None
    if matched is None:
        raise unknown_page()
    return _shard(place, matched), matched[2] or None


def _shard(place: Examination, matched: re.Match[str]) -> int:
    shard = int(matched[1])
    if shard >= LIST_OPEN.count(place.spread.read):
        raise unknown_page()
    return shard


def _of_watched(place: Examination, position: tuple[int, str], left: int) -> Page:
    """Examine the executions that are missing in the list, by shard and then by id. In this order
    no execution is skipped or examined twice when its row moves in the meantime.
    """
    shard, after = position
    found: list[Diagnosed] = []
    examined = 0
    shards = LIST_OPEN.count(place.spread.read)
    while shard < shards and left > 0:
        runs, cost = yield from _unlisted(place, shard)
        runs = [run for run in runs if run > after]
        for run in (yield from _without_lanes(place, runs[:left])):
            _, own = yield from examine(place, run)
            found += late(place, own)
            examined += 1
        if len(runs) > left:
            return found, {"examined": examined, "next": f"w{shard}#{runs[left - 1]}"}
        shard, after, left = shard + 1, "", left - len(runs) - cost
    more = {} if shard == shards else {"next": f"w{shard}#"}
    return found, {"examined": examined, **more}


def _unlisted(place: Examination, shard: int) -> Generator[Effect, Any, tuple[list[str], int]]:
    """Return the tenant's executions that have a watchdog row but no list entry, in order, and the
    cost of finding them, as a number of executions.
    """
    watched: set[str] = set()
    for due_shard in _due_shards(shard, place.spread.read):
        watched |= yield from watched_in(place, due_shard)
    own = keys.execution(place.tenant, "")
    runs = {key.removeprefix(own) for key in watched if key.startswith(own)}
    # With several spreads such a partition has executions of several shards of the list.
    runs = {run for run in runs if LIST_OPEN.of(run) == shard}
    listed: set[str] = set()
    partition = partitions_of(place.tenant, place.spread, ["RUNNING"])[shard]
    page = yield QueryList(partition, _WHOLE_LIST)
    listed |= {_run_of(row) for row in page.items}
    return sorted(runs - listed), 1 + (len(watched) + len(listed)) // _ROWS_PER_LOG


def _due_shards(shard: int, spread: int) -> list[int]:
    """Return the partitions with the watchdog rows of the executions in one shard of the list. The
    list and the watchdog rows choose their shards by the same hash, at each spread.
    """
    found: set[int] = set()
    for one in range(spread + 1):
        step = LIST_OPEN.count(one)
        found |= set(range(shard, DUE.count(one), step)) if shard < step else set()
    return sorted(found)


def _without_lanes(place: Examination, runs: list[str]) -> Generator[Effect, Any, list[str]]:
    """Return the executions without children of a distributed Map: those are examined together with
    the execution of the Map.
    """
    parents = {parent_run(run) for run in runs} - {None, *place.held}
    lanes: set[str] = set()
    for parent in sorted(filter(None, parents)):
        lanes |= yield from _lanes_of(log_of(place, parent))
    return [run for run in runs if run not in lanes]


def _lanes_of(log: Log) -> Generator[Effect, Any, set[str]]:
    try:
        yield from log.load()
    except HoldfastError as error:
        if is_passing(error):
            raise
        return set()
    frames = () if log.state is None else log.state.frames.values()
    return {
        child_run(log.run, frame.waiting.entry, lane)
        for frame in frames
        if isinstance(frame.waiting, ChildExecutions)
        for lane in frame.waiting.open_lanes
    }


def _of_row(place: Examination, row: Item) -> Findings:
    run = _run_of(row)
    log, found = yield from examine(place, run)
    if log.state is not None and log.state.is_ended and log.state.stopped_ms is not None:
        found.append(finding_of(log, Symptom.LIST_STALE, log.state.stopped_ms))
    return late(place, found)


def _run_of(row: Item) -> str:
    return str(row[resources.LIST_SORT]).partition("#")[2]


def _of_quarantine(place: Examination) -> Findings:
    found: list[Diagnosed] = []
    for one in place.held.values():
        found.append((yield from _of_held(place, one)))  # noqa: PERF401
    found += [unreadable(*one) for one in (yield from quarantine.damaged(place.tenant))]
    if place.tenant == keys.TENANT_DEFAULT:
        found += yield from _of_letters(place.now_ms)
    return found


def _of_held(place: Examination, held: Quarantined) -> Generator[Effect, Any, Diagnosed]:
    name, workflow = held.body.get("name"), held.body.get("workflow")
    refusal = yield from quarantine.refusal(held, place.now_ms)
    advice = refusal or "mend the cause and deploy before"
    if not (held.is_redrive or held.is_end):
        advice = f"{advice}; `holdfast stop {held.run}` ends it"
    return Diagnosed(
        run=held.run,
        reason=Symptom.QUARANTINED.name,
        says=f"{Symptom.QUARANTINED}: {held.reason}",
        since_ms=held.at_ms,
        repair=Repair.RELEASE if refusal is None else Repair.NONE,
        name=None if name is None else str(name),
        workflow=None if workflow is None else str(workflow),
        advice=advice,
    )


def _not_begun(run: str, name: str | None) -> Diagnosed:
    """Return the finding for an execution that has not begun. Its age comes from the time in its
    id.
    """
    return Diagnosed(
        run=run,
        reason=Symptom.NOT_BEGUN.name,
        says=Symptom.NOT_BEGUN.value,
        since_ms=keys.minted_ms(run),
        repair=Repair.NONE,
        name=name,
        advice="the sweeper sends its start again within an hour; a start with the same name and"
        " input begins it at once",
    )


def _of_letters(now_ms: int) -> Findings:
    """Return findings about dead letters. Only the account itself gets them, because only it may
    read the queues.
    """
    letters = yield from quarantine.unreadable(now_ms)
    return [
        Diagnosed(
            run="",
            reason=Symptom.UNREADABLE_LETTER.name,
            says=f"{Symptom.UNREADABLE_LETTER}: {letter.message_id}, {letter.said}",
            since_ms=letter.seen_ms,
            repair=Repair.NONE,
            advice="HF301: deploy newer code; else read it in the queue, and delete it there",
        )
        for letter in letters
    ]


# -- repair ----------------------------------------------------------------------------------------


def _repair_all(place: Examination, found: list[Diagnosed]) -> Generator[Effect, Any, None]:
    """Carry out the repairs, each kind once for each execution."""
    done = set[tuple[str, Repair]]()
    for one in found:
        if (one.run, one.repair) not in done:
            done.add((one.run, one.repair))
            yield from _repair(place, one)


def _repair(place: Examination, finding: Diagnosed) -> Generator[Effect, Any, None]:
    match finding.repair:
        case Repair.TELL:
            yield Send((Message(messages.recover(place.tenant, finding.run)),))
        case Repair.WATCH:
            # The row names record 0, which exists, so the row announces no missing record. The
            # sweeper checks the execution at the row's time and finds anything else that is wrong.
            look_ms = -(-place.now_ms // (WATCH_GRID_SECONDS * 1_000)) * WATCH_GRID_SECONDS * 1_000
            row = watchdog.watch_item(place.tenant, finding.run, look_ms, 0, place.now_ms)
            yield Put(tables.MAIL, row)
        case Repair.RELEASE:
            yield from quarantine.release(place.held[finding.run])
        case Repair.NONE:
            return
        case _:
            assert_never(finding.repair)
