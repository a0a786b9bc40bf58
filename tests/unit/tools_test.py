"""`choice(…)`: tasks that a workflow calls by name, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import choice, task
from holdfast.api.boundary import JsonValue
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.errors import WorkflowError
from holdfast.testing import World, real
from tests.unit.dsl_kit import loaded

SOURCE = """
from __future__ import annotations
from typing import Any
from holdfast import InvalidArguments, Retry, choice, task, workflow

@task(retry=Retry(max_attempts=2))
def weather(city: str, days: int = 1) -> str:
    return f"sun in {city} for {days}"

@task
def price(cents: int) -> int:
    return cents * 2

TOOLS = choice(weather, price)

@workflow
def flow(name: str, arguments: dict[str, Any]) -> Any:
    if name == "none" and name not in TOOLS:
        return TOOLS["price"](cents=3)
    try:
        return [TOOLS[name](**arguments)]
    except InvalidArguments as err:
        return f"{err}"
"""


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("weather", {"city": "Rome"}, ["sun in Rome for 1"]),
        ("price", {"cents": 4}, [8]),
        ("none", {}, 6),
        ("price", {"x": 4}, "price(x: unknown; cents: missing)"),
    ],
)
def test_a_task_is_chosen_by_its_name(
    name: str, arguments: dict[str, JsonValue], output: JsonValue, tmp_path: Path
) -> None:
    with loaded(tmp_path, SOURCE) as module:
        run = World(others=real).run_json(module.flow, {"name": name, "arguments": arguments})
    assert run.end.output == output


def test_a_name_that_is_not_there_is_an_error_of_the_expression(tmp_path: Path) -> None:
    with loaded(tmp_path, SOURCE) as module:
        run = World(others=real).run_json(module.flow, {"name": "x", "arguments": {}})
    assert run.end.error == "KeyError"


def test_each_task_keeps_its_own_retry(tmp_path: Path) -> None:
    with loaded(tmp_path, SOURCE) as module:
        compiled = compile_workflow(module.flow)
    assert compiled.tasks == ("price", "weather")
    retried = {
        state["Resource"]: "Retry" in state
        for state in compiled.asl["States"].values()
        if state["Type"] == "Task"
    }
    assert retried == {"holdfast:task:weather": True, "holdfast:task:price": False}


def test_without_an_engine_the_arguments_are_checked_and_the_task_runs() -> None:
    @task
    def doubled(number: int) -> int:
        return number * 2

    assert choice(doubled)["doubled"](number=4) == 8
    with pytest.raises(WorkflowError, match="HF063"):
        choice(doubled, doubled)
    with pytest.raises(WorkflowError, match="HF063"):
        choice()
    with pytest.raises(WorkflowError, match="HF063"):
        choice(len)  # type: ignore[arg-type]


CHILDREN = """
from __future__ import annotations
from typing import Any
from holdfast import TaskError, choice, task, workflow

class Refused(TaskError): ...

@task
def pay(cents: int) -> str:
    if cents > 100:
        raise Refused(f"{cents}")
    return f"paid {cents}"

@workflow
def order(cents: int, gift: bool = False) -> str:
    return pay(cents) + (" as a gift" if gift else "")

@workflow
def refund(cents: int) -> int:
    return -cents

KINDS = choice(order, refund, pay)
BY_NAME = {"buy": order, "give_back": refund}

@workflow
def flow(kind: str, cents: int) -> str:
    try:
        return f"{KINDS[kind](cents)}"
    except Refused as err:
        return f"refused {err}"

@workflow
def named(kind: str, cents: int) -> str:
    return f"{BY_NAME[kind](cents=cents)}" if kind in BY_NAME else "unknown"

@workflow
def computed(kind: str, given: dict[str, Any]) -> str:
    return f"{KINDS[kind](**given)}"

@workflow(key="name")
def keyed(name: str) -> str:
    return name

OWN = choice(keyed, refund)

@workflow
def calls_keyed(kind: str) -> str:
    return f"{OWN[kind]('a')}"
"""


@pytest.mark.parametrize(
    ("workflow", "kind", "cents", "output"),
    [
        ("flow", "order", 5, "paid 5"),
        ("flow", "refund", 5, "-5"),
        ("flow", "pay", 5, "paid 5"),
        ("flow", "order", 500, "refused 500"),
        ("named", "buy", 5, "paid 5"),
        ("named", "give_back", 5, "-5"),
        ("named", "refund", 5, "unknown"),
    ],
)
def test_a_workflow_is_chosen_by_its_name_and_runs_as_a_child(
    workflow: str, kind: str, cents: int, output: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, CHILDREN) as module:
        called = getattr(module, workflow)
        run = World(others=real).run_json(called, {"kind": kind, "cents": cents})
        assert set(compile_workflow(called).workflows) == {"order", "refund"}
    assert run.end.output == output


def test_a_child_that_is_not_there_is_an_error_of_the_expression(tmp_path: Path) -> None:
    with loaded(tmp_path, CHILDREN) as module:
        run = World(others=real).run_json(module.flow, {"kind": "x", "cents": 1})
    assert run.end.error == "KeyError"


@pytest.mark.parametrize(("workflow", "code"), [("computed", "HF008"), ("calls_keyed", "HF157")])
def test_a_child_is_called_with_its_own_arguments_and_without_a_key(
    workflow: str, code: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, CHILDREN) as module, pytest.raises(CompileErrors, match=code):
        compile_workflow(getattr(module, workflow))
