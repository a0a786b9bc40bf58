"""Log lines of tasks: each has data about the running attempt, whichever logger wrote it.

A task logs with Python's `logging`, or with a library that uses it. The data are attributes of each
log record that a running attempt creates. So every formatter that shows extra attributes shows
them: those below, Powertools Logger and python-json-logger. Attributes have the names of Powertools
Logger where it has one.

A thread that a task starts does not have these attributes. To get them, run its function in a copy
of the context (`contextvars.copy_context().run`).
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.api.task_context import is_in_engine, task_context

#: The fields of a log record that identify the running attempt.
KEYS: Final = (
    *("execution_id", "execution_name", "workflow", "task"),
    *("attempt", "correlation_id"),
)
_make_record: Final = logging.getLogRecordFactory()


def add_keys() -> None:
    """Add the data of the running attempt to each log record of this process."""
    logging.setLogRecordFactory(_record)


def keys_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the data of the attempt that created the record; {} outside of tasks."""
    found = {key: getattr(record, key, None) for key in KEYS}
    return {key: value for key, value in found.items() if value is not None}


def _record(*arguments: Any, **named: Any) -> logging.LogRecord:
    record = _make_record(*arguments, **named)
    if is_in_engine():
        context = task_context()
        record.execution_id = context.execution
        record.execution_name = context.name
        record.workflow = context.workflow
        record.task = context.task
        record.attempt = context.attempt
        record.correlation_id = context.correlation_id
    return record


class TasksOrWarnings(logging.Filter):
    """A filter that passes every record of a task, and only warnings and errors of other code."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or hasattr(record, "execution_id")


class JsonLines(logging.Formatter):
    """One JSON object a line, with the keys of Powertools Logger."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "level": record.levelname,
            "location": f"{record.funcName}:{record.lineno}",
            "message": record.getMessage(),
            "timestamp": time_of(record),
            "service": self._service,
            "logger": record.name,
            **keys_of(record),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["exception_name"] = type(error).__name__
        text = traceback_text(self, record)
        if text:
            line["exception"] = text
        return json.dumps(line, ensure_ascii=False, default=str)


class PlainLines(logging.Formatter):
    """Formats lines for a terminal: the message, then the data, and a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time_of(record)[11:23]
        keys = " ".join(f"{key}={value}" for key, value in keys_of(record).items())
        line = f"{clock} {record.levelname:<7} {record.name}: {record.getMessage()}  {keys}"
        text = traceback_text(self, record)
        return f"{line.rstrip()}\n{text}" if text else line.rstrip()


def time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def traceback_text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the traceback of the record's exception, or the one that Holdfast has already
    shortened.
    """
    own: str | None = getattr(record, "exception", None)
    if own is not None:
        return own
    return formatter.formatException(record.exc_info) if record.exc_info else ""
