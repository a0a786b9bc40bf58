# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from holdfast import (minutes, sleep, workflow)
from tests.golden.shop import notify

EPOCH = datetime(2020, 1, 1)
CLOSING = datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))


@workflow
def flow(at: datetime, due: date, key: UUID, path: Path, grace: timedelta, text: str) -> list[timedelta]:
    a = due < at
    b = due == at
    c = CLOSING + minutes(5)
    d = at - EPOCH
    h = at.microsecond
    i = due + 5
    k = UUID(text)
    l = key == text
    m = path.name
    n = sorted([(path, at)])
    sleep(at)
    p = grace / 2
    q = grace > 5
    notify(key, text)
    notify(text, at)
    return [minutes(5)]
