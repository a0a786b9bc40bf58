"""Stop an execution: it ends as ABORTED, after it has undone its work unless `now` is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.runtime.commands import fields
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, JsonResult


def stop(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Store a stop. `request`: error?, cause?, now?. With `now` the execution runs no more undo
    steps.

    The response says only that the stop is stored. If the execution ends first, it keeps its own
    status. Raises RequestError HF207, HF214, HF233.
    """
    log = yield from known.require_log(tenant, identifier)
    now_ms = yield Clock(is_for_id=True)
    wanted: dict[str, str | int] = {
        **fields.error_and_cause(request),
        **fields.flag(request, "now"),
    }
    yield from request_control(tenant, log.run, log.state, (now_ms, chance), wanted)
    return {"execution": log.run, **({"now": True} if "now" in wanted else {})}
