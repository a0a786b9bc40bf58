"""The lines that tasks have logged on a deployed stack, read from CloudWatch Logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.errors import RequestError
from holdfast.remote.connecting import aws_session

#: The most lines that are read. For an execution with more lines, a search in CloudWatch is better.
LINES_MAX: Final = 10_000
#: The logical id of a log group contains this text if its function runs tasks. Other groups are not
#: searched.
_WORKER: Final = "Worker"
#: Lines are read for this long after the end of an execution, because a task that has timed out may
#: still write some.
_LATE: Final = timedelta(minutes=15)


def read_lines(stack: str, execution: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the log lines of an execution, and of those that it called. `execution` is the API's
    description.

    Raises RequestError HF276, HF293.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        session = aws_session()
        found = list(_lines(session.create_client("logs"), _groups(session, stack), execution))
    except (BotoCoreError, ClientError) as error:
        raise RequestError(
            "HF293",
            f"the logs of stack {stack} cannot be read: {error}",
            help="allow cloudformation:ListStackResources and logs:FilterLogEvents",
        ) from None
    return sorted(found, key=lambda row: str(row.get("timestamp", "")))


def _groups(session: Any, name: str) -> list[str]:
    """Return the log groups of a stack's workers; for `Shop/Flows`, those of the construct
    `Flows`.
    """
    stack, _, construct = name.partition("/")
    formation = session.create_client("cloudformation")
    pages = formation.get_paginator("list_stack_resources").paginate(StackName=stack)
    groups = [
        str(resource["PhysicalResourceId"])
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::Logs::LogGroup"
        and _is_of_worker(resource["LogicalResourceId"], construct)
    ]
    if not groups:
        raise RequestError(
            "HF276",
            f"stack {stack} has no log group of a worker",
            help="name a stack that was deployed from Holdfast's CDK app",
        )
    return groups


def _is_of_worker(logical_id: str, construct: str) -> bool:
    return logical_id.startswith(f"{construct}{_WORKER}") if construct else _WORKER in logical_id


def _lines(logs: Any, groups: list[str], execution: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    span = {"startTime": _ms(execution.get("started"), timedelta())}
    span["endTime"] = _ms(execution.get("stopped"), _LATE)
    for group in groups:
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=group,
            # The asterisk includes the executions that this one called, because their ids begin
            # with its id.
            filterPattern=f'{{ $.execution_id = "{execution["execution"]}*" }}',
            PaginationConfig={"MaxItems": LINES_MAX},
            **{name: moment for name, moment in span.items() if moment is not None},
        )
        for page in pages:
            rows = (_row(event["message"]) for event in page["events"])
            yield from (row for row in rows if _is_of(row, execution["execution"]))


def _row(message: str) -> Any:
    try:
        return json.loads(message)
    except ValueError:
        return None


def _is_of(row: Any, run: str) -> bool:
    """Return True for a line of the execution. An emulator of AWS may ignore the pattern."""
    return isinstance(row, dict) and str(row.get("execution_id", "")).startswith(run)


def _ms(time: str | None, later: timedelta) -> int | None:
    if time is None:
        return None
    return int((datetime.fromisoformat(time) + later).timestamp() * 1_000)
