"""Places boxes and routes the lines between them: first rows, then columns, then the lines between
rows.

Lines are horizontal only between rows, and vertical only in columns of their own, so that no line
crosses a box.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.pictures.columns import place_columns
from holdfast.pictures.graph import Arranged, Box, DrawnRoute, Link, Point
from holdfast.pictures.ports import Net, place_ports, tracks_of
from holdfast.pictures.ranks import rank
from holdfast.pictures.rows import Pin, Rows, build_rows

_TRACK: Final = 9.0
_BELOW_ROW: Final = 10.0
_BELOW_ROW_WITH_WORDS: Final = 19.0
_ABOVE_ROW: Final = 14.0


def arrange(boxes: Sequence[Box], links: Sequence[Link], start: int) -> Arranged:
    """Place the boxes and route the links. `start` is the box at the top. There is at least one
    box; links may form loops.
    """
    ranks = rank(boxes, links, start)
    rows = build_rows(boxes, links, ranks)
    middles = place_columns(rows, _straight(rows, links, ranks.spine))
    ports = place_ports(rows, links, middles)
    gaps = _gaps(rows, links, ports)
    grid = _Grid(rows, middles, ports, gaps, _tops(rows, gaps))
    routes = grid.routes(links)
    return _moved(grid, boxes, routes)


def _straight(rows: Rows, links: Sequence[Link], spine: Sequence[int]) -> set[int]:
    """Return the boxes of the spine (the straight way down), and the items that its lines cross."""
    steps = set(itertools.pairwise(spine))
    return set(spine) | {
        pin.item
        for link, way in zip(links, rows.ways, strict=True)
        if (link.source, link.target) in steps and not link.is_catch
        for pin in way
    }


@dataclass(frozen=True, slots=True)
class _Gap:
    """The space above a row. `tracks` are the heights of horizontal lines below the top of the
    space, by net.
    """

    height: float
    tracks: Mapping[int, float]


def _gaps(rows: Rows, links: Sequence[Link], ports: Mapping[Pin, float]) -> list[_Gap]:
    nets: list[list[Net]] = [[] for _ in range(len(rows.rows) + 1)]
    for (gap, key), pins in rows.nets.items():
        upper = tuple(ports[pin] for pin in pins if rows.items[pin.item].row < gap)
        lower = tuple(ports[pin] for pin in pins if rows.items[pin.item].row >= gap)
        nets[gap].append(Net(key, upper, lower))
    worded = {rows.items[link.source].row + 1 for link in links if link.exit_width}
    gaps: list[_Gap] = []
    for number, here in enumerate(nets):
        tracks = tracks_of(here)
        above = _BELOW_ROW_WITH_WORDS if number in worded else _BELOW_ROW
        lines = max(tracks.values(), default=-1) + 1
        height = above + lines * _TRACK + _ABOVE_ROW if here else 0.0
        gaps.append(_Gap(height, {key: above + track * _TRACK for key, track in tracks.items()}))
    return gaps


def _tops(rows: Rows, gaps: Sequence[_Gap]) -> list[tuple[float, float]]:
    """Return the upper and lower edge of each row."""
    found: list[tuple[float, float]] = []
    y = 0.0
    for row, gap in zip(rows.rows, gaps, strict=False):
        y += gap.height
        height = max((rows.items[item].height for item in row), default=0.0)
        found.append((y, y + height))
        y += height
    return found


@dataclass(frozen=True, slots=True)
class _Grid:
    rows: Rows
    middles: Sequence[float]
    ports: Mapping[Pin, float]
    gaps: Sequence[_Gap]
    edges: Sequence[tuple[float, float]]

    def place(self, item: int) -> Point:
        """Return the upper left corner."""
        found = self.rows.items[item]
        return self.middles[item] - found.width / 2, self.edges[found.row][0]

    def routes(self, links: Sequence[Link]) -> list[DrawnRoute]:
        texts = {item.link: n for n, item in enumerate(self.rows.items) if item.link >= 0}
        drawn: dict[tuple[int, int], tuple[float, float]] = {}
        # Where several lines come together, draw the longest as a whole. Draw the others only up to
        # the point at which they meet it.
        order = sorted(range(len(links)), key=lambda n: (-len(self.rows.ways[n]), n))
        found = {n: self._route(n, texts.get(n), drawn) for n in order}
        return [found[n] for n in range(len(links))]

    def _route(
        self, link: int, text: int | None, drawn: dict[tuple[int, int], tuple[float, float]]
    ) -> DrawnRoute:
        way = self.rows.ways[link]
        corner = self.place(text) if text is not None else None
        points: list[Point] = []
        for pin, on in zip(way[::2], way[1::2], strict=True):
            net = self._net(pin, on, link, way[-1].port)
            leg = self._leg(pin, on, net)
            reached = drawn.get(net)
            if reached is not None and len(leg) > 2:
                return DrawnRoute(_tidy([*points, leg[0], *_up_to(leg, reached)]), True, corner)
            drawn[net] = min(leg[0][0], leg[-1][0]), max(leg[0][0], leg[-1][0])
            points += leg
        return DrawnRoute(_tidy(points), False, corner)

    def _net(self, pin: Pin, on: Pin, link: int, port: int) -> tuple[int, int]:
        gap = self.rows.items[pin.item].row + (pin.side == "bottom")
        return gap, -1 - link if self.rows.items[on.item].link == link else port

    def _leg(self, pin: Pin, on: Pin, net: tuple[int, int]) -> list[Point]:
        """Return the line from one item to the next, through the gap between them."""
        begin, end = (self.ports[pin], self._y(pin)), (self.ports[on], self._y(on))
        track = self.gaps[net[0]].tracks.get(net[1])
        if track is None:
            return [begin, end]
        y = self._top_of_gap(net[0]) + track
        return [begin, (begin[0], y), (end[0], y), end]

    def _top_of_gap(self, gap: int) -> float:
        return self.edges[gap - 1][1] if gap > 0 else 0.0

    def _y(self, pin: Pin) -> float:
        """Return the height of a pin. A column extends through its whole row; a box ends at its own
        edge.
        """
        item = self.rows.items[pin.item]
        top, bottom = self.edges[item.row]
        if pin.side == "top":
            return top
        return bottom if item.trunk is not None else top + item.height


def _up_to(leg: Sequence[Point], reached: tuple[float, float]) -> list[Point]:
    """Return the part of a line up to the horizontal line that is already drawn, given by its two
    x.
    """
    (x, y), low, high = leg[1], *reached
    joint = min(max(x, low), high)
    return [(x, y), (joint, y)]


def _tidy(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points without those on a straight line between two others."""
    found: list[Point] = []
    for point in points:
        if found and _is_same(found[-1], point):
            continue
        if len(found) > 1 and _is_between(found[-2], found[-1], point):
            found[-1] = point
        else:
            found.append(point)
    return tuple(found)


