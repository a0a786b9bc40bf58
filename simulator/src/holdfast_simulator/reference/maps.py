"""Distributed Maps, for the reference interpreter: which executions they are, and their ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from holdfast.asl.program import DistributedMap, ItemBatcher, Json, MapState
from holdfast.asl.template import Template
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast_simulator.reference.fields import (
    FATES,
    Contradiction,
    ReferenceLine,
    StateFailure,
    Undecided,
    iso,
)
from holdfast_simulator.reference.lanes import ReferenceLanes
from holdfast_simulator.rulings import Ending, RuledEnd, Ruling

_TOO_MANY: Final = (
    "States.ExceedToleratedFailureThreshold",
    "The specified tolerated failure threshold was exceeded",
)
#: The two calls of a Map, as attempts of its entry.
_READING, _WRITING = 1, 2


class _Input(NamedTuple):
    """The input of one child execution, and the number of its items."""

    data: Json
    items: int


class MapRuns(ReferenceLanes):
    """Each item, or batch of items, is an execution; the ruling has the order of their ends."""

    def _told(self, target: str, attempt: int) -> Any:
        """Return the result of reading items or writing results. Raises StateFailure."""
        raise NotImplementedError

    def _item_ended(self, ruling: Ruling | None, data: Json, start_at: str) -> RuledEnd | None:
        """Return the result of an item's execution; None: it was redriven."""
        raise NotImplementedError

    def _map_run(self, line: ReferenceLine, state: MapState) -> Json:
        run = state.run
        assert run is not None
        items = None if run.reader is not None else self._described(line, state)
        ending = self._ending(line)
        if state.concurrency_max is not None:
            self._whole(line, self._evaluate(line, state.concurrency_max), "MaxConcurrency")
        count, share = self._tolerated(line, run)
        if run.reader is not None:
            if run.reader.arguments is not None:
                self._evaluate(line, run.reader.arguments)
            read = {} if run.reader.config is None else self._evaluate(line, run.reader.config)
            if isinstance(read, dict) and "MaxItems" in read:
                self._whole(line, read["MaxItems"], "MaxItems", least=None)
        if ending is not None and ending.error in FATES:
            raise StateFailure(ending.error, ending.cause)
        if run.reader is not None:
            items = _from(self._told(run.reader.target, _READING))
        assert items is not None
        inputs = self._inputs(line, state, run, items)
        shares = [] if share is None else [int(len(items) * share / 100)]
        failures_max = min([*shares, *([] if count is None else [count])], default=0)
        ends, is_over = self._ends(state, inputs, failures_max, ending)
        if run.writer is not None and run.writer.arguments is not None:
            self._evaluate(line, run.writer.arguments)
            written: Json = self._told(run.writer.target, _WRITING)
            if not is_over:
                return written
        if is_over:
            raise StateFailure(*_TOO_MANY)
        config = {} if run.writer is None else run.writer.config
        return self._formatted(run, inputs, ends, ending, config)

    # -- items -------------------------------------------------------------------------------------

    def _described(self, line: ReferenceLine, state: MapState) -> list[dict[str, Json]]:
        items = line.input if state.items is None else self._evaluate(line, state.items)
        if not isinstance(items, list | dict):
            text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
            text = f"Map state input must be an array but was: {text}"
            raise self._failure(line, "States.QueryEvaluationError", text)
        return _from({"items": items, "sources": [["STATE_DATA", len(items)]]})

    def _inputs(
        self,
        line: ReferenceLine,
        state: MapState,
        run: DistributedMap,
        items: list[dict[str, Json]],
    ) -> list[_Input]:
        values: list[Json] = []
        for item in items:
            value = item["Value"]
            if state.item_selector is not None:
                around, line.item = line.item, item
                value = self._evaluate(line, state.item_selector)
                line.item = around
            elif "Key" in item:
                value = {"Key": item["Key"], "Value": value}
            values.append(value)
        if run.batcher is None:
            return [_Input(value, 1) for value in values]
        return self._batches(line, run.batcher, values)

    def _batches(
        self, line: ReferenceLine, batcher: ItemBatcher, values: list[Json]
    ) -> list[_Input]:
        count_max = self._count(line, batcher.items_max, "MaxItemsPerBatch") or len(values)
        size = self._count(line, batcher.bytes_max, "MaxInputBytesPerBatch") or PAYLOAD_BYTES_MAX
        common = None if batcher.input is None else self._evaluate(line, batcher.input)
        around: dict[str, Json] = {} if common is None else {"BatchInput": common}
        batches: list[list[Json]] = []
        for value in values:
            longer = [*batches[-1], value] if batches else []
            is_small = len(_text({**around, "Items": longer}).encode()) <= size
            if longer and len(longer) <= count_max and is_small:
                batches[-1] = longer
            else:
                batches.append([value])
        return [_Input({**around, "Items": batch}, len(batch)) for batch in batches]

    # -- ends --------------------------------------------------------------------------------------

    def _ends(
        self, state: MapState, inputs: Sequence[_Input], failures_max: int, ending: Ending | None
    ) -> tuple[dict[int, RuledEnd], bool]:
        """Return the end of each child, and True when too many items have failed."""
        ends: dict[int, RuledEnd] = {}
        failed = 0
        for number in range(len(inputs)) if ending is None else ending.order:
            ruling = None if ending is None else self._ruling(ending, number)
            ended = self._item_ended(ruling, inputs[number].data, state.processor)
            if ended is None:
                raise Undecided(f"item {number} of {state.name} was redriven")
            ends[number] = ended
            failed += 0 if ended.status == "SUCCEEDED" else inputs[number].items
            if failed > failures_max:
                return ends, True
        if len(ends) < len(inputs):
            raise Contradiction(f"{state.name}: only the items {sorted(ends)} have ended")
        return ends, False

    def _ruling(self, ending: Ending, number: int) -> Ruling:
        assert self.ruling is not None
        run = f"{ending.child}.{number}"
        if run not in self.ruling.others:
            raise Contradiction(f"{run} has ended, and never began")
        return self.ruling.others[run]

    def _formatted(
        self,
        run: DistributedMap,
        inputs: Sequence[_Input],
        ends: dict[int, RuledEnd],
        ending: Ending | None,
        config: Any,
    ) -> Json:
        how, found = config.get("Transformation", "COMPACT"), list[Json]()
        for number, (data, _) in enumerate(inputs):
            ended = ends[number]
            if how == "NONE" or ended.status != "SUCCEEDED":
                if ending is None:
                    raise Undecided("when an item began and ended")
                found.append(_record(run, self._ruling(ending, number), data, ended))
            elif how == "FLATTEN" and isinstance(ended.output, list):
                found += ended.output
            else:
                found.append(ended.output)
        if config.get("OutputType") == "JSONL":
            return "".join(f"{_text(one)}\n" for one in found)
        return found

    # -- numbers -----------------------------------------------------------------------------------

    def _tolerated(
        self, line: ReferenceLine, run: DistributedMap
    ) -> tuple[int | None, float | None]:
        """Return the number and the percentage of items that may fail; None where the definition
        has none.
        """
        count = self._count(line, run.tolerated_count, "ToleratedFailureCount")
        if run.tolerated_percentage is None:
            return count, None
        share = self._evaluate(line, run.tolerated_percentage)
        assert isinstance(share, int | float)
        if not 0 <= share <= 100:
            text = "ToleratedFailurePercentage must be between 0 and 100."
            raise self._failure(line, "States.QueryEvaluationError", text)
        return count, share

    def _count(self, line: ReferenceLine, template: Template | None, where: str) -> int | None:
        return (
            None if template is None else self._whole(line, self._evaluate(line, template), where)
        )


