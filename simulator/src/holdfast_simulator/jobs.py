"""The jobs that `.sync` tasks start, and the polls of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.runtime.effects import RunTask, TaskFailed, TaskPending, TaskResult, TaskSucceeded
from holdfast_simulator.scenarios import AttemptOutcome, Scenario

#: The answer to a poll, without delay.
_ASKED: Final = AttemptOutcome()


class Jobs:
    """A job begins with the call that starts it, even if the answer is lost. `now` returns the true
    time.

    A repeated call for the same attempt starts no second job, because its idempotency key is the
    same.
    """

    def __init__(self, scenario: Scenario, now: Callable[[], int]) -> None:
        self._scenario = scenario
        self._now = now
        self._since_ms: dict[tuple[str, int, int], int] = {}

    def outcome(self, task: RunTask) -> AttemptOutcome:
        """Return the result of the call that starts the job; a poll takes no time."""
        if task.is_poll:
            return _ASKED
        self._since_ms.setdefault((task.run, task.entry, task.attempt), self._now())
        return self._scenario.outcome(task.name, task.attempt)

    def result(self, task: RunTask) -> TaskResult:
        """Return the worker's result when the call is over."""
        outcome = self._scenario.outcome(task.name, task.attempt)
        if task.is_poll:
            outcome = self._scenario.job(task.name, task.attempt)
            since_ms = self._since_ms[task.run, task.entry, task.attempt]
            if self._now() < since_ms + outcome.seconds * 1_000:
                return TaskPending()
        if outcome.error is not None:
            return TaskFailed(outcome.error, outcome.cause)
        return TaskSucceeded(outcome.output_for(task.arguments))
