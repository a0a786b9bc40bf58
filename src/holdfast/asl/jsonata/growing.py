"""The long lists that were measured last, and the lists that they continue.

A loop such as `results.append(task(…))` makes a new list in each round: the old items and a new
one. Two readers would otherwise visit every item in every round, so that a loop of n rounds costs
n² visits:

* the check of a value's bounds (`values.require_bounded`),
* the log, which stores only the new items of a list that continues a stored one.

    round 1   L1 = [a … z]            measured as a whole
    round 2   L2 = [*L1, r]           continues L1: only r is measured, only r is stored

An entry belongs to one list object, which it keeps alive, so that no other object can get the
identity. Lists are values here: no code changes a list after it was made. The memory is bounded: a
list that is not remembered any longer is visited as a whole, with the same result.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field, replace
from threading import Lock
from typing import Any, Final, NamedTuple

from holdfast.lazy_dataclass import dataclass

#: Shorter lists are not remembered: to visit them takes no longer.
ITEMS_MIN: Final = 64
# A list with a greater weight is not remembered, and all remembered lists together have at most the
# second weight. The weight of a node is 1, and that of sixteen characters too.
_WEIGHT_MAX: Final = 150_000
_WEIGHTS_MAX: Final = 450_000
_CHARACTERS_PER_NODE: Final = 16
# A record rarely appends to one list more often than this.
_STEPS_BACK_MAX: Final = 16


class Measure(NamedTuple):
    """The size of a value: how many values it contains, and the characters of its texts and
    keys.
    """

    nodes: int
    characters: int

    def beside(self, other: Measure) -> Measure:
        """Return the measure of a list of the items of two lists."""
        return Measure(self.nodes + other.nodes - 1, self.characters + other.characters)

    @property
    def weight(self) -> int:
        return self.nodes + self.characters // _CHARACTERS_PER_NODE


@dataclass(frozen=True, slots=True)
class _Entry:
    """`base` is the list whose items `value` begins with. `length` is that of `value` when it was
    made: a list that has another length now was changed, and its entry does not count.
    """

    value: list[Any]
    length: int
    base: list[Any] | None
    measure: Measure | None

    @property
    def weight(self) -> int:
        return self.length if self.measure is None else self.measure.weight


@dataclass(slots=True)
class GrowingLists:
    """The lists that were measured last in this process. Several threads use it."""

    _entries: OrderedDict[int, _Entry] = field(default_factory=OrderedDict)
    _weight: int = 0
    _lock: Lock = field(default_factory=Lock)

    def note_appended(self, value: list[Any], base: list[Any]) -> None:
        """Remember that the list begins with the items of `base`, if `base` is remembered."""
        with self._lock:
            if self._entry(base) is not None:
                self._put(_Entry(value, len(value), base, None))

    def note_measured(self, value: list[Any], measure: Measure) -> None:
        if len(value) < ITEMS_MIN or measure.weight > _WEIGHT_MAX:
            return
        with self._lock:
            known = self._entry(value) or _Entry(value, len(value), None, None)
            self._put(replace(known, measure=measure))

    def measure_of(self, value: list[Any]) -> Measure | None:
        known = self._entry(value)
        return None if known is None else known.measure

    def base_of(self, value: list[Any]) -> list[Any] | None:
        known = self._entry(value)
        return None if known is None else known.base

    def continues(self, value: list[Any], older: list[Any]) -> bool:
        """Return True when `value` was made from `older` by appending to it. False: it is not
        known.
        """
        for _ in range(_STEPS_BACK_MAX):
            base = self.base_of(value)
            if base is None or base is older:
                return base is older
            value = base
        return False

    def _entry(self, value: list[Any]) -> _Entry | None:
        found = self._entries.get(id(value))
        if found is None or found.value is not value or found.length != len(value):
            return None
        return found

    def _put(self, entry: _Entry) -> None:
        replaced = self._entries.pop(id(entry.value), None)
        self._weight += entry.weight - (0 if replaced is None else replaced.weight)
        self._entries[id(entry.value)] = entry
        while self._weight > _WEIGHTS_MAX:
            _, oldest = self._entries.popitem(last=False)
            self._weight -= oldest.weight


#: One for each process, because the expressions of all executions share their compiled code.
NEWEST: Final = GrowingLists()
