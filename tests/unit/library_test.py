"""Functions of Python's library, and log lines, as steps of a workflow."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.library import LOG, library_task, task_of
from holdfast.api.library_signatures import FUNCTIONS, SIGNATURES
from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_workflow
from holdfast.testing import World, compiled, real
from tests.unit.dsl_kit import loaded, run_compiled

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = """
from __future__ import annotations
import logging, math
from holdfast import workflow
log = logging.getLogger("shop")

def noted(text: str) -> str:
    log.debug("noted %s", text)
    return text

@workflow
def flow(names: list[str], n: int) -> int:
    log.info("%s: %d%% of %s", noted("a"), n, names)
    try:
        return math.isqrt(n)
    except ValueError as err:
        log.exception(f"no root: {err}")
        return math.ceil(n / 2)
"""


@pytest.mark.parametrize("name", [*SIGNATURES, LOG])
def test_a_listed_function_is_a_step_with_json_types(name: str) -> None:
    task = library_task(name)
    assert task is not None and task.is_pure and task.name == name
    assert task.boundary is not None
    assert Registry({}, {}).task(name) is task


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("math.ceil", {"x": 7.2}, 8),
        ("math.log", {"x": 8, "base": 2}, 3.0),
        ("textwrap.shorten", {"text": "a b c", "width": 3, "placeholder": "…"}, "a…"),
        ("json.dumps", {"obj": {"b": 1, "a": [2]}, "sort_keys": True}, '{"a": [2], "b": 1}'),
        ("urllib.parse.urlencode", {"query": {"a": 1, "b": "x y"}}, "a=1&b=x+y"),
    ],
)
def test_a_step_calls_the_function_of_the_library(
    name: str, arguments: dict[str, Any], result: object
) -> None:
    task = library_task(name)
    assert task is not None
    assert task.call_json(arguments) == result


def test_the_reference_lists_the_functions() -> None:
    page = (DOCS / "reference" / "language-values.md").read_text(encoding="utf-8")
    table = page.partition("### Functions of Python's library")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", table, re.MULTILINE)
    listed = {f"{owner}.{name}" for owner, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == set(FUNCTIONS)


def test_a_listed_function_is_found_by_itself() -> None:
    for name in FUNCTIONS:
        module, _, attribute = name.rpartition(".")
        if module.startswith("datetime."):
            # `datetime.now` is a new method at each access. `dsl_library_steps_test` calls it.
            continue
        step = task_of(getattr(importlib.import_module(module), attribute))
        assert step is not None, name
        assert step.name == name


def test_no_step_takes_a_parameter_that_its_function_does_not_have() -> None:
    for name in SIGNATURES:
        task = library_task(name)
        assert task is not None
        assert all(
            parameter.isidentifier() for parameter in inspect.signature(task.function).parameters
        )


@pytest.mark.parametrize("n", [9, -9])
def test_a_workflow_calls_the_library_and_writes_a_log_line_both_ways(
    n: int, tmp_path: Path
) -> None:
    with loaded(tmp_path, SOURCE) as module:
        World().run_json(module.flow, {"names": ["x"], "n": n})


def test_the_note_in_the_history_is_logger_level_and_text(tmp_path: Path) -> None:
    with loaded(tmp_path, SOURCE) as module:
        compiled = compile_workflow(module.flow)
    notes = [
        state["Arguments"]
        for state in compiled.asl["States"].values()
        if state.get("Resource") == f"holdfast:pure:{LOG}"
    ]
    assert [(note["logger"], note["level"]) for note in notes] == [
        ("shop", "debug"),
        ("shop", "info"),
        ("shop", "error"),
    ]


def test_the_worker_writes_the_line_of_a_note(caplog: pytest.LogCaptureFixture) -> None:
    task = library_task(LOG)
    assert task is not None
    with caplog.at_level(logging.INFO, "shop"):
        task.call_json({"logger": "shop", "level": "info", "message": "100 % of %s"})
    assert caplog.messages == ["100 % of %s"]


LINES = """
from __future__ import annotations
import logging
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from holdfast import task, workflow
log = logging.getLogger("shop")

class Colour(Enum):
    RED = "red"

@task
def ratio() -> float:
    return 2.0

@workflow
def flow(
    path: Path,
    day: date,
    wait: timedelta,
    price: Decimal,
    names: list[str],
    note: str | None,
    n: int,
) -> None:
    log.info("%s %s %s %s %s %s", path, day, wait, price, names, Colour.RED)
    log.info("%d of %s%%, %s", n, ratio(), note)
    log.info(ratio())
    log.info(names)
    log.info("%s at %s", names[0], f"{wait} %s")
    log.info("100%")
    log.info(f"{n}%")
    try:
        ratio()
    finally:
        for name in names:
            log.info("%s %s", name, n / 2)
"""


def test_log_lines_of_the_engine_have_the_text_of_python(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: dict[str, Any] = {
        "path": "a/b",
        "day": "2026-01-02",
        "wait": "P1DT3S",
        "price": "1.50",
        "names": ["x", "y"],
        "note": None,
        "n": 4,
    }
    lines = [
        "a/b 2026-01-02 1 day, 0:00:03 1.50 ['x', 'y'] Colour.RED",
        "4 of 2.0%, None",
        "2.0",
        "['x', 'y']",
        "x at 1 day, 0:00:03 %s",
        "100%",
        "4%",
        "x 2.0",
        "y 2.0",
    ]
    # The testing kit writes the lines of Python's run alone. Here the compiled run writes, too.
    monkeypatch.setattr(compiled, "LOG", "")
    with loaded(tmp_path, LINES) as module, caplog.at_level(logging.INFO, "shop"):
        run_compiled(module.flow, values, {})
        assert caplog.messages == lines
        caplog.clear()
        World(others=real).run_json(module.flow, values)
        assert caplog.messages == lines * 2
