"""`copy.deepcopy` keeps one object at two places one object: such a copy is changed no further
inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import copy
from typing import Any
from pydantic import BaseModel
from holdfast import each, parallel, task, workflow

class Box(BaseModel):
    xs: list[int] = []
    ys: list[int] = []
    @property
    def both(self) -> list[list[int]]:
        return [self.xs, self.xs]

class Case(BaseModel):
    box: Box = Box()
    spare: Box = Box()

def made(n: int) -> Box:
    return Box(xs=[n])

def repeated(n: int) -> list[list[int]]:
    return [[n]] * 2

def twice(row: list[int]) -> list[list[int]]:
    return [row, row]

def numbered(n: int) -> list[list[int]]:
    rows: list[list[int]] = []
    for one in range(n):
        rows.append([one])
    return rows

@task
def load(n: int) -> list[list[int]]:
    return [[one] for one in range(n)]

@workflow
def flow(grid: list[list[int]], cube: list[list[list[int]]], case: Case) -> Any:
"""
INPUT: dict[str, Any] = {
    "grid": [[1], [2]],
    "cube": [[[1], [2]], [[3]]],
    "case": {"box": {"xs": [1]}, "spare": {"ys": [2]}},
}


def program(body: str) -> str:
    return HEADER + "".join(f"    {line}\n" for line in body.splitlines())


