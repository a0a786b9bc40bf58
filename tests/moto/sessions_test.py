"""docs/how-to/aws-tools.md, typed word for word at a `holdfast serve` of its own."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("sessions")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "aws-tools.md").read_text(encoding="utf-8")
SHOWN_URL = "http://127.0.0.1:8080"
#: Times, which differ from one run to the next.
SECONDS = re.compile(r"\b1\d{9}\.\d+\b")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yield a project's folder and the address of the `serve` that runs for it."""
    path = tmp_path_factory.mktemp("project")
    (path / "pyproject.toml").write_text("[tool.holdfast]\nmodules = []\n")
    with served(path) as url:
        yield path, url


@contextmanager
def served(path: Path) -> Iterator[str]:
    program = "import sys; from holdfast.cli import main; sys.exit(main())"
    serve = subprocess.Popen(
        [sys.executable, "-c", program, "serve", "--port", "0", "--json"],
        cwd=path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert serve.stdout is not None
        yield json.loads(serve.stdout.readline())["url"]
        assert serve.poll() is None
    finally:
        serve.terminate()
        _, complaints = serve.communicate(timeout=60)
    assert complaints == ""


def conversation() -> list[tuple[str, str]]:
    """Return each command after a prompt, its lines joined, with the output that the page shows
    below it.
    """
    text = "".join(block for block in blocks("console") if "$ aws " in block)
    typed = re.findall(r"^\$ (.*(?:(?<=\\)\n.*)*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
    return [(command.replace("\\\n", " "), shown) for command, shown in typed]


def exported(url: str) -> dict[str, str]:
    """Return the environment that the page's exports make."""
    (block,) = blocks("sh")
    words = [
        word
        for line in block.splitlines()
        for word in shlex.split(line.removeprefix("export "), comments=True)
    ]
    found = dict(word.split("=", 1) for word in words)
    assert found["AWS_ENDPOINT_URL"] == SHOWN_URL
    kept = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, **found, "AWS_ENDPOINT_URL": url, "PATH": commands}


@pytest.mark.slow  # the command line takes a second to start, each time
def test_the_session_of_the_aws_command_line_reads_as_it_runs(folder: tuple[Path, str]) -> None:
    path, url = folder
    (definition,) = blocks("json")
    (path / "order.asl.json").write_text(definition)
    environment = exported(url)
    typed = conversation()
    assert len(typed) == 8
    for command, shown in typed:
        ran = subprocess.run(
            shlex.split(command),
            cwd=path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, ""), command
        assert SECONDS.sub("TIME", ran.stdout) == SECONDS.sub("TIME", shown), command


def test_the_session_of_boto3_prints_the_text_of_its_comments(folder: tuple[Path, str]) -> None:
    path, _ = folder
    program = "".join(blocks("python"))
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    said = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert len(said) == program.count("print(") == 6
    assert ran.stdout.splitlines() == said


def test_the_state_machine_of_the_readme_runs(folder: tuple[Path, str]) -> None:
    path, _ = folder
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    ending = (
        "while (found := states.describe_execution("
        "executionArn=execution['executionArn']))['status'] == 'RUNNING': pass\n"
        "print(found['output'])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program + ending],
        cwd=path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {"text": "Hello, Ada."}


def test_the_session_starts_with_the_command_that_serves() -> None:
    assert blocks("console")[0] == "$ holdfast serve\n"
    assert all(ast.parse(block) for block in blocks("python"))
