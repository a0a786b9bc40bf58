"""Expressions that Python's library computes as steps, because JSONata has no exact form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_expressions_test import HEADER
from tests.unit.dsl_kit import assert_same, loaded

HELPERS = """
def share(n: int) -> str:
    return f"{n / 7}"
def tail(name: str) -> str:
    found = name.partition("@")
    return found[2].title()
"""
MOMENTS = ["2026-03-01T09:00:00.250000+01:00", "2026-03-01T09:00:00Z", "2026-03-01T09:00:00"]
PROGRAMS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "texts of floats": (
        "x: float",
        "return [str(x), f'{x:.3} {x!r} {x:>10}', repr(x), format(x, '.1f'), round(x, 9)]",
        [{"x": 4}, {"x": 0.30000000000000004}, {"x": 1e-7}],
    ),
    "texts of lists and dicts": (
        "xs: list[str], d: dict[str, int | None]",
        "return f'{xs} {d} {xs!r}' + str([1, True])",
        [{"xs": ["é'\"", ""], "d": {"a": None}}, {"xs": [], "d": {}}],
    ),
    "moments": (
        "at: datetime",
        "return [str(at), at.isoformat(), f'{at:%d %b %Y}', at.replace(hour=1), at.timestamp()]",
        [{"at": text} for text in MOMENTS[:2]],
    ),
    "naive moments": (
        "at: datetime",
        "return [str(at), at.isoformat(), at.strftime('%A %H:%M')]",
        [{"at": text} for text in MOMENTS],
    ),
    "methods of texts": (
        "s: str",
        "return [s.title(), s.partition('@'), s.rsplit('.', 2), s.center(9, '*'), s.isdigit()]",
        [{"s": "ann-b@x.y.z"}, {"s": ""}, {"s": "12"}],
    ),
    "steps in conditions, loops and helpers": (
        "s: str, n: int",
        """while not s.isupper():
    s = s.upper() + "b"
    if s.isdigit() or s.isalpha():
        break
    s = s.upper()
return [s, share(n) + share(n + 1), tail(s) if n > 1 else f"{n / 3}"]""",
        [{"s": "a@b", "n": 1}, {"s": "B@c", "n": 2}],
    ),
    "durations": ("d: timedelta", "return f'{d}' + str(minutes(90))", [{"d": "PT90S"}]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_of_the_library_has_the_value_of_python(name: str, tmp_path: Path) -> None:
    parameters, body, inputs = PROGRAMS[name]
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"{HEADER}{HELPERS}\n@workflow\ndef flow({parameters}) -> Any:\n{lines}\n"
    with loaded(tmp_path, source) as module:
        for values in inputs:
            assert_same(module.flow, values)


def test_a_comprehension_has_no_steps_of_the_library(tmp_path: Path) -> None:
    source = (
        f"{HEADER}\n@workflow\ndef flow(xs: list[str]) -> Any:\n    return [x.title() for x in xs]"
    )
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "def title_of(x: …)" in refused.value.diagnostics[0].help
