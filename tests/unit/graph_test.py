"""`holdfast graph`: which pictures are drawn, and where they go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli import main
from tests.unit.cli_test import GREETING, Project, holdfast

__all__ = ["holdfast"]

ROOT = Path(__file__).parents[2]
TWO = GREETING + "\n@workflow\ndef bye(name: str) -> str:\n    return greet(name)\n"
MACHINE = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}


@pytest.fixture
def module(holdfast: Project) -> Iterator[Project]:
    holdfast.module("greeting", GREETING)
    yield holdfast


def test_one_workflow_is_printed_with_its_lines(module: Project) -> None:
    assert module("graph", "greeting") == 0
    assert module.printed.startswith("<svg ")
    assert module.printed.endswith("</svg>\n")
    assert "greeting.py:10" in module.printed
    assert not list(module.folder.glob("*.json"))


def test_a_definition_is_drawn_with_the_map_beside_it_if_it_is_its_own(module: Project) -> None:
    module("compile", "greeting")
    assert module("graph", "hello.asl.json") == 0
    assert "greeting.py:10" in module.printed
    map_path = module.folder / "hello.map.json"
    map_path.write_text(json.dumps({**json.loads(map_path.read_text()), "definition": "other"}))
    assert module("graph", "hello.asl.json") == 0
    assert "greeting.py" not in module.printed
    map_path.write_text("{")
    assert module("graph", "hello.asl.json") == 0
    assert module("check", "hello.asl.json") == 0


def test_a_picture_shows_the_limits_of_tasks_and_of_the_workflow(module: Project) -> None:
    limited = GREETING.replace("import task", "import Limit, per_second, task")
    limited = limited.replace("@task\n", "@task(limits=[Limit('bank', rate=per_second(20))])\n")
    limited = limited.replace(
        "@workflow\n", "@workflow(limits=[Limit('running', concurrency=100)])\n"
    )
    module.module("greeting", limited)
    assert module("graph", "greeting", "--format", "mermaid") == 0
    assert "limit bank 20/s, burst 20" in module.printed
    assert module("graph", "greeting") == 0
    assert "limit bank 20/s, burst 20" in module.printed
    assert "limit running 100 at once" in module.printed


def test_several_pictures_need_a_folder_and_are_named_after_their_workflows(
    module: Project,
) -> None:
    module.module("greeting", TWO)
    assert module("graph", "greeting") == 2
    assert "error[HF282]: 2 pictures" in module.complaints
    assert "--output FOLDER" in module.complaints
    assert module("graph", "greeting", "--output", "pictures") == 0
    written = ["pictures/hello.svg", "pictures/bye.svg"]
    assert module.printed.split("\n")[:-1] == [f"written  {path}" for path in written]
    assert all((module.folder / path).is_file() for path in written)


def test_one_picture_goes_to_the_file_that_is_named(module: Project) -> None:
    arguments = "graph", "greeting", "--format", "mermaid", "--output", "to/hello.mmd"
    assert module(*arguments) == 0
    assert (module.folder / "to" / "hello.mmd").read_text().startswith("flowchart TD\n")


def test_lines_become_links(module: Project) -> None:
    assert module("graph", "greeting", "--link", "https://example.org/") == 0
    assert 'href="https://example.org/greeting.py#L10"' in module.printed
    assert module("graph", "greeting", "--link", "javascript:alert(1)//") == 2
    assert "error[HF282]" in module.complaints


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (None, 2, "error[HF282]: odd.json: No such file"),
        ("{", 1, "error[HF104]: odd.json cannot be drawn: Unexpected end-of-input"),
        ("[" * 200 + "]" * 200, 1, "nested too deeply"),
        ('{"workflow_id": "x", "steps": []}', 1, "help: holdfast compile odd.json MODULE"),
        ("{}", 1, "error[HF104]: odd.json: the definition cannot be drawn: /States is m"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_refused(
    module: Project, text: str | None, status: int, said: str
) -> None:
    if text is not None:
        (module.folder / "odd.json").write_text(text)
    assert module("graph", "odd.json") == status
    assert said in module.complaints


def test_an_output_of_another_kind_is_no_folder(module: Project) -> None:
    (module.folder / "x.json").write_text(json.dumps(MACHINE))
    assert module("graph", "x.json", "--output", "x.mmd") == 2
    assert "--output x.mmd: .svg is what is drawn" in module.complaints
    assert not (module.folder / "x.mmd").exists()


def test_two_pictures_of_one_name_are_not_written_over_each_other(module: Project) -> None:
    for folder in ("a", "b"):
        (module.folder / folder).mkdir()
        (module.folder / folder / "x.json").write_text(json.dumps(MACHINE))
    assert module("graph", "a/x.json", "b/x.json", "--output", "out") == 2
    assert "two pictures would be out/x.svg" in module.complaints
    assert not (module.folder / "out").exists()


def test_the_page_shows_commands_and_code_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "how-to" / "pictures.md").read_text()
    monkeypatch.chdir(ROOT)
    snippet = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    found: dict[str, object] = {}
    exec(compile(snippet, "pictures.md", "exec"), found)
    assert str(found["svg"]).count("not_reached") > 1
    commands = re.findall(r"^\$ holdfast (.*)$", page, re.MULTILINE)
    definition = ROOT / "statemachines" / "loan_approval.asl.json"
    (tmp_path / "order.asl.json").symlink_to(definition)
    for command in commands:
        words = command.partition(" >")[0].replace("order.asl", f"{tmp_path}/order.asl").split()
        words = [
            str(tmp_path / word) if "--output" in words[:n][-1:] else word
            for n, word in enumerate(words)
        ]
        assert main(words) == 0, command
