"""A workflow that reads the clock, in a module of its own: another workflow calls it."""

from __future__ import annotations

from datetime import datetime, timezone

from holdfast import task, wait_for_event, workflow


@task
def suffix_of(key: str) -> str:
    return f"{key}!"


@workflow
def stamped(key: str) -> str:
    begun = datetime.now(timezone.utc)  # noqa: UP017
    word = wait_for_event("clock.word", str, key=key)
    return f"{begun.isoformat()} {word}{suffix_of(key)}"
