"""A list that is too long for one `each`, in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Client
from holdfast.core import lanes
from holdfast_simulator.invariants import histories
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

FLOWS = """
from __future__ import annotations

from holdfast import each, task, workflow


@task
def pay(order: int) -> int:
    return order * 2


@workflow
def pay_at_once(orders: list[int]) -> list[int]:
    return each(orders, pay)


@workflow
def pay_in_parts(orders: list[int]) -> list[int]:
    paid: list[int] = []
    for first in range(0, len(orders), 40):
        paid.extend(each(orders[first : first + 40], pay))
    return paid
"""


def test_a_list_that_is_too_long_says_how_to_give_it_in_parts_and_so_given_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "LANES_MAX", 60)
    orders = list(range(130))
    with loaded(tmp_path, FLOWS) as module:
        stack = MemoryStack(module.__name__)
        for name in ("pay_at_once", "pay_in_parts"):
            Client.of(stack.api).start(name, {"orders": orders})
        stack.world.run()
        ends = {one.state.workflow: one.state for one in histories(stack.world)}

    at_once, in_parts = ends["pay_at_once"], ends["pay_in_parts"]
    assert (at_once.status, at_once.error) == ("FAILED", "Holdfast.TooManyLanes")
    assert "`for first in range(0, len(items), 1_000): each(items[first" in str(at_once.cause)
    assert (in_parts.status, in_parts.output) == ("SUCCEEDED", [2 * order for order in orders])