def _is_same(one: Point, other: Point) -> bool:
    return abs(one[0] - other[0]) < 0.01 and abs(one[1] - other[1]) < 0.01


def _is_between(first: Point, middle: Point, last: Point) -> bool:
    return any(
        abs(first[axis] - middle[axis]) < 0.01
        and abs(middle[axis] - last[axis]) < 0.01
        and (middle[1 - axis] - first[1 - axis]) * (last[1 - axis] - middle[1 - axis]) > 0
        for axis in (0, 1)
    )


def _moved(grid: _Grid, boxes: Sequence[Box], routes: Sequence[DrawnRoute]) -> Arranged:
    """Return everything moved, so that its upper left corner is the origin."""
    items = range(len(grid.rows.items))
    left = min(
        *(grid.place(item)[0] for item in items),
        *(x for route in routes for x, _ in route.points),
        grid.place(0)[0],
    )
    right = max(
        *(grid.place(item)[0] + grid.rows.items[item].width for item in items),
        *(x for route in routes for x, _ in route.points),
        grid.place(0)[0],
    )
    last = grid.gaps[len(grid.rows.rows)]
    # Below the last row there are only the curves of loops. So leave out the space that a gap keeps
    # for the lines to the next row.
    below = last.height - _ABOVE_ROW if last.height else 0.0

    def move(point: Point) -> Point:
        return point[0] - left, point[1]

    return Arranged(
        right - left,
        grid.edges[-1][1] + below,
        tuple(move(grid.place(box)) for box in range(len(boxes))),
        tuple(
            DrawnRoute(
                tuple(map(move, route.points)),
                route.joins,
                move(route.label) if route.label else None,
            )
            for route in routes
        ),
    )
