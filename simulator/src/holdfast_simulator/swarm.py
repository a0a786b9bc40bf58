"""The faults of one schedule and their rates: drawn anew for each schedule.

A fault that is always on hides the behaviour without it, so each is off in a third of the
schedules.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

#: Kind of fault -> the highest rate that a schedule draws for it, per question.
RATES_MAX: Final[Mapping[str, float]] = {
    # Around an effect of a handler.
    "killed before": 0.04,
    "killed after": 0.06,
    "frozen before": 0.03,
    "frozen after": 0.03,
    "throttled": 0.05,
    "slow": 0.05,
    "answer lost": 0.06,  # it was done, and its answer is lost
    "not done": 0.06,  # no answer, and it was not done
    "done later": 0.06,  # no answer, and it is done after a while
    "sent twice": 0.1,
    # Queues.
    "late": 0.2,
    "duplicated": 0.1,
    "vanished": 0.02,  # a purged queue
    "delivered again": 0.2,  # while it is in flight
    "not deleted": 0.1,
    "not hidden": 0.1,
    # Invocations.
    "cold": 0.2,
    "old": 0.2,  # of the deployment before: it knows none of the functions
    "short": 0.2,  # little is left of its time
    "batch lost": 0.1,  # its answer never reaches the queue
    # The minute.
    "missed": 0.2,
    "doubled": 0.1,
    # People.
    "contradicted": 0.3,  # another answer after the first
    "forged": 0.3,  # a token that was changed or stolen
    "answered early": 0.8,  # while the function that handed its token on still runs
}
FREEZES_MS: Final = (2_000, 20_000, 130_000, 1_000_000, 7_200_000)
PAUSES_MS: Final = (1_000, 5_000, 15_000, 60_000)
_OFF: Final = 0.34
#: In this share of the schedules one kind is this many times as frequent, for repeated crashes.
_STORMY, _STORM = 0.1, 8
#: In this share of schedules making a token crashes the worker: its execution is quarantined.
_DEADLY: Final = 0.03
_DEADLY_RECEIVES_MAX: Final = 10
#: Few schedules have these: one with them takes up to three times as long.
_BULK_PERCENTS: Final = (*[0] * 24, 60)
_FORK_PERCENTS: Final = (*[0] * 15, 50)
#: In this share of schedules the stack archives.
_ARCHIVING: Final = 0.06
#: In this share of schedules new ids change their spread.
_GROWING: Final = 0.06
#: Until when things fail, in milliseconds of virtual time.
_SAFETY_MS: Final = (2_000, 20_000, 200_000, 2_000_000, 20_000_000)


@dataclass(frozen=True, slots=True)
class Swarm:
    """The settings of one schedule. `rates`: by kind of fault. `skew_ms`: how far a host's clock
    may be off, either way. `callers`: how many start the same name at once. `stop_percent`: how
    likely a stop of an execution is, in a scenario that may be stopped; `redrive_percent` how
    likely a redrive of an ended one is; `pause_percent` how likely an operator pauses an execution
    of a scenario that may be paused, and resumes it later; `skip_percent` how likely an operator
    gives a step its result, in a scenario that has such results. `has_deadly_tokens`: making a
    token crashes the worker, until the faults are over. `archives`: the stack archives each
    ended execution before TTL may delete its records. `fork_percent`: how likely an operator forks
    an execution, when it begins and when it ends; `bulk_percent`: how likely each of two bulk
    operations is. `grows`: new ids change their spread. `ends_with_tape`: the faults are over when
    the choices on the tape are used up and frozen hosts have thawed.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    safety_ms: int = 0
    skew_ms: int = 0
    batch_size: int = 10
    receives_max: int = 30
    latency_ms: int = 1
    callers: int = 1
    has_other_input: bool = False
    has_other_tenant: bool = False
    stop_percent: int = 0
    redrive_percent: int = 0
    takes_stale_receipts: bool = True
    has_deadly_tokens: bool = False
    pause_percent: int = 0
    skip_percent: int = 0
    archives: bool = False
    fork_percent: int = 0
    bulk_percent: int = 0
    grows: bool = False
    ends_with_tape: bool = False

    def document(self) -> dict[str, Any]:
        return asdict(self)


#: Nothing goes wrong, and everything happens in its order.
QUIET: Final = Swarm()


def drawn(seed: int) -> Swarm:
    """The settings of the schedule with this seed."""
    chance = random.Random(f"swarm {seed}")  # noqa: S311  # repeatable, not secret
    rates = {
        kind: 0.0 if chance.random() < _OFF else most * chance.random() ** 2
        for kind, most in RATES_MAX.items()
    }
    if chance.random() < _STORMY:
        rates[chance.choice(tuple(rates))] *= _STORM
    found = Swarm(
        rates=rates,
        safety_ms=int(chance.choice(_SAFETY_MS) * (0.5 + chance.random())),
        skew_ms=chance.choice((0, 400, 500)),
        batch_size=chance.choice((1, 1, 3, 10)),
        receives_max=chance.choice((2, 3, 10, 30)),
        latency_ms=chance.choice((1, 20, 300)),
        callers=chance.choice((1, 1, 1, 2, 3)),
        has_other_input=chance.random() < 0.3,
        has_other_tenant=chance.random() < 0.2,
        stop_percent=chance.choice((0, 0, 30, 100)),
        takes_stale_receipts=chance.random() < 0.5,
        redrive_percent=chance.choice((0, 0, 0, 60)),
        has_deadly_tokens=chance.random() < _DEADLY,
        pause_percent=chance.choice((0, 50, 100)),
        skip_percent=chance.choice((0, 50, 100)),
        archives=chance.random() < _ARCHIVING,
        fork_percent=chance.choice(_FORK_PERCENTS),
        bulk_percent=chance.choice(_BULK_PERCENTS),
        grows=chance.random() < _GROWING,
    )
    if not found.has_deadly_tokens:
        return found
    # Each delivery kills, and each copy of a message has deliveries of its own: with thirty of them
    # a schedule would never be over.
    return replace(found, receives_max=min(found.receives_max, _DEADLY_RECEIVES_MAX))


def read(document: Mapping[str, Any]) -> Swarm:
    return Swarm(**document)
