"""Runs every minute: wakes what is due, looks after what parked, drains the dead letters."""

from __future__ import annotations

from typing import Any

from holdfast.aws import entry


def handler(event: dict[str, Any], context: Any) -> None:
    entry.sweeper_handler(event, context)
