"""How often a task is called that waits for a condition (`wait_for_condition`)."""

from __future__ import annotations

from holdfast.asl.documents import StateJson
from holdfast.asl.parsing.extensions import read_poll
from holdfast.asl.program import PollRule


def polls_within(state: StateJson, seconds: float) -> int:
    """Return the most calls of a polled task within this time, if no call fails.

    The calls take no time in the worst case, so only the delays between them count.
    """
    rule = read_poll(state)
    assert rule is not None
    return 1 + _delays_within(rule, seconds)


def _delays_within(rule: PollRule, seconds: float) -> int:
    delay = min(float(rule.seconds), rule.seconds_max)
    count = 0
    while rule.backoff > 1 and delay < rule.seconds_max and delay <= seconds:
        seconds -= delay
        count += 1
        delay = min(delay * rule.backoff, rule.seconds_max)
    return count + int(seconds // delay)
