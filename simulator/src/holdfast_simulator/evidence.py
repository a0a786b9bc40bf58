"""The evidence of a simulation for the invariants: the stored data and the observations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from holdfast.asl.program import Json
from holdfast_simulator.archive import ArchiveEvidence
from holdfast_simulator.dispatches import Dispatches
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.services import Services
from holdfast_simulator.swarm import Swarm


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt of a task began; `is_poll`: it polled its job."""

    run: str
    entry: int
    attempt: int
    is_poll: bool
    at_ms: int
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Wrote:
    """One record was written to a log, at this true time. `skew_ms`: the error of its writer's
    clock.
    """

    tenant: str
    run: str
    sequence: int
    nonce: str
    at_ms: int
    skew_ms: int


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """The answer that the caller of a start got. `run` is None for a refusal, and `refused` is its
    code.
    """

    tenant: str
    workflow: str
    name: str | None
    data: Json
    run: str | None
    refused: str | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class ForkAnswer:
    """A fork that was accepted: its id, its origin, and the step at which it begins."""

    tenant: str
    run: str
    origin: str
    step: str


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """A bulk operation that was accepted. Its reason is its own."""

    tenant: str
    run: str
    operation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """An answer to a caller. `what` is "answer", "heartbeat", "event", "stop", "fork", "bulk" or
    "redrive"; or "look" when the call was refused. Two kinds must be refused: a "contradiction" of
    an accepted answer, and a "forgery".

    `asked_ms`: the time at which the request began.
    """

    what: str
    tenant: str
    run: str | None
    request: Any
    refused: str | None
    at_ms: int
    asked_ms: int


@dataclass
class Evidence:
    """The observations of one simulation.

    `faults_end_ms`: the time of the last fault. `stuck`: (run, since, at) of executions that should
    have moved long before they were examined. `foreign`: effects on another tenant's keys.
    `messages`: the number of messages sent, by execution; `deliveries`: the number of receipts of
    one message; `letters`: the number of dead letters. `stored`: the true time at which each item
    of `mail` was first stored, by its key; `beats`: the time of each heartbeat, and the time of its
    request by the API. `refused_by_bug`: errors of our own code.

    `lost`: executions of which a message vanished, or was delayed as if it had; `lost_starts`:
    those of which a start with a row of its own vanished. `unhidden`:
    executions of which a message stayed hidden for its queue's whole time, or was deleted by one
    worker while another held the lease. `unguarded`: running executions that no check will reach.
    `restless`: running executions whose waits can no longer end. `unindexed`: those that the index
    shows wrongly. `diagnosed`: the findings of
    `holdfast doctor`. `redriven`: the changes after the dead letters were sent again at the end;
    `put_back` is their number. `is_endless`: the simulation was aborted. `in_company`: owners of
    leases whose worker has other messages as well. `dispatches`: the commands that were carried
    out. `archive`: the times of the archive. `unusable`: writes and messages that a service
    refuses. `forgotten`: commands that were not carried out in time; `unheard`: inbox messages that
    were not read in time.
    """

    scenario: Scenario
    swarm: Swarm
    services: Services
    ran: list[Ran] = field(default_factory=list)
    dispatches: Dispatches = field(default_factory=Dispatches)
    wrote: list[Wrote] = field(default_factory=list)
    started: list[StartAnswer] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    forks: list[ForkAnswer] = field(default_factory=list)
    bulks: list[BulkAnswer] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    stuck: list[tuple[str, int, int]] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    letters: Counter[str] = field(default_factory=Counter)
    stored: dict[tuple[str, str], int] = field(default_factory=dict)
    beats: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    marks: Counter[str] = field(default_factory=Counter)
    refused_by_bug: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    lost_starts: set[str] = field(default_factory=set)
    unhidden: set[str] = field(default_factory=set)
    in_company: set[str] = field(default_factory=set)
    unguarded: list[str] = field(default_factory=list)
    restless: list[str] = field(default_factory=list)
    unindexed: list[str] = field(default_factory=list)
    diagnosed: list[str] = field(default_factory=list)
    redriven: list[str] = field(default_factory=list)
    put_back: int = 0
    is_endless: bool = False
    archive: ArchiveEvidence = field(default_factory=ArchiveEvidence)
    unusable: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)
    faults_end_ms: int = 0
    ended_ms: int = 0

    @property
    def task_runs(self) -> frozenset[tuple[str, int, int]]:
        """Return (run, entry, attempt) of each attempt that ran."""
        return frozenset((one.run, one.entry, one.attempt) for one in self.ran)
