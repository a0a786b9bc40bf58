"""Requests with a reply: a caller sends a request to the executions that wait for requests of its
kind.

A request is an event with the suffix `REQUEST_SUFFIX` in its name. Its data is the id of the
request and the content from the caller. So it is checked, ordered, stored and used once as other
events are. The reply is stored under the id of the request, and the caller polls for it there: an
execution does not know its callers, and a caller may crash and ask again with the same id. Only the
first reply counts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.errors import RequestError
from holdfast.limits import EVENT_RETENTION_SECONDS, REQUEST_SUFFIX
from holdfast.runtime import inbox
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.stored_events import CheckedEvent, checked, store
from holdfast.runtime.effects import Clock, Effect, Get, Item, JsonResult, NoResult, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.sealed import hidden

_REPLIES: Final = "requests"


def request(known: Lookup, tenant: str, asked: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Store a request. `asked`: name, key, data, id?, execution?.

    Return its id as `request`, how many executions wait for it, and the execution when there can be
    only one. Raises RequestError as `event` does, and HF213 for the id of another request.
    """
    name = asked.get("name")
    kind = f"{name}{REQUEST_SUFFIX}" if isinstance(name, str) else name
    wanted = yield from checked(known, tenant, {**asked, "name": kind}, chance)
    yield from _claim_id(tenant, wanted)
    whole = replace(wanted, data=[wanted.id, wanted.data])
    told = yield from store(known, tenant, whole, chance)
    return {"request": told.pop("event"), **told}


def _claim_id(tenant: str, wanted: CheckedEvent) -> NoResult:
    """Store the row of the request before an execution can reply. The reply is stored under the id
    alone, so two requests must not have the same id. Raises RequestError HF213.
    """
    now_ms = yield Clock()
    asked_of = keys.event(tenant, wanted.name, wanted.key)
    row = {**_row(tenant, wanted.id, keys.ONLY, now_ms), "of": asked_of}
    found: Item | None = yield PutIfAbsent(tables.MAIL, row)
    if found is not None and found.get("of") != asked_of:
        raise RequestError(
            "HF213",
            f"a request with the id {wanted.id!r} exists and has another name or key",
            status=409,
            help="give each request an id of its own",
        )


def reply(tenant: str, request_id: str) -> JsonResult:
    """Return `status`: OPEN, ANSWERED with `output`, or REJECTED with `error` and `cause`. Raises
    RequestError HF563 for an unknown id.
    """
    keys.require_name(request_id, "the id of the request")
    partition = keys.request(tenant, request_id)
    found: Item | None = yield Get(tables.MAIL, partition, keys.REPLY)
    if found is not None:
        return {"request": request_id, **(yield from _shown(tenant, found))}
    if (yield Get(tables.MAIL, partition, keys.ONLY)) is None:
        raise RequestError(
            "HF563",
            f"there is no request {request_id!r:.90}, or it is older than 14 days",
            status=404,
            help="give the id that `POST /requests` has returned",
        )
    return {"request": request_id, "status": "OPEN"}


def _shown(tenant: str, item: Item) -> Generator[Effect, Any, dict[str, Json]]:
    require_format(item, "a reply")
    if "error" in item:
        cause = str(item.get("cause", ""))
        return {"status": "REJECTED", "error": str(item["error"]), "cause": cause}
    value = yield from inbox.unstow(tenant, _REPLIES, item)
    return {"status": "ANSWERED", "output": hidden(value)}


def store_reply(tenant: str, given: Mapping[str, Any]) -> NoResult:
    """Store the reply that a workflow has given. `given`: request, and value, or error and
    cause.
    """
    now_ms = yield Clock()
    row = _row(tenant, str(given["request"]), keys.REPLY, now_ms)
    if "error" in given:
        fields: dict[str, Any] = {"error": str(given["error"]), "cause": str(given["cause"])}
    else:
        fields = yield from inbox.stow(tenant, _REPLIES, given["value"])
    yield PutIfAbsent(tables.MAIL, {**row, **fields})


def _row(tenant: str, request_id: str, sort: str, now_ms: int) -> Item:
    ttl = now_ms // 1_000 + EVENT_RETENTION_SECONDS
    partition = keys.request(tenant, request_id)
    return {"pk": partition, "sk": sort, FORMAT_FIELD: FORMAT, "at": now_ms, "ttl": ttl}
