"""The results of many schedules, and their report, which can be stored and summed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast_simulator.marks import ALL_MARKS
from holdfast_simulator.runner import ScheduleResult

FAILURES_KEPT_MAX: Final = 20
_YEAR_MS: Final = 365 * 86_400_000
_TRACES: Final = 2**128


@dataclass
class Tally:
    """`marks`: in how many schedules each was reached. `traces`: of all schedules, in one number
    that does not depend on their order. `failures`: the first ones, by name.
    """

    schedules: int = 0
    steps: int = 0
    virtual_ms: int = 0
    traces: int = 0
    marks: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, ScheduleResult]] = field(default_factory=list)

    def add(self, name: str, result: ScheduleResult) -> None:
        self.schedules += 1
        self.steps += result.steps
        self.virtual_ms += result.virtual_ms
        self.traces = (self.traces + int(result.trace, 16)) % _TRACES
        self.marks.update(result.marks.keys())
        self.statuses.update(result.statuses)
        if result.violations:
            self.violated.update({one.invariant for one in result.violations})
            self.failures.append((name, result))
            del self.failures[FAILURES_KEPT_MAX:]

    def merge(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.steps += other.steps
        self.virtual_ms += other.virtual_ms
        self.traces = (self.traces + other.traces) % _TRACES
        self.marks.update(other.marks)
        self.statuses.update(other.statuses)
        self.violated.update(other.violated)
        self.failures += other.failures
        del self.failures[FAILURES_KEPT_MAX:]

    @property
    def virtual_years(self) -> float:
        return self.virtual_ms / _YEAR_MS

    def rare(self, least: int) -> list[tuple[str, int]]:
        """Return the marks that were reached less often than that, and how often."""
        return [(mark, self.marks[mark]) for mark in ALL_MARKS if self.marks[mark] < least]

    def document(self) -> dict[str, Any]:
        """Return the document that `read` reads: everything except the failures, whose names are
        kept.
        """
        return {
            "schedules": self.schedules,
            "effects": self.steps,
            "virtual_ms": self.virtual_ms,
            "traces": f"{self.traces:032x}",
            "ends": dict(sorted(self.statuses.items())),
            "violated": dict(sorted(self.violated.items())),
            "marks": {mark: self.marks[mark] for mark in ALL_MARKS},
            "failures": [name for name, _ in self.failures],
        }


def read(document: Mapping[str, Any]) -> Tally:
    """Raises KeyError, TypeError, ValueError for another document."""
    return Tally(
        schedules=int(document["schedules"]),
        steps=int(document["effects"]),
        virtual_ms=int(document["virtual_ms"]),
        traces=int(document["traces"], 16),
        marks=Counter(document["marks"]),
        statuses=Counter(document["ends"]),
        violated=Counter(document["violated"]),
    )
