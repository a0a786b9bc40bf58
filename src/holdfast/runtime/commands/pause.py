"""Pause and resume of one execution: the fields of each request, and the reasons for refusals.

Like a stop, both store a control message and wake the execution; a worker applies the message.
docs/explanation/waits.md defines a pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.core.decision import iso_time
from holdfast.core.state import PAUSE_TIMERS, Execution, Pause
from holdfast.errors import RequestError
from holdfast.runtime import inbox
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.commands.fields import reason_and_author
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, JsonResult

_FREEZE: Final = PAUSE_TIMERS[0]


def pause(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Store a pause. `request`: reason, by?, timers? ("freeze", the default, or "run").

    Return `execution` and `timers`. If the execution is already paused with the same reason and
    timers, also return `since`, and change nothing. Raises RequestError HF234 (400), HF235 (409),
    HF237 (409).
    """
    words = reason_and_author(request)
    timers = request.get("timers", _FREEZE)
    if timers not in PAUSE_TIMERS:
        raise RequestError("HF234", f"`timers` is {timers!r:.40}, expected freeze or run")
    log = yield from known.require_log(tenant, identifier)
    answer = {"execution": log.run, "timers": timers}
    if log.state is not None:
        before = _require_running(log.state).paused
        if before is not None:
            return {
                **answer,
                "since": iso_time(_require_same(before, words["reason"], timers).since_ms),
            }
        if log.state.stopping is not None:
            raise RequestError(
                "HF237",
                f"execution {log.run} is being stopped, and an undo cannot be paused",
                status=409,
                help="see `holdfast show`; `holdfast stop ID --now` ends it without the undo",
            )
    now_ms = yield Clock(is_for_id=True)
    fields = {"kind": inbox.PAUSE, "timers": timers, **words}
    yield from request_control(tenant, log.run, log.state, (now_ms, chance), fields)
    return answer


def resume(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Store a resume. `request`: reason, by?. Raises RequestError HF234 (400), HF236 (409), HF237
    (409).
    """
    words = reason_and_author(request)
    log = yield from known.require_log(tenant, identifier)
    if log.state is None or _require_running(log.state).paused is None:
        raise RequestError(
            "HF236",
            f"execution {log.run} is not paused",
            status=409,
            help="see `holdfast show`: a resume that was sent before has been applied, "
            "or a pause has not been applied yet",
        )
    now_ms = yield Clock(is_for_id=True)
    fields = {"kind": inbox.RESUME, **words}
    yield from request_control(tenant, log.run, log.state, (now_ms, chance), fields)
    return {"execution": log.run}


def _require_running(state: Execution) -> Execution:
    if state.is_ended:
        raise RequestError(
            "HF237",
            f"execution {state.run} has ended as {state.status}: it can be neither paused nor "
            "resumed",
            status=409,
            help="see `holdfast show`",
        )
    return state


def _require_same(before: Pause, reason: str, timers: str) -> Pause:
    if (before.reason, before.timers) != (reason, timers):
        by = f" by {before.by}" if before.by else ""
        raise RequestError(
            "HF235",
            f"the execution is paused since {iso_time(before.since_ms)}{by}, timers "
            f"{before.timers}: {before.reason}",
            status=409,
            help="resume it first: `holdfast resume ID --reason …`",
        )
    return before
