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


AGENT = """
from __future__ import annotations
from enum import StrEnum
from typing import Any
from holdfast import choice, each, task, workflow
from pydantic import BaseModel

@task
def weather(city: str) -> str:
    if city == "Atlantis":
        raise ValueError("no such city: " + city)
    return f"sun in {city}"

@task
def price(cents: int) -> int:
    return cents * 2

TOOLS = choice(weather, price)

class Kind(StrEnum):
    WARM = "warm"
    DEAR = "dear"

BY_KIND = {Kind.WARM: weather, Kind.DEAR: weather}

class Call(BaseModel):
    name: str
    arguments: dict[str, Any]

@workflow
def any_error(call: Call) -> str:
    try:
        return f"{TOOLS[call.name](**call.arguments)}"
    except Exception as err:
        return f"{type(err).__name__}: {err}"

@workflow
def by_name(call: Call) -> str:
    try:
        return f"{TOOLS[call.name](**call.arguments)}"
    except KeyError as err:
        return f"no tool {err}"
    except Exception as err:
        return f"error: {err}"

@workflow
def tested(call: Call) -> str:
    if call.name not in TOOLS:
        return f"no tool {call.name}"
    try:
        return f"{TOOLS[call.name](**call.arguments)}"
    except Exception as err:
        return f"error: {err}"

@workflow
def of_item(call: dict[str, Any]) -> str:
    try:
        if call["name"] in TOOLS:
            return f"{TOOLS[call['name']](**call['arguments'])}"
        return "no tool"
    except Exception:
        return "failed"

@workflow
def changed(call: Call) -> str:
    name = call.name
    if name not in TOOLS:
        name = "weather"
    elif name == "price":
        name = "prices"
    try:
        return f"{TOOLS[name](**call.arguments)}"
    except Exception as err:
        return f"{type(err).__name__}: {err}"

@workflow
def of_kind(kind: Kind, city: str) -> str:
    try:
        return BY_KIND[kind](city)
    except Exception as err:
        return f"{err}"

@workflow
def looked_up_first(call: Call) -> str:
    try:
        return f"{TOOLS[call.name](city=weather(call.name))}"
    except KeyError as err:
        return f"no {err}"
    except Exception as err:
        return f"{err}"

@workflow
def divided(call: Call) -> str:
    try:
        return f"{TOOLS[call.name[:7]](cents=3 // len(call.arguments))}"
    except Exception as err:
        return f"{err}"

@workflow
def all_of(call: Call) -> list[str]:
    outcomes = each([call.name], lambda name: TOOLS[name](**call.arguments), return_exceptions=True)
    return [f"error: {one}" if isinstance(one, Exception) else "done" for one in outcomes]
"""
_CALLS: list[dict[str, JsonValue]] = [
    {"name": "weather", "arguments": {"city": "Rome"}},
    {"name": "weather", "arguments": {"city": "Atlantis"}},
    {"name": "weather", "arguments": {"town": "Rome"}},
    {"name": "price", "arguments": {"cents": 2}},
    {"name": 'it\'s "é"\n', "arguments": {}},
]


READERS = "any_error by_name tested all_of of_item changed looked_up_first divided"


@pytest.mark.parametrize("name", READERS.split())
def test_an_agent_reads_the_errors_of_its_tools_and_of_their_lookup(
    name: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, AGENT) as module:
        outputs = [
            World(others=real).run_json(getattr(module, name), {"call": call}).end.output
            for call in _CALLS
        ]
    assert len({str(one) for one in outputs}) >= 2


def test_an_agent_sees_the_text_of_pythons_key_error(tmp_path: Path) -> None:
    with loaded(tmp_path, AGENT) as module:
        run = World(others=real).run_json(module.any_error, {"call": _CALLS[-1]})
        given = World(others=real).run_json(module.by_name, {"call": {**_CALLS[0], "name": "x"}})
    assert run.end.output == f"KeyError: {_CALLS[-1]['name']!r}"
    assert given.end.output == "no tool 'x'"


@pytest.mark.parametrize("name", ["tested", "of_kind"])
def test_a_key_that_is_known_to_be_in_the_table_needs_no_way_for_its_absence(
    name: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, AGENT) as module:
        compiled = compile_workflow(getattr(module, name))
    assert not {"str.__repr__"} & {*compiled.tasks}
    assert "no such task" not in str(compiled.asl)
