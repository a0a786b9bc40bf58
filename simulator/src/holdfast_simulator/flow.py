"""Worlds of limited tasks: the real worker, gates and dispensers on virtual time, with faults.

`simulation` runs one execution among faults and judges its whole history. Here hundreds of
executions compete for a few limits, and the judge looks at when attempts began: never too many at
once or in a window, in order, without idle capacity, and every execution to its end.

    caller ──► start messages ──► deliveries, each a handler on a host of its own
                                     │ each effect: 1 to 8 ms, or a fault
                                     └ begins a task: noted with its true time, and its end

Rules of this file:
* One heap of (moment, number, action), and one random number generator: a seed is a world.
* Each effect may be killed, frozen (up to 200 s), or left without an answer; each message may come
  twice or late. After `faults_end_ms` nothing goes wrong.
* Hosts have clocks that are up to half a second off, and memories of gates that may be outdated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final

from holdfast.asl.parsing.parse import definition_hash
from holdfast.errors import HoldfastError, ServiceFault
from holdfast.limits import (
    LIMIT_MARGIN_MS,
    SWEEP_SECONDS,
    VISIBILITY_SECONDS,
)
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import (
    Begin,
    Clock,
    Deadline,
    Effect,
    Finished,
    Handler,
    Measure,
    Pause,
    QueueName,
    Send,
    SetVisibility,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
    TaskThrottled,
    WriteDeadline,
)
from holdfast.runtime.gates import operate
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.rules import BatchRule, LimitBook, LimitRule, LimitUse
from holdfast.runtime.maintenance import lost_starts, sweeper
from holdfast.runtime.messages import WAKE_GRANT
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.spread import DUE, STARTS
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import deliver
from holdfast_simulator.queues import AnyQueueName, Received
from holdfast_simulator.services import WORK_QUEUES, Services

START_MS: Final = 1_800_000_000_000
KEYS: Final = SigningKeys("k1", {"k1": b"a key of the simulator, 32 bytes"})
_HOSTS: Final = 6


@dataclass(frozen=True, slots=True)
class Work:
    """One execution: its start time, its priority and input, and the outcome of its tasks.

    `throttled`: the number of attempts that a service throttles before one succeeds; `failed` fail.
    """

    at_ms: int
    customer: str = "c1"
    tenant: str = "t1"
    seconds: float = 0.5
    priority: int = 5
    throttled: int = 0
    failed: int = 0
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of a world. `chance`: the probability of a fault at one effect, until `end_ms`
    after the start.

    `duplicates`: the probability that a message is delivered twice; `late`: that a wake arrives
    half a minute late.
    """

    chance: float = 0.0
    end_ms: int = 0
    skew_ms: int = 0
    duplicates: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt that began. `ended_ms`: the time at which it ended or its host crashed."""

    run: str
    task: str
    at_ms: int
    customer: str
    tenant: str
    attempt: int


@dataclass
class TaskRun:
    began: Started
    timeout_ms: int
    ended_ms: int | None = None


@dataclass(eq=False)
class _Host:
    """One process: the handler of one delivery, with a clock and a memory of gates."""

    skew_ms: int
    memory: GateMemory
    queue: AnyQueueName
    is_alive: bool = True
    frozen_until_ms: int = 0
    runs: list[TaskRun] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    running: int = 0
    waiting: Callable[[], None] | None = None
    extended_ms: int = 0


class AnyTypes:
    def normalise_input(self, tenant: str, workflow: str, value: Any) -> Any:
        del tenant, workflow
        return value

    def schema_of(self, reference: str) -> dict[str, Any]:
        del reference
        return {}

    def normalise_payload(self, tenant: str, reference: str, value: Any, what: str) -> Any:
        del tenant, reference, what
        return value

    def normalise_result(self, tenant: str, name: str, value: Any, is_workflow: bool) -> Any:
        del tenant, name, is_workflow
        return value

    def convert(self, tenant: str, function: str, values: Mapping[str, Any]) -> Any:
        del tenant, function
        return dict(values)


def machine(tasks: tuple[str, ...], timeout_seconds: int, retry: bool = True) -> dict[str, Any]:
    """Return a machine with one state for each task, one after the other. Each gets the execution's
    input.
    """
    states: dict[str, Any] = {}
    for number, task in enumerate(tasks):
        follow = {"Next": f"{number + 1}"} if number + 1 < len(tasks) else {"End": True}
        states[str(number)] = {
            "Type": "Task",
            "Resource": f"holdfast:task:{task}",
            "Arguments": "{% $states.context.Execution.Input %}",
            "TimeoutSeconds": timeout_seconds,
            **follow,
        }
        if retry:
            states[str(number)]["Retry"] = [
                {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 9}
            ]
    return {"QueryLanguage": "JSONata", "StartAt": "0", "States": states}


class FlowWorld:
    """A simulated world. `uses`: the limits of each task; `running`: those of the workflow. `act`
    returns the result of an attempt at its end. `workers`: the most deliveries at once;
    `start_workers`: the most deliveries of starts among them.
    """

    def __init__(
        self,
        uses: Mapping[str, tuple[LimitUse, ...]],
        definition: dict[str, Any],
        *,
        seed: int = 0,
        faults: Faults | None = None,
        workers: int = 10_000,
        start_workers: int = 10_000,
        running: tuple[LimitUse, ...] = (),
        batches: Mapping[str, BatchRule] | None = None,
    ) -> None:
        self.random = Random(seed)  # noqa: S311  # repeatable, not secret
        self.faults = faults or Faults()
        self.workers = workers
        self.start_workers = start_workers
        self.busy = 0
        self.busy_with_starts = 0
        self.now_ms = START_MS
        self.services = Services(lambda: self.now_ms)
        source_map = {"tasks": sorted(uses)}
        stored = Definition(definition, source_map, definition_hash(definition))
        self.programs = Programs()
        self.programs.add(stored)
        self.front = Front(self.programs, {"flow": stored}, AnyTypes(), KEYS)
        self.book = LimitBook(uses, {"flow": running} if running else {}, batches or {})
        self.hosts = [(self._skew(), GateMemory(self.book)) for _ in range(_HOSTS)]
        self.task_runs: list[TaskRun] = []
        self.works: dict[str, Work] = {}
        self.sent: Counter[str] = Counter()
        self.errors: list[str] = []
        self.timeout_ms = definition["States"]["0"]["TimeoutSeconds"] * 1_000
        self.act: Callable[[Work, Begin], TaskResult] = self._outcome
        #: Return True for an attempt that crashes the process which runs it.
        self.is_deadly: Callable[[Begin], bool] = lambda _: False
        self._tried: Counter[tuple[str, int]] = Counter()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._polls: set[int] = set()
        self._running: set[_Host] = set()
        self._sweep_at = START_MS + SWEEP_SECONDS * 1_000
        self.at(self._sweep_at, self._sweep)

    # -- time --------------------------------------------------------------------------------------

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        heappush(self._heap, (max(at_ms, self.now_ms), next(self._numbers), action))

    def run(self, until_ms: int) -> None:
        """Run until all executions have ended and no message is left, or until that time."""
        while self._heap and self._heap[0][0] <= until_ms:
            self.now_ms, _, action = heappop(self._heap)
            action()

    @property
    def has_faults(self) -> bool:
        return self.now_ms < START_MS + self.faults.end_ms

    def _skew(self) -> int:
        most = self.faults.skew_ms
        return self.random.randint(-most, most) if most else 0

    # -- outside -----------------------------------------------------------------------------------

    def start(self, work: Work, name: str) -> None:
        def begin() -> None:
            chance = self.random.getrandbits(64).to_bytes(8, "big")
            request = {
                "workflow": "flow",
                "input": {"customer": work.customer, "tenant": work.tenant},
                "name": name,
                "priority": work.priority,
            }
            answer = self.call(self.front.start("default", request, chance))
            self.works[str(answer["execution"])] = work
            self._poll()

        self.at(START_MS + work.at_ms, begin)

    def change(self, rule: LimitRule, at_ms: int, **changed: Any) -> None:
        """Change a limit as an operator does."""

        def act() -> None:
            self.call(operate.change(rule, changed))
            self._poll()

        self.at(START_MS + at_ms, act)

    def prioritise(self, run: str, priority: int) -> None:
        request = {"priority": priority, "reason": "a large customer"}
        self.call(self.front.change_priority("default", run, request, b"priority"))
        self._poll()

    def stop(self, run: str) -> None:
        self.call(self.front.stop("default", run, {}, b"stopstop"))
        self._poll()

    def call(self, handler: Handler) -> Any:
        """Run a handler at once and without faults."""
        answer: Any = None
        try:
            while True:
                effect = handler.send(answer)
                answer = self.services.perform(effect)
                self._note(effect)
        except StopIteration as stop:
            return stop.value

    def _sweep(self) -> None:
        for shard in range(DUE.least):
            self.call(sweeper.sweep(shard, f"sweeper{next(self._numbers)}"))
        for shard in range(STARTS.least):
            self.call(lost_starts.sweep(shard, f"sweeper{next(self._numbers)}"))
        self._poll()
        self._sweep_at = self.now_ms + SWEEP_SECONDS * 1_000
        self.at(self._sweep_at, self._sweep)

    # -- deliveries --------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Receive messages when a message becomes visible, and again 20 to 120 ms later."""
        at_ms = self.services.next_visible_ms()
        if at_ms is None:
            return
        at_ms = max(at_ms, self.now_ms) + self.random.randint(20, 120)
        if at_ms not in self._polls:
            self._polls.add(at_ms)
            self.at(at_ms, lambda: self._receive(at_ms))

    def _receive(self, polled_ms: int) -> None:
        self._polls.discard(polled_ms)
        for queue in WORK_QUEUES:
            while self._has_worker(queue):
                found = self.services.receive(queue, 1)
                if not found:
                    break
                for received in found:
                    self._deliver(received)
        self._poll()

    def _has_worker(self, queue: QueueName) -> bool:
        is_allowed = queue != "starts" or self.busy_with_starts < self.start_workers
        return is_allowed and self.busy < self.workers

    def _deliver(self, received: Received) -> None:
        self.busy += 1
        self.busy_with_starts += received.queue == "starts"
        if self.has_faults and self.random.random() < self.faults.duplicates:
            at_ms = self.now_ms + self.random.randint(1, 5_000)
            self.services.queue(received.queue).duplicate(received.receipt, at_ms)
            self.at(at_ms, self._poll)
        skew_ms, memory = self.random.choice(self.hosts)
        host = _Host(skew_ms, memory, received.queue, extended_ms=self.now_ms)
        self.call(memory.look(self.now_ms + skew_ms))
        programs, book = self.programs, memory
        setting = WorkerConfig(programs, lambda *_: True, lambda: KEYS, gates=book)
        delivery = ReceivedMessage(
            received.body,
            received.message_id,
            received.receive_count,
            f"w{next(self._numbers)}",
            received.sent_at,
        )
        perform = self.services.for_message(received.queue, received.receipt)
        self._extend(host, received)
        self._resume(host, received, deliver(setting, delivery), perform, next)

    def _extend(self, host: _Host, received: Received) -> None:
        """Keep the message hidden while its worker runs."""
        if not host.is_alive:
            return
        if host.frozen_until_ms > self.now_ms:
            self.at(host.frozen_until_ms, lambda: self._extend(host, received))
            return
        try:
            self.services.extend_visibility(received.queue, [received.receipt], VISIBILITY_SECONDS)
            host.extended_ms = self.now_ms
        except ServiceFault:
            return
        self.at(self.now_ms + 60_000, lambda: self._extend(host, received))

    def _over(self, host: _Host) -> None:
        """End the process, and with it the tasks that run in it."""
        if host.is_alive:
            host.is_alive = False
            self._running.discard(host)
            self.busy -= 1
            self.busy_with_starts -= host.queue == "starts"
            for one in host.runs:
                if one.ended_ms is None:
                    one.ended_ms = self.now_ms
            self._poll()

    def _resume(
        self,
        host: _Host,
        received: Received,
        handler: Handler,
        perform: Callable[[Effect], Any],
        step: Callable[[Handler], Any],
    ) -> None:
        def again(then: Callable[[Handler], Any]) -> None:
            self._resume(host, received, handler, perform, then)

        if not host.is_alive:
            return
        if host.frozen_until_ms > self.now_ms:
            self.at(host.frozen_until_ms, lambda: again(step))
            return
        try:
            effect = step(handler)
        except StopIteration as stop:
            if stop.value:
                self.services.delete(received.receipt)
            self._over(host)
            return
        except HoldfastError as error:
            if not isinstance(error, ServiceFault):
                self.errors.append(str(error))
            self._over(host)
            return
        except Exception as error:  # noqa: BLE001  # a bug of ours is a finding
            self.errors.append(f"{type(error).__name__}: {error}")
            self._over(host)
            return
        self._perform(host, effect, perform, again)

    def _perform(
        self,
        host: _Host,
        effect: Effect,
        perform: Callable[[Effect], Any],
        again: Callable[[Callable[[Handler], Any]], None],
    ) -> None:
        match effect:
            case Clock():
                answer = self.now_ms + host.skew_ms
                again(lambda h: h.send(answer))
            case WriteDeadline() | Deadline():
                hidden_ms = VISIBILITY_SECONDS * 1_000 - LIMIT_MARGIN_MS
                limit_ms = host.extended_ms + hidden_ms + host.skew_ms
                if isinstance(effect, Deadline):
                    limit_ms = self.now_ms + 800_000
                again(lambda h: h.send(limit_ms))
            case Measure():
                self.services.when_measured(effect)
                again(lambda h: h.send(None))
            case Pause(milliseconds):
                self.at(self.now_ms + milliseconds, lambda: again(lambda h: h.send(None)))
            case Begin():
                self._begin(host, effect)
                self.at(self.now_ms + 1, lambda: again(lambda h: h.send(None)))
            case Finished(until_ms):
                self._wait(host, until_ms - host.skew_ms, again)
            case _:
                self._do(host, effect, perform, again)

    def _do(
        self,
        host: _Host,
        effect: Effect,
        perform: Callable[[Effect], Any],
        again: Callable[[Callable[[Handler], Any]], None],
    ) -> None:
        kind = ""
        if self.has_faults and self.random.random() < self.faults.chance:
            kind = self.random.choice(
                [
                    "killed before",
                    "killed after",
                    "frozen before",
                    "frozen after",
                    "no answer",
                    "not done",
                ]
            )
        if kind == "killed before":
            self._over(host)
            return
        if kind == "frozen before":
            host.frozen_until_ms = self.now_ms + self.random.choice([300, 4_000, 40_000, 200_000])
            self.at(host.frozen_until_ms, lambda: self._do_now(host, effect, perform, again, ""))
            return
        self._do_now(host, effect, perform, again, kind)

    def _do_now(
        self,
        host: _Host,
        effect: Effect,
        perform: Callable[[Effect], Any],
        again: Callable[[Callable[[Handler], Any]], None],
        kind: str,
    ) -> None:
        if not host.is_alive:
            return
        latency_ms = self.random.randint(1, 8)
        if kind == "not done":
            fault = ServiceFault("HF321", "no answer came", retry="now")
            self.at(self.now_ms + 500, lambda: again(lambda h: h.throw(fault)))
            return
        try:
            answer = perform(effect)
        except ServiceFault as error:
            refusal = error
            self.at(self.now_ms + latency_ms, lambda: again(lambda h: h.throw(refusal)))
            return
        self._note(effect)
        if kind == "killed after":
            self._over(host)
            return
        if kind == "frozen after":
            host.frozen_until_ms = self.now_ms + self.random.choice([300, 4_000, 40_000, 200_000])
        if kind == "no answer" and not isinstance(effect, SetVisibility):
            fault = ServiceFault("HF321", "no answer came", retry="now")
            self.at(self.now_ms + 500, lambda: again(lambda h: h.throw(fault)))
            return
        self.at(self.now_ms + latency_ms, lambda: again(lambda h: h.send(answer)))

    def _note(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            for message in effect.messages:
                self.sent[str(message.body.get("run", message.body["k"]))] += 1
            is_wake = effect.messages[0].body["k"] == WAKE_GRANT
            if is_wake and self.has_faults and self.random.random() < self.faults.late:
                self._delay(effect)
            self._poll()
        elif isinstance(effect, SetVisibility):
            self._poll()

    def _delay(self, effect: Send) -> None:
        stored = self.services.queue(effect.queue)
        for one in list(stored.messages.values())[-len(effect.messages) :]:
            one.visible_at += 30_000
            stored.place(one)

    def kill(self, run: str) -> None:
        """Crash the hosts that run a task of the execution."""
        for host in list(self._running):
            if any(one.began.run == run and one.ended_ms is None for one in host.runs):
                self._over(host)

    # -- tasks -------------------------------------------------------------------------------------

    def _begin(self, host: _Host, effect: Begin) -> None:
        task = effect.effect
        work = self.works.get(task.run, Work(0))
        began = Started(task.run, task.name, self.now_ms, work.customer, work.tenant, task.attempt)
        one = TaskRun(began, self.timeout_ms)
        self.task_runs.append(one)
        host.runs.append(one)
        host.running += 1
        self._running.add(host)
        ends_ms = self.now_ms + int(work.seconds * 1_000)

        def over() -> None:
            if not host.is_alive:
                return
            if host.frozen_until_ms > self.now_ms:
                self.at(host.frozen_until_ms, over)
                return
            if self.is_deadly(effect):
                self._over(host)
                return
            one.ended_ms = self.now_ms
            host.running -= 1
            host.results.append((effect.ticket, self.act(work, effect)))
            if host.waiting is not None:
                host.waiting()

        self.at(ends_ms, over)

    def _outcome(self, work: Work, effect: Begin) -> TaskResult:
        task = effect.effect
        self._tried[task.run, task.entry] += 1
        tried = self._tried[task.run, task.entry]
        if tried <= work.throttled:
            return TaskThrottled(2_000, "busy")
        if tried <= work.throttled + work.failed:
            return TaskFailed("Broken", "it failed")
        return TaskSucceeded(None)

    def _wait(
        self,
        host: _Host,
        until_ms: int,
        again: Callable[[Callable[[Handler], Any]], None],
    ) -> None:
        is_answered = False

        def answer() -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered, host.waiting = True, None
                done, host.results = host.results, []
                again(lambda h: h.send(done))

        if host.results or not host.running:
            answer()
            return
        host.waiting = answer
        self.at(max(until_ms, self.now_ms + 1), answer)

    # -- stored data -------------------------------------------------------------------------------

    def open_runs(self) -> list[str]:
        newest: dict[str, tuple[int, str]] = {}
        for item in self.services.items("executions"):
            run = str(item["pk"]).partition("#")[2]
            newest[run] = max(newest.get(run, (-1, "")), (int(item["sk"]), str(item["st"])))
        done = {run for run, (_, status) in newest.items() if status != "RUNNING"}
        return [run for run in self.works if run not in done]

    def stored(self, prefix: str) -> list[Any]:
        return [item for item in self.services.items("mail") if str(item["pk"]).startswith(prefix)]
