"""Unusual names, ids and keys: refused, or stored exactly as sent."""

from __future__ import annotations

import unicodedata
from functools import cache
from random import Random
from typing import Any, Final
from urllib.parse import quote

from holdfast.runtime.effects import PutIfAbsent
from tests.security.cases import Outcome, generator
from tests.security.doors import Doors, Shop, opened
from tests.unit.states_kit import PASS, ROLE

PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
PIECES: Final = [
    "a", "Z", "9", "_", "-", ".", "..", "/", "\\", "#", "~", "%", "%2e", "%00", "$", "&", "?", "*",
    ":", ";", ",", "|", "'", '"', "`", "<", ">", "{", "}", "[", "]", "(", ")", "=", "+", "@", "!",
    " ", "\t", "\r\n", "\n", "\x00", "\x1b[2J", "\x7f", "\x85", "\u200b", "\u202e", "\u2028",
    "\ufeff", "\uffff", "e\u0301", "\u00e9", "\u0430", "\uff21", "\u0661", "\u0131", "\u212a",
    "\U0001f600", "select", "ttl", "pk", "default", "order-1", "__proto__", "x" * 80, "x" * 300,
]  # fmt: skip
OTHERS: Final[list[Any]] = [5, -1, 1.5, True, [], ["a"], {}, {"a": "b"}]


def is_plain(name: Any) -> bool:
    """Return True for a valid name of Holdfast, by rules written for this test."""
    is_right = isinstance(name, str) and 1 <= len(name) <= 80 and set(name) <= PLAIN
    return is_right and name not in {".", ".."}


def is_states_name(name: Any) -> bool:
    """Return True for a valid name of state machines, activities and executions, by AWS's
    documentation.
    """
    refused = set('<>{}[]?*"#%\\^|~`$&,;:/\ufffe\uffff')
    return (
        isinstance(name, str)
        and 1 <= len(name) <= 80
        and not any(
            character in refused or character.isspace() or unicodedata.category(character) == "Cc"
            for character in name
        )
    )


def a_name(draw: Random) -> Any:
    match draw.randrange(12):
        case 0:
            return draw.choice(OTHERS)
        case 1 | 2 | 3:
            return "".join(draw.choices(sorted(PLAIN), k=draw.choice([1, 2, 26, 79, 80, 81])))
        case 4:
            return "".join(chr(draw.randrange(1, 0xD800)) for _ in range(draw.randrange(1, 9)))
        case 5:
            run = "".join(draw.choices("0123456789abcdefghjkmnpqrstvwxyz", k=26))
            return run + draw.choice(
                ["", ".0.1", ".00.1", ".\u0661.1", ".1", "." * 3, ".9.9" * 300]
            )
        case _:
            return "".join(draw.choices(PIECES, k=draw.randrange(5)))


@cache
def a_shop() -> Shop:
    return opened(Doors())


@generator("ids", full=20_000)
def named(draw: Random) -> Outcome:
    name = a_name(draw)
    kind = draw.choice([start_named, event_with_id, event_with_key, looked_up, machine_named])
    return kind(a_shop().doors, name)


def start_named(doors: Doors, name: Any) -> Outcome:
    body = {"workflow": "flow", "input": 1, "name": name}
    status, answer = doors.http("POST", "/executions", body)
    if status == 201:
        assert is_plain(name)
        assert f"default#n#flow#{name}" in claimed(doors)
        return "accepted"
    if name == "order-1":  # is taken
        assert (status, answer["error"]["code"]) == (409, "HF212")
        return "refused"
    assert not is_plain(name) or len(name) >= 26  # the form of an id
    return refused(doors, status, answer, {(400, "HF201")})


def event_with_id(doors: Doors, event_id: Any) -> Outcome:
    body = {"name": "paid", "key": "k", "data": 1, "id": event_id}
    status, answer = doors.http("POST", "/events", body)
    if status == 200:
        # An invalid id counts as none: the event gets one.
        assert is_plain(event_id) or not event_id
        return "accepted"
    assert not is_plain(event_id)
    return refused(doors, status, answer, {(400, "HF201")})


def event_with_key(doors: Doors, key: Any) -> Outcome:
    status, answer = doors.http("POST", "/events", {"name": "paid", "key": key, "data": 1})
    if status == 200:
        assert isinstance(key, str)
        assert all(text.count("#") == 3 for text in claimed(doors))
        return "accepted"
    assert not isinstance(key, str) or not 1 <= len(key) <= 1_024
    return refused(doors, status, answer, {(400, "HF202")})


def looked_up(doors: Doors, name: Any) -> Outcome:
    """Check a name in a path. The path may also lead nowhere."""
    path = f"/executions/{quote(str(name), safe='')}"
    status, answer = doors.http("GET", path)
    if status == 200:  # of the empty name: the list
        assert not name or answer.get("name", name) == name
        return "accepted"
    return refused(doors, status, answer, {(400, "HF201"), (404, "HF207"), (404, "HF208")})


def machine_named(doors: Doors, name: Any) -> Outcome:
    request = {"name": name, "definition": PASS, "roleArn": ROLE}
    status, answer = doors.states("CreateStateMachine", request)
    if status == 200:
        assert is_states_name(name)
        assert answer["stateMachineArn"].endswith(f":stateMachine:{name}")
        return "accepted"
    assert not is_states_name(name)
    codes = {"InvalidName", "ValidationException", "SerializationException"}
    assert answer["__type"] in codes
    assert doors.wrote() == []
    return "refused"


def claimed(doors: Doors) -> list[str]:
    """Return the partitions in which the last request asked to put something new."""
    return [str(one.item["pk"]) for one in doors.wrote() if isinstance(one, PutIfAbsent)]


def refused(doors: Doors, status: int, answer: Any, codes: set[tuple[int, str]]) -> Outcome:
    assert (status, answer["error"]["code"]) in codes
    assert doors.wrote() == []
    return "refused"
