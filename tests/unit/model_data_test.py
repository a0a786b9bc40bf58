"""Models made of data, data made of models, and values of `Any` run as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.api.library import library_task
from holdfast.testing import World
from tests.unit.dsl_kit import loaded

SOURCE = """
from __future__ import annotations
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from holdfast import workflow

class Line(BaseModel):
    sku: str
    qty: int = Field(default=1, gt=0)

class Order(BaseModel):
    id: str
    lines: list[Line] = []
    at: datetime | None = None

@dataclass
class Point:
    x: int
    y: int = 0

@workflow
def flow(data: dict[str, Any], text: str, order: Order, n: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    try:
        out["checked"] = Line(sku=data["id"], qty=n).qty
        out["validated"] = Order.model_validate(data).lines[0].qty
    except ValidationError as err:
        out["wrong"] = str(err)
    out["unpacked"] = Order(**data).id
    out["text"] = Order.model_validate_json(text)
    out["rows"] = TypeAdapter(list[Line]).validate_python([{"sku": "a"}])[0].qty
    out["loop"] = [Line(**row).qty for row in [{"sku": "a"}, {"sku": "b"}] if type(n) is int]
    out["dumped"] = order.model_dump()
    out["when"] = order.model_dump(mode="json")["at"]
    out["written"] = order.model_dump_json()
    out["point"] = asdict(Point(n))
    return out
"""


@pytest.mark.parametrize(
    ("data", "n", "end"),
    [
        ({"id": "a", "lines": [{"sku": "b", "qty": 2}]}, 3, 2),
        ({"id": "a"}, -1, None),
        ({"id": 7}, 3, "ValidationError"),
    ],
)
def test_pydantic_checks_data_in_a_step_of_the_workflow(
    data: dict[str, Any], n: int, end: object, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"data": data, "text": '{"id": "t"}', "order": {"id": "o"}, "n": n}
    with loaded(tmp_path, SOURCE) as module:
        run = World().run_json(module.flow, given)
    output: Any = run.end.output
    assert (run.end.error or output.get("validated")) == end


def test_a_name_of_a_step_imports_no_module() -> None:
    assert library_task("holdfast.model_validate.json.tool.Order") is None
    assert library_task("holdfast.model_validate.json.JSONDecoder") is None


ROWS = """
from __future__ import annotations
from datetime import timedelta
from operator import itemgetter
from typing import Any
from holdfast import workflow

@workflow
def flow(rows: list[dict[str, Any]], prices: dict[str, int], ms: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"a": 1, "b": ["x"], "c": {"d": [2]}}
    total = 0
    for row in rows:
        total += row["n"] * row.get("price", 2)
    names: list[str] = [row["name"] for row in rows]
    return {
        "total": total,
        "share": total / 4,
        "sum": sum(row["n"] for row in rows),
        "last": sorted(rows, key=lambda row: row["n"], reverse=True)[0]["name"][:2],
        "names": ", ".join(sorted(names)) + "!",
        "text": "name: " + rows[0]["name"],
        "has": "a" in rows[0]["name"],
        "grows": rows[0]["n"] < rows[-1]["n"],
        "best": max(prices, key=prices.get),
        "cheap": min(prices.items(), key=itemgetter(1))[0],
        "rule": rule["c"]["d"][0] + rule["a"],
        "seconds": timedelta(minutes=1, milliseconds=ms).total_seconds(),
    }
"""


@pytest.mark.parametrize(
    ("last", "total"),
    [({"n": 3, "name": "bab"}, 8), ({"n": "x", "name": "b"}, None), ({"name": "b"}, None)],
)
def test_values_of_any_are_computed_with_and_ordered_as_in_python(
    last: dict[str, Any], total: int | None, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"prices": {"tea": 3, "cup": 9}, "ms": 2000}
    with loaded(tmp_path, ROWS) as module:
        rows: list[Any] = [{"n": 1, "name": "ab", "price": 2}, last]
        run = World().run_json(module.flow, {**given, "rows": rows})
    output: Any = run.end.output
    assert (output and output["total"]) == total
