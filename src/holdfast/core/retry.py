"""The choice of the retrier or catcher for an error, and the delay of a retry. Source: ASL,
Errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.asl import error_names
from holdfast.asl.program import Catcher, PollRule, Retrier
from holdfast.limits import POLL_SECONDS_MAX, RETRY_DELAY_SECONDS_MAX

_TIMEOUTS: Final = frozenset({error_names.TIMEOUT, error_names.HEARTBEAT_TIMEOUT})


def matches(errors: Sequence[str], error: str) -> bool:
    """Return True when an `ErrorEquals` list contains the error, or a name that includes it.

    States.Runtime is never handled. States.ALL includes all other errors, also
    States.DataLimitExceeded (as recordings show, in contrast to AWS's documentation).
    States.TaskFailed includes every error except a time-out (AWS docs, "Handling errors in Step
    Functions workflows"). States.Timeout includes a missed heartbeat.
    """
    if error == error_names.RUNTIME:
        return False
    if error in errors:
        return True
    if error == error_names.HEARTBEAT_TIMEOUT and error_names.TIMEOUT in errors:
        return True
    if error_names.ALL in errors:
        return True
    return error_names.TASK_FAILED in errors and error not in _TIMEOUTS


def find_retrier(
    retriers: Sequence[Retrier], error: str, used: Mapping[int, int]
) -> tuple[int, Retrier] | None:
    """Return the first retrier that matches the error, with its number. None when no retrier
    matches, or the one that matches has no retries left.
    """
    for number, retrier in enumerate(retriers):
        if matches(retrier.errors, error):
            return (number, retrier) if used.get(number, 0) < retrier.attempts_max else None
    return None


def find_catcher(catchers: Sequence[Catcher], error: str) -> Catcher | None:
    return next((catcher for catcher in catchers if matches(catcher.errors, error)), None)


def delay_ms(retrier: Retrier, retries: int, drawn: float) -> int:
    """Return the delay: interval x rate^retries, at most the maximum, or the one of the list; with
    FULL jitter a random part of it.
    """
    cap = retrier.delay_seconds_max
    if retrier.delays:
        seconds: float = retrier.delays[min(retries, len(retrier.delays) - 1)]
    else:
        seconds = retrier.interval_seconds * _power(retrier.backoff_rate, retries)
    if cap is not None:
        seconds = min(seconds, cap)
    seconds = min(seconds, RETRY_DELAY_SECONDS_MAX)
    return int(seconds * 1_000 * (drawn if retrier.has_full_jitter else 1))


def poll_delay_ms(rule: PollRule, polls: int) -> int:
    """Return the time until the next poll after this many polls without a value."""
    seconds = rule.seconds * _power(rule.backoff, max(0, polls - 1))
    return int(min(seconds, rule.seconds_max) * 1_000)


def _power(rate: float, retries: int) -> float:
    try:
        return rate**retries
    except OverflowError:
        return float(RETRY_DELAY_SECONDS_MAX)


def poll_seconds(polls: int) -> int:
    """Return the seconds until the next poll of a job after this many polls: 1, 2, 4 … at most
    60.
    """
    return min(1 << min(polls, POLL_SECONDS_MAX), POLL_SECONDS_MAX)
