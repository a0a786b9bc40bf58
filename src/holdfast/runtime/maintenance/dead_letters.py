"""Dead letters: messages whose workers crashed or failed until SQS gave up.

A dead letter is sent again, alone in its batch, so that a crash affects no other work. After
DEAD_LETTER_ROUNDS_MAX rounds its execution goes into quarantine, and an operator decides
(`quarantine.py`).

    work ─► dead letter ─► single ─► dead letter ─► single ─► dead letter ─► quarantine

The sweeper's function calls `revive` for each dead letter, once a minute.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.limits import DEAD_LETTER_ROUNDS_MAX
from holdfast.runtime import follow_ups, messages
from holdfast.runtime.effects import Clock, Effect, Message, NoResult, Query, Send
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.format_control import require_writable
from holdfast.runtime.storage.formats import FORMATS, Formats, require_format


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    body: Any
    message_id: str


def revive(letter: StoredDeadLetter, formats: Formats = FORMATS) -> NoResult:
    """Send a dead letter again, alone in its batch. The third time, put its execution into
    quarantine. If a stop is stored for a start message, send the message so that the stop is
    applied.

    If workers of an older or newer release returned the message, it stays in its queue: raises
    HF301 or HF302 as long as this code, too, cannot read the log.
    """
    require_writable(formats)
    now_ms = yield Clock()
    body, has_begun = yield from _read_letter(letter, now_ms, formats)
    if body["k"] == messages.REMIND:
        # Only the publication of the reminder has failed. The execution itself waits without fault,
        # so it does not go into quarantine.
        yield Send((Message(body),), queue="single")
        return
    if body["k"] in messages.OF_NO_EXECUTION:
        # Do not send the message again. The next attempt that joins the queue of a gate starts new
        # tick messages, and the row of a schedule leads to its next message.
        return
    rounds = (*messages.replaced_by(body), letter.message_id)
    released = messages.released_of(body)
    if has_begun and body["k"] == messages.START:
        # The log has begun, so send `recover` in place of the start message. TTL may delete the log
        # while the start message is in a queue or in quarantine, and the start message would then
        # begin the execution a second time.
        body = messages.recover(body["t"], body["run"])
    is_quarantined = len(rounds) - released > DEAD_LETTER_ROUNDS_MAX
    if is_quarantined:
        yield from quarantine.put(body, rounds, now_ms, formats)
    # Read the stop after the put. A stop that is stored after this read finds the execution in
    # quarantine and sends a message for it (R13). If the read came first, a stop between the two
    # would never be applied.
    if (yield from _is_to_be_stopped(body)):
        held = quarantine.Quarantined(body["t"], body["run"], body, rounds, now_ms)
        yield from quarantine.release_to_stop(held)
    elif not is_quarantined:
        delay_seconds = follow_ups.delay_after_wake(body, now_ms)
        yield Send((Message(_again(body, rounds, released), delay_seconds),), queue="single")


def _read_letter(
    letter: StoredDeadLetter, now_ms: int, formats: Formats
) -> Generator[Effect, Any, tuple[Mapping[str, Any], bool]]:
    """Return the message, and True when its execution has a log. If either cannot be read, store
    the reason for an operator and raise it.
    """
    try:
        body = messages.require_readable(letter.body)
        return body, (yield from _has_readable_log(body, formats))
    except HoldfastError as error:
        yield from quarantine.note(letter.message_id, error, now_ms)
        raise


def _again(body: Mapping[str, Any], rounds: tuple[str, ...], released: int) -> Mapping[str, Any]:
    if body["k"] == messages.START:
        return {**body, "of": list(rounds)}
    again = messages.renew if body.get("held") else messages.recover
    found = again(body["t"], body["run"], rounds, released)
    # Keep the field `from`. Only this field allows another worker to take over the lease of the
    # previous worker at once; otherwise it would wait for minutes until the lease ends.
    return {**found, "from": body["from"]} if "from" in body else found


def _is_to_be_stopped(body: Mapping[str, Any]) -> Generator[Effect, Any, bool]:
    """Return True when a stop waits in the inbox of a start. A worker that receives the start
    evaluates states before it reads the inbox, and may crash again before it applies the stop.
    """
    if body["k"] != messages.START or body.get("held"):
        return False
    inbox = keys.inbox(body["t"], body["run"])
    return bool((yield Query(tables.MAIL, inbox, begins_with=keys.CONTROL_PREFIX, limit=1)))


def _has_readable_log(body: Mapping[str, Any], formats: Formats) -> Generator[Effect, Any, bool]:
    """Return True when the execution has a log. Raises HF301, HF302."""
    if body["k"] in messages.OF_NO_EXECUTION:
        return False
    partition = keys.execution(body["t"], body["run"])
    newest = yield Query(tables.EXECUTIONS, partition, reverse=True, limit=1)
    for record in newest:
        require_format(record, f"the newest record of execution {body['run']}", formats)
    return bool(newest)
