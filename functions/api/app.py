"""Every route of the HTTP API, whose authoriser has verified the caller before we see it."""

from __future__ import annotations

from typing import Any

from holdfast.aws.entry import api_handler, prepare_api

prepare_api()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return api_handler(event, context)
