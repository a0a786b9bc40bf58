"""The operations on events, and on requests with a reply."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from holdfast.remote.answers import Json
from holdfast.remote.errors import ReplyTimeout, RequestRejected
from holdfast.remote.operations.requests import (
    POLL_GROWTH,
    POLL_SECONDS,
    POLL_SECONDS_MAX,
    Now,
    Operation,
    Sleep,
    get,
    path_part,
    post,
    query_text,
)


def event(
    name: str,
    key: str,
    data: object = None,
    *,
    id: str | None = None,  # noqa: A002
    execution: str | None = None,
    at: datetime | None = None,
    error: str | None = None,
    cause: str | None = None,
) -> Operation[Json]:
    """Send an event, which the first execution that waits for it uses. If it is sent twice with the
    same `id`, it counts once. With `execution` only that one may use it. `data` is None for an
    event that the workflow declares with None. With `error` in place of data, `wait_for_event`
    raises the error of this name, with the text `cause`. With `at` it is sent at that time, by the
    execution whose id the result has as `later`.
    """
    moment = None if at is None else at.isoformat()
    fields = {"name": name, "key": key, "id": id, "execution": execution, "at": moment}
    return (yield from post("/events", {**fields, "error": error, "cause": cause}, data=data))


def request(
    name: str,
    key: str,
    data: object = None,
    *,
    id: str | None = None,  # noqa: A002
    execution: str | None = None,
    timeout: float | None = 60.0,
) -> Operation[Any]:
    """Send a request to an execution that waits for such requests, and return its reply as JSON. If
    a request is sent twice with the same `id`, it counts once.

    Raises RequestRejected. Raises ReplyTimeout after `timeout` seconds, with the id for `reply`.
    """
    fields = {"name": name, "key": key, "id": id, "execution": execution}
    asked = yield from post("/requests", fields, data=data)
    return (yield from reply(asked["request"], timeout))


def reply(request: str, timeout: float | None = None) -> Operation[Any]:
    """Return the reply to a request that was sent earlier.

    Raises RequestRejected, and ReplyTimeout after `timeout` seconds.
    """
    deadline = math.inf if timeout is None else (yield Now()) + timeout
    interval = POLL_SECONDS
    while True:
        found = yield from get(f"/requests/{path_part('the request', request)}")
        match found["status"]:
            case "ANSWERED":
                return found["output"]
            case "REJECTED":
                raise RequestRejected(request, found["error"], found["cause"])
        if (yield Now()) >= deadline:
            assert timeout is not None
            raise ReplyTimeout(request, timeout)
        yield Sleep(max(0.0, min(interval, deadline - (yield Now()))))
        interval = min(interval * POLL_GROWTH, POLL_SECONDS_MAX)


def events(name: str | None = None, key: str | None = None) -> Operation[list[Json]]:
    """Return the stored events with a name and key, the oldest first. Without them return the
    newest events for which no execution has waited.
    """
    found = yield from get(f"/events{query_text({'name': name, 'key': key})}")
    return list(found["events"])


def drop_event(
    name: str,
    key: str,
    id: str,  # noqa: A002
    reason: str,
    *,
    by: str | None = None,
) -> Operation[Json]:
    """Drop a stored event: no execution can use it from now on, and the caller of a request gets a
    rejection. `used_by` in the result names the executions that have already used it.
    """
    fields = {"name": name, "key": key, "id": id, "reason": reason, "by": by}
    return (yield from post("/events/drop", fields))
