"""Reminders of an open question, before its deadline.

    ask(…, timeout=days(2), remind=hours(4))

    Mon 09:00  the question opens: event, row of the reminder at Wed 05:00, row of the inbox
    Wed 05:00  the sweeper reads the row, finds the question in the inbox, and sends `remind`
               (`maintenance/due_reminders.py`); then it deletes the row
    Wed 05:00  a worker finds the question open in the log, and publishes the event

An answered question has no row in the inbox any longer, so there is no message and no event. After
a crash a reminder may come twice, as the event about the opening may: both have the same content.

A pause with frozen timers moves the deadline. A reminder that comes due meanwhile waits; when the
deadline has moved, the worker puts the row at its new time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from holdfast.core.commands import OpenQuestion
from holdfast.core.state import Awaiting
from holdfast.core.waits import opened_by
from holdfast.limits import QUESTION_REMINDERS_MAX, REMINDER_FROZEN_SECONDS
from holdfast.runtime import questions
from holdfast.runtime.effects import Clock, Effect, Item, NoResult, Put
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import DUE


def put_rows(log: Log, command: OpenQuestion) -> NoResult:
    """Put the row of each reminder. The row of the inbox comes later: it marks that all of them are
    stored.
    """
    for ahead_ms in sorted(set(_ahead_ms(log, command))):
        yield Put(tables.MAIL, _item(log, command, ahead_ms, None))


def _ahead_ms(log: Log, command: OpenQuestion) -> Iterator[int]:
    """Yield how long before the deadline each reminder is due. One that is due before the question
    opens is left out, and so is a value of a state machine that is no number.
    """
    assert log.state is not None
    frame = log.state.frame_of(command.entry)
    waiting = None if frame is None else frame.waiting
    if not isinstance(waiting, Awaiting) or not isinstance(waiting.arguments, dict):
        return
    wanted = waiting.arguments.get("remind")
    if command.due_ms is None or not isinstance(wanted, list):
        return
    for seconds in wanted[:QUESTION_REMINDERS_MAX]:
        if (
            isinstance(seconds, int | float)
            and 0 < 1_000 * seconds < command.due_ms - command.since_ms
        ):
            yield int(1_000 * seconds)


def _item(log: Log, command: OpenQuestion, ahead_ms: int, at_ms: int | None) -> Item:
    """Return the row. `at_ms`: when it is due; None: at the time of the reminder."""
    assert command.due_ms is not None
    due_at_ms = command.due_ms - ahead_ms if at_ms is None else at_ms
    entry, attempt = command.entry, command.attempt
    return {
        "pk": keys.due_partition(DUE.of(log.run)),
        "sk": keys.reminder_row(due_at_ms, log.tenant, log.run, entry, attempt),
        FORMAT_FIELD: FORMAT,
        "t": log.tenant,
        "run": log.run,
        "of": entry,
        "attempt": attempt,
        "ask": questions.own_key(log.run, command),
        "due": command.due_ms,
        "ahead": ahead_ms,
    }


def open_question(log: Log, body: Mapping[str, Any]) -> OpenQuestion | None:
    """Return the question of a message, None when it is over."""
    frame = None if log.state is None else log.state.frame_of(int(body["entry"]))
    waiting = None if frame is None else frame.waiting
    if not isinstance(waiting, Awaiting) or waiting.kind != "ask":
        return None
    return opened_by(waiting) if waiting.attempt == int(body["attempt"]) else None


def is_moved(
    log: Log, command: OpenQuestion, body: Mapping[str, Any]
) -> Generator[Effect, Any, bool]:
    """Return True when the reminder is due later, because a pause moves the deadline. Its row is
    then put at that time.
    """
    assert log.state is not None
    ahead_ms, now_ms = int(body["ahead"]), (yield Clock())
    if log.state.paused is not None and log.state.paused.is_frozen:
        later_ms = now_ms + 1_000 * REMINDER_FROZEN_SECONDS
        yield Put(tables.MAIL, _item(log, command, ahead_ms, later_ms))
        return True
    if command.due_ms is None or command.due_ms == int(body["due"]):
        return False
    yield Put(tables.MAIL, _item(log, command, ahead_ms, max(now_ms, command.due_ms - ahead_ms)))
    return True
