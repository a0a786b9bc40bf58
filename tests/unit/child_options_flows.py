"""Workflows that call a child with settings of its own."""

from __future__ import annotations

from holdfast import (
    BlockTimeout,
    Retry,
    TaskError,
    WaitTimeout,
    compensating,
    minutes,
    seconds,
    sleep,
    task,
    timeout,
    wait_for_event,
    workflow,
)


class OutOfStock(TaskError): ...  # noqa: N818


@task
def reserve(order: str) -> str:
    return f"reserved {order}"


@task
def release(order: str) -> None: ...


@workflow
def pack(order: str) -> str:
    with compensating() as undo:
        undo(release, order)
        found = reserve(order)
        wait_for_event("packed", str, key=order)
    return found


@workflow
def quick(order: str) -> str:
    return reserve(order)


TWICE = Retry(max_attempts=2, interval=seconds(10), on=(OutOfStock, WaitTimeout), jitter=False)
pack_in_time = pack.options(timeout=minutes(5), retry=TWICE)


@workflow
def ship(order: str) -> str:
    try:
        return pack.options(timeout=minutes(5), retry=TWICE, label="pack it")(order)
    except WaitTimeout:
        return "late"


@workflow
def remind(order: str) -> str:
    try:
        with timeout(minutes(1)):
            while True:
                try:
                    return wait_for_event("packed", str, key=order, timeout=seconds(25))
                except BlockTimeout:
                    raise
                except WaitTimeout:
                    release(order)
    except BlockTimeout:
        return "late"


@workflow
def ship_in_time(order: str) -> str:
    return pack_in_time(order)


@workflow
def order_all(order: str) -> str:
    try:
        found = quick.options(retry=TWICE)(order)
    except OutOfStock as err:
        return f"none: {err}"
    sleep(seconds(1))
    return found
