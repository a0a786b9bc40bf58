"""Workflows that read the clock and wait for data: only their compiled form runs in a test."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from pydantic import BaseModel

from holdfast import ask, aws, http, receive, wait_for_event, workflow
from tests.unit.testing_clock_child import stamped


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
