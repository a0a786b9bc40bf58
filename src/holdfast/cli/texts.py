"""Texts of the command line: values, times and durations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.cli.console import harmless
from holdfast.limits import REQUEST_SUFFIX

VALUE_CHARACTERS_MAX: Final = 400
STYLES: Final = {
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "ABORTED": "yellow",
}


JsonRow = Mapping[str, Any]


def subject_of(kind: str, target: str) -> tuple[str, str]:
    """Return kind and target of a wait in the words of the command line. A wait for a request is
    stored as a wait for an event whose name ends with a mark.
    """
    if kind == "event" and target.endswith(REQUEST_SUFFIX):
        return "request", target.removesuffix(REQUEST_SUFFIX)
    return kind, target


def value_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(text, VALUE_CHARACTERS_MAX)


def cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def when(time: str | datetime) -> datetime:
    return time if isinstance(time, datetime) else datetime.fromisoformat(time)


def moment(time: str | datetime) -> str:
    return when(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span_between(start: str | datetime, end: str | datetime) -> timedelta:
    return max(when(end) - when(start), timedelta(0))


def ago(time: str | datetime, now: datetime) -> str:
    seconds = round(span_between(time, now).total_seconds())
    return f"{duration(timedelta(seconds=seconds))} ago" if seconds else "just now"


def duration(span: timedelta) -> str:
    """Return the duration in its two greatest units: "3 d 6 h", "4 min 10 s", "1.2 s", "15 ms"."""
    seconds = span.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1_000)} ms"
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    left = round(seconds)
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def on_one_line(row: JsonRow) -> JsonRow:
    """Return the row with each text on one line. A text with line feeds would look like several
    rows.
    """
    shown = harmless(dict(row))
    return {
        key: text.replace("\n", " ") if isinstance(text, str) else text
        for key, text in shown.items()
    }
