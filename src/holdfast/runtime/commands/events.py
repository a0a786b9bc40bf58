"""Events: from a caller, a workflow or the event bus. `stored_events.py` stores them, and `kept.py`
lists and drops those that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import RequestError
from holdfast.limits import FAILED_EVENT, REQUEST_SUFFIX
from holdfast.runtime import kept_events
from holdfast.runtime.commands import requests
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.stored_events import checked, store
from holdfast.runtime.effects import Clock, JsonResult
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.json_values import printable, require_plain


def event(
    known: Lookup,
    tenant: str,
    request: Mapping[str, Any],
    chance: bytes,
    *,
    is_own: bool = False,
) -> JsonResult:
    """Store an event. `request`: name, key, data or error and cause?, id?, execution?. Return its
    id, and how many executions it woke: they have waited for such an event, and may have ended
    since. `dropped`: it was sent before, and then dropped.

    With `execution` only that one may use it. An event that starts a keyed workflow belongs to the
    execution that runs for its key: the result names it. If it starts several workflows, the result
    has `executions`, by workflow.

    An event that the workflows take with `receive` alone is a request: its sender does not wait for
    the reply, which is stored under the id of the event.

    `is_own`: Holdfast itself sends the event.

    Raises RequestError HF202, HF203, HF206, HF211, HF213, HF233; ServiceFault HF562.
    """
    name = request.get("name")
    _require_free_name(name, is_own=is_own)
    if isinstance(name, str) and known.is_received(name):
        told = yield from requests.request(known, tenant, request, chance)
        return {"event": told.pop("request"), **told}
    wanted = yield from checked(known, tenant, request, chance)
    return (yield from store(known, tenant, wanted, chance))


def _require_free_name(name: Any, *, is_own: bool) -> None:
    """Refuse the names that Holdfast gives to events. Raises RequestError HF206."""
    if name == FAILED_EVENT and not is_own:
        # Otherwise a caller could report failures that have not happened, and under the id of a
        # later failure, which would then be refused as another event with the same id.
        raise RequestError(
            "HF206",
            f"{name} is sent by Holdfast alone, when an execution fails",
            status=404,
            help="send an event with a name of your own",
        )
    if isinstance(name, str) and name.endswith(REQUEST_SUFFIX):
        # These names are reserved for requests. An execution that waits for a request would take
        # the request's id and content from the data of this event.
        raise RequestError(
            "HF206",
            f"{name!r:.90} is the name of requests, and not of an event",
            status=404,
            help="send it with `holdfast request` or `POST /requests`, without the mark at its end",
        )


def bus_event(
    known: Lookup,
    tenant: str,
    given_id: Any,
    detail: Any,
    chance: bytes,
    *,
    is_own: bool = False,
) -> JsonResult:
    """Store an event from the event bus. An event that is refused is listed with the reason.
    `is_own`: Holdfast itself sends the event.

    It raises no error for it: EventBridge would deliver the event again, and it would be refused
    again.
    """
    event_id = given_id if keys.is_name(given_id) else chance.hex()
    request: dict[str, Any] = {}
    try:
        require_plain(detail, "the detail")
        if isinstance(detail, dict):
            request = {**detail, "id": detail.get("id") or event_id}
        return (yield from event(known, tenant, request, chance, is_own=is_own))
    except RequestError as error:
        now_ms = yield Clock()
        shown = {
            "name": printable(str(request.get("name", "")))[:200],
            "key": printable(str(request.get("key", "")))[:200],
            "refused": printable(f"{error.code}: {error.message}")[:1_000],
        }
        yield from kept_events.keep_listed(tenant, event_id, now_ms, shown)
        return {"event": event_id, "refused": error.code}
