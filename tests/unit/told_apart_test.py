"""`match` and `isinstance` of a union: JSON shows the kind of a value, or it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Any, Literal
from pydantic import BaseModel, ConfigDict, Field, model_validator
from holdfast import task, workflow

class Refund(BaseModel):
    reason: str
    cents: int | None = None
class Reply(BaseModel):
    text: str
    tags: list[str] = []
@dataclass
class Point:
    spots: list[str]
    y: int = 0
class Tagged(BaseModel):
    tags: list[str]
class Named(BaseModel):
    name: str
class Aged(BaseModel):
    name: str
    age: int = 1
class Older(BaseModel):
    name: str
    years: int
class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    sku: str
class Renamed(BaseModel):
    text: str = Field(validation_alias="reason")
class Moved(BaseModel):
    text: str
    @model_validator(mode="before")
    @classmethod
    def filled(cls, data: Any) -> Any:
        return {"text": "", **data}
class Loose(BaseModel):
    colour: str = "red"
@task
def answer(kind: str) -> Refund | Reply | str | None:
    if kind == "refund":
        return Refund(reason=kind, cents=None)
    if kind == "reply":
        return Reply(text="", tags=[])
    return None if kind == "none" else kind
"""
CASES = """
@workflow
def flow(value: {type}) -> str:
    match value:
        {cases}
"""
KINDS = """
        case str():
            return "text"
        case Refund(reason="late"):
            return "late"
        case Refund(reason=reason):
            return reason
        case Reply(tags=tags):
            return f"reply {len(tags)}"
        case Point(spots=spots):
            return f"point {len(spots)}"
"""
VALUES: list[Any] = [
    "a",
    {"reason": "late"},
    {"reason": "why", "cents": 1},
    {"text": "x"},
    {"text": "x", "tags": ["a"]},
    {"spots": []},
    {"spots": ["b"], "y": 3},
]


def flow_of(tmp_path: Path, text: str) -> Any:
    return loaded(tmp_path, HEADER + text)


def test_a_union_of_texts_and_models_is_matched(tmp_path: Path) -> None:
    text = CASES.format(type="str | Refund | Reply | Point", cases=KINDS.strip())
    with flow_of(tmp_path, text) as module:
        found = [assert_same(module.flow, {"value": value}).output for value in VALUES]
    assert found == ["text", "late", "why", "reply 0", "reply 1", "point 0", "point 1"]


def test_the_result_of_a_task_is_matched(tmp_path: Path) -> None:
    text = """
@workflow
def flow(kind: str) -> str:
    match answer(kind):
        case None:
            return "none"
        case Refund() as refund:
            return f"refund {refund.cents}"
        case Reply() as reply:
            return f"reply {reply.tags}"
        case str(text):
            return text
"""
    with flow_of(tmp_path, text) as module:
        kinds = ("refund", "reply", "none", "other")
        found = [assert_same(module.flow, {"kind": kind}).output for kind in kinds]
    assert found == ["refund None", "reply []", "none", "other"]


def test_isinstance_tells_models_apart_by_their_fields(tmp_path: Path) -> None:
    text = """
@workflow
def flow(value: Refund | Reply | None) -> str:
    if isinstance(value, Reply):
        return value.text
    return value.reason if isinstance(value, Refund) else "none"
"""
    with flow_of(tmp_path, text) as module:
        values = [{"text": "a"}, {"reason": "b"}, None]
        found = [assert_same(module.flow, {"value": value}).output for value in values]
    assert found == ["a", "b", "none"]


@pytest.mark.parametrize(
    ("type_", "case"),
    [
        ("Named | Aged", "Aged()"),
        ("Named | Older", "Older()"),
        ("Refund | Open", "Open()"),
        ("Refund | Renamed", "Renamed()"),
        ("Refund | Moved", "Moved()"),
        ("Refund | Loose", "Loose()"),
        ("Reply | Tagged", "Tagged()"),
        ("Refund | dict[str, str]", "Refund()"),
        ("int | float", "int()"),
    ],
)
def test_models_that_pydantic_may_take_for_one_another_are_refused(
    tmp_path: Path, type_: str, case: str
) -> None:
    cases = f"case {case}:\n            return 'a'\n        case _:\n            return 'b'"
    with (
        flow_of(tmp_path, CASES.format(type=type_, cases=cases)) as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    assert "error[HF035]" in str(refused.value)
