"""The attempts that wait at a gate: one row each, and the choice of the next ones.

The sort key of a row is its place in the queue. First come attempts that another gate has already
let in and that wait for the next limit (place 0). Then the order is: priority, the text by which
the limit takes turns, the start of the execution. So an older execution goes before a newer one,
and work that has begun ends first.

Turns. With `fair`, the rows of one text follow each other. The dispenser takes as many rows of a
text as its weight says, then moves to the next text with one query, and starts again at the first
text until no row is left or all grants are given. The gate stores the text that was served last
(`cu`), so the next dispenser continues from there. New weights apply to the whole queue at once,
because a row contains its text but not its turn.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.commands import JoinQueue
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import RECORD_RETENTION_SECONDS
from holdfast.runtime.effects import Effect, Item, Query
from holdfast.runtime.gates.rules import LimitRule
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD

_PLACE_CHARACTERS: Final = 2
#: A character that sorts after every character of a hash, so it ends the range of one place.
_LAST: Final = "~"


@dataclass(frozen=True, slots=True)
class Waiter:
    """One row of a queue. `sk` is its sort key, and so its place. `fair` is the hash of the text by
    which the limit takes turns.
    """

    sk: str
    fair: str
    tenant: str
    run: str
    entry: int
    attempt: int
    since_ms: int
    run_seconds: int | None

    @property
    def permit_id(self) -> str:
        return permit_id(self.run, self.entry, self.attempt)


def permit_id(run: str, entry: int, attempt: int) -> str:
    """Return the id of a permit.

    An execution as a whole waits with attempt 0. Its permit has an id of its own, which every
    worker of the execution shares.
    """
    return run if attempt == 0 else f"{run}.{entry}.{attempt}"


def row_key(run: str, command: JoinQueue) -> str:
    queued = command.queued
    place = 0 if queued.is_front else 1 + command.priority
    fair = keys.text_hash(queued.fair) if queued.fair else ""
    return keys.queue_row(
        place, fair, command.started_ms, permit_id(run, command.entry, command.attempt)
    )


def row_of(tenant: str, run: str, command: JoinQueue, now_ms: int) -> Item:
    queued = command.queued
    item: dict[str, str | int | bytes] = {
        "pk": keys.queue(queued.gate),
        "sk": row_key(run, command),
        FORMAT_FIELD: FORMAT,
        "t": tenant,
        "run": run,
        "entry": command.entry,
        "attempt": command.attempt,
        "since": queued.since_ms,
        "ttl": now_ms // 1_000 + RECORD_RETENTION_SECONDS,
    }
    if command.run_seconds is not None:
        item["secs"] = command.run_seconds
    if queued.fair:
        item["fair"] = queued.fair
    return item


def waiter_from(item: Mapping[str, Any]) -> Waiter:
    sk = str(item["sk"])
    seconds = item.get("secs")
    return Waiter(
        sk=sk,
        fair=sk.split("#", 2)[1],
        tenant=str(item["t"]),
        run=str(item["run"]),
        entry=int(item["entry"]),
        attempt=int(item["attempt"]),
        since_ms=int(item["since"]),
        run_seconds=None if seconds is None else int(seconds),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen rows. `waiters` are in the order in which they are let in. `is_all`: the queue has
    no other rows.
    """

    waiters: tuple[Waiter, ...]
    cursor: str
    is_all: bool


def choose(gate: str, rule: LimitRule, cursor: str, wanted: int) -> Generator[Effect, Any, Choice]:
    """Return the next `wanted` rows: by place; in one place by turns; in one turn the oldest
    first.
    """
    head = yield Query(tables.MAIL, keys.queue(gate), limit=wanted + 1)
    rows = [waiter_from(item) for item in head]
    if len(rows) <= wanted:
        last = rows[-1].fair if rows else cursor
        return Choice(tuple(rows), last, is_all=True)
    if all(row.fair == "" for row in rows):
        return Choice(tuple(rows[:wanted]), cursor, is_all=False)
    return (yield from _take_turns(gate, rule, rows[0].sk, cursor, wanted))


def _take_turns(
    gate: str, rule: LimitRule, first: str, cursor: str, wanted: int
) -> Generator[Effect, Any, Choice]:
    weights = {keys.text_hash(text): weight for text, weight in rule.weights.items()}
    chosen: dict[str, Waiter] = {}
    place = first[:_PLACE_CHARACTERS]
    reached: dict[str, str] = {}
    while len(chosen) < wanted:
        row = yield from _next_turn(gate, place, cursor, reached)
        if row is None:
            following = yield Query(
                tables.MAIL, keys.queue(gate), after=f"{place}#{_LAST}", limit=1
            )
            if not following:
                break
            place, cursor, reached = str(following[0]["sk"])[:_PLACE_CHARACTERS], "", {}
            continue
        turn = min(weights.get(row.fair, 1), wanted - len(chosen))
        more = yield Query(
            tables.MAIL,
            keys.queue(gate),
            after=reached.get(row.fair, f"{place}#{row.fair}#"),
            until=f"{place}#{row.fair}#{_LAST}",
            limit=turn,
        )
        for waiter in map(waiter_from, more):
            chosen[waiter.sk] = waiter
            reached[row.fair] = waiter.sk
        cursor = row.fair
    return Choice(tuple(chosen.values()), cursor, is_all=len(chosen) < wanted)


def _next_turn(
    gate: str, place: str, cursor: str, reached: Mapping[str, str]
) -> Generator[Effect, Any, Waiter | None]:
    """Return a row of the text whose turn is next: the first text after the cursor, and after the
    last text the first one again. None when no text of this place has rows left.
    """
    position, has_wrapped = cursor, False
    for _ in range(2 * len(reached) + 3):
        found = yield Query(
            tables.MAIL,
            keys.queue(gate),
            after=f"{place}#{position}{_LAST}" if position else f"{place}#",
            until=f"{place}#{_LAST}",
            limit=1,
        )
        if not found:
            if has_wrapped:
                return None
            position, has_wrapped = "", True
            continue
        row = waiter_from(found[0])
        behind = reached.get(row.fair)
        if behind is None:
            return row
        rest = yield Query(
            tables.MAIL,
            keys.queue(gate),
            after=behind,
            until=f"{place}#{row.fair}#{_LAST}",
            limit=1,
        )
        if rest:
            return waiter_from(rest[0])
        position = row.fair
    return None
