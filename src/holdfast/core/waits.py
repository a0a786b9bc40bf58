"""The meaning of each kind of waiting, stated once.

An execution that has not ended consists of frames (lines of control), and each frame waits for one
thing. Many parts need to know what such a wait means: the worker sends its wake, the sweeper checks
it, `doctor` reports it, `holdfast show` prints it, a pause freezes it. This module answers for
every kind of wait, with one function for each question:

    question                                       function        read by
    at which times does it change by itself?       dues_of         overdue, diagnosis, watchdog
    which commands does it need?                   commands_of     pending commands, recovery
    which inbox messages does it read?             inbox_of        time-outs, sweeper, doctor
    which answer may be stored for it?             takes_answer    API
    is it moving, held or parked?                  standing_of     watchdog
    may it have news that no state shows?          may_have_news   sweeper
    which entry number do its commands have?       place_of        recovery
    does it need the end of this child execution?  awaits          stops of children
    what does a pause leave of a command, a due?   stays_asked, runs_on

The last part of the file collects the answers of all frames of an execution: its pending commands,
what is overdue, which child executions no wait needs. The pending commands are a function of the
state, so they are recorded nowhere else. After a commit the worker carries out the commands that
the new state requires and the old one did not. A worker that recovers an execution carries out all
of them again.

Rules of this file:
* Each `match` names every kind and ends in `assert_never`. A new kind of wait, a new `kind` of
  `Awaiting` or a new command is a type error here until each question has its answer.
* The answers depend on the wait alone: on no clock but the `now_ms` that is passed in, on no
  history, on no program.
* A due time is by a correct clock. A worker acts at the due time + 2 x clock error, never before.

Example. A state waits for the event `paid` for an hour, from 12:00:00, and a block around it has a
deadline at 12:30:00:

    12:00:00  commands_of   RegisterForEvent, StartTimer(13:00:00), StartTimer(12:30:00)
              inbox_of      InboxSource.EVENT
              standing_of   Standing.PARKED: nothing is to be done, and no worker is at it
    12:10:00  pause         RegisterForEvent and the timers are not required during the pause
    12:25:00  resume        all dues move by 15 minutes, all commands are required again:
                            RegisterForEvent, StartTimer(13:15:00), StartTimer(12:45:00)
    12:45:02  dues          the deadline has passed on every clock: the line is cancelled

A pause is a property of the execution, not a kind of wait: each frame keeps its wait. While the
execution is paused, `pending_commands` filters with `stays_asked` and the dues with `runs_on`.
After the resume every filtered command is new again, so the commit of the resume carries it out.
docs/explanation/waits.md shows this at length; docs/how-to/add-a-wait.md lists each place that a
new kind of wait changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias, assert_never

from holdfast.core.commands import (
    WHOLE_EXECUTION,
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
from holdfast.core.facts import Fact, FailedWith, Succeeded
from holdfast.core.state import (
    ANSWERED_LATER,
    Admission,
    Attempt,
    Awaiting,
    ChildExecutions,
    ChildNumber,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Lease,
    OpenDeadline,
    Pause,
    Timer,
    WaitingFor,
    is_told,
)

# -- time ------------------------------------------------------------------------------------------


class DueKind(StrEnum):
    """The kinds of events that happen when a due time has passed."""

    TIMER = "a Wait state, or the delay of a retried Parallel or Map, is over"
    BEGIN = "an attempt may begin"
    LEASE = "the lease of an attempt lapses"
    TIME_OUT = "a wait times out"
    HEARTBEAT = "a heartbeat is missed"
    POLL = "a job is asked for its end"


#: A change that happens when a time has come. It consists of its kind and of the time from which it
#: is due.
Due: TypeAlias = tuple[DueKind, int]


def dues_of(waiting: WaitingFor) -> tuple[Due, ...]:
    """Return the times at which the time alone changes the wait. The deadlines of blocks belong to
    the frame and are not included.
    """
    match waiting:
        case Timer(_, due_ms) | Delay(_, due_ms):
            return ((DueKind.TIMER, due_ms),)
        case Attempt(claim=claim):
            if claim is not None:
                return ((DueKind.LEASE, claim.until_ms),)
            # An attempt of an unknown function waits for a worker that has the function, and a
            # queued one for its turn at a limit. So no time makes either of them due.
            is_parked = waiting.is_unknown or waiting.queued is not None
            return () if is_parked else ((DueKind.BEGIN, waiting.due_ms),)
        case Awaiting():
            dues = (
                (DueKind.TIME_OUT, waiting.due_ms),
                (DueKind.HEARTBEAT, waiting.heartbeat_due_ms),
                (DueKind.POLL, waiting.poll_due_ms),
            )
            return tuple((kind, due_ms) for kind, due_ms in dues if due_ms is not None)
        case Entered() | Exited() | FailedState() | Admission() | Lanes() | ChildExecutions():
            return ()
        case _:
            assert_never(waiting)


def event_dues(waiting: WaitingFor) -> tuple[int, ...]:
    """Return the due times that put an event into the history. The function is called very often,
    so it does not use `dues_of`.

    The begin of an attempt, the end of a lease and a poll are not events by themselves.
    """
    match waiting:
        case Timer(_, due_ms) | Delay(_, due_ms):
            return (due_ms,)
        case Awaiting(due_ms=due_ms, heartbeat_due_ms=heartbeat_due_ms):
            return tuple(due for due in (due_ms, heartbeat_due_ms) if due is not None)
        case (
            Entered()
            | Exited()
            | FailedState()
            | Admission()
            | Attempt()
            | Lanes()
            | ChildExecutions()
        ):
            return ()
        case _:
            assert_never(waiting)


def runs_on(kind: DueKind, pause: Pause | None) -> bool:
    """Return True when a due time of this kind takes effect during the pause. Without a pause all
    do.
    """
    if pause is None:
        return True
    match kind:
        case DueKind.TIMER | DueKind.TIME_OUT | DueKind.HEARTBEAT | DueKind.POLL:
            return not pause.is_frozen
        case DueKind.BEGIN | DueKind.LEASE:
            # During a pause no attempt begins, and no worker takes an attempt over.
            return False
        case _:
            assert_never(kind)


# -- commands --------------------------------------------------------------------------------------


def commands_of(frame: Frame, execution: Execution) -> Iterator[Command]:
    """Yield every command that the frame requires. The timers of its block deadlines come first."""
    for deadline in frame.deadlines:
        yield StartTimer(deadline.entry, deadline.due_ms)
    waiting = frame.waiting
    match waiting:
        case Admission(entry, queued):
            yield JoinQueue(entry, 0, queued, execution.priority, execution.started_ms, None)
        case Attempt(queued=queued) if queued is not None:
            yield JoinQueue(
                waiting.entry,
                waiting.attempt,
                queued,
                execution.priority,
                execution.started_ms,
                waiting.timeout_seconds,
            )
        case Attempt():
            yield RunAttempt(frame.id, waiting)
        case Timer(entry, due_ms) | Delay(entry, due_ms):
            yield StartTimer(entry, due_ms)
        case Awaiting():
            yield from _of_awaiting(waiting)
            dues_ms = [due_ms for _, due_ms in dues_of(waiting)]
            if dues_ms:
                yield StartTimer(waiting.entry, min(dues_ms))
        case ChildExecutions():
            for lane in open_lanes(execution, waiting):
                yield StartChild(waiting.entry, lane, waiting.redrives)
        case Entered() | Exited() | FailedState() | Lanes():
            return
        case _:
            assert_never(waiting)


def _of_awaiting(awaiting: Awaiting) -> Iterator[Command]:
    match awaiting.kind:
        case "event":
            yield RegisterForEvent(awaiting.entry, awaiting.attempt)
        case "activity":
            if not awaiting.is_begun:
                yield OfferActivity(awaiting.entry, awaiting.attempt)
        case "callback" | "sync":
            yield ReadAnswer(awaiting.entry, awaiting.attempt)
        case "ask":
            yield opened_by(awaiting)
        case "token":
            # The API gives out the token of a callback, and the answer itself wakes a worker. So
            # there is nothing to do.
            return
        case "task" | "pure" | "lambda" | "service" | "command" | "read" | "write":
            # A worker runs tasks of these kinds itself, so their frames wait as an `Attempt` and
            # never reach this line.
            return
        case _:
            assert_never(awaiting.kind)


def opened_by(awaiting: Awaiting) -> OpenQuestion:
    """Return the command that puts a question to a person into the person's inbox."""
    title, assignee = awaiting.text("title"), awaiting.text("assignee")
    return OpenQuestion(
        awaiting.entry, awaiting.attempt, title, assignee, awaiting.since_ms, awaiting.due_ms
    )


