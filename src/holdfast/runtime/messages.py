"""The bodies of work messages. Each carries its format; a newer one is given back unread.

A message wakes; it never decides. `hint` tells a loader how much to read, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import HoldfastBug, NewerFormatError

FORMAT: Final = 1

START: Final = "start"
WAKE_TIMER: Final = "wake.timer"
WAKE_MAIL: Final = "wake.mail"
GO: Final = "go"
RECOVER: Final = "recover"
_KINDS: Final = frozenset({START, WAKE_TIMER, WAKE_MAIL, GO, RECOVER})

#: `wake.mail` about events: every open event wait looks for itself.
EVENT_MAIL: Final = "e"


@dataclass(frozen=True, slots=True)
class Hint:
    """The newest record and the newest snapshot that the sender knew of."""

    sequence: int
    snapshot: int


def _body(kind: str, tenant: str, run: str, hint: Hint | None, **fields: Any) -> dict[str, Any]:
    body = {"f": FORMAT, "k": kind, "t": tenant, "run": run, **fields}
    return body if hint is None else {**body, "hint": [hint.sequence, hint.snapshot]}


def start(tenant: str, run: str, **fields: Any) -> dict[str, Any]:
    """`fields`: workflow, definition, name?, input or ref, t0, of?"""
    return _body(START, tenant, run, None, **fields)


def wake_timer(tenant: str, run: str, entry: int, due_ms: int, hint: Hint | None) -> dict[str, Any]:
    return _body(WAKE_TIMER, tenant, run, hint, entry=entry, due=due_ms)


def wake_mail(tenant: str, run: str, key: str) -> dict[str, Any]:
    return _body(WAKE_MAIL, tenant, run, None, key=key)


def go(tenant: str, run: str, owner: str, hint: Hint) -> dict[str, Any]:
    return _body(GO, tenant, run, hint, **{"from": owner})


def recover(tenant: str, run: str, of: tuple[str, ...] = ()) -> dict[str, Any]:
    return _body(RECOVER, tenant, run, None, of=list(of))


def require_readable(body: Any) -> Mapping[str, Any]:
    """Raises NewerFormatError for a newer message, HoldfastBug for what is no message of ours."""
    if not isinstance(body, dict):
        raise HoldfastBug("a work message is not a JSON object")
    found = body.get("f")
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormatError("a work message", found, FORMAT)
    fields = (body.get("k"), body.get("t"), body.get("run"))
    if found != FORMAT or not all(isinstance(text, str) for text in fields):
        raise HoldfastBug("a work message lacks f, k, t or run")
    if body["k"] not in _KINDS:
        raise HoldfastBug(f"a work message is of unknown kind {body['k']!r:.40}")
    return body


def hint_of(body: Mapping[str, Any]) -> Hint | None:
    hint = body.get("hint")
    return None if hint is None else Hint(int(hint[0]), int(hint[1]))
