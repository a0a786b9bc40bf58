"""`holdfast serve`: the handler of the deployed API on the loopback address, with a running local
cloud.

The server only converts: an HTTP request to an API Gateway event for the handler, and its response
back. Requests in one of AWS's protocols are passed to AWS's API (see `endpoint`), with any
signature. The server listens on 127.0.0.1. It refuses requests that a web page could send from a
browser on the same machine: those for another host name, and those that come from another site
according to the browser.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from holdfast.aws.host import Host
from holdfast.deployment import Deployment
from holdfast.errors import HoldfastBug, HoldfastError, RequestError, ServiceFault
from holdfast.limits import BODY_BYTES_MAX, PAYLOAD_BYTES_MAX
from holdfast.local import endpoint, wall
from holdfast.local.clock import LeadClock, SystemClock
from holdfast.local.debugging import DebugClock, breakpoints
from holdfast.local.gateway import LOOPBACK
from holdfast.local.pump import Pump
from holdfast.local.same_machine import require_local
from holdfast.local.stack import LocalStack, local_stack, stored_stack
from holdfast.local.task_lines import TaskLines, task_lines
from holdfast.resources import FORMS_PATH
from holdfast.runtime.question_events import QuestionEvents

SOCKET_TIMEOUT_SECONDS: Final = 30
# The time that running handlers may take to finish. Unfinished work stays stored, and the next
# `serve` continues it. By default Docker kills a container after 10 seconds and Kubernetes after
# 30.
DRAIN_SECONDS: Final = 25
STOP_SECONDS: Final = 5
POLL_SECONDS: Final = 0.05
# This many bytes of a refused body are read and dropped, so that the client finishes sending and
# can read the reason.
DISCARDED_BYTES_MAX: Final = 4 * BODY_BYTES_MAX
CHUNK_BYTES: Final = 65_536
# The limit for a request to an emulated service of AWS. Objects and archives of functions are
# larger than the bodies of Holdfast's own API.
AWS_BODY_BYTES_MAX: Final = 256_000_000

#: The clock may be moved forward by at most a year at once. By more, it could pass the last time
#: that some formats can represent.
ADVANCE_MS_MAX: Final = 366 * 86_400_000

#: Headers that belong to the connection. This server sets them itself, so they are not copied from
#: the response of an emulated service.
HOP_HEADERS: Final = frozenset(
    {"connection", "date", "server", "status", "transfer-encoding", "keep-alive"}
)

_JSON_HEADERS: Final = {"Content-Type": "application/json"}
#: The route for the log lines of an execution. Only `serve` has it, because those of a deployed
#: stack are in CloudWatch.
_LOGS: Final = re.compile(r"/executions/([^/?]+)/logs")

_logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Served:
    """A running `serve`. `ended` is set when the local cloud has stopped, which happens only after
    an error.

    `is_drained`: no handler was running at the end of the context.
    """

    url: str
    clock: LeadClock
    ended: threading.Event
    is_drained: bool = True


@contextmanager
def serving(
    deployment: Deployment,
    port: int,
    payload_bytes_max: int | None = PAYLOAD_BYTES_MAX,
    *,
    data: Path | None = None,
    archive: Path | None = None,
    is_debugged: bool = False,
    has_history_limit: bool = False,
) -> Iterator[Served]:
    """Run a stack with the system's clock, and its API on the loopback address.

    * `data`: the SQLite file that stores the stack; None: memory, lost at the end of the context.
    * `archive`: the folder in which a stack in a file stores executions that have ended.
    * `payload_bytes_max`: AWS's limit on the data of state machines; None: no limit.
    * `has_history_limit`: executions of state machines end at AWS's 25,000 events.
    * `is_debugged`: the clock stands still while a debugger has stopped a task.
    """
    machine = DebugClock() if is_debugged else SystemClock()
    limit = payload_bytes_max
    kept = (
        local_stack(deployment, LeadClock(machine), payload_bytes_max=limit)
        if data is None
        else stored_stack(deployment, data, machine, payload_bytes_max=limit, archive=archive)
    )
    with (
        task_lines() as lines,
        breakpoints(machine) if isinstance(machine, DebugClock) else nullcontext(),
        kept as stack,
        _server(stack, port, lines) as server,
    ):
        stack.host.has_history_limit = has_history_limit
        stack.host.may_reveal_secrets = True
        url = f"http://{LOOPBACK}:{server.server_address[1]}"
        wall.let_through(url.removeprefix("http://"))
        _announce_questions(stack.host, url)
        with _running(stack, server, url) as served:
            yield served


@contextmanager
def _running(stack: LocalStack[Any], server: _Server, url: str) -> Iterator[Served]:
    """Run the server and the pump in a thread each, and let running handlers finish at the end."""
    stop, ended = threading.Event(), threading.Event()
    http = threading.Thread(target=server.serve_forever, name="http", args=(POLL_SECONDS,))
    pump = threading.Thread(target=_play, name="pump", args=(stack.pump, stop, ended))
    http.start()
    pump.start()
    clock = stack.cloud.clock
    assert isinstance(clock, LeadClock)
    served = Served(url, clock, ended)
    try:
        yield served
    finally:
        # The server still answers until the handlers have finished, because they may call the API.
        server.is_draining = True
        stop.set()
        stack.pump.wake()
        pump.join(DRAIN_SECONDS)
        served.is_drained = not pump.is_alive()
        server.shutdown()
        http.join(STOP_SECONDS)


def _announce_questions(host: Host, url: str) -> None:
    """Let the worker publish events about opened questions, with links to the forms of this
    server.
    """
    told = QuestionEvents("local", url, host.setting.keys)
    host.setting = replace(host.setting, question_events=told)


def _play(pump: Pump, stop: threading.Event, ended: threading.Event) -> None:
    try:
        pump.run_forever(stop)
    except Exception as error:  # noqa: BLE001  # the command must end; an error of any kind ends it
        _log_bug("the local cloud stopped", error)
    finally:
        ended.set()


def _log_bug(what: str, error: Exception) -> None:
    """Log one sentence. A traceback is long, and its message may quote the user's data."""
    _logger.error("%s: %s", what, type(error).__name__)
    _logger.debug("%s", what, exc_info=error)


