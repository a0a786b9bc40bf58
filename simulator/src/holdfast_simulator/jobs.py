"""Jobs that `.sync` tasks begin, and who asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.runtime.effects import RunTask, TaskFailed, TaskPending, TaskResult, TaskSucceeded
from holdfast_simulator.scenarios import AttemptOutcome, Scenario

#: What somebody who asks is told at once.
_ASKED: Final = AttemptOutcome()


class Jobs:
    """A job runs from the call that begins it, whoever hears of that. `now` is the true time.

    A call that is repeated for the same attempt begins no second one: its key is the same.
    """

    def __init__(self, scenario: Scenario, now: Callable[[], int]) -> None:
        self._scenario = scenario
        self._now = now
        self._since_ms: dict[tuple[str, int, int], int] = {}

    def outcome(self, task: RunTask) -> AttemptOutcome:
        """-> what the call comes to that begins it; of who asks, that it takes no time."""
        if task.is_poll:
            return _ASKED
        self._since_ms.setdefault((task.run, task.entry, task.attempt), self._now())
        return self._scenario.outcome(task.name, task.attempt)

    def result(self, task: RunTask) -> TaskResult:
        """-> what the worker is told when the call is over."""
        outcome = self._scenario.outcome(task.name, task.attempt)
        if task.is_poll:
            outcome = self._scenario.job(task.name, task.attempt)
            since_ms = self._since_ms[task.run, task.entry, task.attempt]
            if self._now() < since_ms + outcome.seconds * 1_000:
                return TaskPending()
        if outcome.error is not None:
            return TaskFailed(outcome.error, outcome.cause)
        return TaskSucceeded(outcome.output_for(task.arguments))
