"""Dicts with keys that are ints or members of enums: JSON has only texts as keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module, compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.migration.shapes import ShapeComparison
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum, auto
from typing import Any
from pydantic import BaseModel
from holdfast import choice, task, workflow

class Status(Enum):
    NEW = "new"
    DONE = "done"

class Level(IntEnum):
    LOW = 1
    HIGH = 20

class Size(StrEnum):
    S = "s"
    L = "l"

class Loud(StrEnum):
    A = "a"

    def upper(self) -> str:
        return "loud"

class Plain(Enum):
    A = auto()
    B = auto()

class Mixed(str, Enum):
    X = "x"

class Page(BaseModel):
    counts: dict[int, int] = {3: 1}
    by_status: dict[Status, list[int]] = {}
    by_level: dict[Level, str] = {Level.LOW: "low"}

@dataclass
class Rows:
    found: dict[int, str] = field(default_factory=dict)

NAMES = {1: "one", 20: "twenty", 3: "three"}
COLOURS = {Status.NEW: "green", Status.DONE: "grey"}

@task
def counted(numbers: list[int]) -> dict[int, int]:
    return {number: numbers.count(number) for number in numbers}
@task
def by_status(counts: dict[Status, int]) -> dict[Status, int]:
    assert all(isinstance(one, Status) for one in counts), counts
    return {one: count + 1 for one, count in counts.items()}
@task
def kinds(page: Page, counts: dict[int, int], levels: dict[Level, int]) -> list[str]:
    found = [*page.counts, *page.by_status, *page.by_level, *counts, *levels]
    return sorted(type(one).__name__ for one in found)
@task
def page_of(number: int) -> Page:
    return Page(counts={number: 2}, by_status={Status.DONE: [number]})
@task
def first(value: int) -> int:
    return value + 1
@task
def second(value: int) -> int:
    return value * 2

BY_STATUS = {Status.NEW: first, Status.DONE: second}
BY_PLAIN = {Plain.A: first, Plain.B: second}
BY_NUMBER = {1: first, 2: second}
BY_SIZE = {Size.S: first, Size.L: second}

"""
NUMBERS: list[dict[str, Any]] = [{"xs": []}, {"xs": [10, 2, 10]}, {"xs": [1, -3, 200, 1, 30]}]
SAME: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "counting by int": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    counts: dict[int, int] = {}
    for x in xs:
        counts[x] = counts.get(x, 0) + 1
    for x in xs:
        counts[x] += 10
    total = sum(key * count for key, count in counts.items())
    order = [sorted(counts), list(counts), max(counts, default=0), sorted(counts.keys())]
    pairs = [(key + 1, count) for key, count in counts.items()]
    inside = [2 in counts, 7 in counts, 2 not in counts]
    return [counts, total, order, pairs, inside, len(counts), list(counts.values())]
""",
        NUMBERS,
    ),
    "loops over the keys": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    squares = {x: x * x for x in xs}
    found: list[int] = []
    for x in squares:
        found.append(x + 1)
    for x, square in squares.items():
        found.append(square - x)
    for x in sorted(squares, key=squares.get, reverse=True):
        found.append(x)
    for place, x in enumerate(squares):
        found.append(place * x)
    return [found, {x: first(x) for x in squares}, [first(x) for x in squares]]
""",
        NUMBERS,
    ),
    "changes of a dict by int": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    counts = {1: 1, 2: 2}
    counts |= {x: 5 for x in xs}
    counts.update({7: 7})
    one = counts.pop(1)
    none = counts.pop(99, 0)
    two = counts.setdefault(2, 3)
    more = counts.setdefault(12, 3)
    del counts[7]
    merged = {**counts, 40: 1} | {50: 2}
    groups: dict[int, list[int]] = {}
    for x in xs:
        groups.setdefault(x % 3, []).append(x)
    return [counts, one, none, two, more, merged, groups, dict(counts) == counts, counts == {}]
""",
        NUMBERS,
    ),
    "pairs": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    a = dict(zip(xs, [str(x) for x in xs]))
    b = dict(enumerate(xs))
    c = dict.fromkeys(xs, 0)
    d = dict([(x, x) for x in xs])
    swapped = {k: v for v, k in b.items()}
    return [a, b, c, d, swapped, sorted(a.items()), sorted({*a}), min(a, default=1)]
""",
        NUMBERS,
    ),
    "constants of the module": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    known = [NAMES[x] for x in xs if x in NAMES]
    names = [NAMES.get(x, "none") for x in xs]
    return [known, names, sorted(NAMES), COLOURS[Status.NEW], [one.name for one in COLOURS]]
