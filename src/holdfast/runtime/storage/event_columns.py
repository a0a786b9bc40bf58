"""The events of a record by columns, as records of format 3 have them, and back.

A record of a Map has the same few events for each item. zlib finds a repeated text only in one
piece, so the parts that repeat must stand side by side:

    rows, format 1 and 2    [["TaskStarted",7,0,{"resource":"task:pack"},{"frame":"2.0"}],
                             ["TaskStarted",9,0,{"resource":"task:pack"},{"frame":"2.1"}]]

    columns                 [[["TaskStarted","resource",0,"frame"]],   the shapes of the events
                             [0,0],                                    the shape of each event
                             [0,0],                                    the previous event of each
                             [0,0],                                    the time of each
                             ["task:pack","task:pack"],                the fields of the first
                             ["2.0","2.1"]]                            shape, then of the second ...

A shape is the type of an event, the names of its details, 0, and the names of its `holdfast`
fields. The previous event is nearly always the newest one in the same frame. Its column says how
much older the previous event is than that one, or than the newest event before the record if the
frame has none in it. An event without an id has the number itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from holdfast.core.events import OWN_EVENTS, Event
from holdfast.runtime.storage.json_values import json_text

#: Type, previous event, time, details and `holdfast` fields of an event.
Row: TypeAlias = list[Any]
_Shape: TypeAlias = tuple[str | int, ...]
#: Ends the names of the details in a shape.
_OWN: Final = 0


def columns_text(events: Sequence[Event], at_ms: int, pack: Callable[[str, Any], str]) -> str:
    """Return the columns as JSON text. `pack` returns the text of the field with that name."""
    columns: dict[_Shape, list[list[str]]] = {}
    shapes: list[_Shape] = []
    for event in events:
        shape: _Shape = (event.type, *event.details, _OWN, *event.holdfast)
        shapes.append(shape)
        fields = chain(event.details.items(), event.holdfast.items())
        packed = [pack(name, value) for name, value in fields]
        own = columns.setdefault(shape, [[] for _ in packed])
        for column, text in zip(own, packed, strict=True):
            column.append(text)
    numbers = {shape: number for number, shape in enumerate(columns)}
    times = [event.at_ms - at_ms for event in events]
    heads = ([*columns], [numbers[shape] for shape in shapes], _ages(events), times)
    texts = [json_text(head) for head in heads]
    texts += [f"[{','.join(column)}]" for column in chain.from_iterable(columns.values())]
    return f"[{','.join(texts)}]"


def _ages(events: Sequence[Event]) -> list[int]:
    next_id = next((event.id for event in events if event.type not in OWN_EVENTS), 1)
    newest = _Newest(next_id)
    return [newest.before(event.type, event.holdfast) - event.previous for event in events]


def rows_of(columns: list[Any]) -> list[Row]:
    """Return the events of the columns. The previous event is still relative."""
    shapes, numbers, ages, times, *rest = columns
    # The last value of each reversed list is the next one. Other than an iterator, an empty list
    # raises an error that counts as damage.
    rest = [column[::-1] for column in rest[::-1]]
    readers = [(shape, [rest.pop() for _ in range(len(shape) - 2)]) for shape in shapes]
    used = [column for _, own in readers for column in own]
    rows = []
    for number, age, time in zip(numbers, ages, times, strict=True):
        (event_type, *names), own = readers[number]
        values = [column.pop() for column in own]
        end = names.index(_OWN)
        details = dict(zip(names[:end], values[:end], strict=True))
        rows.append(
            [event_type, age, time, details, dict(zip(names[end + 1 :], values[end:], strict=True))]
        )
    if rest or any(used):
        raise ValueError("values of no event")
    return rows


def with_previous(rows: Iterable[Row], next_id: int) -> Iterator[Row]:
    """Yield the rows with the ids of their previous events. `next_id` is that of the first event
    that has an id.
    """
    newest = _Newest(next_id)
    for event_type, age, time, details, own in rows:
        yield [event_type, newest.before(event_type, own) - age, time, details, own]


class _Newest:
    """The newest event of each frame in a record, while its events are read or written in order."""

    def __init__(self, next_id: int) -> None:
        self._older = next_id - 1
        self._next_id = next_id
        self._by_frame: dict[str, int] = {}

    def before(self, event_type: str, own: Mapping[str, Any]) -> int:
        """Return the event that is probably the previous one of the next event."""
        if event_type in OWN_EVENTS:
            return 0
        frame = own.get("frame", "")
        found = self._by_frame.get(frame, self._older)
        self._by_frame[frame], self._next_id = self._next_id, self._next_id + 1
        return found
