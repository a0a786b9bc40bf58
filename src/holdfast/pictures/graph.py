"""The graph that the layout works with: boxes, links and their places, without states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: A point in pixels at full size. x grows to the right and y grows downwards.
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to place. `is_aside`: it belongs to the right of the path without errors."""

    width: float
    height: float
    is_aside: bool = False
    is_good_end: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two boxes, given by their positions. `label` is the size of its text box, or
    None.

    `exit_width` is the width of a short word at the beginning of the link; 0 without one.
    """

    source: int
    target: int
    is_catch: bool = False
    label: tuple[float, float] | None = None
    exit_width: float = 0.0


@dataclass(frozen=True, slots=True)
class DrawnRoute:
    """The route of one link. `points` lead from the source's bottom to the target's top, with right
    angles.

    `joins`: the route ends where it meets another link's line to the same target. `label` is the
    upper left corner of the link's text box.
    """

    points: tuple[Point, ...]
    joins: bool
    label: Point | None


@dataclass(frozen=True, slots=True)
class Arranged:
    """An arranged graph. `places` are upper left corners. Everything is inside of `width` and
    `height`.
    """

    width: float
    height: float
    places: tuple[Point, ...]
    routes: tuple[DrawnRoute, ...]
