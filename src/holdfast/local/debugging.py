"""Breakpoints in tasks under `serve --debug`: the clock stands still while a debugger has stopped a
task.

Without that, the attempt would time out while the developer looks at the prompt, and after two
minutes another worker would run it at the same time.

Two things stop the clock of the local cloud:

* The prompt of `breakpoint()`: `pdb` runs in the thread of the task, and the other threads
  continue.
* A whole process that is stopped: the debugger of an editor stops all threads. Then no thread reads
  the clock, and the gap between two readings is not counted.

    real     10:00:00 ─── breakpoint ─────────── continue 10:07:00 ───►
    cloud    10:00:00 ─── 10:00:00 … 10:00:00 ── 10:00:00 ────────────►
"""

from __future__ import annotations

import pdb  # noqa: T100  # the debugger of `breakpoint()`
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final

from holdfast.local.clock import SystemClock

#: The pump reads the clock many times a second. So a longer gap between two readings means that a
#: debugger has stopped the process, or that the machine was suspended.
GAP_MS: Final = 3_000
#: The debugger's commands `step` and `return` skip the frames of these modules. They are frames of
#: Holdfast and of Python around the task, and not the user's code.
_SKIPPED: Final = ("holdfast.*", "concurrent.futures.*", "threading")


class DebugClock:
    """The clock of this machine without the time that a debugger took. A call returns ms since
    1970.
    """

    def __init__(self, real: Callable[[], int] | None = None) -> None:
        self._real = real or SystemClock()
        self._guard = threading.Lock()
        self._left_out_ms = 0
        self._last_ms = self._real()
        self._stops = 0

    def __call__(self) -> int:
        with self._guard:
            return self._read()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        with self._guard:
            self._read()
            self._stops += 1
        try:
            yield
        finally:
            with self._guard:
                self._read()
                self._stops -= 1

    def _read(self) -> int:
        now_ms = self._real()
        passed_ms = now_ms - self._last_ms
        if self._stops or passed_ms > GAP_MS:
            self._left_out_ms += passed_ms
        self._last_ms = now_ms
        return now_ms - self._left_out_ms


class _TaskDebugger(pdb.Pdb):
    """A debugger with only one prompt at a time, because tasks run in several threads and there is
    one terminal.
    """

    _terminal: Final = threading.Lock()

    def __init__(self, clock: DebugClock, **options: Any) -> None:
        super().__init__(nosigint=True, skip=_SKIPPED, **options)
        self._clock = clock

    def interaction(
        self, frame: FrameType | None, traceback: TracebackType | None, *args: Any, **named: Any
    ) -> None:
        with self._clock.stopped(), self._terminal:
            super().interaction(frame, traceback, *args, **named)


@contextmanager
def breakpoints(clock: DebugClock, **options: Any) -> Iterator[None]:
    """Let `breakpoint()` open a prompt that stops the clock. `options` are those of `pdb.Pdb`.

    If an editor has installed a hook for `breakpoint()`, that hook is kept, because the editor has
    its own debugger.
    """
    if sys.breakpointhook is not sys.__breakpointhook__:
        yield
        return

    def stop_here(*_: Any, **__: Any) -> None:
        _TaskDebugger(clock, **options).set_trace(sys._getframe(1))  # noqa: SLF001

    sys.breakpointhook = stop_here
    try:
        yield
    finally:
        sys.breakpointhook = sys.__breakpointhook__
