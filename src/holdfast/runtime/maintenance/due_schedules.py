"""The sweeper's part of schedules: for a due row it sends a message at the nominal time."""

from __future__ import annotations

from typing import Final

from holdfast.limits import SQS_DELAY_SECONDS_MAX, SWEEP_AHEAD_SECONDS
from holdfast.runtime import follow_ups, messages, schedules
from holdfast.runtime.effects import Item, Message, NoResult, Put, Send
from holdfast.runtime.storage import tables

#: A row whose schedule does not exist is kept this long, because a row is stored before its
#: schedule.
_WITHOUT_ITEM_MS: Final = 3_600_000


def visit(row: Item, now_ms: int) -> NoResult:
    """Send the message of a schedule that is due, and move its row. If the schedule was deleted,
    delete the row.
    """
    tenant, name, made_ms = str(row["t"]), str(row["schedule"]), int(row["made"])
    found = yield from schedules.find(tenant, name)
    if found is None:
        if now_ms - made_ms > _WITHOUT_ITEM_MS:
            yield from follow_ups.drop_row(row)
        else:
            later_ms = now_ms + 2 * SWEEP_AHEAD_SECONDS * 1_000
            yield from _move(row, schedules.row_of(tenant, name, later_ms, made_ms))
        return
    due_ms = found.next_due_ms
    is_due = due_ms is not None and due_ms <= now_ms + SWEEP_AHEAD_SECONDS * 1_000
    looked_ms = now_ms
    if is_due or found.has_work_now:
        wake_ms = due_ms if is_due and due_ms is not None else now_ms
        # A worker stores the schedule's next time before this check. If the worker has crashed, the
        # schedule is still due at the check, and the message is sent again.
        looked_ms = max(now_ms, wake_ms + SWEEP_AHEAD_SECONDS * 1_000)
        delay_seconds = min(follow_ups.delay_until(wake_ms, now_ms), SQS_DELAY_SECONDS_MAX)
        yield Send((Message(messages.schedule(tenant, name, wake_ms), delay_seconds),))
    yield from _move(row, schedules.row_of(tenant, name, found.look_ms(looked_ms), made_ms))


def _move(row: Item, moved: Item) -> NoResult:
    yield Put(tables.MAIL, moved)
    if moved["sk"] != row["sk"]:
        yield from follow_ups.drop_row(row)
