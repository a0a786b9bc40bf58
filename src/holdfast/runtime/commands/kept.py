"""List the events that are kept, and drop one.

An event is kept until an execution uses it, for 14 days. The logs say which execution has used it,
so a list reads the logs of the executions that have registered for the event.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.state import Execution
from holdfast.errors import FormatError, RequestError
from holdfast.limits import REQUEST_SUFFIX
from holdfast.runtime import inbox
from holdfast.runtime.commands import keyed, presentation, requests
from holdfast.runtime.commands.fields import reason_and_author
from holdfast.runtime.commands.lookup import EVENT_NAME_BYTES_MAX, Lookup
from holdfast.runtime.effects import Clock, Condition, Effect, Get, Item, JsonResult, Query, Update
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.json_values import is_unicode

LISTED_MAX: Final = 100
#: The error that the client of a dropped request gets as its reply. If an execution still answers
#: the request later, this reply stays, because only the first reply to a request is stored.
_DROPPED_REQUEST: Final = "RequestDropped"


def events(known: Lookup, tenant: str, asked: Mapping[str, Any]) -> JsonResult:
    """Return the kept events of a name and key, the oldest first. `asked`: name, key.

    Without the two, return the newest events that found no execution which waits for them, and
    events from the bus that were refused. Raises RequestError HF202, HF340.
    """
    logs = _Logs(known, tenant)
    if asked.get("name") is None and asked.get("key") is None:
        return {"events": (yield from _without_wait(logs))}
    name, key = _place(asked)
    rows = yield from _of_key(logs, name, key)
    return {"events": rows[:LISTED_MAX]}


def drop(known: Lookup, tenant: str, asked: Mapping[str, Any]) -> JsonResult:
    """Drop a kept event: no execution uses it from now on. A request that no execution has used is
    rejected. `asked`: name, key, id, reason, by?.

    An execution that reads the event at this moment may still use it; then its history has it.
    Return `event`, and `used_by`: the executions that have used it. Raises RequestError HF201,
    HF202, HF234, HF340.
    """
    name, key = _place(asked)
    event_id = _event_id(asked.get("id") or "")
    words, now_ms = reason_and_author(asked), (yield Clock())
    partition, sort = keys.event(tenant, name, key), keys.stored_event(event_id)
    item: Item | None = yield Get(tables.MAIL, partition, sort)
    if item is None or int(item["expires"]) <= now_ms:
        raise _nothing_kept(f"there is no event {event_id!r} named {name!r:.90} with that key")
    yield Update(
        tables.MAIL,
        partition,
        sort,
        put={**inbox.EVENT_MARK, inbox.ADDRESSEE: inbox.DROPPED, "dropped": now_ms, **words},
        where=(Condition("at", "present"),),
    )
    users = _users(event_id, (yield from _Logs(known, tenant).registered(name, key)))
    if name.endswith(REQUEST_SUFFIX) and not users:
        # Store the reply only if no execution has used the request. An execution that has used it
        # replies itself.
        told = {"request": event_id, "error": _DROPPED_REQUEST, "cause": words["reason"]}
        yield from requests.store_reply(known, tenant, told)
    return {"event": event_id, "used_by": users}


def _event_id(given: Any) -> str:
    """Return the id. The id of a workflow's request is not a name (`requests.Asker`). Raises
    RequestError HF201.
    """
    if isinstance(given, str) and requests.Asker.of(given) is not None:
        return given
    return keys.require_name(given, "the id of the event")


def _place(asked: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the key of an event. Raises RequestError HF202, HF340."""
    name, key = asked.get("name"), keys.require_business_key(asked.get("key") or "")
    if not isinstance(name, str) or not is_unicode(name) or not name:
        raise _nothing_kept("the name of the event is missing")
    if len(name.encode()) > EVENT_NAME_BYTES_MAX:
        raise _nothing_kept(f"the name of the event is over {EVENT_NAME_BYTES_MAX} bytes")
    return name, key


def _nothing_kept(found: str) -> RequestError:
    return RequestError(
        "HF340",
        found,
        status=404,
        help="`holdfast list --events` shows names, keys and ids; an event is kept for 14 days",
    )


# -- reading ---------------------------------------------------------------------------------------


class _Logs:
    """The states of the executions that have registered for events, each read once."""

    def __init__(self, known: Lookup, tenant: str) -> None:
        self.known, self.tenant = known, tenant
        self._read: dict[str, Execution | None] = {}

    def registered(self, name: str, key: str) -> Generator[Effect, Any, list[Execution]]:
        """Return the states of the executions that have waited for such an event, without those
        whose logs are gone or unreadable.
        """
        partition = keys.event(self.tenant, name, key)
        rows = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
        found = []
        for row in rows:
            state = yield from self._state(inbox.registered(row))
            if state is not None:
                found.append(state)
        return found

    def _state(self, run: str) -> Generator[Effect, Any, Execution | None]:
        if run not in self._read:
            try:
                state = yield from keyed.state_of(self.known, self.tenant, run)
            except FormatError:
                state = None
            self._read[run] = state if isinstance(state, Execution) else None
        return self._read[run]


def _users(event_id: str, states: list[Execution]) -> list[str]:
    return [state.run for state in states if event_id in state.used_events]


def _is_kept(item: Item, now_ms: int) -> bool:
    return int(item["expires"]) > now_ms and item.get(inbox.ADDRESSEE) != inbox.DROPPED


def _of_key(logs: _Logs, name: str, key: str) -> Generator[Effect, Any, list[dict[str, Any]]]:
    now_ms = yield Clock()
    partition = keys.event(logs.tenant, name, key)
    items = yield Query(tables.MAIL, partition, begins_with=keys.EVENT_PREFIX)
    states = yield from logs.registered(name, key)
    declared = logs.known.declared_type(name)
    return [
        presentation.kept_event(name, key, item, declared)
        for item in sorted(items, key=inbox.place_of)
        if _is_kept(item, now_ms) and not _users(inbox.event_id(item), states)
    ]


def _without_wait(logs: _Logs) -> Generator[Effect, Any, list[dict[str, Any]]]:
    now_ms = yield Clock()
    rows = yield Query(tables.MAIL, keys.early_events(logs.tenant), reverse=True, limit=LISTED_MAX)
    listed = []
    for row in rows:
        if int(row["expires"]) <= now_ms:
            continue
        if "refused" in row:
            listed.append(presentation.refused_event(row))
            continue
        name, key = str(row["name"]), str(row["key"])
        place = keys.event(logs.tenant, name, key), keys.stored_event(str(row["id"]))
        item: Item | None = yield Get(tables.MAIL, *place)
        if item is None or not _is_kept(item, now_ms):
            continue
        states = yield from logs.registered(name, key)
        stored_ms = inbox.place_of(item)[0]
        is_awaited = any(
            inbox.is_for(item, state.run)
            and not state.is_ended
            and state.awaits_event(name, key, stored_ms)
            for state in states
        )
        if not is_awaited and not _users(str(row["id"]), states):
            declared = logs.known.declared_type(name)
            listed.append(presentation.kept_event(name, key, item, declared))
    return listed
