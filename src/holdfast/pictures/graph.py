"""The bare graph that is laid out: boxes, links, and what their places are. No states in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: x to the right, y downwards, in pixels at full size.
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """`is_aside`: kept to the right of the way that is taken when all goes well."""

    width: float
    height: float
    is_aside: bool = False
    is_good_end: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """Boxes by position. `label`: width and height of its own text box, or None.

    `exit_width`: what a short word beside the way out needs; 0 without one.
    """

    source: int
    target: int
    is_catch: bool = False
    label: tuple[float, float] | None = None
    exit_width: float = 0.0


@dataclass(frozen=True, slots=True)
class DrawnRoute:
    """`points`: from the source's bottom to the target's top, right-angled.

    `joins`: it ends before, where it meets the line of another link that leads to the same target.
    `label`: the upper left corner of the link's text box.
    """

    points: tuple[Point, ...]
    joins: bool
    label: Point | None


@dataclass(frozen=True, slots=True)
class Arranged:
    """`places`: upper left corners. Everything lies within `width` and `height`."""

    width: float
    height: float
    places: tuple[Point, ...]
    routes: tuple[DrawnRoute, ...]
