"""Lambda and its event source: batches from the queues, a process for each message of a batch.

receive ─ hide for 120 s ─┬─ every 60 s: hide again ─┬─ all done: delete what was acknowledged
                          └─ killed, out of time ────┴─ nothing is deleted, even if a host thaws
                          later
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from holdfast.errors import ServiceFault
from holdfast.limits import VISIBILITY_EXTENSION_SECONDS, VISIBILITY_SECONDS
from holdfast.resources import WORKER
from holdfast.runtime.effects import Deadline, Effect, QueueName, SetVisibility, WriteDeadline
from holdfast.runtime.visibility import Holds
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import deliver
from holdfast_simulator import faults
from holdfast_simulator.processes import SimulatedHost
from holdfast_simulator.queues import MemoryQueue, Received
from holdfast_simulator.services import DEAD_LETTERS, WORK_QUEUES
from holdfast_simulator.simulation import Simulation

_DEAD_LETTERS_OF: Final = dict(zip(WORK_QUEUES, DEAD_LETTERS, strict=True))
FUNCTION_MS: Final = WORKER.timeout_seconds * 1_000
#: An invocation that is nearly over has this time left.
SHORT_MS: Final = 8_000


@dataclass(eq=False)
class SimulatedInvocation:
    queue: QueueName
    host: SimulatedHost
    holds: Holds
    receipts: dict[str, str]
    runs: dict[str, str]
    open: int
    #: The owners of leases in deliveries that are not over.
    owners: list[str] = field(default_factory=list)
    #: (message, receipt)
    acknowledged: list[tuple[str, str]] = field(default_factory=list)


class Workers:
    """The workers of both work queues of a simulation. `setting(fault)` gives the definitions and
    functions of a process: all of them, or the rest of them when it is "cold" or "old".
    """

    def __init__(
        self, simulation: Simulation, setting: Callable[[str | None], WorkerConfig]
    ) -> None:
        self._simulation = simulation
        self._setting = setting
        self._polls: dict[QueueName, int] = {}
        swarm = simulation.swarm
        self._receive_menu = faults.menu(swarm, "delivered again", "duplicated", "vanished")
        self._invocation_menu = faults.menu(swarm, "cold", "old", "short")
        self._hide_menu = faults.menu(swarm, "not hidden")
        self._batch_menu = faults.menu(swarm, "batch lost")
        self._delete_menu = faults.menu(swarm, "not deleted")
        simulation.on_message.append(self.poke)

    def poke(self) -> None:
        """Schedule a look at the queues at the time at which the first message can be received."""
        for queue in WORK_QUEUES:
            visible_ms = self._simulation.services.next_visible_ms((queue,))
            if visible_ms is None:
                continue
            at_ms = max(visible_ms, self._simulation.now_ms)
            if queue in self._polls and self._polls[queue] <= at_ms:
                continue
            self._polls[queue] = at_ms
            self._simulation.at(at_ms, partial(self._poll, queue, at_ms))

    def _poll(self, queue: QueueName, at_ms: int) -> None:
        if self._polls.get(queue) != at_ms:
            return  # An earlier look has replaced this one
        del self._polls[queue]
        simulation = self._simulation
        size = 1 if queue == "single" else simulation.swarm.batch_size
        batch = simulation.services.receive(queue, size)
        if simulation.services.next_visible_ms((_DEAD_LETTERS_OF[queue],)) is not None:
            for told in simulation.on_due:
                told(simulation.now_ms)
        batch = [received for received in batch if self._arrives(queue, received)]
        if batch:
            self._invoke(queue, batch)
        self.poke()

    def _arrives(self, queue: QueueName, received: Received) -> bool:
        simulation = self._simulation
        stored = simulation.services.queue(queue)
        match simulation.tape.fault("receive", self._receive_menu):
            case "vanished" if faults.may_vanish(received.body):
                simulation.services.delete(received.receipt)
                simulation.lose(received.body)
                return False
            case "delivered again":
                # Show the message again later and not now, because the worker is about to hide it
                # for two minutes.
                delay_ms = simulation.pause_ms("again")
                simulation.after(delay_ms, lambda: self._show_again(stored, received.receipt))
            case "duplicated":
                at_ms = simulation.now_ms + simulation.pause_ms("again")
                stored.duplicate(received.receipt, at_ms)
        return True

    def _show_again(self, stored: MemoryQueue, receipt: str) -> None:
        if stored.show_again(receipt, self._simulation.now_ms):
            self.poke()

    # -- one invocation ----------------------------------------------------------------------------

    def _invoke(self, queue: QueueName, batch: list[Received]) -> None:
        simulation = self._simulation
        host = simulation.host("worker")
        fault = simulation.tape.fault("invocation", self._invocation_menu)
        left_ms = SHORT_MS if fault == "short" else FUNCTION_MS
        receipts = {received.message_id: received.receipt for received in batch}
        now_ms = simulation.now_ms + host.skew_ms
        holds = Holds(receipts, now_ms + left_ms, now_ms)
        runs = {received.message_id: faults.run_of(received.body) for received in batch}
        invocation = SimulatedInvocation(queue, host, holds, receipts, runs, len(batch))
        host.on_loss = lambda: self._lost(invocation)
        self._hide(invocation, is_first=True)
        setting = self._setting(fault)
        for received in batch:
            self._deliver(invocation, received, setting)
        self._keep_hidden(invocation)
        simulation.limit(host, left_ms)

    def _deliver(
        self, invocation: SimulatedInvocation, received: Received, setting: WorkerConfig
    ) -> None:
        simulation = self._simulation
        owner = f"{invocation.host.name}m{simulation.number()}"
        invocation.owners.append(owner)
        run = faults.run_of(received.body)
        simulation.evidence.deliveries[run] += 1
        is_alone = len(invocation.receipts) == 1
        if not is_alone:
            simulation.evidence.in_company.add(owner)
        receives, sent_ms = received.receive_count, received.sent_at
        delivery = ReceivedMessage(
            received.body, received.message_id, receives, owner, sent_ms, is_alone
        )
        bound = simulation.services.for_message(invocation.queue, received.receipt)

        def perform(effect: Effect) -> Any:
            match effect:
                case WriteDeadline():
                    limit_ms = invocation.holds.limit_ms(received.message_id)
                    now_ms = simulation.now_ms + invocation.host.skew_ms
                    simulation.watcher.past_limit(now_ms, limit_ms)
                    return limit_ms
                case Deadline():
                    return invocation.holds.deadline_ms
                case SetVisibility():
                    invocation.holds.let_go(received.message_id)
            answer = bound(effect)
            if isinstance(effect, SetVisibility):
                self.poke()
            return answer

        def finished(is_done: Any) -> None:
            invocation.owners.remove(owner)
            if not is_done:
                simulation.orphans.failed(owner)
            self._over(invocation, received if is_done else None)

        name = f"{owner}:{received.body.get('k')}"
        simulation.watcher.delivery(name, delivery, invocation.host)
        simulation.spawn(
            name,
            str(received.body["t"]) if run else "",  # a page of an archive has rows of all tenants
            invocation.host,
            deliver(setting, delivery),
            finished=finished,
            failed=lambda error: finished(self._refused(error)),
            perform=perform,
        )

    def _lost(self, invocation: SimulatedInvocation) -> None:
        for owner in invocation.owners:
            self._simulation.orphans.failed(owner)
        if not invocation.host.is_alive:
            self._simulation.watcher.died_with(invocation.open)
        self.poke()

    def _refused(self, error: Exception) -> bool:
        if not isinstance(error, ServiceFault):
            self._simulation.evidence.refused_by_bug.append(repr(error))
        return False

    def _over(self, invocation: SimulatedInvocation, acknowledged: Received | None) -> None:
        invocation.open -= 1
        if acknowledged is not None:
            invocation.acknowledged.append((acknowledged.message_id, acknowledged.receipt))
        if invocation.open:
            return
        simulation = self._simulation
        if not invocation.host.finish():
            return
        if simulation.tape.fault("batch", self._batch_menu) == "batch lost":
            return
        for message_id, receipt in invocation.acknowledged:
            if simulation.tape.fault("delete", self._delete_menu) is None:
                accepts_stale = simulation.swarm.takes_stale_receipts
                simulation.services.delete(receipt, accepts_stale=accepts_stale)
                simulation.orphans.deleted(message_id)

    # -- visibility --------------------------------------------------------------------------------

    def _keep_hidden(self, invocation: SimulatedInvocation) -> None:
        def again() -> None:
            if not invocation.host.is_alive:
                return
            if invocation.host.frozen_until_ms > self._simulation.now_ms:
                self._simulation.at(invocation.host.frozen_until_ms, again)
                return
            self._hide(invocation)
            self._keep_hidden(invocation)

        self._simulation.after(VISIBILITY_EXTENSION_SECONDS * 1_000, again)

    def _hide(self, invocation: SimulatedInvocation, *, is_first: bool = False) -> None:
        simulation, holds = self._simulation, invocation.holds
        now_ms = simulation.now_ms + invocation.host.skew_ms
        for message_id, receipt in list(holds.receipts.items()):
            try:
                if simulation.tape.fault("hide", self._hide_menu) is not None:
                    raise faults.throttled()
                simulation.services.extend_visibility(
                    invocation.queue, [receipt], VISIBILITY_SECONDS
                )
            except ServiceFault:
                # Only the first time: later the message is hidden for two minutes as before
                if is_first:
                    simulation.evidence.unhidden.add(invocation.runs[message_id])
                holds.let_go(message_id)
            else:
                holds.extended(message_id, now_ms)
        self.poke()
