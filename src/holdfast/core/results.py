"""The results of the lanes of a Parallel or Map, by lane number.

The state after each event is a value, so the end of a lane makes a new mapping. A dict would be
copied as a whole: a Map of n lanes would copy n² results. Here the results are in parts of 64
lanes, and only the part of the lane and the list of parts are copied:

    before   {0: A, 1: B}         A has the lanes 0…63, B has 64…127
    after    {0: A, 1: B'}        lane 70 has ended: B' is B and its result

A result is kept as the pair that snapshots contain, [lane, result]. Each snapshot contains most of
the pairs of the one before, and the same object is written from a kept text (`storage/codec.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

#: The lanes of one part. The end of a lane copies at most so many pairs, and one reference for each
#: part: 98 in the largest inline Map.
_PART: Final = 64
Result = TypeVar("Result")
Pair = list[Any]


class Results(Mapping[int, Result]):
    """An immutable mapping. Lanes of one part are in the order in which they were added."""

    __slots__ = ("_count", "_parts")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        parts: dict[int, dict[int, Pair]] = {}
        for pair in pairs:
            parts.setdefault(pair[0] // _PART, {})[pair[0]] = pair
        self._parts: Mapping[int, Mapping[int, Pair]] = parts
        self._count = sum(map(len, parts.values()))

    def __getitem__(self, lane: int) -> Result:
        found: Result = self._parts[lane // _PART][lane][1]
        return found

    def __contains__(self, lane: object) -> bool:
        return isinstance(lane, int) and lane in self._parts.get(lane // _PART, ())

    def __iter__(self) -> Iterator[int]:
        for part in self._parts.values():
            yield from part

    def __len__(self) -> int:
        return self._count

    def with_result(self, lane: int, result: Result) -> Results[Result]:
        """Return the results with that of one more lane."""
        number = lane // _PART
        part = {**self._parts.get(number, {}), lane: [lane, result]}
        after: Results[Result] = Results()
        after._parts = {**self._parts, number: part}
        after._count = self._count + (lane not in self)
        return after

    @property
    def pairs(self) -> list[Pair]:
        """Return the lanes with their results, in the form of a snapshot."""
        return [pair for part in self._parts.values() for pair in part.values()]
