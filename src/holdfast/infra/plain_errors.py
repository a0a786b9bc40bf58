"""Errors of an app are shown to the author as a message alone, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from holdfast.errors import HoldfastError

from .unfit import Unfit


@contextmanager
def plain_errors(path: str) -> Iterator[None]:
    """Convert refusals inside the block to a HoldfastError, and make Python print it without a
    traceback.

    It stays an exception, so that a test of the app can expect it. Without this, Python would print
    forty lines of Holdfast's and the CDK's frames above the message.
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
