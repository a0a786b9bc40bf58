"""Checks of request fields that several commands have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from holdfast.asl.program import Json
from holdfast.core.state import PRIORITY_DEFAULT, PRIORITY_LAST
from holdfast.errors import RequestError
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX


def error_and_cause(request: Mapping[str, Any]) -> dict[str, str]:
    """Return `error` and `cause`, cut to the lengths that AWS allows. Raises RequestError HF233."""
    return texts(request, {"error": ERROR_CHARACTERS_MAX, "cause": CAUSE_CHARACTERS_MAX})


def texts(request: Mapping[str, Any], longest: Mapping[str, int]) -> dict[str, str]:
    """Return the request's fields that `longest` names, each cut to the length given there.

    An empty text is left out. Raises RequestError HF233 for a value that is no text.
    """
    given = {key: request[key] for key in longest if request.get(key) is not None}
    for key, text in given.items():
        if not isinstance(text, str):
            kind = type(text).__name__
            raise RequestError("HF233", f"`{key}` has to be text, and is a JSON value: {kind}")
    return {key: text[: longest[key]] for key, text in given.items() if text}


def flag(request: Mapping[str, Any], name: str) -> dict[str, int]:
    """Return {name: 1} for true, {} for false or an absent field. Raises RequestError HF233.

    Any other value is refused. Otherwise the text "false" would count as true, and a stop would
    skip the undo by mistake.
    """
    value = request.get(name, False)
    if not isinstance(value, bool):
        kind = type(value).__name__
        raise RequestError(
            "HF233", f"`{name}` has to be true or false, and is a JSON value: {kind}"
        )
    return {name: 1} if value else {}


def priority_of(request: Mapping[str, Any]) -> int:
    """Return `priority`, from 0 (first) to 9 (last). Raises RequestError HF204."""
    value = request.get("priority", PRIORITY_DEFAULT)
    if type(value) is not int or not 0 <= value <= PRIORITY_LAST:
        raise RequestError(
            "HF204",
            f"`priority` is {value!r:.40}, expected a whole number from 0 to {PRIORITY_LAST}",
            help=f"0 goes first; without one an execution has {PRIORITY_DEFAULT}",
        )
    return value


def reason_and_author(request: Mapping[str, Any]) -> dict[str, str]:
    """Return `reason`, which is required, and `by` ("" without one). Raises RequestError HF234."""
    by = _words(request, "by", NAME_CHARACTERS_MAX) if request.get("by") else ""
    return {"reason": _words(request, "reason", CAUSE_CHARACTERS_MAX), "by": by}


def _words(request: Mapping[str, Any], name: str, longest: int) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RequestError(
            "HF234",
            f"`{name}` is missing or no text: every change by hand says why",
            help='send {"reason": "the payment provider is down"}',
        )
    return value[:longest]


def hash_of(value: Json) -> str:
    """Return a digest of the value. The order of the fields of an object does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
