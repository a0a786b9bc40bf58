"""The translation of botocore's errors to those of Holdfast. No other module translates them."""

from __future__ import annotations

from typing import Any, Final

from holdfast.errors import GONE, ServiceFault
from holdfast.limits import AWS_THROTTLING_CODES
from holdfast.runtime.effects import Doubt

THROTTLED: Final = "HF321"
CONDITION_FAILED: Final = "ConditionalCheckFailedException"
MESSAGE_CHARACTERS_MAX: Final = 200

#: These codes, with status 400, mean that the body of the request did not arrive in time. So the
#: request may be repeated.
_TIMED_OUT: Final = frozenset({"RequestTimeout", "RequestTimeoutException"})
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_MISSING_BLOB: Final = frozenset({"NoSuchKey"})


def error_code(error: Exception) -> str:
    """Return the service's code of a `ClientError`; "" for an error without a response."""
    # The connection errors of botocore have an attribute `response`, too, whose value is None.
    response: dict[str, Any] = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def fault(operation: str, error: Exception, *, is_conditional_put: bool = False) -> ServiceFault:
    """Return the fault to raise for a botocore error.

    | what botocore raised                               | conditional put | anything else      |
    |----------------------------------------------------|-----------------|--------------------|
    | no answer: time-out, lost or refused connection,   | `Doubt`         | HF322, retry now   |
    | a part of an answer, any other error after sending |                 |                    |
    | an answer of 500 or more, or a request timed out   | `Doubt`         | HF322, retry now   |
    | throttled, by code or status 429                   | HF321, later    | HF321, retry later |
    | credentials have expired                           | HF322, later    | HF322, retry later |
    | no such object                                     |                 | HF324, never       |
    | any other answer (not valid, not allowed, no such  | HF323, never    | HF323, never       |
    | table), or the request could not be built          |                 |                    |

    A put that was throttled or refused is certainly not stored, so it is no `Doubt`. A failed
    condition is not a fault: the caller tests for `CONDITION_FAILED` first.
    """
    from botocore.exceptions import (  # noqa: PLC0415
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        NoRegionError,
        ParamValidationError,
        PartialCredentialsError,
    )
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    if not isinstance(error, ClientError):
        never_sent = (
            NoCredentialsError, PartialCredentialsError, NoRegionError, ParamValidationError
        )  # fmt: skip
        answerless = (BotoCoreError, ResponseParserError, OSError)
        if isinstance(error, answerless) and not isinstance(error, never_sent):
            return _unanswered(f"{operation}: {type(error).__name__}", is_conditional_put)
        # Do not log the text of other errors, because it may quote values of the request.
        is_setting = isinstance(error, never_sent) and not isinstance(error, ParamValidationError)
        told = _brief(str(error)) if is_setting else type(error).__name__
        return ServiceFault("HF323", f"{operation}: {told}", retry="never")
    code = error_code(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in AWS_THROTTLING_CODES or status == 429:
        return ServiceFault(THROTTLED, f"{operation} was throttled: {code}")
    if status >= 500 or code in _TIMED_OUT:
        return _unanswered(f"{operation} answered {status} {code}", is_conditional_put)
    if code in _EXPIRED:
        return ServiceFault("HF322", f"{operation}: {code}")
    if code in _MISSING_BLOB:
        return ServiceFault(GONE, f"{operation}: no such object", retry="never")
    said = _brief(str(error.response.get("Error", {}).get("Message", "")))
    return ServiceFault("HF323", f"{operation} was refused: {code}: {said}", retry="never")


def _unanswered(found: str, is_conditional_put: bool) -> ServiceFault:
    return Doubt(found) if is_conditional_put else ServiceFault("HF322", found, retry="now")


def _brief(text: str) -> str:
    return text[:MESSAGE_CHARACTERS_MAX]
