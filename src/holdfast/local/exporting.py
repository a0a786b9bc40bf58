"""Sends a trace to an OpenTelemetry collector, over OTLP/HTTP with JSON."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any, Final

from holdfast.errors import RequestError

_SECONDS_MAX: Final = 30


def export_trace(url: str, request: dict[str, Any]) -> None:
    """Send the trace. Raises RequestError HF294."""
    if not url.startswith(("http://", "https://")):
        raise _not_sent(url, "it is not an HTTP URL")
    try:
        sent = urllib.request.Request(  # noqa: S310  # the scheme is checked above
            url, json.dumps(request).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(sent, timeout=_SECONDS_MAX):  # noqa: S310
            pass
    except urllib.error.HTTPError as error:
        error.close()
        raise _not_sent(url, error) from None
    except (ValueError, OSError, HTTPException) as error:
        raise _not_sent(url, error) from None


def _not_sent(url: str, why: object) -> RequestError:
    return RequestError(
        "HF294",
        f"the trace was not sent to {url!r:.200}: {why}",
        help="give a collector's address for traces: http://localhost:4318/v1/traces",
    )
