"""The last heartbeat of a task: one item in the inbox of its execution, for all attempts.

    h#<entry>    at: when it came, 0 for none    v: the progress that a heartbeat has carried
                 over: the last attempt of the entry for which the execution no longer waits

The attempts of one entry share the item, so a new attempt finds the progress of the one before. A
heartbeat without progress keeps that of the item. The item is not part of the log: a lost one costs
work that is done again, and nothing else.

`over` is for an attempt that a worker runs itself. Another worker, which has stopped the execution,
cannot interrupt the function; the function reads the mark when it sends heartbeats. A mark that is
lost in a crash costs the rest of that attempt, whose result is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, NamedTuple

from holdfast.asl.program import Json
from holdfast.limits import EVENT_RETENTION_SECONDS, HEARTBEAT_RACES_MAX
from holdfast.runtime.effects import Effect, Get, Item, Put, PutIfAbsent, Replace, Update
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
    kept: Item = {name: found[name] for name in ("v", "over") if name in found}
    # An earlier release wrote items without a version number.
    if "rv" not in found:
        yield Put(tables.MAIL, {**kept, **item})
        return True
    seen = int(found["rv"])
    return bool((yield Replace(tables.MAIL, {**kept, **item, "rv": seen + 1}, seen)))


def mark_over(step: Step, attempt: int, now_ms: int) -> Generator[Effect, Any, None]:
    """Note that the execution no longer waits for the attempt, and for those before it."""
    yield Update(
        tables.MAIL,
        keys.inbox(step.tenant, step.run),
        keys.heartbeat(step.entry),
        # A shorter time would delete the progress before an attempt that waits for days begins.
        put={
            FORMAT_FIELD: FORMAT,
            "over": attempt,
            "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS,
        },
        # A heartbeat that has read the item before this write must not replace it. An item without
        # a heartbeat gets the time 0, because each reader needs a time.
        add={"rv": 1, "at": 0},
    )


def is_over(step: Step, attempt: int) -> Generator[Effect, Any, bool]:
    beat = yield from load(step)
    return beat is not None and int(beat.get("over", 0)) >= attempt


def last_ms(beat: Item | None) -> int:
    """Return the time of the last heartbeat, 0 without any."""
    return 0 if beat is None else int(beat["at"])


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
