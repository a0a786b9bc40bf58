"""Events from the bus: a sender with the right to put events may write any content."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any, Final

from holdfast.limits import EVENT_BYTES_MAX
from holdfast.runtime.effects import Put, PutIfAbsent
from tests.security.bodies import is_kept
from tests.security.cases import Outcome, generator
from tests.security.doors import Doors
from tests.security.names import OTHERS, a_name, is_plain
from tests.unit import bad_input

DECLARED: Final = {"paid", "signed"}


def an_event(detail: Any, **fields: Any) -> dict[str, Any]:
    """Return an event as EventBridge hands it to a function."""
    return {
        "version": "0",
        "id": "4f1f8a36-2b8a-4a54-a7f1-62f1a4b1f1a1",
        "detail-type": "HoldfastEvent",
        "source": "shop",
        "account": "123456789012",
        "time": "2027-01-15T08:00:00Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": detail,
        **fields,
    }


def arrive(doors: Doors, event: dict[str, Any]) -> str | None:
    """Return the code under which the event was parked, None when it was stored as one."""
    doors.seen.clear()
    doors.site.host.events(event)
    assert doors.foreign("default") == []
    rows = [one.item for one in doors.wrote() if isinstance(one, Put) and "refused" in one.item]
    if not rows:
        return None
    # One row for operators, and no other new item: no execution is woken.
    (row,) = rows
    assert {type(effect) for effect in doors.wrote()} <= {Put, PutIfAbsent}
    assert all(len(str(value)) <= 1_000 for value in row.values())
    return str(row["refused"]).partition(":")[0]


@cache
def some_doors() -> Doors:
    return Doors()


@generator("events", full=10_000)
def arrived(draw: Random) -> Outcome:
    detail: Any = {
        "name": draw.choice(["paid", "paid", "signed", "none", a_name(draw), None]),
        "key": draw.choice(["k1", "k1", a_name(draw), "k" * 1_025, None]),
        "data": draw.choice([bad_input.junk(draw), float("nan"), 10**400, 1]),
        "tenant": "acme",
        "t": "acme",
    }
    if draw.random() < 0.3:
        detail["id"] = a_name(draw)
    if draw.random() < 0.2:
        detail = draw.choice(
            [*OTHERS, None, "", json.dumps(detail), [detail], bad_input.junk(draw)]
        )
    event = an_event(detail)
    if draw.random() < 0.3:
        name = draw.choice(["id", "detail", "source", "account", "detail-type"])
        event[name] = draw.choice([*OTHERS, None, "999999999999", a_name(draw)])
    if draw.random() < 0.05:
        event.pop(draw.choice(["id", "detail", "source", "account"]))
    code = arrive(some_doors(), event)
    assert (code is None) == is_an_event(event.get("detail")) or code == "HF213"
    return "accepted" if code is None else "refused"


def is_an_event(detail: Any) -> bool:
    """The rules of an event, said once more."""
    try:
        raw = json.dumps(detail).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    if not is_kept(raw) or not isinstance(detail.get("key"), str):
        return False
    name, event_id = detail.get("name"), detail.get("id")
    is_known = isinstance(name, str) and name in DECLARED
    is_short = 1 <= len(detail["key"]) <= 1_024
    is_small = len(json.dumps(detail.get("data"))) <= EVENT_BYTES_MAX
    return is_known and is_short and is_small and (not event_id or is_plain(event_id))
