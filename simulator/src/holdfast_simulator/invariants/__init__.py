"""The invariants I1 to I26, which hold after any faults: each is a function of the evidence.

Each checker gives what it found wrong, as sentences. Most need the store alone, and who ran what;
those with `needs_schedule` know the whole schedule, as the others do where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from holdfast.errors import HoldfastError
from holdfast_simulator import histories as stored
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import (
    archives,
    attempts,
    bulks,
    commands,
    ends,
    forks,
    inbox,
    index,
    lanes,
    liveness,
    log,
    outside,
    pauses,
    skips,
    timing,
    undos,
)
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.reached import reached
from holdfast_simulator.services import Services

__all__ = [
    "ALL",
    "VIOLATIONS_MAX",
    "Invariant",
    "StoredHistory",
    "check",
    "histories",
    "lost",
    "violations",
]

VIOLATIONS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Invariant:
    """One invariant. `promise`: the sentence that must hold."""

    number: str
    promise: str
    check: Callable[[Case], Iterator[str]]
    needs_schedule: bool = False


ALL: Final[tuple[Invariant, ...]] = (
    Invariant("I1", "each record follows the last one, and one writer wrote it", log.one_writer),
    Invariant("I2", "a history is dense, legal, and ends once", log.legal),
    Invariant("I3", "the history gives the state, byte for byte", log.replays),
    Invariant("I4", "nothing happens that no record asked for", commands.asked_for),
    Invariant("I5", "a result is applied once, to its own attempt", attempts.applied_once),
    Invariant("I6", "no timer fires early, without a start or after its end", timing.never_early),
    Invariant("I7", "an answer and an event are used once, by who waits", inbox.used_once),
    Invariant("I8", "of time-out, result and answer one wins", timing.one_wins),
    Invariant("I9", "a stop and an end meet in one winner", ends.one_end),
    Invariant("I10", "undone is what was done, in reverse", undos.undone_in_reverse),
    Invariant("I11", "lanes are joined once, in order, within their bounds", lanes.joined),
    Invariant("I12", "one execution of one name and input", outside.one_of_a_name, True),
    Invariant("I13", "the end is the one that the program has", ends.as_the_reference_says, True),
    Invariant("I14", "nothing stored is above its limit, no secret is in the clear", log.limits),
    Invariant("I15", "no tenant touches what another one owns", outside.tenants_apart, True),
    Invariant("I16", "no accepted execution is lost", liveness.none_lost),
    Invariant("I17", "after the faults everything moves in time", liveness.none_stuck, True),
    Invariant("I18", "timers are late by no more than is stated", liveness.in_time, True),
    Invariant("I19", "dead letters are harmless", liveness.dead_letters, True),
    Invariant("I20", "work is bounded", liveness.bounded, True),
    Invariant("I21", "nothing begins while an execution is paused", pauses.begun_in_pauses),
    Invariant("I22", "a skipped step has the result that was given for it", skips.given),
    Invariant("I23", "the index shows each wait and each attribute", index.agrees, True),
    Invariant("I24", "no record expires before it is archived", archives.kept, True),
    Invariant("I25", "a fork continues the history of its origin", forks.continued),
    Invariant("I26", "a bulk operation gives its command once", bulks.given_once, True),
)


def violations(evidence: Evidence) -> list[tuple[str, str]]:
    """Return (number, sentence) of everything that a schedule broke."""
    bugs = [("code", text) for text in evidence.refused_by_bug]
    return bugs + _checked(evidence.services, evidence.task_runs, evidence)


class StoreView(Protocol):
    """The stored data of any object with services, and the attempts that ran: (run, entry,
    attempt).
    """

    @property
    def services(self) -> Services: ...

    @property
    def task_runs(self) -> Iterable[tuple[str, int, int]]: ...


def histories(world: StoreView) -> list[StoredHistory]:
    """Return the executions of the store. Raises HoldfastError when a log cannot be read."""
    return stored.histories(world.services)


def check(world: StoreView) -> list[str]:
    """Return every violation that can be seen without a schedule, as sentences."""
    found = _checked(world.services, frozenset(world.task_runs), None)
    return [f"{number} {text}" for number, text in found]


def lost(world: StoreView) -> list[str]:
    """Return executions that were accepted and have not ended."""
    return sorted(liveness.open_runs(Case(world.services, histories(world), frozenset())))


def _checked(
    services: Services, ran: frozenset[tuple[str, int, int]], evidence: Evidence | None
) -> list[tuple[str, str]]:
    try:
        case = Case(services, stored.histories(services), ran, evidence)
    except (HoldfastError, KeyError, AssertionError) as error:
        unread = [("I3", f"a log cannot be read: {error!r}")]
        if evidence is not None:
            unread += [("I1", text) for text in log.written_in_order(evidence)]
        return unread
    found = [
        (invariant.number, text)
        for invariant in ALL
        if evidence is not None or not invariant.needs_schedule
        for text in _found(invariant, case)
    ]
    if evidence is not None and not found:
        evidence.marks.update(reached(evidence, case.histories))
    return found


def _found(invariant: Invariant, case: Case) -> list[str]:
    """Return the violations. An invariant that crashes on its data has found a violation
    as well.
    """
    found: list[str] = []
    try:
        found.extend(invariant.check(case))
    except (HoldfastError, KeyError, AssertionError) as error:
        found.append(f"it cannot be told, for {error!r}")
    return found
