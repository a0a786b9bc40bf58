"""Requests: a caller asks a running execution and gets its reply."""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from holdfast.api.harness import Cancelled, Harness, time_out_seconds
from holdfast.api.task_errors import RequestCancelled
from holdfast.limits import REQUEST_SUFFIX

T_co = TypeVar("T_co", covariant=True)

#: The cause of the rejection when the block of a request is cancelled.
REQUEST_CANCELLED: Final = "the workflow was stopped, or its time was over, before it replied"


class Request(Protocol[T_co]):
    """One request. `id` identifies it; `data` is what the caller has sent."""

    @property
    def id(self) -> str: ...
    @property
    def data(self) -> T_co: ...
    def reply(self, value: object, /) -> None:
        """Send this result to the caller. It must be the last statement of the block."""


class Received(Generic[T_co]):
    """The block `with receive(…) as request:`. An error in it rejects the request, and the workflow
    continues after the block.
    """

    def __init__(
        self, stand_in: Harness, name: str, payload: Any, key: str, timeout: timedelta | None
    ) -> None:
        self._stand_in = stand_in
        self._wait = (name, payload, key, timeout)
        self.id = ""
        self.data: Any = None

    def __enter__(self) -> Request[T_co]:
        name, payload, key, timeout = self._wait
        self.id, self.data = self._stand_in.wait(
            "event",
            name + REQUEST_SUFFIX,
            tuple[str, payload],  # type: ignore[valid-type]
            arguments={"key": key},
            timeout_seconds=None if timeout is None else time_out_seconds(timeout),
        )
        return self

    def reply(self, value: object, /) -> None:
        self._stand_in.reply(self.id, value, None)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Cancelled):
            with self._stand_in.shielded():
                self._stand_in.reply(self.id, None, RequestCancelled(REQUEST_CANCELLED))
        if not isinstance(error, Exception):
            return False
        self._stand_in.reply(self.id, None, error)
        return True


#: The status of a request in the API.
RequestStatus = Literal["OPEN", "ANSWERED", "REJECTED"]
