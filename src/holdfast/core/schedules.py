"""Schedules: nominal times, and what to do when one is due. Pure: the caller gives the time.

A *nominal time* is an instant at which a schedule should start an execution. A cron expression
names local times; this module turns each into an instant, and says what daylight saving time does
to it:

    Europe/Berlin, 29 March 2026: 01:59 is followed by 03:00
        30 2 * * *   missing="shift" ─► 03:30 local   missing="skip" ─► no execution on that day
    Europe/Berlin, 25 October 2026: 02:59 is followed by 02:00
        30 2 * * *   repeated="first" ─► 02:30 summer time   repeated="last" ─► 02:30 winter time

Each local time gives one instant at most, so an expression for every hour has no second run in a
repeated hour. `every` counts from the epoch, and knows no local time.

Local times are not in the order of their instants near such a change. So the search looks at more
local times there: at all within the size of the change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

Missing: TypeAlias = Literal["shift", "skip"]
Repeated: TypeAlias = Literal["first", "last"]
Overlap: TypeAlias = Literal["skip", "queue-one", "queue-all", "cancel-other", "allow"]

MINUTE_MS: Final = 60_000
#: An execution that starts later than this after its nominal time counts as late.
LATE_MS: Final = 5 * MINUTE_MS
#: The number of nominal times that may wait for a running execution.
QUEUED_MAX: Final = 1_000
#: The number of skipped nominal times that are counted one by one; after them the search jumps
#: ahead.
_COUNTED_MAX: Final = 1_000
#: The distance around a time in which a change of the zone's offset is searched. The largest known
#: change is one day.
_AROUND: Final = timedelta(hours=26)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rule:
    """The times of a schedule: a cron expression in a zone, or a period `every_ms`. Exactly one is
    set.
    """

    cron: str = ""
    zone: str = "UTC"
    every_ms: int = 0
    missing: Missing = "shift"
    repeated: Repeated = "first"
    jitter_ms: int = 0


# -- nominal times ---------------------------------------------------------------------------------


def next_after(rule: Rule, after_ms: int) -> int | None:
    """Return the first nominal time after `after_ms`; None when the rule has none for decades."""
    if rule.every_ms:
        return (after_ms // rule.every_ms + 1) * rule.every_ms
    return _next_of_cron(rule, after_ms)


def _next_of_cron(rule: Rule, after_ms: int) -> int | None:
    zone = _zone(rule.zone)
    after = _instant(after_ms)
    begin = after.astimezone(zone).replace(tzinfo=None) - _spread(zone, after)
    best: int | None = None
    last: datetime | None = None
    for local in _local_times(rule.cron, begin):
        if last is not None and local > last:
            break
        at_ms = instant_of(rule, local)
        if at_ms is None or at_ms <= after_ms:
            continue
        best = at_ms if best is None else min(best, at_ms)
        if last is None:
            last = local + _spread(zone, _instant(at_ms))
    return best


def instant_of(rule: Rule, local: datetime) -> int | None:
    """Return the instant of a local time without zone; None when it is missing and is skipped."""
    zone = _zone(rule.zone)
    first = local.replace(tzinfo=zone, fold=0)
    last = local.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == last.utcoffset():
        return _ms(first)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local:
        return _ms(first if rule.repeated == "first" else last)
    # PEP 495: fold=0 uses the offset before the change, so the missing time moves on by the gap.
    return _ms(first) if rule.missing == "shift" else None


def _local_times(cron: str, begin: datetime) -> Iterator[datetime]:
    """Yield the local times of the expression from `begin` on."""
    from cronsim import CronSim  # noqa: PLC0415

    yield from CronSim(cron, begin - timedelta(minutes=1))


def _spread(zone: ZoneInfo, at: datetime) -> timedelta:
    """Return by how much the offset of the zone changes around an instant."""
    offsets = [
        (at + distance).astimezone(zone).utcoffset() or timedelta()
        for distance in (-_AROUND, timedelta(), _AROUND)
    ]
    return max(offsets) - min(offsets)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    return ZoneInfo(name)


def _instant(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def fault_in(rule: Rule) -> str | None:
    """Return what is wrong with the expression or the zone; None when both can be read."""
    from zoneinfo import ZoneInfoNotFoundError  # noqa: PLC0415

    from cronsim import CronSimError  # noqa: PLC0415

    if rule.every_ms:
        return None
    if len(rule.cron.split()) != _CRON_FIELDS:
        return f"the cron expression {rule.cron!r} has not five fields"
    try:
        _zone(rule.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"there is no time zone {rule.zone!r}"
    try:
        next_after(rule, 0)
    except CronSimError as error:
        return f"the cron expression {rule.cron!r} cannot be read: {error}"
    return None


_CRON_FIELDS: Final = 5


def due_ms(rule: Rule, schedule: str, nominal_ms: int) -> int:
    """Return when the execution of a nominal time starts: after its jitter, which is always the
    same.
    """
    if not rule.jitter_ms:
        return nominal_ms
    digest = hashlib.sha256(f"{schedule}.{nominal_ms}".encode()).digest()
    return nominal_ms + int.from_bytes(digest[:8], "big") % rule.jitter_ms


def execution_name(schedule: str, nominal_ms: int) -> str:
    """Return the name of the execution of a nominal time. The name makes it happen once."""
    return f"{schedule}-{_instant(nominal_ms):%Y%m%dT%H%MZ}"


# -- what to do ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Policy:
    """How a schedule handles overlaps and late times. `catch_up_ms`: older nominal times are
    skipped. `burst_max`: the starts of one decision, in a minute.
    """

    overlap: Overlap
    catch_up_ms: int
    burst_max: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a schedule has come.

    `next_ms`: the first nominal time that is not decided yet. `queued`: nominal times that wait for
    the end of a running execution. `backfill`: the last nominal time that is made up for, and the
    end of the range. `open`: the executions that ran when they were last looked at. `skipped` by
    overlap, `missed` as too old, `late` starts, `refused` starts with `fault`.
    """

    next_ms: int | None
    queued: tuple[int, ...] = ()
    backfill: tuple[int, int] | None = None
    open: tuple[str, ...] = ()
    is_paused: bool = False
    started: int = 0
    skipped: int = 0
    missed: int = 0
    late: int = 0
    refused: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The starts of one decision. `starts`: nominal times, in order. `stops_others`: stop running
    executions first, and those of the times in `replaced`.
    """

    starts: tuple[int, ...]
    progress: Progress
    stops_others: bool = False
    replaced: tuple[int, ...] = ()


def decide(rule: Rule, policy: Policy, schedule: str, progress: Progress, now_ms: int) -> Decision:
    """Return what to start now. `progress.open` holds the executions that run now.

    The same progress gives the same starts at any time in which nothing more is due. So a worker
    that repeats a decision after a crash starts the same executions, by the same names.
    """
    if progress.is_paused:
        return Decision((), progress)
    due, progress = _due(rule, policy, schedule, progress, now_ms)
    found = _Choice(policy, progress)
    found.take_queued()
    for nominal_ms in due:
        found.take(nominal_ms)
    found.take_backfill(rule)
    late = sum(due_ms(rule, schedule, one) + LATE_MS < now_ms for one in found.starts if one in due)
    progress = found.progress
    progress = replace(
        progress, started=progress.started + len(found.starts), late=progress.late + late
    )
    replaced = tuple(found.replaced)
    return Decision(tuple(found.starts), progress, found.stops_others, replaced)


def _due(
    rule: Rule, policy: Policy, schedule: str, progress: Progress, now_ms: int
) -> tuple[list[int], Progress]:
    """Return the nominal times that are due, at most a burst of them, and the progress after."""
    oldest_ms = now_ms - policy.catch_up_ms
    due, missed, at_ms = list[int](), 0, progress.next_ms
    while at_ms is not None and due_ms(rule, schedule, at_ms) <= now_ms:
        if len(due) >= policy.burst_max:
            break
        if at_ms < oldest_ms:
            missed += 1
            at_ms = next_after(rule, at_ms if missed < _COUNTED_MAX else oldest_ms - 1)
            continue
        due.append(at_ms)
        at_ms = next_after(rule, at_ms)
    return due, replace(progress, next_ms=at_ms, missed=progress.missed + missed)


@dataclass(slots=True)
class _Choice:
    """Applies the overlap policy to one nominal time after another."""

    policy: Policy
    progress: Progress
    starts: list[int] = field(default_factory=list)
    stops_others: bool = False
    replaced: list[int] = field(default_factory=list)

    @property
    def _is_busy(self) -> bool:
        return bool(self.progress.open or self.starts)

    def take_queued(self) -> None:
        queued = self.progress.queued
        if queued and not self._is_busy:
            self.starts.append(queued[0])
            self.progress = replace(self.progress, queued=queued[1:])

    def take(self, nominal_ms: int) -> None:
        progress = self.progress
        waits = len(progress.queued)
        match self.policy.overlap:
            case "allow":
                self.starts.append(nominal_ms)
            case "cancel-other":
                # An earlier start of this decision would be stopped at once, so count it as
                # skipped.
                self.progress = replace(progress, skipped=progress.skipped + len(self.starts))
                self.replaced += self.starts
                self.starts[:] = [nominal_ms]
                self.stops_others = bool(progress.open or self.replaced)
            case _ if not self._is_busy and not waits:
                self.starts.append(nominal_ms)
            case "queue-one" if not waits:
                self.progress = replace(progress, queued=(nominal_ms,))
            case "queue-all" if waits < QUEUED_MAX:
                self.progress = replace(progress, queued=(*progress.queued, nominal_ms))
            case "skip" | "queue-one" | "queue-all":
                self.progress = replace(progress, skipped=progress.skipped + 1)

    def take_backfill(self, rule: Rule) -> None:
        """Make up for past times, one after another; in bursts where executions may overlap."""
        while self.progress.backfill is not None and self._has_room:
            reached_ms, end_ms = self.progress.backfill
            at_ms = next_after(rule, reached_ms)
            if at_ms is None or at_ms > end_ms:
                self.progress = replace(self.progress, backfill=None)
                return
            self.starts.append(at_ms)
            self.progress = replace(self.progress, backfill=(at_ms, end_ms))

    @property
    def _has_room(self) -> bool:
        if self.policy.overlap == "allow":
            return len(self.starts) < self.policy.burst_max
        return not self._is_busy and not self.progress.queued