def _from(told: Any) -> list[dict[str, Json]]:
    """{"items": list or object, "sources": [[URI, how many], …]} -> the Map.Item of each."""
    items = told["items"]
    sources = [uri for uri, count in told["sources"] for _ in range(count)]
    if isinstance(items, dict):
        return [
            {"Index": index, "Key": key, "Value": items[key], "Source": sources[index]}
            for index, key in enumerate(items)
        ]
    return [
        {"Index": index, "Value": value, "Source": sources[index]}
        for index, value in enumerate(items)
    ]


def _record(run: DistributedMap, ruling: Ruling, data: Json, ended: RuledEnd) -> Json:
    """An execution as the results have it; its names and times are the ruling's."""
    assert ruling.origin is not None
    found: dict[str, Json] = {
        "ExecutionArn": ruling.origin["execution_arn"],
        "StateMachineArn": ruling.origin["state_machine_arn"],
        "Name": ruling.origin["execution_name"],
        "Status": ended.status,
        "Input": _text(data),
        "StartDate": iso(ruling.started_ms),
        "StopDate": iso(ruling.ended_ms),
        "RedriveCount": 0,
        "RedriveStatus": "REDRIVABLE",
        "InputDetails": {"Included": True},
        "OutputDetails": {"Included": True},
    }
    if ended.status == "SUCCEEDED":
        text = "Execution is SUCCEEDED and cannot be redriven"
        found |= {"RedriveStatus": "NOT_REDRIVABLE", "RedriveStatusReason": text}
        found["Output"] = _text(ended.output)
    elif run.execution_type == "EXPRESS":
        found["RedriveStatus"] = "REDRIVABLE_BY_MAP_RUN"
    told = {"Error": ended.error, "Cause": ended.cause}
    found |= {name: text for name, text in told.items() if text is not None}
    return dict(sorted(found.items()))


def _text(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
