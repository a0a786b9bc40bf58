"""The arguments of durable calls, read from their nodes and checked."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from holdfast.api.harness import TIME_OUT_TOO_SHORT
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.durations import (
    WHOLE_SECONDS,
    in_seconds,
    is_duration,
    is_whole,
    with_fraction,
)
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    QueryTree,
    failure,
    hold,
)
from holdfast.compiler.types.types import (
    ELAPSED,
    FLOAT,
    INT,
    WRITTEN_DURATION,
    describe,
    is_refused,
    is_text,
    may_be_none,
)
from holdfast.limits import STATE_SECONDS_MAX


class Checks(Protocol):
    """The statements before the call, in which a check can stand."""

    def checked(
        self,
        value: TypedQuery,
        node: ast.expr,
        test: Callable[[QueryTree], QueryTree],
        text: str,
        /,
    ) -> TypedQuery | None:
        """Emit the check that raises ValueError with the text when the test of the value is false,
        and return the value. None when no handler reads that error, so that the expression itself
        may fail.
        """


class StepRefused(Exception):  # noqa: N818 - `Steps` catches it
    """This call was refused, and the refusal is already reported."""


def refuse(
    expressions: Expressions, node: ast.AST, code: str, message: str, help_: str
) -> StepRefused:
    expressions.unit.refuse(node, code, message, help_)
    return StepRefused()


def refuse_none(expressions: Expressions, node: ast.expr) -> StepRefused:
    text = expressions.unit.text(node)
    message = f"`{text}` may be None here"
    return refuse(expressions, node, "HF043", message, f"if {text} is not None: …")


def require_value(expressions: Expressions, node: ast.expr) -> TypedQuery:
    value = expressions.lower(node)
    if is_refused(value.type):
        raise StepRefused
    return value


def require_text(expressions: Expressions, node: ast.expr) -> TypedQuery:
    value = require_value(expressions, node)
    if not is_refused(value.type) and may_be_none(value.type):
        raise refuse_none(expressions, node)
    if not is_text(value.type):
        help_ = f"str({expressions.unit.text(node)})"
        raise refuse(expressions, node, "HF040", "this must be a text", help_)
    return value


def require_duration(expressions: Expressions, node: ast.expr, checks: Checks | None) -> TypedQuery:
    """Return the seconds of a duration. `checks`: None when an operand before it may fail, whose
    error is the first one in Python.
    """
    value = require_value(expressions, node)
    is_positive = not isinstance(value.query, Constant) or (
        isinstance(value.query.value, int) and value.query.value > 0
    )
    if not is_duration(value.type) or not is_positive:
        message, help_ = "this must be a duration above zero", "minutes(5), days(3)"
        if value.type == ELAPSED:
            message = "the difference of two moments may have a fraction of a second"
            help_ = "sleep_until(later), or seconds(math.ceil(elapsed.total_seconds()))"
        raise refuse(expressions, node, "HF052", message, help_)
    match value.query:
        case Constant(int(seconds)) if seconds > STATE_SECONDS_MAX:
            message = f"this is {seconds:,} seconds; a wait has at most {STATE_SECONDS_MAX:,}"
            help_ = "days(1157); to sleep longer: for _ in range(10): sleep(days(365))"
            raise refuse(expressions, node, "HF052", message, help_)
        case _ if checks is not None and value.type == WRITTEN_DURATION:
            found = checks.checked(with_fraction(value), node, is_whole, WHOLE_SECONDS)
            return in_seconds(value) if found is None else found
        case _:
            return in_seconds(value)


def require_time_out(expressions: Expressions, node: ast.expr, checks: Checks | None) -> TypedQuery:
    """Return the query for a time-out, which raises an error at run time when it is below one
    second.
    """
    value = require_duration(expressions, node, checks)
    if isinstance(value.query, Constant):
        return value
    return with_check(value, node, checks, _is_long, TIME_OUT_TOO_SHORT)


def _is_long(seconds: QueryTree) -> QueryTree:
    return Binary(">=", seconds, Constant(1))


def with_check(
    value: TypedQuery,
    node: ast.expr,
    checks: Checks | None,
    test: Callable[[QueryTree], QueryTree],
    text: str,
) -> TypedQuery:
    """Return the value with a check that raises ValueError: before the call where a handler reads
    that error, and in the expression elsewhere.
    """
    found = None if checks is None else checks.checked(value, node, test, text)
    if found is not None:
        return found
    error = failure(f"ValueError: {text}")
    query = hold(value.query, lambda held: Conditional(test(held), held, error))
    return TypedQuery(query, value.type, value.fails | {"ValueError"})


@dataclass(frozen=True, slots=True)
class Count:
    """An argument that is an int from `least` to `most` (None: no upper bound)."""

    name: str
    least: int
    most: int | None = None

    @property
    def expected(self) -> str:
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"

    def holds(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most)


def require_count(expressions: Expressions, node: ast.expr, count: Count) -> TypedQuery:
    """Return the count. If its value is not known at compile time, it may be out of range."""
    value = require_value(expressions, node)
    help_ = f"{count.name}={max(count.least, 1)}"
    if may_be_none(value.type):
        raise refuse_none(expressions, node)
    if value.type != INT:
        message = f"{count.name} must be an int, not {describe(value.type)}"
        rounded = f"{count.name}=round({expressions.unit.text(node)})"
        help_ = rounded if value.type == FLOAT else help_
        raise refuse(expressions, node, "HF040", message, help_)
    match value.query:
        case Constant(int(number)):
            if not count.holds(number):
                message = f"{count.name} is {number}, expected {count.expected}"
                raise refuse(expressions, node, "HF008", message, help_)
            return value
        case _:
            return value
