"""The layout of a drawing. Each machine is laid out separately, the innermost first.

A state never leads out of its machine, so for the machine around it a Parallel or a Map is one box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.pictures.arrange import arrange
from holdfast.pictures.graph import Box, DrawnRoute, Link, Point
from holdfast.pictures.model import DrawnDefinition, DrawnEdge, DrawnState
from holdfast.pictures.sizes import Caption, Words, caption, words

START_SIZE: Final = 12.0
_FRAME_PADDING: Final = 14.0
_FRAME_GAP: Final = 16.0
_ROW_WIDTH_MAX: Final = 1200.0
_NAMES_MAX: Final = 3
_WORD_PADDING: Final = 14.0


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A placed state. `corner` is its upper left corner in the machine around it. `frames` are
    inside of the node.
    """

    node: DrawnState
    corner: Point
    width: float
    height: float
    caption: Caption
    frames: tuple[PlacedFrame, ...]
    waits: tuple[DrawnRoute, ...]


@dataclass(frozen=True, slots=True)
class PlacedFrame:
    """A branch or a processor inside of a node; `corner` is that of its border.

    `content` is where its machine begins.
    """

    corner: Point
    width: float
    height: float
    content: Point
    machine: PlacedMachine


@dataclass(frozen=True, slots=True)
class PlacedEdge:
    """A placed edge. `edge` is None for the line from the dot at which the machine starts."""

    edge: DrawnEdge | None
    words: Words
    route: DrawnRoute


@dataclass(frozen=True, slots=True)
class PlacedMachine:
    """A placed machine. `start` is the corner of the dot from which a line leads to the state
    `first`.
    """

    first: str
    start: Point
    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A node whose size is known, but not its place."""

    width: float
    height: float
    caption: Caption
    frames: tuple[PlacedFrame, ...] = ()
    waits: tuple[DrawnRoute, ...] = ()


def place_machine(machine: DrawnDefinition) -> PlacedMachine:
    said = [words(_label(edge)) for edge in machine.edges]
    needed = _words_width(machine, said)
    shapes = [_shape(node, needed.get(node.name, 0.0)) for node in machine.nodes]
    # The dot of the start is one box and one link more.
    dot = len(shapes)
    found = arrange(_boxes(machine, shapes), _links(machine, said, dot), dot)
    nodes = [
        PlacedNode(node, place, shape.width, shape.height, shape.caption, shape.frames, shape.waits)
        for node, place, shape in zip(machine.nodes, found.places, shapes, strict=False)
    ]
    labelled = zip((*machine.edges, None), (*said, words("")), found.routes, strict=True)
    edges = [PlacedEdge(edge, word, route) for edge, word, route in labelled]
    start = found.places[dot]
    return PlacedMachine(
        machine.start, start, found.width, found.height, tuple(nodes), tuple(edges)
    )


def _boxes(machine: DrawnDefinition, shapes: Sequence[_Shape]) -> list[Box]:
    boxes = []
    for shape, node in zip(shapes, machine.nodes, strict=True):
        is_end = node.is_end and node.kind != "fail"
        boxes.append(Box(shape.width, shape.height, node.role != "forward", is_end))
    return [*boxes, Box(START_SIZE, START_SIZE)]


def _links(machine: DrawnDefinition, said: Sequence[Words], dot: int) -> list[Link]:
    positions = {node.name: n for n, node in enumerate(machine.nodes)}
    links = []
    for edge, word in zip(machine.edges, said, strict=True):
        ends = positions[edge.source], positions[edge.target]
        links.append(Link(*ends, edge.kind != "next", word.long_size, word.short_width))
    return [*links, Link(dot, positions[machine.start])]


def _label(edge: DrawnEdge) -> str:
    """Return the label. It names an error without the errors derived from it; the tooltip lists
    those.
    """
    first, *more = edge.label.split(" or ")
    is_long = edge.kind == "catch" and len(more) >= _NAMES_MAX
    return f"{first} or {len(more)} more" if is_long else edge.label


def _words_width(machine: DrawnDefinition, said: Sequence[Words]) -> dict[str, float]:
    """Return for each state the width that the words at its lower side need.

    All words must fit side by side, and each right of the middle, where a straight line down
    begins.
    """
    widths: dict[str, list[float]] = {}
    for edge, word in zip(machine.edges, said, strict=True):
        widths.setdefault(edge.source, []).append(word.short_width + _WORD_PADDING)
    return {
        name: max(sum(found), 2 * max(found) if len(found) > 1 else 0.0)
        for name, found in widths.items()
    }


def _shape(node: DrawnState, width_min: float) -> _Shape:
    told = caption(node)
    if not node.machines:
        return _Shape(max(told.width, width_min), told.height, told)
    inner = [place_machine(machine) for machine in node.machines]
    # A Map has only one processor, which needs no border.
    padding = _FRAME_PADDING if node.kind == "parallel" else 0.0
    sizes = [(one.width + 2 * padding, one.height + 2 * padding) for one in inner]
    corners, waits, width, height = _side_by_side(sizes, node.after)
    whole = max(width + 2 * _FRAME_PADDING, told.width, width_min)
    left, top = (whole - width) / 2, told.height
    frames = tuple(
        PlacedFrame((left + x, top + y), *size, (left + x + padding, top + y + padding), one)
        for (x, y), size, one in zip(corners, sizes, inner, strict=True)
    )
    moved = tuple(_moved(route, left, top) for route in waits)
    return _Shape(whole, top + height + _FRAME_PADDING, told, frames, moved)


def _side_by_side(
    sizes: Sequence[tuple[float, float]], after: Sequence[Sequence[int]]
) -> tuple[Sequence[Point], Sequence[DrawnRoute], float, float]:
    """Return the corners of the boxes, the connections between them, width and height."""
    links = [Link(wait, line) for line, waits in enumerate(after) for wait in waits]
    if links:
        found = arrange([Box(*size) for size in sizes], links, 0)
        return found.places, found.routes, found.width, found.height
    corners: list[Point] = []
    x = y = widest = lowest = 0.0
    for width, height in sizes:
        if x and x + width > _ROW_WIDTH_MAX:
            x, y = 0.0, lowest + _FRAME_GAP
        corners.append((x, y))
        x += width + _FRAME_GAP
        widest, lowest = max(widest, x - _FRAME_GAP), max(lowest, y + height)
    return corners, (), widest, lowest


def _moved(route: DrawnRoute, x: float, y: float) -> DrawnRoute:
    points = tuple((left + x, top + y) for left, top in route.points)
    return DrawnRoute(points, route.joins, None)
