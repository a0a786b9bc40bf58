"""Workflows that wait for conditions."""

from __future__ import annotations

from holdfast import (
    Retry,
    days,
    hours,
    minutes,
    parallel,
    seconds,
    task,
    timeout,
    wait_for_condition,
    workflow,
)


@task(
    timeout=minutes(2),
    retry=Retry(max_attempts=2, interval=seconds(10), jitter=False, on=(ValueError,)),
)
def check(order: str) -> str | None: ...


@task
def never_there(order: str) -> str | None:
    return None


@task
def there(order: str) -> str | None:
    return order


@workflow
def deliver(order: str) -> str:
    with timeout(days(3)):
        shipment = wait_for_condition(check, every=minutes(5), backoff=2.0, most=hours(1))(order)
    return shipment.upper()


@workflow
def both(order: str) -> tuple[str, str]:
    return parallel(
        lambda: wait_for_condition(check, every=minutes(5))(order),
        lambda: wait_for_condition(check.options(label="second"), every=minutes(7))(order),
    )


@workflow
def forever(order: str) -> str:
    return wait_for_condition(never_there, every=minutes(1), backoff=1.5, most=minutes(5))(order)
