"""The places of the items from left to right.

Each item should be near the items that it is connected with. In one row, the places that are
nearest to the wishes of its items, without overlaps, can be computed exactly (isotonic regression
by pooling). The rows are computed in turn, several times.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from holdfast.pictures.rows import RowItem, Rows

GAP: Final = 28.0
COLUMN_GAP: Final = 10.0
_SWEEPS: Final = 10
_FIXED: Final = 1e6
_STRAIGHTENINGS: Final = 3


def place_columns(rows: Rows, fixed: AbstractSet[int]) -> list[float]:
    """Return the x of each item's middle. For the `fixed` items, at most one in a row, it is 0."""
    middles = [0.0] * len(rows.items)
    weights = [_FIXED if n in fixed else _weight(item) for n, item in enumerate(rows.items)]
    for row in rows.rows:
        _settle(rows, row, [0.0] * len(row), weights, middles)
    for sweep in range(_SWEEPS):
        for row in rows.rows if sweep % 2 == 0 else reversed(rows.rows):
            wishes = [0.0 if item in fixed else _wish(rows, item, middles) for item in row]
            _settle(rows, row, wishes, weights, middles)
    for _ in range(_STRAIGHTENINGS):
        _straighten(rows, fixed, middles)
    return middles


def _weight(item: RowItem) -> float:
    """Return how much an item's wish counts: a bent line is worse than a box that is not in the
    middle.
    """
    return 4.0 if item.trunk is not None else 1.0


def _wish(rows: Rows, item: int, middles: Sequence[float]) -> float:
    beside = rows.neighbours[item]
    if not beside:
        return middles[item]
    if rows.items[item].trunk is None:
        return sum(middles[other] for other in beside) / len(beside)
    # A column follows mainly the line that it belongs to. The lines that join it have less weight.
    trunk = rows.items[item].trunk
    weights = [8.0 if rows.items[other].trunk == trunk else 1.0 for other in beside]
    total = sum(weight * middles[other] for weight, other in zip(weights, beside, strict=True))
    return total / sum(weights)


def distance(left: RowItem, right: RowItem) -> float:
    """Return the least distance between the middles of two neighbours."""
    is_column = left.trunk is not None and right.trunk is not None
    return (left.width + right.width) / 2 + (COLUMN_GAP if is_column else GAP)


def _settle(
    rows: Rows,
    row: Sequence[int],
    wishes: Sequence[float],
    weights: Sequence[float],
    middles: list[float],
) -> None:
    apart = [
        distance(rows.items[left], rows.items[right]) for left, right in itertools.pairwise(row)
    ]
    own = [weights[item] for item in row]
    for item, middle in zip(row, nearest(wishes, own, apart), strict=True):
        middles[item] = middle


def nearest(
    wishes: Sequence[float], weights: Sequence[float], apart: Sequence[float]
) -> list[float]:
    """Return increasing numbers, at least `apart` from each other, as near to `wishes` as
    possible.
    """
    offsets = [0.0, *itertools.accumulate(apart)]
    # Subtract from each wish the distances before it. If the results are equal or increase from
    # left to right, all distances are kept. The loop finds such numbers that are nearest to the
    # wishes (isotonic regression): it merges neighbours that are in the wrong order into one pool.
    pools: list[tuple[float, float, int]] = []
    for wish, weight, offset in zip(wishes, weights, offsets, strict=False):
        pool = ((wish - offset) * weight, weight, 1)
        while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
        pools.append(pool)
    flat = [total / weight for total, weight, count in pools for _ in range(count)]
    return [place + offset for place, offset in zip(flat, offsets, strict=False)]


def _straighten(rows: Rows, fixed: AbstractSet[int], middles: list[float]) -> None:
    """Place a chain of items that lead only to each other in one column, if there is room."""
    room = _room(rows, middles)
    for chain in _chains(rows):
        run: list[int] = []
        low, high = float("-inf"), float("inf")
        for item in chain:
            left, right = (middles[item], middles[item]) if item in fixed else room[item]
            if run and max(low, left) > min(high, right):
                _align(run, low, high, middles)
                run, low, high = [], float("-inf"), float("inf")
            run.append(item)
            low, high = max(low, left), min(high, right)
        _align(run, low, high, middles)
        for item in chain:
            _update(rows, room, item, middles)


def _align(run: Sequence[int], low: float, high: float, middles: list[float]) -> None:
    wanted = sorted(middles[item] for item in run)[len(run) // 2]
    for item in run:
        middles[item] = min(max(wanted, low), high)


def _room(rows: Rows, middles: Sequence[float]) -> dict[int, tuple[float, float]]:
    room: dict[int, tuple[float, float]] = {}
    for row in rows.rows:
        for number, item in enumerate(row):
            room[item] = _between(rows, row, number, middles)
    return room


def _between(
    rows: Rows, row: Sequence[int], number: int, middles: Sequence[float]
) -> tuple[float, float]:
    low, high, item = float("-inf"), float("inf"), rows.items[row[number]]
    if number > 0:
        low = middles[row[number - 1]] + distance(rows.items[row[number - 1]], item)
    if number + 1 < len(row):
        high = middles[row[number + 1]] - distance(item, rows.items[row[number + 1]])
    here = middles[row[number]]
    # Include the present place in the range. The sums of the same distances can differ in the last
    # digit, so the place could lie just outside.
    return min(low, here), max(high, here)


def _update(
    rows: Rows, room: dict[int, tuple[float, float]], item: int, middles: Sequence[float]
) -> None:
    row = rows.rows[rows.items[item].row]
    number = rows.positions[item]
    for other in (number - 1, number + 1):
        if 0 <= other < len(row):
            room[row[other]] = _between(rows, row, other, middles)


def _chains(rows: Rows) -> list[list[int]]:
    """Return the chains, each from the top. A chain is a column of one line, or items that follow
    each other without a fork; its items are moved together, so that the line through them stays
    straight.
    """
    taken: set[int] = set()
    chains: list[list[int]] = []
    for row in rows.rows:
        for first in row:
            if first in taken:
                continue
            chain = [first]
            taken.add(first)
            while (on := _onwards(rows, chain[-1])) is not None and on not in taken:
                chain.append(on)
                taken.add(on)
            if len(chain) > 1:
                chains.append(chain)
    return chains


def _onwards(rows: Rows, item: int) -> int | None:
    here = rows.items[item]
    below = [other for other in rows.neighbours[item] if rows.items[other].row == here.row + 1]
    if here.trunk is not None:
        same = [other for other in below if rows.items[other].trunk == here.trunk]
        if same:
            return same[0]
    if len(below) != 1:
        return None
    above = [other for other in rows.neighbours[below[0]] if rows.items[other].row == here.row]
    return below[0] if len(above) == 1 else None
