"""Requests with a reply: a caller sends a request to the executions that wait for requests of its
kind.

A request is an event with the suffix `REQUEST_SUFFIX` in its name. Its data is the id of the
request and the content from the caller. So it is checked, ordered, stored and used once as other
events are. The reply is stored under the id of the request, and the caller polls for it there: an
execution does not know its callers, and a caller may crash and ask again with the same id. Only the
first reply counts.

A workflow sends requests, too (`request`). The id of such a request names the attempt that waits
for the reply, as `01jd…/3.1`, and the reply is stored as the answer to that attempt. No caller can
give an id with a "/". Otherwise a caller could have replies stored in the inbox of any execution.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.waits import takes_answer
from holdfast.errors import RequestError
from holdfast.limits import CONTROL_RETENTION_SECONDS, EVENT_RETENTION_SECONDS, REQUEST_SUFFIX
from holdfast.runtime import inbox
from holdfast.runtime.commands.answers import store_answer
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import Payload, mark_of_secrets, normalised
from holdfast.runtime.commands.stored_events import CheckedEvent, checked, store
from holdfast.runtime.commands.tokens import Token
from holdfast.runtime.effects import Clock, Effect, Get, Item, JsonResult, NoResult, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.sealed import hidden

_REPLIES: Final = "requests"
_OF_WORKFLOW: Final = re.compile(r"([^/]+)/([0-9]{1,9})\.([0-9]{1,9})")
#: The error of a reply that does not fit the type which the asking workflow declares.
_MISFIT: Final = "InvalidResult"


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


@dataclass(frozen=True, slots=True)
class Asker:
    """The attempt of a workflow that waits for the reply to its request."""

    run: str
    entry: int
    attempt: int

    @property
    def request_id(self) -> str:
        return f"{self.run}/{self.entry}.{self.attempt}"

    @classmethod
    def of(cls, request_id: str) -> Asker | None:
        """Return the asker that the id names; None for the request of a caller."""
        found = _OF_WORKFLOW.fullmatch(request_id)
        return found and cls(found[1], int(found[2]), int(found[3]))


def request_of(
    known: Lookup, tenant: str, asked: Mapping[str, Any], asker: Asker, chance: bytes
) -> Generator[Effect, Any, str]:
    """Store the request of a workflow, and return its id. `asked`: name, key, data. A repeated call
    finds the stored request. Raises RequestError as `event` does.
    """
    kind = f"{asked['name']}{REQUEST_SUFFIX}"
    wanted = yield from checked(known, tenant, {**asked, "name": kind}, chance)
    request_id = asker.request_id
    whole = replace(wanted, id=request_id, data=[request_id, wanted.data])
    yield from store(known, tenant, whole, chance)
    return request_id


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


def store_reply(known: Lookup, tenant: str, given: Mapping[str, Any]) -> NoResult:
    """Store the reply that a workflow has given. `given`: request, and value, or error and
    cause.
    """
    asker = Asker.of(str(given["request"]))
    if asker is not None:
        yield from _answer(known, tenant, asker, given)
        return
    now_ms = yield Clock()
    row = _row(tenant, str(given["request"]), keys.REPLY, now_ms)
    if "error" in given:
        fields: dict[str, Any] = {"error": str(given["error"]), "cause": str(given["cause"])}
    else:
        fields = yield from inbox.stow(tenant, _REPLIES, given["value"])
    yield PutIfAbsent(tables.MAIL, {**row, **fields})


def _answer(known: Lookup, tenant: str, asker: Asker, given: Mapping[str, Any]) -> NoResult:
    """Store the reply as the answer to the attempt that waits for it, and wake its execution. An
    attempt that waits no longer, for example after its time-out, gets none.
    """
    log = known.log(tenant, asker.run)
    yield from log.load()
    frame = None if log.state is None else log.state.frame_of(asker.entry)
    if log.state is None or frame is None or not takes_answer(frame.waiting, asker.attempt):
        return
    if "error" in given:
        fields = {"error": str(given["error"]), "cause": str(given["cause"])}
    else:
        definition = yield from known.programs.fetch(tenant, log.state.definition)
        wanted = Payload.of_answer(definition, frame.position)
        fields = yield from _fitting(known, tenant, asker, wanted, given["value"])
    now_ms = yield Clock()
    expires_ms = now_ms + CONTROL_RETENTION_SECONDS * 1_000
    token = Token(tenant, asker.run, asker.entry, asker.attempt, expires_ms)
    yield from store_answer(token, now_ms, fields, {})


def _fitting(
    known: Lookup, tenant: str, asker: Asker, wanted: Payload, value: Json
) -> Generator[Effect, Any, dict[str, Any]]:
    """Return the fields of the answer. A reply that does not fit the type that the asker declares
    is the asker's error; the workflow that replied goes on.
    """
    try:
        output = normalised(known.types, tenant, wanted, value, "reply")
    except RequestError as misfit:
        return {"error": _MISFIT, "cause": misfit.message}
    stowed = yield from inbox.stow(tenant, asker.run, output)
    return {**stowed, **mark_of_secrets(output)}


def _row(tenant: str, request_id: str, sort: str, now_ms: int) -> Item:
    ttl = now_ms // 1_000 + EVENT_RETENTION_SECONDS
    partition = keys.request(tenant, request_id)
    return {"pk": partition, "sk": sort, FORMAT_FIELD: FORMAT, "at": now_ms, "ttl": ttl}
