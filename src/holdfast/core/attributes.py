"""Search attributes: the typed values by which people find an execution.

A workflow declares them, computes some from its input, and changes them while it runs. They are
part of the state: the event `Noted` sets one. `runtime/search_rows.py` indexes them.

An attribute without a value is not stored: setting an attribute to `None` removes it.
"""

from __future__ import annotations

from typing import Final

from holdfast.asl.program import Json
from holdfast.asl.timestamps import nanos_of
from holdfast.core.state import Attribute

#: A longer text is cut to this length before it is stored or searched.
TEXT_CHARACTERS_MAX: Final = 128


def attribute_of(kind: str, value: Json) -> Attribute | None:
    """Return the attribute with this value; None when the value does not have the declared type."""
    match kind:
        case "str" if isinstance(value, str):
            return Attribute("str", value[:TEXT_CHARACTERS_MAX])
        case "int" if type(value) is int:
            return Attribute("int", value)
        case "bool" if isinstance(value, bool):
            return Attribute("bool", value)
        case "datetime" if isinstance(value, str) and instant_ms(value) is not None:
            return Attribute("datetime", value)
        case _:
            return None


def instant_ms(text: str) -> int | None:
    """Return the time in ms since 1970. A time without a zone is read as UTC. None when the text is
    not a time.
    """
    nanos = nanos_of(text)
    nanos = nanos_of(f"{text}Z") if nanos is None else nanos
    return None if nanos is None else nanos // 1_000_000
