"""The list of executions, which follows its table when it can."""

from __future__ import annotations

import pytest

from holdfast.runtime.effects import Delete, Item, Put, QueryList, Unlist
from holdfast_simulator.services import Services

START_MS = 1_800_000_000_000
SECOND_MS = 1_000


class Stack:
    """`after` lets seconds go by; `listed` looks as the index was `lag_ms` ago."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.services = Services(lambda: self.now_ms)

    def after(self, seconds: int) -> None:
        self.now_ms += seconds * SECOND_MS

    def put(self, number: int, partition: str, status: str) -> None:
        item: Item = {"pk": "p", "sk": number, "lp": partition, "ls": str(number), "nm": status}
        self.services.perform(Put("executions", item))

    def listed(self, partition: str, lag_ms: int) -> list[str]:
        self.services.index_lag_ms = lambda: lag_ms
        found = self.services.perform(QueryList(partition, 10)).items
        return [str(item["nm"]) for item in found]


@pytest.fixture
def stack() -> Stack:
    """Return a stack whose list shows an execution as running for ten seconds, then with
    its end.
    """
    stack = Stack()
    stack.put(0, "RUNNING", "RUNNING")
    stack.after(10)
    stack.put(1, "SUCCEEDED", "SUCCEEDED")
    stack.services.perform(Unlist("p", 0))
    stack.after(10)
    return stack


@pytest.mark.parametrize(
    ("lag_ms", "running", "succeeded"),
    [
        (0, [], ["SUCCEEDED"]),
        (9_000, [], ["SUCCEEDED"]),
        (11_000, ["RUNNING"], []),
        (21_000, [], []),
    ],
)
def test_a_list_that_lags_shows_an_earlier_state(
    stack: Stack, lag_ms: int, running: list[str], succeeded: list[str]
) -> None:
    assert stack.listed("RUNNING", lag_ms) == running
    assert stack.listed("SUCCEEDED", lag_ms) == succeeded


def test_a_row_that_was_replaced_and_deleted_since_is_shown_as_it_was() -> None:
    stack = Stack()
    stack.put(0, "p", "first")
    stack.after(10)
    stack.put(0, "p", "second")
    stack.after(10)
    stack.services.perform(Delete("executions", "p", 0))
    assert [stack.listed("p", lag_ms) for lag_ms in (0, 5_000, 15_000)] == [
        [],
        ["second"],
        ["first"],
    ]
