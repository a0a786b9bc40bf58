"""The work of AWS between services, done for the handlers of one local cloud.

* The event source mappings: batches of a queue to its function, partial batch failures, deletion of
  the messages that succeeded. Failed ones stay hidden until their visibility ends.
* The rule of the bus: each event to the events function, again after a failure.
* The schedule: the sweeper on each full minute.

On a virtual clock nothing waits: when all that can happen now has happened, the clock moves on to
the next moment at which anything can. A sweep that would find nothing to do is left out. The pump
looks into the cloud for *when*; what happens then is decided by calls, as on AWS.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
# the digits at the start of a due row's sort key: the time at which it is due
LOOK_DIGITS: Final = 15
SWEEP_MS: Final = limits.SWEEP_SECONDS * 1_000
SWEEP_AHEAD_MS: Final = limits.SWEEP_AHEAD_SECONDS * 1_000
ROUNDS_MAX: Final = 1_000_000
STARTS_MAX: Final = 10  # invocations with starts at once: a third, as on AWS
INVOCATIONS_MAX: Final = 32  # concurrent invocations when the clock is the system's
IDLE_SECONDS: Final = 0.02  # no signal announces that a delayed message is visible, so poll
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
    """The queues of a local cloud, as the pump needs them. Queues are named by their URL."""

    @property
    def clock(self) -> Callable[[], int]: ...
    @property
    def names(self) -> ResourceNames: ...
    @property
    def events_queue_url(self) -> str: ...
    @property
    def meter(self) -> Meter: ...

    def health(self) -> JsonObject:
        """Return what `GET /health` shows. Raises ServiceFault when nothing can be stored."""

    def receive(self, queue: str, messages_max: int) -> list[JsonObject]:
        """Return messages as SQS's ReceiveMessage does."""

    def delete(self, queue: str, receipts: list[str]) -> None: ...

    def next_message_ms(self, queues: Sequence[str]) -> list[int | None]:
        """Return for each queue the time at which its next message can be received."""

    def least_sort_keys(self, table: str, partition_prefix: str) -> list[str]:
        """Return the least text sort key of each partition whose key begins with the prefix."""

    def telling_of_messages(self, tell: Callable[[], Any]) -> AbstractContextManager[None]:
        """Call `tell`, inside the context, when messages may have come."""


@dataclass(frozen=True, slots=True)
class Handlers:
    worker: FunctionBody
    worker_single: FunctionBody
    events: FunctionBody
    sweeper: FunctionBody


@dataclass(frozen=True, slots=True)
class FailedInvocation:
    """An invocation that raised; AWS would have logged it and tried again."""

    function: str
    error: Exception


@dataclass(frozen=True, slots=True)
class _Source:
    """A queue and the function that it feeds."""

    url: str
    batch_size: int
    function: resources.LambdaFunction
    handler: FunctionBody
    is_bus: bool = False
    is_starts: bool = False


class Pump:
    def __init__(self, cloud: Cloud, handlers: Handlers) -> None:
        self._cloud = cloud
        self._clock = cloud.clock
        self._sweeper = handlers.sweeper
        names = cloud.names
        self._sources = (
            _Source(
                names.work_queue_url, resources.WORK.batch_size, resources.WORKER, handlers.worker
            ),
            _Source(
                names.single_queue_url,
                resources.SINGLE.batch_size,
                resources.WORKER_SINGLE,
                handlers.worker_single,
            ),
            _Source(cloud.events_queue_url, 1, resources.EVENTS, handlers.events, is_bus=True),
            # The last source: new executions wait until running ones have had their turn.
            _Source(
                names.starts_queue_url,
                resources.STARTS.batch_size,
                resources.WORKER,
                handlers.worker,
                is_starts=True,
            ),
        )
        self._dead_letter_urls = (names.work_dlq_url, names.single_dlq_url, names.starts_dlq_url)
        self._starting: set[Future[None]] = set()
        self._numbers = count(1)
        self._scheduled: list[tuple[int, int, Callable[[], None]]] = []
        self._swept_ms = -SWEEP_MS
        #: The newest invocations that raised.
        self.failures: deque[FailedInvocation] = deque(maxlen=FAILURES_KEPT_MAX)

    def at(self, moment_ms: int, action: Callable[[], None]) -> None:
        """Calls `action` when the clock reaches the moment: how a demo plays the outside world."""
        heappush(self._scheduled, (moment_ms, next(self._numbers), action))

    def run_until_idle(self, *, until_ms: int | None = None, rounds_max: int = ROUNDS_MAX) -> None:
        """Run until no event is left, or until the clock reads `until_ms`.

        An execution that waits without a time-out keeps its watchdog row, so with one of those the
        end needs `until_ms`.
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
        """Plays on the system's clock, several invocations at once, until `stop` is set."""
        running: set[Future[None]] = set()
        wake = threading.Event()
        with (
            ThreadPoolExecutor(INVOCATIONS_MAX, thread_name_prefix="invocation") as pool,
            self._cloud.telling_of_messages(wake.set),
        ):
            while not stop.is_set():
                # Clear the event before the queues are read, so that a message that arrives during
                # the read is not missed.
                wake.clear()
                done = {future for future in running if future.done()}
                for future in done:
                    # Errors of a handler are caught earlier; any other error is a bug of ours
                    future.result()
                running -= done
                begun = self._begin(pool, INVOCATIONS_MAX - len(running))
                for future in begun:
                    future.add_done_callback(lambda _: wake.set())
                running |= set(begun)
                if not begun:
                    wake.wait(IDLE_SECONDS)

    def _begin(self, pool: Executor, free: int) -> list[Future[None]]:
        self._act()
        begun: list[Future[None]] = []
        if free and self._clock() // SWEEP_MS != self._swept_ms // SWEEP_MS:
            begun.append(pool.submit(self._sweep))
            self._swept_ms = self._clock()
        for source in self._ready():
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
        """Return True when anything happened that can happen now."""
        happened = self._act()
        for source in self._sources:
            # Each delivery may send messages to the queues that are read after it.
            if self._ready(source) and not (source.is_starts and happened):
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
        handle.
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
        # Sweep at most once a minute, even if the last sweep has left rows.
        earliest = max(min(wanted), self._swept_ms + 1, 0)
        return -(-earliest // SWEEP_MS) * SWEEP_MS

    def _act(self) -> bool:
        acted = False
        while self._scheduled and self._scheduled[0][0] <= self._clock():
            heappop(self._scheduled)[2]()
            acted = True
        return acted

    def _ready(self, *chosen: _Source) -> list[_Source]:
        """Return those of the sources, by default of all, that have visible messages. Other queues
        are not read, because such a call would be counted.
        """
        sources = chosen or self._sources
        moments = self._cloud.next_message_ms([source.url for source in sources])
        now_ms = self._clock()
        return [
            source
            for source, moment in zip(sources, moments, strict=True)
            if moment is not None and moment <= now_ms
        ]

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
        """Return the handler's answer, or its exception."""
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
    """Return the failed messages as Lambda counts them: an answer that names an unknown message, or
    an exception, fails the whole batch.
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
