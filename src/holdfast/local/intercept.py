"""Between botocore and the network stands moto, and behind it a wall.

While a local cloud is open, every request that any botocore client of this process would put on the
wire is answered here: by moto, under one lock, or not at all. The wall is at botocore's HTTP
session, the one place that each client, credential provider and metadata look-up passes, whenever
it was made and whatever endpoint, profile or credentials the environment holds.

moto is not thread safe: without the lock two writers can both win one condition. Its clock is
replaced as well, because its queues read the time for each message that they look at.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import botocore.httpsession
import moto.core.responses
import moto.core.utils
import moto.sqs.models
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.session import Session
from moto.core.base_backend import AccountSpecificBackend, BackendDict
from moto.core.botocore_stubber import BotocoreStubber, MockRawResponse
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models.table import Table
from moto.moto_api._internal import mock_random

from holdfast.errors import HoldfastBug, RequestError

LOCK: Final = threading.RLock()

# Of `Table.query`, which moto calls with positions; counted after the partition key.
INDEX_NAME_POSITION: Final = 6

_moto: Final = BotocoreStubber()
_send: Final = botocore.httpsession.URLLib3Session.send
_unix_time: Final = moto.core.utils.unix_time
_clocks: Final[list[Callable[[], int]]] = []


def begin(clock: Callable[[], int]) -> None:
    """Raises the wall, with an empty cloud behind it. One cloud per process at a time."""
    with LOCK:
        if _clocks:
            raise HoldfastBug("a local cloud is already open in this process")
        BackendDict.reset()
        # Message ids are drawn: the same day on the same clock shall play twice the same.
        mock_random.seed(clock())
        _clocks.append(clock)
        botocore.httpsession.URLLib3Session.send = _answer


def end() -> None:
    with LOCK:
        _clocks.clear()
        botocore.httpsession.URLLib3Session.send = _send
        BackendDict.reset()


def _answer(_: Any, request: AWSPreparedRequest) -> AWSResponse:
    host = request.url.split("/")[2]
    try:
        with LOCK:
            answer = _moto.process_request(request)
    except NotImplementedError as error:
        raise _refusal(host) from error
    if answer is None:
        raise _refusal(host)
    status, headers, body = answer
    return AWSResponse(request.url, status, headers, MockRawResponse(body))


def _refusal(host: str) -> RequestError:
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
    """-> a session for which the host has no profile and no configuration file."""
    unread = (None, None, None, None)
    return Session(session_vars=dict.fromkeys(("profile", "config_file"), unread))


# moto asks a session for the list of regions; the host's own may name a profile that is not there.
_regions: Final = quiet_session()
AccountSpecificBackend.get_session = lambda: _regions

# Once and for good: moto's modules copy these functions when they are first imported, which may be
# while a cloud is open. Without one they give the system's time, as moto's own do.
for _module in (moto.core.utils, moto.sqs.models):
    _module.unix_time = _unix_time_now
    _module.unix_time_millis = _unix_time_now_millis


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


class PartitionedTable(Table):  # type: ignore[misc]  # moto ships no types
    """moto's table, except that a Query of one partition does not sort the whole table first."""

    _asked: Any = None

    def query(self, hash_key: Any, *arguments: Any, **named: Any) -> Any:
        index_name = arguments[INDEX_NAME_POSITION]
        self._asked = None if index_name else hash_key
        try:
            return super().query(hash_key, *arguments, **named)
        finally:
            self._asked = None

    def all_items(self) -> list[Any]:
        if self._asked is None:
            return list(super().all_items())
        return list(self.items.get(self._asked, {}).values())
