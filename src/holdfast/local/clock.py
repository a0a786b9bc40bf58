"""The clocks of the local cloud: the system's, one that is ahead of it, and one that a caller
moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.errors import HoldfastBug


class SystemClock:
    """The clock of this machine. A call returns ms since 1970."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000


class LeadClock:
    """A clock that can be ahead of the machine's, so that a developer need not wait for long
    timers.

    It never goes back, because the logs of executions already contain times in its future.
    """

    def __init__(self, machine: Callable[[], int] = SystemClock()) -> None:  # noqa: B008  # no state
        self._machine = machine
        self.lead_ms = 0

    def __call__(self) -> int:
        return self._machine() + self.lead_ms

    def advance(self, milliseconds: int) -> None:
        self.lead_ms += milliseconds


class VirtualClock:
    """A clock that stands still until a caller moves it. A call returns ms since 1970."""

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
