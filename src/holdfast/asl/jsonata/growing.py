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
from collections.abc import Iterable
from dataclasses import field
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
# An append of more nodes is not remembered: to weigh them would take too long.
_ADDED_NODES_MAX: Final = 10_000
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
    weight: int


@dataclass(slots=True)
class GrowingLists:
    """The lists that were measured last in this process. Several threads use it."""

    _entries: OrderedDict[int, _Entry] = field(default_factory=OrderedDict)
    _weight: int = 0
    _lock: Lock = field(default_factory=Lock)

    def note_appended(self, value: list[Any], base: list[Any]) -> None:
        """Remember that the list begins with the items of `base`, if `base` is remembered.

        The new items are weighed, although the list may never be measured: an expression that only
        counts the list would otherwise leave texts of any length in memory.
        """
        known = self._entry(base)
        if known is None:
            return
        added = _weight_of(value[len(base) :])
        if added is not None and known.weight + added <= _WEIGHT_MAX:
            with self._lock:
                self._put(_Entry(value, len(value), base, None, known.weight + added))

    def note_measured(self, value: list[Any], measure: Measure) -> None:
        if len(value) < ITEMS_MIN or measure.weight > _WEIGHT_MAX:
            return
        with self._lock:
            known = self._entry(value)
            base = None if known is None else known.base
            self._put(_Entry(value, len(value), base, measure, measure.weight))

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


def _weight_of(items: list[Any]) -> int | None:
    """Return the weight of the items; None when they have too many nodes."""
    nodes, characters, level = 0, 0, items
    while level:
        inner = [one for one in level if isinstance(one, list | dict)]
        nodes += len(level)
        characters += sum(len(one) for one in level if isinstance(one, str))
        if nodes + sum(map(len, inner)) > _ADDED_NODES_MAX:
            return None
        level = [part for one in inner for part in _parts(one)]
    return Measure(nodes, characters).weight


def _parts(value: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return value if isinstance(value, list) else (*value, *value.values())


#: One for each process, because the expressions of all executions share their compiled code.
NEWEST: Final = GrowingLists()
