"""The AWS services that moto (an emulator of AWS) provides for the local cloud.

moto is not thread safe: without the lock, two writers could both be accepted for one condition. Its
clock is replaced as well, because its queues read the time for each message. moto itself would call
subscribers and destinations over HTTP, with the lock held: these calls are refused.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import moto.core.responses
import moto.core.utils
import moto.sqs.models
import requests
from botocore.awsrequest import AWSPreparedRequest
from moto.core.base_backend import AccountSpecificBackend, BackendDict
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models.table import Table
from moto.events.utils import EventTemplateParser
from moto.moto_api._internal import mock_random

from holdfast.errors import HoldfastError
from holdfast.local import wall
from holdfast.local.wall import AwsResponse, Door, header_text, quiet_session, refusal

LOCK: Final = threading.RLock()
# A thread that waits for messages waits for this condition. The function that moto calls to put a
# message into a queue holds the lock and then notifies the thread.
_message_came: Final = threading.Condition(LOCK)
_POLL_SECONDS: Final = 0.05  # nothing signals that a delayed message has become visible, so poll

# The position of the argument with the name of the index. moto calls `Table.query` with positional
# arguments; the positions are counted after the partition key.
INDEX_NAME_POSITION: Final = 6


_logger: Final = logging.getLogger(__name__)
_moto: Final = BotocoreStubber()
_adapter: Final[Any] = requests.adapters.HTTPAdapter
_deliver: Final = _adapter.send
_playing: Final = threading.local()
_unix_time: Final = moto.core.utils.unix_time
_tellers: Final[list[Callable[[], Any]]] = []
_diverted: Final[dict[str, Callable[[str], Any]]] = {}


def begin(clock: Callable[[], int], doors: Sequence[Door] = ()) -> None:
    """Answer all AWS requests of this process from now on, from an empty cloud. Only one cloud in a
    process at a time.
    """
    with LOCK:
        wall.begin(clock, answer_of_moto, doors)
        open_services(clock)


def end() -> None:
    with LOCK:
        wall.end()
        close_services()


def open_services(clock: Callable[[], int]) -> None:
    """Begin with services that are empty."""
    with LOCK:
        BackendDict.reset()
        # The ids of messages are random. With this seed, two runs with the same clock have the same
        # ids.
        mock_random.seed(clock())
        _adapter.send = _deliver_here


def close_services() -> None:
    with LOCK:
        _adapter.send = _deliver
        _diverted.clear()
        BackendDict.reset()


def answer_of_moto(request: AWSPreparedRequest) -> AwsResponse:
    host = request.url.split("/")[2]
    try:
        with LOCK, _on_stage():
            found = _moto.process_request(request)
    except (NotImplementedError, ImportError) as error:
        # moto does not emulate the service, or a library that it needs for it is missing.
        raise refusal(host) from error
    except HoldfastError:
        raise
    except Exception as error:  # moto may fail in any way
        _logger.warning("what plays %s here failed on a request: %s", host, type(error).__name__)
        _logger.debug("the request to %s", host, exc_info=error)
        # Answer with an empty body, which clients read as an error, and with a 501, which they do
        # not retry.
        return AwsResponse(501, {}, b"")
    if found is None:
        raise refusal(host)
    status, headers, body = found
    content = body.encode() if isinstance(body, str) else bytes(body)
    return AwsResponse(
        int(status), {name: header_text(value) for name, value in headers.items()}, content
    )


@contextmanager
def _on_stage() -> Iterator[None]:
    """Inside the block, mark this thread's requests as sent by moto itself."""
    was_on = getattr(_playing, "is_on", False)
    _playing.is_on = True
    try:
        yield
    finally:
        _playing.is_on = was_on


