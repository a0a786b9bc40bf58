"""The AWS services that tasks call, emulated from the first call on.

Loading the emulator takes 2 seconds and 150 MB, and most local stacks never need it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.errors import RequestError
from holdfast.local import wall
from holdfast.local.wall import AwsResponse
from holdfast.runtime.effects import Publish

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

    from holdfast.local.cloud import EmulatedServices


class TaskServices:
    """The AWS services of tasks. `take_event` receives the events that tasks put on the event bus
    `holdfast`.
    """

    def __init__(self, clock: Callable[[], int], take_event: Callable[[str], Any]) -> None:
        self._clock = clock
        self._take_event = take_event
        self._lock = threading.RLock()
        self._emulated: EmulatedServices | None = None

    def answer(self, request: AWSPreparedRequest) -> AwsResponse:
        """Return AWS's answer. Raises RequestError HF260 when no emulator is installed."""
        return self._begun(request.url).answer(request)

    def publish(self, effect: Publish) -> None:
        """Put an event on the account's default event bus. Before the first call of a service the
        bus has no rule, so the event is dropped.
        """
        if self._emulated is not None:
            self._emulated.publish(effect)

    def close(self) -> None:
        if self._emulated is not None:
            self._emulated.close()

    def _begun(self, url: str) -> EmulatedServices:
        with self._lock:
            if self._emulated is None:
                self._emulated = self._load(url)
                # The emulator sends requests to itself while it starts. `answer` serves them in
                # this thread.
                self._emulated.begin()
            return self._emulated

    def _load(self, url: str) -> EmulatedServices:
        try:
            from holdfast.local.cloud import EmulatedServices  # noqa: PLC0415
        except ImportError as error:
            found = wall.refusal(url)
            raise RequestError(
                found.code, found.message, help="install `holdfast[local]` for emulated services"
            ) from error
        return EmulatedServices(self._clock, self._take_event)
