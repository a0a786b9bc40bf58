"""`Throttled` behind a limit of concurrency: each refusal pauses the limit."""

from __future__ import annotations

import pytest

from holdfast import Client
from tests.unit import throttled_flows
from tests.unit.client_kit import MemoryStack


@pytest.mark.parametrize("refusals", [1, 3])
def test_each_refusal_lets_nothing_begin_for_its_time(refusals: int) -> None:
    stack = MemoryStack(throttled_flows.__name__, works=False)
    client, begin_ms = Client.of(stack.api), stack.world.now_ms
    throttled_flows.refusals[0] = refusals
    run = client.start("calls", {"name": "a"}).execution
    stack.world.run(until_ms=begin_ms + refusals * 5_000 - 1)
    assert client.describe(run)["status"] == "RUNNING"
    stack.world.run(until_ms=begin_ms + refusals * 5_000 + 20_000)
    assert client.describe(run)["output"] == "a"
