"""The values that a Map computes before its iterations, and the test for too many failures.

The result of a Map on trial is a mock, so nothing is read, started or written: the items are those
of the input, or the data that the caller says was read.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, Final, cast

from holdfast.asl import error_names
from holdfast.asl.field_errors import not_an_array
from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.program import ItemReader, Json, MapState
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core.decision import whole_number
from holdfast.core.map_bounds import tolerated_count, tolerated_percentage
from holdfast.core.map_items import STATE_DATA, MapItem, batched, default_input, described
from holdfast.core.map_run import with_whole_number
from holdfast.runtime.item_formats import READ_TYPES, UnreadableItems, items_max, items_of
from holdfast.stepfunctions.faults import validation
from holdfast.stepfunctions.trial.definition import Tested
from holdfast.stepfunctions.trial.request import MockedResult, Trial
from holdfast.stepfunctions.trial.stage import Bindings, Notes

_EXCEEDED: Final = "The specified tolerated failure threshold was exceeded"


class MapFields:
    """Evaluates the fields of one Map in AWS's order, and notes them."""

    def __init__(self, tested: Tested, trial: Trial, notes: Notes) -> None:
        assert isinstance(tested.state, MapState)
        self._state = tested.state
        self._written = tested.written
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

    def _items(self, bindings: Bindings, moment: EvaluationMoment) -> list[MapItem] | None:
        """Return the items; None when they are unknown, because a reader without mocked data gives
        them.
        """
        state = self._state
        if state.run is not None and state.run.reader is not None:
            return self._read(state.run.reader, bindings, moment)
        found = cast("Bindings", bindings["states"])["input"]
        if state.items is not None:
            found = state.items.evaluate(bindings, moment)
        if not isinstance(found, list) and (state.run is None or not isinstance(found, dict)):
            raise EvaluationError("", not_an_array(found))
        items = described(found, repeat(STATE_DATA, len(found)))
        if state.run is None:
            # The context object of an inline iteration has no source.
            items = [{"Index": item["Index"], "Value": item["Value"]} for item in items]
        if "ItemsPath" in self._written:
            self._notes.stages["afterItemsPath"] = [default_input(item) for item in items]
        return items

    def _read(
        self, reader: ItemReader, bindings: Bindings, moment: EvaluationMoment
    ) -> list[MapItem] | None:
        """Return the items in the mocked data, which is that of one file (AWS docs, TestState,
        `stateConfiguration`: "as found in its original source"). A manifest only names other files,
        so its items are unknown.
        """
        arguments = _evaluated(reader.arguments, bindings, moment) or {}
        config = _evaluated(reader.config, bindings, moment) or {}
        assert isinstance(arguments, dict)
        assert isinstance(config, dict)
        config = with_whole_number(config)
        data = self._trial.reader_data
        if data is None or config.get("InputType", "JSON") not in READ_TYPES:
            return None
        try:
            most = items_max(config)
            found = items_of(data.encode(), config)
            if isinstance(found, Mapping):
                whole: Any = dict(found)
                taken: Any = dict(itertools.islice(found.items(), most))
            elif "ItemsPointer" in config:
                whole = list(found)
                taken = whole[:most]
            else:
                whole = taken = list(itertools.islice(found, most))
        except UnreadableItems as problem:
            error = error_names.ITEM_READER_FAILED
            raise StateError(error, str(problem), is_whole=True) from None
        if "ItemsPointer" in config:
            self._notes.stages["afterItemsPointer"] = whole
        source = f"S3://{arguments.get('Bucket')}/{arguments.get('Key')}"
        return described(taken, repeat(source, len(taken)))

    def _select(
        self, items: Sequence[MapItem], bindings: Bindings, moment: EvaluationMoment
    ) -> None:
        inputs = [default_input(item) for item in items]
        selector = self._state.item_selector
        if selector is not None:
            inputs = [selector.evaluate(_with_item(bindings, item), moment) for item in items]
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
        most = whole_number(concurrency or 0, "MaxConcurrency")
        if self._is_jsonata or self._state.concurrency_max is not None:
            # AWS shows the default, 0, of JSONata alone.
            numbers["maxConcurrency"] = most
        if run is None:
            return
        count = _evaluated(run.tolerated_count, bindings, moment)
        if count is not None:
            numbers["toleratedFailureCount"] = tolerated_count(count)
        percentage = _evaluated(run.tolerated_percentage, bindings, moment)
        if percentage is not None:
            numbers["toleratedFailurePercentage"] = tolerated_percentage(percentage)

    def _require_few_failures(self, items: Sequence[MapItem] | None) -> None:
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


def _evaluated(template: Template | None, bindings: Bindings, moment: EvaluationMoment) -> Json:
    return None if template is None else template.evaluate(bindings, moment)


def _with_item(bindings: Bindings, item: MapItem) -> Bindings:
    states = cast("Mapping[str, Json]", bindings["states"])
    context = cast("Mapping[str, Json]", states["context"])
    within: Json = {**context, "Map": {"Item": item}}
    return {**bindings, "states": {**states, "context": within}}
