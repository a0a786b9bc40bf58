"""Schedules as they are stored: one item each, and one row in the sweeper's index of due rows.

    item   T#sch · NAME                  the rule, what it starts, and how far it was processed
    row    ~due#<shard> · <look>#T#NAME#s

The sweeper reads the row a minute before the next nominal time and sends a message that arrives at
that time. A worker then decides, starts the executions, and stores the progress of the schedule:

    08:59  sweeper: row ─► message with a delay of 60 s ─► row to 09:01
    09:00  worker: start `report-20260329T0700Z` ─► item: next is tomorrow, 09:00
    09:01  sweeper: row ─► nothing is due ─► row to tomorrow, 09:00

The name of the execution contains the nominal time, so a worker that repeats a decision starts the
same execution. The item is stored last, if its version is still the one that was read. The row
exists as long as the item: without a next nominal time it is read once an hour.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, field, replace
from typing import Any, Final

from holdfast.core.schedules import Policy, Progress, Rule, due_ms
from holdfast.errors import HoldfastError, is_damage
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    SCHEDULE_BURST_MAX,
    START_RESENT_SECONDS_MAX,
    SWEEP_AHEAD_SECONDS,
    SWEEP_SECONDS,
)
from holdfast.runtime.effects import Effect, Get, Item, NoResult, Put, Query
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, Formats, require_format
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import DUE

_MINUTE_MS: Final = SWEEP_SECONDS * 1_000
_AHEAD_MS: Final = SWEEP_AHEAD_SECONDS * 1_000
#: The interval at which the sweeper reads the row of a schedule without a next nominal time.
_HOUR_MS: Final = 3_600_000
_FAILED: Final = frozenset({"FAILED", "TIMED_OUT"})


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule as declared, in code or by a command. `input` are the arguments, in the form of
    their types. `time_as` names the parameter that gets the nominal time.
    """

    workflow: str
    rule: Rule
    input: Mapping[str, Any] = field(default_factory=dict)
    time_as: str = ""
    overlap: str = "skip"
    catch_up_ms: int = 365 * 86_400_000
    pauses_on_failure: bool = False

    @property
    def policy(self) -> Policy:
        return Policy(self.overlap, self.catch_up_ms, SCHEDULE_BURST_MAX)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """A schedule as stored. `is_code`: the code declares it. `paused_by`, `paused_ms` and `reason`
    are those of the last pause or resume. `rv` is the version of the item.
    """

    tenant: str
    name: str
    plan: Plan
    progress: Progress
    is_code: bool
    rv: int = 1
    reason: str = ""
    by: str = ""
    at_ms: int = 0

    @property
    def next_due_ms(self) -> int | None:
        next_ms = self.progress.next_ms
        if next_ms is None or self.progress.is_paused:
            return None
        return due_ms(self.plan.rule, self.name, next_ms)

    @property
    def has_work_now(self) -> bool:
        """Return True when there is work at once: nominal times that wait for a running execution,
        or a range of past times to make up for.
        """
        waits = bool(self.progress.queued) or self.progress.backfill is not None
        return waits and not self.progress.is_paused

    def look_ms(self, now_ms: int) -> int:
        """Return the time at which the sweeper reads the row next."""
        soon_ms = (now_ms + _AHEAD_MS) // _MINUTE_MS * _MINUTE_MS + _MINUTE_MS
        if self.has_work_now:
            return soon_ms
        due = self.next_due_ms
        hour_ms = (now_ms // _HOUR_MS + 1) * _HOUR_MS
        return max(soon_ms, hour_ms if due is None else due)


def item_of(found: StoredSchedule) -> Item:
    stored = {
        "plan": asdict(found.plan),
        "progress": asdict(found.progress),
        "reason": found.reason,
        "by": found.by,
        "at": found.at_ms,
    }
    return {
        "pk": keys.schedules(found.tenant),
        "sk": found.name,
        FORMAT_FIELD: FORMAT,
        "rv": found.rv,
        "code": int(found.is_code),
        "d": json.dumps(stored, ensure_ascii=False, separators=(",", ":")),
    }


def read(item: Item) -> StoredSchedule:
    require_format(item, "a schedule")
    with reading("a schedule"):
        stored = json.loads(str(item["d"]))
        plan, progress = stored["plan"], stored["progress"]
        backfill = progress["backfill"]
        return StoredSchedule(
            tenant=str(item["pk"]).partition("#")[0],
            name=str(item["sk"]),
            plan=Plan(**{**plan, "rule": Rule(**plan["rule"])}),
            progress=Progress(
                **{
                    **progress,
                    "queued": tuple(progress["queued"]),
                    "open": tuple(progress["open"]),
                    "backfill": None if backfill is None else tuple(backfill),
                }
            ),
            is_code=bool(item["code"]),
            rv=int(item["rv"]),
            reason=stored["reason"],
            by=stored["by"],
            at_ms=stored["at"],
        )


def find(tenant: str, name: str) -> Generator[Effect, Any, StoredSchedule | None]:
    item = yield Get(tables.MAIL, keys.schedules(tenant), name)
    return None if item is None else read(item)


def all_of(tenant: str) -> Generator[Effect, Any, list[StoredSchedule]]:
    """Return the schedules of a tenant, sorted by name."""
    return [read(item) for item in (yield Query(tables.MAIL, keys.schedules(tenant)))]


def later(found: StoredSchedule, **changes: Any) -> StoredSchedule:
    """Return the next version of the item."""
    return replace(found, **changes, rv=found.rv + 1)


# -- the row ---------------------------------------------------------------------------------------


def shard_of(name: str) -> int:
    return zlib.crc32(name.encode()) % DUE.least


def row_of(tenant: str, name: str, look_ms: int, made_ms: int) -> Item:
    """Return the row. `made_ms` is the time at which the row was first written: a row without a
    schedule is kept for an hour, because the schedule is stored after its row.
    """
    return {
        "pk": keys.due_partition(shard_of(name)),
        "sk": keys.schedule_row(look_ms, tenant, name),
        FORMAT_FIELD: FORMAT,
        "t": tenant,
        "schedule": name,
        "made": made_ms,
    }


def put_row(tenant: str, name: str, now_ms: int) -> NoResult:
    """Put a row that the next sweep reads. If the schedule already has a row, the two become one
    when the sweeper moves both to the same time.
    """
    look_ms = now_ms // _MINUTE_MS * _MINUTE_MS + _MINUTE_MS
    yield Put(tables.MAIL, row_of(tenant, name, look_ms, now_ms))


def running(
    tenant: str, runs: Iterable[str], now_ms: int, formats: Formats
) -> Generator[Effect, Any, tuple[tuple[str, ...], bool]]:
    """Return the executions that still run, and whether another one has failed."""
    found, has_failed = list[str](), False
    for run in runs:
        log = Log(tenant, run, "schedule", "", formats)
        try:
            yield from log.load()
        except HoldfastError as error:
            if not is_damage(error):
                raise
            continue
        if log.state is None:
            # This execution has no log. At first its start message may still wait in the queue, so
            # it counts as running. Later the log is absent because TTL has deleted it.
            age_ms = now_ms - keys.minted_ms(run)
            is_running = not log.is_gone and age_ms < START_RESENT_SECONDS_MAX * 1_000
        else:
            is_running = not log.state.is_ended
            has_failed |= log.state.status in _FAILED
        if is_running:
            found.append(run)
    return tuple(found), has_failed
