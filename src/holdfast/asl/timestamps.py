"""Timestamps in the form of ASL: RFC 3339, with an upper-case T, and Z or an offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_TIMESTAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS: Final = 10**9
_OFFSET_MAX: Final = timedelta(hours=18)  # the limit of java.time.ZoneOffset
_MINUTES_MAX: Final = 59


def nanos_of(timestamp: str) -> int | None:
    """Return the nanoseconds since 1970; None if the text is not a timestamp."""
    match = _TIMESTAMP.fullmatch(timestamp)
    if match is None:
        return None
    clock, fraction, sign, hours, minutes = match.groups()
    try:
        instant = datetime.fromisoformat(clock).replace(tzinfo=UTC)
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    except ValueError:
        return None
    if offset > _OFFSET_MAX or int(minutes or 0) > _MINUTES_MAX:
        return None
    seconds = (instant - _EPOCH + (offset if sign == "-" else -offset)) // timedelta(seconds=1)
    return seconds * _NANOS + int((fraction or "0").ljust(9, "0"))
