"""The phase after the faults: it checks that executions are guarded, lets an operator repair with
`holdfast doctor`, and sends all dead letters again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from holdfast.core.diagnosis import should_move_since
from holdfast.core.facts import RedriveRequested
from holdfast.core.redriving import is_redriven_by
from holdfast.core.run_ids import parent_run
from holdfast.errors import HoldfastError
from holdfast.limits import STUCK_SECONDS, WATCH_GRID_SECONDS, WATCH_LOOK_SECONDS_MAX
from holdfast.resources import WORK
from holdfast.runtime import inbox
from holdfast.runtime.effects import Get, Handler
from holdfast.runtime.maintenance import doctor, quarantine
from holdfast.runtime.messages import START
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import Spread
from holdfast_simulator.faults import run_of
from holdfast_simulator.histories import StoredHistory, histories, history
from holdfast_simulator.invariants import index
from holdfast_simulator.invariants.commands import forgotten
from holdfast_simulator.invariants.dues import late_ms_max, stuck_ms_max
from holdfast_simulator.invariants.heard import unheard
from holdfast_simulator.invariants.rests import Rests
from holdfast_simulator.queues import AnyQueueName, Received
from holdfast_simulator.services import DEAD_LETTERS, WORK_QUEUES, Services
from holdfast_simulator.simulation import Simulation, whose

_QUEUES: Final[tuple[AnyQueueName, ...]] = (*WORK_QUEUES, *DEAD_LETTERS)
#: The time between the alarm and the operator's repair.
_ALARM_MS: Final = 30_000
#: SQS deletes a message that no worker has processed after this time.
_RETENTION_MS: Final = WORK.retention_seconds * 1_000
#: The time for dead letters that are sent again: rounds, sweeps, and their follow-ups.
_SETTLING_MS: Final = 3 * STUCK_SECONDS * 1_000
#: In schedules where hosts crash all the time there are thousands of letters. Only so many are sent
#: again, because a schedule has too few steps for all.
_LETTERS_MAX: Final = 200
_ROW_MS_MAX: Final = (WATCH_LOOK_SECONDS_MAX + 2 * WATCH_GRID_SECONDS) * 1_000


class Operator:
    """An operator who reacts to the alarm of the quarantine. The operator waits until the faults
    are over, and then repairs each execution by name, as `holdfast doctor --repair NAME` does.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._is_coming = False
        simulation.on_quarantine.append(self._alarmed)

    def _alarmed(self) -> None:
        simulation = self._simulation
        if not self._is_coming:
            self._is_coming = True
            at_ms = simulation.now_ms + _ALARM_MS
            if not simulation.swarm.ends_with_tape:
                at_ms = max(at_ms, simulation.evidence.faults_end_ms)
            simulation.at(at_ms, self._repair)

    def _repair(self) -> None:
        self._is_coming = False
        simulation = self._simulation
        for tenant in tenants(simulation):
            host = simulation.host("operator")
            simulation.spawn(
                host.name,
                tenant,
                host,
                _release(tenant, simulation.spread),
                finished=lambda _: None,
                failed=lambda error: simulation.evidence.refused_by_bug.append(repr(error)),
            )


def _release(tenant: str, spread: Spread) -> Handler:
    for held in (yield from quarantine.to_repair(tenant)):
        yield from doctor.report_one(tenant, spread, held.run, None, is_repairing=True)


def tenants(simulation: Simulation) -> list[str]:
    return sorted({one.tenant for one in simulation.evidence.started})


# -- guarded executions ----------------------------------------------------------------------------


def note_unguarded(simulation: Simulation) -> None:
    """Note each running execution without a message, a row of the sweeper, or quarantine (I16): no
    worker would continue it.
    """
    services, evidence = simulation.services, simulation.evidence
    begun = {str(item["pk"]) for item in services.items(tables.EXECUTIONS)}
    accepted = {
        (one.tenant, one.run)
        for one in evidence.started
        if one.run is not None and keys.execution(one.tenant, one.run) not in begun
    }
    given = [(one.tenant, one.run) for one in evidence.forks]
    given += [(one.tenant, one.run) for one in evidence.bulks]
    accepted |= {place for place in given if keys.execution(*place) not in begun}
    unwatched = (simulation.open | accepted) - set(_watched(simulation))
    if not unwatched:
        return
    on_their_way = {whose for whose, count in simulation.late.items() if count}
    for _, run in sorted(unwatched - on_their_way - set(_messages(services))):
        evidence.unguarded.append(f"{run}: nothing will look at it, at {simulation.now_ms}")


