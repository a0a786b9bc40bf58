"""Pools of workers: which worker has an attempt, which workers there are, and which tasks wait.

A worker announces itself each minute, in one row of its pool that TTL removes. So a pool without
workers is known from one query, although a worker that is busy for hours polls for nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast import resources
from holdfast.asl.program import Json
from holdfast.asl.resources import CHOSEN_POOL, POOL
from holdfast.core.decision import iso_time
from holdfast.errors import HoldfastError, is_passing
from holdfast.runtime import heartbeats
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    JsonResult,
    Labels,
    Measure,
    NoResult,
    Query,
)
from holdfast.runtime.offers import execution_of, is_held, open_offer, paused_scopes
from holdfast.runtime.storage import keys, tables

#: A worker counts as present when it has announced itself within this time. Workers do so each
#: minute, so two announcements in a row may be lost.
PRESENT_MS: Final = 3 * 60_000
#: A task that has waited for less than this is not reported, because a worker may just be starting.
PATIENCE_MS: Final = 2 * 60_000
#: At most this many waiting tasks of one pool are counted.
COUNTED_MAX: Final = 1_000
#: At most this many chosen pools are listed.
_CHOSEN_MAX: Final = 200
#: The row of a task that has ended stays until a worker polls. At most this many rows of a pool are
#: examined, because each costs a read of its execution.
_LOOKED_AT_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class PoolWorkerRow:
    """A worker as it announced itself. `tasks`: the names of the tasks that its code has."""

    name: str
    since_ms: int
    seen_ms: int
    slots: int
    busy: int
    tasks: tuple[str, ...]

    @classmethod
    def of(cls, row: Item) -> PoolWorkerRow:
        names = tuple(filter(None, str(row["tasks"]).split(",")))
        since_ms, seen_ms = int(row["since"]), int(row["at"])
        return cls(str(row["sk"]), since_ms, seen_ms, int(row["slots"]), int(row["busy"]), names)

    def item(self, tenant: str, pool: str) -> Item:
        return {
            "pk": keys.pool_workers(tenant, pool),
            "sk": self.name,
            "since": self.since_ms,
            "at": self.seen_ms,
            "slots": self.slots,
            "busy": self.busy,
            "tasks": ",".join(self.tasks),
            "ttl": (self.seen_ms + PRESENT_MS) // 1_000,
        }


def pools(known: Lookup, tenant: str) -> JsonResult:
    """Return the pools that the deployed workflows name, and those that executions chose in the
    last days: how many tasks wait, since when the longest has, and the workers that are there.
    Costs one query, and two for each pool.
    """
    now_ms = yield Clock()
    found = []
    for pool in (yield from _used_pools(known, tenant)):
        due = yield from _due_rows(tenant, pool, now_ms)
        workers = yield from workers_of(tenant, pool, now_ms)
        oldest = {"oldest": iso_time(_due_ms(due[0]))} if due else {}
        rows = [_shown(worker) for worker in workers]
        found.append({"pool": pool, "waiting": len(due), **oldest, "workers": rows})
    return {"pools": found}


def measure_pools(known: Lookup, tenant: str) -> NoResult:
    """Measure, for each pool, the tasks that wait, the workers that are there, and the longest
    wait. Costs two queries for each pool.
    """
    now_ms = yield Clock()
    for pool in pools_of(known):
        due = yield from _due_rows(tenant, pool, now_ms)
        workers = yield from workers_of(tenant, pool, now_ms)
        oldest_ms = _due_ms(due[0]) if due else now_ms
        labels = Labels(wait="pool", target=pool)
        yield Measure(resources.METRIC_POOL_WAITING, len(due), labels=labels)
        yield Measure(resources.METRIC_POOL_WORKERS, len(workers), labels=labels)
        seconds = (now_ms - oldest_ms) / 1_000
        yield Measure(resources.METRIC_POOL_OLDEST, seconds, "Seconds", labels)


def pools_of(known: Lookup) -> list[str]:
    """Return the names of the pools that the deployed workflows name."""
    return sorted({name for one in known.workflows.values() for name in _named_in(one.asl)})


def _used_pools(known: Lookup, tenant: str) -> Generator[Effect, Any, list[str]]:
    """Return the pools that the deployed workflows name, and the chosen ones."""
    rows = yield Query(tables.MAIL, keys.chosen_pools(tenant), limit=_CHOSEN_MAX)
    return sorted({*pools_of(known), *(str(row["sk"]) for row in rows)})


def _named_in(value: Json) -> Iterator[str]:
    level = [value]
    while level:
        part = level.pop()
        if isinstance(part, dict):
            resource = part.get("Resource")
            if isinstance(resource, str) and resource.startswith(POOL) and resource != CHOSEN_POOL:
                yield resource.removeprefix(POOL)
            level += part.values()
        elif isinstance(part, list):
            level += part


def workers_of(tenant: str, pool: str, now_ms: int) -> Generator[Effect, Any, list[PoolWorkerRow]]:
    """Return the workers that are there."""
    rows = yield Query(tables.MAIL, keys.pool_workers(tenant, pool))
    found = map(PoolWorkerRow.of, rows)
    return [worker for worker in found if worker.seen_ms > now_ms - PRESENT_MS]


@dataclass(frozen=True, slots=True)
class Unserved:
    """The longest wait of a pool for a worker that has its task."""

    pool: str
    run: str
    name: str | None
    workflow: str
    state: str
    task: str
    since_ms: int


def unserved(known: Lookup, tenant: str) -> Generator[Effect, Any, list[Unserved]]:
    """Return, for each pool, the task that has waited longest, when no worker that is there has
    it. A task that a pause holds waits for no worker.
    """
    now_ms = yield Clock()
    found = []
    for pool in (yield from _used_pools(known, tenant)):
        workers = yield from workers_of(tenant, pool, now_ms)
        served = {task for worker in workers for task in worker.tasks}
        found += yield from _unserved_in(tenant, pool, served, now_ms)
    return found


def _unserved_in(
    tenant: str, pool: str, served: set[str], now_ms: int
) -> Generator[Effect, Any, list[Unserved]]:
    rows = yield from _due_rows(tenant, pool, now_ms - PATIENCE_MS)
    if rows:
        paused = yield from paused_scopes(now_ms)
        rows = [row for row in rows if not is_held(row, paused)]
    for row in rows[:_LOOKED_AT_MAX]:
        run, entry, attempt = str(row["run"]), int(row["entry"]), int(row["attempt"])
        try:
            execution = yield from execution_of(tenant, run)
        except HoldfastError as error:
            if is_passing(error):
                raise
            # The `doctor` reports a log that cannot be read in a finding of its own.
            continue
        offer = None if execution is None else open_offer(execution, entry, attempt)
        if execution is None or offer is None or offer.text("task") in served:
            continue
        if execution.paused is not None:
            continue
        frame = execution.frame_of(entry)
        state = "" if frame is None else frame.position
        named = (execution.name, execution.workflow, state, offer.text("task"))
        return [Unserved(pool, run, *named, _due_ms(row))]
    return []


def _due_rows(tenant: str, pool: str, now_ms: int) -> Generator[Effect, Any, list[Item]]:
    partition, until = keys.pool_tasks(tenant, pool), keys.due_until(now_ms)
    return list((yield Query(tables.MAIL, partition, until=until, limit=COUNTED_MAX)))


def _due_ms(row: Item) -> int:
    return int(str(row["sk"]).partition("#")[0])


def _shown(worker: PoolWorkerRow) -> dict[str, Any]:
    return {
        "worker": worker.name,
        "since": iso_time(worker.since_ms),
        "seen": iso_time(worker.seen_ms),
        "slots": worker.slots,
        "busy": worker.busy,
        "tasks": list(worker.tasks),
    }


# -- one execution ---------------------------------------------------------------------------------


def with_workers(
    tenant: str, run: str, waits: list[dict[str, Any]]
) -> Generator[Effect, Any, list[dict[str, Any]]]:
    """Return the waits, each task that a worker has with the worker's name, its start, its last
    heartbeat and its progress. Costs two reads for each of them, and one for each other task with
    heartbeats.
    """
    found = list[dict[str, Any]]()
    for wait in waits:
        more: dict[str, Any] = {}
        if wait["kind"] == "pool" and wait.pop("begun"):
            more = yield from _worker_of(tenant, run, wait)
        elif wait["kind"] == "container" or (wait["kind"] == "task" and "entry" in wait):
            beat = yield from heartbeats.load(heartbeats.Step(tenant, run, wait["entry"]))
            beat_ms = heartbeats.last_ms(beat)
            more = {"heartbeat": iso_time(beat_ms)} if beat_ms else {}
            more |= _progress(beat)
        found.append({**wait, **more})
    return found


def _worker_of(
    tenant: str, run: str, wait: Mapping[str, Any]
) -> Generator[Effect, Any, dict[str, Any]]:
    inbox = keys.inbox(tenant, run)
    taken = yield Get(tables.MAIL, inbox, keys.taken(wait["entry"], wait["attempt"]))
    beat = yield from heartbeats.load(heartbeats.Step(tenant, run, wait["entry"]))
    if taken is None:
        return {}
    begun_ms = int(taken["at"])
    # The item may be that of an earlier attempt. Then its time is before the begin of this attempt.
    beat_ms = max(begun_ms, heartbeats.last_ms(beat))
    worker = str(taken.get("worker", ""))
    times = {"begun": iso_time(begun_ms), "heartbeat": iso_time(beat_ms)}
    return {"worker": worker, **times, **_progress(beat)}


def _progress(beat: Item | None) -> dict[str, Any]:
    progress = heartbeats.progress_in(beat)
    return {} if progress is None else {"progress": progress}
