"""Does for one local cloud what AWS does between services: it invokes handlers.

* Event source mappings: it passes batches of a queue to the function, and deletes the messages that
  succeeded. Failed ones stay hidden until their visibility time-out ends.
* The rule of the event bus: it passes each event to the events function, again after a failure.
* The schedule: it invokes the sweeper on each full minute.

With a virtual clock there is no waiting. When nothing more can happen at the present time, the
clock moves to the next time at which something can. A sweep without work is left out. The pump
reads the stored data only to find that time; the handlers do everything else by calls, as on AWS.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Protocol, TypeAlias

from holdfast import limits, resources
from holdfast.aws.names import ResourceNames
from holdfast.errors import HoldfastBug
from holdfast.local.clock import VirtualClock
from holdfast.local.gateway import ACCOUNT, REGION
from holdfast.local.meter import Meter

JsonObject: TypeAlias = dict[str, Any]

DUE_PREFIX: Final = "~due#"
ARCHIVE_PREFIX: Final = "~archive#"
# The sort key of a due row begins with this many digits, which are the time at which the row is
# due.
LOOK_DIGITS: Final = 15
SWEEP_MS: Final = limits.SWEEP_SECONDS * 1_000
SWEEP_AHEAD_MS: Final = limits.SWEEP_AHEAD_SECONDS * 1_000
ROUNDS_MAX: Final = 1_000_000
STARTS_MAX: Final = 10  # invocations at once for starts: a third of the worker's, as on AWS
INVOCATIONS_MAX: Final = 32  # invocations at once, when the clock is the system's
#: The longest time between two reads of the queues. A message of this process wakes the pump, and
#: the end of a delay is known. Only a message of another process on the same file, which has no
#: free place for it, waits that long.
IDLE_SECONDS: Final = 0.1
FAILURES_KEPT_MAX: Final = 1_000

_logger: Final = logging.getLogger(__name__)


class LambdaContext:
    """The part of Lambda's context object that handlers may use."""

    def __init__(
        self, function: resources.LambdaFunction, request_id: str, clock: Callable[[], int]
    ) -> None:
        self.function_name = function.name
        self.aws_request_id = request_id
        self.memory_limit_in_mb = function.memory_mb
        self._clock = clock
        self._deadline_ms = clock() + function.timeout_seconds * 1_000

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self._deadline_ms - self._clock())


class FunctionBody(Protocol):
    def __call__(self, event: JsonObject, context: LambdaContext, /) -> JsonObject | None: ...


class Cloud(Protocol):
    """The queues of a local cloud, as the pump uses them. A queue is identified by its URL."""

    @property
    def clock(self) -> Callable[[], int]: ...
    @property
    def names(self) -> ResourceNames: ...
    @property
    def events_queue_url(self) -> str: ...
    @property
    def meter(self) -> Meter: ...

    def health(self) -> JsonObject:
        """Return the response to `GET /health`. Raises ServiceFault when nothing can be stored."""

    def receive(self, queue: str, messages_max: int) -> list[JsonObject]:
        """Return messages as SQS's ReceiveMessage does."""

    def delete(self, queue: str, receipts: list[str]) -> None: ...

    def next_message_ms(self, queues: Sequence[str]) -> list[int | None]:
        """Return for each queue the time at which its next message can be received."""

    def least_sort_keys(self, table: str, partition_prefix: str) -> list[str]:
        """Return the least sort key of each partition whose key begins with the prefix."""

    def telling_of_messages(self, tell: Callable[[], Any]) -> AbstractContextManager[None]:
        """Inside the context, call `tell` when messages may have arrived."""


@dataclass(frozen=True, slots=True)
class Handlers:
    worker: FunctionBody
    worker_single: FunctionBody
    events: FunctionBody
    sweeper: FunctionBody


@dataclass(frozen=True, slots=True)
class FailedInvocation:
    """An invocation that raised an exception. AWS would have logged it and tried again."""

    function: str
    error: Exception


@dataclass(frozen=True, slots=True)
class _Source:
    """A queue, and the function to which its messages are passed."""

    url: str
    batch_size: int
    function: resources.LambdaFunction
    handler: FunctionBody
    is_bus: bool = False
    is_starts: bool = False


