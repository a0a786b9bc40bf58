"""Processor time of a piece of work, as it would be in a process of its own."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    seconds: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Gives the seconds when the block is over. To collect what all earlier tests have left behind
    takes longer than most pieces do, so no garbage is collected within. While coverage is measured
    the time is that of the tracer: it counts as none. Threads of earlier tests do not count.
    """
    watch = Stopwatch()
    was_enabled = gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        yield watch
    finally:
        if sys.gettrace() is None:
            watch.seconds = time.thread_time() - began
        if was_enabled:
            gc.enable()
