"""Target of the bus rule: stores an event by its business key and wakes who waits for it."""

from __future__ import annotations

from typing import Any

from holdfast.aws.entry import events_handler


def handler(event: dict[str, Any], context: Any) -> None:
    events_handler(event, context)
