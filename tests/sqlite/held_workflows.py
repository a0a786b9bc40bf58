"""A workflow whose task waits until the test lets it go on."""

from __future__ import annotations

from threading import Event

from holdfast import seconds, task, workflow

BEGUN, RELEASED = Event(), Event()


@task(timeout=seconds(60))
def wait_for_test(number: int) -> int:
    BEGUN.set()
    RELEASED.wait()
    return number


@workflow
def hold() -> int:
    return wait_for_test(1)
