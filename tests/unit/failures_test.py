"""`starts_on="holdfast.execution.failed"`: each execution without success starts a workflow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import Client, FailedExecution
from holdfast.errors import RequestError
from holdfast.testing import World
from holdfast_simulator.world import Killed
from tests.thorough import stride
from tests.unit import failure_flows, own_id_flows
from tests.unit.client_kit import MemoryStack

_DAY_MS = 86_400_000


@pytest.fixture
def stack() -> MemoryStack:
    return MemoryStack(failure_flows.__name__)


@pytest.fixture
def client(stack: MemoryStack) -> Client:
    return Client.of(stack.api)


def told(client: Client) -> list[Any]:
    """Return what the handlers were told, in the order of their starts."""
    rows = client.list(workflow="on_failure")
    found = [client.describe(row["execution"]) for row in rows]
    return [one["output"] for one in sorted(found, key=lambda one: str(one["execution"]))]


def test_a_failed_execution_starts_the_workflow(client: Client) -> None:
    failed = client.start("job", {"how": "fails"}, name="job-1")
    client.start("job", {"how": "works"})
    assert told(client) == [
        {
            "execution": failed.execution,
            "name": "job-1",
            "workflow": "job",
            "status": "FAILED",
            "error": "WorkError",
            "cause": "no",
            "input": {"how": "fails", "text": ""},
            "key": None,
        }
    ]


def test_the_handler_has_the_key_of_a_keyed_execution(client: Client) -> None:
    client.start("cart", {"cart_id": "c7", "how": "fails"})
    [one] = told(client)
    assert (one["key"], one["input"]) == ("c7", {"cart_id": "c7", "how": "fails"})


def test_the_handler_has_a_large_input_and_none_that_is_larger_than_an_event(
    client: Client,
) -> None:
    for size in (400_000, 900_000):
        client.start("job", {"how": "fails", "text": "x" * size})
    assert sorted(len((one["input"] or {}).get("text", "")) for one in told(client)) == [0, 400_000]


def test_a_secret_of_the_input_stays_sealed(client: Client) -> None:
    client.start("secret_job", {"token": "s3cret"})
    [row] = client.list(workflow="on_failure")
    shown = client.describe(row["execution"])
    assert "s3cret" not in json.dumps(shown)
    assert shown["output"]["input"] == client.describe(shown["output"]["execution"])["input"]


def test_only_holdfast_sends_the_event(client: Client) -> None:
    with pytest.raises(RequestError, match="sent by Holdfast alone"):
        client.event("holdfast.execution.failed", "x", {"execution": "x"})
    assert told(client) == []


def test_a_stop_and_a_timeout_start_it(stack: MemoryStack, client: Client) -> None:
    late = client.start("job", {"how": "late"})
    stopped = client.start("job", {"how": "stopped"})
    client.stop(stopped.execution, cause="not wanted")
    stack.world.run(until_ms=stack.world.now_ms + _DAY_MS)
    found = [(one["execution"], one["status"], one["cause"]) for one in told(client)]
    assert found[0] == (stopped.execution, "ABORTED", "not wanted")
    assert found[1][:2] == (late.execution, "TIMED_OUT")
    assert len(found) == 2


def test_the_error_of_a_child_goes_to_its_parent_alone(client: Client) -> None:
    assert client.start("parent", {"how": "fails"}).result(timeout=5) == "handled"
    assert told(client) == []


def test_nothing_waits_for_a_started_execution_so_its_failure_is_told(client: Client) -> None:
    started = client.start("starter", {"how": "fails"}).result(timeout=5)
    assert [one["execution"] for one in told(client)] == [started]


def test_a_handler_that_fails_starts_no_other(client: Client) -> None:
    client.start("job", {"how": "fails"}, name="bad-1")
    [row] = client.list(workflow="on_failure")
    assert row["status"] == "FAILED"
    client.retry(row["execution"])
    assert len([*client.list(workflow="on_failure")]) == 1


def test_each_end_of_a_retried_execution_is_told_once(stack: MemoryStack, client: Client) -> None:
    failed = client.start("job", {"how": "fails"})
    for _ in range(2):
        stack.world.run(until_ms=stack.world.now_ms + _DAY_MS)
        failed.retry()
    assert [one["execution"] for one in told(client)] == [failed.execution] * 3


def test_a_retry_after_weeks_repeats_no_old_failure(stack: MemoryStack, client: Client) -> None:
    failed = client.start("job", {"how": "fails"})
    stack.world.run(until_ms=stack.world.now_ms + 20 * _DAY_MS)
    failed.retry()
    assert len(told(client)) == 2


def test_without_such_a_workflow_nothing_is_sent() -> None:
    client = Client.of(MemoryStack(own_id_flows.__name__).api)
    assert client.start("stops_itself", {}).describe()["status"] == "ABORTED"
    assert client.events() == []


@pytest.mark.parametrize("how", ["fails", "stopped"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("retried", [False, True])
def test_a_crash_anywhere_tells_each_end_once(how: str, when: str, retried: bool) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride(3, 17)
        stack = MemoryStack(failure_flows.__name__, works=False)
        left = [number]

        def hook(_world: Any, _effect: Any, at: str, left: list[int] = left) -> None:
            if at == when:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed

        client = Client.of(stack.api)
        failed = client.start("job", {"how": how})
        stack.world.hook = hook
        stack.world.run(until_ms=stack.world.now_ms + 1_000)
        if how == "stopped":
            client.stop(failed.execution)
        if retried:
            stack.world.run(until_ms=stack.world.now_ms + 1_000)
            if failed.describe()["status"] != "RUNNING":
                failed.retry()
        stack.world.run(until_ms=stack.world.now_ms + _DAY_MS)
        is_over, left[0] = left[0] > 0, 0
        ends = 1 + failed.describe().get("retries", 0)
        assert [one["execution"] for one in told(client)] == [failed.execution] * ends, number
    assert number > 20


def test_a_handler_is_tested_with_an_event() -> None:
    failed = FailedExecution("e1", "job-1", "job", "FAILED", "WorkError", "no")
    world = World({"holdfast.execution.failed": failed})
    assert world.run(failure_flows.on_failure, "e1").result == failed
