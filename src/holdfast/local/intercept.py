"""Between botocore and the network stands moto, and behind it a wall.

While a local cloud is open, every request that any botocore client of this process would put on the
wire is answered here: by moto, under one lock, or not at all. The wall is at botocore's HTTP
session, the one place that each client, credential provider and metadata look-up passes, whenever
it was made and whatever endpoint, profile or credentials the environment holds. moto itself would
call subscribers and destinations over HTTP, with the lock held: it does not get out either.

moto is not thread safe: without the lock two writers can both win one condition. Its clock is
replaced as well, because its queues read the time for each message that they look at.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import botocore.httpsession
import moto.core.responses
import moto.core.utils
import moto.sqs.models
import requests
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.session import Session
from moto.core.base_backend import AccountSpecificBackend, BackendDict
from moto.core.botocore_stubber import BotocoreStubber, MockRawResponse
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models.table import Table
from moto.events.utils import EventTemplateParser
from moto.moto_api._internal import mock_random

from holdfast.errors import HoldfastBug, HoldfastError, RequestError
from holdfast.local.environment import outside

LOCK: Final = threading.RLock()
# Notified of every message that is put into any queue. moto puts them there with the lock held.
_message_came: Final = threading.Condition(LOCK)
_POLL_SECONDS: Final = 0.05  # a delayed message shows itself by the clock alone

# The position of the argument in `Table.query`, which moto calls with positions; counted after the
# partition key.
INDEX_NAME_POSITION: Final = 6


@dataclass(frozen=True, slots=True)
class AwsRequest:
    """A request to AWS: `url` is that of the service in the account, `body` is unframed."""

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


#: The result is None for a call of another service. Called without the lock.
Door = Callable[[AwsRequest], AwsResponse | None]

_logger: Final = logging.getLogger(__name__)
_moto: Final = BotocoreStubber()
_send: Final = botocore.httpsession.URLLib3Session.send
_adapter: Final[Any] = requests.adapters.HTTPAdapter
_deliver: Final = _adapter.send
_playing: Final = threading.local()
_unix_time: Final = moto.core.utils.unix_time
_clocks: Final[list[Callable[[], int]]] = []
_doors: Final[list[Door]] = []
_tellers: Final[list[Callable[[], Any]]] = []
_own_hosts: Final[set[str]] = set()


def begin(clock: Callable[[], int], doors: Sequence[Door] = ()) -> None:
    """Raises the wall, with an empty cloud behind it. One cloud per process at a time."""
    with LOCK:
        if _clocks:
            raise HoldfastBug("a local cloud is already open in this process")
        BackendDict.reset()
        # Message ids are drawn: the same day on the same clock shall play twice the same.
        mock_random.seed(clock())
        _clocks.append(clock)
        _doors[:] = doors
        _forget_default_session()
        botocore.httpsession.URLLib3Session.send = _send_here
        _adapter.send = _deliver_here


def open_door(door: Door) -> None:
    """Add a door for a service that needs the cloud first. It is removed with the cloud."""
    _doors.append(door)


def let_through(host: str) -> None:
    """Requests to this host and port reach it: it is this cloud's own server, on loopback."""
    _own_hosts.add(host)


def end() -> None:
    with LOCK:
        _clocks.clear()
        _doors.clear()
        _own_hosts.clear()
        botocore.httpsession.URLLib3Session.send = _send
        _adapter.send = _deliver
        BackendDict.reset()
        _forget_default_session()


def _forget_default_session() -> None:
    """boto3 keeps one session for all callers of `boto3.client`, with the region and credentials of
    its first caller: the host's must not be a function's, nor the other way round.
    """
    boto3 = sys.modules.get("boto3")
    if boto3 is not None:
        vars(boto3)["DEFAULT_SESSION"] = None


def answer(call: AwsRequest) -> AwsResponse:
    """Return AWS's answer. Raises RequestError HF260 for a service that the local cloud lacks."""
    for door in _doors:
        found = door(call)
        if found is not None:
            return found
    return _of_moto(
        AWSPreparedRequest(
            call.method, call.url, dict(call.headers), call.body, stream_output=False
        )
    )


