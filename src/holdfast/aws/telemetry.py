"""Metrics and log lines of a Lambda function: CloudWatch's embedded metrics, and one JSON line for
each fault.

No library is used, because every worker imports this module: a metrics library would take a third
of its start time. Metrics and faults never contain a payload, a token, or a name that a caller
chose, except for the name of a state machine. The log lines of tasks contain what their author
logs.
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
from holdfast.runtime.effects import Labels, Measure
from holdfast.task_logs import JsonLines, TasksOrWarnings, add_keys

_CLOUDWATCH_UNITS: Final = {"Count": "Count", "Seconds": "Seconds", "Bytes": "Bytes"}

Write = Callable[[str], Any]


#: The name that each label has in a log line, in the order of the fields of `Labels`.
LABEL_FIELDS: Final = (
    *(resources.METRICS_WORKFLOW_DIMENSION, "StateMachine", "Task", "Error"),
    *("Wait", "Target", "Limit", "Action"),
)
_Values = dict[str, tuple[float, str]]


class Metrics:
    """Collects the measurements of one invocation: counts are added up, of durations the longest is
    kept.

    `flush` writes one line for each combination of labels at the end of the invocation. An
    invocation for one execution writes one line, and one more for each error that occurred.
    """

    def __init__(self, stack: str) -> None:
        self._stack = stack
        self._lock = threading.Lock()
        self._values: dict[Labels, _Values] = {}

    def __call__(self, measure: Measure) -> None:
        is_count = measure.unit == "Count"
        # The messages of a batch have a thread each, and these threads add measurements at the same
        # time.
        with self._lock:
            values = self._values.setdefault(measure.labels, {})
            known = values.get(measure.name)
            value = 0.0 if known is None else known[0]
            added = value + measure.value if is_count else max(value, measure.value)
            values[measure.name] = (added, measure.unit)

    def flush(self, now_ms: int, write: Write = sys.stdout.write) -> None:
        with self._lock:
            found, self._values = self._values, {}
        for labels, values in found.items():
            write(json.dumps(_embedded(self._stack, labels, values, now_ms)) + "\n")


def _embedded(stack: str, labels: Labels, values: _Values, now_ms: int) -> dict[str, Any]:
    """Return one line in CloudWatch's embedded metric format, as its specification requires."""
    fields = {field: label for field, label in zip(LABEL_FIELDS, labels, strict=True) if label}
    if labels.state_machine:
        fields[resources.METRICS_WORKFLOW_DIMENSION] = resources.METRICS_STATE_MACHINES
    directives = _directives(values)
    return {
        **({"_aws": {"Timestamp": now_ms, "CloudWatchMetrics": directives}} if directives else {}),
        resources.METRICS_DIMENSION: stack,
        **fields,
        **{name: value for name, (value, _) in values.items()},
    }


def _directives(values: _Values) -> list[dict[str, Any]]:
    """Return which values of a line CloudWatch stores as metrics, and with which dimensions."""
    stack = [resources.METRICS_DIMENSION]
    workflow = [*stack, resources.METRICS_WORKFLOW_DIMENSION]
    by_workflow = resources.METRICS_BY_WORKFLOW & values.keys()
    by_stack = values.keys() - resources.METRICS_IN_LOGS_ONLY
    return [
        {
            "Namespace": resources.METRICS_NAMESPACE,
            "Dimensions": dimensions,
            "Metrics": [
                {"Name": name, "Unit": _CLOUDWATCH_UNITS[unit]}
                for name, (_, unit) in values.items()
                if name in names
            ],
        }
        for dimensions, names in (([stack], by_stack), ([workflow], by_workflow))
        if names
    ]


#: The environment variables of Powertools Logger that Holdfast applies to all log lines of tasks.
_ENV_LEVEL: Final = "POWERTOOLS_LOG_LEVEL"
_ENV_SERVICE: Final = "POWERTOOLS_SERVICE_NAME"


def log_to_cloudwatch(environment: Mapping[str, str]) -> None:
    """Write the log lines of tasks, and all warnings, as JSON lines.

    This replaces Lambda's own log handler, which writes text: CloudWatch cannot filter text by key.
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
    """Log the error's code and kind, and the ids that it concerns; never its values.

    The text of another library's exception may quote the data that caused it. So only its class is
    logged, under HF900.
    """
    line = {"level": "ERROR", "what": what, "error": type(error).__name__, **ids}
    if isinstance(error, HoldfastError):
        line |= {"code": error.code, "message": error.message[:500]}
    else:
        line["code"] = BUG
    write(json.dumps(line) + "\n")