def stays_asked(command: Command, pause: Pause) -> bool:
    """Return True when a worker carries out the command although the execution is paused."""
    match command:
        case StartTimer():
            return not pause.is_frozen
        case RunAttempt(attempt=attempt):
            # A worker has a lease on this attempt and runs it to its end even during a pause.
            return attempt.claim is not None
        case StopChild() | OpenQuestion():
            # These commands begin no new work, so they are carried out during a pause, too.
            return True
        case RegisterForEvent() | StartChild() | OfferActivity() | ReadAnswer() | JoinQueue():
            return False
        case _:
            assert_never(command)


# -- the inbox -------------------------------------------------------------------------------------


class InboxSource(StrEnum):
    """The inbox messages that a wait reads."""

    EVENT = "stored events of its name and key"
    ANSWER = "the answer, the heartbeat and the start under its entry and attempt"
    CHILD_NOTICES = "the notices of the ends of its child executions"
    NOTHING = "none"


def inbox_of(waiting: WaitingFor) -> InboxSource:
    match waiting:
        case Awaiting(kind="event"):
            return InboxSource.EVENT
        case Awaiting():
            return InboxSource.ANSWER
        case Attempt(queued=queued) if queued is not None and queued.is_batch:
            return InboxSource.ANSWER
        case ChildExecutions():
            return InboxSource.CHILD_NOTICES
        case (
            Entered()
            | Exited()
            | FailedState()
            | Admission()
            | Attempt()
            | Timer()
            | Delay()
            | Lanes()
        ):
            return InboxSource.NOTHING
        case _:
            assert_never(waiting)


