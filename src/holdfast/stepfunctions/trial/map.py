"""The values that a Map computes before its iterations, and the test for too many failures.

The result of a Map on trial is a mock, so nothing is read, started or written: the items are those
of the input, or the data that the caller says was read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

from holdfast.asl import error_names
from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.program import DistributedMap, Json, MapState
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core.decision import whole_number
from holdfast.core.map_bounds import tolerated_count, tolerated_percentage
from holdfast.core.map_items import batched
from holdfast.runtime.item_formats import UnreadableItems, items_max, items_of
from holdfast.stepfunctions.faults import validation
from holdfast.stepfunctions.trial.definition import Tested
from holdfast.stepfunctions.trial.request import MockedResult, Trial, json_of
from holdfast.stepfunctions.trial.stage import Bindings, Notes

_EXCEEDED: Final = "The specified tolerated failure threshold was exceeded"


class MapFields:
    """Evaluates the fields of one Map in AWS's order, and notes them."""

    def __init__(self, tested: Tested, trial: Trial, notes: Notes) -> None:
        assert isinstance(tested.state, MapState)
        self._state = tested.state
        self._is_jsonata = tested.is_jsonata
        self._trial = trial
        self._notes = notes

    def observe(self, _: Template, bindings: Bindings, moment: EvaluationMoment) -> Json:
        """Evaluate the items in place of a task's arguments. Raises StateError, StatesFault."""
        items = self._items(bindings, moment)
        if items is not None:
            self._select(items, bindings, moment)
        self._bound(bindings, moment)
        self._require_few_failures(items)
        return cast("Bindings", bindings["states"])["input"]

    def _items(self, bindings: Bindings, moment: EvaluationMoment) -> Sequence[Json] | None:
        """Return the items; None when they are unknown, because a reader without mocked data gives
        them.
        """
        state = self._state
        if state.run is not None and state.run.reader is not None:
            return self._read(state.run, bindings, moment)
        items = cast("Bindings", bindings["states"])["input"]
        if state.items is not None:
            items = state.items.evaluate(bindings, moment)
        if state.run is not None and isinstance(items, dict):
            items = [{"Key": key, "Value": value} for key, value in items.items()]
        if not isinstance(items, list):
            text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
            raise EvaluationError("", f"Map state input must be an array but was: {text}")
        if not self._is_jsonata:
            self._notes.stages["afterItemsPath"] = items
        return items

    def _read(
        self, run: DistributedMap, bindings: Bindings, moment: EvaluationMoment
    ) -> Sequence[Json] | None:
        assert run.reader is not None
        config = _evaluated(run.reader.config, bindings, moment)
        config = config if isinstance(config, dict) else {}
        if self._trial.reader_data is None:
            return None
        try:
            data = _data_read(self._trial.reader_data, config)
            pointer = config.get("ItemsPointer")
            if isinstance(pointer, str):
                data = _point(data, pointer)
                self._notes.stages["afterItemsPointer"] = data
            return data[: items_max(config)] if isinstance(data, list) else None
        except UnreadableItems as problem:
            error = error_names.ITEM_READER_FAILED
            raise StateError(error, str(problem), is_whole=True) from None

    def _select(self, items: Sequence[Json], bindings: Bindings, moment: EvaluationMoment) -> None:
        inputs = list(items)
        selector = self._state.item_selector
        if selector is not None:
            inputs = [
                selector.evaluate(_with_item(bindings, index, item), moment)
                for index, item in enumerate(items)
            ]
            self._notes.stages["afterItemSelector"] = inputs
        batcher = None if self._state.run is None else self._state.run.batcher
        if batcher is not None:
            batches, _ = batched(
                lambda template: template.evaluate(bindings, moment), batcher, inputs
            )
            self._notes.stages["afterItemBatcher"] = batches

    def _bound(self, bindings: Bindings, moment: EvaluationMoment) -> None:
        numbers, run = self._notes.numbers, self._state.run
        concurrency = _evaluated(self._state.concurrency_max, bindings, moment)
        numbers["maxConcurrency"] = whole_number(concurrency or 0, "MaxConcurrency")
        if run is None:
            return
        count = _evaluated(run.tolerated_count, bindings, moment)
        if count is not None:
            numbers["toleratedFailureCount"] = tolerated_count(count)
        percentage = _evaluated(run.tolerated_percentage, bindings, moment)
        if percentage is not None:
            numbers["toleratedFailurePercentage"] = tolerated_percentage(percentage)

    def _require_few_failures(self, items: Sequence[Json] | None) -> None:
        """Check the number of failures. A mocked error stands for the errors of the failed
        iterations.
        """
        failed, mock = self._trial.failed_iterations, self._trial.mock
        if failed is None or not isinstance(mock, MockedResult):
            return
        known = items if items is not None else mock.value
        length = len(known) if isinstance(known, Sequence) else failed
        if failed > length:
            raise validation(
                "Map iteration failure count must be less than or equal to the number of Map "
                "iterations"
            )
        if failed > self._failures_max(length):
            raise StateError(
                error_names.EXCEED_TOLERATED_FAILURE_THRESHOLD, _EXCEEDED, is_whole=True
            )

    def _failures_max(self, length: int) -> float:
        """Return how many iterations may fail: the smaller of both bounds; 0 without any."""
        numbers, bounds = self._notes.numbers, []
        if "toleratedFailureCount" in numbers:
            bounds.append(numbers["toleratedFailureCount"])
        if "toleratedFailurePercentage" in numbers:
            bounds.append(length * numbers["toleratedFailurePercentage"] / 100)
        return min(bounds, default=0)


def _data_read(text: str, config: Mapping[str, Json]) -> Json:
    """Return the data as the reader gives it; None for a manifest, which only names other files.
    Raises StatesFault, UnreadableItems.

    AWS docs, TestState, `stateConfiguration`: the data is "as found in its original source".
    """
    match config.get("InputType", "JSON"):
        case "JSON":
            return json_of(text, "MapItemReaderData")
        case "JSONL":
            return [json_of(line, "MapItemReaderData") for line in text.split("\n") if line.strip()]
        case "CSV":
            return list(items_of(text.encode(), config))
        case _:
            return None


def _evaluated(template: Template | None, bindings: Bindings, moment: EvaluationMoment) -> Json:
    return None if template is None else template.evaluate(bindings, moment)


def _with_item(bindings: Bindings, index: int, item: Json) -> Bindings:
    states = cast("Mapping[str, Json]", bindings["states"])
    context = cast("Mapping[str, Json]", states["context"])
    within: Json = {**context, "Map": {"Item": {"Index": index, "Value": item}}}
    return {**bindings, "states": {**states, "context": within}}


def _point(data: Json, pointer: str) -> Json:
    """Return the value at a JSON Pointer (RFC 6901); null when nothing is there."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        else:
            return None
    return data