def _send_here(session: Any, request: AWSPreparedRequest) -> AWSResponse:
    if urlsplit(request.url).netloc in _own_hosts:
        return _send(session, request)
    with outside():
        found = _of_door(request) or _of_moto(request)
    headers = {**_usual_headers(found), **found.headers}
    return AWSResponse(request.url, found.status, headers, MockRawResponse(found.body))


def _usual_headers(found: AwsResponse) -> dict[str, str]:
    """Fields that every service of AWS sends and moto omits; results of some tasks show them."""
    given = {name.lower() for name in found.headers}
    usual = {
        "Connection": "keep-alive",
        "Content-Length": str(len(found.body)),
        "Date": formatdate(_unix_time_now(), usegmt=True),
    }
    return {name: value for name, value in usual.items() if name.lower() not in given}


def _of_door(request: AWSPreparedRequest) -> AwsResponse | None:
    if not isinstance(request.body, (bytes, str, type(None))):
        return None  # a stream, which only S3 gets
    body = request.body or b""
    call = AwsRequest(
        request.method,
        request.url,
        {name: _text(value) for name, value in request.headers.items()},
        body.encode() if isinstance(body, str) else body,
    )
    for door in _doors:
        found = door(call)
        if found is not None:
            return found
    return None


def _of_moto(request: AWSPreparedRequest) -> AwsResponse:
    host = request.url.split("/")[2]
    try:
        with LOCK, _on_stage():
            found = _moto.process_request(request)
    # moto's service, or a library that it needs, is missing
    except (NotImplementedError, ImportError) as error:
        raise refusal(host) from error
    except HoldfastError:
        raise
    except Exception as error:  # moto is not ours, and may fail in any way
        _logger.warning("what plays %s here failed on a request: %s", host, type(error).__name__)
        _logger.debug("the request to %s", host, exc_info=error)
        # Without a body every client reads an error; clients do not retry it.
        return AwsResponse(501, {}, b"")
    if found is None:
        raise refusal(host)
    status, headers, body = found
    content = body.encode() if isinstance(body, str) else bytes(body)
    return AwsResponse(
        int(status), {name: _text(value) for name, value in headers.items()}, content
    )


@contextmanager
def _on_stage() -> Iterator[None]:
    """Inside, it is moto that acts in this thread."""
    was_on = getattr(_playing, "is_on", False)
    _playing.is_on = True
    try:
        yield
    finally:
        _playing.is_on = was_on


def _deliver_here(adapter: Any, request: requests.PreparedRequest, **named: Any) -> Any:
    """Drops moto's own deliveries; requests of functions and tasks pass."""
    if not getattr(_playing, "is_on", False):
        return _deliver(adapter, request, **named)
    _logger.warning("%s", refusal(urlsplit(str(request.url)).netloc).message)
    unheard = requests.Response()
    unheard.status_code = 503
    unheard.url = str(request.url)
    unheard.request = request
    unheard.raw = io.BytesIO()
    return unheard


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def refusal(host: str) -> RequestError:
    return RequestError(
        "HF260",
        f"a request to {host} was stopped: the local cloud lets nothing out",
        help="use a service that the local cloud has, or deploy the stack",
    )


def _unix_time_now(moment: Any = None) -> float:
    return _clocks[0]() / 1_000 if moment is None and _clocks else _unix_time(moment)


def _unix_time_now_millis(moment: Any = None) -> float:
    return _unix_time_now(moment) * 1_000.0


def quiet_session() -> Session:
    """Return a session for which the host has no profile and no configuration file."""
    unread = (None, None, None, None)
    return Session(session_vars=dict.fromkeys(("profile", "config_file"), unread))


# moto reads the list of regions from a session; the host's own session may name a missing profile.
_regions: Final = quiet_session()
AccountSpecificBackend.get_session = lambda: _regions

# Once and for good: moto's modules copy these functions when they are first imported, which may
# have been before this one or may be while a cloud is open. Without a cloud they give the system's
# time, as moto's own do.
_unix_time_millis: Final = moto.core.utils.unix_time_millis
for _module in [module for name, module in sys.modules.items() if name.startswith("moto.")]:
    if getattr(_module, "unix_time", None) is _unix_time:
        _module.unix_time = _unix_time_now  # type: ignore[attr-defined]
    if getattr(_module, "unix_time_millis", None) is _unix_time_millis:
        _module.unix_time_millis = _unix_time_now_millis  # type: ignore[attr-defined]


