"""A drawing as SVG. It has no scripts and loads no fonts; the same drawing always gives the same
bytes.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.pictures.graph import DrawnRoute, Point
from holdfast.pictures.layout import (
    START_SIZE,
    PlacedEdge,
    PlacedMachine,
    PlacedNode,
    place_machine,
)
from holdfast.pictures.model import Drawing, DrawnSource, DrawnState, Look, Mark
from holdfast.pictures.sizes import FONT, ICON, ICON_COLUMN, PADDING, POINT, WORD_LINE
from holdfast.pictures.style import ICONS, KIND_WORDS, STATUS_WORDS, STYLE
from holdfast.pictures.text import cut, escaped, shown, width
from holdfast.pictures.wording import TIMES

_MARGIN: Final = 16.0
_TITLE_HEIGHT: Final = 26.0
_TITLE_ROOM: Final = 480.0
_TITLE_FONT: Final = FONT["name"][0]
_CORNER: Final = 6.0
_TIP: Final = (3.6, 7.0)
_NOT_REACHED: Final = Mark("not_reached", 0)


def draw_svg(drawing: Drawing, look: Look | None = None) -> str:
    """Return one `<svg>` element with a newline at its end; it can stand alone or in a page."""
    placed = place_machine(drawing.machine)
    title = cut(shown(" · ".join([drawing.title, *drawing.remarks])), _TITLE_ROOM, _TITLE_FONT)
    wide = max(placed.width, width(title, _TITLE_FONT)) + 2 * _MARGIN
    high = placed.height + 2 * _MARGIN + _TITLE_HEIGHT
    size = f'width="{_number(wide)}" height="{_number(high)}"'
    name = escaped(shown(drawing.title))
    states = sum(1 for _ in _nodes(placed))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="holdfast" {size} '
        f'viewBox="0 0 {_number(wide)} {_number(high)}" role="graphics-document document" '
        f'aria-roledescription="state machine" aria-label="{name}">'
    )
    lines = [
        opening,
        f"<title>{name}</title>",
        f"<desc>State machine {name} with {states} state{'' if states == 1 else 's'}.</desc>",
        f"<style>{STYLE}</style>",
        '<rect class="behind" width="100%" height="100%"/>',
        _text((_MARGIN, _MARGIN + 12.0), "name begin", title),
    ]
    corner = (wide - placed.width) / 2, _MARGIN + _TITLE_HEIGHT
    lines += _Pen(look or Look()).machine(placed, corner)
    return "\n".join([*lines, "</svg>", ""])


def _nodes(machine: PlacedMachine) -> Iterator[PlacedNode]:
    for node in machine.nodes:
        yield node
        for frame in node.frames:
            yield from _nodes(frame.machine)


@dataclass(frozen=True, slots=True)
class _Pen:
    look: Look

    def machine(self, machine: PlacedMachine, at: Point) -> Iterator[str]:
        x, y = _sum(at, machine.start)
        half = START_SIZE / 2
        yield f'<circle class="dot" {_at(x + half, y + half, "c")} r="{_number(half)}"/>'
        for edge in machine.edges:
            yield from _edge(edge, machine.first, at)
        for edge in machine.edges:
            yield from _word(edge, at)
        for node in machine.nodes:
            yield from self._node(node, _sum(at, node.corner))

    def _node(self, placed: PlacedNode, at: Point) -> Iterator[str]:
        node = placed.node
        mark = self._mark(node)
        classes = ["node", node.kind, node.role]
        classes += ["end"] if node.is_end and node.kind != "fail" else []
        classes += ["frame"] if placed.frames else []
        classes += [mark.status] if mark else []
        told = _told(node, mark)
        yield (
            f'<g class="{" ".join(classes)}" data-state="{escaped(node.name)}" '
            f'role="graphics-symbol" aria-label="{escaped(shown("; ".join(told)))}">'
        )
        yield f"<title>{escaped(chr(10).join(told))}</title>"
        yield _outline(placed, at)
        yield from self._caption(placed, at)
        if mark and mark.count > 1:
            yield from _count(mark.count, (at[0] + placed.width, at[1]))
        yield "</g>"
        for route in placed.waits:
            yield from ('<g class="edge next">', *_line(route, at), "</g>")
        for frame in placed.frames:
            if node.kind == "parallel":
                x, y = _sum(at, frame.corner)
                size = _size(frame.width, frame.height)
                yield f'<rect class="branch" {_at(x, y)} {size} rx="6"/>'
            yield from self.machine(frame.machine, _sum(at, frame.content))

    def _mark(self, node: DrawnState) -> Mark | None:
        return self.look.marks.get(node.name, _NOT_REACHED) if self.look.marks else None

    def _caption(self, placed: PlacedNode, at: Point) -> Iterator[str]:
        told = placed.caption
        left = at[0] + (placed.width - told.width) / 2 if placed.frames else at[0]
        room = told.width if placed.frames else placed.width
        inset = PADDING + (POINT if placed.node.kind == "choice" else 0.0)
        # Another box may have made this one wider. Keep the icon next to the text and not at the
        # border.
        spare = (room - told.width) / 2
        icon = left + spare + inset, at[1] + told.height / 2 - ICON / 2
        place = f'transform="translate({_number(icon[0])} {_number(icon[1])})"'
        yield f'<path class="icon" {place} d="{ICONS[placed.node.kind]}"/>'
        middle = left + room / 2 + ICON_COLUMN / 2
        y = at[1] + PADDING
        for line in told.lines:
            size, height = FONT[line.style]
            y += height
            drawn = _text((middle, y - (height - size) / 2 - 1.5), line.style, line.text)
            if line.style == "source" and self.look.link_prefix and placed.node.source:
                drawn = f'<a href="{self._address(placed.node.source)}">{drawn}</a>'
            yield drawn

    def _address(self, source: DrawnSource) -> str:
        path = urllib.parse.quote(source.file.replace("\\", "/"), errors="replace")
        return escaped(f"{self.look.link_prefix}{path}#L{source.line}")


# -- nodes -----------------------------------------------------------------------------------------


def _told(node: DrawnState, mark: Mark | None) -> list[str]:
    """Return the tooltip, line by line."""
    told = [node.name, ", ".join([KIND_WORDS[node.kind], *node.details]), *node.notes]
    if mark:
        times = f" ({mark.count} times)" if mark.count > 1 else ""
        told.insert(1, STATUS_WORDS[mark.status] + times)
    if node.source is not None:
        told.append(f"{node.source.file}:{node.source.line}  {node.source.text}".rstrip())
    return told


def _outline(placed: PlacedNode, at: Point) -> str:
    (x, y), wide, high = at, placed.width, placed.height
    if placed.node.kind == "choice":
        right, bottom, middle = x + wide, y + high, y + high / 2
        corners = (
            (x + POINT, y),
            (right - POINT, y),
            (right, middle),
            (right - POINT, bottom),
            (x + POINT, bottom),
            (x, middle),
        )
        points = " ".join(f"{_number(left)},{_number(top)}" for left, top in corners)
        return f'<polygon class="box" points="{points}"/>'
    is_pill = placed.node.kind in {"succeed", "fail"}
    radius = min(high / 2, 22.0) if is_pill else 6.0
    return f'<rect class="box" {_at(x, y)} {_size(wide, high)} rx="{_number(radius)}"/>'


def _count(count: int, corner: Point) -> Iterator[str]:
    text = f"{count}{TIMES}"
    wide = width(text, FONT["source"][0]) + 10.0
    x, y = corner[0] - wide + 6.0, corner[1] - 8.0
    yield f'<rect class="mark" {_at(x, y)} {_size(wide, 16.0)} rx="8"/>'
    yield _text((x + wide / 2, y + 11.5), "mark-text", text)


# -- edges -----------------------------------------------------------------------------------------


def _edge(placed: PlacedEdge, first: str, at: Point) -> Iterator[str]:
    if placed.edge is None:
        opening = f'<g class="edge next" data-to="{escaped(first)}">'
        yield from (opening, *_line(placed.route, at), "</g>")
        return
    edge = placed.edge
    ends = f'data-from="{escaped(edge.source)}" data-to="{escaped(edge.target)}"'
    label = f": {edge.label}" if edge.label else ""
    yield f'<g class="edge {edge.kind}" {ends}>'
    yield f"<title>{escaped(f'{edge.source} → {edge.target}{label}')}</title>"
    yield from _line(placed.route, at)
    yield "</g>"


def _line(route: DrawnRoute, at: Point) -> Iterator[str]:
    points = [_sum(at, point) for point in route.points]
    x, y = points[-1]
    if route.joins:
        yield f'<path class="line" d="{_path(points)}"/>'
        yield f'<circle class="dot" {_at(x, y, "c")} r="2.4"/>'
        return
    half, high = _TIP
    yield f'<path class="line" d="{_path([*points[:-1], (x, y - high + 1.0)])}"/>'
    tip = f"M{_number(x)} {_number(y)}l{-half:g} {-high:g}h{2 * half:g}z"
    yield f'<path class="tip" d="{tip}"/>'


def _path(points: Sequence[Point]) -> str:
    """Return straight lines with rounded corners."""
    parts = [f"M{_pair(points[0])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        radius = min(_CORNER, _length(before, corner) / 2, _length(corner, after) / 2)
        begin, end = _towards(corner, before, radius), _towards(corner, after, radius)
        parts.append(f"L{_pair(begin)}Q{_pair(corner)} {_pair(end)}")
    return "".join([*parts, f"L{_pair(points[-1])}"])


def _word(placed: PlacedEdge, at: Point) -> Iterator[str]:
    words, route = placed.words, placed.route
    if route.label is not None and words.long_size is not None:
        x, y = _sum(at, route.label)
        yield f'<rect class="behind" {_at(x, y)} {_size(*words.long_size)}/>'
        for number, line in enumerate(words.long):
            middle = x + words.long_size[0] / 2, y + number * WORD_LINE + 12.5
            yield _text(middle, "word", line)
    elif words.short:
        x, y = _sum(at, route.points[0])
        yield _text((x + 4.0, y + 12.0), "word begin", words.short)


# -- helpers ---------------------------------------------------------------------------------------


def _text(at: Point, style: str, text: str) -> str:
    return f'<text class="{style}" {_at(*at)}>{escaped(text)}</text>'


def _at(x: float, y: float, centre: str = "") -> str:
    return f'{centre}x="{_number(x)}" {centre}y="{_number(y)}"'


def _size(wide: float, high: float) -> str:
    return f'width="{_number(wide)}" height="{_number(high)}"'


def _sum(one: Point, other: Point) -> Point:
    return one[0] + other[0], one[1] + other[1]


def _length(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _towards(begin: Point, end: Point, length: float) -> Point:
    whole = _length(begin, end) or 1.0
    part = length / whole
    return begin[0] + (end[0] - begin[0]) * part, begin[1] + (end[1] - begin[1]) * part


def _pair(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