""",
        NUMBERS,
    ),
    "tasks with such dicts": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    counts = counted(xs)
    done = by_status({Status.NEW: len(counts), Status.DONE: 1})
    page = page_of(len(xs))
    page.counts[5] = 6
    kind = kinds(page, counts, {Level.HIGH: 1})
    total = sum(counts.values()) + page.counts[5] + done[Status.DONE]
    return [counts, done, page, kind, total, sorted(counts), Page(), Rows(found={1: "a"})]
""",
        NUMBERS,
    ),
    "parameters with such dicts": (
        """
@workflow
def flow(counts: dict[int, int], status: dict[Status, int], page: Page) -> Any:
    names = [one.name for one in status] + [one.value for one, n in status.items() if n]
    level = [one.name for one in page.by_level] + [str(one.value + 1) for one in page.by_level]
    return [counts, status, page, names, level, sorted(counts), counts.get(5)]

""",
        [
            {"counts": {"5": 1, "-7": 2}, "status": {"new": 0, "done": 3}, "page": {}},
            {"counts": {}, "status": {}, "page": {"by_level": {"20": "x", "1": "y"}}},
        ],
    ),
    "keys of enums": (
        """
@workflow
def flow(status: Status, level: Level, size: Size) -> Any:
    seen = {Status.NEW: 0, Status.DONE: 0}
    seen[status] += 1
    levels: dict[Level, int] = {}
    levels[level] = levels.get(level, 0) + 1
    sizes = {one: one.name for one in Size}
    found = [one for one in seen if seen[one]]
    found += [one for one in seen if one is status]
    most = [one.name for one in sizes if one == size]
    return [seen, levels, sizes, found, most, status in seen, Level.LOW in levels, 20 in levels]
""",
        [
            {"status": "new", "level": 20, "size": "s"},
            {"status": "done", "level": 1, "size": "l"},
        ],
    ),
    "members of a StrEnum are texts": (
        """
@workflow
def flow(stock: dict[Size, int], size: Size) -> Any:
    found = [one.upper() + "!" for one in stock] + ["-" + one * 2 for one in stock]
    found += [one.title() for one in stock] + [(one or "none") + one[0] for one in stock]
    names: list[str] = list(stock)
    parts = [size.split("x"), len(size), "s" in size, "sl".startswith(size), size in names]
    flags = [bool(size), size == "s", size < "m", 1 if size else 0]
    return [found, ",".join(sorted(stock)), names, parts, flags, [one.name for one in stock]]
""",
        [{"stock": {"l": 1, "s": 2}, "size": "s"}, {"stock": {}, "size": "l"}],
    ),
    "missing keys": (
        """
@workflow
def flow(xs: list[int]) -> Any:
    counts = {1: 1}
    try:
        return [counts[x] for x in xs] + [counts[len(xs)]]
    except KeyError as err:
        return str(err)
""",
        [*NUMBERS, {"xs": [1]}],
    ),
    "tables of tasks": (
        """
@workflow
def flow(status: Status, plain: Plain, number: int, size: Size) -> Any:
    a = BY_STATUS[status](number)
    b = BY_PLAIN[plain](value=number) if plain in BY_PLAIN else 0
    c = BY_NUMBER[number](a) if number in BY_NUMBER else -1
    d = BY_SIZE[size](number)
    return [a, b, c, d, [one.name for one in BY_STATUS], sorted(BY_NUMBER)]
""",
        [
            {"status": "new", "plain": 1, "number": 1, "size": "s"},
            {"status": "done", "plain": 2, "number": 7, "size": "l"},
        ],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_such_a_dict_is_the_same_in_python_and_compiled(name: str, tmp_path: Path) -> None:
    source, cases = SAME[name]
    with loaded(tmp_path, HEADER + source) as module:
        for values in cases:
            assert_same(module.flow, values)


def test_a_method_that_an_enum_has_of_its_own_is_refused(tmp_path: Path) -> None:
    source = "@workflow\ndef flow(loud: Loud) -> str:\n    return loud.upper()\n"
    with loaded(tmp_path, HEADER + source) as module, pytest.raises(CompileErrors, match="HF002"):
        compile_module(module)


def test_a_migration_tells_keys_that_are_ints_from_texts(tmp_path: Path) -> None:
    forms: list[dict[str, Any]] = []
    for key in ("int", "str", "Level", "Status"):
        source = f"@workflow\ndef flow(counts: dict[{key}, int]) -> Any:\n    return counts\n"
        with loaded(tmp_path, HEADER + source) as module:
            forms.append(json.loads(compile_workflow(module.flow).map_text)["shapes"])
    by_int, by_text, by_level, by_status = forms
    same = ShapeComparison(by_int, by_level).misfit("counts", "counts")
    assert (same, ShapeComparison(by_text, by_status).misfit("counts", "counts")) == (None, None)
    assert ShapeComparison(by_int, by_text).misfit("counts", "counts") == (
        "`counts` was a dict by int and is a dict"
    )
