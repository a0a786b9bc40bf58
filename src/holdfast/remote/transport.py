"""Requests over HTTP on reused connections.

A new connection to API Gateway needs a TCP and a TLS handshake: three round trips before the
request. So an idle connection is kept and used again. Three problems are handled:

* The server may have closed it. A closed connection is readable, so that is checked before its use.
* It may break while the request is sent. A GET is then sent once more. A POST is not: the API may
  have carried it out.
* A process that forks (gunicorn, Celery) must not use it in both processes, so a child begins with
  none.

Behind a proxy every request opens its own connection, through urllib.
"""

from __future__ import annotations

import os
import selectors
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from holdfast.errors import ServiceFault

#: A function that sends a request, given its method, target and body. It returns the status and the
#: body of the response.
Carry: TypeAlias = Callable[[str, str, bytes], tuple[int, bytes]]
#: A function that returns the headers which prove the sender's identity, given the method, URL and
#: body of a request.
Sign: TypeAlias = Callable[[str, str, bytes], Mapping[str, str]]
#: A function that sends a request, given its method, URL, body and headers. It returns the status
#: and the body of the response.
_Send: TypeAlias = Callable[[str, str, bytes, Mapping[str, str]], tuple[int, bytes]]

TIMEOUT_SECONDS: Final = 35  # API Gateway itself ends a request after 30 seconds
#: A connection that was idle for longer is closed and not used again. While Lambda suspends a
#: function, the server may close a connection without the function noticing it.
IDLE_SECONDS_MAX: Final = 30
IDLE_CONNECTIONS_MAX: Final = 10
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def unsigned(_method: str, _url: str, _body: bytes) -> Mapping[str, str]:
    return {}


def over_http(base: str, sign: Sign, *, server: str = "", authorities: str | None = None) -> Carry:
    """Return the carrier of requests to an API. It raises ServiceFault HF275.

    `server`: an emulator of AWS that answers for the API, and knows it by the header `Host`.
    `authorities`: a file of certificates to trust in place of those of this machine.
    """
    reached = server or base
    split = urlsplit(reached)
    context = ssl.create_default_context(cafile=authorities) if authorities else None
    if _proxy_of(split) is None:
        send: _Send = Connections(split, context)
    else:
        send = _through_proxy(context)
    named = {"Host": urlsplit(base).netloc} if server else {}

    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        signed = sign(method, base + target, body)
        headers = {"Content-Type": "application/json", **named, **signed}
        try:
            return send(method, reached + target, body, headers)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ServiceFault(
                "HF275",
                f"{reached} cannot be reached: {reason}",
                help="start `holdfast serve`, or name another API with --endpoint or --stack",
            ) from None

    return carry


def _proxy_of(split: SplitResult) -> str | None:
    host = split.hostname or ""
    # A proxy cannot reach the loopback address of this machine, so connect directly.
    if host in LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(split.scheme)


def _through_proxy(context: ssl.SSLContext | None) -> _Send:
    def send(method: str, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        request = urllib.request.Request(  # noqa: S310  # `connecting` checks the scheme
            url, data=body or None, headers=dict(headers), method=method
        )
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=TIMEOUT_SECONDS, context=context
            ) as response:
                return int(response.status), bytes(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    return send


class Connections:
    """The connections to one server, for any number of threads."""

    def __init__(self, server: SplitResult, context: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._context = context
        self._idle: list[tuple[HTTPConnection, float]] = []
        self._process = os.getpid()

    def __call__(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        target = url.removeprefix(f"{self._server.scheme}://{self._server.netloc}")
        connection = self._take()
        is_kept = connection.sock is not None
        try:
            return self._send(connection, method, target, body, headers)
        except (ConnectionError, HTTPException):
            if not is_kept or method != "GET":
                raise
        return self._send(self._new(), method, target, body, headers)

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        while (kept := self._pop()) is not None:
            kept[0].close()

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, target, body or None, dict(headers))
            response = connection.getresponse()
            answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return answer

    def _new(self) -> HTTPConnection:
        host, port = self._server.hostname or "", self._server.port
        if self._server.scheme == "https":
            return HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self._context)
        return HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)

    def _take(self) -> HTTPConnection:
        if self._process != os.getpid():
            self._process = os.getpid()
            # This process is a fork. Close its copies of the connections; those of the parent
            # process stay open.
            self._close()
        while (kept := self._pop()) is not None:
            connection, since = kept
            if time.monotonic() - since < IDLE_SECONDS_MAX and _is_open(connection):
                return connection
            connection.close()
        return self._new()

    def _pop(self) -> tuple[HTTPConnection, float] | None:
        try:
            # No lock is needed, because `pop` and `append` of a list are atomic.
            return self._idle.pop()
        except IndexError:
            return None

    def _keep(self, connection: HTTPConnection) -> None:
        if connection.sock is None or len(self._idle) >= IDLE_CONNECTIONS_MAX:
            connection.close()
        else:
            self._idle.append((connection, time.monotonic()))


def _is_open(connection: HTTPConnection) -> bool:
    """Return False when the server has closed the connection, which makes it readable."""
    if connection.sock is None:
        return False
    # Do not use `select`. It fails for a file descriptor above 1,023, which a busy server reaches.
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return not selector.select(0)
