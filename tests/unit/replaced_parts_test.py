"""Values that are made of the old value of the place that gets them, and what `pop` takes out: no
other name leads to them, so they may be changed. Each unsound neighbour is refused."""

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
from holdfast import TaskError, task, workflow

class Line(BaseModel):
    sku: str
    qty: int = 1
    tags: list[str] = []

class Order(BaseModel):
    lines: list[Line] = []
    others: list[Line] = []
    groups: list[list[Line]] = []
    by_sku: dict[str, Line] = {}
    best: Line | None = None
    least: int = 0
    def prune(self) -> None:
        self.lines = [line for line in self.lines if line.qty > self.least]
        self.lines[0].qty += 1

class Case(BaseModel):
    order: Order

def first_of(lines: list[Line]) -> Line:
    return lines[0]

def pruned(lines: list[Line]) -> int:
    lines = [line for line in lines if line.qty]
    lines[0].qty += 1
    return len(lines)

def put(lines: list[Line], line: Line) -> None:
    lines.append(line)

@task
def load(n: int) -> Line:
    return Line(sku=str(n), qty=n)

@workflow
def flow(order: Order, rows: list[Line], case: Case, n: int) -> Any:
"""


def _order() -> dict[str, Any]:
    lines = [{"sku": sku, "qty": qty, "tags": [sku]} for sku, qty in (("b", 2), ("a", 1), ("c", 3))]
    return {
        "lines": lines,
        "others": lines[:2],
        "groups": [lines[:2], lines[1:]],
        "by_sku": {line["sku"]: line for line in lines},
    }


INPUT: dict[str, Any] = {
    "order": _order(),
    "rows": _order()["lines"],
    "case": {"order": _order()},
    "n": 1,
}

CHANGE = "order.lines[0].qty += 1; order.lines[-1].tags.append('z')"
CHANGE_ROWS = "rows[0].qty += 1; rows[-1].tags.append('z')"
SAME = {
    "a selection": (f"order.lines = [one for one in order.lines if one.qty > 1]; {CHANGE}"),
    "a selection by a field beside it": (
        f"order.lines = [one for one in order.lines if one.qty > order.least]; {CHANGE}"
    ),
    "sorted": f"order.lines = sorted(order.lines, key=lambda one: one.sku); {CHANGE}",
    "a slice": f"order.lines = order.lines[1:]; {CHANGE}",
    "a list": f"order.lines = list(order.lines); {CHANGE}",
    "reversed": f"order.lines = list(reversed(order.lines)); {CHANGE}",
    "longer by a sum": f"order.lines = order.lines + [Line(sku='n')]; {CHANGE}",
    "longer by a star": f"order.lines = [Line(sku='n'), *order.lines]; {CHANGE}",
    "all items": f"order.lines[:] = [one for one in order.lines if one.qty > 1]; {CHANGE}",
    "a part further inside": """
    case.order.lines = [one for one in case.order.lines if one.qty > 1]
    case.order.lines[0].tags.append("z")
    return case""",
    "an item": """
    order.groups[n] = [one for one in order.groups[n] if one.qty > 1]
    order.groups[n][0].tags.append("z")""",
    "a dict": """
    order.by_sku = {sku: one for sku, one in order.by_sku.items() if one.qty > 1}
    order.by_sku["b"].tags.append("z")""",
    "a name": f"""
    rows = [one for one in rows if one.qty > 1]
    {CHANGE_ROWS}
    rows = sorted(rows, key=lambda one: one.sku)
    {CHANGE_ROWS}
    rows = [*rows, Line(sku="n")]
    {CHANGE_ROWS}
    rows = rows + [Line(sku="m")]
    {CHANGE_ROWS}
    return rows""",
    "in a loop": f"""
    for one in range(3):
        order.lines += [Line(sku=str(one))]
        order.lines = order.lines[1:]
        {CHANGE}
        rows = [*rows, load(one)]
        rows[0].qty += 1
    return [order, rows]""",
    "a method": "order.prune(); order.lines[0].qty += 1",
    "what is taken out": """
    taken = order.lines.pop(0)
    taken.tags.append("y")
    order.lines[0].tags.append("z")
    order.lines.insert(0, taken.model_copy(deep=True))
    order.lines[0].qty += 1
    return [order, taken]""",
    "taken out by a key, or a new value": """
    taken = order.by_sku.pop("b", Line(sku="n"))
    taken.tags.append("y")
    other = order.by_sku.pop("nothing", None)
    if other is not None:
        other.qty += 1
    order.by_sku["a"].qty += 1
    return [order, taken]""",
    "taken out and put back at once": "order.lines.append(order.lines.pop(0)); " + CHANGE,
    "taken out of one and put into the other": """
    order.others.append(order.lines.pop(0))
    order.lines[0].tags.append("y")
    order.others[-1].tags.append("z")""",
    "taken out and put back at last": """
    taken = order.lines.pop(0)
    taken.qty += 1
    order.lines.insert(0, taken)
    order.lines[0].tags.append("z")""",
    "moved from one list into another": """
    done: list[Line] = []
    while rows:
        row = rows.pop(0)
        row.qty += 1
        done.append(row)
    done[0].tags.append("z")
    more = [Line(sku="n")]
    done += more
    done[-1].qty += 1
    order.best = load(2)
    last = done.pop()
    order.best = last
    order.best.qty += 1
    return [order, done]""",
    "a selection whose list nothing reads again": """
    large = sorted([one for one in order.lines if one.qty > 1], key=lambda one: one.sku)[:3]
    large[0].qty += 1
    return large""",
    "a generator": """
    rows.extend(Line(sku=f"{one}", qty=n) for one in range(2) if one)
    rows[-1].qty += 1
    order.lines.extend(one.model_copy(deep=True) for one in rows)
    order.lines[-1].tags.append("z")
    order.lines += (Line(sku=one.sku) for one in rows)
    return [rows, order]""",
}
# The second name of a value, and a change of the value that Python shows under both.
KEPT = {
    "the old list has a name": """
    kept = order.lines
    order.lines = [one for one in order.lines]
    order.lines[0].qty += 1
    return kept[0].qty""",
    "an item of the old list has a name": """
    kept = order.lines[0]
    order.lines = sorted(order.lines, key=lambda one: one.sku)
    order.lines[0].qty += 1
    return kept.qty""",
    "the old value of a name has another name": """
    kept = rows
    rows = [one for one in rows]
    rows[0].qty += 1
    return kept[0].qty""",
    "the old list is in another value": """
    kept = [rows]
    rows = rows[1:]
    rows[0].qty += 1
    return kept""",
    "the old list is in the same value": """
    order.others = order.lines
    order.lines = [one for one in order.lines]
    order.lines[0].qty += 1""",
    "the selection gets another place": """
    order.others = [one for one in order.lines if one.qty]
    order.others[0].qty += 1""",
    "two loops": """
    rows = [one for one in rows for _ in range(2)]
    rows[0].qty += 1
    return rows""",
    "each item twice": """
    order.lines = [*order.lines, *order.lines]
    order.lines[0].qty += 1""",
    "a list that is added to itself": """
    rows = rows + rows
    rows[0].qty += 1
    return rows""",
    "one item for each": """
    order.lines = [order.lines[0] for _ in range(2)]
    order.lines[0].qty += 1""",
    "an item of another list": """
    order.lines = [*order.lines, rows[0]]
    order.lines[-1].qty += 1
    return [order, rows]""",
    "an item of another field": """
    order.lines = [*order.lines, order.others[0]]
    order.lines[-1].qty += 1""",
    "another item": """
    order.groups[0] = [one for one in order.groups[n]]
    order.groups[0][0].qty += 1""",
    "the result of a helper": """
    order.lines = [*order.lines, first_of(order.lines)]
    order.lines[0].qty += 1""",
    "a loop over the old list": """
    for one in rows:
        rows = [other for other in rows]
        rows[0].qty += 1
        n += one.qty
    return n""",
    "the old list in the same expression": """
    both = [rows, (rows := [one for one in rows])]
    rows[0].qty += 1
    return both""",
    "all items of a list with another name": """
    kept = rows[0]
    rows[:] = [one for one in rows]
    rows[0].qty += 1
    return [rows, kept]""",
    "the list of the caller": """
    found = pruned(rows)
    return [rows, found]""",
    "a loop keeps what is taken out": """
    for one in list(rows):
        taken = rows.pop(0)
        taken.qty += 1
        n += one.qty
    return n""",
    "what is taken out has a name": """
    kept = order.lines[0]
    taken = order.lines.pop(0)
    taken.qty += 1
    return kept""",
    "what is taken out stands twice": """
    pair = [rows, rows]
    taken = pair.pop()
    taken.append(Line(sku="n"))
    return pair""",
    "what is taken out is put back": """
    taken = order.lines.pop(0)
    order.lines.append(taken)
    order.lines[-1].qty += 1
    return [order, taken]""",
    "one value in each round": """
    row = Line(sku="n")
    for _ in range(2):
        rows.append(row)
    rows[-1].qty += 1
    return rows""",
    "what a helper puts in is read behind it": """
    row = Line(sku="n")
    put(rows, row)
    rows[-1].qty += 1
    return [rows, row]""",
    "what is put in is read by a handler": """
    row = Line(sku="n")
    try:
        rows.append(row)
        rows[-1].qty += 1
        n = load(1).qty
    except TaskError:
        n = row.qty
    return [rows, n]""",
    "a selection whose list is read again": """
    large = [one for one in order.lines if one.qty > 1]
    large[0].qty += 1
    return [large, order]""",
    "the default has a name": """
    other = Line(sku="n")
    taken = order.by_sku.pop("nothing", other)
    taken.qty += 1
    return [other, taken]""",
    "a part of the default has a name": """
    groups: dict[str, list[Line]] = {}
    other = Line(sku="n")
    taken = groups.pop("nothing", [other])
    taken[0].qty += 1
    return [other, taken, groups]""",
}


def _module(body: str) -> str:
    last = "" if "return" in body else "\n    return order"
    return f"{HEADER}    {body.strip()}{last}\n"


@pytest.mark.parametrize("name", SAME)
def test_a_value_at_one_place_alone_is_changed_inside(name: str, tmp_path: Path) -> None:
    with loaded(tmp_path, _module(SAME[name])) as module:
        assert_same(module.flow, INPUT)


@pytest.mark.parametrize("name", KEPT)
def test_a_value_with_a_second_name_is_not_changed_inside(name: str, tmp_path: Path) -> None:
    with (
        loaded(tmp_path, _module(KEPT[name])) as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    codes = {problem.code for problem in refused.value.diagnostics}
    # A refusal in a helper is shown at its call, too.
    assert codes - {"HF005"} == {"HF023"}


LATE = {
    "it reads the list": "rows.extend(one.model_copy() for one in rows)",
    "it reads the value around the list": (
        "order.lines.extend(one.model_copy() for one in order.others)"
    ),
    "a function reads the list": """
    def size() -> int:
        return len(rows)
    rows.extend(Line(sku="n", qty=size()) for _ in range(2))""",
    "a step": "rows.extend(load(one) for one in range(2))",
    "a handler sees the items before the one that fails": """
    try:
        rows.extend(Line(sku="n", qty=1 // (1 - one)) for one in range(2))
    except ZeroDivisionError:
        n = len(rows)""",
}


@pytest.mark.parametrize("name", LATE)
def test_a_generator_whose_items_depend_on_the_change_is_refused(name: str, tmp_path: Path) -> None:
    with (
        loaded(tmp_path, _module(LATE[name])) as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    assert "HF002" in {problem.code for problem in refused.value.diagnostics}
