"""Floats rounded to decimal places: `f"{x:,.2f}"`, `f"{share:.0%}"`, `round(x, 2)`.

Python rounds the exact value of a double: `f"{2.675:.2f}"` is `2.67`, because the double is a
little less than 2.675, and `f"{0.125:.2f}"` is `0.12`, because a tie goes to the even digit.
`$round` and `$formatNumber` of JSONata scale the number first. `2.675 * 100` is the double 267.5,
so they give 2.68.

The query here scales, too, but it also computes the part of the product that does not fit into a
double:

    product = rest * scale              rounded to a double
    error   = (high * scale - product) + low * scale      exact, as `rest` is `high + low`

`high` has the first 26 bits of `rest`, so its product with a scale of at most 10**7 is exact (the
method of Veltkamp and Dekker). `product + error` is the exact product. It decides on which side of
the half the value is.
"""

from __future__ import annotations

from typing import Final

from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Block,
    Conditional,
    Constant,
    ItemOf,
    QueryTree,
    Variable,
    hold,
    invoke,
)

#: With more places the scale has more than 24 bits, and its product with `high` is not exact.
PLACES_MAX: Final = 7
_SPLITTER: Final = Constant(2**27 + 1)
_HALF: Final = Constant(0.5)
_ZERO: Final = Constant(0)


def rounded_text(number: QueryTree, places: int, *, has_commas: bool) -> QueryTree:
    """Return the digits of `abs(number)` with `places` decimal places, as a text."""
    # `$string` writes 15 digits of a number, and this picture all of them.
    picture = Constant("#,##0" if has_commas else "0")
    if places == 0:
        size = invoke("abs", number)
        return invoke("formatNumber", invoke("round", size), picture)

    def build(parts: QueryTree) -> QueryTree:
        whole = invoke("formatNumber", ItemOf(parts, _ZERO), picture)
        rest = invoke("string", ItemOf(parts, Constant(1)))
        padded = invoke("pad", rest, Constant(-places), Constant("0"))
        return Binary("&", Binary("&", whole, Constant(".")), padded)

    return hold(_parts(number, places), build, "_parts")


def rounded(number: QueryTree, places: int) -> QueryTree:
    """Return `round(number, places)` of a float. The quotient of two exact integers is the double
    that is nearest to the decimal number, as in Python.
    """
    scale = Constant(10**places)

    def build(parts: QueryTree) -> QueryTree:
        scaled = Binary("*", ItemOf(parts, _ZERO), scale)
        return Binary("/", Binary("+", scaled, ItemOf(parts, Constant(1))), scale)

    size = hold(_parts(number, places), build, "_parts")
    found = hold(size, lambda held: _with_sign_of(number, held), "_rounded")
    # From this size on two neighbouring doubles are further apart than the decimal numbers are, so
    # the number itself is the nearest one.
    is_coarse = Binary(">=", invoke("abs", number), Constant(2**53 // 10**places))
    return Conditional(is_coarse, number, found)


def _with_sign_of(number: QueryTree, size: QueryTree) -> QueryTree:
    return Conditional(Binary("<", number, _ZERO), Binary("-", _ZERO, size), size)


def digits(whole: QueryTree, *, has_commas: bool) -> QueryTree:
    """Return the text of a whole number."""
    if has_commas:
        return invoke("formatNumber", whole, Constant("#,##0"))
    return invoke("string", whole)


def _parts(number: QueryTree, places: int) -> QueryTree:
    """Return `[whole, rest]` of the rounded size: `[2, 67]` for -2.675 and two places."""
    scale = Constant(10**places)
    size, whole, rest = Variable("_size"), Variable("_whole"), Variable("_rest")
    product, high, floor = Variable("_product"), Variable("_high"), Variable("_floor")
    steps: tuple[tuple[str, QueryTree], ...] = (
        ("_size", invoke("abs", number)),
        ("_whole", invoke("floor", size)),
        ("_rest", Binary("-", size, whole)),
        ("_product", Binary("*", rest, scale)),
        ("_split", Binary("*", rest, _SPLITTER)),
        ("_high", Binary("-", Variable("_split"), Binary("-", Variable("_split"), rest))),
        ("_floor", invoke("floor", product)),
        ("_rounded", Binary("+", floor, _step(rest, high, product, floor, scale))),
    )
    found = Variable("_rounded")
    carried = ArrayOf((Binary("+", whole, Constant(1)), _ZERO))
    query: QueryTree = Conditional(Binary("=", found, scale), carried, ArrayOf((whole, found)))
    for name, value in reversed(steps):
        query = Block(name, value, query)
    return query


def _step(
    rest: QueryTree, high: QueryTree, product: QueryTree, floor: QueryTree, scale: QueryTree
) -> QueryTree:
    """Return 1 when the exact product is nearer to `floor + 1`, else 0. A tie goes to the even
    one.
    """
    low = Binary("*", Binary("-", rest, high), scale)
    error = Binary("+", Binary("-", Binary("*", high, scale), product), low)
    half_of_floor = Binary("/", floor, Constant(2))
    is_odd = Binary("!=", invoke("floor", half_of_floor), half_of_floor)

    def by_error(held: QueryTree) -> QueryTree:
        is_tie = Binary("=", held, _ZERO)
        is_up = Binary("or", Binary(">", held, _ZERO), Binary("and", is_tie, is_odd))
        return Conditional(is_up, Constant(1), _ZERO)

    def build(held: QueryTree) -> QueryTree:
        above = Conditional(Binary(">", held, _HALF), Constant(1), _ZERO)
        return Conditional(Binary("=", held, _HALF), hold(error, by_error, "_error"), above)

    return hold(Binary("-", product, floor), build, "_left")