def takes_answer(waiting: WaitingFor, attempt: int) -> bool:
    """Return True when an answer to this attempt may be stored now.

    An answer may arrive while the call that passes on the token still runs. It is stored, too; a
    worker reads it when the call has returned.
    """
    match waiting:
        case Awaiting():
            return waiting.attempt == attempt
        case Attempt():
            return waiting.kind in ANSWERED_LATER and waiting.attempt == attempt
        case (
            Entered()
            | Exited()
            | FailedState()
            | Admission()
            | Timer()
            | Delay()
            | Lanes()
            | ChildExecutions()
        ):
            return False
        case _:
            assert_never(waiting)


def may_have_news(waiting: WaitingFor) -> bool:
    """Return True when something may have arrived that the state does not show. The sweeper then
    wakes a worker.

    Examples: the wake for an inbox message or a queue was lost; a new deployment has the missing
    function.
    """
    if isinstance(waiting, Admission):
        return True
    if isinstance(waiting, Attempt):
        return waiting.is_unknown or waiting.queued is not None
    return inbox_of(waiting) != InboxSource.NOTHING


# -- the class of a wait ---------------------------------------------------------------------------


class Standing(StrEnum):
    """The state of a frame between two records: a worker processes it, or it waits."""

    MOVING = "the record was full: a worker continues at once"
    HELD = "a worker has an attempt in hand, or should have"
    PARKED = "nothing is to be done until a time or a message comes"


def standing_of(waiting: WaitingFor, now_ms: int) -> Standing:
    match waiting:
        case Entered() | Exited() | FailedState():
            return Standing.MOVING
        case Admission():
            return Standing.HELD
        case Attempt():
            # The watchdog checks an execution in which a wait is HELD within minutes, and one in
            # which every wait is PARKED only at its next due time or after an hour. Two kinds of
            # attempts are HELD even before `due_ms`. The function of the first kind was unknown to
            # a worker: the clock of that worker may be ahead, so it may have received the attempt
            # before `due_ms` by this clock. The second kind waits in the queue of a limit: if a
            # message of that queue is lost, a check by the watchdog repairs the queue.
            is_in_hand = (
                waiting.claim is not None
                or waiting.is_unknown
                or waiting.queued is not None
                or waiting.due_ms <= now_ms
            )
            return Standing.HELD if is_in_hand else Standing.PARKED
        case Awaiting() | Timer() | Delay() | Lanes() | ChildExecutions():
            return Standing.PARKED
        case _:
            assert_never(waiting)


