"""`charge(**options)`: the keys of a dict are arguments of a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import EXPRESSION_ERROR, Outcome, assert_same, loaded

HEADER = """
from __future__ import annotations
from typing import Any
from pydantic import BaseModel, SecretStr
from typing_extensions import NotRequired, TypedDict
from holdfast import hours, start, task, workflow

class Line(BaseModel):
    sku: str
    tags: list[str] = []
class Pay(BaseModel):
    name: str
    cents: int
    line: Line
    note: str | None = None
    def other(self, options: Options) -> Options:
        return options
class Options(TypedDict):
    name: str
    cents: int
class Partly(TypedDict):
    name: str
    cents: NotRequired[int]
@task
def pay(name: str, cents: int = 5, line: Line | None = None, note: str | None = None) -> str:
    return f"{name} {cents} {line.sku if line else None} {note}"
@task
def add(a: int, b: int, c: int = 7) -> int:
    return a + 10 * b + 100 * c
@task
def login(user: str, token: SecretStr) -> str:
    return user
class Named(BaseModel):
    name: str
    cents: int
@task
def child_of(order: Pay) -> Named:
    return Named(name=order.name + "!", cents=order.cents)
@workflow
def child(name: str, cents: int = 5) -> str:
    return pay(name, cents)
"""
FLOW = """
@workflow
def flow(order: Pay, options: Options, partly: Partly, counts: dict[str, int], thing: Any) -> Any:
    {}
"""
ORDER = {"name": "tea", "cents": 3, "line": {"sku": "x"}, "note": None}
GIVEN: dict[str, Any] = {
    "order": ORDER,
    "options": {"name": "milk", "cents": 4},
    "partly": {"name": "jam"},
    "counts": {"a": 1, "b": 2},
    "thing": {"b": 2},
}


def outcome(tmp_path: Path, body: str, **given: Any) -> Outcome:
    with loaded(tmp_path, HEADER + FLOW.format(body)) as module:
        return assert_same(module.flow, {**GIVEN, **given})


def refusal(tmp_path: Path, body: str) -> CompileErrors:
    with (
        loaded(tmp_path, HEADER + FLOW.format(body)) as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    return refused.value


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("return pay(**options)", "milk 4 None None"),
        ("return pay(**order.model_dump())", "tea 3 x None"),
        ("return pay(**order.other(options))", "milk 4 None None"),
        ("found = [options]; return pay(**found.pop())", "milk 4 None None"),
        ('return pay(**order.model_dump(mode="json"))', "tea 3 x None"),
        ("return pay(**order.model_dump(exclude_none=True))", "tea 3 x None"),
        ('return pay(note="n", **options)', "milk 4 None n"),
        ("return pay(**partly)", "jam 5 None None"),
        ("return add(**counts)", 721),
        ("return add(1, **thing)", 721),
        ("return add(**thing, a=1, c=0)", 21),
        ('given = {"a": 1}\n    given["b"] = 2\n    return add(**given)', 721),
        ("return child(**options)", "milk 4 None None"),
        ("return child(**child_of(order).model_dump())", "tea! 3 None None"),
    ],
)
def test_each_key_is_an_argument(tmp_path: Path, body: str, result: object) -> None:
    assert outcome(tmp_path, body).output == result


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return add(**counts)", {"counts": {"a": 1}}),
        ("return add(**counts)", {"counts": {"a": 1, "b": 2, "x": 3}}),
        ("return add(**counts)", {"counts": {}}),
        ("return add(a=1, **counts)", {}),
        ("return add(1, **thing)", {"thing": [1]}),
        ("return add(1, **thing)", {"thing": "b"}),
        ("return add(1, **thing)", {"thing": None}),
        ("return pay(**partly, cents=5)", {"partly": {"name": "a", "cents": 7}}),
    ],
)
def test_a_dict_that_does_not_fit_fails_as_in_python(
    tmp_path: Path, body: str, given: dict[str, Any]
) -> None:
    assert outcome(tmp_path, body, **given).error == EXPRESSION_ERROR


def test_a_value_of_another_type_fails_in_the_task(tmp_path: Path) -> None:
    assert outcome(tmp_path, "return add(1, **thing)", thing={"b": "x"}).error == "InvalidArguments"


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("return add(**options)", "HF008", "does not fit `add`: missing a required argument: 'a'"),
        ("return pay(cents=1, **options)", "HF008", "gives `cents` twice"),
        ("return pay(line=Line(sku='a'), a=1, **options)", "HF008", "unexpected keyword argument"),
        ('return login("a", **thing)', "HF040", "`token` is a secret"),
        ("return pay(**order)", "HF040", "`**` takes a dict whose keys are texts"),
        ("return pay(**order.line.tags)", "HF040", "`**` takes a dict whose keys are texts"),
        ("return child(**partly)", "HF008", "names its arguments one by one"),
        ("return add(**counts, **counts)", "HF008", "names its arguments one by one"),
        ("return login(**counts)", "HF040", "is a secret"),
    ],
)
def test_what_can_never_fit_is_refused(tmp_path: Path, body: str, code: str, text: str) -> None:
    found = refusal(tmp_path, body)
    assert code in str(found)
    assert text in str(found)


def test_a_dict_that_cannot_leave_the_workflow_is_refused_once(tmp_path: Path) -> None:
    found = str(refusal(tmp_path, 'waits = {"line": hours(1)}; return pay("a", **waits)'))
    assert "error[HF052]" in found
    assert found.count("error[") == 1
