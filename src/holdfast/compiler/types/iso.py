"""Durations as pydantic writes them: ISO 8601."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

#: The seconds of each unit with which pydantic writes a duration. A year has 365 days. pydantic
#: writes no months or weeks.
UNIT_SECONDS: Final = {"Y": 31_536_000, "D": 86_400, "H": 3_600, "M": 60, "S": 1}


def iso_of(duration: timedelta) -> str:
    """Return a duration as pydantic writes it: `timedelta(minutes=90)` gives "PT1H30M"."""
    left = abs(int(duration.total_seconds()))
    date, clock = "", ""
    for unit, size in UNIT_SECONDS.items():
        amount, left = divmod(left, size)
        if amount and unit in "YD":
            date += f"{amount}{unit}"
        elif amount:
            clock += f"{amount}{unit}"
    sign = "-" if duration < timedelta() else ""
    if not date and not clock:
        clock = "0S"
    return f"{sign}P{date}{'T' if clock else ''}{clock}"
