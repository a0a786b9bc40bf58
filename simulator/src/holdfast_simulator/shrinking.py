"""From a failure to the least that still fails: choices first, then the program's states.

A smaller schedule must violate the same invariant. The search is bounded by runs and effects, not
by time: the same failure shrinks to the same tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from holdfast.errors import HoldfastError
from holdfast_simulator.runner import Deployed, ScheduleResult, play
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.schedule import DrawnChoice, WrittenTape

RUNS_MAX: Final = 600
#: A failure that never ends is shrunk for as long as a thousand normal ones.
EFFECTS_MAX: Final = 300_000
_T = TypeVar("_T")


def shrunk(failed: ScheduleResult) -> ScheduleResult:
    """Return the smallest failure found, which may be the given one."""
    return _Shrinking(failed).run()


class _Shrinking:
    def __init__(self, failed: ScheduleResult) -> None:
        self.best = failed
        self._wanted = failed.violations[0].invariant
        self._runs = self._effects = 0

    def run(self) -> ScheduleResult:
        self._without_choices()
        self._without_states()
        self._without_choices()
        return self.best

    @property
    def _is_over(self) -> bool:
        return self._runs >= RUNS_MAX or self._effects >= EFFECTS_MAX

    def _fails(self, scenario: Scenario, choices: Sequence[DrawnChoice]) -> bool:
        if self._is_over:
            return False
        self._runs += 1
        try:
            result = play(Deployed(scenario), self.best.swarm, WrittenTape(choices))
        except (HoldfastError, KeyError, ValueError):
            return False  # not a valid machine
        self._effects += result.steps
        if self._wanted not in {one.invariant for one in result.violations}:
            return False
        self.best = result
        return True

    def _without_choices(self) -> None:
        scenario = self.best.scenario
        _least(self.best.choices, lambda kept: self._fails(scenario, kept))

    def _without_states(self) -> None:
        while any(
            self._fails(smaller, self.best.choices) for smaller in _smaller(self.best.scenario)
        ):
            if self._is_over:
                return


def _least(items: Sequence[_T], fails: Callable[[Sequence[_T]], bool]) -> None:
    """Remove smaller and smaller parts while it still fails (delta debugging)."""
    size = max(1, len(items) // 2)
    while items:
        start = 0
        while start < len(items):
            kept = (*items[:start], *items[start + size :])
            if fails(kept):
                items = kept
            else:
                start += size
        if size == 1:
            return
        size = max(1, size // 2)


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with one state skipped, or without its events."""
    for number in range(len(scenario.events)):
        events = scenario.events[:number] + scenario.events[number + 1 :]
        yield replace(scenario, events=events)
    for workflow, machine in scenario.machines.items():
        for smaller in _without_one_state(machine):
            yield replace(scenario, machines={**scenario.machines, workflow: smaller})


def _without_one_state(machine: Any) -> Iterator[Any]:
    """Yield the machine with each state that has a Next replaced by a Pass."""
    for name, state in machine["States"].items():
        if state["Type"] != "Pass" and "Next" in state:
            skipped = {"Type": "Pass", "Next": state["Next"]}
            yield {**machine, "States": {**machine["States"], name: skipped}}
        for inner in _nested(state):
            yield {**machine, "States": {**machine["States"], name: inner}}


def _nested(state: Any) -> Iterator[Any]:
    for number, branch in enumerate(state.get("Branches", ())):
        for smaller in _without_one_state(branch):
            branches = [*state["Branches"]]
            branches[number] = smaller
            yield {**state, "Branches": branches}
    if "ItemProcessor" in state:
        for smaller in _without_one_state(state["ItemProcessor"]):
            yield {**state, "ItemProcessor": smaller}
