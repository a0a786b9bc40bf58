"""Every snippet of README.md and docs/*.md is run or compiled, every command is one."""

from __future__ import annotations

import argparse
import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from holdfast import cli
from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_module
from holdfast.local import project
from tests.unit.dsl_kit import loaded

ROOT: Final = Path(__file__).parents[2]
COMING_FROM: Final = "coming-from"


def page_name(path: Path) -> str:
    """The name of the file; with its folder where another page has the same name."""
    return f"{COMING_FROM}/{path.name}" if path.parent.name == COMING_FROM else path.name


PAGES: Final = {
    page_name(path): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
#: The test that runs the Python of each page. Code that needs an account is only compiled.
RUN_BY: Final = {
    "README.md": "tests/moto/readme_test.py",
    "call-workflows.md": "tests/unit/client_doc_test.py",
    "cookbook.md": "tests/unit/snippets_test.py",
    "cookbook-people.md": "tests/unit/snippets_test.py",
    "cookbook-practice.md": "tests/unit/snippets_test.py",
    "cookbook-undo.md": "tests/unit/snippets_test.py",
    "cookbook-work.md": "tests/unit/snippets_test.py",
    f"{COMING_FROM}/airflow-prefect.md": "tests/unit/coming_from_test.py",
    f"{COMING_FROM}/dbos.md": "tests/unit/coming_from_test.py",
    f"{COMING_FROM}/restate-durable-functions.md": "tests/unit/coming_from_test.py",
    f"{COMING_FROM}/step-functions.md": "tests/unit/coming_from_test.py",
    f"{COMING_FROM}/temporal.md": "tests/unit/coming_from_test.py",
    "construct.md": "tests/infra/construct_test.py",
    "debug.md": "tests/unit/debug_doc_test.py",
    "dag.md": "tests/unit/dag_doc_test.py",
    "language.md": "tests/unit/snippets_test.py",
    "find.md": "tests/unit/find_doc_test.py",
    "limits.md": "tests/unit/limits_doc_test.py",
    "groups.md": "tests/unit/groups_doc_test.py",
    "services.md": "tests/unit/services_doc_test.py",
    "long-tasks.md": "tests/unit/pools_test.py",
    "migrate.md": "tests/unit/migration_doc_test.py",
    "schedule.md": "tests/unit/schedule_doc_test.py",
    "emulator.md": "tests/infra/emulator_doc_test.py",
    "operate.md": "an account: compiled here only",
    "own-project.md": "tests/infra/deploy_own_test.py",
    "people.md": "tests/unit/people_doc_test.py",
    "pictures.md": "tests/unit/snippets_test.py",
    "step-functions-target.md": "tests/moto/targets_doc_test.py",
    "talk.md": "tests/unit/talk_doc_test.py",
    "testing.md": "tests/unit/testing_doc_test.py",
    "tutorial.md": "tests/unit/tutorial_test.py",
    "aws-tools.md": "tests/moto/sessions_test.py",
}
TUTORIAL: Final = "tutorial.md"
EMULATOR: Final = "emulator.md"
COOKBOOK: Final = [name for name in PAGES if name.startswith("cookbook")]
#: The names that the examples on the page of the language use.
LANGUAGE: Final = """
from __future__ import annotations
from pydantic import BaseModel
from holdfast import TaskError, WaitTimeout, compensating, each, task, workflow

class CardDeclined(TaskError): ...
class PaymentFailed(TaskError): ...

class Line(BaseModel):
    sku: str

class Order(BaseModel):
    id: str
    lines: list[Line]

class Named(BaseModel):
    id: str

class Outcome(BaseModel):
    order_id: str
    status: str
    parcels: list[str]

@task
def reserve(order_id: str, lines: list[Line]) -> Named: ...
@task
def release(reservation_id: str) -> None: ...
@task
def pack(order_id: str, line: Line) -> str: ...
@task
def charge(order_id: str, cents: int) -> Named: ...
@task
def notify(payment_id: str) -> None: ...
@task
def unlock(order_id: str) -> None: ...
@task
def book_seat(trip: str) -> Named: ...
@task
def release_seat(seat_id: str) -> None: ...
@task
def book_room(trip: str) -> Named: ...
@task
def release_room(room_id: str) -> None: ...
@task
def pay(trip: str) -> None: ...
"""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_is_valid_and_a_test_runs_it(page: str) -> None:
    for block in blocks(page, "python"):
        ast.parse(block)
    if blocks(page, "python"):
        runner = RUN_BY[page]
        assert runner.startswith("an account") or (ROOT / runner).exists()


def recipes() -> Iterator[tuple[str, str]]:
    """Yield the name of a module, and its text."""
    for page in COOKBOOK:
        for number, block in enumerate(blocks(page, "python")):
            yield f"{page.removesuffix('.md').replace('-', '_')}_{number:02}_test", block


RECIPES: Final = dict(recipes())


def test_every_recipe_of_the_cookbook_passes_its_own_test(tmp_path: Path) -> None:
    for name, text in RECIPES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]\nfilterwarnings = error\npython_files = *_test.py\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ini), "-p", "no:cacheprovider"]
    run = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    tests = sum(text.count("def test_") for text in RECIPES.values())
    assert f"{tests} passed" in run.stdout, run.stdout + run.stderr
    assert all("def test_" in text for text in RECIPES.values())
    assert len(RECIPES) >= 25