def _server(stack: LocalStack[Any], port: int, lines: TaskLines) -> _Server:
    try:
        return _Server(stack, port, lines)
    except (OSError, OverflowError) as error:
        raise RequestError(
            "HF277",
            f"cannot listen on {LOOPBACK}:{port}: {error}",
            help="choose another port with --port; 0 takes any that is free",
        ) from None


def _too_large(bytes_max: int) -> RequestError:
    return RequestError("HF241", f"the body is over {bytes_max} bytes", status=413)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Many clients may connect at once, so use a long queue for connections that are not accepted
    # yet.
    request_queue_size = 128

    def __init__(self, stack: LocalStack[Any], port: int, lines: TaskLines) -> None:
        self.stack, self.lines = stack, lines
        self.is_draining = False
        super().__init__((LOOPBACK, port), _Request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Print nothing about a client that disconnects early."""
        _logger.debug("the connection of %s ended early", client_address)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT_SECONDS
    # The head and the body of an answer are sent in two segments. With Nagle's algorithm the second
    # one would wait 40 ms for the client's acknowledgement of the first.
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        try:
            headers = {name.lower(): value for name, value in self.headers.items()}
            is_for_aws = endpoint.is_for_aws(self.command, self.path, headers)
            self._require_local(is_for_aws)
            if is_for_aws:
                self._serve_aws(headers)
                return
            body = self._read(self._body_length(BODY_BYTES_MAX))
            if (self.command, self.path) in self._OWN:
                self._answer(*self._OWN[self.command, self.path](self, body))
                return
            logged = _LOGS.fullmatch(self.path)
            if self.command == "GET" and logged is not None:
                rows = self.server.lines.of(unquote(logged[1]))
                self._answer(HTTPStatus.OK, json.dumps({"lines": rows}).encode())
                return
            found = self.server.stack.request(self.command, self.path, body, headers)
            self._answer(found.status, found.body, found.headers)
        except RequestError as error:
            # Close the connection after the answer. Otherwise the rest of the refused body would be
            # read as the next request.
            self.close_connection = True
            self._answer_problem(error.status, error)
            self._discard_body()
        except (TimeoutError, ConnectionError):
            self.close_connection = True
        except Exception as error:  # noqa: BLE001  # the client gets an answer whatever went wrong
            _log_bug("a request was not served", error)
            self._answer_problem(500, HoldfastBug(f"the API failed with {type(error).__name__}"))

    def _health(self, _body: bytes) -> tuple[int, bytes]:
        """Return 200 when the stack stores and works, 503 when it is ending or its file cannot be
        written.
        """
        status = "draining" if self.server.is_draining else "ok"
        cloud = self.server.stack.cloud
        found: dict[str, Any] = {"status": status}
        try:
            found |= {**cloud.health(), "clock_lead_seconds": cloud.clock.lead_ms // 1_000}
        except ServiceFault as fault:
            found = {"status": "failing", "error": {"code": fault.code, "message": fault.message}}
        return 200 if found["status"] == "ok" else 503, json.dumps(found).encode()

    def _advance(self, body: bytes) -> tuple[int, bytes]:
        """Move the clock of this stack forward."""
        try:
            milliseconds = json.loads(body)["milliseconds"]
        except (ValueError, TypeError, KeyError, RecursionError):
            milliseconds = None
        if type(milliseconds) is not int or not 0 < milliseconds <= ADVANCE_MS_MAX:
            raise RequestError(
                "HF286",
                f"the clock can be moved on by 1 to {ADVANCE_MS_MAX} milliseconds",
                help='{"milliseconds": 86400000}',
            )
        clock = self.server.stack.cloud.clock
        clock.advance(milliseconds)
        return 200, json.dumps({"clock_lead_seconds": clock.lead_ms // 1_000}).encode()

    #: The routes about this process. A deployed API does not have them.
    _OWN: Final = {("GET", "/health"): _health, ("POST", "/clock"): _advance}

    def _serve_aws(self, headers: dict[str, str]) -> None:
        body = self._aws_body()
        here = f"http://{LOOPBACK}:{self.server.server_address[1]}"
        found = self.server.stack.aws_request(self.command, self.path, body, headers, here)
        has_body = self.command != "HEAD" and found.status not in {204, 304}
        self.send_response(found.status)
        for name, value in found.headers.items():
            is_size = name.lower() == "content-length"
            # Keep the length in the answer to a HEAD. It is that of the object, and only the
            # service knows it.
            if name.lower() not in HOP_HEADERS and not (is_size and has_body):
                self.send_header(name, value)
        if has_body:
            self.send_header("Content-Length", str(len(found.body)))
        self.end_headers()
        if has_body:
            self.wfile.write(found.body)

    def _aws_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self._read(self._body_length(AWS_BODY_BYTES_MAX))
        parts: list[bytes] = []
        left = AWS_BODY_BYTES_MAX
        while size := self._chunk_size():
            left -= size
            if left < 0:
                raise _too_large(AWS_BODY_BYTES_MAX)
            parts.append(self._read(size))
            # Skip the line end after the chunk.
            self.rfile.readline(3)
        while self.rfile.readline(CHUNK_BYTES).strip():
            """Return the body. The trailing headers are dropped, because no service needs them."""
        return b"".join(parts)

    def _read(self, size: int) -> bytes:
        """Read `size` bytes. Raises ConnectionError when the client disconnects earlier: half a
        body must not be processed as a request.
        """
        content = self.rfile.read(size)
        if len(content) < size:
            raise ConnectionAbortedError
        return content

    def _chunk_size(self) -> int:
        text = self.rfile.readline(100).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", text):
            raise RequestError("HF279", "the chunks of the body do not add up")
        return int(text, 16)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815

    def _require_local(self, is_for_aws: bool) -> None:
        values: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            values.setdefault(name.lower(), []).append(value)
        # A link in a mail may lead to a form from another site. Showing a form changes nothing, but
        # a request to a service of AWS under such a path could.
        is_form = self.command == "GET" and self.path.startswith(FORMS_PATH) and not is_for_aws
        require_local(values, self.server.server_address[1], may_be_linked=is_form)

    def _body_length(self, bytes_max: int) -> int:
        if "Transfer-Encoding" in self.headers:
            raise RequestError("HF279", "a body needs a Content-Length", status=411)
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            raise RequestError("HF279", "Content-Length is not a number")
        # Compare the length of the text first, because Python refuses to convert a very long
        # number.
        if len(text) > 18 or int(text) > bytes_max:
            raise _too_large(bytes_max)
        return int(text)

    def _discard_body(self) -> None:
        self.connection.settimeout(1)
        left = DISCARDED_BYTES_MAX if self.command == "POST" else 0
        while left > 0:
            chunk = self.rfile.read1(CHUNK_BYTES)
            left = left - len(chunk) if chunk else 0

    def _answer_problem(self, status: int, error: HoldfastError) -> None:
        problem = {"code": error.code, "message": error.message, "help": error.help}
        shown = {name: text for name, text in problem.items() if text}
        self._answer(status, json.dumps({"error": shown}).encode())

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] = _JSON_HEADERS) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a refusal of the standard library's server in the form of Holdfast's refusals."""
        self.close_connection = True
        reason = message or explain or HTTPStatus(code).phrase
        self._answer_problem(code, RequestError("HF279", reason, status=code))

    def version_string(self) -> str:
        return "holdfast"

    def log_message(self, *_: Any) -> None:
        """Log no requests, because paths contain business keys."""
