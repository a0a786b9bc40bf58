"""Drawn numbers that can be drawn again, so that a failing program can be made smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Draw from `seed`, or replay `given`; every draw beyond `given` is 0, the simplest."""

    def __init__(self, seed: int | None = None, given: Sequence[int] = ()) -> None:
        self._random = None if seed is None else Random(seed)
        self._given = given
        self.made: list[int] = []

    def below(self, limit: int) -> int:
        """0 to `limit` - 1."""
        if self._random is not None:
            number = self._random.randrange(limit)
        else:
            at = len(self.made)
            number = min(self._given[at], limit - 1) if at < len(self._given) else 0
        self.made.append(number)
        return number

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent


def shrunk(
    given: Sequence[int], fails: Callable[[Sequence[int]], bool], tries_max: int = 600
) -> Sequence[int]:
    """Return the smallest choices found that still fail: parts left out, numbers made smaller."""
    best = list(given)
    tries = 0

    def attempt(candidate: list[int]) -> bool:
        nonlocal best, tries
        tries += 1
        if tries > tries_max or candidate == best or not fails(candidate):
            return False
        best = candidate
        return True

    is_smaller = True
    while is_smaller and tries < tries_max:
        is_smaller = False
        width = max(len(best) // 2, 1)
        while width:
            at = 0
            while at < len(best) and tries < tries_max:
                if attempt(best[:at] + best[at + width :]):
                    is_smaller = True
                else:
                    at += width
            width //= 2
        # Something simpler, without what belonged to it.
        for at in range(len(best)):
            for width in (1, 2, 4, 8, 16):
                if at + width < len(best):
                    is_smaller |= attempt([*best[:at], 0, *best[at + 1 + width :]])
        for at in range(len(best)):
            for smaller in (0, best[at] // 2 if at < len(best) else 0):
                if at < len(best) and smaller < best[at]:
                    is_smaller |= attempt([*best[:at], smaller, *best[at + 1 :]])
    return best
