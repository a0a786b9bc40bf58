"""The end of a run, in a form that both runs have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from holdfast.api.boundary import JsonValue
from holdfast.api.error_fields import cause_of_error
from holdfast.api.task_errors import WaitTimeout
from holdfast.asl import error_names

EndStatus: TypeAlias = Literal["SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT"]

#: The error of a child execution that was stopped by another than its parent.
CHILD_ABORTED: Final = "Holdfast.Aborted"
#: The errors that Python raises in expressions. A state machine has one error name for all of them.
_OF_EXPRESSIONS: Final = (
    LookupError,
    ArithmeticError,
    ValueError,
    TypeError,
    AttributeError,
    StopIteration,
)


class RunTimedOut(WaitTimeout):
    """The engine's own time-out. Its error name is States.Timeout, not that of a class."""


# The author's code that reads `type(err).__name__` sees the class of the language.
RunTimedOut.__name__ = WaitTimeout.__name__


class TooManyLanes(Exception):  # noqa: N818 - the name is that of the engine's error
    """The engine's own error for a list that is too long for one `each`."""


TooManyLanes.__name__ = error_names.TOO_MANY_LANES


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run: `output` of a success as JSON; `error` and `cause` of a failure.

    `may_be_expression`: the error may come from an expression.
    """

    status: EndStatus
    output: JsonValue = None
    error: str | None = None
    cause: str = ""
    may_be_expression: bool = False


def end_of_error(error: Exception) -> End:
    name = error_names.TIMEOUT if type(error) is RunTimedOut else type(error).__name__
    cause = cause_of_error(error)
    if isinstance(error, AssertionError):
        # pytest adds the compared values to the text of an `assert` in a module of tests.
        cause = cause.partition("\nassert ")[0]
    return End("FAILED", None, name, cause, isinstance(error, _OF_EXPRESSIONS))