def _deliver_here(adapter: Any, request: requests.PreparedRequest, **named: Any) -> Any:
    """Refuse moto's own calls over HTTP; let requests of functions and tasks pass."""
    if not getattr(_playing, "is_on", False):
        return _deliver(adapter, request, **named)
    _logger.warning("%s", refusal(urlsplit(str(request.url)).netloc).message)
    unheard = requests.Response()
    unheard.status_code = 503
    unheard.url = str(request.url)
    unheard.request = request
    unheard.raw = io.BytesIO()
    return unheard


def _unix_time_now(moment: Any = None) -> float:
    now_ms = wall.now_ms()
    return now_ms / 1_000 if moment is None and now_ms is not None else _unix_time(moment)


def _unix_time_now_millis(moment: Any = None) -> float:
    return _unix_time_now(moment) * 1_000.0


# moto reads the list of regions from a session. Give it this one, because the host's own session
# may name a profile that does not exist.
_regions: Final = quiet_session()
AccountSpecificBackend.get_session = lambda: _regions

# Replace the functions of moto permanently. Its modules copy them when they are first imported,
# which may happen before or after this. As long as there is no cloud, the new functions return the
# system's time, as the old ones do.
_unix_time_millis: Final = moto.core.utils.unix_time_millis
for _module in [module for name, module in sys.modules.items() if name.startswith("moto.")]:
    if getattr(_module, "unix_time", None) is _unix_time:
        _module.unix_time = _unix_time_now  # type: ignore[attr-defined]
    if getattr(_module, "unix_time_millis", None) is _unix_time_millis:
        _module.unix_time_millis = _unix_time_now_millis  # type: ignore[attr-defined]


_serialize_structure: Final = BaseJSONSerializer._serialize_type_structure  # noqa: SLF001


def _serialize_attribute(self: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
    """Serialise an attribute of a message. moto's version looks for each of ten types under six
    names, which takes 0.2 ms.
    """
    if shape.name == "AttributeValue" and value.keys() <= {"S", "N", "B"}:
        ((kind, content),) = value.items()
        serialized[key] = {kind: b64encode(content).decode() if kind == "B" else content}
    else:
        _serialize_structure(self, serialized, value, shape, key)


BaseJSONSerializer._serialize_type_structure = _serialize_attribute  # noqa: SLF001
# Cache the result, because moto would inspect the whole class of a service for each request.
moto.core.responses.method_names_from_class = cache(moto.core.utils.method_names_from_class)


@contextmanager
def telling_of_messages(tell: Callable[[], Any]) -> Iterator[None]:
    """Inside the block, call `tell` whenever a message has been put into a queue."""
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
    """Return the event for a target without a transformer. moto's default template omits the
    account.
    """
    if input_template or input_paths_map:
        return _parse_event(input_template, input_paths_map, event)
    return {name: event[name] for name in _EVENT_MEMBERS if name in event}


EventTemplateParser.parse = staticmethod(_whole_event)

_receive_message: Final = moto.sqs.models.SQSBackend.receive_message


def _receive_without_lock(
    self: Any, queue_name: str, count: int, wait_seconds_timeout: int, *rest: Any, **named: Any
) -> Any:
    """Receive messages with a long poll. moto would sleep with the lock held and block the whole
    cloud.
    """
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


def divert(queue_name: str, take: Callable[[str], Any]) -> None:
    """Pass the bodies of messages for this queue to `take`. The queue stays empty."""
    _diverted[queue_name] = take


def _add_and_tell(self: Any, *arguments: Any, **named: Any) -> Any:
    take = _diverted.get(self.name)
    if take is not None:
        return take(arguments[0].body)
    with LOCK:
        added = _add_message(self, *arguments, **named)
        _message_came.notify_all()
    for tell in tuple(_tellers):
        tell()
    return added


moto.sqs.models.Queue.add_message = _add_and_tell


class PartitionedTable(Table):  # type: ignore[misc]  # moto ships no types
    """moto's table, except that a Query of one partition does not sort the whole table first.

    A Query of an index still reads every item, but compares only its partition key. With 2,100
    executions this halves the time for a page of the list.
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
