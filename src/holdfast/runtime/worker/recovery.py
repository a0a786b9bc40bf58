"""Recovery: a delivery carries out again what a crashed worker may have left undone.

A worker commits a record, then carries out its commands: it starts timers, registers for events,
starts children, sends wakes. If it crashes between the two, the record is there and the effects are
missing. No second record says what is missing, and none is needed: the pending commands are a
function of the state (`core/waits.py`), so every worker can compute them from the log.

Rules of this file (R numbers are those of docs/reference/log.md):
* R7 Pending commands are a function of the state, so a recovery knows them.
* R8 A recovering delivery carries out the commands of its own message's records again. Every other
  delivery assumes that the commands in the records of other workers were carried out.
* R11 An execution that only its start message protects is not sent to another queue.

    commit 7 ─┬─ timer ─ register ─ wake ─ ack          the normal case
              └─ crash
    120 s later: the message is visible again
    load 0…7 ─ records of this message: 7 ─ carry out 7 again ─ continue

Why only the records of its own message? If each of ten crashed deliveries sent every pending
message again, ten copies of each would be in the queue, and each copy could crash again. The
sweeper's `recover` message is the exception: it asks for everything, once.

Commands may be carried out twice. A timer that fires twice is applied once, a second registration
puts the same row, and a second start of a child has the same id.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeGuard, assert_never

from holdfast.asl.program import Program
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
    entry_of,
)
from holdfast.core.redriving import is_redriven_by
from holdfast.core.skipping import is_skipped_by
from holdfast.core.state import Attempt, Awaiting, Execution
from holdfast.core.waits import pending_commands
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    CLOCK_ERROR_MS,
    TAKEOVERS_IN_COMPANY_MAX,
    VISIBILITY_SECONDS,
)
from holdfast.resources import WORK
from holdfast.runtime import children, follow_ups, inbox, messages, status_events
from holdfast.runtime.effects import Clock, Effect, Message, Send
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.delivery import Delivery

if TYPE_CHECKING:
    from holdfast.runtime.question_events import QuestionEvents

# -- pending commands ------------------------------------------------------------------------------


def look_back(delivery: Delivery, log: Log, source: str | None) -> Generator[Effect, Any, None]:
    """Publish the begin or the end of an execution again, because the worker that wrote it may have
    crashed before (R8).

    That worker had this message. Or it had another message, and a concurrent delivery deleted that
    message before the crash. `source` is the source of the event on the event bus.
    """
    assert log.state is not None
    delivery.notice_twin(log)
    if delivery.is_recovering:
        own = delivery.own_records(log)
        folded = [record for record in own if record.is_folded]
        if folded:
            yield from status_events.publish_folded(log.state, folded[0], log.sequence, source)
        # The first of these records may hold the begin, and the newest one the end. So publish
        # both.
        if len(folded) > 1:
            yield from status_events.publish_folded(log.state, folded[-1], log.sequence, source)
        events = [event for record in own for event in record.events]
        yield from status_events.publish(log.state, events, source)
        newest = log.records[-1]
        if log.state.is_ended and newest not in own:
            yield from status_events.publish_folded(log.state, newest, log.sequence, source)


def carry_out_again(
    delivery: Delivery, log: Log, program: Program, now_ms: int, wanted: QuestionEvents | None
) -> inbox.FactsResult:
    """Carry out pending commands again. Return the facts that this finds: ended children, and
    answers that arrived earlier.
    """
    assert log.state is not None
    state = log.state
    ended = yield from children.all_notices(log.tenant, state)
    known = [StartChild(fact.entry, fact.lane) for fact in ended]
    again = [
        command
        for command in _owed_again(delivery, log, now_ms)
        if command not in known and not _sees_to(state, command, now_ms)
    ]
    found = yield from follow_ups.carry_out(log, program, again, now_ms, wanted)
    return [*ended, *found]


def _owed_again(delivery: Delivery, log: Log, now_ms: int) -> list[Command]:
    """Return the pending commands that may never have been carried out (R8).

    The sweeper's message, and a message whose own records cannot be read, repeat all pending
    commands. A message that SQS delivers again repeats only those that its own records requested:
    if it repeated all, every crash would multiply the messages. Commands of entries that other
    workers have opened since are repeated by those workers' messages.
    """
    assert log.state is not None
    places = delivery.places(log)
    has_begun = any(
        event.type in status_events.BEGINNINGS for one in places.ours for event in one.events
    )

    def is_to_do(command: Command) -> bool:
        if isinstance(command, RunAttempt):
            # A second wake would run the attempt twice. So send one only when the first may never
            # have been sent. If a wake is still missing, the attempt becomes overdue, and the next
            # check takes it over.
            return places.is_in_doubt(entry_of(command))
        record = places.whose.get(entry_of(command))
        is_ours = record is not None and places.is_ours(record)
        if isinstance(command, StopChild) or is_ours:
            # Send a stop in any case, because any record may have ended the wait for the child.
            return True
        if delivery.kind != messages.RECOVER and not places.is_unread:
            # Of the commands that are left, only the time-out of the whole execution has no record
            # in `whose`, because it has no entry number.
            return record is None and has_begun
        return record is None or record.at_ms <= now_ms - VISIBILITY_SECONDS * 1_000

    return [command for command in pending_commands(log.state) if is_to_do(command)]


def _sees_to(state: Execution, command: Command, now_ms: int) -> bool:
    """Return True when the command is due now, so that this delivery does the work itself. If it
    crashes, SQS delivers its message again.

    It must not send another wake for such work: if the worker of an execution crashes each time,
    each delivery would send one more message, and the number of messages would grow without bound.
    """
    match command:
        case StartTimer(entry, due_ms):
            is_due = due_ms + 2 * CLOCK_ERROR_MS <= now_ms
            return is_due and (_has_place_for_all(state) or not _is_question(state, entry))
        case RunAttempt(attempt=attempt):
            return attempt.due_ms + 2 * CLOCK_ERROR_MS <= now_ms
        case (
            RegisterForEvent()
            | StartChild()
            | StopChild()
            | OfferActivity()
            | ReadAnswer()
            | JoinQueue()
            | OpenQuestion()
        ):
            return False
        case _:
            assert_never(command)


def _has_place_for_all(state: Execution) -> bool:
    return len(state.frames) <= ATTEMPTS_IN_FLIGHT_MAX


def _is_question(state: Execution, entry: int) -> bool:
    """Return True when the entry waits for a job. A delivery polls the job itself if a place is
    free.
    """
    frame = state.frame_of(entry)
    waiting = None if frame is None else frame.waiting
    return isinstance(waiting, Awaiting) and waiting.poll_due_ms is not None


# -- ended executions, and attempts whose workers crash --------------------------------------------


def redrives(delivery: Delivery, log: Log, source: str | None) -> inbox.FactsResult:
    """Read requests to continue an ended execution. Return the one to apply, if any.

    Of several redrives the last one before a stop is applied. It stands for all of them, so that
    none remains for the next end. The first skip of a step takes precedence over a redrive: it
    continues the execution as well, and its result must not be lost. `source` is the source of the
    event on the event bus.
    """
    assert log.state is not None
    is_over = not log.state.resting or log.state.is_undone
    if is_over or not (delivery.is_recovering or delivery.kind == messages.WAKE_MAIL):
        return []
    asked = yield from inbox.control_facts(log.tenant, log.state)
    wish: facts.RedriveRequested | facts.SkipRequested | None = None
    for fact in asked:
        if isinstance(wish, facts.SkipRequested):
            break
        if _continues(fact, log.state):
            wish = fact
        elif wish is not None:
            break
    if wish is None:
        return []
    # The worker that wrote the end may have crashed before the follow-ups of the end, and the state
    # after the redrive no longer requires them. So carry them out first. As long as that worker's
    # message can still be delivered, the event of the end may be missing on the event bus, too
    # (R8).
    assert log.state.stopped_ms is not None
    hidden_ms = WORK.visibility_seconds * 1_000 + 2 * CLOCK_ERROR_MS
    if not delivery.is_recovering and (yield Clock()) <= log.state.stopped_ms + hidden_ms:
        yield from status_events.publish_folded(log.state, log.records[-1], log.sequence, source)
    yield from follow_ups.at_end(log)
    return [wish]


def _continues(
    fact: facts.Fact, state: Execution
) -> TypeGuard[facts.RedriveRequested | facts.SkipRequested]:
    if isinstance(fact, facts.SkipRequested):
        return is_skipped_by(state, fact)
    return isinstance(fact, facts.RedriveRequested) and is_redriven_by(state, fact)


# -- attempts whose workers crash ------------------------------------------------------------------


def goes_alone(delivery: Delivery, log: Log) -> Generator[Effect, Any, bool]:
    """Send an attempt whose workers crash to the queue in which each worker gets a single message.

    Return True when it was sent; this delivery is then finished.
    """
    assert log.state is not None
    running = [
        (frame.waiting.claim, frame.waiting.takeovers)
        for frame in log.state.frames.values()
        if isinstance(frame.waiting, Attempt) and frame.waiting.claim is not None
    ]
    suspects = [claim for claim, takeovers in running if takeovers >= TAKEOVERS_IN_COMPANY_MAX]
    # An execution without `Opened` must stay with this message: only its start message leads to it
    # after a crash (R11).
    may_go = log.state.is_opened and delivery.may_take_over
    if not suspects or delivery.received.is_alone or not may_go or delivery.is_overtaken(log):
        return False
    now_ms = yield Clock()
    if not any(delivery.has_lost(claim, now_ms) for claim in suspects):
        return False
    counted = messages.replaced_by(delivery.body)
    # Only this message names the messages of leases that were handed on. The new message must name
    # them, too. Otherwise no worker could take over these attempts before their leases end.
    handed = {claim.message for claim, _ in running if delivery.is_handed(claim)}
    replaced = (*counted, *sorted(handed.difference(counted)), delivery.received.message_id)
    # These messages did not fail. Without this count they would count as failed rounds, and the
    # execution would go into quarantine too early.
    uncounted = messages.released_of(delivery.body) + len(replaced) - len(counted)
    body = messages.recover(log.tenant, log.run, replaced, uncounted)
    delay_seconds = follow_ups.delay_after_wake(delivery.body, now_ms)
    yield Send((Message(body, delay_seconds),), queue="single")
    return True
