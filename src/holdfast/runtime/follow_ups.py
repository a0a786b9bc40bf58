"""Follow-ups: the work outside of the log that a commit requires: timers, registrations, the end.

The worker does this work after the commit that requires it. A crash between the two repeats the
work, so every follow-up may be done twice. Only watchdog rows come before their commit:
`watchdog.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, assert_never

from holdfast.asl import error_names
from holdfast.asl.program import Program
from holdfast.asl.resources import POOL
from holdfast.core import facts
from holdfast.core.commands import (
    Command,
    JoinQueue,
    OfferActivity,
    OpenQuestion,
    ReadAnswer,
    RegisterForEvent,
    RunAttempt,
    StartChild,
    StartTimer,
    StopChild,
)
from holdfast.core.facts import Fact
from holdfast.core.state import Attempt, Awaiting, ChildNumber, Execution
from holdfast.core.waits import abandoned, needs_wake
from holdfast.limits import (
    ARCHIVE_AFTER_SECONDS,
    CALLBACK_SECONDS_MAX,
    CHOSEN_POOL_DAYS,
    CLOCK_ERROR_MS,
    NAME_RETENTION_SECONDS,
    OVERDUE_SECONDS,
    SQS_DELAY_SECONDS_MAX,
    TIMER_ROW_LEAD_SECONDS,
)
from holdfast.runtime import children, event_pointers, inbox, messages, questions, wait_rows
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Extend,
    Get,
    Item,
    Message,
    Put,
    Send,
    Unlist,
)
from holdfast.runtime.gates import dispense
from holdfast.runtime.listing import is_listed
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import DUE

if TYPE_CHECKING:
    from holdfast.runtime.question_events import QuestionEvents


def carry_out(
    log: Log,
    program: Program,
    commands: Iterable[Command],
    now_ms: int,
    wanted: QuestionEvents | None,
) -> inbox.FactsResult:
    """Carry out the commands. Return the facts that were found in the inbox, and the children that
    were stopped. `wanted` says how to publish events about questions; None: such events are not
    published.
    """
    found: list[Fact] = []
    stopped: list[ChildNumber] = []
    for command in commands:
        match command:
            case RunAttempt(attempt=attempt):
                if needs_wake(attempt):
                    yield from start_timer(log, attempt.entry, attempt.due_ms, now_ms)
            case JoinQueue():
                yield from _join(log, command, now_ms)
            case OpenQuestion():
                assert log.state is not None
                if wanted is not None:
                    yield from wanted.publish(log, command)
                yield from questions.open_row(log.tenant, log.state, command, now_ms)
            case StartTimer(entry, due_ms):
                yield from start_timer(log, entry, due_ms, now_ms)
            case RegisterForEvent(entry=entry):
                found += yield from _register(log, entry, now_ms)
            case StartChild(entry, lane):
                found += yield from children.start(log, program, entry, lane, now_ms)
            case StopChild(entry, number):
                yield from children.stop(log, entry, number, now_ms)
                stopped.append((entry, number))
            case OfferActivity(entry=entry):
                found += yield from _offer_activity(log, entry)
            case ReadAnswer(entry=entry):
                found += yield from _read_answer(log, entry)
            case _:
                assert_never(command)
    if stopped:
        found.append(facts.ChildrenStopped(tuple(stopped)))
    return found


def _join(log: Log, command: JoinQueue, now_ms: int) -> Generator[Effect, Any, None]:
    if command.queued.is_batch:
        # Imported here for cold starts: few workflows have batches.
        from holdfast.runtime.gates import batches  # noqa: PLC0415

        assert log.state is not None
        yield from batches.join(log.tenant, log.run, command, log.state, now_ms)
    else:
        yield from dispense.join(log.tenant, log.run, command, now_ms)


def withdraw(
    log: Log, before: Iterable[Command], now: Collection[Command]
) -> Generator[Effect, Any, None]:
    """Delete the rows of questions that have ended, and of attempts that left the queue of a limit
    without being let in.

    The execution of such an attempt was stopped or paused, or the attempt's branch was ended. A row
    that stays costs one unnecessary wake.
    """
    assert log.state is not None
    # Compare the keys of the rows. A pause with frozen timers moves the deadline of a question,
    # which is still the same question: its row keeps its key, and says which person has claimed it
    # or was given it.
    run = log.run
    open_keys = {questions.own_key(run, one) for one in now if isinstance(one, OpenQuestion)}
    for command in before:
        if isinstance(command, OpenQuestion) and questions.own_key(run, command) not in open_keys:
            yield from questions.close_row(log.tenant, run, command)
        if isinstance(command, JoinQueue) and command not in now:
            frame = log.state.frame_of(command.entry)
            waiting = None if frame is None else frame.waiting
            was_let_in = isinstance(waiting, Attempt) and waiting.claim is not None
            if not was_let_in:
                yield from dispense.leave(run, command)


def register_uses(log: Log, found: Iterable[Fact], now_ms: int) -> Generator[Effect, Any, None]:
    """Register the waits of events that a recovery has found.

    The worker that opened such a wait may have crashed before it registered the wait. The list of
    unused events compares events with registrations, so without this call it would contain an event
    that the execution has used.
    """
    assert log.state is not None
    for fact in found:
        if isinstance(fact, facts.EventReceived):
            awaiting = _awaiting_of(log, fact.entry)
            yield from inbox.register(log.tenant, log.state, awaiting, now_ms)


def _register(log: Log, entry: int, now_ms: int) -> inbox.FactsResult:
    assert log.state is not None
    awaiting = _awaiting_of(log, entry)
    return (yield from event_pointers.look(log.tenant, log.state, awaiting, log.owner, now_ms))


def _read_answer(log: Log, entry: int) -> inbox.FactsResult:
    return (yield from inbox.answer_facts(log.tenant, log.run, _awaiting_of(log, entry)))


def _offer_activity(log: Log, entry: int) -> inbox.FactsResult:
    """Add the task to the list of its activity or pool. The item is the same each time, so that two
    pollers cannot take the task.

    Return the failure of a task whose activity does not exist: no poller could ever take it. The
    item is stored before this test, so a DeleteActivity that the test misses finds the item.
    """
    awaiting = _awaiting_of(log, entry)
    ends_ms = awaiting.due_ms or awaiting.since_ms + CALLBACK_SECONDS_MAX * 1_000
    attempt = awaiting.attempt
    yield Put(
        tables.MAIL,
        {
            **_offered_to(log, awaiting),
            "sk": keys.activity_task(awaiting.since_ms, log.run, entry, attempt),
            FORMAT_FIELD: FORMAT,
            "run": log.run,
            "entry": entry,
            "attempt": attempt,
            "ttl": ends_ms // 1_000 + 86_400,
        },
    )
    if POOL in awaiting.target:
        if awaiting.text("pool"):
            yield _chosen_pool(log.tenant, awaiting)
        return []
    name = awaiting.target.rpartition(":")[2]
    if (yield Get(tables.MAIL, keys.activities(log.tenant), name)) is not None:
        return []
    # A recovery offers a task again whose poller has taken it before the activity was deleted.
    taken = yield from inbox.taken_by_key(log.tenant, log.run, keys.taken(entry, attempt))
    if taken:
        return taken
    error, cause = missing_activity(awaiting.target)
    return [facts.FailedWith(entry, attempt, error, cause)]


def _chosen_pool(tenant: str, awaiting: Awaiting) -> Put:
    """Note the pool that the execution chose: no definition names it, and `holdfast pools` and
    `doctor` show its waiting tasks.
    """
    noted_ms = awaiting.since_ms + CHOSEN_POOL_DAYS * 86_400_000
    row: Item = {"pk": keys.chosen_pools(tenant), "sk": awaiting.text("pool")}
    return Put(tables.MAIL, {**row, FORMAT_FIELD: FORMAT, "ttl": noted_ms // 1_000})


def missing_activity(arn: str) -> tuple[str, str]:
    """Return error and cause of a task whose activity does not exist."""
    return error_names.RUNTIME, f"Activity Does Not Exist: '{arn}'"


def _offered_to(log: Log, awaiting: Awaiting) -> dict[str, str]:
    """Return the partition of the list. The row of a pool has the names of task and workflow, so
    that a worker passes over the tasks that it must not take without a read of their logs.
    """
    assert log.state is not None
    _, is_of_pool, pool = awaiting.target.partition(POOL)
    if not is_of_pool:
        return {"pk": keys.activity_tasks(log.tenant, awaiting.target.rpartition(":")[2])}
    partition = keys.pool_tasks(log.tenant, pool)
    return {"pk": partition, "task": awaiting.text("task"), "workflow": log.state.workflow}


def _awaiting_of(log: Log, entry: int) -> Awaiting:
    """Return the wait that the command belongs to."""
    assert log.state is not None
    frame = log.state.frame_of(entry)
    assert frame is not None
    assert isinstance(frame.waiting, Awaiting)
    return frame.waiting


# -- timers ----------------------------------------------------------------------------------------


def start_timer(log: Log, entry: int, due_ms: int, now_ms: int) -> Generator[Effect, Any, None]:
    """Start a timer. Up to 15 minutes it is a delayed message; a longer one is a row, which the
    sweeper turns into a message.
    """
    delay_seconds = delay_until(due_ms, now_ms)
    if delay_seconds <= SQS_DELAY_SECONDS_MAX:
        body = messages.wake_timer(log.tenant, log.run, entry, due_ms, log.hint)
        yield Send((Message(body, delay_seconds),))
        return
    look_ms = due_ms - TIMER_ROW_LEAD_SECONDS * 1_000
    yield Put(
        tables.MAIL,
        {
            "pk": keys.due_partition(DUE.of(log.run)),
            "sk": keys.timer_row(look_ms, log.tenant, log.run, entry),
            FORMAT_FIELD: FORMAT,
            "t": log.tenant,
            "run": log.run,
            "entry": entry,
            "due": due_ms,
        },
    )


def delay_until(due_ms: int, now_ms: int) -> int:
    """Return the whole seconds until the timer is due on every host, allowing for the clock
    error.
    """
    return max(0, -(-(due_ms + 2 * CLOCK_ERROR_MS - now_ms) // 1_000))


def delay_after_wake(body: Mapping[str, Any], now_ms: int) -> int:
    """Return the whole seconds to wait before another message may replace this one.

    Until the due attempt of a retry is overdue, only the delivery of its own wake may run it. A
    message that arrived earlier could not run it, and nothing would happen before the sweeper's
    next check.
    """
    if body["k"] != messages.WAKE_TIMER:
        return 0
    overdue_ms = int(body["due"]) + OVERDUE_SECONDS * 1_000
    return min(delay_until(overdue_ms, now_ms), SQS_DELAY_SECONDS_MAX)


# -- the list, and the end of an execution ---------------------------------------------------------


def at_end(log: Log) -> Generator[Effect, Any, None]:
    """Carry out the follow-ups of an ended execution.

    They have it archived, stop its children, report to its parent, empty its row in the index of
    waits, and remove its entry for RUNNING from the list. The entry for the end belongs to the last
    record.
    """
    assert log.state is not None
    assert log.state.stopped_ms is not None
    if log.is_archived:
        yield Put(tables.MAIL, _archive_item(log, log.state.stopped_ms))
    for entry, number in abandoned(log.state):
        # The log of an ended execution cannot record that the stop was sent. Without this test, two
        # ended executions would send each other messages without end.
        if not (yield from children.has_ended(log, entry, number)):
            yield from children.stop(log, entry, number, log.state.stopped_ms)
    yield from children.notify_parent(log)
    yield from wait_rows.drop_row(log, log.state.stopped_ms)
    if log.state.opened_at is not None:
        yield Unlist(log.partition, log.state.opened_at)


def is_failure(state: Execution) -> bool:
    """Return True for the end of a workflow's execution that has not succeeded, and whose error no
    parent execution receives.
    """
    is_workflow = state.origin is None and state.parent is None
    return is_workflow and state.is_ended and state.status != "SUCCEEDED"


def _archive_item(log: Log, stopped_ms: int) -> Item:
    """Return the row by which the archiver finds the ended execution."""
    due_ms = stopped_ms + ARCHIVE_AFTER_SECONDS * 1_000
    return {
        "pk": keys.archive_partition(DUE.of(log.run)),
        "sk": keys.archive_row(due_ms, log.tenant, log.run),
        FORMAT_FIELD: FORMAT,
        "t": log.tenant,
        "run": log.run,
    }


def leave_list(log: Log) -> Generator[Effect, Any, None]:
    """Remove the old list entry before the record with the next one is stored (R17).

    After a crash between the two, a recovery does both. If the order were reversed and the new
    record had a snapshot, no load would find the old record, and its list entry would stay.
    """
    assert log.state is not None
    listed_at = log.sequence if log.state.is_ended else log.state.opened_at
    if listed_at is not None:
        yield Unlist(log.partition, listed_at)


def has_entry(log: Log) -> Generator[Effect, Any, bool]:
    """Return True when the list shows the execution as running."""
    assert log.state is not None
    if log.state.opened_at is None:
        return False
    for record in log.records:
        if record.sequence == log.state.opened_at:
            # No read is needed: this record was read together with the log just before.
            return record.is_listed
    opened = yield Get(tables.EXECUTIONS, log.partition, log.state.opened_at)
    return opened is not None and is_listed(opened)


def keep_name(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """Extend the lifetime of the row with the execution's name, so that an open execution keeps its
    name.
    """
    assert log.state is not None
    if log.state.name is not None:
        key = keys.name(log.tenant, log.state.workflow, log.state.name)
        yield Extend(key, keys.ONLY, log.run, now_ms // 1_000 + NAME_RETENTION_SECONDS)


def drop_row(item: Item) -> Generator[Effect, Any, None]:
    yield Delete(tables.MAIL, str(item["pk"]), str(item["sk"]))
