"""Retry rules: how often the engine runs a step again, on which errors, and after which delays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

#: A setting of `Retry` whose default depends on `delays`.
_NOT_GIVEN: Final[Any] = None


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry rule: at most `max_attempts` attempts, the first included, on the errors in `on`
    (empty: on all), but never on the errors in `not_on`.

    `delays`: the delay before each retry, in place of `interval`, `backoff` and `max_delay`. There
    is one retry for each. With a larger `max_attempts`, further retries wait for the last delay.

    Defaults: max_attempts=3, interval=seconds(1), backoff=2.0, jitter=True. With `delays`:
    max_attempts=len(delays) + 1, jitter=False.
    """

    max_attempts: int = _NOT_GIVEN
    interval: timedelta = _NOT_GIVEN
    backoff: float = _NOT_GIVEN
    on: tuple[type[BaseException], ...] = ()
    max_delay: timedelta | None = None
    jitter: bool = _NOT_GIVEN
    not_on: tuple[type[BaseException], ...] = ()
    delays: Sequence[timedelta] | None = None

    def __post_init__(self) -> None:
        if self.delays is None:
            self._set_defaults(
                max_attempts=3, interval=timedelta(seconds=1), backoff=2.0, jitter=True
            )
        else:
            self._take_delays(tuple(self.delays))
        if self.max_attempts < 1:
            raise _bad_retry("max_attempts", self.max_attempts, "1 or more; 1 means no retry")
        if self.backoff < 1:
            raise _bad_retry("backoff", self.backoff, "1.0 or more")
        if Exception in self.not_on:
            raise _bad_retry("not_on", "every error", "the errors that are never retried")
        delays = [("interval", self.interval), ("max_delay", self.max_delay)]
        for setting, delay in (*delays, *(("delays", one) for one in self.delays or ())):
            if delay is not None and (delay.microseconds or delay < timedelta(seconds=1)):
                raise _bad_retry(setting, delay, "whole seconds, at least one")

    def _take_delays(self, delays: tuple[timedelta, ...]) -> None:
        if not delays:
            raise _bad_retry("delays", "empty", "a delay for each retry, as delays=[seconds(2)]")
        for setting in ("interval", "backoff", "max_delay"):
            # A copy by `dataclasses.replace` gives the values that were set here.
            given, own = (
                getattr(self, setting),
                {"interval": delays[0], "backoff": 1.0}.get(setting),
            )
            if given not in {None, own}:
                message = f"Retry(delays=...) has {setting}={given!r}, too"
                raise WorkflowError("HF061", message, help=f"give delays= without {setting}=")
        attempts = len(delays) + 1
        self._set_defaults(max_attempts=attempts, interval=delays[0], backoff=1.0, jitter=False)
        object.__setattr__(self, "delays", delays)
        if self.max_attempts < attempts:
            found = f"{self.max_attempts}, and {len(delays)} delays need {attempts}"
            raise _bad_retry("max_attempts", found, "delays= alone: each is the delay of a retry")

    def _set_defaults(self, **defaults: object) -> None:
        for setting, value in defaults.items():
            if getattr(self, setting) is _NOT_GIVEN:
                object.__setattr__(self, setting, value)


def _bad_retry(field: str, found: object, expected: str) -> WorkflowError:
    return WorkflowError("HF061", f"Retry({field}=...) is {found}", help=f"give {expected}")
