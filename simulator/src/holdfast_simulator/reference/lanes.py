"""Lanes beside each other, for the reference interpreter: ends of a Parallel or inline Map."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from holdfast.asl.program import Json, MapState, ParallelState
from holdfast_simulator.reference.blocks import Blocks
from holdfast_simulator.reference.fields import (
    Contradiction,
    ReferenceLine,
    StateFailure,
    Undecided,
)
from holdfast_simulator.rulings import Ending

#: Where it starts, its input, and its Map.Item.
Lane: TypeAlias = tuple[str, Json, Json]


_UNENDED: Json = {
    "Error": "BranchCancelled",
    "Cause": "the branches were decided before this one ended",
    "Holdfast.Exception": True,
}


def _returned(failure: StateFailure) -> Json:
    """Return the error as a result: the object that a Catch receives, with a mark."""
    cause = "" if failure.error == "States.Timeout" and failure.cause is None else failure.cause
    return {"Error": failure.error, "Cause": cause, "Holdfast.Exception": True}


class ReferenceLanes(Blocks):
    """The lanes of a Parallel or Map. The ruling has the order of their ends; this class derives
    the results.
    """

    def _follow(self, line: ReferenceLine, name: str, data: Json) -> Json:
        """Return the result of the line. Raises StateFailure."""
        raise NotImplementedError

    def _ending(self, line: ReferenceLine) -> Ending | None:
        """The end of the next attempt in the history; None without a ruling."""
        if self.ruling is None:
            return None
        if line.endings == len(line.visit.endings):
            raise Contradiction(f"{line.position}: attempt {line.endings + 1} was never made")
        line.endings += 1
        return line.visit.endings[line.endings - 1]

    def _items(self, line: ReferenceLine, state: MapState) -> list[Json]:
        items = line.input if state.items is None else self._evaluate(line, state.items)
        if not isinstance(items, list):
            text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
            text = f"Map state input must be an array but was: {text}"
            raise self._failure(line, "States.QueryEvaluationError", text)
        if state.concurrency_max is not None:
            concurrency = self._evaluate(line, state.concurrency_max)
            self._whole(line, concurrency, "MaxConcurrency")
        return items

    def _lanes(
        self, line: ReferenceLine, state: ParallelState | MapState, lanes: Sequence[Lane]
    ) -> Json:
        needed, tolerated = self._quorum(line, state.quorum)
        returns_errors = state.quorum is not None and state.quorum.returns_errors
        results: dict[int, Json] = {}
        failures: list[StateFailure] = []
        ending = self._ending(line)
        opening = 0 if ending is None else ending.opening
        for number in range(len(lanes)) if ending is None else ending.order:
            path = (*line.path, (line.position, opening, number))
            try:
                results[number] = self._lane(
                    line, state, ReferenceLine(path, line), lanes[number], results
                )
            except StateFailure as failure:
                failures.append(failure)
                results[number] = _returned(failure) if returns_errors else None
                if self.ruling is not None and len(failures) > tolerated:
                    if returns_errors:
                        break
                    raise StateFailure(failure.error, failure.cause) from None
            succeeded = len(results) - len(failures)
            if needed is not None and succeeded == needed and len(results) < len(lanes):
                if self.ruling is None:
                    raise Undecided(f"{state.name}: which {needed} are the first")
                break
        if returns_errors:
            succeeded = len(results) - len(failures)
            is_reached = needed is not None and succeeded >= needed
            is_over = len(failures) > tolerated
            return self._partial(state, results, len(lanes), is_over=is_over, is_reached=is_reached)
        if len(failures) > tolerated:
            if len({(one.error, one.cause) for one in failures}) > 1 or tolerated:
                raise Undecided(f"{state.name}: which one fails first")
            raise StateFailure(failures[0].error, failures[0].cause)
        succeeded = len(results) - len(failures)
        if needed is not None and succeeded < needed and len(results) == len(lanes):
            text = f"{succeeded} of {needed} needed branches succeeded"
            raise StateFailure("Holdfast.TooFewSucceeded", text)
        if len(results) < len(lanes) and (needed is None or succeeded < needed):
            raise Contradiction(f"{state.name}: only the lanes {sorted(results)} have ended")
        return [results.get(number) for number in range(len(lanes))]

    def _partial(
        self,
        state: ParallelState | MapState,
        results: Mapping[int, Json],
        count: int,
        *,
        is_over: bool,
        is_reached: bool,
    ) -> Json:
        """Return the results where errors are results. `is_over`: more have failed than may."""
        if self.ruling is None and is_over and count > 1:
            raise Undecided(f"{state.name}: which lanes fail first")
        if len(results) < count and not is_over and not is_reached:
            raise Contradiction(f"{state.name}: only the lanes {sorted(results)} have ended")
        return [results.get(number, _UNENDED) for number in range(count)]

    def _lane(
        self,
        line: ReferenceLine,
        state: ParallelState | MapState,
        inner: ReferenceLine,
        lane: Lane,
        results: Mapping[int, Json],
    ) -> Json:
        start, data, inner.item = lane
        if isinstance(state, MapState) and state.item_selector is not None:
            inner.position, inner.input, inner.visit = line.position, line.input, line.visit
            data = self._evaluate(inner, state.item_selector)
            inner.position = ""
        if isinstance(state, ParallelState) and state.after:
            earlier = state.after[inner.path[-1][2]]
            if earlier:
                data = [results[other] for other in earlier]
        return self._follow(inner, start, data)