def _watched(simulation: Simulation) -> Iterator[tuple[str, str]]:
    """Yield the executions that have a watchdog row in time, or are known to be quarantined."""
    latest_ms = simulation.now_ms + _ROW_MS_MAX
    for item in simulation.services.items(tables.MAIL):
        partition, key = str(item["pk"]), str(item["sk"])
        if partition == keys.QUARANTINE:
            yield _whose(key)
        elif partition.startswith("~due#") and keys.watched_by(key) and int(key[:15]) < latest_ms:
            yield str(item["t"]), str(item["run"])
    yield from _pending_starts(simulation)


def _pending_starts(simulation: Simulation) -> Iterator[tuple[str, str]]:
    """Yield the executions whose start the sweeper will still check."""
    items = simulation.services.items(tables.MAIL)
    read = {str(item["sk"]): str(item["to"]) for item in items if item["pk"] == keys.STARTS_READ}
    for item in items:
        partition, is_row, shard = str(item["pk"]).partition("~start#")
        if is_row and not partition and str(item["sk"]) > read.get(f"{int(shard):02d}", ""):
            yield str(item["t"]), str(item["run"])


def _messages(services: Services) -> Iterator[tuple[str, str]]:
    for queue in _QUEUES:
        for stored in services.queue(queue).messages.values():
            body = json.loads(stored.text)
            yield str(body["t"]), run_of(body)


def _whose(key: str) -> tuple[str, str]:
    tenant, _, run = key.partition("#")
    return tenant, run


def _forgotten(simulation: Simulation, found: StoredHistory, before_ms: int) -> list[str]:
    """Return the work of an execution that no worker has carried out in time. An execution in
    quarantine whose log has grown is due at the sweeper's next check.
    """
    texts = list(forgotten(simulation.evidence, found, before_ms))
    place = keys.execution(found.tenant, found.run)
    if texts and simulation.services.perform(Get(tables.MAIL, keys.QUARANTINE, place)) is not None:
        return []
    return texts


def note_stuck(simulation: Simulation) -> None:
    """Note each execution that has not moved for longer than the documented time (I17)."""
    evidence, now_ms = simulation.evidence, simulation.now_ms
    for tenant, run in sorted(simulation.open):
        try:
            found = history(simulation.services, tenant, run)
        except HoldfastError:
            continue  # Another invariant reports a log that cannot be read
        before_ms = now_ms - stuck_ms_max(evidence, run)
        if before_ms >= evidence.faults_end_ms:
            evidence.forgotten += _forgotten(simulation, found, before_ms)
            evidence.unheard += unheard(evidence, found, before_ms)
        since_ms = should_move_since(found.state, now_ms)
        if since_ms is None:
            continue
        counted_ms = max(since_ms, evidence.faults_end_ms)
        if now_ms - counted_ms >= late_ms_max(evidence, found, found.records[-1].at_ms):
            evidence.stuck.append((run, since_ms, now_ms))


def note_restless(simulation: Simulation) -> None:
    """Note each execution that waits for something that can no longer happen (I16). This is checked
    before the executions are stopped, because the stop would end a lost execution like any other.
    """
    for tenant, run in sorted(simulation.open):
        try:
            found = history(simulation.services, tenant, run)
        except HoldfastError:
            continue  # Another invariant reports a log that cannot be read
        running = {other for whose, other in simulation.open if whose == tenant}
        rests = Rests(simulation.evidence, found, running, simulation.now_ms)
        simulation.evidence.restless += rests.violations()
        simulation.evidence.unindexed += index.of_open(
            simulation.evidence, found, simulation.now_ms
        )


