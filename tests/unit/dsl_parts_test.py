"""Parts of values that a workflow changes in place, methods of models, and errors with fields."""

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
from dataclasses import dataclass, field, replace
from typing import Any
from pydantic import BaseModel
from holdfast import TaskError, each, task, workflow

class Line(BaseModel):
    sku: str
    qty: int = 1
    tags: list[str] = []
    def doubled(self) -> int:
        return self.qty * 2

class Order(BaseModel):
    lines: list[Line] = []
    notes: dict[str, int] = {}
    status: str = "new"
    best: Line | None = None
    @property
    def size(self) -> int:
        return len(self.lines)
    def largest(self) -> int:
        found = 0
        for line in self.lines:
            found = max(found, line.doubled() + self.size)
        return found
    def itself(self) -> Order:
        return self

@dataclass
class Tally:
    count: int = 0
    names: list[str] = field(default_factory=list)

class Rejected(TaskError):
    reason: str
    number: int
    place: str | None = None
    def __init__(self, reason: str, number: int = 7) -> None:
        self.reason = reason
        text = f"{self.reason} {number}"
        super().__init__(text)
        self.number = number + 1

@task
def echo(value: int) -> int:
    return value

@workflow
"""
ORDERS: list[dict[str, Any]] = [
    {"order": {}},
    {"order": {"lines": [{"sku": "b", "qty": 2}, {"sku": "a", "tags": ["t"]}], "notes": {"a": 1}}},
]
SAME = {
    "a field, an item, and a field of an item": """
def flow(order: Order) -> Order:
    order.status += "!"
    order.notes["b"] = echo(3)
    order.notes["b"] += order.size
    order.best = Line(sku="x")
    order.best.qty = order.notes["b"]
    order.lines[0].tags.append("new")
    order.lines[-1].qty = echo(order.lines[-1].qty + 1)
    return order
""",
    "a step in the value, which changes the same part": """
def flow(order: Order) -> Order:
    order.notes["c"] = order.notes.pop("a") + echo(1)
    order.lines.append(order.lines.pop(0).model_copy(deep=True))
    return order
""",
    "what a loop goes through is the list as it was": """
def flow(order: Order) -> Order:
    for line in order.lines:
        order.notes[line.sku] = line.qty
        order.lines = []
    return order
""",
    "the part that another name holds, after a copy": """
def flow(order: Order) -> list[Any]:
    kept = order.lines
    order = copy.deepcopy(order)
    order.lines.append(Line(sku="new"))
    return [kept, order]
""",
    "a field of a value whose list another name holds": """
def flow(order: Order) -> list[Any]:
    kept = order.lines
    order.status = "paid"
    return [kept, order]
""",
    "a dataclass, and a dict of lists": """
def flow(order: Order) -> list[Any]:
    tally = Tally()
    groups: dict[str, list[int]] = {}
    for line in order.lines:
        tally.count += line.qty
        tally.names.append(line.sku)
        groups.setdefault(line.sku, []).append(line.qty)
        groups[line.sku] += [echo(1)]
        groups[line.sku][0] += echo(2)
    return [replace(tally, count=tally.count + 1), groups]
""",
    "slices": """
def flow(order: Order) -> list[Any]:
    found = [1, 2, 3, 4]
    found[1:2] = [7, 8, 9]
    found[5:2] = [0]
    del found[:1], found[-2:-1]
    order.lines[0:1] = []
    return [found, order]
""",
    "methods and properties": """
def flow(order: Order) -> int:
    found = order.largest() + order.size
    for line in order.lines:
        found += line.doubled()
    return found + sum(line.doubled() for line in order.lines)
""",
    "an error with fields": """
def flow(order: Order) -> str:
    try:
        if order.size > 1:
            raise Rejected(number=echo(4), reason="many")
        raise Rejected("few")
    except Rejected as err:
        return f"{err} {err.reason} {err.number} {err.place}"
""",
    "an error with fields that ends the workflow": """
def flow(order: Order) -> str:
    raise Rejected(order.status, order.size)
""",
    "a name without a value": """
def flow(order: Order) -> int:
    size = order.size
    del size
    size = 1
    return size
""",
}
#: The line that is refused: Python shows the change through another name, too.
SHARED = {
    "lines = order.lines": "order.lines.append(Line(sku='x'))",
    "line = order.lines[0]": "order.lines[0].qty = 2",
    "other = order": "order.status = 'x'",
    "other = [order]": "order.notes['a'] = 1",
    "other = order.itself()": "order.status = 'x'",
    "other = order.model_copy()": "order.notes['a'] = 1",
    "other = list(order.lines)": "order.lines[0].qty = 2",
    "order.best = order.lines[0]": "order.best.qty = 2",
    "other = order.lines if order.size > 1 else []": "order.lines.clear()",
    "other = Tally(names=order.lines[0].tags)": "order.lines[0].tags.append('x')",
    "other = lambda: order.lines": "order.lines.clear()",
    "found = each(order.lines, lambda line: line)": "order.lines[0].qty = 2",
    "found = next(line for line in order.lines if line.qty)": "order.lines[0].qty = 2",
}


@pytest.mark.parametrize("what", SAME)
@pytest.mark.parametrize("given", ORDERS, ids=["empty", "full"])
def test_parts_change_as_in_python(what: str, given: dict[str, Any], tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + SAME[what].lstrip()) as module:
        assert_same(module.flow, given)


@pytest.mark.parametrize("before", SHARED)
def test_a_part_with_two_names_is_not_changed(before: str, tmp_path: Path) -> None:
    body = (
        f"def flow(order: Order) -> Order:\n    {before}\n    {SHARED[before]}\n    return order\n"
    )
    with loaded(tmp_path, HEADER + body) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "HF023" in str(refused.value)


def test_the_item_that_next_finds_is_not_changed(tmp_path: Path) -> None:
    body = """
def flow(order: Order) -> Order:
    found = next(line for line in order.lines if line.qty)
    found.qty = 2
    return order
"""
    with loaded(tmp_path, HEADER + body) as module, pytest.raises(CompileErrors, match="HF023"):
        compile_workflow(module.flow)


@pytest.mark.parametrize("before", SHARED)
def test_the_change_is_accepted_before_the_second_name(before: str, tmp_path: Path) -> None:
    if "lambda" in before:
        pytest.skip("a function holds its names from the start")
    body = (
        f"def flow(order: Order) -> Order:\n    {SHARED[before]}\n    {before}\n    return order\n"
    )
    body = body.replace("order.best.qty", "order.best = Line(sku='y')\n    order.best.qty")
    with loaded(tmp_path, HEADER + body) as module:
        assert compile_workflow(module.flow)
