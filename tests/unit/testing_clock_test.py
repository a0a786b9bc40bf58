"""Workflows that read the clock get what a test sends, as other workflows do."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import aws, http, seconds
from holdfast.testing import ScriptError, World, check_workflow, real, takes
from tests.unit import testing_clock_flows as flows
from tests.unit.testing_clock_child import suffix_of
from tests.unit.testing_clock_flows import Note


@pytest.mark.parametrize("data", [Note(text="hello"), {"text": "hello"}])
def test_a_workflow_that_reads_the_clock_gets_the_data_of_an_event(data: Any) -> None:
    world = World()
    world.send("clock.note", data, key="k", at=seconds(1))
    assert world.run(flows.hears, "k").output == "2026 hello"


def test_a_workflow_that_reads_the_clock_gets_the_scripted_outcome_of_a_wait() -> None:
    world = World({"clock.note": takes(seconds(2), Note(text="hello"))})
    run = world.run(flows.hears, "k")
    assert (run.output, run.ended) == ("2026 hello", seconds(2))


def test_a_workflow_that_reads_the_clock_replies_to_a_request() -> None:
    world = World()
    asked = world.request("clock.asked", Note(text="hello"), key="k", at=seconds(1))
    run = world.run(flows.replies, "k")
    assert run.output == 1_767_225_600
    assert run.replies == {asked: {"value": "hello"}}


def test_a_workflow_that_reads_the_clock_gets_an_answer() -> None:
    world = World()
    world.answer("Ready?", True, at=seconds(1))
    assert world.run(flows.asks).output == 2026


def test_a_workflow_calls_one_of_another_module_that_reads_the_clock() -> None:
    world = World({suffix_of: "?"})
    world.send("clock.word", "hi", key="k", at=seconds(1))
    assert world.run(flows.calls_child, "k").output == "2026-01-01T00:00:00+00:00 hi?"


def test_data_that_does_not_fit_is_refused_with_the_type_that_is_expected() -> None:
    world = World()
    world.send("clock.note", 5, key="k", at=seconds(1))
    with pytest.raises(ScriptError, match=r"clock\.note is given 5, which does not fit Note"):
        world.run(flows.hears, "k")


def test_a_wait_that_nothing_ends_is_a_mistake_of_the_script() -> None:
    with pytest.raises(ScriptError, match=r"clock\.note"):
        World().run(flows.hears, "k")


@pytest.mark.parametrize("flow", [flows.hears, flows.replies, flows.asks, flows.calls_child])
def test_worlds_are_generated_for_a_workflow_that_reads_the_clock(flow: Any) -> None:
    assert check_workflow(flow, examples=5, seed=3).total() >= 5


def test_a_workflow_that_reads_the_clock_calls_services() -> None:
    asked: list[Any] = []

    def get_item(**given: Any) -> dict[str, Any]:
        asked.append(given["TableName"])
        return {}

    run = World({aws.dynamodb.get_item: get_item, http.get: {}}).run(flows.calls_services)
    assert (run.output, run.steps[:2]) == (1_767_225_600, ["aws.dynamodb.get_item", "http.get"])
    assert asked == ["t"]


def test_a_workflow_that_reads_the_clock_and_calls_services_is_checked() -> None:
    assert check_workflow(flows.calls_services, examples=5, seed=1).total() == 5


@pytest.mark.parametrize("flow", [flows.gives_keys, flows.gives_keys_without_clock])
def test_each_call_of_a_task_has_one_idempotency_key_for_all_its_attempts(flow: Any) -> None:
    flows.keys_seen.clear()
    output = World({flows.key_of: real}).run(flow).output
    calls = output[:-1]
    assert len(set(calls)) == len(calls) == 8
    attempts = sorted(flows.keys_seen.count(key) for key in calls)
    assert attempts == [1, 1, 1, 2, 2, 2, 2, 2]
    assert set(flows.keys_seen) == set(calls)
