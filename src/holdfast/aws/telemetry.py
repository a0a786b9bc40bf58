"""Metrics and log lines of a function: CloudWatch embedded metrics and one JSON line per fault.

Written by hand because it stands on the worker's start path, where a metrics library would cost a
third of the cold start. Metrics and faults never hold a payload, a token or a name that a user
chose. The lines of tasks hold what their author logs.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast import resources
from holdfast.errors import BUG, HoldfastError
from holdfast.runtime.effects import Measure
from holdfast.task_logs import JsonLines, TasksOrWarnings, add_keys

_CLOUDWATCH_UNITS: Final = {"Count": "Count", "Seconds": "Seconds", "Bytes": "Bytes"}

Write = Callable[[str], Any]


class Metrics:
    """Adds up what one invocation measures: counts are summed, the longest time is kept."""

    def __init__(self, stack: str) -> None:
        self._stack = stack
        self._lock = threading.Lock()
        self._values: dict[str, tuple[float, str]] = {}

    def __call__(self, measure: Measure) -> None:
        is_count = measure.unit == "Count"
        with self._lock:  # the messages of a batch measure side by side
            value, _ = self._values.get(measure.name, (0.0, measure.unit))
            added = value + measure.value if is_count else max(value, measure.value)
            self._values[measure.name] = (added, measure.unit)

    def flush(self, now_ms: int, write: Write = sys.stdout.write) -> None:
        values, self._values = self._values, {}
        if values:
            write(json.dumps(_embedded(self._stack, values, now_ms)) + "\n")


def _embedded(stack: str, values: dict[str, tuple[float, str]], now_ms: int) -> dict[str, Any]:
    """Source: CloudWatch embedded metric format specification."""
    metrics = [
        {"Name": name, "Unit": _CLOUDWATCH_UNITS[unit]} for name, (_, unit) in values.items()
    ]
    directive = {
        "Namespace": resources.METRICS_NAMESPACE,
        "Dimensions": [[resources.METRICS_DIMENSION]],
        "Metrics": metrics,
    }
    return {
        "_aws": {"Timestamp": now_ms, "CloudWatchMetrics": [directive]},
        resources.METRICS_DIMENSION: stack,
        **{name: value for name, (value, _) in values.items()},
    }


#: The variables of Powertools Logger that hold for all lines of tasks.
_ENV_LEVEL: Final = "POWERTOOLS_LOG_LEVEL"
_ENV_SERVICE: Final = "POWERTOOLS_SERVICE_NAME"


def log_to_cloudwatch(environment: Mapping[str, str]) -> None:
    """Write what tasks log, and all warnings, as JSON lines.

    Lambda's own handler is replaced: it writes text, in which CloudWatch cannot filter by key.
    """
    add_keys()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        JsonLines(environment.get(_ENV_SERVICE) or environment[resources.ENV_STACK])
    )
    handler.addFilter(TasksOrWarnings())
    logging.root.handlers[:] = [handler]
    levels = logging.getLevelNamesMapping()
    logging.root.setLevel(levels.get(environment.get(_ENV_LEVEL, "").upper(), logging.INFO))


def log_fault(what: str, error: Exception, write: Write = sys.stdout.write, **ids: str) -> None:
    """Log the error's code and kind and the ids that it concerns; never its values.

    The text of a foreign exception may quote the data that caused it. Only its class is logged,
    under HF900.
    """
    line = {"level": "ERROR", "what": what, "error": type(error).__name__, **ids}
    if isinstance(error, HoldfastError):
        line |= {"code": error.code, "message": error.message[:500]}
    else:
        line["code"] = BUG
    write(json.dumps(line) + "\n")
