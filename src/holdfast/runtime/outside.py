"""What has happened outside while nobody looked: the mail that a message names, and the time.

* R14 Before a time-out is committed, its mail is read: a stored answer wins.
* R15 The due time decides; a message only wakes, and one that is early is sent again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.core import facts
from holdfast.core.commands import WHOLE_EXECUTION
from holdfast.core.facts import Fact
from holdfast.core.overdue import overdue_frames
from holdfast.core.state import Awaiting, Children, Execution
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import children, duties, keys, mail, quarantine
from holdfast.runtime.codec import reading
from holdfast.runtime.effects import Effect
from holdfast.runtime.log import Log

# -- mail ------------------------------------------------------------------------------------------


def named_mail(tenant: str, state: Execution, key: str, now_ms: int) -> mail.Facts:
    """-> the mail under the key, or, where it names none, all that the open waits can read."""
    if key.startswith(keys.CONTROL_PREFIX):
        return (yield from mail.control_facts(tenant, state))
    if key.startswith("t#"):
        return (yield from mail.answer_by_key(tenant, state.run, key))
    if key.startswith(keys.TAKEN_PREFIX):
        return (yield from mail.taken_by_key(tenant, state.run, key))
    if key.startswith(children.NOTICE_PREFIX):
        with reading("a key of mail"):
            entry = int(key.removeprefix(children.NOTICE_PREFIX))
        return (yield from _notices(tenant, state, entry))
    return (yield from mail.facts_for(tenant, state, now_ms))


def begin_to_stop(tenant: str, run: str, key: str) -> Generator[Effect, Any, None]:
    """What rests in quarantine and never began has no log that could end: its stop begins one."""
    if key.startswith(keys.CONTROL_PREFIX):
        held = yield from quarantine.find(tenant, run)
        if held is not None and held.is_start:
            yield from quarantine.release_to_stop(held)


def _notices(tenant: str, state: Execution, entry: int) -> mail.Facts:
    frame = state.frame_of(entry)
    if frame is None or not isinstance(frame.waiting, Children):
        return []
    return list((yield from children.notices(tenant, state.run, frame.waiting)))


# -- the time --------------------------------------------------------------------------------------


def again_if_early(log: Log, entry: int, due_ms: int, now_ms: int) -> Generator[Effect, Any, None]:
    """The sender's clock ran ahead of ours: without a copy the only wake would be gone."""
    assert log.state is not None
    is_open = entry == WHOLE_EXECUTION or log.state.is_open(entry)
    if is_open and now_ms < due_ms + 2 * CLOCK_ERROR_MS:
        yield from duties.start_timer(log, entry, due_ms, now_ms)


def past_timeouts(tenant: str, state: Execution, now_ms: int) -> mail.Facts:
    """R14: for each wait that is about to time out, its mail first; then the tick. When the time
    of the whole execution is over, that is every wait.
    """
    past_ms = now_ms - 2 * CLOCK_ERROR_MS
    overdue = overdue_frames(state, past_ms)
    is_late = state.due_ms is not None and state.due_ms <= past_ms
    if not overdue and not is_late:
        return []
    found: list[Fact] = []
    for frame in state.frames.values() if is_late else overdue:
        match frame.waiting:
            case Awaiting() as awaiting:
                found += yield from mail.mail_of(tenant, state.run, awaiting, now_ms)
            case Children() as open_children:
                found += yield from children.notices(tenant, state.run, open_children)
    return [*found, facts.Tick()]
