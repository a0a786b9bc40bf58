"""The world around the workers: callers, people, the event bus, and the sweeper's timer.

A caller repeats a request until it is answered. An execution counts as accepted when its start was
answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.errors import RequestError, ServiceFault
from holdfast.resources import API, EVENTS, SWEEPER
from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import Get, Handler, Item, Query, RunTask
from holdfast.runtime.maintenance import dead_letters, due_archives, lost_starts, sweeper
from holdfast.runtime.pending_starts import FIRST_MS
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import DUE, STARTS
from holdfast_simulator import faults, heartbeats
from holdfast_simulator.answers import ticket_of
from holdfast_simulator.bulking import Bulking
from holdfast_simulator.evidence import StartAnswer
from holdfast_simulator.forking import Forking
from holdfast_simulator.marks import Seen
from holdfast_simulator.operators import Hears, Meddlers, noting
from holdfast_simulator.pausing import Pausing
from holdfast_simulator.pollers import Pollers
from holdfast_simulator.processes import SimulatedHost
from holdfast_simulator.queues import AnyQueueName
from holdfast_simulator.scenarios import Brought
from holdfast_simulator.services import DEAD_LETTERS
from holdfast_simulator.simulation import SWEEP_MS, Simulation
from holdfast_simulator.skipping import Skipping
from holdfast_simulator.unreported import is_unreported

TENANT: Final = "default"
OTHER_TENANT: Final = "other"
NAME: Final = "order-1"
_LOOK_MS: Final = 2_000
#: Requests to the function for events, not to that of the API.
_BUS: Final = "bus"
#: Waits that a token answers.
_ANSWERED: Final = frozenset({"ask", "token", "callback"})
#: How long a caller waits before it tries again.
_AGAIN_MS: Final = 1_500
#: The delay before a second stop that skips the remaining undo.
_HASTE: Final = (*["none"] * 6, "soon", "soon", "at once")


class People:
    """Callers, people and the bus of one simulation."""

    def __init__(self, simulation: Simulation, front: Front) -> None:
        self._simulation = simulation
        self._front = front
        self._meddlers = Meddlers(simulation, front, self.insist)
        self._pausing = Pausing(simulation, front, self.insist)
        self._skipping = Skipping(simulation, front, self.insist)
        self._pollers = Pollers(simulation, front, self.insist)
        self._answered: set[tuple[str, str]] = set()
        self._looks: set[tuple[str, str]] = set()
        self._stopped: set[str] = set()
        self._duplicate_menu = faults.menu(simulation.swarm, "duplicated")
        self._hand_over_menu = faults.menu(simulation.swarm, "answered early")
        if simulation.swarm.redrive_percent:
            simulation.on_record.append(self._meddlers.maybe_redrive)
        if simulation.swarm.fork_percent:
            simulation.on_record.append(Forking(simulation, front, self.insist).maybe_fork)
        if simulation.scenario.answers or _asks(simulation.scenario.machines):
            simulation.on_record.append(self._look_soon)
            simulation.on_begin.append(self._maybe_hand_over)

    # -- starting ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Schedule every caller of the scenario at a drawn moment."""
        simulation, swarm, scenario = self._simulation, self._simulation.swarm, self._scenario
        self._start(TENANT, NAME, scenario.input, 0)
        for number in range(1, swarm.callers):
            is_other = swarm.has_other_input and number == swarm.callers - 1
            data = nearly(scenario.input) if is_other else reordered(scenario.input)
            self._start(TENANT, NAME, data, simulation.pause_ms("caller"))
        self._pollers.begin(TENANT)
        Bulking(simulation, self._front, self.insist).begin(TENANT)
        if swarm.has_other_tenant:
            self._pollers.begin(OTHER_TENANT)
            self._start(OTHER_TENANT, NAME, scenario.input, simulation.pause_ms("caller"))
        for brought in scenario.events:
            for tenant in (TENANT, OTHER_TENANT) if swarm.has_other_tenant else (TENANT,):
                self._bring(tenant, brought)

    @property
    def _scenario(self) -> Any:
        return self._simulation.scenario

    def _start(self, tenant: str, name: str, data: Json, delay_ms: int) -> None:
        workflow = self._scenario.started
        request = {"workflow": workflow, "input": data, "name": name}

        def told(answer: Any, refused: str | None, _asked_ms: int) -> None:
            run = None if answer is None else str(answer["execution"])
            started = StartAnswer(
                tenant, workflow, name, data, run, refused, self._simulation.now_ms
            )
            self._simulation.evidence.started.append(started)
            if run is not None:
                self._maybe_stop(tenant, run)
                self._pausing.maybe_pause(tenant, run)
                self._skipping.maybe_skip(tenant, run)

        chance = self._chance()
        make = partial(self._front.start, tenant, request, chance)
        self.insist("start", tenant, make, told, delay_ms)

    # -- the bus -----------------------------------------------------------------------------------

    def _bring(self, tenant: str, brought: Brought) -> None:
        simulation = self._simulation
        detail = {
            "name": brought.event,
            "key": brought.key,
            "data": brought.data,
            "id": brought.id,
            **({} if brought.error is None else {"error": brought.error}),
            **({} if brought.cause is None else {"cause": brought.cause}),
        }
        delay_ms = int(brought.after_seconds * 1_000) + simulation.tape.number("bus", 3) * 700
        make = partial(self._front.bus_event, tenant, brought.id, detail, b"bus chan")
        told = self.tells("event", tenant, None, detail)
        self.insist(_BUS, tenant, make, told, delay_ms)
        if simulation.tape.fault("bus", self._duplicate_menu):
            delay_ms += simulation.pause_ms("bus")
            self.insist(_BUS, tenant, make, told, delay_ms)

    # -- answers -----------------------------------------------------------------------------------

    def _look_soon(self, tenant: str, run: str) -> None:
        if (tenant, run) not in self._looks:
            self._looks.add((tenant, run))
            self._simulation.after(_LOOK_MS, lambda: self._look(tenant, run))

    def _look(self, tenant: str, run: str) -> None:
        self._looks.discard((tenant, run))
        note = self.tells("look", tenant, run, None)

        def told(answer: Any, refused: str | None, asked_ms: int) -> None:
            if refused is not None:
                note(answer, refused, asked_ms)
                return
            for wait in answer["waits"]:
                if "token" in wait and wait["kind"] in _ANSWERED:
                    self._answer(tenant, run, wait["state"], wait["token"])

        self.insist("look", tenant, lambda: self._front.describe(tenant, run), told, 0)

    def _maybe_hand_over(self, task: RunTask) -> None:
        """Let a function pass its token on, so that the answer may come while the function still
        runs.
        """
        payload = task.arguments.get("Payload") if isinstance(task.arguments, dict) else None
        if not isinstance(payload, dict) or "token" not in payload or not self._scenario.answers:
            return
        if self._simulation.tape.fault("hand over", self._hand_over_menu) is not None:
            ((state, _),) = self._scenario.answers.items()
            self._answer(task.tenant, task.run, state, payload["token"])

    def _answer(self, tenant: str, run: str, state: str, token: str) -> None:
        """Answer each token once. One accepted answer must be enough."""
        place = ticket_of(token).place
        if place in self._answered:
            return
        self._answered.add(place)
        outcome = self._scenario.answer(state)
        request = {"token": token, "output": outcome.output}
        if outcome.error is not None:
            request = {"token": token, "error": outcome.error, "cause": outcome.cause or ""}
        make = partial(self._front.answer, tenant, request)
        note = self.tells("answer", tenant, run, request)

        def told(answer: Any, refused: str | None, asked_ms: int) -> None:
            note(answer, refused, asked_ms)
            if refused is None:
                self._meddlers.maybe_contradict(tenant, run, request)

        self._meddlers.maybe_forge(tenant, run, token)
        alive = partial(heartbeats.beat, self._front, tenant, token)
        felt = self.tells("heartbeat", tenant, run, request)
        for beat_ms in heartbeats.moments_ms(outcome):
            self.insist("heartbeat", tenant, alive, felt, beat_ms)
        delay_ms = int(outcome.seconds * 1_000)
        self.insist("answer", tenant, make, told, delay_ms)
        if self._simulation.tape.fault("answer", self._duplicate_menu):
            delay_ms += self._simulation.pause_ms("answer")
            self.insist("answer", tenant, make, told, delay_ms)

    # -- stops -------------------------------------------------------------------------------------

    def _maybe_stop(self, tenant: str, run: str) -> None:
        simulation = self._simulation
        if not self._scenario.stops or not simulation.swarm.stop_percent or run in self._stopped:
            return
        self._stopped.add(run)
        if simulation.tape.number("stop", 100) < 100 - simulation.swarm.stop_percent:
            return
        delay_ms = simulation.tape.number("stop time", 60) ** 2 * 50
        haste = _HASTE[simulation.tape.number("stop now", len(_HASTE))]
        self.stop(tenant, run, delay_ms, is_now=haste == "at once")
        if simulation.tape.fault("stop again", self._duplicate_menu):
            self.stop(tenant, run, delay_ms + simulation.pause_ms("stop again"))
        if haste == "soon":
            delay_ms += simulation.tape.number("stop now time", 30) ** 2 * 50
            self.stop(tenant, run, delay_ms, is_now=True)

    def stop(self, tenant: str, run: str, delay_ms: int = 0, *, is_now: bool = False) -> None:
        """Stop an execution. A caller whose stop is not answered sends it again, so a second stop
        may be stored.
        """
        chance = self._chance()
        request = {"now": True} if is_now else {}
        make = partial(self._front.stop, tenant, run, request, chance)
        self.insist("stop", tenant, make, self.tells("stop", tenant, run, request), delay_ms)

    # -- trying until there is an answer -----------------------------------------------------------

    def tells(self, what: str, tenant: str, run: str | None, request: Any) -> Hears:
        return noting(self._simulation, what, tenant, run, request)

    def insist(
        self,
        what: str,
        tenant: str,
        make: Callable[[], Handler],
        told: Hears,
        delay_ms: int,
    ) -> None:
        """Repeat a request until it is answered. `told` gets the answer, or the code of the
        refusal, once.
        """
        simulation = self._simulation

        def again() -> None:
            self.insist(what, tenant, make, told, _AGAIN_MS)

        def failed(error: Exception, asked_ms: int) -> None:
            match error:
                case RequestError():
                    told(None, error.code, asked_ms)
                case ServiceFault():
                    again()
                case _:
                    simulation.evidence.refused_by_bug.append(repr(error))

        def begin() -> None:
            asked_ms = simulation.now_ms
            host = simulation.host(what)
            host.on_loss = again

            def over(hears: Callable[[], None]) -> None:
                if host.finish():
                    hears()

            simulation.spawn(
                host.name,
                tenant,
                host,
                make(),
                finished=lambda answer: over(lambda: told(answer, None, asked_ms)),
                failed=lambda error: over(lambda: failed(error, asked_ms)),
            )
            function = EVENTS if what == _BUS else API
            simulation.limit(host, function.timeout_seconds * 1_000)

        simulation.after(delay_ms, begin)

    def _chance(self) -> bytes:
        return self._simulation.number().to_bytes(8, "big")


