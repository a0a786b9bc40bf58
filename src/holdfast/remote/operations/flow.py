"""The operations on pauses, schedules and limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from holdfast.remote.answers import Json
from holdfast.remote.operations.requests import (
    Call,
    Operation,
    get,
    path_part,
    post,
    query_text,
    send,
)


def change_pause(
    reason: str,
    *,
    paused: bool,
    task: str | None = None,
    workflow: str | None = None,
    all: bool | None = None,  # noqa: A002
    until: datetime | None = None,
    by: str | None = None,
) -> Operation[Json]:
    """Pause or resume one task, one workflow, or with `all` the whole stack."""
    fields = {
        "reason": reason,
        "paused": paused,
        "task": task,
        "workflow": workflow,
        "all": all,
        "until": None if until is None else until.astimezone().isoformat(),
        "by": by,
    }
    return (yield from post("/pauses", fields))


def pauses() -> Operation[list[Json]]:
    """Return the pauses of tasks, workflows and the stack."""
    return list((yield from get("/pauses"))["pauses"])


def schedules() -> Operation[list[Json]]:
    """Return the schedules, by name."""
    return list((yield from get("/schedules"))["schedules"])


def schedule(name: str) -> Operation[Json]:
    """Return one schedule with its next nominal times."""
    return (yield from get(_schedule(name)))


def create_schedule(fields: Mapping[str, object]) -> Operation[Json]:
    """Create a schedule. `fields`: those of `POST /schedules`."""
    return (yield from post("/schedules", fields))


def change_schedule(
    name: str,
    change: Literal["pause", "resume", "backfill"],
    fields: Mapping[str, object],
) -> Operation[Json]:
    """Pause or resume a schedule (`reason`, `by`), or make up for a range of past times (`since`,
    `until`).
    """
    return (yield from post(f"{_schedule(name)}/{change}", fields))


def delete_schedule(name: str) -> Operation[Json]:
    """Delete a schedule that was created by a command. Executions that it has started continue."""
    return (yield from send(Call("DELETE", _schedule(name))))


def _schedule(name: str) -> str:
    return f"/schedules/{path_part('the schedule', name)}"


def limits() -> Operation[list[Json]]:
    """Return the limits of tasks and of workflows, and their queues."""
    return list((yield from get("/limits"))["limits"])


def limit(name: str, *, key: str | None = None) -> Operation[Json]:
    """Return one limit. `key` is a value of its key parameter; then the queue of that value is
    included.
    """
    return (yield from get(f"/limits/{path_part('the limit', name)}{query_text({'key': key})}"))


def change_limit(
    name: str,
    reason: str,
    *,
    by: str | None = None,
    rate: float | None = None,
    burst: int | None = None,
    concurrency: int | None = None,
    paused: bool | None = None,
    clear: bool | None = None,
) -> Operation[Json]:
    """Change a limit's values, or restore those of the code."""
    fields = {
        "reason": reason,
        "by": by,
        "rate": rate,
        "burst": burst,
        "concurrency": concurrency,
        "paused": paused,
        "clear": clear,
    }
    return (yield from post(f"/limits/{path_part('the limit', name)}", fields))
