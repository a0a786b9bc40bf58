"""The operations on limits: show them, change them, pause and resume them.

A change is one item for each limit, with its author and reason. It takes precedence over the value
in the code, also after deployments, until it is cleared. Before a change replaces an older one, the
older one is copied into another partition. So no change is missing in the list of changes after a
crash between the two writes, and hosts still read only one small item: at most every five seconds,
dispensers at each tick.

A pause also marks the gates of a limit without keys as having waiters, so that new attempts wait at
once. A resume, and every other change, starts a new chain of ticks at gates that have waiters.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.limits import LIMIT_CHANGE_RETENTION_SECONDS
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    NoResult,
    Put,
    PutIfAbsent,
    Query,
    Replace,
)
from holdfast.runtime.gates import dispense
from holdfast.runtime.gates import gate as gates
from holdfast.runtime.gates.gate import gate_from
from holdfast.runtime.gates.rules import (
    NO_KEY,
    GateId,
    LimitRule,
    Settings,
    effective,
    settings_item,
    settings_of,
)
from holdfast.runtime.gates.scopes import SCOPE_PREFIX, is_scope
from holdfast.runtime.storage import keys, tables

#: After this many refused writes of the settings in a row the command gives up.
_RACES_MAX: Final = 5
#: At most this many rows of a queue are counted; a longer queue is reported as "1,000 or more".
COUNTED_MAX: Final = 1_000
#: The number of earlier changes of a limit that are shown.
CHANGES_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class GateReport:
    """The present state of one gate. `waiting` counts up to `COUNTED_MAX`. `oldest_ms` is the time
    at which the first attempt in the queue began to wait, None for an empty queue. `factor` is 1.0
    unless the limit was slowed down.
    """

    gate: GateId
    rule: LimitRule
    in_use: int
    waiting: int
    oldest_ms: int | None
    factor: float
    closed_ms: int


def settings_now(limit: str) -> Generator[Effect, Any, Settings]:
    return settings_of((yield Get(tables.MAIL, keys.LIMIT_SETTINGS, limit)))


def change(rule: LimitRule, changed: Mapping[str, Any]) -> Generator[Effect, Any, Settings | None]:
    """Store the fields of `Settings` in `changed`, then make the queues read them.

    Return None when nothing was stored, because other writers changed the limit before each try.
    """
    for _ in range(_RACES_MAX):
        settings = yield from settings_now(rule.name)
        now_ms = yield Clock()
        later = replace(settings, **changed, at_ms=now_ms, rv=settings.rv + 1)
        if later.is_paused and not settings.is_paused:
            # Keep author and time of the pause apart from those of the change, so that `show` does
            # not name the author of a later change as the one who paused the limit.
            later = replace(later, paused_by=later.by, paused_ms=now_ms)
        item = settings_item(rule.name, later)
        if settings.rv > 0:
            yield Put(tables.MAIL, _replaced_item(rule.name, settings, now_ms))
        if settings.rv == 0:
            is_stored = (yield PutIfAbsent(tables.MAIL, item)) is None
        else:
            is_stored = yield Replace(tables.MAIL, item, settings.rv)
        if is_stored:
            # Announce the change to the shards of the old rate, too. A lower rate has fewer shards,
            # and attempts that wait at the other shards would otherwise not learn of the change.
            shards = max(effective(rule, one).shards for one in (settings, later))
            for shard in range(shards):
                yield from _announce(GateId(rule.name, NO_KEY, shard), later, now_ms)
            return later
    return None


def _replaced_item(limit: str, settings: Settings, now_ms: int) -> Item:
    return {
        **settings_item(limit, settings),
        "pk": keys.limit_changes(limit),
        "sk": keys.limit_change(settings.rv),
        "ttl": now_ms // 1_000 + LIMIT_CHANGE_RETENTION_SECONDS,
    }


def changes(limit: str) -> Generator[Effect, Any, list[Settings]]:
    """Return the changes that were replaced by later ones, newest first, at most `CHANGES_MAX`."""
    rows = yield Query(tables.MAIL, keys.limit_changes(limit), reverse=True, limit=CHANGES_MAX)
    return [settings_of(row) for row in rows]


def changed_limits() -> Generator[Effect, Any, dict[str, Settings]]:
    """Return the settings of every limit that an operator has changed, by its name."""
    items = yield Query(tables.MAIL, keys.LIMIT_SETTINGS)
    found = {str(item["sk"]): settings_of(item) for item in items}
    return {name: settings for name, settings in found.items() if not is_scope(name)}


def changed_scopes() -> Generator[Effect, Any, dict[str, Settings]]:
    """Return the settings of every scope that was ever paused, by the name of its gate."""
    items = yield Query(tables.MAIL, keys.LIMIT_SETTINGS, begins_with=SCOPE_PREFIX)
    return {str(item["sk"]): settings_of(item) for item in items}


def _announce(gate_id: GateId, settings: Settings, now_ms: int) -> NoResult:
    """Start a new chain of ticks at a gate, so that its queue uses the change. Gates with a key are
    not known here: their own next tick, or the next attempt, reads the change.
    """
    gate = gate_from((yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)))
    if gate.has_waiters or settings.is_paused:
        begun = yield gates.begin_chain(gate_id, gate, now_ms)
        if begun.is_done:
            yield dispense.next_tick(gate_id, gate_from(begun.item).chain, 0)


def report(gate_id: GateId, rule: LimitRule) -> Generator[Effect, Any, GateReport]:
    """Return the use of one gate. `rule` is that of the whole limit, with the operators'
    changes.
    """
    now_ms = yield Clock()
    gate = gate_from((yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)))
    rows = yield Query(tables.MAIL, keys.queue(str(gate_id)), limit=COUNTED_MAX)
    return GateReport(
        gate_id,
        rule.of_shard(gate_id.shard),
        in_use=gate.count - len(gates.lapsed(gate, now_ms)),
        waiting=len(rows),
        oldest_ms=min((int(row["since"]) for row in rows), default=None),
        factor=gate.factor_at(now_ms),
        closed_ms=gate.closed_ms,
    )
