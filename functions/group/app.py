"""One attempt of a task of a group: runs the author's code, and returns its result."""

from __future__ import annotations

from typing import Any

from holdfast.aws.group_function import group_handler


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return group_handler(event, context)
