"""The outcomes that a test scripts for a task, an event or a question.

An outcome is a value (which is returned), an exception or its class (which is raised), a function
of the task's parameters (which is called), or one of the forms below, which can be nested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

Outcome: TypeAlias = Any


class ScriptError(Exception):
    """The script of the test does not fit the calls of the workflow."""


@dataclass(frozen=True, slots=True)
class Never:
    """No result ever comes: the wait or attempt times out, or is cancelled."""


@dataclass(frozen=True, slots=True)
class Real:
    """The task's own function is called."""


@dataclass(frozen=True, slots=True)
class Unscripted:
    """The default for everything that the script does not name."""


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
    """Return `outcome` with a duration, which decides which branch ends first and which time-out
    passes.
    """
    return Takes(require_duration(duration, "takes(…)"), outcome)


def in_turn(*outcomes: Outcome) -> InTurn:
    """Return outcomes for successive attempts: the first attempt gets the first one; the last one
    is repeated.

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
    """Return outcomes in which `times` attempts fail, after `after` that do not. The others have
    the outcome `then`.
    """
    if not is_error(error) or times < 0 or after < 0:
        found = f"fails({error!r:.80}, times={times}, after={after})"
        raise ScriptError(f"{found} takes an error and numbers from 0: fails(ValueError, times=2)")
    return InTurn((then,) * after + (error,) * times + (then,))


def outcome_of(outcome: Outcome, number: int) -> tuple[timedelta, Outcome]:
    """Return the duration of attempt `number` (from 1), and its outcome without the forms around
    it.
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
    # Refuse a number here, because tests are not always type-checked, and a number has no unit.
    if not isinstance(duration, timedelta) or duration < timedelta():
        raise ScriptError(f"{where} takes a duration from 0, as seconds(5), and not {duration!r}")
    return duration


def is_error(outcome: Outcome) -> bool:
    return isinstance(outcome, BaseException) or (
        isinstance(outcome, type) and issubclass(outcome, BaseException)
    )


def is_function(outcome: Outcome) -> bool:
    return isinstance(outcome, Callable) and not isinstance(outcome, type)  # type: ignore[arg-type]
