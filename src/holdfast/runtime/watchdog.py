"""Watchdog rows: when the sweeper next checks an execution.

The worker writes the row before the record with the event `Opened`. If it crashes between the two,
the sweeper reads the row and finds nothing to do. In the reverse order, an execution could exist
without a row, and after a lost message nothing would find it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.core.diagnosis import next_dues
from holdfast.core.state import Execution
from holdfast.core.waits import InboxSource, Standing, abandoned, inbox_of, standing_of
from holdfast.limits import (
    CLOCK_ERROR_MS,
    OVERDUE_SECONDS,
    SWEEP_AHEAD_SECONDS,
    VISIBILITY_SECONDS,
    WATCH_GRID_SECONDS,
    WATCH_LOOK_SECONDS_MAX,
    WATCH_LOOK_SECONDS_MIN,
    WATCH_PARKED_FACTOR,
)
from holdfast.runtime.effects import Effect, Put
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import DUE


def watch(log: Log, state: Execution, now_ms: int) -> Generator[Effect, Any, None]:
    look_ms = next_look_ms(state, now_ms, now_ms)
    yield Put(tables.MAIL, watch_item(log.tenant, log.run, look_ms, log.sequence + 1, now_ms))


def watch_closely(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """Add a row before the commit of a record, when a concurrent delivery has received the same
    message.

    The concurrent delivery may have deleted the message. If this worker then crashed, the commands
    of the record would wait for the execution's ordinary row, for an hour or more. The sweeper
    reads this row after the time in which `recover` leaves the commands of a record to its writer.
    """
    seen_ms = now_ms + VISIBILITY_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS
    look_ms = on_grid(seen_ms + SWEEP_AHEAD_SECONDS * 1_000)
    sequence = log.sequence + 1
    item = watch_item(log.tenant, log.run, look_ms, sequence, now_ms)
    sk = keys.asking_row(look_ms, log.tenant, log.run, sequence)
    yield Put(tables.MAIL, {**item, "sk": sk})


def watch_item(
    tenant: str, run: str, look_ms: int, sequence: int, made_ms: int
) -> dict[str, str | int | bytes]:
    """Return the row. `sequence` is the number of the record that the row announces: a worker that
    is suspended may write the record much later.
    """
    return {
        "pk": keys.due_partition(DUE.of(run)),
        "sk": keys.watch_row(look_ms, tenant, run),
        FORMAT_FIELD: FORMAT,
        "t": tenant,
        "run": run,
        "seq": sequence,
        "made": made_ms,
    }


def next_look_ms(state: Execution, parked_ms: int, now_ms: int) -> int:
    """Return the time of the sweeper's next check: the earliest of these times, at most a week
    ahead. The time is on a grid, so that two sweepers compute the same one.

    * A worker is processing the execution: soon, and less often the longer it makes no progress.
    * Something will be due: after that time.
    * Something is overdue: at growing intervals up to an hour, because each check sends a message,
      and a worker may crash on it.
    * Otherwise: from an hour on, at intervals that grow while the execution waits.
    """
    hour_ms, week_ms = WATCH_LOOK_SECONDS_MIN * 1_000, WATCH_LOOK_SECONDS_MAX * 1_000
    dues = list(next_dues(state))
    looks_ms = [look_after_ms(due, now_ms) for due in dues if due > now_ms]
    late_ms = [due for due in dues if due <= now_ms]
    if is_held(state, now_ms):
        late_ms.append(parked_ms)
    may_have_mail = any(
        inbox_of(frame.waiting) != InboxSource.NOTHING for frame in state.frames.values()
    )
    # All overdue waits share one series of checks. With a series for each of them, an execution
    # with many overdue waits would be checked every few minutes.
    if late_ms:
        looks_ms.append(look_after_ms(max(late_ms), now_ms))
    else:
        first_ms = hour_ms if may_have_mail or not looks_ms else week_ms
        rested_ms = now_ms - parked_ms
        age_ms = next_age_ms(rested_ms, first_ms, WATCH_PARKED_FACTOR, week_ms)
        looks_ms.append(parked_ms + age_ms)
    return on_grid(min(looks_ms))


def on_grid(at_ms: int) -> int:
    grid_ms = WATCH_GRID_SECONDS * 1_000
    return -(-at_ms // grid_ms) * grid_ms


def look_after_ms(due_ms: int, now_ms: int) -> int:
    """Return the time of the sweeper's check for an execution in which something is due, or in
    work, since `due_ms`.

    The first check is soon after `due_ms`. Each later one doubles the time since `due_ms`, by at
    most an hour. The sweeper reads a row up to a minute before its time, and a wait is overdue a
    minute after `due_ms`. The first check adds both; otherwise it would come before the wait is
    overdue and find nothing.
    """
    overdue_ms = OVERDUE_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS
    first_ms, hour_ms = overdue_ms + SWEEP_AHEAD_SECONDS * 1_000, WATCH_LOOK_SECONDS_MIN * 1_000
    return due_ms + next_age_ms(now_ms - due_ms, first_ms, 1, hour_ms)


def next_age_ms(age_ms: int, first_ms: int, factor: int, longest_ms: int) -> int:
    """Return the first age in a series that is greater than `age_ms`.

    The distance from an age to the next one is `factor` times that age, at most `longest_ms`. The
    series does not depend on the time of the call. So if a crash leaves an execution with two rows,
    both move to the same time and become one row again.
    """
    next_ms = first_ms
    while next_ms <= age_ms:
        next_ms += min(factor * next_ms, longest_ms)
    return next_ms


def is_held(state: Execution, now_ms: int) -> bool:
    """Return True when a worker processes the execution, or should: an attempt has a lease, is due
    or waits for its function, a child must be stopped, or the last record reached its budget.
    """
    if abandoned(state):
        return True
    if state.paused is not None:
        return False
    frames = state.frames.values()
    return any(standing_of(frame.waiting, now_ms) != Standing.PARKED for frame in frames)
