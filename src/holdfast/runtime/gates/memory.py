"""The limits as one process remembers them: their rules, the operators' changes, the gates it has
seen.

Nothing here decides whether an attempt may begin. If the memory is out of date, the condition of
the write refuses it, and the response contains the present gate.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.limits import LIMIT_SETTINGS_MS
from holdfast.runtime.effects import Effect, Get, Item, NoResult, Query
from holdfast.runtime.gates.gate import Gate, gate_from
from holdfast.runtime.gates.rules import (
    NO_LIMITS,
    GateId,
    LimitBook,
    LimitRule,
    Settings,
    effective,
    settings_of,
)
from holdfast.runtime.gates.scopes import SCOPE_PREFIX, Scope
from holdfast.runtime.storage import keys, tables

_GATES_MAX = 10_000
#: For this time after a read that found waiting attempts, a worker assumes that the gate still has
#: some. It then skips a write that would be refused.
_BUSY_MS = 1_000


@dataclass
class GateMemory:
    """A process's copy of the state of the limits and pauses, for as long as the process lives.

    Before its first `look` the process does not know which tasks and workflows an operator has
    paused. So a host calls `look` before its first message; otherwise a paused task would run.
    """

    book: LimitBook = NO_LIMITS
    _gates: dict[GateId, tuple[int, Gate]] = field(default_factory=dict)
    _settings: dict[str, tuple[int, Settings]] = field(default_factory=dict)
    _pauses: dict[str, Settings] = field(default_factory=dict)
    _looked_ms: int | None = None

    def look(self, now_ms: int) -> NoResult:
        """Read which scopes are paused, at most once in `LIMIT_SETTINGS_MS`. One query reads all of
        them.
        """
        if self._looked_ms is not None and 0 <= now_ms - self._looked_ms <= LIMIT_SETTINGS_MS:
            return
        items = yield Query(tables.MAIL, keys.LIMIT_SETTINGS, begins_with=SCOPE_PREFIX)
        self._pauses = {str(item["sk"]): settings_of(item) for item in items}
        self._looked_ms = now_ms

    def pause_of(
        self, scopes: tuple[Scope, ...], now_ms: int
    ) -> Generator[Effect, Any, tuple[Scope, Settings] | None]:
        """Return the first of the scopes that is paused, and its settings."""
        if self._looked_ms is None:
            return None
        yield from self.look(now_ms)
        for scope in scopes:
            settings = self._pauses.get(scope.gate)
            if settings is not None and settings.is_paused_at(now_ms):
                return scope, settings
        return None

    def rule(
        self, rule: LimitRule, now_ms: int, *, is_fresh: bool = False
    ) -> Generator[Effect, Any, LimitRule]:
        """Return the limit with the changes of operators, read at most `LIMIT_SETTINGS_MS` ago."""
        read_ms, settings = self._settings.get(rule.name, (0, Settings()))
        if is_fresh or now_ms - read_ms > LIMIT_SETTINGS_MS or now_ms < read_ms:
            settings = settings_of((yield Get(tables.MAIL, keys.LIMIT_SETTINGS, rule.name)))
            self._settings[rule.name] = (now_ms, settings)
        is_paused = settings.is_paused_at(now_ms)
        return replace(effective(rule, settings), is_paused=is_paused)

    def seen(self, gate_id: GateId) -> Gate:
        return self._gates.get(gate_id, (0, Gate(permits={})))[1]

    def see(self, gate_id: GateId, item: Item, now_ms: int) -> Gate:
        gate = gate_from(item)
        if len(self._gates) >= _GATES_MAX:
            self._gates.clear()
        self._gates[gate_id] = (now_ms, gate)
        return gate

    def is_busy(self, gate_id: GateId, now_ms: int) -> bool:
        """Return True when attempts waited at this gate a moment ago. The caller then skips a write
        that would be refused.
        """
        seen_ms, gate = self._gates.get(gate_id, (0, None))
        return gate is not None and gate.has_waiters and 0 <= now_ms - seen_ms < _BUSY_MS
