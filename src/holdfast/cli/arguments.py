"""How commands and the types of their arguments are declared."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from holdfast.remote.operations.executions import LISTED_MAX

#: The function that runs a command. It returns the exit code.
Run: TypeAlias = Callable[[argparse.Namespace], int]

EXECUTION_HELP: Final = "or the name that it was started with, or WORKFLOW:NAME, or its ARN"
MODULES_HELP: Final = "default: tool.holdfast.modules in pyproject.toml"
AT_HELP: Final = "later: at a time, 2027-01-15T08:00Z, or so long from now, 15min"
#: The form of the number after `--rate`.
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_SPAN: Final = re.compile(r"([0-9]{1,6})(s|min|h|d)")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
SLOTS_MAX: Final = 100
_SPAN_SECONDS: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


def command(commands: Any, name: str, run: Run, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    parser.set_defaults(run=run, parser=parser)
    return parser


def rate(text: str) -> float:
    """Return the rate in starts per second."""
    seconds = {"s": 1, "min": 60, "h": 3_600}
    count, _, unit = text.partition("/")
    if unit not in seconds or not _NUMBER.fullmatch(count):
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate: write 5/s, 300/min or 1000/h")
    return float(count) / seconds[unit]


def slots(text: str) -> int:
    """Return the number of tasks that one worker runs at once."""
    if not text.isdecimal() or not 1 <= int(text) <= SLOTS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {SLOTS_MAX}")
    return int(text)


def span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time span: write 30min, 6h or 1d")
    return timedelta(seconds=int(found[1]) * _SPAN_SECONDS[found[2]])


def future(text: str) -> datetime:
    """Return a time; for a span the time that long after now."""
    given = time_or_span(text)
    return datetime.now(UTC) + given if isinstance(given, timedelta) else given


def time_or_span(text: str) -> datetime | timedelta:
    """Return a span from now, or a time. A time without a zone is in the local zone."""
    if _SPAN.fullmatch(text):
        return span(text)
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        expected = "write 90min, 36h, 2d or 2027-01-15T08:00Z"
        raise argparse.ArgumentTypeError(f"{text!r} is no time: {expected}") from None


def whole(text: str) -> int:
    """Return a whole number; the API knows its bounds."""
    if not _WHOLE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number: write 5")
    return int(text)


def wait_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds: write 30")
    return seconds


def assignment(text: str) -> tuple[str, str]:
    """Return the name and the JSON of `NAME=JSON`."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=JSON: write total=5")
    return name, value


def lead(text: str) -> timedelta:
    """Return a span of time. The text may begin with a plus."""
    return span(text.removeprefix("+"))


def listed_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LISTED_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {LISTED_MAX:,}")
    return int(text)
