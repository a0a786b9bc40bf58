"""Batches of items to the byte, and which frames time has come for."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from holdfast.core.diagnosis import next_due_ms
from holdfast.core.waits import overdue_frames
from tests.builders import machine, wait_for
from tests.unit.core_kit import START_MS, Case
from tests.unit.core_map_run_test import MapCase, a_map, begun

ITEMS = ["", "x", "é" * 3, {"a": [1, 2]}, 12345, "xx", None, "\ud800", "x" * 9, ""]


def size(value: Any) -> int:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode(errors="surrogatepass"))


@pytest.mark.parametrize("bytes_max", range(26, 70))
def test_a_batch_holds_as_many_items_as_fit(bytes_max: int) -> None:
    batcher = {"MaxInputBytesPerBatch": bytes_max}
    batches: Any = begun(ITEMS, ItemBatcher=batcher).children.inputs

    assert [item for batch in batches for item in batch["Items"]] == ITEMS
    assert all(size(batch) <= bytes_max for batch in batches)
    for batch, following in pairwise(batches):
        assert size({"Items": [*batch["Items"], following["Items"][0]]}) > bytes_max


def test_a_batch_of_no_number_fails_the_map() -> None:
    batcher = {"MaxItemsPerBatch": "{% $states.input.n %}"}
    case = MapCase(a_map(Items=[1], ItemBatcher=batcher)).start({"n": {"a": "é", "b": 1}})

    said = """Expected 'number', but was 'object' for value: {"a":"é","b":1}"""
    assert case.failure[0] == "States.QueryEvaluationError"
    assert str(case.failure[1]).endswith(said)


def test_time_comes_for_a_frame_and_all_below_a_block_that_is_out_of_time() -> None:
    names = ("a", "b")
    lanes = [
        {"StartAt": "a", "States": {"a": {"Type": "Wait", "Seconds": 30, "End": True}}},
        {"StartAt": "b", "States": {"b": wait_for("paid", TimeoutSeconds=90)}},
    ]
    states = {"all": {"Type": "Parallel", "Branches": lanes, "End": True}}
    block = {"Begin": "all", "Seconds": 60, "States": ["all", *names]}
    case = Case(machine(states, Holdfast={"Deadlines": [block]})).start()

    def positions(seconds: float) -> list[str]:
        frames = overdue_frames(case.state, START_MS + int(seconds * 1_000))
        return [frame.position for frame in frames]

    assert next_due_ms(case.frame("all")) == START_MS + 60_000
    assert positions(29.999) == []
    assert positions(30) == ["a"]
    assert positions(59.999) == ["a"]
    assert positions(60) == ["all", "a", "b"]
