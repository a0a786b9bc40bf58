"""Runs every minute: wakes what is due, looks after what parked, drains the dead letters."""

from __future__ import annotations

from typing import Any

from holdfast.aws.entry import sweeper_handler


def handler(event: dict[str, Any], context: Any) -> None:
    sweeper_handler(event, context)
