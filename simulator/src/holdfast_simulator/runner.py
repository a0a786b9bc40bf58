"""One schedule from beginning to end: phases, invariants, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.program import Json
from holdfast.runtime.child_workflows import Untyped, Workflows
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.status_events import OWN_SOURCE
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast_simulator import aftermath
from holdfast_simulator.expiry import Expiry
from holdfast_simulator.growth import Growth
from holdfast_simulator.invariants import VIOLATIONS_MAX, violations
from holdfast_simulator.invariants.dues import STUCK_MS, UNHIDDEN_MS
from holdfast_simulator.invocations import Workers
from holdfast_simulator.people import Minute, People
from holdfast_simulator.processes import Deadly
from holdfast_simulator.reached import faults_among
from holdfast_simulator.rereading import remembered
from holdfast_simulator.rounds import RepairRounds
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.schedule import DrawnChoice, Tape
from holdfast_simulator.simulation import START_MS, Simulation
from holdfast_simulator.swarm import Swarm

KEYS: Final = SigningKeys("k1", {"k1": b"a key of the simulator, 32 bytes"})
_DAY_MS: Final = 86_400_000
#: Executions that are open by then are stopped; so often at most. A scenario that begins quietly
#: gets that much longer, twice.
_PATIENCE_MS: Final = 45 * _DAY_MS
_STOPS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    text: str


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The result of one schedule. `trace` is the hash of all that happened, in its order; `effects`
    are the kinds of effect at which something could go wrong, in theirs.
    """

    scenario: Scenario
    swarm: Swarm
    violations: tuple[Violation, ...]
    marks: Counter[str]
    choices: tuple[DrawnChoice, ...]
    trace: str
    steps: int
    effects: tuple[str, ...]
    virtual_ms: int
    statuses: tuple[str, ...]


class AnyTypes:
    """Lets every value through; objects get an event's type by its name."""

    def normalise_input(self, tenant: str, workflow: str, value: Json) -> Json:
        del tenant, workflow
        return value

    def schema_of(self, reference: str) -> dict[str, Any]:
        del reference
        return {}

    def normalise_payload(self, tenant: str, reference: str, value: Json, what: str) -> Json:
        del tenant, reference, what
        return value

    def normalise_result(self, tenant: str, name: str, value: Json, is_workflow: bool) -> Json:
        del tenant, name, is_workflow
        return value

    def convert(self, tenant: str, function: str, values: Mapping[str, Json]) -> Json:
        del tenant, function
        return dict(values)


class Deployed:
    """The definitions of a scenario, parsed once however many schedules run it."""

    def __init__(self, scenario: Scenario) -> None:
        events = {"events": _events_of(scenario)}
        self.scenario = scenario
        self.definitions = {
            name: Definition(machine, events, definition_hash(machine))
            for name, machine in scenario.machines.items()
        }
        self._parsed: dict[str, Any] = {}

    @property
    def started(self) -> Definition:
        return self.definitions[self.scenario.started]

    def programs(self) -> Programs:
        by_hash = {one.hash: one for one in self.definitions.values()}
        return Programs(definitions=by_hash, _programs=self._parsed)

    def front(self) -> Front:
        return Front(self.programs(), self.definitions, AnyTypes(), KEYS)

    def setting(self, keys: Callable[[], SigningKeys]) -> WorkerConfig:
        """The configuration of a host that knows every definition."""
        workflows = Workflows(self.definitions, Untyped())
        return WorkerConfig(self.programs(), lambda *_: True, keys, OWN_SOURCE, workflows)

    def setting_of(self, warm: WorkerConfig, fault: str | None) -> WorkerConfig:
        """Return the configuration of a process. Cold: it has only its own functions' definitions,
        and reads each other one when needed; parsed definitions of the same bytes are shared. Old:
        it lacks functions too.
        """
        match fault:
            case "cold":
                return replace(warm, programs=Programs(_programs=self._parsed))
            case "old":
                programs = Programs(_programs=self._parsed)
                return WorkerConfig(
                    programs,
                    lambda *_: False,
                    warm.keys,
                    OWN_SOURCE,
                    archives=warm.archives,
                    spread=warm.spread,
                )
            case _:
                return warm