class Pump:
    """Delivers the messages of the local stack to workers. `worker_seconds`: the time limit of one
    invocation of a worker; by default that of AWS.
    """

    def __init__(
        self,
        cloud: Cloud,
        handlers: Handlers,
        worker_seconds: int = resources.WORKER.timeout_seconds,
    ) -> None:
        self._cloud = cloud
        self._clock = cloud.clock
        self._sweeper = handlers.sweeper
        names = cloud.names
        worker = replace(resources.WORKER, timeout_seconds=worker_seconds)
        self._sources = (
            _Source(names.work_queue_url, resources.WORK.batch_size, worker, handlers.worker),
            _Source(
                names.single_queue_url,
                resources.SINGLE.batch_size,
                replace(resources.WORKER_SINGLE, timeout_seconds=worker_seconds),
                handlers.worker_single,
            ),
            _Source(cloud.events_queue_url, 1, resources.EVENTS, handlers.events, is_bus=True),
            # The queue of new starts comes last, so that new executions do not delay those that
            # already run.
            _Source(
                names.starts_queue_url,
                resources.STARTS.batch_size,
                worker,
                handlers.worker,
                is_starts=True,
            ),
        )
        self._dead_letter_urls = (names.work_dlq_url, names.single_dlq_url, names.starts_dlq_url)
        self._starting: set[Future[None]] = set()
        self._numbers = count(1)
        self._scheduled: list[tuple[int, int, Callable[[], None]]] = []
        self._swept_ms = -SWEEP_MS
        self._wake = threading.Event()
        #: The newest invocations that have raised an exception.
        self.failures: deque[FailedInvocation] = deque(maxlen=FAILURES_KEPT_MAX)

    def at(self, moment_ms: int, action: Callable[[], None]) -> None:
        """Call `action` when the clock reaches the time. With it a demo simulates events from
        outside.
        """
        heappush(self._scheduled, (moment_ms, next(self._numbers), action))

    def run_until_idle(self, *, until_ms: int | None = None, rounds_max: int = ROUNDS_MAX) -> None:
        """Run until nothing more can happen, or until the clock reads `until_ms`.

        An execution that waits without a time-out keeps its watchdog row, which is due again and
        again. If there is one, this ends only at `until_ms`.
        """
        clock = self._clock
        if not isinstance(clock, VirtualClock):
            raise HoldfastBug("run_until_idle needs a virtual clock")
        for _ in range(rounds_max):
            if self._round():
                continue
            moment = self._next_ms()
            if moment is None or (until_ms is not None and moment > until_ms):
                clock.advance_to(max(clock(), until_ms or 0))
                return
            clock.advance_to(max(clock(), moment))
        raise HoldfastBug(f"the local cloud did not come to rest in {rounds_max} rounds")

    def run_forever(self, stop: threading.Event) -> None:
        """Run with the system's clock, several invocations at once, until `stop` is set."""
        running: set[Future[None]] = set()
        with (
            ThreadPoolExecutor(INVOCATIONS_MAX, thread_name_prefix="invocation") as pool,
            self._cloud.telling_of_messages(self.wake),
        ):
            while not stop.is_set():
                # Clear the event before the queues are read. Otherwise a message that arrives
                # during the read would stay unnoticed.
                self._wake.clear()
                done = {future for future in running if future.done()}
                for future in done:
                    # `_invoke` records the errors of a handler. Another error is a bug of the pump:
                    # without this call it would stay in the future, unseen.
                    future.result()
                running -= done
                moments = self._moments()
                begun = self._begin(pool, moments, INVOCATIONS_MAX - len(running))
                for future in begun:
                    future.add_done_callback(lambda _: self.wake())
                running |= set(begun)
                if not begun:
                    self._wake.wait(self._idle_seconds(moments))

    def wake(self) -> None:
        """Let `run_forever` read the queues, and `stop`, now."""
        self._wake.set()

    def _idle_seconds(self, moments: list[tuple[_Source, int]]) -> float:
        now_ms = self._clock()
        later = [moment - now_ms for _, moment in moments if moment > now_ms]
        return min([IDLE_SECONDS, *(left_ms / 1_000 for left_ms in later)])

    def _begin(
        self, pool: Executor, moments: list[tuple[_Source, int]], free: int
    ) -> list[Future[None]]:
        self._act()
        begun: list[Future[None]] = []
        if free and self._clock() // SWEEP_MS != self._swept_ms // SWEEP_MS:
            begun.append(pool.submit(self._sweep))
            self._swept_ms = self._clock()
        for source in self._ready(moments):
            is_free = len(begun) < free and (not source.is_starts or self._may_start())
            batch = self._receive(source) if is_free else []
            if batch:
                begun.append(pool.submit(self._deliver, source, batch))
                if source.is_starts:
                    self._starting.add(begun[-1])
        return begun

    def _may_start(self) -> bool:
        self._starting = {one for one in self._starting if not one.done()}
        return len(self._starting) < STARTS_MAX

    def _round(self) -> bool:
        """Do what can happen at the present time. Return True when something happened."""
        happened = self._act()
        for source in self._sources:
            # Read every source before the return, because each delivery may send messages to the
            # queues that are read after it. Starts are left for later as long as other work was
            # found.
            if self._ready(self._moments(source)) and not (source.is_starts and happened):
                happened = True
                batch = self._receive(source)
                if batch:
                    self._deliver(source, batch)
        sweep_ms = self._next_sweep_ms()
        if sweep_ms is not None and sweep_ms <= self._clock():
            self._swept_ms = self._clock()
            self._sweep()
            happened = True
        return happened

    def _next_ms(self) -> int | None:
        moments = self._cloud.next_message_ms([source.url for source in self._sources])
        moments.append(self._next_sweep_ms())
        if self._scheduled:
            moments.append(self._scheduled[0][0])
        return min((moment for moment in moments if moment is not None), default=None)

    def _next_sweep_ms(self) -> int | None:
        """Return the first full minute at which the sweeper has a row or a dead letter to
        process.
        """
        mail = self._cloud.names.mail_table
        keys = self._cloud.least_sort_keys(mail, DUE_PREFIX)
        wanted = [int(key[:LOOK_DIGITS]) - SWEEP_AHEAD_MS for key in keys]
        ended = self._cloud.least_sort_keys(mail, ARCHIVE_PREFIX)
        wanted += [int(key[:LOOK_DIGITS]) for key in ended]
        letters = self._cloud.next_message_ms(self._dead_letter_urls)
        wanted += [moment for moment in letters if moment is not None]
        if not wanted:
            return None
        # Sweep at most once a minute. Otherwise rows that the last sweep has left would cause one
        # sweep after the other.
        earliest = max(min(wanted), self._swept_ms + 1, 0)
        return -(-earliest // SWEEP_MS) * SWEEP_MS

    def _act(self) -> bool:
        acted = False
        while self._scheduled and self._scheduled[0][0] <= self._clock():
            heappop(self._scheduled)[2]()
            acted = True
        return acted

    def _moments(self, *chosen: _Source) -> list[tuple[_Source, int]]:
        """Return those of the sources, by default of all, that have messages, each with the time at
        which its next message becomes visible.
        """
        sources = chosen or self._sources
        moments = self._cloud.next_message_ms([source.url for source in sources])
        found = zip(sources, moments, strict=True)
        return [(source, moment) for source, moment in found if moment is not None]

    def _ready(self, moments: list[tuple[_Source, int]]) -> list[_Source]:
        """Return the sources that have visible messages. Other queues are not read, because such a
        call would be counted.
        """
        now_ms = self._clock()
        return [source for source, moment in moments if moment <= now_ms]

    def _receive(self, source: _Source) -> list[JsonObject]:
        return self._cloud.receive(source.url, source.batch_size)

    def _deliver(self, source: _Source, batch: list[JsonObject]) -> None:
        event = _bus_event(batch[0]) if source.is_bus else _queue_event(source, batch)
        answer = self._invoke(source.function, source.handler, event)
        failed = _failed_ids(answer, batch, has_partial_failures=not source.is_bus)
        done = [one["ReceiptHandle"] for one in batch if one["MessageId"] not in failed]
        if done:
            self._cloud.delete(source.url, done)

    def _sweep(self) -> None:
        self._invoke(resources.SWEEPER, self._sweeper, _schedule_event(self._clock()))

    def _invoke(
        self, function: resources.LambdaFunction, handler: FunctionBody, event: JsonObject
    ) -> JsonObject | Exception | None:
        """Return the handler's result, or its exception."""
        context = LambdaContext(function, f"local-{next(self._numbers):08d}", self._clock)
        self._cloud.meter.invoked(function.name)
        try:
            return handler(event, context)
        except Exception as error:
            _logger.warning("%s failed: %s", function.name, type(error).__name__)
            _logger.debug("%s failed", function.name, exc_info=error)
            self.failures.append(FailedInvocation(function.name, error))
            return error


def _failed_ids(
    answer: JsonObject | Exception | None, batch: list[JsonObject], *, has_partial_failures: bool
) -> set[str]:
    """Return the ids of the failed messages as Lambda decides: a result that names an unknown
    message, and an exception, fail the whole batch.
    """
    everything = {message["MessageId"] for message in batch}
    if isinstance(answer, Exception):
        return everything
    if not has_partial_failures or not answer:
        return set()
    failed = {entry.get("itemIdentifier") for entry in answer.get("batchItemFailures") or []}
    return failed if failed.issubset(everything) else everything


def _queue_event(source: _Source, batch: list[JsonObject]) -> JsonObject:
    name = source.url.rpartition("/")[2]
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
                "messageAttributes": {},
                "md5OfBody": message["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}",
                "awsRegion": REGION,
            }
            for message in batch
        ]
    }


def _bus_event(message: JsonObject) -> JsonObject:
    event: JsonObject = json.loads(message["Body"])
    return {**event, "account": ACCOUNT}


def _schedule_event(now_ms: int) -> JsonObject:
    return {
        "version": "0",
        "id": f"sweep-{now_ms}",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": datetime.fromtimestamp(now_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [],
        "detail": {},
    }