def place_of(waiting: WaitingFor) -> int | None:
    """Return the entry number that the wait's commands have; None for a wait without commands."""
    match waiting:
        case Timer() | Delay() | Admission() | Attempt() | Awaiting() | ChildExecutions():
            return waiting.entry
        case Entered() | Exited() | FailedState() | Lanes():
            return None
        case _:
            assert_never(waiting)


def awaits(waiting: WaitingFor, number: int) -> bool:
    """Return True when the wait needs the end of the child execution that has the wait's entry and
    this number, whether the child has started or not.

    An attempt of a task that starts an execution counts: its call may be starting the child now.
    """
    match waiting:
        case ChildExecutions():
            return waiting.is_open(number)
        case Attempt(kind="sync") | Awaiting(kind="sync"):
            return is_told(waiting.target) and waiting.attempt == number
        case (
            Entered()
            | Exited()
            | FailedState()
            | Admission()
            | Attempt()
            | Awaiting()
            | Timer()
            | Delay()
            | Lanes()
        ):
            return False
        case _:
            assert_never(waiting)


# -- the whole execution ---------------------------------------------------------------------------


def has_more(state: Execution) -> bool:
    """Return True when the last record reached its budget, so that a worker must continue the
    execution.

    A paused execution evaluates no state, so the result is False.
    """
    if state.paused is not None:
        return False
    return any(isinstance(frame.waiting, Entered) for frame in state.frames.values())


def pending_commands(state: Execution) -> list[Command]:
    """Return every command that the state requires, in the order of the entries."""
    found: list[Command] = []
    if state.due_ms is not None and not state.is_ended:
        found.append(StartTimer(WHOLE_EXECUTION, state.due_ms))
    for frame in state.frames.values():
        found.extend(commands_of(frame, state))
    found.extend(StopChild(entry, number) for entry, number in abandoned(state))
    pause = state.paused
    if pause is not None:
        found = [command for command in found if stays_asked(command, pause)]
    if len(found) > 1:
        found.sort(key=entry_of)
    return found


def new_commands(asked: Iterable[Command], before: Sequence[Command]) -> list[Command]:
    """Return the commands that a worker carries out now: those that were not among `before`.

    An attempt that a worker already runs is left out, because it needs no wake.
    """
    # Commands of different entries differ. Without this, each of 40 iterations would be compared
    # with all others.
    known: dict[int, list[Command]] = {}
    for command in before:
        known.setdefault(entry_of(command), []).append(command)
    return [
        command
        for command in asked
        if command not in known.get(entry_of(command), ())
        and not (isinstance(command, RunAttempt) and not needs_wake(command.attempt))
    ]


def needs_wake(attempt: Attempt) -> bool:
    """Return True when a worker must be woken for the attempt, because no worker has a lease on it.

    An attempt of an unknown function needs no wake: it waits for a worker that has the function.
    """
    return attempt.claim is None and not attempt.is_unknown


def attempts_of(state: Execution) -> list[Attempt]:
    """Return the attempts that the pending commands require workers to run."""
    return [
        command.attempt for command in pending_commands(state) if isinstance(command, RunAttempt)
    ]


def leases_of(state: Execution) -> Iterator[Lease]:
    """Yield the leases of workers on attempts, whether they have ended or not."""
    for frame in state.frames.values():
        if isinstance(frame.waiting, Attempt) and frame.waiting.claim is not None:
            yield frame.waiting.claim


def awaited(frames: Iterable[Frame]) -> Iterator[ChildNumber]:
    """Yield the children that these frames wait for, whether the children have begun or not."""
    for frame in frames:
        waiting = frame.waiting
        if isinstance(waiting, ChildExecutions):
            yield from ((waiting.entry, lane) for lane in waiting.open_lanes)
        elif isinstance(waiting, Attempt | Awaiting) and awaits(waiting, waiting.attempt):
            yield waiting.entry, waiting.attempt


