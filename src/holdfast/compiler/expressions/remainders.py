"""`//` and `%` of floats, by the same steps as Python's own implementation.

`%` of JSONata is the remainder of C's `fmod`: it is exact, and has the sign of the dividend. In
Python the result has the sign of the divisor.
"""

from __future__ import annotations

from typing import Final

from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    QueryTree,
    hold,
    invoke,
)

_ZERO: Final = Constant(0)


def float_modulo(a: QueryTree, b: QueryTree) -> QueryTree:
    def build(rest: QueryTree) -> QueryTree:
        return Conditional(_has_other_sign(rest, b), Binary("+", rest, b), rest)

    return hold(Binary("%", a, b), build, "_rest")


def float_floor(a: QueryTree, b: QueryTree) -> QueryTree:
    def build(dividend: QueryTree, rest: QueryTree) -> QueryTree:
        quotient = Binary("/", Binary("-", dividend, rest), b)
        lower = Binary("-", quotient, Constant(1))
        exact = Conditional(_has_other_sign(rest, b), lower, quotient)
        return hold(exact, _whole, "_quotient")

    return hold(
        a,
        lambda dividend: hold(
            Binary("%", dividend, b), lambda rest: build(dividend, rest), "_rest"
        ),
        "_dividend",
    )


def _has_other_sign(rest: QueryTree, divisor: QueryTree) -> QueryTree:
    differs = Binary("!=", Binary("<", rest, _ZERO), Binary("<", divisor, _ZERO))
    return Binary("and", Binary("!=", rest, _ZERO), differs)


def _whole(quotient: QueryTree) -> QueryTree:
    """Return the whole number that is nearest to the quotient. The quotient is whole but for the
    rounding of the division.
    """
    floor = invoke("floor", quotient)
    is_below = Binary(">", Binary("-", quotient, floor), Constant(0.5))
    return Conditional(is_below, Binary("+", floor, Constant(1)), floor)