_serialize_structure: Final = BaseJSONSerializer._serialize_type_structure  # noqa: SLF001


def _serialize_attribute(self: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
    """moto looks for each of an attribute's ten types under six names: 0.2 ms per attribute."""
    if shape.name == "AttributeValue" and value.keys() <= {"S", "N", "B"}:
        ((kind, content),) = value.items()
        serialized[key] = {kind: b64encode(content).decode() if kind == "B" else content}
    else:
        _serialize_structure(self, serialized, value, shape, key)


BaseJSONSerializer._serialize_type_structure = _serialize_attribute  # noqa: SLF001
# moto inspects the whole class of a service for each request.
moto.core.responses.method_names_from_class = cache(moto.core.utils.method_names_from_class)


@contextmanager
def telling_of_messages(tell: Callable[[], Any]) -> Iterator[None]:
    """Call `tell`, inside the block, whenever a message has been put into any queue."""
    _tellers.append(tell)
    try:
        yield
    finally:
        _tellers.remove(tell)


_parse_event: Final = EventTemplateParser.parse
_EVENT_MEMBERS: Final = (
    "version",
    "id",
    "detail-type",
    "source",
    "account",
    "time",
    "region",
    "resources",
    "detail",
)


def _whole_event(input_template: Any, input_paths_map: Any, event: dict[str, Any]) -> Any:
    """The event for a target without a transformer. moto's default template omits the account."""
    if input_template or input_paths_map:
        return _parse_event(input_template, input_paths_map, event)
    return {name: event[name] for name in _EVENT_MEMBERS if name in event}


EventTemplateParser.parse = staticmethod(_whole_event)

_receive_message: Final = moto.sqs.models.SQSBackend.receive_message


def _receive_without_lock(
    self: Any, queue_name: str, count: int, wait_seconds_timeout: int, *rest: Any, **named: Any
) -> Any:
    """A long poll. moto sleeps through it and would block the whole cloud meanwhile."""
    end = time.monotonic() + (wait_seconds_timeout or 0)
    while True:
        with LOCK:
            found = _receive_message(self, queue_name, count, 0, *rest, **named)
            left = end - time.monotonic()
            if found or left <= 0:
                return found
            _message_came.wait(min(left, _POLL_SECONDS))


moto.sqs.models.SQSBackend.receive_message = _receive_without_lock
_add_message: Final = moto.sqs.models.Queue.add_message


def _add_and_tell(self: Any, *arguments: Any, **named: Any) -> Any:
    with LOCK:
        added = _add_message(self, *arguments, **named)
        _message_came.notify_all()
    for tell in tuple(_tellers):
        tell()
    return added


moto.sqs.models.Queue.add_message = _add_and_tell


class PartitionedTable(Table):  # type: ignore[misc]  # moto ships no types
    """moto's table, except that a Query of one partition does not sort the whole table first.

    A Query of an index still looks at every item, but compares its partition key alone. With 2,100
    executions this halves the time of a page of the list.
    """

    _asked: Any = None
    _index_key: str | None = None

    def query(self, hash_key: Any, *arguments: Any, **named: Any) -> Any:
        index_name = arguments[INDEX_NAME_POSITION]
        self._asked = hash_key
        self._index_key = None if index_name is None else self._hash_attribute(index_name)
        try:
            return super().query(hash_key, *arguments, **named)
        finally:
            self._asked = self._index_key = None

    def _hash_attribute(self, index_name: str) -> str:
        index = next(one for one in self.all_indexes() if one.name == index_name)
        return str(next(key["AttributeName"] for key in index.schema if key["KeyType"] == "HASH"))

    def all_items(self) -> list[Any]:
        if self._asked is None:
            return list(super().all_items())
        if self._index_key is None:
            return list(self.items.get(self._asked, {}).values())
        name, wanted = self._index_key, self._asked.value
        return [
            item
            for partition in self.items.values()
            for item in partition.values()
            if name in item.attrs and item.attrs[name].value == wanted
        ]
