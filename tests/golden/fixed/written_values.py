# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID, uuid4

from holdfast import (days, minutes, pure, sleep, sleep_until, task, workflow)
from tests.golden.shop import notify

EPOCH = datetime(2020, 1, 1)
CLOSING = datetime(2020, 1, 1, tzinfo=timezone.utc)


@task
def new_key() -> UUID:
    return uuid4()


@task
def tell(text: datetime) -> None: ...


@pure
def value_of(at: datetime) -> Any:
    return at - EPOCH


@pure
def text_of(at: datetime) -> str:
    return f"{at}"


@pure
def microsecond_of(at: datetime) -> int:
    return at.microsecond


@pure
def isoformat_of(at: datetime) -> Any:
    return at.isoformat()


@pure
def uuid_of(text: str) -> Any:
    return UUID(text)


@pure
def is_so_2(key: UUID, text: str) -> bool:
    return key == text


@pure
def text_of_2(grace: timedelta) -> str:
    return f"{grace}"


@pure
def value_of_3(grace: timedelta) -> Any:
    return grace / 2


@workflow
def flow(at: datetime, due: date, key: UUID, path: Path, grace: timedelta, text: str) -> list[float]:
    value_of(at)
    text_of(at)
    isoformat_of(at)
    uuid_of(text)
    is_so_2(key, text)
    text_of_2(grace)
    value_of_3(grace)
    a = due < at.date()
    b = due == at.date()
    c = CLOSING + minutes(5)
    h = microsecond_of(at)
    i = due + days(5)
    j = new_key()
    l = key == j
    waits = [minutes(5)]
    lines = [text]
    n = sorted(lines, key=lambda line: line.upper())
    q = grace > minutes(5)
    sleep_until(at)
    notify(str(key), text)
    tell(at)
    return [wait.total_seconds() for wait in waits]
