"""Lambda functions of the local cloud, run in this process: Python ones, from zip archives.

moto keeps what a function is (its code, configuration, versions and aliases); an invocation is
answered here, in a thread of its own, as Lambda's Python runtime answers it. A function that runs
out of time is answered for and left to itself: Python cannot stop a thread.
"""

from __future__ import annotations

import base64
import decimal
import json
import logging
import math
import re
import sys
import threading
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

from moto.awslambda import models
from moto.awslambda.exceptions import LambdaClientError, UnknownFunctionException
from moto.awslambda.models import LambdaFunction
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from holdfast.local import intercept
from holdfast.local.archive import TASK_ROOT, Archive, importable
from holdfast.local.environment import divided, variables
from holdfast.local.intercept import Answer, Call

HOST: Final = re.compile(r"lambda\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
PATH: Final = re.compile(r"/2015-03-31/functions/(.+)/invocations/?")
RESPONSE_BYTES_MAX: Final = 6_291_556  # Lambda quota
LATEST: Final = "$LATEST"
STANDARD_LIBRARY: Final = json.__file__.rsplit("/json/", 1)[0]

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of a function's code and configuration, as moto keeps it."""

    name: str
    arn: str
    version: str
    handler: str
    runtime: str
    timeout_seconds: int
    memory_mb: int
    region: str
    digest: str
    own_variables: tuple[tuple[str, str], ...]
    code: bytes = field(repr=False, compare=False)


class RuntimeProblem(Exception):  # noqa: N818
    """What the runtime itself says of a function."""

    def __init__(self, kind: str, message: str, trace: list[str] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.trace = trace or []


class FunctionContext:
    """Lambda's context object: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html"""

    def __init__(
        self, revision: Revision, request_id: str, invoked_arn: str, left_ms: Callable[[], int]
    ) -> None:
        self.aws_request_id = request_id
        self.function_name = revision.name
        self.function_version = revision.version
        self.invoked_function_arn = invoked_arn
        self.memory_limit_in_mb = str(revision.memory_mb)
        self.log_group_name = f"/aws/lambda/{revision.name}"
        self.log_stream_name = f"[{revision.version}]local"
        self.client_context: Any = None
        self.identity: Any = None
        self._left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self._left_ms())

    def log(self, message: Any) -> None:
        _logger.info("%s", message)


@dataclass(slots=True)
class _Call:
    """One invocation. `outcome` is set by the thread that runs it, once."""

    revision: Revision
    request_id: str
    invoked_arn: str
    payload: bytes
    context: Mapping[str, Any] | None
    outcome: tuple[bytes, bool] | None = None  # the body, and whether it is an error's
    lines: list[str] = field(default_factory=list)


class Functions:
    """A context. Its `door` belongs into the wall; what it imported goes at the end."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._handlers: dict[Revision, tuple[threading.Lock, list[Any]]] = {}
        self._calls = threading.local()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(importable())
        self._stack.enter_context(divided())
        self._stack.callback(setattr, LambdaFunction, "invoke", LambdaFunction.invoke)
        LambdaFunction.invoke = self._begin_for_moto
        # A function on a laptop needs no role, and moto would ask IAM for it.
        self._stack.callback(setattr, models, "iam_backends", models.iam_backends)
        models.iam_backends = defaultdict(lambda: defaultdict(_AnyRole))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handlers.clear()
        self._stack.close()

    def door(self, call: Call) -> Answer | None:
        """Answers `Invoke`; what else Lambda is asked is moto's."""
        url = urlsplit(call.url)
        host, path = HOST.fullmatch(url.netloc), PATH.fullmatch(unquote(url.path))
        if host is None or path is None or call.method != "POST":
            return None
        qualifier = parse_qs(url.query).get("Qualifier", [None])[0]
        try:
            revision, invoked_arn = _find(host[1], path[1], qualifier)
        except LambdaClientError as error:
            return _refused(error)
        return self._invoke(revision, invoked_arn, call)

    def _invoke(self, revision: Revision, invoked_arn: str, call: Call) -> Answer:
        invocation = _Call(
            revision,
            str(uuid.uuid4()),
            invoked_arn,
            call.body or b"{}",
            _client_context(call.header("x-amz-client-context")),
        )
        match call.header("x-amz-invocation-type"):
            case "DryRun":
                return Answer(204, _headers(invocation), b"")
            case "Event":
                self._begin(invocation)
                return Answer(202, _headers(invocation), b"")
            case _:
                self._begin(invocation).join(revision.timeout_seconds)
                return self._answer(invocation, call.header("x-amz-log-type") == "Tail")

    @property
    def _begin_for_moto(self) -> Callable[..., str]:
        """-> `LambdaFunction.invoke`: how moto's topics, rules and buckets call a function.

        They call with the lock held, and AWS's do not wait for the result.
        """

        def invoke(function: Any, body: str, *_: Any) -> str:
            revision = _revision(function)
            self._begin(
                _Call(revision, str(uuid.uuid4()), revision.arn, str(body or "{}").encode(), None)
            )
            return "{}"

        return invoke

    def _answer(self, invocation: _Call, wants_log: bool) -> Answer:
        body, failed = invocation.outcome or (_timed_out(invocation), True)
        if len(body) > RESPONSE_BYTES_MAX:
            body, failed = _too_large(len(body)), True
        headers = _headers(invocation) | {"Content-Length": str(len(body))}
        if failed:
            headers["X-Amz-Function-Error"] = "Unhandled"
        if wants_log:
            headers["X-Amz-Log-Result"] = base64.b64encode(_log(invocation)[-4096:]).decode()
        return Answer(200, headers, body)

    def _begin(self, invocation: _Call) -> threading.Thread:
        thread = threading.Thread(
            target=self._run,
            args=(invocation,),
            name=f"function-{invocation.revision.name}",
            daemon=True,  # a function that runs for ever must not keep the process
        )
        thread.start()
        return thread

    def _run(self, invocation: _Call) -> None:
        self._calls.lines = invocation.lines
        with variables(_variables(invocation)):
            try:
                invocation.outcome = self._result(invocation), False
            except RuntimeProblem as problem:
                invocation.outcome = _problem(invocation, problem), True
            except BaseException as error:  # noqa: BLE001  # a function may raise anything
                invocation.outcome = self._raised(invocation, error), True

    def _result(self, invocation: _Call) -> bytes:
        revision = invocation.revision
        handler = self._handler(revision)
        end_ms = self._clock() + revision.timeout_seconds * 1_000
        context = FunctionContext(
            revision, invocation.request_id, invocation.invoked_arn, lambda: end_ms - self._clock()
        )
        context.client_context = invocation.context
        try:
            event = json.loads(invocation.payload)
        except ValueError as error:
            raise RuntimeProblem(
                "Runtime.UnmarshalError", f"Unable to unmarshal input: {error}"
            ) from None
        result = handler(event, context)
        if isinstance(result, bytes):
            return result
        try:
            return _marshalled(result, revision.runtime).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise RuntimeProblem(
                "Runtime.MarshalError", f"Unable to marshal response: {error}"
            ) from None

    def _handler(self, revision: Revision) -> Callable[[Any, Any], Any]:
        """Imports once per revision; what failed to be imported is tried again, as in Lambda."""
        with self._lock:
            lock, found = self._handlers.setdefault(revision, (threading.Lock(), []))
        with lock:
            if not found:
                found.append(_load(revision, self._write))
            handler: Callable[[Any, Any], Any] = found[0][1]
            return handler

    def _raised(self, invocation: _Call, error: BaseException) -> bytes:
        with self._lock:
            found = self._handlers.get(invocation.revision, (None, []))[1]
        trace = _trace(error, found[0][0]) if found else []
        return _error_text(invocation, str(error), type(error).__name__, trace)

    def _write(self, text: str) -> None:
        getattr(self._calls, "lines", []).append(text)
        _logger.info("%s", text.rstrip("\n"))


class _AnyRole:
    def get_role_by_arn(self, _arn: str) -> None:
        """Every role is there."""


# -- what moto knows -------------------------------------------------------------------------------


def _find(region: str, name: str, qualifier: str | None) -> tuple[Revision, str]:
    """-> the revision, and the ARN that it was called by. Raises moto's errors."""
    with intercept.LOCK:
        backend = get_backend("lambda")[DEFAULT_ACCOUNT_ID][region]
        # A partial ARN: 123456789012:function:NAME
        known = name.rpartition("function:")[2] if not name.startswith("arn:") else name
        try:
            function = backend.get_function(known, qualifier)
        except UnknownFunctionException:
            arn = f"arn:aws:lambda:{region}:{DEFAULT_ACCOUNT_ID}:function:"
            unknown = f"{arn}{known.removeprefix(arn)}"
            # Seen in recordings: who names no version is told of the one that he meant.
            is_qualified = unknown.count(":") > arn.count(":")
            version = "" if is_qualified else f":{qualifier or LATEST}"
            raise UnknownFunctionException(f"{unknown}{version}") from None
        revision = _revision(function)
    named = known.split(":function:")[-1].partition(":")[2] or qualifier
    return revision, revision.arn if named is None else f"{revision.arn}:{named}"


def _revision(function: Any) -> Revision:
    return Revision(
        name=function.function_name,
        arn=":".join(function.function_arn.split(":")[:7]),
        version=str(function.version),
        handler=function.handler or "",
        runtime=function.run_time or "",
        timeout_seconds=int(function.timeout or 3),
        memory_mb=int(function.memory_size or 128),
        region=function.region,
        digest=str(getattr(function, "code_digest", "")),
        own_variables=tuple(sorted((function.environment_vars or {}).items())),
        code=bytes(getattr(function, "code_bytes", None) or b""),
    )


def _refused(error: LambdaClientError) -> Answer:
    """Lambda names its exceptions in a header; the body holds `Type` and `Message`."""
    body = json.dumps({"Type": "User", "Message": str(error.message)}).encode()
    headers = {
        "Content-Type": "application/json",
        "x-amzn-ErrorType": str(error.error_type),
        "x-amzn-RequestId": str(uuid.uuid4()),
    }
    return Answer(int(error.code or 404), headers, body)


def _load(revision: Revision, write: Callable[[str], None]) -> tuple[Archive, Any]:
    if not revision.runtime.startswith("python"):
        raise RuntimeProblem(
            "Runtime.InvalidRuntime",
            f"the local cloud runs Python functions from zip archives, and {revision.name} has "
            f"the runtime {revision.runtime or 'of an image'}",
        )
    module_name, dot, function_name = revision.handler.rpartition(".")
    if not dot:
        raise RuntimeProblem(
            "Runtime.MalformedHandlerName",
            f"Bad handler '{revision.handler}': not enough values to unpack (expected 2, got 1)",
        )
    archive = Archive(revision.code, write)
    try:
        module = archive.import_module(module_name.replace("/", "."))
        return archive, getattr(module, function_name)
    except ImportError as error:
        raise RuntimeProblem(
            "Runtime.ImportModuleError", f"Unable to import module '{module_name}': {error}"
        ) from None
    except SyntaxError as error:
        raise RuntimeProblem(
            "Runtime.UserCodeSyntaxError",
            f"Syntax error in module '{module_name}': {error}",
            [f'  File "{error.filename}" Line {error.lineno}\n    {error.text}'],
        ) from None
    except AttributeError:
        raise RuntimeProblem(
            "Runtime.HandlerNotFound",
            f"Handler '{function_name}' missing on module '{module_name}'",
        ) from None


def _variables(invocation: _Call) -> dict[str, str]:
    """What Lambda sets, with credentials that nobody checks, and the function's own."""
    revision = invocation.revision
    return {
        "AWS_REGION": revision.region,
        "AWS_DEFAULT_REGION": revision.region,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{revision.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": revision.name,
        "AWS_LAMBDA_FUNCTION_VERSION": revision.version,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(revision.memory_mb),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{revision.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"[{revision.version}]local",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "LAMBDA_TASK_ROOT": TASK_ROOT,
        "LANG": "en_US.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TZ": ":UTC",
        "_HANDLER": revision.handler,
        **dict(revision.own_variables),
    }


def _client_context(header: str | None) -> Any:
    try:
        return None if header is None else json.loads(base64.b64decode(header))
    except ValueError:
        return None


# -- in the runtime's form -------------------------------------------------------------------------


def _marshalled(value: Any, runtime: str) -> str:
    """JSON as the runtime writes it: blanks after `,` and `:`; since 3.12 not only ASCII."""
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


def _trace(error: BaseException, archive: Archive) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.filename.startswith(TASK_ROOT)), len(frames))
    return traceback.format_list(
        [_shown(frame, archive) for frame in frames[first:]]  # ours, the runtime's part, are hidden
    )


def _shown(frame: traceback.FrameSummary, archive: Archive) -> tuple[str, int, str, str]:
    number = frame.lineno or 0
    if frame.filename.startswith(f"{TASK_ROOT}/"):
        line = archive.source_line(frame.filename, number)
        return frame.filename, number, frame.name, line
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    shown = frame.filename.replace(STANDARD_LIBRARY, f"/var/lang/lib/{version}", 1)
    return shown, number, frame.name, frame.line or ""


def _problem(invocation: _Call, problem: RuntimeProblem) -> bytes:
    return _error_text(invocation, str(problem), problem.kind, problem.trace)


def _error_text(invocation: _Call, message: str, kind: str, trace: list[str]) -> bytes:
    error = {
        "errorMessage": message,
        "errorType": kind,
        "requestId": invocation.request_id,
        "stackTrace": trace,
    }
    return _marshalled(error, invocation.revision.runtime).encode()


def _timed_out(invocation: _Call) -> bytes:
    seconds = f"{invocation.revision.timeout_seconds:.2f} seconds"
    message = f"RequestId: {invocation.request_id} Error: Task timed out after {seconds}"
    return json.dumps(
        {"errorType": "Sandbox.Timedout", "errorMessage": message}, separators=(",", ":")
    ).encode()


def _too_large(size: int) -> bytes:
    message = (
        f"Response payload size ({size} bytes) exceeded maximum allowed payload size "
        f"({RESPONSE_BYTES_MAX} bytes)."
    )
    error = {"errorMessage": message, "errorType": "Function.ResponseSizeTooLarge"}
    return json.dumps(error, separators=(",", ":")).encode()


def _headers(invocation: _Call) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "x-amzn-RequestId": invocation.request_id,
        "x-amzn-Remapped-Content-Length": "0",
        "X-Amz-Executed-Version": invocation.revision.version,
        "X-Amzn-Trace-Id": f"Root=1-{uuid.uuid4().hex[:8]}-{uuid.uuid4().hex[:24]};Sampled=0",
    }


def _log(invocation: _Call) -> bytes:
    number, version = invocation.request_id, invocation.revision.version
    memory = f"Memory Size: {invocation.revision.memory_mb} MB"
    lines = [
        f"START RequestId: {number} Version: {version}\n",
        *invocation.lines,
        f"END RequestId: {number}\n",
        f"REPORT RequestId: {number}\tDuration: 1.00 ms\tBilled Duration: 1 ms\t{memory}\n",
    ]
    return "".join(lines).encode()
