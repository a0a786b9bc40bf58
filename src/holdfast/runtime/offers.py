"""Tasks that are offered to pollers: of an activity, and of a pool."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.core.state import Awaiting, Execution
from holdfast.runtime.effects import Effect
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
