"""External facts: the inbox messages that a queue message names, and the passing of time.

* R14 Before a time-out is committed, the inbox is read: a stored answer takes precedence over the
  time-out.
* R15 The due time decides, not the message. A message that comes before the due time is sent again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from holdfast.core import facts
from holdfast.core.commands import WHOLE_EXECUTION
from holdfast.core.facts import Fact
from holdfast.core.state import Attempt, Awaiting, ChildExecutions, Execution
from holdfast.core.waits import InboxSource, inbox_of, is_frozen, overdue_frames
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import (
    children,
    event_pointers,
    follow_ups,
    inbox,
    messages,
)
from holdfast.runtime.effects import Effect, Query
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.log import Log

# -- the inbox -------------------------------------------------------------------------------------


def named_mail(tenant: str, state: Execution, body: Any, now_ms: int) -> inbox.FactsResult:
    """Return the inbox message that the wake `body` names. If it names no single message, return
    all messages that the open waits read.
    """
    key = str(body["key"])
    if "event" in body:
        return (yield from event_pointers.facts_of_wake(tenant, state, body["event"], now_ms))
    if key.startswith(keys.CONTROL_PREFIX):
        return (yield from inbox.control_facts(tenant, state))
    if key.startswith("t#"):
        return (yield from inbox.answer_by_key(tenant, state.run, key))
    if key.startswith(keys.TAKEN_PREFIX):
        return (yield from inbox.taken_by_key(tenant, state.run, key))
    if key.startswith(children.NOTICE_PREFIX):
        return (yield from _notices(tenant, state, _entry_of_notices(key)))
    return (yield from facts_for(tenant, state, now_ms))


def facts_for(tenant: str, state: Execution, now_ms: int) -> inbox.FactsResult:
    """Return the inbox messages of every open wait. Used by a recovering worker, and for a wake
    about events.
    """
    found: list[Fact] = []
    for frame in list(state.frames.values()):
        if isinstance(frame.waiting, Awaiting):
            found += yield from _mail_of(tenant, state, frame.waiting, now_ms)
        elif isinstance(frame.waiting, Attempt):
            found += yield from _result_of_batch(tenant, state.run, frame.waiting)
    return found


def _result_of_batch(tenant: str, run: str, attempt: Attempt) -> inbox.FactsResult:
    """Return the fact of the stored result of an attempt that waits to run in a batch."""
    if attempt.queued is None or not attempt.queued.is_batch:
        return []
    key = keys.answer(attempt.entry, attempt.attempt)
    return (yield from inbox.answer_by_key(tenant, run, key))


def _mail_of(tenant: str, state: Execution, awaiting: Awaiting, now_ms: int) -> inbox.FactsResult:
    if awaiting.kind == "event":
        return (yield from event_pointers.event_facts(tenant, state, awaiting, now_ms))
    return (yield from inbox.answer_facts(tenant, state.run, awaiting))


def is_known_end(state: Execution, body: Any) -> bool:
    """Return True when the wake `body` announces the end of a Map's child that the log has already.

    Children that end at the same time send as many wakes, and the first one reads all their
    notices. Messages of earlier releases do not name the child.
    """
    if "lane" not in body:
        return False
    frame = state.frame_of(_entry_of_notices(str(body["key"])))
    waiting = None if frame is None else frame.waiting
    return isinstance(waiting, ChildExecutions) and not waiting.is_open(body["lane"])


def _entry_of_notices(key: str) -> int:
    with reading("a key of mail"):
        return int(key.removeprefix(children.NOTICE_PREFIX))


def begin_to_stop(tenant: str, run: str, body: Any) -> Generator[Effect, Any, None]:
    """Begin the log of a quarantined execution that has none, so that a stop can be applied to it.

    `body` is the message that announces the stop, or the one that replaces it after it was a dead
    letter.
    """
    named = str(body.get("key", ""))
    if body["k"] != messages.RECOVER and not named.startswith(keys.CONTROL_PREFIX):
        return
    held = yield from quarantine.find(tenant, run)
    if held is None or not held.is_start:
        return
    control = yield Query(
        tables.MAIL, keys.inbox(tenant, run), begins_with=keys.CONTROL_PREFIX, limit=1
    )
    if control:
        yield from quarantine.release_to_stop(held)


def _notices(tenant: str, state: Execution, entry: int) -> inbox.FactsResult:
    frame = state.frame_of(entry)
    if frame is None or not isinstance(frame.waiting, ChildExecutions):
        return []
    return list((yield from children.notices(tenant, state, frame.waiting)))


# -- the time --------------------------------------------------------------------------------------


def again_if_early(log: Log, entry: int, due_ms: int, now_ms: int) -> Generator[Effect, Any, bool]:
    """Start the timer again when its wake came too early, because the sender's clock is ahead of
    this host's. Otherwise the only wake would be lost. Return True when a copy was sent.
    """
    assert log.state is not None
    is_open = entry == WHOLE_EXECUTION or log.state.is_open(entry)
    if is_frozen(log.state):
        # The resume starts every timer again, so this wake may be lost.
        return False
    if not is_open or now_ms >= due_ms + 2 * CLOCK_ERROR_MS:
        return False
    yield from follow_ups.start_timer(log, entry, due_ms, now_ms)
    return True


def past_timeouts(tenant: str, state: Execution, now_ms: int) -> inbox.FactsResult:
    """Return the inbox messages of each wait that is about to time out, and then the tick (R14). If
    the execution's own time-out has passed, read the messages of every wait.

    Call it only when something is due (`core.waits.is_due`).
    """
    past_ms = now_ms - 2 * CLOCK_ERROR_MS
    is_late = state.due_ms is not None and state.due_ms <= past_ms
    found: list[Fact] = []
    for frame in state.frames.values() if is_late else overdue_frames(state, past_ms):
        waiting = frame.waiting
        if isinstance(waiting, Awaiting):
            found += yield from _mail_of(tenant, state, waiting, now_ms)
        elif isinstance(waiting, ChildExecutions):
            found += yield from children.notices(tenant, state, waiting)
        elif isinstance(waiting, Attempt):
            found += yield from _result_of_batch(tenant, state.run, waiting)
        else:
            assert inbox_of(waiting) == InboxSource.NOTHING
    return [*found, facts.Tick()]


def begins_a_wait(state: Execution, known: Iterable[Fact]) -> bool:
    """Return True when a call has returned and the wait for its answer is not committed yet.

    The answer may have arrived during the call. The wait is therefore committed before a time-out,
    so that the answer takes precedence (R14).
    """
    return any(isinstance(fact, facts.Submitted) and _is_open(state, fact) for fact in known)


def _is_open(state: Execution, fact: facts.Submitted) -> bool:
    frame = state.frame_of(fact.entry)
    attempt = None if frame is None else frame.waiting
    return isinstance(attempt, Attempt) and attempt.attempt == fact.attempt
