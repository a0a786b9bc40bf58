"""What a simulation leaves behind, and what was seen on the way: all that an invariant looks at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from holdfast.asl.program import Json
from holdfast.sim.scenarios import Scenario
from holdfast.sim.services import Services
from holdfast.sim.swarm import Swarm


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt of a task was begun; `is_poll`: its job was asked for."""

    run: str
    entry: int
    attempt: int
    is_poll: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class Wrote:
    """One record got into a log, at this true time."""

    tenant: str
    run: str
    sequence: int
    nonce: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Started:
    """A caller was answered. `run` None: refused, with `refused` as the code."""

    tenant: str
    workflow: str
    name: str | None
    data: Json
    run: str | None
    refused: str | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Told:
    """Somebody from outside was answered: `what` is "answer", "event" or "stop"."""

    what: str
    tenant: str
    run: str | None
    request: Any
    refused: str | None
    at_ms: int


@dataclass
class Evidence:
    """`faults_end_ms`: from then on nothing went wrong. `stuck`: (run, since, at) of executions
    that should have moved long before they were looked at. `foreign`: effects on another tenant's
    keys. `messages`: how many were sent, by execution. `refused_by_bug`: errors of our own code.
    """

    scenario: Scenario
    swarm: Swarm
    services: Services
    ran: list[Ran] = field(default_factory=list)
    wrote: list[Wrote] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    stuck: list[tuple[str, int, int]] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    refused_by_bug: list[str] = field(default_factory=list)
    faults_end_ms: int = 0
    ended_ms: int = 0

    @property
    def task_runs(self) -> frozenset[tuple[str, int, int]]:
        """(run, entry, attempt) of all that ran."""
        return frozenset((one.run, one.entry, one.attempt) for one in self.ran)
