"""Tasks that are offered to pollers: of an activity, and of a pool."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.core.state import Awaiting, Execution
from holdfast.runtime.effects import Effect, Item, Query
from holdfast.runtime.gates.rules import settings_of
from holdfast.runtime.gates.scopes import ALL, SCOPE_PREFIX, Scope
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log


def execution_of(tenant: str, run: str) -> Generator[Effect, Any, Execution | None]:
    """Return the execution of an offered task, as its log has it."""
    log = Log(tenant, run, "api", "")
    yield from log.load()
    return log.state


def open_offer(execution: Execution, entry: int, attempt: int) -> Awaiting | None:
    """Return the wait of the task; None when a poller took the task, it has ended, or another
    attempt replaced it.
    """
    frame = execution.frame_of(entry)
    waiting = None if frame is None else frame.waiting
    if not isinstance(waiting, Awaiting) or waiting.attempt != attempt or waiting.is_begun:
        return None
    return waiting


def paused_scopes(now_ms: int) -> Generator[Effect, Any, frozenset[str]]:
    """Return the gates of the scopes that operators have paused. Costs one query."""
    items = yield Query(tables.MAIL, keys.LIMIT_SETTINGS, begins_with=SCOPE_PREFIX)
    return frozenset(str(item["sk"]) for item in items if settings_of(item).is_paused_at(now_ms))


def is_held(row: Item, paused: frozenset[str]) -> bool:
    """Return True when a paused scope covers the task of a pool's row."""
    scopes = (ALL, Scope("workflow", str(row.get("workflow"))), Scope("task", str(row["task"])))
    return not paused.isdisjoint(scope.gate for scope in scopes)
