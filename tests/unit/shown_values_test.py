"""The texts of lists, tuples and dicts are Python's, also where JSON has lost types of members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import logging
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID
from holdfast import workflow

log = logging.getLogger("shop")

class Colour(Enum):
    RED = "red"

@workflow
def flow(weights: list[float], n: int, day: date, price: Decimal, uid: UUID, note: str | None,
         at: datetime, colour: Colour) -> Any:
"""
GIVEN: list[dict[str, Any]] = [
    {
        "weights": weights,
        "n": n,
        "day": "2026-02-01",
        "price": "1.50",
        "note": note,
        "at": "2026-02-01T00:00:00Z",
    }
    | {"uid": "8fd1a4b2-6f57-4f7e-9d64-0d4f3d1b6a01", "colour": "red"}
    for weights, n, note in (([], 0, None), ([2.0, 0.1, -3.5], 7, "it's"), ([1e16, 1e-7], -1, ""))
]
SAME = {
    "lists": 'return [f"{weights}", str(weights), repr(weights), "%s" % weights, f"{weights!r}"]',
    "members of other classes": 'return [str([price]), str([day, None]), f"{[uid]} {[note]}"]',
    "tuples": "return [str((1, 2.0)), str((weights, n)), str((n,)), str([(n, note, 1.0)])]",
    "dicts": (
        "shares = {n: 1.0, n + 1: n / 2}\n"
        'names = {n: "a"}\n'
        'rows = {"a": [1.0], "b": weights}\n'
        'return [f"{shares} {names} {rows}", str({}), str({str(n): day})]'
    ),
    "log lines": 'log.info("%s of %s", weights, {n: price})\nreturn n',
}


@pytest.mark.parametrize("name", SAME)
def test_the_text_is_the_one_of_python(name: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in SAME[name].splitlines())
    with loaded(tmp_path, HEADER + body) as module:
        for values in GIVEN:
            assert_same(module.flow, values)


@pytest.mark.parametrize("value", ["[at]", "[colour]", "[n, weights[0]]", "{colour: 1}"])
def test_a_text_that_json_cannot_tell_is_refused(value: str, tmp_path: Path) -> None:
    source = f"{HEADER}    return str({value})\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors, match="HF051"):
        compile_module(module)
