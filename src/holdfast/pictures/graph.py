"""The bare graph of a layout: boxes, links and their places. It has no states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: A point: x to the right, y downwards, in pixels at full size.
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to place. `is_aside`: place it to the right of the path without errors."""

    width: float
    height: float
    is_aside: bool = False
    is_good_end: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link between boxes, by their positions. `label`: width and height of its text box, or None.

    `exit_width`: the width of a short word beside the way out; 0 without one.
    """

    source: int
    target: int
    is_catch: bool = False
    label: tuple[float, float] | None = None
    exit_width: float = 0.0


@dataclass(frozen=True, slots=True)
class DrawnRoute:
    """The route of one link. `points`: from the source's bottom to the target's top, right-angled.

    `joins`: the route ends early, where it meets another link's line to the same target. `label`:
    the upper left corner of the link's text box.
    """

    points: tuple[Point, ...]
    joins: bool
    label: Point | None


@dataclass(frozen=True, slots=True)
class Arranged:
    """An arranged graph. `places`: upper left corners. Everything is within `width` and
    `height`.
    """

    width: float
    height: float
    places: tuple[Point, ...]
    routes: tuple[DrawnRoute, ...]
