"""The clocks of the laptop cloud: the system's, one ahead of it, and one that stands still."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.errors import HoldfastBug


class SystemClock:
    """The clock of this machine. Result: milliseconds since the epoch."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000


class LeadClock:
    """A clock that runs ahead of the machine's, so that long waits end at once in development.

    It never goes back: times of the future are in the log of the executions.
    """

    def __init__(self, machine: Callable[[], int] = SystemClock()) -> None:  # noqa: B008  # no state
        self._machine = machine
        self.lead_ms = 0

    def __call__(self) -> int:
        return self._machine() + self.lead_ms

    def advance(self, milliseconds: int) -> None:
        self.lead_ms += milliseconds


class VirtualClock:
    """Result: milliseconds since the epoch, standing still until a caller moves it on."""

    def __init__(self, start_ms: int) -> None:
        self._now_ms = start_ms

    def __call__(self) -> int:
        return self._now_ms

    def advance(self, milliseconds: int) -> None:
        self.advance_to(self._now_ms + milliseconds)

    def advance_to(self, moment_ms: int) -> None:
        if moment_ms < self._now_ms:
            raise HoldfastBug(f"the clock stands at {self._now_ms} and was set to {moment_ms}")
        self._now_ms = moment_ms
