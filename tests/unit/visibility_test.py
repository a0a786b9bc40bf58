"""Until when an invocation may work on each message of its batch (R9)."""

from __future__ import annotations

from holdfast.limits import LIMIT_MARGIN_MS, VISIBILITY_SECONDS
from holdfast.runtime.visibility import Holds

START_MS = 1_800_000_000_000
HIDDEN_MS = VISIBILITY_SECONDS * 1_000


def holds(left_ms: int = 900_000) -> Holds:
    return Holds({"one": "r1", "two": "r2"}, START_MS + left_ms, START_MS)


def test_each_message_has_the_limit_of_its_own_visibility() -> None:
    """A message that could not be hidden again may be another worker's by then, in any batch."""
    held = holds()
    held.let_go("one")
    held.extended("two", START_MS + 60_000)
    assert held.limit_ms("one") == START_MS + HIDDEN_MS - LIMIT_MARGIN_MS
    assert held.limit_ms("two") == START_MS + 60_000 + HIDDEN_MS - LIMIT_MARGIN_MS
    assert held.receipts == {"two": "r2"}


def test_a_message_hidden_again_past_its_limit_is_no_longer_held() -> None:
    """A frozen host thaws: another has received it, whatever SQS says to the old receipt."""
    held = holds()
    lapsed_ms = held.limit_ms("one")
    held.extended("one", lapsed_ms)
    held.extended("two", lapsed_ms - 1)
    assert held.limit_ms("one") == lapsed_ms
    assert held.limit_ms("two") == lapsed_ms - 1 + HIDDEN_MS - LIMIT_MARGIN_MS
    assert held.receipts == {"two": "r2"}


def test_no_message_is_worked_on_past_the_end_of_the_invocation() -> None:
    held = holds(left_ms=30_000)
    held.extended("two", START_MS + 20_000)
    assert held.limit_ms("one") == held.limit_ms("two") == held.deadline_ms


def test_a_host_that_does_all_in_turn_has_until_its_end() -> None:
    held = holds()
    held.extended_to_the_end()
    assert held.limit_ms("one") == held.deadline_ms
