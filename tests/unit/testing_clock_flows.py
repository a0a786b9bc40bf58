"""Workflows that read the clock and wait for data: only their compiled form runs in a test."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from pydantic import BaseModel

from holdfast import (
    Retry,
    ask,
    aws,
    each,
    http,
    receive,
    task,
    task_context,
    wait_for_event,
    workflow,
)
from tests.unit.testing_clock_child import stamped

#: The key that each attempt of `key_of` has.
keys_seen: list[str] = []


class Note(BaseModel):
    text: str


@workflow
def hears(key: str) -> str:
    begun = datetime.now(timezone.utc)  # noqa: UP017
    note = wait_for_event("clock.note", Note, key=key)
    return f"{begun.year} {note.text}"


@workflow
def replies(key: str) -> float:
    begun = time.time()
    with receive("clock.asked", Note, key=key) as request:
        request.reply(request.data.text)
    return begun


@workflow
def asks() -> int:
    begun = datetime.now(timezone.utc)  # noqa: UP017
    is_ready = ask("Ready?", bool, assignee="ann")
    return begun.year if is_ready else 0


@workflow
def calls_child(key: str) -> str:
    return stamped(key)


@workflow
def calls_services() -> float:
    aws.dynamodb.get_item(TableName="t", Key={"k": {"S": "a"}})
    http.get("https://example.com")
    return time.time()


@task(retry=Retry(max_attempts=3), idempotent=True)
def key_of(failures: int) -> str:
    """Return the key of the call, which fails `failures` times first."""
    here = task_context()
    keys_seen.append(here.idempotency_key)
    if here.attempt <= failures:
        raise OSError("again")
    return here.idempotency_key


@workflow
def gives_keys() -> list[str]:
    begun = time.time()
    keys = [key_of(0), key_of(1), *each([0, 1], key_of)]
    for number in range(2):
        keys += [key_of(number)]
    return [*keys, child_keys(), child_keys(), f"{begun > 0}"]


@workflow
def child_keys() -> str:
    return key_of(1)


@workflow
def gives_keys_without_clock() -> list[str]:
    keys = [key_of(0), key_of(1), *each([0, 1], key_of)]
    for number in range(2):
        keys += [key_of(number)]
    return [*keys, child_keys(), child_keys(), "True"]