#: Each body makes `own`; then the change and the line that the help gives.
TWICE = {
    "a list written twice": (
        "row = [0]\nrows = [row, row]\nown = copy.deepcopy(rows)",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a list that is appended in each round": (
        (
            "row = [0]\nrows: list[list[int]] = []\nfor _ in range(2):\n    rows.append(row)\n"
            "own = copy.deepcopy(rows)"
        ),
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a list that is multiplied": (
        "own = copy.deepcopy([grid[0]] * 2)",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a list that is added to itself": (
        "rows = grid + grid\nown = copy.deepcopy(rows)",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a list that is made longer by the same items": (
        (
            "rows: list[list[int]] = []\nrows.extend(grid)\nrows.extend(grid)\n"
            "own = copy.deepcopy(rows)"
        ),
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "an item that is put at another place": (
        "rows = {'a': [1]}\nrows['b'] = rows['a']\nown = copy.deepcopy(rows)",
        "own['a'].append(9)",
        "own = {key: copy.deepcopy(one) for key, one in own.items()}",
    ),
    "an item that is inserted again": (
        "grid.insert(0, grid[0])\nown = copy.deepcopy(grid)",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a default that two keys get": (
        (
            "row = [1]\nrows: dict[str, list[int]] = {}\nrows.setdefault('a', row)\n"
            "rows.setdefault('b', row)\nown = copy.deepcopy(rows)"
        ),
        "own['a'].append(9)",
        "own = {key: copy.deepcopy(one) for key, one in own.items()}",
    ),
    "a dict that is updated by its own value": (
        "rows = {'a': [1]}\nrows.update({'b': rows['a']})\nown = copy.deepcopy(rows)",
        "own['a'].append(9)",
        "own = {key: copy.deepcopy(one) for key, one in own.items()}",
    ),
    "a list two levels down": (
        "row = [0]\nrows = {'a': [row], 'b': [row]}\nown = copy.deepcopy(rows)",
        "own['a'][0].append(9)",
        "own = {key: [copy.deepcopy(part) for part in one] for key, one in own.items()}",
    ),
    "two fields of a model": (
        "case.box.xs = case.box.ys\nown = copy.deepcopy(case.box)",
        "own.xs.append(9)",
        "own = Box(xs=copy.deepcopy(own.xs), ys=copy.deepcopy(own.ys))",
    ),
    "a model that is copied deep": (
        "case.box.xs = case.box.ys\nown = case.box.model_copy(deep=True)",
        "own.xs.append(9)",
        "own = Box(xs=copy.deepcopy(own.xs), ys=copy.deepcopy(own.ys))",
    ),
    "a field that a copy takes from another": (
        "box = case.box.model_copy(update={'xs': case.box.ys})\nown = copy.deepcopy(box)",
        "own.xs.append(9)",
        "own = Box(xs=copy.deepcopy(own.xs), ys=copy.deepcopy(own.ys))",
    ),
    "a comprehension that keeps an item twice": (
        "own = copy.deepcopy([[row, row] for row in grid])",
        "own[0][0].append(9)",
        "own = [[copy.deepcopy(part) for part in one] for one in own]",
    ),
    "a comprehension that goes over a list again": (
        "own = copy.deepcopy([row for row in grid for _ in range(2)])",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "the parts of a tuple": (
        (
            "pairs = [(row, row) for row in [[1], [2]]]\nown = [[0]]\nfor a, b in pairs:\n"
            "    own = copy.deepcopy([a, b])"
        ),
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "the result of a helper": (
        "own = copy.deepcopy(twice(grid[0]))",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "the result of a helper that multiplies": (
        "own = copy.deepcopy(repeated(3))",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a property": (
        "own = copy.deepcopy(case.box.both)",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
    "a list that two branches return": (
        "row = [1]\nown = copy.deepcopy(list(parallel(lambda: row, lambda: row)))",
        "own[0].append(9)",
        "own = [copy.deepcopy(one) for one in own]",
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_copy_that_may_hold_one_object_twice_is_not_changed_inside(
    name: str, tmp_path: Path
) -> None:
    body, change, help_ = TWICE[name]
    refused = program(f"{body}\n{change}\nreturn own")
    with loaded(tmp_path, refused) as module, pytest.raises(CompileErrors) as found:
        compile_workflow(module.flow)
    (diagnostic,) = found.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("HF023", help_)
    with loaded(tmp_path, program(f"{body}\n{help_}\n{change}\nreturn own")) as module:
        assert_same(module.flow, INPUT)


ONCE = {
    "data of the input": "own = copy.deepcopy(cube)\nown[0][0].append(9)\nreturn [own, cube]",
    "data with another name": (
        "other = cube\nown = copy.deepcopy(cube)\nown[0][0].append(9)\nreturn [own, other]"
    ),
    "the original is changed": "own = copy.deepcopy(grid)\ngrid[0].append(9)\nreturn [own, grid]",
    "the result of a task": "own = copy.deepcopy(load(2))\nown[0].append(9)\nreturn own",
    "the results of tasks in branches": (
        "found = each([1, 2], load)\nfound[0][0].append(7)\nown = copy.deepcopy(found)\n"
        "a, b = parallel(lambda: load(1), lambda: load(2))\nmore = copy.deepcopy(a)\n"
        "more[0].append(9)\nown[0][0].append(9)\nreturn [own, found, a, b, more]"
    ),
    "an item in a loop": (
        "found = []\nfor rows in cube:\n    own = copy.deepcopy(rows)\n    own[0].append(9)\n"
        "    found.append(own)\nown = copy.deepcopy(found)\nown[0][0].append(8)\n"
        "return [own, found, cube]"
    ),
    "an item of a dict in a loop": (
        "named = {'a': cube}\nfor name, rows in named.items():\n    own = copy.deepcopy(rows)\n"
        "    own[0][0].append(9)\n    return [own, name]\nreturn named"
    ),
    "a new list in each round": (
        "rows: list[list[int]] = []\nfor n in range(2):\n    row = [n]\n    rows.append(row)\n"
        "own = copy.deepcopy(rows)\nown[0].append(9)\nreturn [own, rows]"
    ),
    "a part of a model": (
        "spare = case.spare\nown = copy.deepcopy(case)\nown.box.xs.append(9)\nreturn [own, spare]"
    ),
    "a new field beside the others": (
        "alias = case\nbox = case.box.model_copy(update={'xs': [*case.box.xs, 5]})\n"
        "own = copy.deepcopy(box)\nown.xs.append(9)\nreturn [own, box, alias]"
    ),
    "each item of a list": (
        "own = [copy.deepcopy(row) for row in grid]\nown[0].append(9)\nreturn [own, grid]"
    ),
    "new lists of a comprehension": (
        "own = [[x + 1 for x in row] for row in grid]\nown[0].append(9)\nreturn [own, grid]"
    ),
    "copies of the rows": (
        "own = [list(row) for row in grid]\nown[0].append(9)\nreturn [own, grid]"
    ),
    "some of the items": (
        "own = copy.deepcopy([row for row in grid if len(row) > 0])\nown[0].append(9)\nreturn own"
    ),
    "the items of all lists": (
        "own = copy.deepcopy([row for rows in cube for row in rows])\nown[0].append(9)\nreturn own"
    ),
    "a list and new items": (
        "own = copy.deepcopy(grid + [[3]])\nown[0].append(9)\nreturn [own, grid]"
    ),
    "the result of a helper that is an expression": (
        "box = made(3)\nown = copy.deepcopy(box)\nown.xs.append(9)\nreturn [own, box]"
    ),
    "the result of a helper with a loop": (
        "rows = numbered(3)\nother = rows\nown = copy.deepcopy(rows)\nown[0].append(9)\n"
        "return [own, other]"
    ),
    "an item in a branch": (
        "def grown(rows: list[list[int]]) -> list[list[int]]:\n    own = copy.deepcopy(rows)\n"
        "    own[0].append(9)\n    return own\nreturn [each(cube, grown), cube]"
    ),
    "a value that is not in the copy": (
        "row = [0]\nrows = [[1], [row, row]]\nown = copy.deepcopy(rows)\nown.append([9])\n"
        "return [own, rows]"
    ),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_copy_of_values_that_each_stand_once_is_changed_inside(name: str, tmp_path: Path) -> None:
    with loaded(tmp_path, program(ONCE[name])) as module:
        assert_same(module.flow, INPUT)


def test_a_shallow_copy_by_its_keyword_shares_its_parts(tmp_path: Path) -> None:
    text = program("own = case.model_copy(deep=False)\nown.box.xs.append(9)\nreturn [own, case]")
    with loaded(tmp_path, text) as module, pytest.raises(CompileErrors, match="HF023"):
        compile_workflow(module.flow)
