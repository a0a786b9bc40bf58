"""Lambda's responses to an invocation: results, errors, traces, headers and logs, in Lambda's
format.

Sources: recordings of AWS, and AWS docs, "AWS Lambda function errors in Python".
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import re
import sys
import traceback
import uuid
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, NoReturn

from moto.awslambda.exceptions import LambdaClientError

from holdfast.asl.json_text import JsonDepthError, JsonTextError, Scanner
from holdfast.local.archive import TASK_ROOT, Archive
from holdfast.local.revisions import Revision
from holdfast.local.wall import AwsResponse

RESPONSE_BYTES_MAX: Final = 6_291_556  # Lambda quota
_REDACTED: Final = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
STANDARD_LIBRARY: Final = json.__file__.rsplit("/json/", 1)[0]


class RuntimeProblem(Exception):  # noqa: N818
    """An error that Lambda's runtime reports, and not the code of the function."""

    def __init__(self, kind: str, message: str, trace: list[str] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.trace = trace or []


@dataclass(slots=True)
class LambdaInvocation:
    """One invocation. The thread that runs it sets `outcome`, once."""

    revision: Revision
    request_id: str
    invoked_arn: str
    payload: bytes
    context: Any
    outcome: tuple[bytes, bool] | None = None  # the body, and True for the body of an error
    lines: list[str] = field(default_factory=list)


def client_context(header: str | None) -> Any:
    """Return the object with the attributes `custom`, `env` and `client` that the runtime
    creates.
    """
    try:
        sent = None if header is None else json.loads(base64.b64decode(header))
    except ValueError:
        return None
    if not isinstance(sent, dict):
        return None
    client = sent.get("client")
    return SimpleNamespace(
        custom=sent.get("custom"),
        env=sent.get("env"),
        client=SimpleNamespace(**client) if isinstance(client, dict) else None,
    )


def marshalled(value: Any, runtime: str) -> str:
    """Return JSON as the runtime writes it: with blanks after `,` and `:`, and before 3.12 only
    ASCII.
    """
    minor = re.fullmatch(r"python3\.(\d+)", runtime)
    is_ascii = minor is None or int(minor[1]) < 12
    return json.dumps(value, ensure_ascii=is_ascii, default=_plain)


def _plain(value: Any) -> Any:
    match value:
        case decimal.Decimal():
            return math.nan if value.is_nan() else _number(value)
        case bytes():
            return value.decode()
        case _:
            raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _number(value: decimal.Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def trace_of(error: BaseException, archive: Archive) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.filename.startswith(TASK_ROOT)), len(frames))
    return traceback.format_list(
        # Leave out Holdfast's own frames. They stand for those of Lambda's runtime, which a
        # traceback on AWS does not show.
        [_shown(frame, archive) for frame in frames[first:]]
    )


def _shown(frame: traceback.FrameSummary, archive: Archive) -> tuple[str, int, str, str]:
    number = frame.lineno or 0
    if frame.filename.startswith(f"{TASK_ROOT}/"):
        line = archive.source_line(frame.filename, number)
        return frame.filename, number, frame.name, line
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    shown = frame.filename.replace(STANDARD_LIBRARY, f"/var/lang/lib/{version}", 1)
    return shown, number, frame.name, frame.line or ""


def problem_text(invocation: LambdaInvocation, problem: RuntimeProblem) -> bytes:
    return error_text(invocation, str(problem), problem.kind, problem.trace)


def error_text(invocation: LambdaInvocation, message: str, kind: str, trace: list[str]) -> bytes:
    error = {
        "errorMessage": message,
        "errorType": kind,
        "requestId": invocation.request_id,
        "stackTrace": trace,
    }
    return marshalled(error, invocation.revision.runtime).encode()


def timed_out_text(invocation: LambdaInvocation) -> bytes:
    seconds = f"{invocation.revision.timeout_seconds:.2f} seconds"
    message = f"RequestId: {invocation.request_id} Error: Task timed out after {seconds}"
    return json.dumps(
        {"errorType": "Sandbox.Timedout", "errorMessage": message}, separators=(",", ":")
    ).encode()


def too_large_text(size: int) -> bytes:
    message = (
        f"Response payload size ({size} bytes) exceeded maximum allowed payload size "
        f"({RESPONSE_BYTES_MAX} bytes)."
    )
    error = {"errorMessage": message, "errorType": "Function.ResponseSizeTooLarge"}
    return json.dumps(error, separators=(",", ":")).encode()


def headers_of(invocation: LambdaInvocation) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "x-amzn-RequestId": invocation.request_id,
        "x-amzn-Remapped-Content-Length": "0",
        "X-Amzn-Trace-Id": f"Root=1-{uuid.uuid4().hex[:8]}-{uuid.uuid4().hex[:24]};Sampled=0",
    }


def log_of(invocation: LambdaInvocation) -> bytes:
    number, version = invocation.request_id, invocation.revision.version
    memory = f"Memory Size: {invocation.revision.memory_mb} MB"
    lines = [
        f"START RequestId: {number} Version: {version}\n",
        *invocation.lines,
        f"END RequestId: {number}\n",
        f"REPORT RequestId: {number}\tDuration: 1.00 ms\tBilled Duration: 1 ms\t{memory}\n",
    ]
    return "".join(lines).encode()


def payload_refusal(payload: bytes) -> LambdaClientError | None:
    """Return Lambda's refusal of a payload that is not JSON (as the AWS CLI shows it). Lambda
    redacts the payload in it.
    """
    try:
        text = payload.decode()
        json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return _unparsed("Invalid UTF-8")
    except (ValueError, RecursionError):
        return _unparsed(_syntax_problem(text))
    return None


def _refuse_constant(name: str) -> NoReturn:
    """Refuse a number that Python reads although it is not JSON: NaN, Infinity."""
    raise ValueError(name)


def _syntax_problem(text: str) -> str:
    try:
        Scanner(text).document()
    except JsonTextError as error:
        line_and_column = error.place.rpartition("; line: ")[2]
        return f"{error.problem}\n at [Source: {_REDACTED}; line: {line_and_column}"
    except JsonDepthError:
        return "Document nesting depth exceeds the maximum allowed"
    return "Unexpected character"


def _unparsed(problem: str) -> LambdaClientError:
    return LambdaClientError(
        "InvalidRequestContentException",
        f"Could not parse request body into json: Could not parse payload into json: {problem}",
    )


def refused(error: LambdaClientError) -> AwsResponse:
    """Return the response for a refusal. Lambda names the exception in a header; the body has
    `Type` and `Message`.
    """
    body = json.dumps({"Type": "User", "Message": str(error.message)}).encode()
    headers = {
        "Content-Type": "application/json",
        "x-amzn-ErrorType": str(error.error_type),
        "x-amzn-RequestId": str(uuid.uuid4()),
    }
    return AwsResponse(int(error.code or 404), headers, body)
