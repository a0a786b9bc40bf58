"""Upper bounds as formulas: `12 + 3·len(order.lines)`; None where no bound is known.

A symbol stands for the largest value that it has in a run. Symbols and coefficients are never
negative. So the larger of two formulas is bounded by the larger coefficient of each term, and a
product of symbols bounds a loop inside a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

#: The sorted symbols of a product. The empty tuple stands for the constant term.
Term: TypeAlias = tuple[str, ...]

TERMS_MAX: Final = 24  # the most terms of one formula; a longer one is not readable


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum of products of symbols, each with its coefficient."""

    terms: Mapping[Term, float] = field(default_factory=dict)

    @property
    def constant(self) -> float | None:
        """The number, if the formula contains no symbol; else None."""
        return self.terms.get((), 0) if set(self.terms) <= {()} else None

    @property
    def symbols(self) -> list[str]:
        return sorted({symbol for term in self.terms for symbol in term})

    def value(self, symbols: Mapping[str, float]) -> float:
        """Return the value of the formula."""
        total = 0.0
        for term, factor in self.terms.items():
            for symbol in term:
                factor *= symbols[symbol]  # noqa: PLW2901
            total += factor
        return total

    def __str__(self) -> str:
        ordered = sorted(self.terms.items(), key=lambda item: (len(item[0]), item[0]))
        return " + ".join(_product(factor, term) for term, factor in ordered) or "0"


#: A bound, or None when no bound is known.
Bound: TypeAlias = Amount | None

ZERO: Final = Amount()


def number(value: float) -> Amount:
    return Amount({(): value}) if value > 0 else ZERO


def symbol(text: str) -> Amount:
    return Amount({(text,): 1})


def plus(*bounds: Bound) -> Bound:
    total: dict[Term, float] = {}
    for bound in bounds:
        if bound is None:
            return None
        for term, factor in bound.terms.items():
            total[term] = total.get(term, 0) + factor
    return _sized(total)


def times(left: Bound, right: Bound) -> Bound:
    """Return the product. Zero times any bound is zero, even times an unknown bound."""
    if ZERO in (left, right):
        return ZERO
    if left is None or right is None:
        return None
    total: dict[Term, float] = {}
    for term, factor in left.terms.items():
        for other, other_factor in right.terms.items():
            product = tuple(sorted(term + other))
            total[product] = total.get(product, 0) + factor * other_factor
    return _sized(total)


def most(bounds: Iterable[Bound]) -> Bound:
    """Return a bound of the largest."""
    total: dict[Term, float] = {}
    for bound in bounds:
        if bound is None:
            return None
        for term, factor in bound.terms.items():
            total[term] = max(total.get(term, 0), factor)
    return _sized(total)


def _sized(terms: dict[Term, float]) -> Bound:
    return Amount(terms) if len(terms) <= TERMS_MAX else None


def _product(factor: float, term: Term) -> str:
    shown = f"{factor:,.10g}" if factor < 10**9 else f"{factor:.2e}"
    if not term:
        return shown
    product = "·".join(term)
    return product if factor == 1 else f"{shown}·{product}"
