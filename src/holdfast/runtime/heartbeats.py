"""The last heartbeat of a task: one item in the inbox of its execution, for all attempts.

    h#<entry>    at: when it came    v: the progress that a heartbeat has carried, as JSON

The attempts of one entry share the item, so a new attempt finds the progress of the one before. A
heartbeat without progress keeps that of the item. The item is not part of the log: a lost one costs
work that is done again, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, NamedTuple

from holdfast.asl.program import Json
from holdfast.limits import HEARTBEAT_RACES_MAX
from holdfast.runtime.effects import Effect, Get, Item, Put, PutIfAbsent, Replace
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.storage.json_values import json_text


class Step(NamedTuple):
    """The step of an execution whose task sends heartbeats."""

    tenant: str
    run: str
    entry: int


def store(
    step: Step, now_ms: int, expiry: int, progress: Json = None
) -> Generator[Effect, Any, bool]:
    """Store the heartbeat, unless a newer one is stored. Return False after too many conflicts."""
    item: dict[str, str | int | bytes] = {
        "pk": keys.inbox(step.tenant, step.run),
        "sk": keys.heartbeat(step.entry),
        FORMAT_FIELD: FORMAT,
        "rv": 1,
        "at": now_ms,
        "ttl": expiry,
    }
    if progress is not None:
        item["v"] = json_text(progress)
    for _ in range(HEARTBEAT_RACES_MAX):
        found: Item | None = yield Get(tables.MAIL, str(item["pk"]), str(item["sk"]))
        if found is not None and int(found["at"]) > now_ms:
            return True
        if (yield from _is_put_over(found, item)):
            return True
    return False


def _is_put_over(found: Item | None, item: Item) -> Generator[Effect, Any, bool]:
    if found is None:
        return (yield PutIfAbsent(tables.MAIL, item)) is None
    kept: Item = {"v": found["v"]} if "v" in found else {}
    # An earlier release wrote items without a version number.
    if "rv" not in found:
        yield Put(tables.MAIL, {**kept, **item})
        return True
    seen = int(found["rv"])
    return bool((yield Replace(tables.MAIL, {**kept, **item, "rv": seen + 1}, seen)))


def load(step: Step) -> Generator[Effect, Any, Item | None]:
    """Return the item of the last heartbeat."""
    inbox = keys.inbox(step.tenant, step.run)
    beat: Item | None = yield Get(tables.MAIL, inbox, keys.heartbeat(step.entry))
    if beat is not None:
        require_format(beat, "a heartbeat")
    return beat


def progress_of(step: Step) -> Generator[Effect, Any, Json]:
    """Return the progress of the attempts of the step, None without any."""
    return progress_in((yield from load(step)))


def progress_in(beat: Item | None) -> Json:
    if beat is None or "v" not in beat:
        return None
    with reading("a heartbeat"):
        progress: Json = json.loads(str(beat["v"]))
        return progress
