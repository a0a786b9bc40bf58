"""Lambda functions of the local cloud: Python code from zip archives, run in this process.

moto stores the code, configuration, versions and aliases of a function. This module answers an
invocation, in a thread of its own, as Lambda's Python runtime does. When a function runs out of
time, the invocation is answered as timed out; the thread continues, because Python cannot stop a
thread.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

from moto.awslambda import models
from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.models import LambdaFunction

from holdfast.local.archive import TASK_ROOT, Archive, importable
from holdfast.local.environment import divided, variables
from holdfast.local.lambda_form import (
    RESPONSE_BYTES_MAX,
    LambdaInvocation,
    RuntimeProblem,
    client_context,
    error_text,
    headers_of,
    log_of,
    marshalled,
    payload_refusal,
    problem_text,
    refused,
    timed_out_text,
    too_large_text,
    trace_of,
)
from holdfast.local.revisions import Revision, find_revision, revision_of
from holdfast.local.wall import AwsRequest, AwsResponse

HOST: Final = re.compile(r"lambda\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
PATH: Final = re.compile(r"/2015-03-31/functions/(.+)/invocations/?")

_logger: Final = logging.getLogger(__name__)


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


class Functions:
    """The functions of the local cloud, as a context manager. `door` answers calls. At the end the
    modules that functions have imported are removed.
    """

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
        # moto looks for the role of a function in IAM. A local function needs no role, so let moto
        # find any role.
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

    def door(self, call: AwsRequest) -> AwsResponse | None:
        """Answer `Invoke`; return None for other calls of Lambda, which moto answers."""
        url = urlsplit(call.url)
        host, path = HOST.fullmatch(url.netloc), PATH.fullmatch(unquote(url.path))
        if host is None or path is None or call.method != "POST":
            return None
        qualifier = parse_qs(url.query).get("Qualifier", [None])[0]
        try:
            revision, invoked_arn = find_revision(host[1], path[1], qualifier)
        except LambdaClientError as error:
            return refused(error)
        refusal = payload_refusal(call.body or b"{}")
        return self._invoke(revision, invoked_arn, call) if refusal is None else refused(refusal)

    def _invoke(self, revision: Revision, invoked_arn: str, call: AwsRequest) -> AwsResponse:
        invocation = LambdaInvocation(
            revision,
            str(uuid.uuid4()),
            invoked_arn,
            call.body or b"{}",
            client_context(call.header("x-amz-client-context")),
        )
        match call.header("x-amz-invocation-type"):
            case "DryRun":
                return AwsResponse(204, headers_of(invocation), b"")
            case "Event":
                self._begin(invocation)
                return AwsResponse(202, headers_of(invocation), b"")
            case _:
                self._begin(invocation).join(revision.timeout_seconds)
                return self._answer(invocation, call.header("x-amz-log-type") == "Tail")

    @property
    def _begin_for_moto(self) -> Callable[..., str]:
        """Return a replacement for moto's `LambdaFunction.invoke`, with which moto's topics, rules
        and buckets call a function.

        They call it with moto's lock held. So it does not wait for the result, as on AWS.
        """

        def invoke(function: Any, body: str, *_: Any) -> str:
            revision = revision_of(function)
            self._begin(
                LambdaInvocation(
                    revision, str(uuid.uuid4()), revision.arn, str(body or "{}").encode(), None
                )
            )
            return "{}"

        return invoke

    def _answer(self, invocation: LambdaInvocation, wants_log: bool) -> AwsResponse:
        body, failed = invocation.outcome or (timed_out_text(invocation), True)
        if len(body) > RESPONSE_BYTES_MAX:
            body, failed = too_large_text(len(body)), True
        headers = headers_of(invocation) | {
            "Content-Length": str(len(body)),
            # Only a function that has run has an executed version: the answers to Event and DryRun
            # do not name one.
            "X-Amz-Executed-Version": invocation.revision.version,
        }
        if failed:
            headers["X-Amz-Function-Error"] = "Unhandled"
        if wants_log:
            headers["X-Amz-Log-Result"] = base64.b64encode(log_of(invocation)[-4096:]).decode()
        return AwsResponse(200, headers, body)

    def _begin(self, invocation: LambdaInvocation) -> threading.Thread:
        thread = threading.Thread(
            target=self._run,
            args=(invocation,),
            name=f"function-{invocation.revision.name}",
            # A function that never ends must not keep the process alive.
            daemon=True,
        )
        thread.start()
        return thread

    def _run(self, invocation: LambdaInvocation) -> None:
        self._calls.lines = invocation.lines
        with variables(_variables(invocation)):
            try:
                invocation.outcome = self._result(invocation), False
            except RuntimeProblem as problem:
                invocation.outcome = problem_text(invocation, problem), True
            except BaseException as error:  # noqa: BLE001  # a function may raise anything
                invocation.outcome = self._raised(invocation, error), True

    def _result(self, invocation: LambdaInvocation) -> bytes:
        revision = invocation.revision
        handler = self._handler(revision)
        end_ms = self._clock() + revision.timeout_seconds * 1_000
        context = FunctionContext(
            revision, invocation.request_id, invocation.invoked_arn, lambda: end_ms - self._clock()
        )
        context.client_context = invocation.context
        result = handler(json.loads(invocation.payload), context)
        if isinstance(result, bytes):
            return result
        try:
            return marshalled(result, revision.runtime).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise RuntimeProblem(
                "Runtime.MarshalError", f"Unable to marshal response: {error}"
            ) from None

    def _handler(self, revision: Revision) -> Callable[[Any, Any], Any]:
        """Return the handler, which is imported once for each revision. As in Lambda, a failed
        import is tried again at the next invocation.
        """
        with self._lock:
            lock, found = self._handlers.setdefault(revision, (threading.Lock(), []))
        with lock:
            if not found:
                found.append(_load(revision, self._write))
            handler: Callable[[Any, Any], Any] = found[0][1]
            return handler

    def _raised(self, invocation: LambdaInvocation, error: BaseException) -> bytes:
        with self._lock:
            found = self._handlers.get(invocation.revision, (None, []))[1]
        trace = trace_of(error, found[0][0]) if found else []
        return error_text(invocation, str(error), type(error).__name__, trace)

    def _write(self, text: str) -> None:
        getattr(self._calls, "lines", []).append(text)
        _logger.info("%s", text.rstrip("\n"))


class _AnyRole:
    def get_role_by_arn(self, _arn: str) -> None:
        """Accept every role as existing."""


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


def _variables(invocation: LambdaInvocation) -> dict[str, str]:
    """Return Lambda's own variables, with credentials that are never checked, and those of the
    function.
    """
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
