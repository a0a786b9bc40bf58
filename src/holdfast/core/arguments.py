"""What the arguments of a step say: the key of a limit or a queue, the time of a later command."""

from __future__ import annotations

import json
from typing import Any

from holdfast.asl.program import Json
from holdfast.asl.timestamps import nanos_of


def argument_text(arguments: Json, parameter: str) -> str:
    """Return the value of the parameter as text: a text as it is, other values as JSON."""
    value = arguments.get(parameter) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def later_ms(arguments: Json, now_ms: int) -> int:
    """Return when a later command has its effect: `delay` seconds after `now_ms`, or at the time
    `at`, and not before `now_ms`.
    """
    given: Any = arguments
    nanos = nanos_of(str(given["at"])) if "at" in given else None
    after_ms = 1_000 * given.get("delay", 0) if nanos is None else nanos // 1_000_000 - now_ms
    return now_ms + max(round(after_ms), 0)
