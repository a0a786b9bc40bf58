"""Errors of an app reach the author as their message alone, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from holdfast.errors import HoldfastError

from .unfit import Unfit


@contextmanager
def plain_errors(path: str) -> Iterator[None]:
    """Turn what is refused inside into a HoldfastError, and let Python print it plainly.

    It stays an exception, so that a test of the app can expect it. Only when nothing catches it,
    Python's own hook would print forty lines of ours and of the CDK's above the one that helps.
    """
    try:
        yield
    except Unfit as unfit:
        _print_plainly()
        raise unfit.in_construct(path) from None
    except HoldfastError:
        _print_plainly()
        raise


def _print_plainly() -> None:
    others = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        if isinstance(error, HoldfastError):
            sys.stderr.write(f"{error}\n")
        else:
            others(kind, error, where)

    sys.excepthook = hook
