"""Tasks of one name in two modules: each workflow calls the task that its source names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Client
from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.errors import WorkflowError
from tests.unit.client_kit import MemoryStack

TASK = """
from holdfast import Limit, pure, task, workflow

@task{options}
def reply(n: int) -> str:
    return f"{word} {{n}}"
"""
FLOW = """
@workflow
def {name}(n: int) -> str:
    return {call}(n)
"""
MODULES = {
    "talk_mail": TASK.format(options="", word="mail") + FLOW.format(name="mail", call="reply"),
    "talk_chat": TASK.format(options="", word="chat") + FLOW.format(name="chat", call="reply"),
    "talk_both": "import talk_mail\nfrom talk_chat import reply as answer\n"
    "from holdfast import workflow\n"
    + FLOW.format(name="by_module", call="talk_mail.reply")
    + FLOW.format(name="by_name", call="answer"),
    "talk_two": "import talk_mail, talk_chat\nfrom holdfast import workflow\n"
    + FLOW.format(name="two", call="talk_mail.reply(n) + talk_chat.reply"),
    "talk_limited": TASK.format(options='(limits=[Limit("l", concurrency=1)])', word="limited"),
    "talk_pure": TASK.format(options="", word="pure").replace("@task", "@pure")
    + FLOW.format(name="counted", call="reply"),
}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, source in MODULES.items():
        (tmp_path / f"{name}.py").write_text(source)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def test_each_workflow_calls_the_task_of_its_own_module_or_of_its_imports() -> None:
    stack = MemoryStack("talk_mail", others=("talk_chat", "talk_both", "talk_pure"))
    client = Client.of(stack.api)
    names = ("mail", "chat", "by_module", "by_name", "counted")
    found = {name: client.start(name, {"n": 1}).result(timeout=5) for name in names}
    assert found == {
        "mail": "mail 1",
        "chat": "chat 1",
        "by_module": "mail 1",
        "by_name": "chat 1",
        "counted": "pure 1",
    }


def test_a_module_that_is_not_deployed_is_missed() -> None:
    with pytest.raises(WorkflowError, match="HF103"):
        MemoryStack("talk_chat", others=("talk_pure", "talk_both"))


def test_one_workflow_cannot_call_two_tasks_of_one_name() -> None:
    registry = Registry.from_modules(["talk_two"])
    with pytest.raises(CompileErrors, match="HF161"):
        compile_workflow(registry.workflows["two"])


def test_a_task_with_a_limit_needs_a_name_of_its_own() -> None:
    with pytest.raises(WorkflowError, match="HF071"):
        Registry.from_modules(["talk_mail", "talk_limited"])
