"""Workflows that an event cancels, for the tests of `kept=False`."""

from __future__ import annotations

from holdfast import again, days, first, hours, minutes, sleep, wait_for_event, workflow


@workflow
def campaign(user: str) -> str:
    def letters() -> str:
        sleep(days(3))
        return "sent"

    def cancelled() -> str:
        wait_for_event("app/user.unsubscribed", None, key=user, kept=False)
        return "cancelled"

    return first(letters, cancelled)


@workflow
def eager(user: str) -> str:
    def letters() -> str:
        sleep(days(3))
        return "sent"

    def cancelled() -> str:
        wait_for_event("app/user.unsubscribed", None, key=user, kept=True)
        return "cancelled"

    return first(letters, cancelled)


@workflow
def parent(user: str) -> str:
    sleep(minutes(10))
    return campaign(user)


@workflow
def rounds(name: str, number: int) -> int:
    if number == 0:
        sleep(hours(1))
    received = wait_for_event("go", int, key=name, kept=False)
    if number == 0:
        return again(name, number + 1)
    return received
