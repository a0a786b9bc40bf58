"""The log lines of tasks under `serve`: printed on the terminal, and kept for `holdfast logs`.

Only the last lines of the last executions are kept in memory, so that `serve` does not grow. The
lines of an execution and of all executions that it calls are kept together: an operator who
searches for an error rarely knows which of them has logged it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from holdfast.task_logs import (
    PlainLines,
    TasksOrWarnings,
    add_keys,
    keys_of,
    time_of,
    traceback_text,
)
from holdfast.trace_ids import root_of

EXECUTIONS_MAX: Final = 500
LINES_MAX: Final = 200
_LINE_CHARACTERS_MAX: Final = 10_000


class TaskLines(logging.Handler):
    """Keeps lines, grouped by the outermost execution."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: OrderedDict[str, deque[dict[str, Any]]] = OrderedDict()
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        keys = keys_of(record)
        if "correlation_id" not in keys:
            return
        row = {
            "timestamp": time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage()[:_LINE_CHARACTERS_MAX],
            **keys,
        }
        text = traceback_text(_PLAIN, record)
        if text:
            row["exception"] = text[:_LINE_CHARACTERS_MAX]
        with self._guard:
            rows = self._kept.setdefault(keys["correlation_id"], deque(maxlen=LINES_MAX))
            self._kept.move_to_end(keys["correlation_id"])
            if len(self._kept) > EXECUTIONS_MAX:
                self._kept.popitem(last=False)
            rows.append(row)

    def of(self, run: str) -> list[dict[str, Any]]:
        """Return the lines of an execution and of those that it called, the oldest first."""
        with self._guard:
            rows = list(self._kept.get(root_of(run), ()))
        return [row for row in rows if f"{row['execution_id']}.".startswith(f"{run}.")]


_PLAIN: Final = PlainLines()


@contextmanager
def task_lines() -> Iterator[TaskLines]:
    """In this context, print and keep what tasks log with the level INFO or higher."""
    kept, shown = TaskLines(), logging.StreamHandler(sys.stderr)
    shown.setFormatter(_PLAIN)
    shown.addFilter(TasksOrWarnings())
    root, factory = logging.root, logging.getLogRecordFactory()
    level = root.level
    add_keys()
    root.setLevel(min(level, logging.INFO) if level else logging.INFO)
    for handler in (kept, shown):
        root.addHandler(handler)
    try:
        yield kept
    finally:
        for handler in (kept, shown):
            root.removeHandler(handler)
        root.setLevel(level)
        logging.setLogRecordFactory(factory)
