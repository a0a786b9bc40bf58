"""Ids of distributed traces, computed from ids of executions: every reader computes the same ones.

An execution and all its children are one trace. An attempt of a step is one span in it. A trace id
begins with the time of the start in seconds, as X-Ray requires.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_RUN_CHARACTERS: Final = 26
# The first of the characters of the time is the spread (`core/run_ids.py`).
_TIME: Final = slice(1, 10)


def root_of(run: str) -> str:
    """Return the id of the outermost parent execution, which all its children share."""
    return run.partition(".")[0]


def trace_id(run: str) -> str:
    """Return the id of the trace, 32 hexadecimal digits."""
    root = root_of(run)
    chance = sha256(f"trace {root}".encode()).hexdigest()
    return _seconds(root, chance[:8]) + chance[8:32]


def execution_span(run: str) -> str:
    """Return the id of the execution's span, 16 hexadecimal digits."""
    return sha256(f"execution {run}".encode()).hexdigest()[:16]


def step_span(run: str, event: int) -> str:
    """Return the id of a step's span, 16 hexadecimal digits. `event` is the id of the event that
    entered the state.
    """
    return sha256(f"step {run} {event}".encode()).hexdigest()[:16]


def attempt_span(step: str, attempt: int) -> str:
    """Return the id of an attempt's span, 16 hexadecimal digits. `step` is the idempotency key of
    the task: run and entry.
    """
    return sha256(f"attempt {step} {attempt}".encode()).hexdigest()[:16]


def traceparent(run: str, span: str) -> str:
    """Return the header of W3C Trace Context, level 1, for calls that belong to the span."""
    return f"00-{trace_id(run)}-{span}-01"


def _seconds(root: str, other: str) -> str:
    """Return the start time in an id that Holdfast has created; `other` for ids of AWS, which
    contain none.
    """
    time = root[_TIME]
    if len(root) != _RUN_CHARACTERS or not set(time) <= set(_DIGITS):
        return other
    value = 0
    for digit in time:
        value = value * len(_DIGITS) + _DIGITS.index(digit)
    return f"{value // 1_000:08x}"[-8:]
