"""The cost of work on large values, in items of the budget: about 0.35 microseconds each.

If an expression can make a value large, its cost is charged before the value is read. The cost is
that of the slowest case: two texts that differ only at their ends, or a part that almost matches at
every position.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holdfast.asl.jsonata.values import character_count, node_count
from holdfast.lazy_dataclass import dataclass

#: A list or text of this size or more is charged by its size. The charge of a step covers shorter
#: ones.
BULK_MIN: Final = 64
#: A text of this many characters costs as much to read as one item.
CHARACTERS_PER_ITEM: Final = 64
ITEMS_PER_CALL: Final = 4  # the cost of one call of a built-in function by a closure
_COMPARED_PER_ITEM: Final = 512  # comparing this many characters of two equal texts costs one item
_TRIED_PER_ITEM: Final = 2_048  # this many comparisons in a search of text cost one item
# In a text longer than the first number, CPython searches for a part longer than the second one in
# linear time (its two-way search). Otherwise it may compare the part at every place, and the search
# costs more.
_SEARCHED_BY_PLACES_MAX: Final = 2_500
_PART_MAX: Final = 100
_ITEMS_PER_PAIR: Final = 3  # the cost of comparing two values in lists or objects
_ITEMS_PER_COPY: Final = 4  # the cost of copying one value in a list or an object
ITEMS_PER_NODE: Final = 3  # the cost of writing a number, or a value in a list or an object
_ITEMS_PER_KEY: Final = 6  # the cost of a key that compares a value with others
_PARSED_PER_ITEM: Final = 16
# The cost of reading one character with a picture, which is a format of numbers or times.
_READ_BY_A_PICTURE: Final = 10
_DIGITS_CUBED_PER_ITEM: Final = 100
_WRITTEN_PER_ITEM: Final = 8  # writing this many characters of JSON costs one item


def comparison_items(value: Any) -> int:
    """Return the cost of comparing a value with an equal one. Raises the errors of `node_count`.

    Two texts are compared in one operation, up to their first difference. That may be a million
    characters away, in each of a thousand items.
    """
    return node_count(value) * _ITEMS_PER_PAIR + character_count(value) // _COMPARED_PER_ITEM


def distinct_items(value: Any) -> int:
    """Return the cost of finding equal parts of a value. Raises the errors of `node_count`."""
    return node_count(value) * _ITEMS_PER_KEY + character_count(value) // _COMPARED_PER_ITEM


def compared_items(text: str, others: Iterable[Any]) -> int:
    """Return the cost of comparing a text with each of the others: at most to the end of the
    shorter one.
    """
    if len(text) <= _COMPARED_PER_ITEM:
        return 0
    alike = sum(min(len(text), len(other)) for other in others if type(other) is str)
    return alike // _COMPARED_PER_ITEM


def sorting_items(items: list[Any]) -> int:
    """Return the cost of sorting: each text is compared with some of the others, up to their
    ends.
    """
    if not items or type(items[0]) is not str:
        return 0
    return sum(map(len, items)) * len(items).bit_length() // _COMPARED_PER_ITEM


def merging_items(part: dict[str, Any]) -> int:
    """Return the cost of copying the fields of an object into another one: equal keys are
    compared.
    """
    return len(part) + sum(map(len, part)) // _COMPARED_PER_ITEM


def searching_items(text: str, part: str) -> int:
    """Return the cost of searching a text for a part, from one end to the other."""
    tried = len(part) if len(text) < _SEARCHED_BY_PLACES_MAX else min(len(part), _PART_MAX)
    return len(text) * tried // _TRIED_PER_ITEM


def copying_items(value: Any) -> int:
    """Return the cost of copying a value with all values inside it. Raises the errors of
    `node_count`.
    """
    return node_count(value) * _ITEMS_PER_COPY


def parsing_items(text: str) -> int:
    """Return the cost of parsing JSON, without the cost of the resulting value."""
    return len(text) // _PARSED_PER_ITEM


def picture_items(picture: str) -> int:
    """Return the cost of reading a picture (a format of numbers or times), or of reading a text
    with one.
    """
    return len(picture) * _READ_BY_A_PICTURE


def words_items(number: int) -> int:
    """Return the cost of writing a number in words: 300 digits take a tenth of a second, 30 almost
    nothing.
    """
    return len(str(number)) ** 3 // _DIGITS_CUBED_PER_ITEM


def writing_items(value: Any) -> int:
    """Return the cost of writing a list or an object, without that of its length. Raises the errors
    of `node_count`.
    """
    return node_count(value) * ITEMS_PER_NODE


def written_items(text: str) -> int:
    """Return the cost of the text of a list or an object that was written."""
    return len(text) // _WRITTEN_PER_ITEM


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a function. `call` is the cost of each call, in items. The other fields are
    factors of the cost of a copy: one for reading the arguments, one for the text that the function
    creates; 0: nothing.
    """

    # The cost of one call. A call from another built-in function does not count as a step, so it
    # must be charged here.
    call: int = 8
    times: int = 1


_COSTS: Final = {
    "average": Cost(times=3),
    "count": Cost(times=0),
    "decodeUrl": Cost(times=10),
    "decodeUrlComponent": Cost(times=10),
    "encodeUrl": Cost(times=10),
    "encodeUrlComponent": Cost(times=10),
    "exists": Cost(times=0),
    "filter": Cost(times=0),
    "formatInteger": Cost(times=2 * CHARACTERS_PER_ITEM),
    "formatNumber": Cost(call=80, times=2 * CHARACTERS_PER_ITEM),
    "fromMillis": Cost(call=50),
    "join": Cost(times=3),
    "keys": Cost(times=3),
    "lookup": Cost(times=0),
    "lowercase": Cost(times=2),
    "map": Cost(times=0),
    "max": Cost(times=3),
    "merge": Cost(times=3),
    "min": Cost(times=3),
    "now": Cost(call=50),
    "reduce": Cost(times=0),
    "shuffle": Cost(times=2),
    "spread": Cost(times=2),
    "sum": Cost(times=3),
    "trim": Cost(times=8),
    "type": Cost(times=0),
    "uppercase": Cost(times=2),
}


def of(function: str) -> Cost:
    return _COSTS.get(function, Cost())
