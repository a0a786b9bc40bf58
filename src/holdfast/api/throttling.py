"""Recognises the errors with which a dependency says that it is called too often, from any
client.
"""

from __future__ import annotations

import email.utils
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.api.limits import Limit, Throttled
from holdfast.limits import AWS_THROTTLING_CODES

#: The pause when a response asks for one, but does not say how long.
PAUSE_DEFAULT: Final = timedelta(seconds=1)
_PAUSE_MAX: Final = timedelta(hours=1)
_TOO_MANY: Final = frozenset({429, 503})


def retry_after(error: BaseException, limits: Sequence[Limit], now: datetime) -> timedelta | None:
    """Return the pause that a dependency asks for; None for any other error.

    `now` is the time with its zone.

    These errors are recognised: `Throttled`, the classes in `throttled_by` of the task's limits,
    botocore's errors with a throttling code, and errors of HTTP clients with status 429 or 503.
    `requests` and `httpx` have the status in `response`, `urllib` in `code`, `aiohttp` in `status`.
    Without limits only `Throttled` is recognised: every other error then belongs to the task's
    Retry and Catch.
    """
    if isinstance(error, Throttled):
        return error.retry_after
    if not limits:
        return None
    if any(isinstance(error, limit.throttled_by) for limit in limits):
        return PAUSE_DEFAULT
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):
        is_throttled = response.get("Error", {}).get("Code") in AWS_THROTTLING_CODES
        return PAUSE_DEFAULT if is_throttled else None
    names = ("status_code", "code", "status")
    statuses = {getattr(one, name, None) for one in (response, error) for name in names}
    if not any(type(status) is int and status in _TOO_MANY for status in statuses):
        return None
    return _pause(getattr(response, "headers", None) or getattr(error, "headers", None), now)


def _pause(headers: Any, now: datetime) -> timedelta:
    """Return the pause in the header Retry-After, which is in seconds or a date (RFC 9110)."""
    text = str(headers.get("Retry-After", "")) if hasattr(headers, "get") else ""
    if text.strip().isdecimal():
        return min(timedelta(seconds=int(text[:9])), _PAUSE_MAX)
    try:
        until = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return PAUSE_DEFAULT
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max(until - now, PAUSE_DEFAULT), _PAUSE_MAX)
