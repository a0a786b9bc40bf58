"""Schedules: nominal times, and what to start when one is due. The functions are pure: the time is
an argument.

A *nominal time* is an instant at which a schedule should start an execution. A cron expression
gives local times; this module converts each to an instant. Daylight saving time has these effects:

    Europe/Berlin, 29 March 2026: 01:59 is followed by 03:00
        30 2 * * *   missing="shift" ─► 03:30 local   missing="skip" ─► no execution on that day
    Europe/Berlin, 25 October 2026: 02:59 is followed by 02:00
        30 2 * * *   repeated="first" ─► 02:30 summer time   repeated="last" ─► 02:30 winter time

Each local time gives at most one instant, so an expression for every hour has no second execution
in a repeated hour. A period (`every`) counts from 1970-01-01 UTC and does not depend on local time.

Near such a change the order of the local times differs from the order of their instants. So for the
next instant the search compares all local times within the size of the change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

Missing: TypeAlias = Literal["shift", "skip"]
Repeated: TypeAlias = Literal["first", "last"]
Overlap: TypeAlias = Literal["skip", "queue-one", "queue-all", "cancel-other", "allow"]

MINUTE_MS: Final = 60_000
#: An execution that starts later than this after its nominal time counts as late.
LATE_MS: Final = 5 * MINUTE_MS
#: At most this many nominal times wait for a running execution to end.
QUEUED_MAX: Final = 1_000
#: Skipped nominal times are counted up to this number. If there are more, the search continues at
#: the present time, because it would otherwise visit every missed time of a long pause.
_COUNTED_MAX: Final = 1_000
#: A change of the zone's offset is searched this far before and after a time. The largest known
#: change of a zone is one day.
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
    """Return the first nominal time after `after_ms`; None when there is none in the coming
    decades.
    """
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
    """Return the instant of a local time; None when the clock skips that local time and the rule
    says "skip".
    """
    zone = _zone(rule.zone)
    first = local.replace(tzinfo=zone, fold=0)
    last = local.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == last.utcoffset():
        return _ms(first)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local:
        return _ms(first if rule.repeated == "first" else last)
    # The clock skips this local time. With fold=0 Python uses the offset before the change (PEP
    # 495), so the time becomes later by the size of the gap.
    return _ms(first) if rule.missing == "shift" else None


def _local_times(cron: str, begin: datetime) -> Iterator[datetime]:
    """Yield the local times of the expression from `begin` on."""
    from cronsim import CronSim  # noqa: PLC0415

    yield from CronSim(cron, begin - timedelta(minutes=1))


def _spread(zone: ZoneInfo, at: datetime) -> timedelta:
    """Return by how much the offset of the zone changes near this instant."""
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
    """Return what is wrong with the expression or the zone; None when both are valid."""
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
    """Return the start time of the execution for a nominal time. Its jitter is computed from
    schedule and nominal time, so it is the same each time.
    """
    if not rule.jitter_ms:
        return nominal_ms
    digest = hashlib.sha256(f"{schedule}.{nominal_ms}".encode()).digest()
    return nominal_ms + int.from_bytes(digest[:8], "big") % rule.jitter_ms


def execution_name(schedule: str, nominal_ms: int) -> str:
    """Return the name of the execution for a nominal time. A second start with the same name starts
    nothing, so a nominal time has only one execution.
    """
    return f"{schedule}-{_instant(nominal_ms):%Y%m%dT%H%MZ}"


# -- the decision about due times ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Policy:
    """How a schedule handles overlaps and late times. Nominal times that are older than
    `catch_up_ms` are skipped. `burst_max` is the largest number of starts of one decision.
    """

    overlap: Overlap
    catch_up_ms: int
    burst_max: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a schedule has been processed.

    * `next_ms`: the first nominal time that is not decided yet.
    * `queued`: nominal times that wait for the end of a running execution.
    * `backfill`: the past range that is being made up for: the last nominal time that was started,
      and the end of the range.
    * `open`: the executions that were running at the last check.
    * `skipped`, `missed`, `late`, `refused`: numbers of nominal times that were skipped because of
      an overlap, that were too old, that started late, and whose start was refused with `fault`.
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
    """The nominal times to start now, in order. `stops_others`: first stop the running executions,
    and those of the nominal times in `replaced`.
    """

    starts: tuple[int, ...]
    progress: Progress
    stops_others: bool = False
    replaced: tuple[int, ...] = ()


def decide(rule: Rule, policy: Policy, schedule: str, progress: Progress, now_ms: int) -> Decision:
    """Return what to start now. `progress.open` holds the executions that run now.

    Until another nominal time is due, the same progress gives the same starts. So a worker that
    repeats a decision after a crash starts the same executions with the same names, which has no
    second effect.
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
    """Return the nominal times that are due, at most `burst_max`, and the progress after them."""
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
                # Under this policy each start stops the executions that run. An earlier start of
                # this decision would be stopped at once, so count it as skipped instead.
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
        """Start nominal times of a past range: one after another, or several at once if executions
        may overlap.
        """
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
