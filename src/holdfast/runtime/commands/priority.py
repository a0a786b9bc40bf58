"""Change the priority of a running execution. Like a pause it is a control message.

The worker that applies it moves the rows of waiting attempts to their new places in the queues of
limits. Child executions keep the priority with which they began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import RequestError
from holdfast.runtime import inbox
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.commands.fields import priority_of, reason_and_author
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, Item, JsonResult


def change_priority(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Store a new priority. `request`: priority (0, the first, to 9), reason, by?.

    Return `execution` and `priority`. Raises RequestError HF204, HF234 (400), HF237 (409).
    """
    if "priority" not in request:
        raise RequestError("HF204", "`priority` is missing", help="0 goes first, 9 last")
    fields: Item = {"priority": priority_of(request), **reason_and_author(request)}
    log = yield from known.require_log(tenant, identifier)
    if log.state is not None and log.state.is_ended:
        raise RequestError(
            "HF237",
            f"execution {log.run} has ended as {log.state.status}: it waits in no queue",
            status=409,
            help="see `holdfast show`",
        )
    now_ms = yield Clock()
    wanted = {"kind": inbox.PRIORITY, **fields}
    yield from request_control(tenant, log.run, log.state, (now_ms, chance), wanted)
    return {"execution": log.run, "priority": fields["priority"]}
