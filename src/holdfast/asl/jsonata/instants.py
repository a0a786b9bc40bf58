"""Points in time written as ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

_ISO: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?)?"
    r"(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_COMPONENT: Final = re.compile(r"\[\s*([A-Za-z])")
# The parts of a time that a picture may omit at its beginning, the largest first. Each is written
# in Python's notation and in that of a picture.
_COMPONENTS: Final = {
    "Y": ("%Y", "[Y0001]"),
    "M": ("%m", "[M01]"),
    "D": ("%d", "[D01]"),
    "H": ("%H", "[H01]"),
    "m": ("%M", "[m01]"),
    "s": ("%S", "[s01]"),
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def millis_of(timestamp: str) -> int | None:
    """Return the time in ms since 1970; None for other text. Without an offset the text is read as
    UTC.
    """
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


def with_date(timestamp: str, picture: str, now_ms: int) -> tuple[str, str]:
    """Return a timestamp and its picture. If they have only a time, the present date is added to
    both.

    ("13:45", "[H]:[m]") gives ("2026 11 20 13:45", "[Y0001] [M01] [D01] [H]:[m]"). Without this,
    jsonata-python would take the date from the clock of the machine.
    """
    given = set(_COMPONENT.findall(picture))
    if "h" in given:
        given.add("H")
    if not given or given & set("dFWwXx"):
        return timestamp, picture
    missing = list(takewhile(lambda component: component not in given, _COMPONENTS))
    now = _EPOCH + timedelta(milliseconds=now_ms)
    for component in reversed(missing):
        form, marker = _COMPONENTS[component]
        timestamp = f"{now:{form}} {timestamp}"
        picture = f"{marker} {picture}"
    return timestamp, picture
