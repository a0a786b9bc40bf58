"""The cost of work on large values, in items of the budget: about 0.35 microseconds each.

Whatever an expression can make large is paid for before it is gone through, at its slowest: two
texts that are alike to their ends, a part that is nearly found at every place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl.jsonata.values import character_count, node_count

#: Shorter lists and texts are part of their step.
BULK_MIN: Final = 64
#: Reading this many characters of a text costs as much as one item.
CHARACTERS_PER_ITEM: Final = 64
ITEMS_PER_CALL: Final = 4  # the price of one call of a built-in function by a closure
_COMPARED_PER_ITEM: Final = 512  # how many characters of two equal texts are compared for one item
_TRIED_PER_ITEM: Final = 2_048  # how many comparisons of a text search cost one item
# In a longer text a longer part is searched for in linear time: CPython's two-way search.
_SEARCHED_BY_PLACES_MAX: Final = 2_500
_PART_MAX: Final = 100
_ITEMS_PER_PAIR: Final = 3  # the price of comparing two values in lists or objects
_ITEMS_PER_COPY: Final = 4  # the price of copying one value in a list or an object
ITEMS_PER_NODE: Final = 3  # the price of writing a number, or a value in a list or an object
_ITEMS_PER_KEY: Final = 6  # the price of a key that compares a value with others
_PARSED_PER_ITEM: Final = 16
_READ_BY_A_PICTURE: Final = 10  # the price of reading one character with a picture
_DIGITS_CUBED_PER_ITEM: Final = 100
_WRITTEN_PER_ITEM: Final = 8  # characters of JSON


def comparison_items(value: Any) -> int:
    """The cost of comparing a value with an equal one. Raises as node_count does.

    Two texts are compared at once, but to their first difference; that may be a million characters
    away, in each of a thousand items.
    """
    return node_count(value) * _ITEMS_PER_PAIR + character_count(value) // _COMPARED_PER_ITEM


def distinct_items(value: Any) -> int:
    """The cost of finding equal parts of a value. Raises as node_count does."""
    return node_count(value) * _ITEMS_PER_KEY + character_count(value) // _COMPARED_PER_ITEM


def compared_items(text: str, others: Iterable[Any]) -> int:
    """The cost of comparing a text with each of the others: at most to the shorter one's end."""
    if len(text) <= _COMPARED_PER_ITEM:
        return 0
    alike = sum(min(len(text), len(other)) for other in others if type(other) is str)
    return alike // _COMPARED_PER_ITEM


def sorting_items(items: list[Any]) -> int:
    """The cost of sorting: each text is compared with some of the others to their end."""
    if not items or type(items[0]) is not str:
        return 0
    return sum(map(len, items)) * len(items).bit_length() // _COMPARED_PER_ITEM


def merging_items(part: dict[str, Any]) -> int:
    """The cost of copying an object's fields into another one: equal keys are compared."""
    return len(part) + sum(map(len, part)) // _COMPARED_PER_ITEM


def searching_items(text: str, part: str) -> int:
    """The cost of searching a text for a part of it, from one end to the other."""
    tried = len(part) if len(text) < _SEARCHED_BY_PLACES_MAX else min(len(part), _PART_MAX)
    return len(text) * tried // _TRIED_PER_ITEM


def copying_items(value: Any) -> int:
    """The cost of copying a value with all its leaves. Raises as node_count does."""
    return node_count(value) * _ITEMS_PER_COPY


def parsing_items(text: str) -> int:
    """The cost of parsing JSON, without the value that it makes."""
    return len(text) // _PARSED_PER_ITEM


def picture_items(picture: str) -> int:
    """The cost of reading a picture of a number or a time, or of reading a text with one."""
    return len(picture) * _READ_BY_A_PICTURE


def words_items(number: int) -> int:
    """The cost of a number in words: 300 digits take a tenth of a second, 30 almost nothing."""
    return len(str(number)) ** 3 // _DIGITS_CUBED_PER_ITEM


def writing_items(value: Any) -> int:
    """The cost of writing a list or an object, without its length. Raises as node_count does."""
    return node_count(value) * ITEMS_PER_NODE


def written_items(text: str) -> int:
    """The cost of the text of a list or an object that was written."""
    return len(text) // _WRITTEN_PER_ITEM


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of a function. The base price of each call is in items. The factors compare the
    time with a copy: one for reading the arguments, one for the text that it makes. 0: no such
    price.
    """

    call: int = 8  # a call from another function does not count as a step
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
