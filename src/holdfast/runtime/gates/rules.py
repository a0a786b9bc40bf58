"""The rule of one limit: its declaration in the code, and the changes of operators at run time."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.commands import argument_text
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import GATE_HOLDERS_MAX, GATE_STARTS_PER_SECOND_MAX, RESUME_PER_SECOND
from holdfast.runtime.gates.scopes import is_scope
from holdfast.runtime.storage import keys

MICROSECONDS: Final = 1_000_000
NO_KEY: Final = "-"


def interval_us_of(starts_per_second: float) -> int:
    """Return the time between two starts, rounded up. Rounded down, a limit of 6/s would let in
    more than six a second.
    """
    return math.ceil(round(MICROSECONDS / starts_per_second, 6))


def starts_per_second(interval_us: int) -> float:
    """Return the rate as it was declared: with five digits, so that the rounding does not show."""
    return float(f"{MICROSECONDS / interval_us:.5g}")


@dataclass(frozen=True, slots=True)
class Breaker:
    """A circuit breaker: after `failures` failures within `within_ms`, nothing begins for
    `hold_ms`. Then one attempt is tried.
    """

    failures: int
    within_ms: int
    hold_ms: int


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One limit of the stack. Either `interval_us` (the time between two starts) or `concurrency`
    is set.

    `burst`: the starts that an idle limit allows at once. `weights`: how many attempts in each
    turn, for each value of the parameter by which the limit takes turns.
    """

    name: str
    interval_us: int | None = None
    burst: int = 1
    concurrency: int | None = None
    weights: Mapping[str, int] = field(default_factory=dict)
    trip: Breaker | None = None
    is_paused: bool = False
    paused_until_ms: int = 0

    @property
    def is_rate(self) -> bool:
        return self.interval_us is not None

    @property
    def shards(self) -> int:
        """Return the number of gates of one key. A high rate has several, so that no single
        partition of the table gets too many writes.
        """
        if self.interval_us is not None:
            return -(-MICROSECONDS // (self.interval_us * GATE_STARTS_PER_SECOND_MAX))
        assert self.concurrency is not None
        return -(-self.concurrency // GATE_HOLDERS_MAX)

    def of_shard(self, shard: int) -> LimitRule:
        """Return the part of the limit that one of its gates enforces."""
        count = self.shards
        if count == 1:
            return self
        if self.interval_us is not None:
            burst = max(1, self.burst // count)
            return replace(self, interval_us=self.interval_us * count, burst=burst)
        assert self.concurrency is not None
        places = self.concurrency // count + (shard < self.concurrency % count)
        return replace(self, concurrency=places)


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The use of one limit by a task. `key` and `fair` name parameters of the task, or are None."""

    rule: LimitRule
    key: str | None = None
    fair: str | None = None


@dataclass(frozen=True, slots=True)
class GateId:
    """The identity of one gate: a limit, the hash of the key (or "-"), and the shard."""

    limit: str
    key: str = NO_KEY
    shard: int = 0

    def __str__(self) -> str:
        return f"{self.limit}#{self.key}.{self.shard}"

    @classmethod
    def parse(cls, text: str) -> GateId:
        limit, _, rest = text.rpartition("#")
        key, _, shard = rest.rpartition(".")
        return cls(limit, key, int(shard))


def gate_of(use: LimitUse, rule: LimitRule, arguments: Json, run: str) -> GateId:
    """Return the gate of one use. `rule` is the limit's rule with the operators' changes.
    `arguments` are those of the attempt, or the input of the execution.
    """
    key = NO_KEY if use.key is None else keys.text_hash(argument_text(arguments, use.key))
    return GateId(rule.name, key, zlib.crc32(run.encode()) % rule.shards)


@dataclass(frozen=True, slots=True)
class BatchRule:
    """The batches of one task: at most `most` items in a call; the first item waits for at most
    `wait_ms`.
    """

    task: str
    most: int
    wait_ms: int
    timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class LimitBook:
    """The limits that this process's code declares, by the name of the task or workflow."""

    of_task: Mapping[str, tuple[LimitUse, ...]] = field(default_factory=dict)
    of_workflow: Mapping[str, tuple[LimitUse, ...]] = field(default_factory=dict)
    batches: Mapping[str, BatchRule] = field(default_factory=dict)

    def _uses(self) -> Iterator[LimitUse]:
        for uses in (*self.of_task.values(), *self.of_workflow.values()):
            yield from uses

    def uses(self, task: str) -> tuple[LimitUse, ...]:
        """Return the limits of a task, or of an action of a service: `aws-sdk:dynamodb:putItem`."""
        service = task.rpartition(":")[0]
        return self.of_task.get(task) or self.of_task.get(service, ())

    def rule(self, limit: str) -> LimitRule | None:
        """Return the rule as the code declares it; None when this code does not have the limit."""
        if is_scope(limit):
            return scope_rule(limit)
        return next((use.rule for use in self._uses() if use.rule.name == limit), None)

    def key_of(self, limit: str) -> str | None:
        """Return the parameter for each of whose values the limit has a gate; None when the limit
        has no key.
        """
        return next((use.key for use in self._uses() if use.rule.name == limit and use.key), None)

    @property
    def rules(self) -> dict[str, LimitRule]:
        return {use.rule.name: use.rule for use in self._uses()}


NO_LIMITS: Final = LimitBook()


def scope_rule(gate: str) -> LimitRule:
    """Return the rule of the gate of a pause: it says how fast waiting attempts and executions
    begin after a resume.
    """
    return LimitRule(gate, interval_us=interval_us_of(RESUME_PER_SECOND))


# -- changes by operators --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """The changes that operators have made to one limit. They stay after deployments.

    `reason`, `by` and `at_ms` are those of the last change, `paused_by` and `paused_ms` those of
    the pause. `until_ms` is the end of a pause that has one, else 0. `rv` is the version of the
    stored item, 0 when there is none.
    """

    interval_us: int | None = None
    burst: int | None = None
    concurrency: int | None = None
    is_paused: bool = False
    reason: str = ""
    by: str = ""
    at_ms: int = 0
    rv: int = 0
    paused_by: str = ""
    paused_ms: int = 0
    until_ms: int = 0

    def is_paused_at(self, now_ms: int) -> bool:
        return self.is_paused and not 0 < self.until_ms <= now_ms

    @property
    def is_in_force(self) -> bool:
        """Return True unless the changes were cleared."""
        values = (self.interval_us, self.burst, self.concurrency)
        return self.is_paused or any(value is not None for value in values)


def effective(rule: LimitRule, settings: Settings) -> LimitRule:
    """Return the rule with the operators' changes in place of the values from the code."""
    return replace(
        rule,
        interval_us=rule.interval_us if settings.interval_us is None else settings.interval_us,
        burst=rule.burst if settings.burst is None else settings.burst,
        concurrency=rule.concurrency if settings.concurrency is None else settings.concurrency,
        is_paused=settings.is_paused,
        paused_until_ms=settings.until_ms,
    )


def settings_item(limit: str, settings: Settings) -> dict[str, str | int | bytes]:
    changed = {
        "interval": settings.interval_us,
        "burst": settings.burst,
        "concurrency": settings.concurrency,
    }
    return {
        "pk": keys.LIMIT_SETTINGS,
        "sk": limit,
        "f": 1,
        "rv": settings.rv,
        "paused": int(settings.is_paused),
        "reason": settings.reason,
        "by": settings.by,
        "at": settings.at_ms,
        **({"pby": settings.paused_by, "pat": settings.paused_ms} if settings.is_paused else {}),
        **({"until": settings.until_ms} if settings.until_ms else {}),
        **{name: value for name, value in changed.items() if value is not None},
    }


def settings_of(item: Mapping[str, Any] | None) -> Settings:
    if item is None:
        return Settings()
    return Settings(
        interval_us=item.get("interval"),
        burst=item.get("burst"),
        concurrency=item.get("concurrency"),
        is_paused=bool(item.get("paused")),
        reason=str(item.get("reason", "")),
        by=str(item.get("by", "")),
        at_ms=int(item.get("at", 0)),
        rv=int(item["rv"]),
        paused_by=str(item.get("pby", "")),
        paused_ms=int(item.get("pat", 0)),
        until_ms=int(item.get("until", 0)),
    )
