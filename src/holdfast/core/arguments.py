"""The value of one argument as text, for example as the key of a limit or a queue."""

from __future__ import annotations

import json

from holdfast.asl.program import Json


def argument_text(arguments: Json, parameter: str) -> str:
    """Return the value of the parameter as text: a text as it is, other values as JSON."""
    value = arguments.get(parameter) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
