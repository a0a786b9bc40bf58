"""The values that a log already contains: a record refers to them instead of writing them again.

A list that grows in a loop is stored as the list before it and the new items. The book keeps only
the newest versions of such a list as lists. It keeps an older one as its stored form, so that n
rounds take the memory of n items, and not of n lists with up to n items each:

    round 1   [5, 0]   a list of 100 items     a value
    round 2   [6, 0]   [5, 0] and 1 item       `continued`, and a value while it is new
    round 3   [7, 0]   [6, 0] and 1 item       `continued`, and a value while it is new
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Final, TypeAlias

from holdfast.asl.jsonata.growing import NEWEST
from holdfast.asl.program import Json
from holdfast.limits import LIST_PREFIX_ITEMS_MIN

#: The sequence number of a record, and the number of the value in it.
Place: TypeAlias = tuple[int, int]

#: The beginning of a reference to a value. No text of a user's value contains it: their quotation
#: marks are escaped, and so are their keys of this form.
REFERENCE: Final = '{"@":['
# A new list is compared with at most this many stored lists that begin with the same object.
_LISTS_BY_FIRST_ITEM: Final = 4


def reference(sequence: int, number: int) -> str:
    return f"{REFERENCE}{sequence},{number}]}}"


@dataclass(slots=True)
class ValueBook:
    """The values that the log already contains, with their places.

    `written` maps the text of a value to its reference. `known` maps an object's identity to that
    reference; it also keeps the object alive, because Python would otherwise reuse the identity for
    another object. `lists` has the newest lists by the identity of their first item. `continued`
    has the place of the list that a list continues, and the items that follow. `items` has the
    texts of objects in the long lists of the newest snapshot, by identity: the next snapshot
    contains most of them again.
    """

    written: dict[str, str] = field(default_factory=dict)
    known: dict[int, tuple[Any, str]] = field(default_factory=dict)
    values: dict[Place, Json] = field(default_factory=dict)
    lists: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    continued: dict[Place, tuple[Place, list[Json]]] = field(default_factory=dict)
    items: dict[int, tuple[Json, str]] = field(default_factory=dict)

    def learn(self, sequence: int, number: int, value: Json, text: str) -> None:
        self.written[text] = reference(sequence, number)
        self.values[sequence, number] = value
        if isinstance(value, dict | list):
            self.known[id(value)] = (value, reference(sequence, number))
        if isinstance(value, list) and len(value) >= LIST_PREFIX_ITEMS_MIN:
            self._learn_list((sequence, number), value, text)

    def _learn_list(self, place: Place, value: list[Json], text: str) -> None:
        if text.startswith(REFERENCE):
            sequence, number, _ = text.removeprefix(REFERENCE).split(",", 2)
            base = int(sequence), int(number)
            self.continued[place] = base, value[len(self.list_at(base)) :]
        newest = (place, *self.lists.get(id(value[0]), ()))
        self.lists[id(value[0])] = newest[:_LISTS_BY_FIRST_ITEM]
        for older in newest[_LISTS_BY_FIRST_ITEM:]:
            if older in self.continued:
                self.known.pop(id(self.values.pop(older)), None)

    def places(self) -> Iterator[Place]:
        yield from self.values
        yield from self.continued

    def at(self, place: Place) -> Json:
        """Return the value at the place. Raises KeyError when the book does not have it."""
        added: list[list[Json]] = []
        while place not in self.values:
            place, items = self.continued[place]
            added.append(items)
        value = self.values[place]
        if not added:
            return value
        assert isinstance(value, list)
        return [*value, *(item for items in reversed(added) for item in items)]

    def list_at(self, place: Place) -> list[Json]:
        value = self.at(place)
        assert isinstance(value, list)
        return value

    def beginning_of(self, value: list[Json]) -> Place | None:
        """Return the place of a stored list that this list continues: each item of the stored list
        is the same object as the item at that position.
        """
        for place in self.lists.get(id(value[0]), ()):
            known = self.list_at(place)
            # Compare the lengths first. `map` ends with the shorter list, so it would take a
            # shortened list for a continuation.
            if len(known) < len(value) and (
                NEWEST.continues(value, known)
                or (known[-1] is value[len(known) - 1] and all(map(is_, known, value)))
            ):
                return place
        return None
