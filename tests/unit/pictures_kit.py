"""Reading a picture back: where its boxes are, and which way its lines go."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

from holdfast.pictures.model import Look
from holdfast.pictures.read import read_drawing
from holdfast.pictures.svg import draw_svg

SVG = "{http://www.w3.org/2000/svg}"
#: Coordinates are rounded to a tenth.
NEAR = 0.3
_TIP_HEIGHT = 7.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Rectangle:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rectangle) -> bool:
        return (
            self.left < other.right - NEAR
            and other.left < self.right - NEAR
            and self.top < other.bottom - NEAR
            and other.top < self.bottom - NEAR
        )

    def holds(self, other: Rectangle) -> bool:
        return (
            self.left <= other.left + NEAR
            and self.right >= other.right - NEAR
            and self.top <= other.top + NEAR
            and self.bottom >= other.bottom - NEAR
        )


@dataclass(frozen=True)
class Line:
    source: str
    target: str
    kind: str
    points: tuple[Point, ...]
    joins: bool

    def pieces(self) -> Iterator[Rectangle]:
        for (x, y), (to_x, to_y) in zip(self.points, self.points[1:], strict=False):
            yield Rectangle(min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y))


@dataclass
class Picture:
    text: str
    boxes: dict[str, Rectangle] = field(default_factory=dict)
    classes: dict[str, set[str]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)


def draw(definition: Any, source_map: Any = None, look: Look | None = None) -> Picture:
    picture = Picture(draw_svg(read_drawing(definition, source_map), look))
    root = ET.fromstring(picture.text)
    for group in root.iter(f"{SVG}g"):
        classes = set(group.get("class", "").split())
        if "node" in classes:
            name = group.get("data-state", "")
            assert name not in picture.boxes, f"{name} is drawn twice"
            picture.boxes[name] = _box(group)
            picture.classes[name] = classes
            picture.titles[name] = group.findtext(f"{SVG}title", "")
        elif "edge" in classes and group.get("data-to") is not None:
            picture.lines.append(_line(group, classes))
    picture.words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    return picture


def _box(group: ET.Element) -> Rectangle:
    polygon = group.find(f"{SVG}polygon")
    if polygon is not None:
        points = [tuple(map(float, one.split(","))) for one in polygon.get("points", "").split()]
        xs, ys = [point[0] for point in points], [point[1] for point in points]
        return Rectangle(min(xs), min(ys), max(xs), max(ys))
    found = group.find(f"{SVG}rect")
    assert found is not None
    x, y, wide, high = (float(found.get(key, "")) for key in ("x", "y", "width", "height"))
    return Rectangle(x, y, x + wide, y + high)


def _line(group: ET.Element, classes: set[str]) -> Line:
    path = group.find(f"{SVG}path")
    assert path is not None
    joins = group.find(f"{SVG}circle") is not None
    numbers = re.findall(r"([MLQ])([^MLQ]+)", path.get("d", ""))
    points: list[Point] = []
    for position, (letter, text) in enumerate(numbers):
        values = [float(value) for value in text.split()]
        # A round corner's middle is the corner; where it begins and ends lies on the way.
        if letter == "Q" or position in {0, len(numbers) - 1}:
            points.append((values[0], values[1]))
    if not joins:
        x, y = points[-1]
        points[-1] = (x, y + _TIP_HEIGHT - 1.0)
    kind = (classes & {"next", "catch", "deadline"}).pop()
    return Line(group.get("data-from", ""), group.get("data-to", ""), kind, tuple(points), joins)


# -- rules for every picture -----------------------------------------------------------------------


def check(definition: Any, picture: Picture) -> None:
    """Every state once, nothing on top of anything, every way drawn and through no box."""
    levels = list(levels_of(definition))
    assert sorted(picture.boxes) == sorted(name for states in levels for name in states)
    for states in levels:
        _check_boxes([picture.boxes[name] for name in states])
        for name, state in states.items():
            for inner in _inner(state):
                for below in inner["States"]:
                    assert picture.boxes[name].holds(picture.boxes[below]), (name, below)
        _check_lines(states, picture)


def _check_boxes(boxes: list[Rectangle]) -> None:
    ordered = sorted(boxes, key=lambda box: box.top)
    for number, box in enumerate(ordered):
        for other in ordered[number + 1 :]:
            if other.top > box.bottom:
                break
            assert not box.overlaps(other), (box, other)


def _check_lines(states: dict[str, Any], picture: Picture) -> None:
    lines = [line for line in picture.lines if line.target in states]
    found = sorted((line.source, line.target, line.kind) for line in lines if line.source)
    assert found == sorted(set(ways_of(states)))
    assert [line.source for line in lines].count("") == 1  # from the dot where it starts
    for line in lines:
        target = picture.boxes[line.target]
        source = picture.boxes[line.source] if line.source else None
        (x, y), (to_x, to_y) = line.points[0], line.points[-1]
        if source is not None:
            assert abs(y - source.bottom) < NEAR and source.left < x < source.right, line
        if line.joins:
            assert any(
                other is not line
                and other.target == line.target
                and other.kind == line.kind
                and any(piece.holds(Rectangle(to_x, to_y, to_x, to_y)) for piece in other.pieces())
                for other in lines
            ), line
        else:
            assert abs(to_y - target.top) < NEAR and target.left < to_x < target.right, line
        for piece in line.pieces():
            for name in states:
                assert not picture.boxes[name].overlaps(piece), (line, name)


def levels_of(machine: Any) -> Iterator[dict[str, Any]]:
    yield machine["States"]
    for state in machine["States"].values():
        for inner in _inner(state):
            yield from levels_of(inner)


def _inner(state: Any) -> list[Any]:
    processors = [state["ItemProcessor"]] if "ItemProcessor" in state else []
    return [*state.get("Branches", ()), *processors]


def ways_of(states: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, state in states.items():
        for rule in (*state.get("Choices", ()), state):
            for key in ("Next", "Default"):
                if key in rule:
                    yield name, rule[key], "next"
        for catcher in state.get("Catch", ()):
            yield name, catcher["Next"], "catch"


# -- machines --------------------------------------------------------------------------------------


def random_machine(seed: int, size: int) -> Any:
    """Loops, handlers, nested branches and long words, in no sensible order."""
    return _machine(random.Random(seed), size, "s", 0)


def _machine(chance: random.Random, size: int, prefix: str, depth: int) -> Any:
    names = [f"{prefix}{number}" + " and more" * chance.randrange(4) for number in range(size)]
    states = {name: _state(chance, names, number, depth) for number, name in enumerate(names)}
    return {"StartAt": names[0], "States": states}


def _state(chance: random.Random, names: list[str], number: int, depth: int) -> Any:
    if number == len(names) - 1:
        return {"Type": "Succeed"}
    onwards: dict[str, Any] = {"Next": names[number + 1]}
    if chance.random() < 0.3:
        onwards["Next"] = chance.choice(names)
    catch = [
        {"ErrorEquals": chance.choice([["States.ALL"], ["A.Long.Name.Of.An.Error"]]), "Next": name}
        for name in chance.sample(names, chance.choice([0, 0, min(2, len(names))]))
    ]
    match chance.randrange(8):
        case 0:
            rules = [
                {"Variable": "$.x" * chance.randrange(1, 12), "IsNull": True, "Next": name}
                for name in chance.choices(names, k=chance.randrange(1, 4))
            ]
            return {"Type": "Choice", "Choices": rules, "Default": onwards["Next"]}
        case 1 if depth < 2:
            lines = range(chance.randrange(1, 4))
            branches = [
                _machine(chance, chance.randrange(1, 5), f"{names[number]}.{n}.", depth + 1)
                for n in lines
            ]
            return {"Type": "Parallel", "Branches": branches, "Catch": catch, **onwards}
        case 2 if depth < 2:
            inner = _machine(chance, chance.randrange(1, 5), f"{names[number]}.", depth + 1)
            return {"Type": "Map", "ItemProcessor": inner, "Catch": catch, **onwards}
        case 3:
            return {"Type": "Fail", "Error": "Broken"}
        case 4:
            return {"Type": "Wait", "Seconds": 7200, **onwards}
        case _:
            retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 4}]
            return {"Type": "Task", "Resource": "x", "Retry": retry, "Catch": catch, **onwards}
