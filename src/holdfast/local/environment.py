"""An `os.environ` that differs between functions: the code of each function reads its own
variables.

Functions run in threads of one process, and libraries read the environment at any time. So all of
them use one mapping, which returns the variables of the function that the calling thread belongs
to. A thread that a function starts belongs to that function. The variables of the host, among them
its credentials, belong to no function.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

_own: Final[ContextVar[dict[Any, Any] | None]] = ContextVar("function_environment", default=None)


class _Environment(os._Environ[str]):  # noqa: SLF001  # what `os.environ` is, so that all of it works
    """Returns the variables of a function in its threads, and those of the process in other
    threads.
    """

    def __init__(self, original: os._Environ[str]) -> None:
        self._shared = original._data  # type: ignore[attr-defined]  # noqa: SLF001
        super().__init__(
            self._shared,
            original.encodekey,
            original.decodekey,
            original.encodevalue,
            original.decodevalue,
        )

    @property
    def _data(self) -> dict[Any, Any]:
        own = _own.get()
        return self._shared if own is None else own

    @_data.setter
    def _data(self, _value: Any) -> None:
        """Ignore the assignment by the base class: this class computes the value."""

    def __setitem__(self, key: str, value: str) -> None:
        if _own.get() is None:
            super().__setitem__(key, value)
        else:
            self._data[self.encodekey(key)] = self.encodevalue(value)

    def __delitem__(self, key: str) -> None:
        if _own.get() is None:
            super().__delitem__(key)
        else:
            del self._data[self.encodekey(key)]


_threads: Final[Any] = threading.Thread
_start: Final = _threads.start


def _start_with_own(thread: Any) -> None:
    own, run = _own.get(), thread.run

    def run_with_own() -> None:
        _own.set(own)
        run()

    if own is not None:
        thread.run = run_with_own
    _start(thread)


@contextmanager
def divided() -> Iterator[None]:
    """Inside the block, `os.environ` is a function's own environment in the threads of that
    function.
    """
    original = os.environ
    os.environ = _Environment(original)  # noqa: B003  # replaced, not changed, and given back
    _threads.start = _start_with_own
    try:
        yield
    finally:
        _threads.start = _start
        os.environ = original  # noqa: B003


@contextmanager
def variables(own: dict[str, str]) -> Iterator[None]:
    """Inside the block, this thread's code reads only the environment `own`. Needs `divided`."""
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in own.items()}
    token = _own.set(encoded)
    try:
        yield
    finally:
        _own.reset(token)


@contextmanager
def outside() -> Iterator[None]:
    """Inside the block, code belongs to the cloud itself and not to a function, also in threads
    that begin there.
    """
    token = _own.set(None)
    try:
        yield
    finally:
        _own.reset(token)
