"""What a worker does for an execution beside its log: timers, registrations, watching, listing.

All of it comes after the commit that asks for it, save the watch row, which comes before the record
that says `Opened`: a crash between the two leaves a row that finds nothing to do, never an
execution that nobody looks after. All of it may be done twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, assert_never

from holdfast import resources
from holdfast.asl.program import Program
from holdfast.core import facts
from holdfast.core.advance import Transition
from holdfast.core.children import abandoned
from holdfast.core.commands import (
    Command,
    OfferActivity,
    ReadAnswer,
    RegisterForEvent,
    RunAttempt,
    StartChild,
    StartTimer,
    StopChild,
)
from holdfast.core.events import DURABLE_EVENTS
from holdfast.core.facts import Fact
from holdfast.core.pending_commands import next_dues
from holdfast.core.state import Awaiting, ChildNumber, Execution
from holdfast.core.waits import InboxSource, Standing, inbox_of, standing_of
from holdfast.limits import (
    CALLBACK_SECONDS_MAX,
    CLOCK_ERROR_MS,
    ERROR_CHARACTERS_MAX,
    EVENT_RETENTION_SECONDS,
    NAME_RETENTION_SECONDS,
    OVERDUE_SECONDS,
    SQS_DELAY_SECONDS_MAX,
    SWEEP_AHEAD_SECONDS,
    TIMER_ROW_LEAD_SECONDS,
    VISIBILITY_SECONDS,
    WATCH_GRID_SECONDS,
    WATCH_LOOK_SECONDS_MAX,
    WATCH_LOOK_SECONDS_MIN,
    WATCH_PARKED_FACTOR,
)
from holdfast.runtime import children, inbox, messages
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Extend,
    Item,
    Measure,
    Message,
    Put,
    Send,
    Unlist,
)
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.formats import FORMAT
from holdfast.runtime.storage.log import Log


def carry_out(
    log: Log, program: Program, commands: Iterable[Command], now_ms: int
) -> inbox.FactsResult:
    """Does what the commands ask for; -> the facts that looks into the mail have found, and which
    children have been stopped.
    """
    found: list[Fact] = []
    stopped: list[ChildNumber] = []
    for command in commands:
        match command:
            case RunAttempt(attempt=attempt):
                if attempt.claim is None and not attempt.is_unknown:
                    yield from start_timer(log, attempt.entry, attempt.due_ms, now_ms)
            case StartTimer(entry, due_ms):
                yield from start_timer(log, entry, due_ms, now_ms)
            case RegisterForEvent(entry=entry):
                found += yield from _register(log, entry, now_ms)
            case StartChild(entry, lane):
                yield from children.start(log, program, entry, lane, now_ms)
            case StopChild(entry, number):
                yield from children.stop(log, entry, number, now_ms)
                stopped.append((entry, number))
            case OfferActivity(entry=entry):
                yield from _offer_activity(log, entry)
            case ReadAnswer(entry=entry):
                found += yield from _read_answer(log, entry)
            case _:
                assert_never(command)
    if stopped:
        found.append(facts.ChildrenStopped(tuple(stopped)))
    return found


def _register(log: Log, entry: int, now_ms: int) -> inbox.FactsResult:
    awaiting = _awaiting_of(log, entry)
    ends_ms = awaiting.due_ms or now_ms + 1_000 * EVENT_RETENTION_SECONDS
    ttl = ends_ms // 1_000 + 86_400
    yield from inbox.register(log.tenant, log.run, awaiting, ttl)
    return (yield from inbox.event_facts(log.tenant, awaiting, now_ms))


def _read_answer(log: Log, entry: int) -> inbox.FactsResult:
    return (yield from inbox.answer_facts(log.tenant, log.run, _awaiting_of(log, entry)))


def _offer_activity(log: Log, entry: int) -> Generator[Effect, Any, None]:
    """The bytes are the same each time: a task that was taken and is offered again is refused."""
    awaiting = _awaiting_of(log, entry)
    ends_ms = awaiting.due_ms or awaiting.since_ms + CALLBACK_SECONDS_MAX * 1_000
    attempt = awaiting.attempt
    yield Put(
        inbox.MAIL,
        {
            "pk": keys.activity_tasks(log.tenant, awaiting.target.rpartition(":")[2]),
            "sk": keys.activity_task(awaiting.since_ms, log.run, entry, attempt),
            "f": FORMAT,
            "run": log.run,
            "entry": entry,
            "attempt": attempt,
            "ttl": ends_ms // 1_000 + 86_400,
        },
    )


def _awaiting_of(log: Log, entry: int) -> Awaiting:
    """What is carried out is owed by this very state."""
    assert log.state is not None
    frame = log.state.frame_of(entry)
    assert frame is not None
    assert isinstance(frame.waiting, Awaiting)
    return frame.waiting


# -- timers ----------------------------------------------------------------------------------------


def start_timer(log: Log, entry: int, due_ms: int, now_ms: int) -> Generator[Effect, Any, None]:
    """Up to 15 minutes: a delayed message. Longer: a row that the sweeper turns into one."""
    delay_seconds = delay_until(due_ms, now_ms)
    if delay_seconds <= SQS_DELAY_SECONDS_MAX:
        body = messages.wake_timer(log.tenant, log.run, entry, due_ms, log.hint)
        yield Send((Message(body, delay_seconds),))
        return
    look_ms = due_ms - TIMER_ROW_LEAD_SECONDS * 1_000
    yield Put(
        inbox.MAIL,
        {
            "pk": keys.due_partition(keys.due_shard(log.run)),
            "sk": keys.timer_row(look_ms, log.tenant, log.run, entry),
            "f": FORMAT,
            "t": log.tenant,
            "run": log.run,
            "entry": entry,
            "due": due_ms,
        },
    )


def delay_until(due_ms: int, now_ms: int) -> int:
    """-> whole seconds until a timer may fire on any host whose clock is within the error."""
    return max(0, -(-(due_ms + 2 * CLOCK_ERROR_MS - now_ms) // 1_000))


def delay_after_wake(body: Mapping[str, Any], now_ms: int) -> int:
    """-> whole seconds until another message may come in place of this one. A retry is for whoever
    has its wake, until it is overdue: who came sooner would leave it to some look of the sweeper's.
    """
    if body["k"] != messages.WAKE_TIMER:
        return 0
    overdue_ms = int(body["due"]) + OVERDUE_SECONDS * 1_000
    return min(delay_until(overdue_ms, now_ms), SQS_DELAY_SECONDS_MAX)


# -- watching --------------------------------------------------------------------------------------


def watch(log: Log, state: Execution, now_ms: int) -> Generator[Effect, Any, None]:
    look_ms = next_look_ms(state, now_ms, now_ms)
    yield Put(inbox.MAIL, watch_item(log.tenant, log.run, look_ms, log.sequence + 1, now_ms))


def watch_closely(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """Before a record under a message that another one has, too: he may have deleted it, and what
    the record owes would wait for the row that there is. When the sweeper comes to this one, the
    record is older than what a `recover` leaves to its writer.
    """
    seen_ms = now_ms + VISIBILITY_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS
    look_ms = on_grid(seen_ms + SWEEP_AHEAD_SECONDS * 1_000)
    sequence = log.sequence + 1
    item = watch_item(log.tenant, log.run, look_ms, sequence, now_ms)
    sk = keys.asking_row(look_ms, log.tenant, log.run, sequence)
    yield Put(inbox.MAIL, {**item, "sk": sk})


def watch_item(
    tenant: str, run: str, look_ms: int, sequence: int, made_ms: int
) -> dict[str, str | int | bytes]:
    """`seq` is the record that the row goes with: a log that is older may still be written."""
    return {
        "pk": keys.due_partition(keys.due_shard(run)),
        "sk": keys.watch_row(look_ms, tenant, run),
        "f": FORMAT,
        "t": tenant,
        "run": run,
        "seq": sequence,
        "made": made_ms,
    }


def next_look_ms(state: Execution, parked_ms: int, now_ms: int) -> int:
    """When the sweeper looks at the execution next, on a grid so that two sweepers agree: the
    first of what follows, and within a week.

    Somebody, whoever it is, holds it: soon, and later the longer nothing has come of it. Something
    is due: after that; once it is overdue the later the longer it is, up to an hour, for each look
    sends a message, and some worker may die of it. Nothing is late, and mail may come or nothing
    tells when it moves: the longer it has rested the later, from an hour on.
    """
    hour_ms, week_ms = WATCH_LOOK_SECONDS_MIN * 1_000, WATCH_LOOK_SECONDS_MAX * 1_000
    dues = list(next_dues(state))
    looks_ms = [look_after_ms(due, now_ms) for due in dues if due > now_ms]
    late_ms = [due for due in dues if due <= now_ms]
    if is_held(state, now_ms):
        late_ms.append(parked_ms)
    may_have_mail = any(
        inbox_of(frame.waiting) is not InboxSource.NOTHING for frame in state.frames.values()
    )
    if late_ms:  # a series for each of them would be a look every few minutes
        looks_ms.append(look_after_ms(max(late_ms), now_ms))
    else:
        first_ms = hour_ms if may_have_mail or not looks_ms else week_ms
        rested_ms = now_ms - parked_ms
        age_ms = _next_age_ms(rested_ms, first_ms, WATCH_PARKED_FACTOR, week_ms)
        looks_ms.append(parked_ms + age_ms)
    return on_grid(min(looks_ms))


def on_grid(at_ms: int) -> int:
    grid_ms = WATCH_GRID_SECONDS * 1_000
    return -(-at_ms // grid_ms) * grid_ms


def look_after_ms(due_ms: int, now_ms: int) -> int:
    """-> when to look at what is due, or held, from then on: soon after, and each time as late as
    all looks before, up to an hour.

    The sweeper comes ahead of the look, and sees as overdue what is so by a minute: a look at that
    very moment would see nothing.
    """
    overdue_ms = OVERDUE_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS
    first_ms, hour_ms = overdue_ms + SWEEP_AHEAD_SECONDS * 1_000, WATCH_LOOK_SECONDS_MIN * 1_000
    return due_ms + _next_age_ms(now_ms - due_ms, first_ms, 1, hour_ms)


def _next_age_ms(age_ms: int, first_ms: int, factor: int, longest_ms: int) -> int:
    """-> the first of a series of ages that is beyond this one: each `factor` times itself after
    the one before, and no more than `longest_ms`. Whoever looks, and whenever, finds the same one:
    so two rows of one execution, which crashes have parted, become one again.
    """
    next_ms = first_ms
    while next_ms <= age_ms:
        next_ms += min(factor * next_ms, longest_ms)
    return next_ms


def is_held(state: Execution, now_ms: int) -> bool:
    """Somebody works on it, or should: an attempt is claimed, due, or waits for its function, a
    child is still to be stopped, or a record was full.
    """
    if abandoned(state):
        return True
    if state.paused is not None:
        return False
    frames = state.frames.values()
    return any(standing_of(frame.waiting, now_ms) is not Standing.PARKED for frame in frames)


# -- listing and the end ---------------------------------------------------------------------------


def listing(tenant: str, state: Execution, *, is_opening: bool) -> Item:
    """The attributes by which a record is listed: when it opens the execution, and when it ends."""
    if not is_opening and not state.is_ended:
        return {}
    fields = {
        "lp": keys.list_partition(tenant, state.workflow, state.status, keys.list_shard(state.run)),
        "ls": keys.list_sort(state.started_ms, state.run),
        "nm": state.name or state.run,
        "dv": _listed_definition(state),
    }
    if state.paused is not None:
        # The index has this attribute; of an execution that runs no other use is made of it.
        fields["er"] = keys.paused_since(state.paused.since_ms, state.paused.reason)
    if state.stopped_ms is not None:
        return {
            **fields,
            "en": state.stopped_ms,
            **({"er": state.error[:ERROR_CHARACTERS_MAX]} if state.error else {}),
        }
    return fields


def _listed_definition(state: Execution) -> str:
    """-> definition, and of a state machine's execution: name, version, alias and times redriven.

    `<hash>` or `<hash>#<name>#<version>#<alias>#<redrives>`. One attribute, so that the index stays
    as it is; no part of it holds a "#".
    """
    short, origin = state.definition[:12], state.origin
    if origin is None:
        return short
    qualifiers = (origin.get("version_arn", ""), origin.get("alias_arn", ""))
    parts = [arn.rpartition(":")[2] for arn in qualifiers]
    return "#".join((short, origin["execution_name"], *parts, str(state.redrives)))


def at_end(log: Log) -> Generator[Effect, Any, None]:
    """Children are stopped, a parent told. The RUNNING entry goes; the last record has its own."""
    assert log.state is not None
    assert log.state.stopped_ms is not None
    for entry, number in abandoned(log.state):
        # No record can say any more that it was told: two ends would wake each other for ever.
        if not (yield from children.has_ended(log, entry, number)):
            yield from children.stop(log, entry, number, log.state.stopped_ms)
    yield from children.notify_parent(log)
    if log.state.opened_at is not None:
        yield Unlist(log.partition, log.state.opened_at)


def leave_list(log: Log) -> Generator[Effect, Any, None]:
    """The entry goes before the record that brings the next one: of what ages, or is redriven
    (R17). Whoever dies between the two is followed by one that does both; the other way about
    nobody would know of the old entry any more, if the new record holds a snapshot.
    """
    assert log.state is not None
    listed_at = log.sequence if log.state.is_ended else log.state.opened_at
    if listed_at is not None:
        yield Unlist(log.partition, listed_at)


def keep_name(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """An open execution keeps its name for as long as it keeps its log."""
    assert log.state is not None
    if log.state.name is not None:
        key = keys.name(log.tenant, log.state.workflow, log.state.name)
        yield Extend(key, keys.ONLY, log.run, now_ms // 1_000 + NAME_RETENTION_SECONDS)


def drop_row(item: Item) -> Generator[Effect, Any, None]:
    yield Delete(inbox.MAIL, str(item["pk"]), str(item["sk"]))


# -- measuring -------------------------------------------------------------------------------------


def measure(step: Transition) -> Generator[Effect, Any, None]:
    durable = sum(event.type in DURABLE_EVENTS for event in step.events)
    if durable:
        yield Measure(resources.METRIC_DURABLE_STEPS, durable)
    if step.state.is_ended:
        has_failed = step.state.status in {"FAILED", "TIMED_OUT"}
        ended, failed = resources.METRIC_EXECUTIONS_ENDED, resources.METRIC_EXECUTIONS_FAILED
        yield Measure(failed if has_failed else ended, 1)
