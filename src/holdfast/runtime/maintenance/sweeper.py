"""The sweeper: sends a message again for each execution that should continue and has no message.

A queue message can be lost: a queue is purged, a message becomes a dead letter, a worker crashes
between its commit and its send. Without a message an execution would never continue. The sweeper
runs once a minute and finds these executions. It decides nothing: it sends `recover` or a timer's
wake, and a worker decides from the log.

It does not scan executions. It reads the rows that are due, in the shards of one table, 16 at
spread 0:

    timer row     <due time>#tenant#run#t#entry    a wait longer than 15 minutes
    watchdog row  <check time>#tenant#run          one for each execution that waits
    schedule row  <due time>#tenant#name#s         one for each schedule: `due_schedules.py`

    each minute, for each shard:  Query rows up to now + 60 s
        timer row     ─► execution is open: delayed message to the work queue ─► delete the row
        watchdog row  ─► load the log ─┬─ moved, or nothing due ─► put the row at its next time
                                       ├─ overdue               ─► send `recover`, put the row
                                       └─ ended                 ─► follow-ups, delete the row

**Many rows.** The sweeper processes the first page of a shard itself, and sends a message for each
further page. Workers process those pages in parallel, so the rows of a minute do not wait for one
process. With more shards it sends one message for a shard with many rows. The worker that receives
it sends those of the pages.

**Cost.** An execution that waits for a month has one row, which is read when its check time comes.
The intervals between checks grow from an hour to a week the longer the execution waits.

**Crashes.** A row is written at its next place before it is deleted at the old one. A crash between
the two leaves two rows, and both lead to the same check.

Example: a wait of two days begins on Monday at 09:00. Its timer row is due on Wednesday at 08:47,
13 minutes ahead. The sweep at 08:46 reads rows up to 60 s ahead, sends a message with a delay of 14
minutes, and deletes the row. The message arrives on Wednesday at 09:00.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast import resources
from holdfast.core.diagnosis import OverdueReason, diagnose
from holdfast.core.facts import RedriveRequested
from holdfast.core.state import Awaiting, Execution
from holdfast.core.waits import abandoned, may_have_news
from holdfast.errors import HoldfastError, is_passing
from holdfast.limits import (
    EVENT_WAITS_CHECKED_MAX,
    NAME_EXTENSION_SECONDS,
    OVERDUE_SECONDS,
    SQS_DELAY_SECONDS_MAX,
    SWEEP_AHEAD_SECONDS,
    SWEEP_HANDED_SECONDS,
    SWEEP_PAGES_MAX,
    SWEEP_ROWS_MAX,
    SWEEP_SECONDS,
    WATCH_GRID_SECONDS,
    WATCH_LOOK_SECONDS_MIN,
    WATCH_WITHOUT_LOG_SECONDS_MAX,
)
from holdfast.runtime import (
    event_pointers,
    follow_ups,
    inbox,
    measuring,
    messages,
    search_rows,
    status_events,
    wait_rows,
    watchdog,
)
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    Measure,
    Message,
    NoResult,
    Put,
    Query,
    Send,
    WriteDeadline,
)
from holdfast.runtime.maintenance import due_reminders, due_schedules, quarantine
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.format_control import require_writable
from holdfast.runtime.storage.formats import FORMATS, Formats, require_format
from holdfast.runtime.storage.log import Log, has_ended
from holdfast.runtime.storage.spread import DUE


@dataclass(frozen=True, slots=True)
class _Logs:
    """How this sweep opens the log of a due row. `is_archived`: as in `Log`; without it the
    follow-ups of an end would not have the execution archived.
    """

    owner: str
    formats: Formats
    is_archived: bool

    def log_of(self, row: Item) -> Log:
        tenant, run = str(row["t"]), str(row["run"])
        return Log(tenant, run, self.owner, "", self.formats, self.is_archived)


def sweep(
    shard: int,
    owner: str,
    formats: Formats = FORMATS,
    *,
    archives: bool = False,
    spread: int = 0,
) -> Generator[Effect, Any, list[HoldfastError]]:
    """Process the due rows of this shard. Return the errors of rows whose processing failed. The
    next sweep reads those rows again. `archives`: the stack archives ended executions. `spread`:
    how many shards the sweeper processes.
    """
    require_writable(formats)
    logs = _Logs(owner, formats, archives)
    refused: list[HoldfastError] = []
    now_ms = yield Clock()
    until = keys.due_until(now_ms + SWEEP_AHEAD_SECONDS * 1_000)
    # With more shards than at spread 0 one process could not even read all rows in a minute. So it
    # processes short pages only, and hands out a shard that has more.
    own_max = SWEEP_ROWS_MAX * DUE.least // DUE.count(spread)
    rows = yield Query(tables.MAIL, keys.due_partition(shard), until=until, limit=own_max)
    looks = [look_ms for look_ms in map(_look_ms, rows) if look_ms is not None]
    oldest_ms = min(looks, default=now_ms)
    yield Measure(resources.METRIC_SWEEP_LAG, max(0, now_ms - oldest_ms) / 1_000, "Seconds")
    if len(rows) == own_max:
        if own_max < SWEEP_ROWS_MAX:
            yield Send((Message(messages.sweep_whole(shard, until, now_ms)),))
            return refused
        yield from _hand_out(shard, str(rows[-1]["sk"]), until, now_ms)
    for row in rows:
        refused += yield from _row(row, logs, now_ms)
    return refused


def _hand_out(shard: int, after: str, until: str, now_ms: int) -> NoResult:
    """Send a message for each further page of due rows, so that workers process the pages in
    parallel.

    If such a message is lost or late, nothing is lost: the next sweep reads the rows that still
    exist. The messages are delayed by some seconds each, because the workers of one shard write to
    one partition: all pages at once would take more than the partition's 1,000 units a second.
    """
    pages: list[dict[str, Any]] = []
    for _ in range(SWEEP_PAGES_MAX):
        rows = yield Query(
            tables.MAIL, keys.due_partition(shard), after=after, until=until, limit=SWEEP_ROWS_MAX
        )
        if not rows:
            break
        last = str(rows[-1]["sk"])
        pages.append(messages.sweep(shard, after, last, now_ms))
        after = last
    if pages:
        apart_seconds = SWEEP_HANDED_SECONDS / len(pages)
        yield Send(
            tuple(Message(page, int(number * apart_seconds)) for number, page in enumerate(pages))
        )


def sweep_page(
    body: Mapping[str, Any], owner: str, formats: Formats = FORMATS, *, archives: bool = False
) -> Generator[Effect, Any, list[HoldfastError]]:
    """Process a page of due rows for the sweeper, or hand out the pages of a shard. Return the
    errors, as `sweep` does.

    A message that arrives after the next sweep is dropped, because that sweep has read the rows
    again. Otherwise the messages would multiply while the workers are behind.
    """
    refused: list[HoldfastError] = []
    logs = _Logs(owner, formats, archives)
    now_ms = yield Clock()
    if now_ms - int(body["at"]) >= SWEEP_SECONDS * 1_000:
        return refused
    shard, after, until = int(body["shard"]), str(body["after"]), str(body["until"])
    if body.get("whole"):
        yield from _hand_out(shard, after, until, int(body["at"]))
        return refused
    rows = yield Query(tables.MAIL, keys.due_partition(shard), after=after, until=until)
    for row in rows:
        now_ms, limit_ms = (yield Clock()), (yield WriteDeadline())
        if now_ms >= limit_ms:
            # The next sweep reads the remaining rows.
            break
        refused += yield from _row(row, logs, now_ms)
    return refused


def _row(row: Item, logs: _Logs, now_ms: int) -> Generator[Effect, Any, list[HoldfastError]]:
    """Process one row. Return its error, if any."""
    try:
        yield from _work_off(row, logs, now_ms)
    except HoldfastError as error:
        # Move the row of a log that is damaged or in a newer format to a later time. Otherwise each
        # sweep would read such rows first, and might not reach the rows behind them.
        yield Measure(resources.METRIC_SWEEP_REFUSED, 1)
        if not is_passing(error):
            later_seconds = WATCH_GRID_SECONDS if "entry" in row else WATCH_LOOK_SECONDS_MIN
            yield from _move(row, watchdog.on_grid(now_ms + later_seconds * 1_000))
        return [error]
    return []


def _work_off(row: Item, logs: _Logs, now_ms: int) -> NoResult:
    require_format(row, "a due row")
    with reading("a due row"):
        if "entry" in row:
            yield from _timer(row, now_ms)
        elif "ask" in row:
            yield from due_reminders.visit(row)
        elif "schedule" in row:
            yield from due_schedules.visit(row, now_ms)
        else:
            yield from _visit(row, logs, now_ms)


def _look_ms(row: Item) -> int | None:
    """Return the check time in the key; None for a malformed key. Such a row must not stop the
    sweep.
    """
    digits = str(row["sk"]).partition("#")[0]
    return int(digits) if digits.isascii() and digits.isdecimal() else None


def _timer(row: Item, now_ms: int) -> NoResult:
    due_ms = int(row["due"])
    if (yield from has_ended(str(row["t"]), str(row["run"]))):
        # Most waits for an event end before their time-out, and their execution with them. This
        # read costs a tenth of the wake, its delivery and the load of the log. The row leads to
        # no later wait, because a retry of the execution gives its waits other numbers.
        yield from follow_ups.drop_row(row)
        return
    # The wake has no hint about the newest record, because the row may be months old. The worker's
    # load is bounded without a hint, too.
    body = messages.wake_timer(str(row["t"]), str(row["run"]), int(row["entry"]), due_ms, None)
    # If the clock of the sweeper is ahead, this wake arrives too early. The worker then starts the
    # timer again.
    delay_seconds = min(follow_ups.delay_until(due_ms, now_ms), SQS_DELAY_SECONDS_MAX)
    yield Send((Message(body, delay_seconds),))
    yield from follow_ups.drop_row(row)


# -- watching --------------------------------------------------------------------------------------


def _visit(row: Item, logs: _Logs, now_ms: int) -> NoResult:
    log = logs.log_of(row)
    yield from log.load()
    is_announced = _is_announced(row, log)
    if is_announced and keys.is_asking(str(row["sk"])):
        # Wait for the announced record, and send no message. A worker that receives one would add
        # another row like this, and could not write the record either.
        yield from _wait_for_record(row, now_ms)
        return
    if log.state is None or (is_announced and log.state.is_ended):
        if log.state is not None and (yield from _is_to_be_redriven(log, log.state)):
            # The worker that put the row may have crashed before it wrote the record, and no wake
            # was sent. Without this message the retry would stay unread.
            yield Send((Message(messages.recover(log.tenant, log.run)),))
        yield from _wait_for_record(row, now_ms)
        return
    if log.state.is_ended:
        if (yield from _finish(log, log.state)):
            yield from follow_ups.drop_row(row)
        else:
            # Keep the row, because no other row leads to this execution.
            yield from _move(row, watchdog.on_grid(now_ms + WATCH_LOOK_SECONDS_MIN * 1_000))
        return
    yield from _visit_open(row, log, log.state, now_ms)


def _is_announced(row: Item, log: Log) -> bool:
    """Return True when the log lacks the record that the row was put for."""
    return log.sequence < int(row["seq"])


def _visit_open(row: Item, log: Log, state: Execution, now_ms: int) -> NoResult:
    """Request a worker for an open execution that needs one, and move its row to the next check."""
    yield from wait_rows.repair_row(log, now_ms)
    yield from search_rows.repair(log)
    yield from measuring.checked(state, now_ms)
    controls = yield from inbox.control_facts(log.tenant, state)
    is_old = log.is_aging(now_ms) or log.is_behind
    is_asking = keys.is_asking(str(row["sk"]))
    needs_worker = bool(controls) or is_old or is_asking or _needs_a_look(state, now_ms)
    if needs_worker or (yield from _has_news(log, state, now_ms)):
        if controls or not (yield from _is_quarantined(log)):
            yield Send((Message(messages.recover(log.tenant, log.run)),))
        elif is_old:
            yield Send((Message(messages.renew(log.tenant, log.run)),))
    parked_ms = log.records[-1].at_ms
    ahead_ms = now_ms + SWEEP_AHEAD_SECONDS * 1_000
    look_ms = watchdog.next_look_ms(state, parked_ms, ahead_ms)
    if _is_announced(row, log) and _may_still_come(row, now_ms):
        # The record that the row announces may be missing, because its worker crashed. Until the
        # record exists, no other row leads to this execution, so check it again soon.
        yield from _move(row, min(look_ms, _record_look_ms(row, now_ms)))
    else:
        made_ms = int(row["made"])
        later = watchdog.watch_item(log.tenant, log.run, look_ms, log.sequence, made_ms)
        yield from _replace(row, later)


def _is_to_be_redriven(log: Log, state: Execution) -> Generator[Effect, Any, bool]:
    wishes = yield from inbox.control_facts(log.tenant, state)
    is_wished = any(isinstance(wish, RedriveRequested) for wish in wishes)
    return is_wished and not (yield from _is_quarantined(log))


def _is_quarantined(log: Log) -> Generator[Effect, Any, bool]:
    """Return True for a quarantined execution. The sweeper skips it: its workers crash, and an
    operator decides.
    """
    return (yield from quarantine.held_in(log)) is not None


def _finish(log: Log, state: Execution) -> Generator[Effect, Any, bool]:
    """Carry out the follow-ups of an end, in case the worker that wrote it crashed. Return False
    when a worker has to do it: the row then stays and is checked again.

    That worker may not have published the end either, and a concurrent delivery may have deleted
    its message. Only a worker can publish it, because the sweeper has no permission to; and only a
    worker knows the workflows that start on a failure.
    """
    # Removing the list entry is the last follow-up of an end, so a missing entry means that all
    # were carried out. This read is cheaper than the writes of the follow-ups.
    is_listed = yield from follow_ups.has_entry(log)
    if is_listed and (yield from _has_key(log)):
        # Only a worker can start the next execution of the key. The worker carries out the other
        # follow-ups, too.
        if not (yield from _is_quarantined(log)):
            yield Send((Message(messages.recover(log.tenant, log.run)),))
        return False
    is_sent_by_worker = status_events.is_heard_of(state) or follow_ups.is_failure(state)
    if is_listed and is_sent_by_worker and not (yield from _is_quarantined(log)):
        yield Send((Message(messages.recover(log.tenant, log.run)),))
    if is_listed or state.redrives:
        yield from search_rows.repair(log)
        yield from follow_ups.at_end(log)
    return True


def _has_key(log: Log) -> Generator[Effect, Any, bool]:
    """Return True when the execution has the key of a keyed workflow and no worker has released it
    yet.
    """
    row = yield Get(tables.MAIL, keys.inbox(log.tenant, log.run), keys.BUSINESS_KEY)
    return row is not None and "ttl" not in row


def _wait_for_record(row: Item, now_ms: int) -> NoResult:
    if _may_still_come(row, now_ms):
        yield from _move(row, _record_look_ms(row, now_ms))
    else:
        yield from follow_ups.drop_row(row)


def _may_still_come(row: Item, now_ms: int) -> bool:
    """Return True when a worker that is suspended may still write the record that the row
    announces.
    """
    return now_ms - int(row["made"]) <= WATCH_WITHOUT_LOG_SECONDS_MAX * 1_000


def _record_look_ms(row: Item, now_ms: int) -> int:
    """Return the time of the next check for that record. The interval grows while the record is
    missing.
    """
    ahead_ms = now_ms + SWEEP_AHEAD_SECONDS * 1_000
    return watchdog.on_grid(watchdog.look_after_ms(int(row["made"]), ahead_ms))


def _move(row: Item, look_ms: int) -> NoResult:
    _, _, what = str(row["sk"]).partition("#")
    yield from _replace(row, {**row, "sk": f"{look_ms:015d}#{what}"})


def _replace(row: Item, later: Item) -> NoResult:
    """Move a row: write it at its next place, which this sweep does not read again, then delete it
    at the old place.
    """
    yield Put(tables.MAIL, later)
    yield from follow_ups.drop_row(row)


def _has_news(log: Log, state: Execution, now_ms: int) -> Generator[Effect, Any, bool]:
    """Return True when the wake for an inbox message of a wait may have been lost.

    For a few waits of events this reads what a worker would read. A `recover` costs more: its
    message and delivery, and the rows that it writes again. The timers of such waits need no
    `recover` either, because the next check comes soon after each due time.
    """
    if state.paused is not None:
        # During a pause, inbox messages wait for the resume, which reads all of them.
        return False
    waits = [one.waiting for one in state.frames.values() if may_have_news(one.waiting)]
    events = [one for one in waits if isinstance(one, Awaiting) and one.kind == "event"]
    # The recovery of an old execution extends the lifetime of its name.
    is_old = now_ms - state.started_ms > NAME_EXTENSION_SECONDS * 1_000
    if len(events) < len(waits) or len(events) > EVENT_WAITS_CHECKED_MAX or (events and is_old):
        return True
    for awaiting in events:
        if not (yield from event_pointers.is_served(log.tenant, state, awaiting, now_ms)):
            return True
    # A worker that has removed the list entry may have crashed before it wrote the next one (R17).
    return bool(events) and not (yield from follow_ups.has_entry(log))


def _needs_a_look(state: Execution, now_ms: int) -> bool:
    """Return True when a child must be stopped, a lease has ended, or a wait is overdue."""
    return bool(abandoned(state)) or any(
        one.reason is OverdueReason.CLAIM_LAPSED or one.since_ms + OVERDUE_SECONDS * 1_000 < now_ms
        for one in diagnose(state, now_ms)
    )
