"""Watchdog rows: when the sweeper next checks an execution.

The worker writes the row before the record that says `Opened`. If it crashes between the two, the
row finds nothing to do. In the reverse order, an execution could exist without a row.
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


def watch(log: Log, state: Execution, now_ms: int) -> Generator[Effect, Any, None]:
    look_ms = next_look_ms(state, now_ms, now_ms)
    yield Put(tables.MAIL, watch_item(log.tenant, log.run, look_ms, log.sequence + 1, now_ms))


def watch_closely(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """Adds a row before a record that a worker writes while a concurrent delivery has its message.

    The concurrent delivery may have deleted the message. If this worker then crashes, the pending
    commands of the record would wait for the execution's ordinary row, an hour or more. The sweeper
    reaches this row when the record is too old for `recover` to leave it to its writer.
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
    """Return the row. `sequence` is the record that the row announces; a frozen worker may write
    the record later.
    """
    return {
        "pk": keys.due_partition(keys.due_shard(run)),
        "sk": keys.watch_row(look_ms, tenant, run),
        FORMAT_FIELD: FORMAT,
        "t": tenant,
        "run": run,
        "seq": sequence,
        "made": made_ms,
    }


def next_look_ms(state: Execution, parked_ms: int, now_ms: int) -> int:
    """Return the time of the sweeper's next check, on a grid so that two sweepers agree: the
    earliest of the following times, and within a week.

    In the hands of a worker: soon, and later the longer it shows no progress. With something due:
    after that time. With something overdue: later each time, up to an hour, because each check
    sends a message and a worker may crash on it. Otherwise: from an hour on, later the longer it
    has been idle.
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
    if late_ms:  # A separate series for each wait would cause a check every few minutes
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
    """Return the time of the sweeper's check for an execution that is due, or in work, since
    `due_ms`.

    The first check is soon after. Each later one doubles the time since `due_ms`, by at most an
    hour. A row is read up to a minute before its time, and an execution is overdue a minute after
    `due_ms`. So the first check adds both; without them it would find nothing overdue.
    """
    overdue_ms = OVERDUE_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS
    first_ms, hour_ms = overdue_ms + SWEEP_AHEAD_SECONDS * 1_000, WATCH_LOOK_SECONDS_MIN * 1_000
    return due_ms + next_age_ms(now_ms - due_ms, first_ms, 1, hour_ms)


def next_age_ms(age_ms: int, first_ms: int, factor: int, longest_ms: int) -> int:
    """Return the first age of a series that is greater than `age_ms`.

    The distance from an age to the next one is `factor` times that age, at most `longest_ms`. The
    series does not depend on when it is computed. So when crashes leave an execution with two rows,
    both move to the same time and become one row again.
    """
    next_ms = first_ms
    while next_ms <= age_ms:
        next_ms += min(factor * next_ms, longest_ms)
    return next_ms


def is_held(state: Execution, now_ms: int) -> bool:
    """Return True when a worker works on the execution, or should: an attempt is leased, due or
    waits for its function, a child must be stopped, or a record was full.
    """
    if abandoned(state):
        return True
    if state.paused is not None:
        return False
    frames = state.frames.values()
    return any(standing_of(frame.waiting, now_ms) != Standing.PARKED for frame in frames)
