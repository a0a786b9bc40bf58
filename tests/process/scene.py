"""The evidence of a trial when it is over: the logs, and the observations of other processes.

Every time here is in seconds of the machine's one clock. A log itself has only the times of
its writers' clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from holdfast.core.apply.apply import fold
from holdfast.core.events import Event
from holdfast.core.state import Execution
from tests.process.chaos import Harm
from tests.process.evidence import Evidence, Log, place
from tests.process.ledger import Begun, by_attempt
from tests.process.roles import Answer


@dataclass(frozen=True)
class Scene:
    """`arrived` and `digests` are the journal's, by the place of a record; `starts` too, by the
    execution. `last_at` is when the last fault was over.
    """

    found: Evidence
    arrived: Mapping[str, float]
    digests: Mapping[str, str]
    starts: Mapping[str, int]
    ledger: tuple[Begun, ...]
    answers: tuple[Answer, ...]
    harms: tuple[Harm, ...]
    last_at: float

    def arrivals(self, log: Log) -> list[float]:
        """Return the arrival time of each record at the cloud."""
        return [self.arrived.get(place(item), 0.0) for item in log.items]

    def events(self, log: Log) -> Iterator[tuple[float, Event]]:
        """Yield each event, and when its record came."""
        for at, record in zip(self.arrivals(log), log.records, strict=True):
            for event in record.events:
                yield at, event

    def state_at(self, log: Log, moment: float) -> Execution | None:
        """Return the state after its records up to then; None: it had none."""
        arrivals = zip(self.arrivals(log), log.records, strict=True)
        events = [event for at, record in arrivals if at <= moment for event in record.events]
        return fold(events) if events else None

    def ended_at(self, log: Log) -> float | None:
        return self.arrivals(log)[-1] if log.state.is_ended else None

    @cached_property
    def beginnings(self) -> Mapping[str, list[Begun]]:
        return by_attempt(self.ledger)

    @cached_property
    def accepted(self) -> Mapping[str, float]:
        """Return, for each root, the time at which a caller first learned of it, or it
        first wrote.
        """
        found: dict[str, float] = {}
        seen = [(answer.told, answer.at) for answer in self.answers if answer.is_start]
        begun = [(log.run, self.arrivals(log)[0]) for log in self.found.logs.values()]
        for run, at in (*seen, *begun):
            root = root_of(run)
            found[root] = min(found.get(root, at), at)
        return found


def root_of(run: str) -> str:
    """A child's id is its parent's and more."""
    return run.partition(".")[0]
