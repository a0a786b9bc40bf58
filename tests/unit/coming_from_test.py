"""The pages for readers who come from other systems: each program compiles and passes its test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from holdfast import Client, cli
from holdfast.compiler.compile import compile_module
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

FOLDER: Final = Path(__file__).parents[2] / "docs/how-to/coming-from"
PAGES: Final = [
    "airflow-prefect.md",
    "dbos.md",
    "restate-durable-functions.md",
    "step-functions.md",
    "temporal.md",
]
#: The pages with another number of programs than five.
COUNTS: Final = {"dbos.md": 6}


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_compile_without_a_warning_and_pass_their_tests(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (FOLDER / page).read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(programs) == COUNTS.get(page, 5)
    for program in programs:
        with loaded(tmp_path, program) as module:
            assert compile_module(module)
            assert cli.main(["check", "--strict", module.__name__]) == 0, capsys.readouterr().out
            tests = [value for name, value in vars(module).items() if name.startswith("test_")]
            assert tests
            for test in tests:
                test()


def test_each_page_has_concepts_programs_and_what_is_not_there() -> None:
    assert sorted(page.name for page in FOLDER.glob("*.md")) == PAGES
    for page in PAGES:
        text = (FOLDER / page).read_text(encoding="utf-8")
        first, *programs, last = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert (first, last) == ("Concepts", "What is not there")
        assert len(programs) == COUNTS.get(page, 5)


def test_a_user_whose_feed_is_queued_is_skipped(tmp_path: Path) -> None:
    text = (FOLDER / "dbos.md").read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n([^`]*def enqueue[^`]*)```", text)
    with loaded(tmp_path, program) as module:
        client = Client.of(MemoryStack(module.__name__).api)
        for version in (7, 8):
            given = {"users": ["ada", "ben", "ada"], "version": version}
            assert client.start("enqueue", given).result(timeout=5) == ["ada"]
