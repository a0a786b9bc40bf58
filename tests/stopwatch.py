"""Processor time of a piece of work, as it would be in a process of its own."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    seconds: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Gives the seconds when the block is over. To collect what all earlier tests have left behind
    takes longer than most pieces do, so no garbage is collected within.
    """
    watch = Stopwatch()
    was_enabled = gc.isenabled()
    gc.disable()
    began = time.process_time()
    try:
        yield watch
    finally:
        watch.seconds = time.process_time() - began
        if was_enabled:
            gc.enable()
