"""The page on schedules: its Python is compiled, its settings and its table of commands hold."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from holdfast import Schedule, cli
from holdfast.compiler.compile import compile_module
from holdfast.core.schedules import Rule
from holdfast.errors import WorkflowError
from holdfast.local.stack import deployment_of
from holdfast.resources import ROUTES

PAGE = Path(__file__).parents[2] / "docs/how-to/schedule.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "page_on_schedules.py").write_text("\n\n".join(blocks), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("page_on_schedules")
    del sys.modules["page_on_schedules"]


def test_the_schedules_of_the_page_are_those_of_the_deployment(page: ModuleType) -> None:
    assert {one.name for one in compile_module(page)} == {"report", "refresh"}
    found = deployment_of(["page_on_schedules"]).schedules
    assert found["report"].rule == Rule("0 9 * * MON-FRI", "Europe/Berlin")
    assert (found["report"].overlap, found["report"].time_as) == ("skip", "due")
    assert found["refresh"].rule == Rule(every_ms=3_600_000, jitter_ms=300_000)
    assert found["refresh"].input == {"region": "eu"}


def test_the_commands_of_the_page_are_understood() -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.strip().splitlines():
        arguments = cli.parser().parse_args(shlex.split(line)[1:])
        assert arguments.schedule if "list" not in line else arguments.action == "list"


def test_the_page_has_every_setting_with_its_default_and_every_route() -> None:
    for one in dataclasses.fields(Schedule):
        assert f"`{one.name}`" in TEXT or one.name == "zone", one.name
    for name in ("overlap", "missing", "repeated"):
        assert f"| `{name}` | `{getattr(Schedule(cron='* * * * *'), name)}`" in TEXT
    for route in ROUTES:
        method, _, path = route.partition(" ")
        if path.startswith("/schedules") and path.count("/") < 3:
            assert f"`{method} {path}`" in TEXT


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("Schedule()", "HF081"),
        ("Schedule(cron='0 9 * * *', every=hours(1))", "HF081"),
        ("Schedule(every=seconds(90))", "HF081"),
        ("Schedule(cron='0 9 * * *', overlap='queue')", "HF081"),
        ("Schedule(cron='0 9 * * *', jitter=-minutes(1))", "HF081"),
        ("Schedule(cron='0 9 * *', time_as='due')", "HF081"),
        ("Schedule(cron='0 9 * * *', zone='Europe/Atlantis', time_as='due')", "HF081"),
        ("Schedule(cron='0 9 * * *')", "HF082"),
        ("Schedule(cron='0 9 * * *', time_as='due', input={'n': 1})", "HF082"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_before_it_is_deployed(
    source: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"refused_{abs(hash(source))}"
    text = (
        "from holdfast import Schedule, hours, minutes, seconds, workflow\n"
        f"@workflow(schedule={source})\ndef report(due: str) -> str:\n    return due\n"
    )
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WorkflowError) as caught:
        deployment_of([name])
    assert caught.value.code == code