def note_findings(simulation: Simulation) -> None:
    """Store the findings of `holdfast doctor` in a settled world."""
    for tenant in tenants(simulation):
        handler = doctor.report(tenant, simulation.spread, None, is_repairing=False)
        for one in _answer(simulation.services, handler)["findings"]:
            run, state = one.get("execution", ""), one.get("state", "")
            if run in simulation.evidence.lost:
                continue  # The sweeper's next check may be days away
            simulation.evidence.diagnosed.append(f"{run}: {one['reason']} {state!r}: {one['says']}")


def _answer(services: Services, handler: Handler) -> Any:
    """Run a command without faults. Time does not advance meanwhile."""
    answer: Any = None
    try:
        while True:
            answer = services.perform(handler.send(answer))
    except StopIteration as stop:
        return stop.value


# -- letters that are sent again -------------------------------------------------------------------


def redrive_letters(simulation: Simulation) -> None:
    """Send every dead letter once more, from the queues and from their dead-letter queues. An ended
    execution must not change (I19).

    An execution whose start was lost may never have begun: nothing leads to the child of a Map once
    its parent has ended, and a row leads to another start only after up to an hour. A dead letter
    of that start begins the execution now, as a start that comes late does, so it may change. I16
    checks that such an execution ends, too.
    """
    oldest_ms = simulation.now_ms - _RETENTION_MS
    letters = [letter for letter in simulation.letters if letter.sent_at > oldest_ms]
    letters = letters[:: len(letters) // _LETTERS_MAX + 1]
    if not letters or simulation.open or _is_redrive_wished(simulation.services):
        return
    before, ran = _contents(simulation), len(simulation.evidence.ran)
    unbegun = _unbegun(simulation, letters)
    for letter in letters:
        for queue in ("work", "work-dlq", "starts", "starts-dlq"):
            simulation.services.queue(queue).put_back(letter)
            simulation.evidence.put_back += 1
    for told in simulation.on_message:
        told()
    for planned in simulation.on_due:
        planned(simulation.now_ms)
    simulation.run_until(simulation.now_ms + _SETTLING_MS)
    redriven = simulation.evidence.redriven
    redriven += [
        f"a dead letter changed {place}"
        for place in sorted(_contents(simulation) ^ before)
        if not _is_of(unbegun, _whose(place.partition(" ")[0])[1])
    ]
    if any(not _is_of(unbegun, one.run) for one in simulation.evidence.ran[ran:]):
        redriven.append("a dead letter ran a task of an execution that had ended")


def _unbegun(simulation: Simulation, letters: list[Received]) -> set[str]:
    """Return the executions of these start messages that have no log because a start was lost."""
    lost = simulation.evidence.lost | simulation.evidence.lost_starts
    return {
        run_of(letter.body)
        for letter in letters
        if letter.body["k"] == START
        and run_of(letter.body) in lost
        and whose(letter.body) not in simulation.begun
    }


def _is_of(runs: set[str], run: str | None) -> bool:
    """Return True when the execution, or one around it, is among `runs`."""
    while run is not None and run not in runs:
        run = parent_run(run)
    return run is not None


def _is_redrive_wished(services: Services) -> bool:
    """Return True when a redrive was accepted and no worker has read it: then the execution has not
    finally ended.
    """
    try:
        logs = histories(services)
    except HoldfastError:
        return True  # For a dead letter the effect is unknown, so count it as possible
    for found in logs:
        handler = inbox.control_facts(found.tenant, found.state)
        for fact in _answer(services, handler):
            if isinstance(fact, RedriveRequested) and is_redriven_by(found.state, fact):
                return True
    return False


def _contents(simulation: Simulation) -> set[str]:
    """The logs and their list entries, without executions whose wake is lost: the sweeper's next
    check may remove their entry at any time. Inbox messages may come at any time, too.
    """
    found: set[str] = set()
    for item in simulation.services.items(tables.EXECUTIONS):
        place = str(item["pk"])
        is_lost = _whose(place)[1] in simulation.evidence.lost
        found.add(f"{place} {item['sk']!s} {'' if is_lost else item.get('lp')!s}")
    return found
