"""Queries of CloudWatch Logs Insights over the lines that `aws/telemetry.py` writes.

The labels of a measurement are fields of its line: `Workflow`, `StateMachine`, `Task`, `Error`,
`Wait`, `Target`, `Limit`, `Action`. CloudWatch bills a query by what it scans, and stores nothing.
"""

from __future__ import annotations

from typing import Final

from holdfast import resources

_ROWS: Final = 20
_FLOW: Final = "coalesce(StateMachine, Workflow) as Flow"


def _query(condition: str, field: str, *, stats: str, by: str, order: str) -> str:
    return "\n| ".join(
        [
            f"filter {condition}",
            f"fields {field}",
            f"stats {stats} by {by}",
            f"sort {order} desc",
            f"limit {_ROWS}",
        ]
    )


def _total(metric: str, by: str) -> str:
    stats = f"sum({metric}) as Total, max(@timestamp) as Last"
    return _query(f"ispresent({metric})", _FLOW, stats=stats, by=by, order="Total")


FAILURES: Final = _total(resources.METRIC_EXECUTIONS_FAILED, "Flow, Task, Error")
RETRIES: Final = _total(resources.METRIC_TASK_RETRIES, "Flow, Task, Error")
ACTIONS: Final = _total(resources.METRIC_OPERATOR_ACTIONS, "Flow, Action")
STUCK: Final = _total(resources.METRIC_EXECUTIONS_STUCK, "Flow")
WAITS: Final = _query(
    f"ispresent({resources.METRIC_OLDEST_WAIT})",
    f"{_FLOW}, {resources.METRIC_OLDEST_WAIT} / 3600 as Hours",
    stats="max(Hours) as OldestHours",
    by="Flow, Wait, Target",
    order="OldestHours",
)
OPEN: Final = _query(
    f"ispresent({resources.METRIC_OPEN})",
    _FLOW,
    stats=f"max({resources.METRIC_OPEN}) as Open",
    by="bin(5m) as At, Flow, Wait",
    order="At desc, Open",
)
LIMITS: Final = _query(
    f"ispresent({resources.METRIC_LIMIT_WAIT})",
    _FLOW,
    stats=f"max({resources.METRIC_LIMIT_WAIT}) as LongestSeconds",
    by="Limit, Flow",
    order="LongestSeconds",
)
POOLS: Final = _query(
    f"ispresent({resources.METRIC_POOL_WAITING})",
    "Target as Pool",
    stats=f"max({resources.METRIC_POOL_WAITING}) as Waiting, "
    f"min({resources.METRIC_POOL_WORKERS}) as Workers, "
    f"max({resources.METRIC_POOL_OLDEST}) as LongestSeconds",
    by="bin(5m) as At, Pool",
    order="At desc, Waiting",
)
LOST_LOG_EVENTS: Final = _total(resources.METRIC_LOG_EVENTS_LOST, "Flow, Error")
LAGS: Final = _query(
    f"ispresent({resources.METRIC_SCHEDULER_LAG}) or ispresent({resources.METRIC_TIMER_LAG})",
    _FLOW,
    stats=f"max({resources.METRIC_SCHEDULER_LAG}) as Scheduler, "
    f"max({resources.METRIC_TIMER_LAG}) as Timers",
    by="Flow",
    order="Scheduler",
)
CONTENTION: Final = _query(
    f"ispresent({resources.METRIC_LEASES_EXPIRED}) or "
    f"ispresent({resources.METRIC_APPEND_CONFLICTS})",
    _FLOW,
    stats=f"sum({resources.METRIC_LEASES_EXPIRED}) as Leases, "
    f"sum({resources.METRIC_APPEND_CONFLICTS}) as Conflicts",
    by="Flow",
    order="Leases",
)
