"""docs/how-to/step-functions-target.md, done word for word: its modules, its commands, its
functions, its stack.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.validation.validate import diagnose
from holdfast.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "step-functions-target.md").read_text(
    encoding="utf-8"
)
RACING = """from holdfast import first, task, workflow


@task
def fast(question: str) -> str: ...
@task
def thorough(question: str) -> str: ...


@workflow
def race(question: str) -> str | None:
    # The first answer counts.
    return first(lambda: fast(question), lambda: thorough(question))
"""
COMMAND = re.compile(r"\$ holdfast (.*)\n((?:.*\n)*)")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the page's modules under the names that they give themselves."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "racing.py").write_text(RACING)
    names = []
    for block in blocks("python"):
        name = block.splitlines()[0].strip('"')
        names.append(name.removesuffix(".py"))
        (tmp_path / name).write_text(block)
    yield tmp_path
    for name in (*names, "racing"):
        sys.modules.pop(name, None)


def test_the_commands_print_the_text_on_the_page(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks("console"):
        typed = COMMAND.fullmatch(block)
        assert typed is not None
        status = main(typed[1].split())
        printed = capsys.readouterr()
        assert printed.out + printed.err == typed[2]
        assert status == (1 if "error[" in typed[2] else 0)
    assert sorted(path.name for path in project.glob("*.json")) == [
        "fulfil.stepfunctions.asl.json",
        "fulfil.stepfunctions.json",
    ]
    assert diagnose((project / "fulfil.stepfunctions.asl.json").read_text()) == ()


@pytest.mark.usefixtures("project")
def test_the_functions_are_those_that_the_definition_asks_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app: Any = importlib.import_module("app")
    orders: Any = importlib.import_module("orders")
    main(["compile", "--target", "stepfunctions", "orders"])
    needs = json.loads(Path("fulfil.stepfunctions.json").read_text())["substitutions"]
    assert all(callable(getattr(app, name)) for name in needs)
    assert len(needs) == 3
    monkeypatch.setattr(orders.charge, "function", lambda order, pence: f"payment of {order}")
    assert app.charge({"order": "o1", "pence": 5}, None) == "payment of o1"
    kept: list[Any] = []
    client = type("Client", (), {"put_item": lambda _, **item: kept.append(item)})
    monkeypatch.setattr(app.boto3, "client", lambda _: client())
    app.wait_for_event({"event": "bank.confirmed", "key": "p1", "token": "t"}, None)
    assert kept[0]["Item"]["pk"] == {"S": "bank.confirmed p1"}
    complete = orders.fulfil.normalise_input({"order": "o1", "pence": 5})
    assert complete == {"order": "o1", "pence": 5}


@pytest.mark.slow  # the CDK takes seconds to start
@pytest.mark.usefixtures("project")
def test_the_stack_fills_the_names_in(capsys: pytest.CaptureFixture[str]) -> None:
    from aws_cdk import App, Stack, aws_lambda
    from aws_cdk.assertions import Match, Template

    main(["compile", "--target", "stepfunctions", "orders"])
    needs = json.loads(Path("fulfil.stepfunctions.json").read_text())["substitutions"]
    stack = Stack(App(), "Orders")
    functions = {
        name: aws_lambda.Function(
            stack,
            name,
            runtime=aws_lambda.Runtime.PYTHON_3_13,
            handler=f"app.{name}",
            code=aws_lambda.Code.from_inline("pass"),
        )
        for name in needs
    }
    module: Any = importlib.import_module("stack")
    module.state_machine(stack, functions)
    template = Template.from_stack(stack)
    given = {name: Match.any_value() for name in needs}
    template.has_resource_properties(
        "AWS::StepFunctions::StateMachine", {"DefinitionSubstitutions": given}
    )
