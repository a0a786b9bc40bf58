"""The work that each process has in hand, visible to all processes, even while it is frozen."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Hands:
    """Two bytes for each role: how many messages or calls it holds, how many tasks it runs."""

    def __init__(self, roles: tuple[str, ...]) -> None:
        self._places = {role: 2 * number for number, role in enumerate(roles)}
        self._bytes = mmap.mmap(-1, 2 * len(roles))
        self._lock = threading.Lock()

    def hold(self, role: str, number: int) -> None:
        self._bytes[self._places[role]] = number

    @contextmanager
    def in_task(self, role: str) -> Iterator[None]:
        self._add_task(role, 1)
        try:
            yield
        finally:
            self._add_task(role, -1)

    def _add_task(self, role: str, number: int) -> None:
        with self._lock:  # Against the process's own threads: no other process runs its tasks
            self._bytes[self._places[role] + 1] += number

    def are_empty(self, role: str) -> None:
        place = self._places[role]
        self._bytes[place : place + 2] = bytes(2)

    def has_work(self, role: str) -> bool:
        return bool(self._bytes[self._places[role]])

    def runs_task(self, role: str) -> bool:
        return bool(self._bytes[self._places[role] + 1])