def reordered(data: Json) -> Json:
    """Return the same value with its keys in another order."""
    return dict(reversed(list(data.items()))) if isinstance(data, dict) else data


def nearly(data: Json) -> Json:
    """Return another input that has the same words, if it has two: only their order differs."""
    if isinstance(data, dict) and len(data) > 1:
        one, two, *_ = data
        if data[one] != data[two]:
            return {**data, one: data[two], two: data[one]}
    return {"other": True}


def _asks(machines: Any) -> bool:
    text = str(machines)
    return "holdfast:ask" in text or "waitForTaskToken" in text.replace("holdfast:event.", "")


class Minute:
    """Runs the sweeper in each minute in which there is work for it. Runs may overlap, be late or
    be missing.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._minutes: set[int] = set()
        self._menu = faults.menu(simulation.swarm, "missed", "doubled")
        simulation.on_due.append(self._plan)

    def _plan(self, at_ms: int) -> None:
        minute_ms = -(-at_ms // SWEEP_MS) * SWEEP_MS
        if minute_ms not in self._minutes:
            self._minutes.add(minute_ms)
            self._simulation.at(minute_ms, lambda: self._sweep(minute_ms))

    def _sweep(self, minute_ms: int) -> None:
        simulation = self._simulation
        self._minutes.discard(minute_ms)
        shards, starts = self._due_shards(), self._start_shards()
        letters = [queue for queue in DEAD_LETTERS if simulation.services.depth(queue)]
        archives = self._archive_shards() if simulation.swarm.archives else []
        if not shards and not letters and not starts and not archives:
            return
        self._plan(minute_ms + 1)  # Rows that are not processed now are due again
        if shards or letters:
            simulation.disturb()
        fault = simulation.tape.fault("sweep", self._menu)
        if fault == "missed":
            return
        for _ in range(2 if fault == "doubled" else 1):
            host = simulation.host("sweeper")
            simulation.limit(host, SWEEPER.timeout_seconds * 1_000)
            for shard in shards:
                handler = sweeper.sweep(shard, host.name)
                self._spawn(f"{host.name}:{shard}", host, handler)
            for shard in starts:
                handler = lost_starts.sweep(shard, host.name)
                self._spawn(f"{host.name}:s{shard}", host, handler)
            for shard in archives:
                handler = due_archives.sweep(shard, host.name)
                self._spawn(f"{host.name}:a{shard}", host, handler)
            for queue in letters:
                self._revive(queue, host)

    def _due_shards(self) -> list[int]:
        return self._shards(keys.due_partition, self._simulation.now_ms + SWEEP_MS)

    def _archive_shards(self) -> list[int]:
        return self._shards(keys.archive_partition, self._simulation.now_ms)

    def _shards(self, partition_of: Callable[[int], str], until_ms: int) -> list[int]:
        """Return the shards with a row that is due by then."""
        until = keys.due_until(until_ms)
        services = self._simulation.services
        shards = range(DUE.count(self._simulation.spread.read))
        partitions = {shard: partition_of(shard) for shard in shards}
        return [
            shard
            for shard, partition in partitions.items()
            if services.has_partition(tables.MAIL, partition)
            and services.perform(Query(tables.MAIL, partition, until=until, limit=1))
        ]

    def _start_shards(self) -> list[int]:
        """Return the shards with an unread row of a start that has not ended, or that has ended
        without a report to its parent.
        """
        services = self._simulation.services
        perform = services.perform
        until = keys.due_until(self._simulation.now_ms - FIRST_MS)
        found = []
        for shard in range(STARTS.count(self._simulation.spread.read)):
            if not services.has_partition(tables.MAIL, keys.pending_starts(shard)):
                continue
            read = perform(Get(tables.MAIL, keys.STARTS_READ, keys.starts_read(shard)))
            after = None if read is None else str(read["to"])
            partition = keys.pending_starts(shard)
            rows = perform(Query(tables.MAIL, partition, after=after, until=until))
            if not all(self._is_settled(row) for row in rows):
                found.append(shard)
        return found

    def _is_settled(self, start: Item) -> bool:
        pk = keys.execution(str(start["t"]), str(start["run"]))
        services = self._simulation.services
        newest = services.perform(Query(tables.EXECUTIONS, pk, reverse=True, limit=1))
        has_ended = bool(newest) and newest[0]["st"] != "RUNNING"
        return has_ended and not is_unreported(services, start)

    def _revive(self, queue: AnyQueueName, host: SimulatedHost) -> None:
        services = self._simulation.services
        for letter in services.receive(queue):
            dead = dead_letters.StoredDeadLetter(letter.body, letter.message_id)
            self._simulation.evidence.marks[Seen.LETTER] += 1
            self._simulation.letters.append(letter)
            self._simulation.evidence.letters[faults.run_of(letter.body)] += 1
            self._spawn(
                f"{host.name}:{queue}",
                host,
                dead_letters.revive(dead),
                partial(services.delete, letter.receipt),
            )

    def _spawn(
        self,
        name: str,
        host: SimulatedHost,
        handler: Handler,
        finished: Callable[[], Any] = lambda: None,
    ) -> None:
        bugs = self._simulation.evidence.refused_by_bug
        self._simulation.spawn(
            name,
            "",
            host,
            handler,
            finished=lambda _: finished(),
            failed=lambda error: (
                None if isinstance(error, ServiceFault) else bugs.append(repr(error))
            ),
        )
