"""The outcome that a test scripts for a task, an event or a question.

An outcome is a value (it is returned), an exception or its class (it is raised), a function of the
task's parameters (it is called), or one of the forms below, nested as needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

Outcome: TypeAlias = Any


class ScriptError(Exception):
    """The test's own script does not fit the calls of the workflow."""


@dataclass(frozen=True, slots=True)
class Never:
    """No result ever comes: the wait or attempt runs into its timeout, or is cancelled."""


@dataclass(frozen=True, slots=True)
class Real:
    """The task's own function is called."""


@dataclass(frozen=True, slots=True)
class Unscripted:
    """The defaults for everything that the script does not mention."""


@dataclass(frozen=True, slots=True)
class Takes:
    duration: timedelta
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class InTurn:
    outcomes: tuple[Outcome, ...]


never: Final = Never()
real: Final = Real()
UNSCRIPTED: Final = Unscripted()


def takes(duration: timedelta, outcome: Outcome = UNSCRIPTED, /) -> Takes:
    """`outcome`, after a time that decides races, deadlines and timeouts."""
    return Takes(require_duration(duration, "takes(…)"), outcome)


def in_turn(*outcomes: Outcome) -> InTurn:
    """The first attempt gets the first outcome, and so on; the last one stays.

    Attempts are counted over all calls of the task, retries included.
    """
    if not outcomes:
        raise ScriptError("in_turn() needs an outcome: in_turn(CardDeclined('no'), payment)")
    return InTurn(outcomes)


def fails(
    error: BaseException | type[BaseException],
    /,
    *,
    times: int = 1,
    after: int = 0,
    then: Outcome = UNSCRIPTED,
) -> InTurn:
    """Fails `times` attempts, after `after` that do not; the others have the outcome `then`."""
    if not is_error(error) or times < 0 or after < 0:
        found = f"fails({error!r:.80}, times={times}, after={after})"
        raise ScriptError(f"{found} takes an error and numbers from 0: fails(ValueError, times=2)")
    return InTurn((then,) * after + (error,) * times + (then,))


def outcome_of(outcome: Outcome, number: int) -> tuple[timedelta, Outcome]:
    """Return the duration of attempt `number` (from 1) and its outcome, without the
    wrapping forms.
    """
    match outcome:
        case Takes(duration, inner):
            more, leaf = outcome_of(inner, number)
            return duration + more, leaf
        case InTurn(outcomes):
            position = min(number, len(outcomes)) - 1
            return outcome_of(outcomes[position], max(number - len(outcomes) + 1, 1))
        case _:
            return timedelta(), outcome


def require_duration(duration: timedelta, where: str) -> timedelta:
    # Tests are not always type-checked, and a number has no unit.
    if not isinstance(duration, timedelta) or duration < timedelta():
        raise ScriptError(f"{where} takes a duration from 0, as seconds(5), and not {duration!r}")
    return duration


def is_error(outcome: Outcome) -> bool:
    return isinstance(outcome, BaseException) or (
        isinstance(outcome, type) and issubclass(outcome, BaseException)
    )


def is_function(outcome: Outcome) -> bool:
    return isinstance(outcome, Callable) and not isinstance(outcome, type)  # type: ignore[arg-type]
