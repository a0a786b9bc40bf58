"""The bodies of the Lambda functions: each takes an event in AWS's form, runs handlers, and returns
a response.

The modules of the API and of the sweeper are imported by the first event that needs them. A worker
needs neither, and each import makes the start of a Lambda function slower.

One `Host` serves a process. In Lambda `aws.entry` creates it from the environment; on a local
machine the embedded cloud does. Both run the same code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from holdfast import resources
from holdfast.aws.messaging import DeadLetter, parsed_body
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import Ports
from holdfast.aws.telemetry import Metrics, log_fault
from holdfast.errors import HoldfastBug, HoldfastError, ServiceFault
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    DEAD_LETTER_BATCHES_MAX,
    OPEN_COUNT_MINUTES,
    PAYLOAD_BYTES_MAX,
    SWEEP_THREADS_MAX,
    VISIBILITY_EXTENSION_SECONDS,
    VISIBILITY_SECONDS,
)
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Clock,
    Deadline,
    Effect,
    Handler,
    Measure,
    QueueName,
    SetVisibility,
    WriteDeadline,
)
from holdfast.runtime.schedules import Plan
from holdfast.runtime.storage.format_control import Control
from holdfast.runtime.storage.keys import TENANT_DEFAULT
from holdfast.runtime.storage.spread import DUE, STARTS
from holdfast.runtime.visibility import Holds
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import deliver

if TYPE_CHECKING:
    from holdfast.runtime.commands.api import Front

QUEUES: tuple[QueueName, ...] = ("work", "single", "starts")
TASK_THREADS: Final = "task"


@dataclass(frozen=True, slots=True)
class _Invocation:
    request_id: str
    pool: ThreadPoolExecutor | None
    is_alone: bool


@dataclass
class Host:
    """The body of the Lambda functions in one process.

    * `has_threads` False: everything runs in one thread, for a local stack with a virtual clock.
    * `payload_bytes_max` limits the data of state machines; None removes AWS's limit.
    * `has_history_limit`: standard executions of state machines end at AWS's 25,000 events.
    * `may_reveal_secrets`: TestState may show the secrets of EventBridge connections.
    * `schedules`: those that the code declares, by name.
    * `spread`: the spread that this deployment sets; the sweeper stores it.
    * `forms_scheme`: the URL scheme of links to forms of questions; None: this stack has no forms.
    """

    ports: Ports
    setting: WorkerConfig
    make_front: Callable[[], Front]
    metrics: Metrics
    has_threads: bool = True
    payload_bytes_max: int | None = PAYLOAD_BYTES_MAX
    has_history_limit: bool = False
    may_reveal_secrets: bool = False
    schedules: Mapping[str, Plan] = field(default_factory=dict)
    forms_scheme: str | None = "http"
    spread: int = 0
    log_fault: Callable[..., None] = log_fault
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        self.control = Control(self.setting.formats, self.setting.spread)

    @cached_property
    def front(self) -> Front:
        """Return the commands of the API. They are created at the first use: a worker rarely needs
        them, and their import takes time.
        """
        return replace(self.make_front(), spread=self.setting.spread)

    @contextmanager
    def task_pool(self) -> Iterator[ThreadPoolExecutor | None]:
        """Yield the threads for the tasks of one invocation.

        A task that does not end keeps its thread as long as the process lives. So each invocation
        gets new threads. Without that, attempts of the next invocation might find no free thread
        and time out before they begin. A process with too many such threads exits before it
        processes anything, and Lambda starts a new one.
        """
        if not self.has_threads:
            yield None
            return
        # Use one thread for each attempt of a full batch. With fewer threads, the time-out of an
        # attempt could pass while the attempt still waits for a thread.
        threads_max = ATTEMPTS_IN_FLIGHT_MAX * resources.WORK.batch_size
        hanging = sum(thread.name.startswith(TASK_THREADS) for thread in threading.enumerate())
        if hanging > threads_max:
            found = HoldfastError("HF328", f"tasks hang in {hanging} threads")
            self.log_fault("the process ends", found)
            os._exit(1)
        pool = ThreadPoolExecutor(threads_max, TASK_THREADS)
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    # -- the worker --------------------------------------------------------------------------------

    def worker(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Process an SQS batch. Return the messages that SQS must deliver again."""
        records = event["Records"]
        queue = _queue_of(self.ports.names, records)
        if queue is None:
            # The batch comes from a queue of another stack. Report all of its messages as failed,
            # so that they stay in that queue.
            stranger = HoldfastBug("a batch of messages is from a queue that is not ours")
            self.log_fault("a batch was not processed", stranger)
            return _failed(str(record["messageId"]) for record in records)
        now_ms = self.ports.perform(Clock())
        deadline_ms = now_ms + context.get_remaining_time_in_millis()
        receipts = {r["messageId"]: r["receiptHandle"] for r in records}
        visible = self._visible(queue, receipts, deadline_ms, now_ms)
        with visible as holds, self.task_pool() as pool:
            self.look(now_ms)
            self._look_for_pauses(now_ms)
            invocation = _Invocation(context.aws_request_id, pool, is_alone=len(records) == 1)
            work = [
                (record, self._performer(queue, record, holds), invocation) for record in records
            ]
            acknowledged = self._map(self._deliver, work)
        self.metrics.flush(now_ms)
        return _failed(
            str(record["messageId"])
            for record, is_done in zip(records, acknowledged, strict=True)
            if not is_done
        )

    def _map(self, function: Callable[..., Any], work: list[tuple[Any, ...]]) -> list[Any]:
        if not self.has_threads or len(work) == 1:
            return [function(*item) for item in work]
        with ThreadPoolExecutor(min(len(work), SWEEP_THREADS_MAX), "message") as pool:
            return [future.result() for future in [pool.submit(function, *item) for item in work]]

    def _deliver(
        self,
        record: Mapping[str, Any],
        perform: Callable[[Effect], Any],
        invocation: _Invocation,
    ) -> bool:
        """Process one message. An error with one message does not affect the others of its batch
        (R9).
        """
        message_id = str(record["messageId"])
        try:
            delivery = ReceivedMessage(
                body=parsed_body(record["body"]),
                message_id=message_id,
                receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
                # The random part makes the owner unique, because two messages of one invocation may
                # belong to the same execution.
                owner=f"{invocation.request_id[:8]}{os.urandom(4).hex()}",
                sent_ms=int(record["attributes"].get("SentTimestamp", 0)),
                is_alone=invocation.is_alone,
            )
            return bool(run(deliver(self.setting, delivery), perform, invocation.pool))
        except Exception as error:  # noqa: BLE001  # the others of the batch go on
            self.log_fault("a work message was not processed", error, message_id=message_id)
            return False

    def _performer(
        self, queue: QueueName, record: Mapping[str, Any], holds: Holds
    ) -> Callable[[Effect], Any]:
        message_id = str(record["messageId"])
        ports = self.ports.for_message(queue, str(record["receiptHandle"]))

        def perform(effect: Effect) -> Any:
            match effect:
                case WriteDeadline():
                    return holds.limit_ms(message_id)
                case Deadline():
                    return holds.deadline_ms
                case SetVisibility():
                    holds.let_go(message_id)
            return ports(effect)

        return perform

    @contextmanager
    def _visible(
        self, queue: QueueName, receipts: dict[str, str], deadline_ms: int, now_ms: int
    ) -> Iterator[Holds]:
        """Keep the messages of the batch hidden, for two minutes at a time. So after a crash SQS
        delivers them again within two minutes, and not after the longest invocation.
        """
        holds = Holds(receipts, deadline_ms, now_ms)
        self._hide(queue, holds, now_ms)
        if not self.has_threads:
            holds.extended_to_the_end()
            yield holds
            return
        done = threading.Event()
        keeper = threading.Thread(target=self._keep_hidden, args=(queue, holds, done), daemon=True)
        keeper.start()
        try:
            yield holds
        finally:
            done.set()
            keeper.join()

    def _keep_hidden(self, queue: QueueName, holds: Holds, done: threading.Event) -> None:
        while not done.wait(VISIBILITY_EXTENSION_SECONDS):
            self._hide(queue, holds, self.ports.perform(Clock()))

    def _hide(self, queue: QueueName, holds: Holds, now_ms: int) -> None:
        """Extend the visibility time-out of the messages. If SQS refuses a receipt, the others are
        still extended.
        """
        receipts = dict(holds.receipts)
        if not receipts:
            return
        try:
            self.ports.extend_visibility(queue, list(receipts.values()), VISIBILITY_SECONDS)
        except ServiceFault:
            self._hide_each(queue, holds, now_ms)
            return
        for message_id in receipts:
            holds.extended(message_id, now_ms)

    def _hide_each(self, queue: QueueName, holds: Holds, now_ms: int) -> None:
        for message_id, receipt in list(holds.receipts.items()):
            try:
                self.ports.extend_visibility(queue, [receipt], VISIBILITY_SECONDS)
            except ServiceFault as error:
                # The visibility time-out of this message was not extended. After its end another
                # worker may receive the message, so this worker must write nothing more for it
                # (R9).
                holds.let_go(message_id)
                self.log_fault("a message was not hidden", error, message_id=message_id)
            else:
                holds.extended(message_id, now_ms)

    # -- the other handlers ------------------------------------------------------------------------

    def events(self, event: Mapping[str, Any]) -> None:
        """Process one event from the event bus. An error is raised, so that Lambda tries again and
        then uses the dead-letter queue.
        """
        now_ms = self.ports.perform(Clock())
        event_id, detail = event.get("id"), event.get("detail")
        front = self.front
        if any("keyed" in one.source_map for one in front.workflows.values()):
            # The event may start an execution of a keyed workflow, whose id is signed with these
            # keys and has the spread.
            self.look(now_ms)
            front = replace(front, keys=self.setting.keys())
        self.perform(front.bus_event(TENANT_DEFAULT, event_id, detail, os.urandom(8)))
        self.metrics.flush(now_ms)

    def sweeper(self, context: Any) -> None:
        """Run one sweep, each minute: every shard of due rows, then the dead letters, then the lost
        starts. The starts come last, because many of them must not delay running executions.
        """
        from holdfast.runtime.maintenance import due_archives, lost_starts, sweeper  # noqa: PLC0415

        now_ms = self.ports.perform(Clock())
        self._set_spread()
        self._deploy_schedules()
        owner = context.aws_request_id
        spread = self.setting.spread.read
        sweep = partial(sweeper.sweep, archives=self.setting.archives, spread=spread)
        shards = range(DUE.count(spread))
        self._map(self._sweep, [(sweep, shard, owner) for shard in shards])
        for queue in QUEUES:
            self._revive(queue)
        starts = range(STARTS.count(spread))
        if len(starts) > STARTS.least:
            self._hand_out(lost_starts.hand_out(len(starts)))
        else:
            self._map(self._sweep, [(lost_starts.sweep, shard, owner) for shard in starts])
        if self.setting.archives:
            self._map(self._sweep, [(due_archives.sweep, shard, owner) for shard in shards])
        if now_ms // 60_000 % OPEN_COUNT_MINUTES == 0:
            self._count()
        self.metrics.flush(now_ms)

    def _count(self) -> None:
        """Count the open executions, and what waits in the pools, for the dashboard."""
        from holdfast.runtime.commands.counts import measure_open  # noqa: PLC0415
        from holdfast.runtime.commands.pools import measure_pools  # noqa: PLC0415

        try:
            self.perform(measure_open(TENANT_DEFAULT, self.setting.spread))
            self.perform(measure_pools(self.front.known, TENANT_DEFAULT))
        except Exception as error:  # noqa: BLE001  # nothing else must wait for it
            self._refuse("the open executions or the pools were not counted", error)

    def _deploy_schedules(self) -> None:
        """Make the stored schedules equal to those that this code declares. The sweeper runs the
        deployed code.
        """
        from holdfast.runtime.commands.schedules import deploy  # noqa: PLC0415

        try:
            self.perform(deploy(TENANT_DEFAULT, self.schedules))
        except Exception as error:  # noqa: BLE001  # nothing else must wait for it
            self._refuse("the schedules of the code were not stored", error)

    def _sweep(self, sweep: Callable[..., Handler], shard: int, owner: str) -> None:
        try:
            for refused in self.perform(sweep(shard, owner, self.setting.formats)):
                self.log_fault("a due row was not worked off", refused, shard=str(shard))
        except Exception as error:  # noqa: BLE001
            # Continue with the other shards. Otherwise one damaged row would prevent the sweep of
            # all the shards.
            self._refuse("a shard was not swept", error, shard=str(shard))

    def _hand_out(self, handler: Handler) -> None:
        try:
            self.perform(handler)
        except Exception as error:  # noqa: BLE001  # nothing else must wait for it
            self._refuse("the shards of starts were not handed out", error)

    def _revive(self, queue: QueueName) -> None:
        """Process the dead letters of a queue, up to a bound. Unreadable ones stay in the queue and
        cause an alarm.
        """
        for _ in range(DEAD_LETTER_BATCHES_MAX):
            letters = self.ports.receive_dead_letters(queue)
            if not letters:
                return
            self._revive_batch(queue, letters)

    def _revive_batch(self, queue: QueueName, letters: list[DeadLetter]) -> None:
        from holdfast.runtime.maintenance import dead_letters  # noqa: PLC0415

        for letter in letters:
            try:
                found = dead_letters.StoredDeadLetter(letter.body, letter.message_id)
                self.perform(dead_letters.revive(found, self.setting.formats))
            except Exception as error:  # noqa: BLE001  # one bad letter must not block the others
                self._refuse("a dead letter was not revived", error, message_id=letter.message_id)
                continue
            self.ports.delete_dead_letter(queue, letter.receipt_handle)

    def _refuse(self, what: str, error: Exception, **ids: str) -> None:
        """Log the error and count it for an alarm. The alarm on the depth of the queue is not
        enough: a dead letter whose processing failed is hidden for a while.
        """
        self.log_fault(what, error, **ids)
        self.ports.perform(Measure(resources.METRIC_SWEEP_REFUSED, 1))

    def look(self, now_ms: int) -> None:
        """Read which format the stack writes, and over how many partitions it spreads rows. It does
        no harm if a host reads a change a minute late.
        """
        self._take(self.control.look(now_ms))

    def look_now(self) -> None:
        """Look before a request, as `look` does. A clock that fails must not fail the request."""
        try:
            now_ms = self.ports.perform(Clock())
        except HoldfastError as error:
            self.log_fault("~ctl was not read", error)
            return
        self.look(now_ms)

    def _set_spread(self) -> None:
        self._take(self.control.grow(self.spread))

    def _take(self, reading: Handler) -> None:
        try:
            self.perform(reading)
        except HoldfastError as error:
            self.log_fault("~ctl was not read", error)
            return
        self.setting = replace(self.setting, formats=self.control.formats)

    def _look_for_pauses(self, now_ms: int) -> None:
        """Read which tasks and workflows are paused. If the read fails, the result of the last one
        is used.
        """
        try:
            self.perform(self.setting.gates.look(now_ms))
        except HoldfastError as error:
            self.log_fault("the pauses were not read", error)

    def perform(self, handler: Any) -> Any:
        """Run a handler that does not process a message."""
        return run(handler, self.ports.perform)


def _failed(message_ids: Iterable[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message} for message in message_ids]}


def _queue_of(names: ResourceNames, records: list[Mapping[str, Any]]) -> QueueName | None:
    """Return the queue with this ARN. Its physical name is the last part of both its ARN and its
    URL.
    """
    found = {str(record["eventSourceARN"]).rpartition(":")[2] for record in records}
    ours = (queue for queue in QUEUES if {names.queue_url(queue).rpartition("/")[2]} == found)
    return next(ours, None)