@pytest.mark.parametrize("name", RECIPES)
def test_nothing_can_be_said_against_a_recipe(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / f"{name}.py").write_text(RECIPES[name], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert cli.main(["check", "--strict", name]) == 0, capsys.readouterr().out
    finally:
        sys.modules.pop(name, None)


def test_the_json_of_a_page_is_json() -> None:
    for page in PAGES:
        for block in blocks(page, "json"):
            json.loads(block if block.startswith("{") else f"{{{block}}}")


def test_the_parts_of_workflows_on_the_page_of_the_language_compile(tmp_path: Path) -> None:
    first, *parts = blocks("language.md", "python")
    whole = [part for part in parts if part.startswith("class ")]
    parts = [part for part in parts if part not in whole]
    source = [LANGUAGE, first, *whole]
    for number, part in enumerate(parts):
        inside = "".join(f"    {line}\n" for line in part.splitlines())
        source.append(f"@workflow\ndef part_{number}(order: Order, trip: str):\n{inside}")
    with loaded(tmp_path, "\n".join(source)) as module:
        assert len(compile_module(module)) == 1 + len(whole) + len(parts)


def test_a_picture_with_marks_is_drawn_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = blocks("pictures.md", "python")
    page = ModuleType("page")
    exec(compile(block, "docs/how-to/pictures.md", "exec"), page.__dict__)
    assert page.svg.startswith("<svg")


# Commands.


#: In a `console` block a command follows a dollar; in an `sh` block every line is a command.
TYPED: Final = {
    "console": re.compile(r"\$ (uvx |uv run )?(\./)?holdfast "),
    "sh": re.compile(r"(uv run )?(\./)?holdfast "),
}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield page and words of each `holdfast …` that a page says to type."""
    for page in PAGES:
        for language, holdfast in TYPED.items():
            for block in blocks(page, language):
                yield from ((page, words) for words in typed_in(block, holdfast))


def typed_in(block: str, holdfast: re.Pattern[str]) -> Iterator[list[str]]:
    typed = ""
    for line in block.splitlines():
        begun = holdfast.match(line)
        if not typed and begun is None:
            continue
        typed += f"{line if begun is None else line[begun.end() :]}\n"
        words = complete(typed)
        if words:
            yield words
            typed = ""


def complete(typed: str) -> list[str]:
    """Return the words after `holdfast`, without a redirection; none while a line continues."""
    try:
        words = shlex.split(typed, comments=True)
    except ValueError:
        return []
    return words[: words.index(">")] if ">" in words else words


#: Graphs that pages register at run time; a test of each page starts them.
REGISTERED: Final = {"order_fulfillment"}
COMMANDS: Final = sorted({(page, tuple(words)) for page, words in commands()})


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=str)
def test_a_command_of_a_page_is_one(
    page: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    if words == ("test",):
        pytest.skip("the script `./holdfast` alone knows it")
    parsed: argparse.Namespace = cli.parser().parse_args(words)
    if words[0] == "start" and page not in {TUTORIAL, EMULATOR}:  # their module has a test
        registry = Registry.from_modules(project.modules_or_default([]))
        if parsed.workflow in REGISTERED:
            return
        registry.workflows[parsed.workflow].normalise_input(json.loads(parsed.input))


@pytest.mark.parametrize("page", PAGES)
def test_a_command_that_a_sentence_names_is_one(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = set(re.findall(r"`(?:uv run )?(?:\./)?holdfast ([^ `]+)", PAGES[page]))
    for name in named - {"test", "COMMAND"}:
        with pytest.raises(SystemExit):
            cli.parser().parse_args([name, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: holdfast {name} ")


@pytest.mark.parametrize(
    "words", sorted({words for _, words in COMMANDS if words[0] in ("check", "graph")})
)
def test_a_command_that_only_looks_does_so(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for block in blocks("aws-tools.md", "json"):
        (tmp_path / "order.asl.json").write_text(block)
    (tmp_path / "shop_flow.py").write_text(blocks(TUTORIAL, "python")[0])
    assert cli.main(words) == 0, capsys.readouterr().err
