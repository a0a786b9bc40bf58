"""Blocks of a workflow with rules of their own: undone on error, limited in time, not cancelled."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Literal, ParamSpec, Protocol

from holdfast.api.harness import Cancelled, harness, time_out_seconds
from holdfast.api.task_errors import CompensationFailed

P = ParamSpec("P")

_Step = tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]


class Undo(Protocol):
    """Registers tasks that undo finished work."""

    def __call__(self, function: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Register one undo step. The values are copied now: if a list changes later, the undo step
        does not change.
        """


@contextlib.contextmanager
def compensating(*, on_undo_failure: Literal["continue", "stop"] = "continue") -> Iterator[Undo]:
    """On an error, run the registered tasks in reverse order, then raise the error again.

    The same happens when the execution is stopped or times out inside the block. An undo step that
    fails, after its own retries, does not stop the others unless `on_undo_failure` is "stop"; the
    error is then CompensationFailed.
    """
    steps: list[_Step] = []

    def undo(function: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        steps.append((function, copy.deepcopy(args), copy.deepcopy(dict(kwargs))))

    try:
        yield undo
    except (Exception, Cancelled) as error:
        with shielded():
            failed = _undo(steps, stops=on_undo_failure == "stop")
        if failed is not None and isinstance(error, Exception):
            raise failed from error
        raise


def _undo(steps: list[_Step], *, stops: bool) -> CompensationFailed | None:
    """Run the undo steps, and return the last failure."""
    failed: CompensationFailed | None = None
    for function, args, kwargs in reversed(steps):
        try:
            function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the other steps must still run
            name = getattr(function, "name", function.__name__)
            from holdfast.api.error_fields import cause_of_error  # noqa: PLC0415 - only then

            failed = CompensationFailed(f"undo of {name} failed: {cause_of_error(error)}")
            if stops:
                break
    return failed


@contextlib.contextmanager
def timeout(duration: timedelta, /) -> Iterator[None]:
    """Raise BlockTimeout when the block does not end in time; its open work is cancelled.

    A direct run without a harness has no clock, so there is no limit. Raises ValueError for less
    than a second.
    """
    seconds, stand_in = time_out_seconds(duration), harness.get()
    with contextlib.nullcontext() if stand_in is None else stand_in.timeout(seconds):
        yield


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Let the body finish before the execution or branch is stopped or times out."""
    stand_in = harness.get()
    with contextlib.nullcontext() if stand_in is None else stand_in.shielded():
        yield
