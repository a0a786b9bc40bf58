"""The messages that continue no execution: ticks of gates, schedules, pages of the sweeper and of
the archive, and reminders.

Each message is a page of work that may be repeated. If a message is lost, the gate, the schedule or
the next sweep sends it again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, TypeAlias

from holdfast.core.state import BATCH_PREFIX
from holdfast.runtime import messages
from holdfast.runtime.effects import Effect, SetVisibility
from holdfast.runtime.gates import batches, dispense
from holdfast.runtime.gates.rules import GateId
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.leases import ReceivedMessage

#: A generator that yields effects. It returns True when the message may be deleted.
Processes: TypeAlias = Generator[Effect, Any, bool]

OTHER_RELEASE_SECONDS: Final = 60


def process(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Process a message of `messages.OF_NO_EXECUTION`, or a reminder."""
    return (yield from _BY_KIND[delivery.body["k"]](setting, delivery))


def _tick(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Let attempts that wait in the queue of a gate (a limit) begin. A worker whose code does not
    have the limit leaves the message to a worker with newer code.
    """
    body, message = delivery.body, delivery.message_id
    limit = GateId.parse(body["gate"]).limit
    batch = setting.gates.book.batches.get(limit.removeprefix(BATCH_PREFIX))
    if limit.startswith(BATCH_PREFIX) and batch is not None:
        collector = batches.Collector(setting.gates, batch, GateId.parse(body["gate"]))
        is_done = yield from collector.collect(body["chain"], message, delivery.receive_count)
    else:
        is_done = yield from dispense.tick(setting.gates, body, message, delivery.owner)
    if not is_done:
        yield SetVisibility(OTHER_RELEASE_SECONDS)
    return bool(is_done)


def _schedule(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Start the due executions of a schedule. A worker whose code does not have the workflow leaves
    the message to a worker with newer code.
    """
    # Imported here for cold starts: most workers never process a schedule.
    from holdfast.runtime.worker import scheduled  # noqa: PLC0415

    is_known = yield from scheduled.tick(setting, delivery.body)
    if not is_known:
        yield SetVisibility(OTHER_RELEASE_SECONDS)
    return bool(is_known)


def _sweep(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Process a page of due rows. A row whose processing fails stays, and the next sweep reports
    it.
    """
    from holdfast.runtime.maintenance import sweeper  # noqa: PLC0415  (few stacks have so many)

    yield from sweeper.sweep_page(
        delivery.body, delivery.owner, setting.formats, archives=setting.archives
    )
    return True


def _sweep_starts(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Process a shard of rows of starts. If the processing of a row failed, a later sweep tries it
    again.
    """
    from holdfast.runtime.maintenance import lost_starts  # noqa: PLC0415  (few stacks have so many)

    yield from lost_starts.sweep_shard(delivery.body, delivery.owner, setting.formats)
    return True


def _archive(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Archive a page of ended executions. An execution that cannot be archived keeps its row, so a
    later sweep tries again.
    """
    from holdfast.runtime.worker import archiving  # noqa: PLC0415  (most stacks have no archive)

    yield from archiving.archive_page(delivery.body, delivery.owner, setting.formats)
    return True


def _remind(setting: WorkerConfig, delivery: ReceivedMessage) -> Processes:
    """Publish the reminder of an open question. A stack that publishes no events about questions
    drops the message.
    """
    wanted, body = setting.question_events, delivery.body
    if wanted is not None:
        log = Log(body["t"], body["run"], delivery.owner, delivery.message_id, setting.formats)
        yield from log.load()
        yield from wanted.remind(log, body)
    return True


_BY_KIND: Final[Mapping[str, Callable[[WorkerConfig, ReceivedMessage], Processes]]] = {
    messages.TICK: _tick,
    messages.SCHEDULE: _schedule,
    messages.SWEEP: _sweep,
    messages.SWEEP_STARTS: _sweep_starts,
    messages.ARCHIVE: _archive,
    messages.REMIND: _remind,
}
