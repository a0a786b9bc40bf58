"""The one clock by which faults and calls happen: it stands still while callers are behind."""

from __future__ import annotations

import mmap
import struct
import time
from dataclasses import dataclass, field

_SECONDS = struct.Struct("d")


def _shared() -> mmap.mmap:
    return mmap.mmap(-1, _SECONDS.size)


@dataclass(frozen=True, slots=True)
class Clock:
    """Shared by all processes that are forked from the one that made it."""

    begun_at: float
    _put_off: mmap.mmap = field(default_factory=_shared)

    @property
    def put_off_seconds(self) -> float:
        return float(_SECONDS.unpack(self._put_off[:])[0])

    def put_off(self, seconds: float) -> None:
        """All that is still to come comes later by so much. One process may do this."""
        self._put_off[:] = _SECONDS.pack(self.put_off_seconds + seconds)

    def wall(self, at_seconds: float) -> float:
        """Return when it is so late in the trial, as of now."""
        return self.begun_at + self.put_off_seconds + at_seconds

    def is_due(self, at_seconds: float) -> bool:
        return self.wall(at_seconds) <= time.time()