def open_lanes(state: Execution, children: ChildExecutions) -> list[int]:
    """Return the open lanes of a Map of this execution. The execution knows its open children, so
    the cost does not grow with the number of those that have ended.
    """
    running = (lane for entry, lane in state.children if entry == children.entry)
    return sorted(lane for lane in running if children.is_open(lane))


def abandoned_attempts(
    before: Iterable[Command], after: Execution, offered: Iterable[Fact], now_ms: int
) -> list[Attempt]:
    """Return the attempts with heartbeats that a worker may still run although the execution no
    longer waits for them: no result of theirs is among the offered facts.
    """
    running = [
        command.attempt
        for command in before
        if isinstance(command, RunAttempt)
        and _reads_its_end(command.attempt, now_ms)
        and not _is_awaited(after, command.attempt)
    ]
    if not running:
        return []
    ended = {
        (fact.entry, fact.attempt) for fact in offered if isinstance(fact, Succeeded | FailedWith)
    }
    return [one for one in running if (one.entry, one.attempt) not in ended]


def _reads_its_end(attempt: Attempt, now_ms: int) -> bool:
    """Return True for a task with heartbeats that a worker may have begun. The attempt of a retry
    has no lease at first, and begins when it is due.
    """
    has_begun = attempt.claim is not None or attempt.due_ms <= now_ms
    return attempt.kind == "task" and attempt.heartbeat_seconds is not None and has_begun


def _is_awaited(state: Execution, attempt: Attempt) -> bool:
    frame = state.frame_of(attempt.entry)
    waiting = None if frame is None or state.is_ended else frame.waiting
    return isinstance(waiting, Attempt) and waiting.attempt == attempt.attempt


def abandoned(state: Execution) -> list[ChildNumber]:
    """Return the children that may still run although no open wait needs them and no stop was sent.

    A child counts as running from the event that requests it to the event of its end. When the wait
    for it has ended for another reason, such as a time-out, the child is abandoned, and a worker
    must stop it. It stays abandoned until the event `ChildrenStopped` names it.
    """
    if not state.children:
        return []
    waits = {place_of(frame.waiting): frame.waiting for frame in state.frames.values()}
    return sorted(
        (entry, number)
        for entry, number in state.children
        if entry not in waits or not awaits(waits[entry], number)
    )


def overdue(state: Execution, past_ms: int) -> Iterator[tuple[int, int, str, OpenDeadline | None]]:
    """Yield each event that the time has caused by `past_ms`: (time, order, frame, block deadline
    or None).

    At the same time, the deadline of a block comes before the waits inside it, and an outer
    deadline before an inner one. While a pause freezes the timers there is no such event.
    """
    if is_frozen(state):
        return
    for place, frame in enumerate(state.frames.values()):
        for due in frame.deadlines:
            if due.due_ms <= past_ms:
                yield due.due_ms, due.entry, frame.id, due
        for due_ms in event_dues(frame.waiting):
            if due_ms <= past_ms:
                yield due_ms, state.next_entry + place, frame.id, None


def overdue_frames(state: Execution, past_ms: int) -> list[Frame]:
    """Return the frames with a wait or a block deadline that is overdue at `past_ms`, and all
    frames below them.
    """
    if is_frozen(state):
        return []
    found: dict[str, Frame] = {}
    # The frame of a Parallel or Map is listed before the frames of its branches and iterations, so
    # one pass finds all of them.
    for frame in state.frames.values():
        in_time = not frame.deadlines or all(due.due_ms > past_ms for due in frame.deadlines)
        if not in_time or frame.owner in found or is_overdue(frame, past_ms):
            found[frame.id] = frame
    return list(found.values())


def is_due(state: Execution, past_ms: int) -> bool:
    """Return True when a frame is overdue at `past_ms`, or the time-out of the whole execution has
    passed.
    """
    if is_frozen(state):
        return False
    is_late = state.due_ms is not None and state.due_ms <= past_ms
    return is_late or bool(overdue_frames(state, past_ms))


def is_overdue(frame: Frame, past_ms: int) -> bool:
    """Return True when the wait of the frame ends, or times out, by `past_ms`."""
    dues = event_dues(frame.waiting)
    return bool(dues) and min(dues) <= past_ms


def is_frozen(state: Execution) -> bool:
    return state.paused is not None and state.paused.is_frozen
