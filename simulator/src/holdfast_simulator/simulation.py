"""One schedule: the real handlers on virtual time, in an order and with faults from a tape.

Bugs of a distributed engine need rare orders of events: a message is delivered twice, a host
freezes between its read and its write, an answer is lost after the write was stored. On real
machines such an order cannot be repeated. Here the handlers are generators of effects, so this
module decides what happens around each effect, and a number decides this module: the seed of the
tape.

Rules of this file:
* One heap of (moment, number, action). Nothing else makes anything happen.
* An effect is performed when it is yielded. Its answer arrives at least a millisecond later; other
  handlers run in between, so the answer may be out of date.
* The tape makes every choice. The same tape gives the same trace: `trace` is its hash.
* After `faults_end_ms` there are no faults, and frozen hosts have thawed. It comes earlier where
  the faults end with their tape.

    t = 0 ms     caller: start           Put name, Send start
    t = 3 ms     host 1: receive start   Query log ─ nothing
    t = 5 ms     host 1: Put record 0    the tape says "answer lost"
    t = 6 ms     host 1: Query           finds its own nonce: stored
    t = 9 ms     host 1: "killed before" Send: the message is not deleted
    t = 120 s    host 2: receive start   receive count 2: a recovery
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from holdfast.errors import ServiceFault
from holdfast.limits import (
    SWEEP_AHEAD_SECONDS,
    SWEEP_SECONDS,
    VISIBILITY_SECONDS,
    WATCH_LOOK_SECONDS_MAX,
)
from holdfast.runtime.effects import (
    Begin,
    Clock,
    Deadline,
    Effect,
    Finished,
    Handler,
    Measure,
    Pause,
    Put,
    PutIfAbsent,
    Replace,
    RunTask,
    Send,
    WriteDeadline,
)
from holdfast.runtime.messages import START
from holdfast.runtime.pending_starts import FIRST_MS
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import Spread
from holdfast_simulator import faults
from holdfast_simulator.dispatches import canaries_of
from holdfast_simulator.evidence import Evidence, Ran, Wrote
from holdfast_simulator.jobs import Jobs
from holdfast_simulator.marks import Seen
from holdfast_simulator.orphans import Orphans
from holdfast_simulator.processes import Deadly, Process, SimulatedHost
from holdfast_simulator.queues import Received
from holdfast_simulator.scenarios import KILLS, Scenario, offered_in
from holdfast_simulator.schedule import Tape
from holdfast_simulator.services import WORK_QUEUES, Services
from holdfast_simulator.swarm import FREEZES_MS, PAUSES_MS, Swarm
from holdfast_simulator.watching import Watcher

START_MS: Final = 1_800_000_000_000
SWEEP_MS: Final = SWEEP_SECONDS * 1_000
_HIDDEN_MS: Final = VISIBILITY_SECONDS * 1_000
_DAY_MS: Final = 86_400_000

#: A schedule with so many effects is a loop: the busiest of the corpus take a tenth. A fork may do
#: as much as its origin.
TURNS_MAX: Final = 100_000

ScheduledAction = Callable[[], None]


class Simulation:
    """Time, the heap, and the faults around an effect. `invocations` and `people` spawn the
    processes that run here.
    """

    def __init__(self, scenario: Scenario, swarm: Swarm, tape: Tape) -> None:
        self.scenario, self.swarm, self.tape = scenario, swarm, tape
        self.now_ms = START_MS
        #: When something happened last.
        self.last_ms = START_MS
        self.services = Services(lambda: self.now_ms, is_metered=False)
        self.spread = Spread()
        self.jobs = Jobs(scenario, lambda: self.now_ms)
        for queue in WORK_QUEUES:
            self.services.queue(queue).receives_max = swarm.receives_max
        self.evidence = Evidence(scenario, swarm, self.services)
        self.orphans = Orphans(self.evidence)
        self.evidence.dispatches.canaries = canaries_of(scenario)
        self.evidence.faults_end_ms = START_MS + swarm.safety_ms
        #: Until when nothing goes wrong; 0: it may.
        self._quiet_until_ms = 0
        if scenario.quiet_days and not swarm.ends_with_tape:
            self._quiet_until_ms = START_MS + scenario.quiet_days * _DAY_MS
            self.evidence.faults_end_ms = self._quiet_until_ms + 2 * WATCH_LOOK_SECONDS_MAX * 1_000
        self.watcher = Watcher(self.evidence.marks, self.services, lambda: self.now_ms)
        #: The executions whose newest record is not their end: (tenant, run).
        self.open: set[tuple[str, str]] = set()
        #: The executions with a first record: (tenant, run).
        self.begun: set[tuple[str, str]] = set()
        #: Called for each record written to a log, and for each minute at which a row is due.
        self.on_record: list[Callable[[str, str], None]] = []
        self.on_begin: list[Callable[[RunTask], None]] = []
        self.on_message: list[ScheduledAction] = []
        self.on_due: list[Callable[[int], None]] = []
        #: Called for each task that is offered: tenant, and the activity or "holdfast:pool:<pool>".
        self.on_offer: list[Callable[[str, str], None]] = []
        self._menus = faults.menus(swarm)
        self._message_menu = faults.menu(swarm, "late", "vanished")
        self._ends_with_tape = swarm.ends_with_tape
        self._thawed_ms = START_MS
        self._heap: list[tuple[int, int, ScheduledAction]] = []
        self._numbers = count()
        self._trace = hashlib.blake2b(digest_size=16)
        self.steps = 0
        self._turns = 0
        self.effects: list[str] = []
        self.on_quarantine: list[ScheduledAction] = []
        #: The sweeper's findings among the dead letters.
        self.letters: list[Received] = []
        #: Messages that were sent and are in no queue yet, by (tenant, run).
        self.late: Counter[tuple[str, str]] = Counter()

    # -- time --------------------------------------------------------------------------------------

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    @property
    def has_faults(self) -> bool:
        return not self._quiet_until_ms and self.now_ms < self.evidence.faults_end_ms

    def disturb(self) -> None:
        """Record an event: it ends the quiet time, if that time is over."""
        if 0 < self._quiet_until_ms <= self.now_ms:
            self._quiet_until_ms = 0
            self.evidence.faults_end_ms = self.now_ms + self.swarm.safety_ms
            self.tape.go_on()

    def number(self) -> int:
        return next(self._numbers)

    def at(self, at_ms: int, action: ScheduledAction) -> None:
        heappush(self._heap, (max(at_ms, self.now_ms), next(self._numbers), action))

    def after(self, delay_ms: int, action: ScheduledAction) -> None:
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, until_ms: int, is_over: Callable[[], bool] = lambda: False) -> None:
        """Until that moment, or nothing is left to happen, or it is over."""
        while self._heap and self._heap[0][0] <= until_ms and not is_over():
            self._turns += 1
            if self._turns > TURNS_MAX * (1 + len(self.evidence.forks)):
                self.evidence.is_endless = True
                return
            self.now_ms, _, action = heappop(self._heap)
            if not self.has_faults:
                self.tape.stop()
            action()
            if self._ends_with_tape and self.tape.is_spent:
                self._ends_with_tape = False
                self.evidence.faults_end_ms = max(self.now_ms, self._thawed_ms)
        if not is_over():
            self.now_ms = max(self.now_ms, until_ms)

    def run_until_faults_end(self) -> None:
        """Run until the faults end. They may end earlier than planned now."""
        ends_ms = self.evidence.faults_end_ms
        self.run_until(ends_ms, lambda: self.evidence.faults_end_ms < ends_ms)
        self.run_until(self.evidence.faults_end_ms)

    def pause_ms(self, point: str) -> int:
        return PAUSES_MS[self.tape.number(point, len(PAUSES_MS))]

    # -- processes ---------------------------------------------------------------------------------

    def host(self, kind: str) -> SimulatedHost:
        skew_ms = self.swarm.skew_ms
        off_ms = self.tape.number("skew", 2 * skew_ms + 1) if skew_ms else 0
        # Usually right: 0 is without an error, then farther to both sides.
        return SimulatedHost(
            f"{kind}{self.number()}", (off_ms + 1) // 2 * (-1 if off_ms % 2 else 1)
        )

    def limit(self, host: SimulatedHost, milliseconds: int) -> None:
        """Limit the duration of the host's function."""

        def over() -> None:
            if host.is_alive and host.frozen_until_ms > self.now_ms:
                host.give_up()
            else:
                host.kill()

        self.after(milliseconds, over)

    def spawn(
        self,
        name: str,
        tenant: str,
        host: SimulatedHost,
        handler: Handler,
        *,
        finished: Callable[[Any], None],
        failed: Callable[[Exception], None],
        perform: Callable[[Effect], Any] | None = None,
    ) -> None:
        process = Process(
            name, tenant, host, handler, perform or self.services.perform, finished, failed
        )
        self.after(1, lambda: self._resume(process, lambda: next(handler)))

    def _resume(self, process: Process, step: Callable[[], Effect]) -> None:
        """Continue to the next effect that takes time."""
        if not self._is_up(process, lambda: self._resume(process, step)):
            return
        while True:
            try:
                effect = step()
            except StopIteration as stop:
                process.finished(stop.value)
                return
            except Deadly:
                process.host.kill()
                return
            except Exception as error:  # noqa: BLE001  # a host outlives a handler's bug, and says so
                process.failed(error)
                return
            self.steps += 1
            match effect:
                case Clock():
                    answer: Any = self.now_ms + process.host.skew_ms
                case WriteDeadline() | Deadline():
                    answer = process.perform(effect)
                case Measure():
                    answer = self.services.perform(effect)
                case Pause(milliseconds):
                    self.after(milliseconds, lambda: self._send(process, None))
                    return
                case Finished(until_ms):
                    self._wait_for_results(process, until_ms - process.host.skew_ms)
                    return
                case _:
                    self._attempt(process, effect)
                    return
            step = _sending(process.handler, answer)

    def _is_up(self, process: Process, again: ScheduledAction) -> bool:
        """Frozen: it comes again when its host thaws. Dead: never."""
        host = process.host
        if not host.is_alive:
            return False
        if host.frozen_until_ms > self.now_ms:
            process.is_late |= host.frozen_until_ms - host.frozen_from_ms > _HIDDEN_MS
            self.at(host.frozen_until_ms, again)
            return False
        return True

    def _send(self, process: Process, answer: Any) -> None:
        self._resume(process, _sending(process.handler, answer))

    def _throw(self, process: Process, fault: ServiceFault) -> None:
        self._resume(process, lambda: process.handler.throw(fault))

    # -- effects -----------------------------------------------------------------------------------

    def _attempt(self, process: Process, effect: Effect) -> None:
        kind = self.tape.fault("effect", self._menus[type(effect)])
        self.effects.append(type(effect).__name__)
        self.watcher.tried(process, effect, kind)
        self.note(process.name, type(effect).__name__, faults.key_of(effect), kind or "")
        match kind:
            case None:
                self._perform(process, effect)
            case "killed before":
                process.host.kill()
            case "killed after":
                self._perform(process, effect)
                process.host.kill()
            case "frozen before":
                self.freeze(process.host)
                self.after(1, lambda: self._thawed(process, effect))
            case "frozen after":
                self._perform(process, effect)
                self.freeze(process.host)
            case "throttled":
                self.after(1, lambda: self._throw(process, faults.throttled()))
            case "slow":
                self.after(self.pause_ms("slow"), lambda: self._thawed(process, effect))
            case "sent twice":
                self._do(process, effect)
                self._perform(process, effect)
            case _:
                self._in_doubt(process, effect, kind)

    def _thawed(self, process: Process, effect: Effect) -> None:
        if self._is_up(process, lambda: self._thawed(process, effect)):
            self._perform(process, effect)

    def _in_doubt(self, process: Process, effect: Effect, kind: str) -> None:
        delay_ms = self.pause_ms("no answer")
        if kind == "answer lost":
            self._try(process, effect)
        elif kind == "done later":
            later_ms = self.pause_ms("done later")
            # Just after the read of the worker without an answer, before it tries again.
            later_ms += later_ms == delay_ms
            self.after(later_ms, lambda: self._try(process, effect))
        self.after(delay_ms, lambda: self._throw(process, faults.no_answer(effect)))

    def _try(self, process: Process, effect: Effect) -> None:
        """Performs an effect whose result is lost."""
        try:
            self._do(process, effect, is_heard=False)
        except ServiceFault:
            return

    def _perform(self, process: Process, effect: Effect) -> None:
        latency_ms = 1
        if self.swarm.latency_ms > 1:
            latency_ms += self.tape.number("latency", self.swarm.latency_ms)
        try:
            answer = self._do(process, effect)
        except ServiceFault as fault:
            refusal = fault  # the name of the clause is gone when the answer arrives
            if isinstance(effect, Put | PutIfAbsent | Send):
                self.evidence.unusable.append(f"{faults.key_of(effect)}: {fault}")
            self.after(latency_ms, lambda: self._throw(process, refusal))
            return
        self.after(latency_ms, lambda: self._send(process, answer))

    def _do(self, process: Process, effect: Effect, *, is_heard: bool = True) -> Any:
        self._see_whose(process, effect)
        self.watcher.done(process, effect)
        self.evidence.dispatches.see(effect, self.now_ms)
        if isinstance(effect, Begin):
            self._begin(process, effect)
            return None
        if isinstance(effect, Send):
            return self._send_messages(effect)
        answer = process.perform(effect)
        if isinstance(effect, Put | PutIfAbsent) and effect.table == tables.EXECUTIONS:
            self._see_record(process, effect, answer, is_heard=is_heard)
        if isinstance(effect, Put | PutIfAbsent):
            self._see_stored(effect)
        self._see_beat(effect, answer)
        self.evidence.archive.see(effect, answer, self.now_ms)
        return answer

    def _see_whose(self, process: Process, effect: Effect) -> None:
        if isinstance(effect, Send):
            owners = {str(message.body["t"]) for message in effect.messages}
        elif isinstance(effect, Begin):
            owners = {effect.effect.tenant}
        else:
            owners = {faults.key_of(effect).replace("/", "#").partition("#")[0]}
        strangers = {one for one in owners if one and not one.startswith("~")} - {process.tenant}
        if strangers and process.tenant:
            self.evidence.foreign.append(f"{process.name} of {process.tenant}: {effect}")

    def _see_record(
        self, process: Process, effect: Put | PutIfAbsent, found: Any, *, is_heard: bool
    ) -> None:
        item = effect.item
        tenant, _, run = str(item["pk"]).partition("#")
        self.watcher.record(process, item, found, is_heard=is_heard)
        if found is not None:
            return
        self._trace.update(repr(item.get("eb", item.get("ev"))).encode())
        skew_ms = process.host.skew_ms
        wrote = Wrote(tenant, run, int(item["sk"]), str(item["w"]), self.now_ms, skew_ms)
        self.evidence.wrote.append(wrote)
        self.begun.add((tenant, run))
        place = (tenant, run, wrote.sequence)
        self.orphans.wrote(place, str(item["m"]), process.name.partition(":")[0])
        if item["st"] == "RUNNING":
            self.open.add((tenant, run))
        else:
            self.open.discard((tenant, run))
        for told in self.on_record:
            told(tenant, run)

    def _see_stored(self, effect: Put | PutIfAbsent) -> None:
        pk, sk = str(effect.item["pk"]), str(effect.item["sk"])
        if effect.table == tables.MAIL:
            self.evidence.stored.setdefault((pk, sk), self.now_ms)
        if pk == keys.QUARANTINE:
            for alarmed in self.on_quarantine:
                alarmed()
        offer = offered_in(pk)
        if offer is not None:
            for offered in self.on_offer:
                offered(*offer)
        if pk.startswith("~due#"):
            look_ms = int(sk.partition("#")[0]) - SWEEP_AHEAD_SECONDS * 1_000
            self._plan_sweep(look_ms)
        if pk.startswith("~start#"):
            self._plan_sweep(int(sk[:15]) + FIRST_MS)
        if pk.startswith("~archive#"):
            self._plan_sweep(int(sk[:15]))

    def _plan_sweep(self, look_ms: int) -> None:
        for told in self.on_due:
            told(-(-max(look_ms, self.now_ms + 1) // SWEEP_MS) * SWEEP_MS)

    def _see_beat(self, effect: Effect, answer: Any) -> None:
        """Record a heartbeat. Only the first of an entry is a conditional put."""
        match effect:
            case PutIfAbsent(tables.MAIL, item):
                is_stored = answer is None
            case Replace(tables.MAIL, item):
                is_stored = answer
            case _:
                return
        place = (str(item["pk"]), str(item["sk"]))
        if is_stored and place[1].startswith(keys.HEARTBEAT_PREFIX):
            beats = self.evidence.beats.setdefault(place, [])
            beats.append((self.now_ms, int(item["at"])))

    def _send_messages(self, effect: Send) -> None:
        for message in effect.messages:
            self.evidence.messages[faults.run_of(message.body)] += 1
            one = Send((message,), effect.queue)
            match self.tape.fault("message", self._message_menu):
                case "vanished" if faults.may_vanish(message.body):
                    self.lose(message.body)
                case "late":
                    self.late[whose(message.body)] += 1
                    self.after(self.pause_ms("late"), partial(self._arrive, one))
                case _:
                    self._enqueue(one)

    def lose(self, body: Any) -> None:
        """Purges the queue, as an operator may."""
        is_guarded = body["k"] == START and "lane" not in (body.get("parent") or {})
        if is_guarded and whose(body) not in self.begun:
            self.evidence.marks[Seen.START_VANISHED] += 1
            self.evidence.lost_starts.add(faults.run_of(body))
        else:
            self.evidence.marks[Seen.VANISHED] += 1
            self.evidence.lost.add(faults.run_of(body))

    def _arrive(self, effect: Send) -> None:
        self.late[whose(effect.messages[0].body)] -= 1
        self._enqueue(effect)

    def _enqueue(self, effect: Send) -> None:
        self.services.perform(effect)
        for told in self.on_message:
            told()

    def freeze(self, host: SimulatedHost) -> None:
        most_ms = FREEZES_MS[self.tape.number("freeze", len(FREEZES_MS))]
        left_ms = max(0, self.evidence.faults_end_ms - self.now_ms)
        host.frozen_from_ms = self.now_ms
        host.frozen_until_ms = self.now_ms + min(most_ms, left_ms)
        self._thawed_ms = max(self._thawed_ms, host.frozen_until_ms)

    def note(self, *what: str) -> None:
        """Add one line to the trace."""
        self.last_ms = self.now_ms
        self._trace.update(f"{self.now_ms} {' '.join(what)}\n".encode())

    # -- tasks -------------------------------------------------------------------------------------

    def _begin(self, process: Process, effect: Begin) -> None:
        task = effect.effect
        for told in self.on_begin:
            told(task)
        place = (task.run, task.entry, task.attempt)
        ran = Ran(*place, task.is_poll, self.now_ms, task.name, task.arguments)
        self.evidence.ran.append(ran)
        outcome = self.jobs.outcome(task)
        process.running += 1
        ends_ms = self.now_ms + int(outcome.seconds * 1_000)
        self.at(ends_ms, lambda: self._task_over(process, effect))

    def _task_over(self, process: Process, effect: Begin) -> None:
        if not self._is_up(process, lambda: self._task_over(process, effect)):
            return
        task = effect.effect
        outcome = self.scenario.outcome(task.name, task.attempt)
        if outcome.error == KILLS:
            self.watcher.killed_at_task(process)
            process.host.kill()
            return
        process.running -= 1
        process.results.append((effect.ticket, self.jobs.result(task)))
        if process.waiting is not None:
            process.waiting()

    def _wait_for_results(self, process: Process, until_ms: int) -> None:
        is_answered = False

        def answer() -> None:
            nonlocal is_answered
            if is_answered:
                return
            is_answered, process.waiting = True, None
            done, process.results = process.results, []
            self._send(process, done)

        if process.results or not process.running:
            answer()
            return
        process.waiting = answer
        # Later than now: a handler that asks until a moment has passed would ask for ever at that
        # moment.
        self.at(max(until_ms, self.now_ms + 1), answer)


def whose(body: Any) -> tuple[str, str]:
    return str(body["t"]), faults.run_of(body)


def _sending(handler: Handler, answer: Any) -> Callable[[], Effect]:
    return lambda: handler.send(answer)