def _events_of(scenario: Scenario) -> dict[str, str]:
    names = set(_event_names(list(scenario.machines.values())))
    names |= {brought.event for brought in scenario.events}
    return dict.fromkeys(sorted(names), "any:Any")


def _event_names(value: Json) -> Iterable[str]:
    if isinstance(value, dict):
        if str(value.get("Resource", "")).startswith("holdfast:event"):
            arguments = value.get("Arguments", value.get("Parameters"))
            if isinstance(arguments, dict) and isinstance(arguments.get("event"), str):
                yield arguments["event"]
        for inner in value.values():
            yield from _event_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _event_names(inner)


def play(deployed: Deployed, swarm: Swarm, tape: Tape) -> ScheduleResult:
    """Run one schedule: first with faults, then without, until every execution has ended
    or waits.
    """
    simulation = Simulation(deployed.scenario, swarm, tape)

    def keys() -> SigningKeys:
        if swarm.has_deadly_tokens and simulation.has_faults:
            raise Deadly
        return KEYS

    spread = simulation.spread
    setting = replace(deployed.setting(keys), archives=swarm.archives, spread=spread)
    Workers(simulation, partial(deployed.setting_of, setting))
    Minute(simulation)
    Expiry(simulation)
    RepairRounds(simulation)
    Growth(simulation)
    aftermath.Operator(simulation)
    people = People(simulation, replace(deployed.front(), spread=spread))
    people.begin()
    with remembered():
        _phases(simulation, people)
    evidence = simulation.evidence
    evidence.ended_ms = simulation.now_ms
    found = [Violation(number, text) for number, text in violations(evidence)]
    evidence.marks.update(faults_among(tape.taken))
    return ScheduleResult(
        scenario=deployed.scenario,
        swarm=swarm,
        violations=tuple(found[:VIOLATIONS_MAX]),
        marks=evidence.marks,
        choices=tuple(tape.taken),
        trace=simulation.trace,
        steps=simulation.steps,
        effects=tuple(simulation.effects),
        virtual_ms=simulation.last_ms - START_MS,
        statuses=_statuses(simulation),
    )


def _phases(simulation: Simulation, people: People) -> None:
    evidence = simulation.evidence
    simulation.run_until_faults_end()
    aftermath.note_unguarded(simulation)
    for stuck_ms in (STUCK_MS, UNHIDDEN_MS):
        simulation.run_until(evidence.faults_end_ms + stuck_ms)
        aftermath.note_stuck(simulation)
    for number in range(_STOPS_MAX):
        until_ms = simulation.now_ms + _PATIENCE_MS + 2 * simulation.scenario.quiet_days * _DAY_MS
        simulation.run_until(until_ms, lambda: not simulation.open)
        # A redrive of an ended execution may have been requested just now.
        simulation.run_until(simulation.now_ms + STUCK_MS)
        if not simulation.open:
            break
        aftermath.note_stuck(simulation)
        aftermath.note_restless(simulation)
        for tenant, run in sorted(simulation.open):
            people.stop(tenant, run, is_now=number > 0)  # An undo may wait for an answer for ever
    aftermath.note_unguarded(simulation)
    simulation.run_until(simulation.now_ms + UNHIDDEN_MS)  # what ended last is looked after
    aftermath.note_findings(simulation)
    aftermath.redrive_letters(simulation)
    simulation.run_until(simulation.now_ms + 2 * _PATIENCE_MS)
    aftermath.note_stuck(simulation)


def _statuses(simulation: Simulation) -> tuple[str, ...]:
    newest: dict[str, tuple[int, str]] = {}
    for item in simulation.services.items(tables.EXECUTIONS):
        run = str(item["pk"])
        newest[run] = max(newest.get(run, (-1, "")), (int(item["sk"]), str(item["st"])))
    return tuple(status for _, (_, status) in sorted(newest.items()))
