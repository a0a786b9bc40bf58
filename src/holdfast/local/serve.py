"""`holdfast serve`: the deployed API's own handler on loopback, beside a running local cloud.

The server only translates: HTTP in, an API Gateway event to the handler, its answer out. It listens
on 127.0.0.1 and refuses what a web page could send from a browser on the same machine: requests
for another host name, and requests that name an origin.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from holdfast.deployment import Deployment
from holdfast.errors import HoldfastBug, HoldfastError, RequestError
from holdfast.limits import BODY_BYTES_MAX
from holdfast.local.clock import SystemClock
from holdfast.local.gateway import LOOPBACK
from holdfast.local.pump import Pump
from holdfast.local.stack import LocalStack, local_stack

SOCKET_TIMEOUT_SECONDS: Final = 30
# What runs is let finish: the cloud must not go while a handler still calls it.
STOP_SECONDS: Final = 60
POLL_SECONDS: Final = 0.05
# Of a refused body so much is thrown away, so that the sender gets to read why it was refused.
DISCARDED_BYTES_MAX: Final = 4 * BODY_BYTES_MAX
CHUNK_BYTES: Final = 65_536

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """`ended` is set when the local cloud has stopped, which only an error makes it do."""

    url: str
    ended: threading.Event


@contextmanager
def serving(deployment: Deployment, port: int) -> Iterator[Served]:
    """A stack on the system's clock, with its API on loopback; gone when the context ends."""
    with local_stack(deployment, SystemClock()) as stack, _server(stack, port) as server:
        stop, ended = threading.Event(), threading.Event()
        threads = [
            threading.Thread(target=server.serve_forever, name="http", args=(POLL_SECONDS,)),
            threading.Thread(target=_play, name="pump", args=(stack.pump, stop, ended)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield Served(f"http://{LOOPBACK}:{server.server_address[1]}", ended)
        finally:
            server.shutdown()
            stop.set()
            for thread in threads:
                thread.join(STOP_SECONDS)


def _play(pump: Pump, stop: threading.Event, ended: threading.Event) -> None:
    try:
        pump.run_forever(stop)
    except Exception as error:  # noqa: BLE001  # the command must end; an error of any kind ends it
        _log_bug("the local cloud stopped", error)
    finally:
        ended.set()


def _log_bug(what: str, error: Exception) -> None:
    """The terminal gets a sentence. A traceback is long, and its message may quote user data."""
    _logger.error("%s: %s", what, type(error).__name__)
    _logger.debug("%s", what, exc_info=error)


def _server(stack: LocalStack, port: int) -> _Server:
    try:
        return _Server(stack, port)
    except (OSError, OverflowError) as error:
        raise RequestError(
            "HF277",
            f"cannot listen on {LOOPBACK}:{port}: {error}",
            help="choose another port with --port; 0 takes any that is free",
        ) from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, stack: LocalStack, port: int) -> None:
        self.stack = stack
        super().__init__((LOOPBACK, port), _Request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that hangs up in the middle is no concern of the terminal."""
        _logger.debug("the connection of %s ended early", client_address)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT_SECONDS
    server: _Server

    def _serve(self) -> None:
        try:
            self._require_local()
            body = self.rfile.read(self._body_length())
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(*self.server.stack.request(self.command, self.path, body, headers))
        except RequestError as error:
            # What is left of a refused body must not be read as the next request.
            self.close_connection = True
            self._answer_problem(error.status, error)
            self._discard_body()
        except TimeoutError:
            self.close_connection = True
        except Exception as error:  # noqa: BLE001  # the client gets an answer whatever went wrong
            _log_bug("a request was not served", error)
            self._answer_problem(500, HoldfastBug(f"the API failed with {type(error).__name__}"))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815

    def _require_local(self) -> None:
        host, port = self.headers.get("Host", ""), self.server.server_address[1]
        own = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        origin = self.headers.get("Origin")
        if host not in own or (origin is not None and origin.removeprefix("http://") not in own):
            raise RequestError(
                "HF278",
                "the request comes from elsewhere",
                status=403,
                help=f"`serve` answers programs on this machine, at http://{LOOPBACK}:{port}",
            )

    def _body_length(self) -> int:
        if "Transfer-Encoding" in self.headers:
            raise RequestError("HF279", "a body needs a Content-Length", status=411)
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            raise RequestError("HF279", "Content-Length is not a number")
        # Compared as text first: the number could be longer than Python likes to convert.
        if len(text) > 18 or int(text) > BODY_BYTES_MAX:
            raise RequestError("HF241", f"the body is over {BODY_BYTES_MAX} bytes", status=413)
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

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses, in the form of every other refusal."""
        self.close_connection = True
        reason = message or explain or HTTPStatus(code).phrase
        self._answer_problem(code, RequestError("HF279", reason, status=code))

    def version_string(self) -> str:
        return "holdfast"

    def log_message(self, *_: Any) -> None:
        """Requests are not logged: paths hold business keys."""
