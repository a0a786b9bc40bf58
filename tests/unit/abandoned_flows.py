"""Tasks of the engine that learn that nothing waits for them any longer."""

from __future__ import annotations

from collections.abc import Callable

from holdfast import (
    BlockTimeout,
    HeartbeatMissed,
    Retry,
    compensating,
    first,
    heartbeat,
    minutes,
    seconds,
    shielded,
    sleep,
    task,
    task_context,
    timeout,
    workflow,
)

#: The clock of the tasks, what happens while a task runs, and what the task has read.
now: list[float] = [0.0]
meanwhile: list[Callable[[], None]] = []
read: list[tuple[str, bool, bool]] = []


def look(name: str) -> str:
    """Note whether the task sees `cancelled`, and whether its heartbeat is refused."""
    if meanwhile:
        meanwhile.pop()()
    now[0] += 11
    is_cancelled, is_refused = task_context().cancelled, False
    try:
        heartbeat()
    except HeartbeatMissed:
        is_refused = True
    read.append((name, is_cancelled, is_refused))
    return name


@task(heartbeat=seconds(30), timeout=minutes(5))
def copy(name: str) -> str:
    return look(name)


@task(timeout=minutes(5))
def mute(name: str) -> str:
    return look(name)


@task(heartbeat=seconds(30), timeout=minutes(5))
def undone(name: str) -> None:
    look(name)


@workflow
def plain(name: str) -> str:
    return copy(name)


@workflow
def without_heartbeat(name: str) -> str:
    return mute(name)


@workflow
def shield(name: str) -> str:
    with shielded():
        copy(name)
    sleep(seconds(1))
    return "on"


@workflow
def undoing(name: str) -> str:
    with compensating() as undo:
        undo(undone, "undo")
        return copy(name)


@task(heartbeat=seconds(30), timeout=minutes(1), retry=Retry(max_attempts=2, interval=seconds(1)))
def slow(name: str) -> str:
    return name


@workflow
def again(name: str) -> str:
    return slow(name)


@task(heartbeat=seconds(30), timeout=minutes(5), retry=Retry(max_attempts=2, interval=seconds(1)))
def second(name: str) -> str:
    if task_context().attempt == 1:
        raise ValueError(name)
    return look(name)


@workflow
def twice(name: str) -> str:
    return second(name)


@workflow
def block(name: str) -> str:
    try:
        with timeout(minutes(1)):
            return copy(name)
    except BlockTimeout:
        return "late"


@workflow
def race(name: str) -> str:
    return first(lambda: copy(name), sleep_first)


def sleep_first() -> str:
    sleep(seconds(10))
    return "slept"
