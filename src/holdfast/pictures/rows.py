"""Rows of items: boxes, text boxes of links, and the columns that long links are drawn through.

All links that lead to one box in one manner share a column: they come together, and fewer lines are
to be read. A loop's column begins beside the box that it returns to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from holdfast.pictures.graph import Box, Link
from holdfast.pictures.ranks import Ranks

COLUMN_WIDTH: Final = 8.0
_SWEEPS: Final = 6
#: The four places of an item in its row, from left to right.
_LOOP, _MAIN, _ASIDE, _LOOP_ASIDE = range(4)

Side: TypeAlias = Literal["top", "bottom"]
#: Identifies the links that share a column. It consists of the target, whether the links lead to a
#: handler, whether they close a loop, and the place in the row.
Trunk: TypeAlias = tuple[int, bool, bool, int]


@dataclass(frozen=True, slots=True)
class RowItem:
    """`box`, `link` (its text box) or `trunk` (a column): one of them is set."""

    row: int
    lane: int
    width: float
    height: float
    box: int = -1
    link: int = -1
    trunk: Trunk | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """The point where a line meets an item. `port` distinguishes the lines at one side of a box."""

    item: int
    side: Side
    port: int


@dataclass(slots=True)
class Rows:
    """The rows of a layout.

    * `rows`: the items of each row, from the left.
    * `ways`: the pins of each link, two for each gap between rows that it crosses.
    * `nets`: the pins that are connected in a gap, by the gap (gap n is above row n) and the owner.
    * `neighbours`: for each item the connected items in the rows above and below.
    * `positions`: for each item its position in its row.
    """

    items: list[RowItem]
    rows: list[list[int]]
    ways: list[list[Pin]]
    nets: dict[tuple[int, int], list[Pin]]
    neighbours: list[list[int]] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Builder:
    boxes: Sequence[Box]
    links: Sequence[Link]
    ranks: Ranks
    items: list[RowItem] = field(default_factory=list)
    columns: dict[tuple[Trunk, int], int] = field(default_factory=dict)
    trunks: dict[Trunk, int] = field(default_factory=dict)

    def build(self) -> Rows:
        for box, row in enumerate(self.ranks.rows):
            lane = _ASIDE if self.boxes[box].is_aside else _MAIN
            size = self.boxes[box]
            self.items.append(RowItem(row, lane, size.width, size.height, box=box))
        ways = [self._way(position) for position in range(len(self.links))]
        rows: list[list[int]] = [[] for _ in range(max(item.row for item in self.items) + 1)]
        for number, item in enumerate(self.items):
            rows[item.row].append(number)
        return Rows(self.items, rows, ways, self._nets(ways))

    def _way(self, position: int) -> list[Pin]:
        link = self.links[position]
        is_back = position in self.ranks.back
        trunk = self._trunk(link, is_back)
        port = self.trunks.setdefault(trunk, len(self.trunks))
        begin, end = self.ranks.rows[link.source], self.ranks.rows[link.target]
        way = [Pin(link.source, "bottom", port)]
        if is_back:
            for row in range(begin, end - 1, -1):
                column = self._column(trunk, row)
                way += [Pin(column, "bottom", 0), Pin(column, "top", 0)]
        else:
            row = begin + 1
            if link.label is not None:
                lane = _ASIDE if link.is_catch or trunk[3] == _ASIDE else _MAIN
                self.items.append(RowItem(row, lane, *link.label, link=position))
                text = len(self.items) - 1
                way += [Pin(text, "top", 0), Pin(text, "bottom", 0)]
                # Give this line a pin of its own, because the line from a box to its text box must
                # join no other line.
                way[0] = Pin(link.source, "bottom", -1 - position)
                row += 1
            for between in range(row, end):
                column = self._column(trunk, between)
                way += [Pin(column, "top", 0), Pin(column, "bottom", 0)]
        return [*way, Pin(link.target, "top", port)]

    def _trunk(self, link: Link, is_back: bool) -> Trunk:
        is_aside = self.boxes[link.source].is_aside or link.is_catch
        if is_back:
            lane = _LOOP_ASIDE if is_aside or self.boxes[link.target].is_aside else _LOOP
        else:
            lane = _ASIDE if is_aside or self.boxes[link.target].is_aside else _MAIN
        return link.target, link.is_catch, is_back, lane

    def _column(self, trunk: Trunk, row: int) -> int:
        if (trunk, row) not in self.columns:
            self.columns[trunk, row] = len(self.items)
            self.items.append(RowItem(row, trunk[3], COLUMN_WIDTH, 0.0, trunk=trunk))
        return self.columns[trunk, row]

    def _nets(self, ways: Sequence[Sequence[Pin]]) -> dict[tuple[int, int], list[Pin]]:
        nets: dict[tuple[int, int], list[Pin]] = {}
        for position, way in enumerate(ways):
            port = way[-1].port
            for pin, on in zip(way[::2], way[1::2], strict=True):
                gap = self.gap(pin)
                is_own = self.items[on.item].link == position
                pins = nets.setdefault((gap, -1 - position if is_own else port), [])
                pins += [one for one in (pin, on) if one not in pins]
        return nets

    def gap(self, pin: Pin) -> int:
        return self.items[pin.item].row + (pin.side == "bottom")


def build_rows(boxes: Sequence[Box], links: Sequence[Link], ranks: Ranks) -> Rows:
    rows = _Builder(boxes, links, ranks).build()
    above, below = _neighbours(rows)
    rows.neighbours = [[*a, *b] for a, b in zip(above, below, strict=True)]
    _order(rows, above, below)
    rows.positions = {item: number for row in rows.rows for number, item in enumerate(row)}
    return rows


# -- the order within the rows ---------------------------------------------------------------------


def _neighbours(rows: Rows) -> tuple[list[list[int]], list[list[int]]]:
    """Return, by item, the connected items in the rows above and below."""
    above: list[list[int]] = [[] for _ in rows.items]
    below: list[list[int]] = [[] for _ in rows.items]
    for (gap, _), pins in rows.nets.items():
        upper = [pin.item for pin in pins if rows.items[pin.item].row < gap]
        lower = [pin.item for pin in pins if rows.items[pin.item].row >= gap]
        for item in upper:
            below[item] += lower
        for item in lower:
            above[item] += upper
    return above, below


def _order(rows: Rows, above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> None:
    """Sweep down and up through the rows and reorder the items. Keep the order with the fewest
    crossings of lines.
    """
    spans = _spans(rows)
    for row in rows.rows:
        row.sort(key=lambda item: (_lane_key(rows, spans, item), item))
    best, fewest = [list(row) for row in rows.rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        is_down = sweep % 2 == 0
        _sweep(rows, spans, above if is_down else below, is_down=is_down)
        found = _crossings(rows, below)
        if found < fewest:
            best, fewest = [list(row) for row in rows.rows], found
    rows.rows = best


def _sweep(
    rows: Rows, spans: Mapping[Trunk, int], beside: Sequence[Sequence[int]], *, is_down: bool
) -> None:
    places: dict[int, float] = {}
    for row in rows.rows if is_down else reversed(rows.rows):
        for number, item in enumerate(row):
            known = [places[other] for other in beside[item] if other in places]
            places[item] = sum(known) / len(known) if known else (number + 0.5) / len(row)
        row.sort(key=lambda item: (_lane_key(rows, spans, item), places[item]))
        for number, item in enumerate(row):
            places[item] = (number + 0.5) / len(row)


def _spans(rows: Rows) -> Mapping[Trunk, int]:
    spans: dict[Trunk, int] = defaultdict(int)
    for item in rows.items:
        if item.trunk is not None:
            spans[item.trunk] += 1
    return spans


def _lane_key(rows: Rows, spans: Mapping[Trunk, int], number: int) -> tuple[int, int, int]:
    """Return the sort key of loops: a loop is beside the boxes it surrounds, an outer one further
    out than an inner one.
    """
    item = rows.items[number]
    if item.trunk is None or item.lane not in {_LOOP, _LOOP_ASIDE}:
        return item.lane, 0, 0
    span = spans[item.trunk]
    return item.lane, -span if item.lane == _LOOP else span, item.trunk[0]


def _crossings(rows: Rows, below: Sequence[Sequence[int]]) -> int:
    places = {item: number for row in rows.rows for number, item in enumerate(row)}
    return sum(
        _inversions([place for item in row for place in sorted(places[to] for to in below[item])])
        for row in rows.rows
    )


def _inversions(places: list[int]) -> int:
    """Return the number of pairs in the wrong order. It uses a tree of sums, because comparing all
    pairs would be slow in a large picture.
    """
    size = max(places, default=0) + 2
    sums = [0] * (size + 1)
    count = 0
    for seen, place in enumerate(places):
        at, smaller = place + 1, 0
        while at > 0:
            smaller += sums[at]
            at -= at & -at
        count += seen - smaller
        at = place + 1
        while at <= size:
            sums[at] += 1
            at += at & -at
    return count
