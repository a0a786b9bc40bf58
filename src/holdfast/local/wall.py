"""Stops every AWS request of this process from reaching the network while a local cloud is open.

Every request that any botocore client of this process would send is answered here: by a door (a
function that answers for one service), by the services of the cloud, or with an error. The code
replaces botocore's HTTP session. Each client, credential provider and metadata look-up uses that
session, whatever endpoint, profile or credentials the environment has.

The services are moto's (`intercept`). This module imports neither moto nor botocore: a `serve`
whose tasks call no service of AWS never loads them. A task that imports botocore later gets the
replaced session, too.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from holdfast.errors import HoldfastBug, RequestError
from holdfast.integrations import ServiceClients
from holdfast.local.environment import outside
from holdfast.local.gateway import REGION

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.session import Session

_MODULE: Final = "botocore.httpsession"


@dataclass(frozen=True, slots=True)
class AwsRequest:
    """A request to AWS. `url` is that of the service in the account; `body` is without chunk
    frames.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str | None:
        found = (value for key, value in self.headers.items() if key.lower() == name)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class AwsResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


#: A function that answers for one service, or returns None for a call of another service. It is
#: called without a lock.
Door: TypeAlias = Callable[[AwsRequest], AwsResponse | None]
#: A function that answers every request that no `Door` has answered. Raises RequestError HF260 for
#: a service that is not emulated.
Services: TypeAlias = "Callable[[AWSPreparedRequest], AwsResponse]"


@dataclass(frozen=True, slots=True)
class _Behind:
    """The cloud that answers requests."""

    clock: Callable[[], int]
    services: Services


_lock: Final = threading.Lock()
_behind: Final[list[_Behind]] = []
_doors: Final[list[Door]] = []
_own_hosts: Final[set[str]] = set()
#: The functions with which botocore sends a request. They are kept here as long as this module
#: intercepts requests.
_sends: Final[list[Callable[[Any, Any], AWSResponse]]] = []


class _AtImport(MetaPathFinder):
    """Replaces the session as soon as botocore's module is imported, before anything can use it."""

    def find_spec(
        self, name: str, _path: Any = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader, execute = spec.loader, spec.loader.exec_module

            def execute_and_guard(module: ModuleType) -> None:
                execute(module)
                if _behind:
                    _raise_before(module)

            loader.exec_module = execute_and_guard  # type: ignore[method-assign]
        return spec


_at_import: Final = _AtImport()


def _raise_before(module: ModuleType) -> None:
    _sends.append(module.URLLib3Session.send)
    module.URLLib3Session.send = _send_here


def begin(clock: Callable[[], int], services: Services, doors: Sequence[Door] = ()) -> None:
    """Begin to answer requests. Only one cloud in a process at a time."""
    with _lock:
        if _behind:
            raise HoldfastBug("a local cloud is already open in this process")
        _behind.append(_Behind(clock, services))
        _doors[:] = doors
        _forget_default_session()
        module = sys.modules.get(_MODULE)
        if module is None:
            sys.meta_path.insert(0, _at_import)
        else:
            _raise_before(module)


def end() -> None:
    with _lock:
        _behind.clear()
        _doors.clear()
        _own_hosts.clear()
        if _at_import in sys.meta_path:
            sys.meta_path.remove(_at_import)
        if _sends:
            sys.modules[_MODULE].URLLib3Session.send = _sends.pop()
        _forget_default_session()


def open_door(door: Door) -> None:
    """Add a function that answers for one service before the cloud does. It is removed with the
    cloud.
    """
    _doors.append(door)


def let_through(host: str) -> None:
    """Let requests to this host and port reach the network: it is the server of this cloud, on
    loopback.
    """
    _own_hosts.add(host)


def now_ms() -> int | None:
    """Return the time of the open cloud; None without a cloud."""
    return _behind[0].clock() if _behind else None


def answer(call: AwsRequest) -> AwsResponse:
    """Return AWS's response. Raises RequestError HF260 for a service that the local cloud lacks."""
    for door in tuple(_doors):
        found = door(call)
        if found is not None:
            return found
    from botocore.awsrequest import AWSPreparedRequest  # noqa: PLC0415

    return _behind[0].services(
        AWSPreparedRequest(
            call.method, call.url, dict(call.headers), call.body, stream_output=False
        )
    )


def refusal(host: str) -> RequestError:
    return RequestError(
        "HF260",
        f"a request to {host} was stopped: the local cloud lets nothing out",
        help="use a service that the local cloud has, or deploy the stack",
    )


def header_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def quiet_session() -> Session:
    """Return a session that reads neither a profile nor a configuration file of the host."""
    from botocore.session import Session  # noqa: PLC0415

    unread = (None, None, None, None)
    return Session(session_vars=dict.fromkeys(("profile", "config_file"), unread))


def service_clients() -> ServiceClients:
    """Return clients for the services that state machines call. Their calls do not count as
    cost.
    """
    from botocore.config import Config  # noqa: PLC0415

    session = quiet_session()
    session.set_credentials("local", "local")
    session.set_default_client_config(Config(ignore_configured_endpoint_urls=True))
    return ServiceClients(session, REGION)


def _forget_default_session() -> None:
    """Forget boto3's default session. boto3 keeps one for all callers of `boto3.client`, with the
    region and credentials of its first caller. A function must not get those of the host, nor the
    host those of a function.
    """
    boto3 = sys.modules.get("boto3")
    if boto3 is not None:
        vars(boto3)["DEFAULT_SESSION"] = None


def _send_here(session: Any, request: AWSPreparedRequest) -> AWSResponse:
    if urlsplit(request.url).netloc in _own_hosts:
        return _sends[0](session, request)
    from botocore.awsrequest import AWSResponse  # noqa: PLC0415

    with outside():
        found = _of_door(request) or _behind[0].services(request)
    headers = {**_usual_headers(found), **found.headers}
    return AWSResponse(request.url, found.status, headers, _RawBody(found.body))


class _RawBody(io.BytesIO):
    """The part of urllib3's response from which botocore reads a body."""

    def stream(self, amount: int = 65_536, **_: Any) -> Any:
        while chunk := self.read(amount):
            yield chunk


def _usual_headers(found: AwsResponse) -> dict[str, str]:
    """Return headers that every AWS service sends and moto omits. The results of some tasks show
    them.
    """
    given = {name.lower() for name in found.headers}
    now = now_ms()
    usual = {
        "Connection": "keep-alive",
        "Content-Length": str(len(found.body)),
        "Date": formatdate(time.time() if now is None else now / 1_000, usegmt=True),
    }
    return {name: value for name, value in usual.items() if name.lower() not in given}


def _of_door(request: AWSPreparedRequest) -> AwsResponse | None:
    if not isinstance(request.body, (bytes, str, type(None))):
        # The body is a stream, which only S3 gets, and no `Door` stands for S3.
        return None
    body = request.body or b""
    call = AwsRequest(
        request.method,
        request.url,
        {name: header_text(value) for name, value in request.headers.items()},
        body.encode() if isinstance(body, str) else body,
    )
    for door in tuple(_doors):
        found = door(call)
        if found is not None:
            return found
    return None
