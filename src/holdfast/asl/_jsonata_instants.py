"""Points in time written as ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_ISO: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?)?"
    r"(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def millis_of(timestamp: str) -> int | None:
    """Milliseconds since the epoch; None when it is no timestamp. Without an offset it is UTC."""
    match = _ISO.fullmatch(timestamp)
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(part or low) for part, low in zip(match.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)
    )
    try:
        instant = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        since = instant - _EPOCH - _offset(match[8])
    except (ValueError, OverflowError):
        return None
    fraction = (match[7] or ".0")[1:4].ljust(3, "0")
    return since // timedelta(milliseconds=1) + int(fraction)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta()
    size = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return -size if zone[0] == "-" else size
