"""The sources of a graph's arguments, its input, and its result."""

from __future__ import annotations

import inspect
from datetime import date, timedelta
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from holdfast import Dag, Task, dag, from_input, from_step, pure, step, task, workflow
from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.errors import RequestError
from holdfast.testing import Run, World, check_workflow, real


class Stage(Enum):
    TEST = "test"
    LIVE = "live"


class Row(BaseModel):
    day: date
    count: int = 1


@task
def extract(day: date) -> list[Row]:
    return [Row(day=day), Row(day=day, count=5)]


@pure
def total(extract: list[Row], at_least: Annotated[int, Field(ge=0)] = 2) -> int:
    return sum(row.count for row in extract if row.count >= at_least)


@task
def publish(total: int, stage: Stage) -> str:
    return f"{total} in {stage.value}"


@task
def join(parts: list[Any], row: Row, stage: Stage = Stage.TEST) -> dict[str, Any]:
    return {"parts": parts, "row": row, "stage": stage}


@task
def nothing() -> None:
    pass


@task
def note(nothing: None, text: str | None, limit: int = 5) -> str:
    return f"{nothing} {text} {limit}"


@task
def title(text: str, limit: int = 6) -> str:
    return text[:limit]


by_name = dag(
    "by_name",
    step("publish", publish, depends_on=["total"]),
    step("total", total, depends_on=["extract"]),
    step("extract", extract),
)
explicit = dag(
    "explicit",
    step("total", total, depends_on=["rows"], arguments={"extract": from_step("rows")}),
    step("rows", extract, arguments={"day": from_input("begin")}),
    step(
        "join",
        join,
        depends_on=["rows", "total"],
        arguments={
            "parts": [from_step("rows"), {"sum": from_step("total"), "at": from_input("begin")}],
            "row": Row(day=date(2026, 2, 1)),
            "stage": Stage.LIVE,
        },
    ),
)
shared = dag(
    "shared",
    step("nothing", nothing),
    step("note", note, depends_on=["nothing"]),
    step("title", title),
)


@workflow
def parent(day: date) -> str:
    text = by_name(day=day, stage=Stage.LIVE)
    return f"got {text}"


def run(graph: Dag, **given: Any) -> Run[Any]:
    return World(others=real).run(graph, **given)


def test_a_parameter_called_like_a_dependency_gets_its_result_and_another_the_input() -> None:
    assert run(by_name, day=date(2026, 1, 5), stage=Stage.LIVE).output == "5 in live"
    assert by_name(day=date(2026, 1, 5), stage=Stage.LIVE, at_least=0) == "6 in live"


def test_the_input_is_normalised_by_the_parameters_that_no_step_fills() -> None:
    signature = inspect.signature(by_name.function)
    assert list(signature.parameters) == ["stage", "at_least", "day"]
    given = by_name.normalise_input({"day": "2026-01-05", "stage": "live"})
    assert given == {"day": "2026-01-05", "stage": "live", "at_least": 2}
    with pytest.raises(RequestError, match="stage: missing"):
        by_name.normalise_input({"day": "2026-01-05"})
    with pytest.raises(RequestError, match="at_least: "):
        by_name.normalise_input({"day": "2026-01-05", "stage": "live", "at_least": -1})


def test_arguments_may_be_values_results_and_fields_in_lists_and_objects() -> None:
    output = run(explicit, begin=date(2026, 1, 5)).output
    rows = [Row(day=date(2026, 1, 5)), Row(day=date(2026, 1, 5), count=5)]
    plain = [{"day": "2026-01-05", "count": 1}, {"day": "2026-01-05", "count": 5}]
    assert output == {
        "parts": [plain, {"sum": 5, "at": "2026-01-05"}],
        "row": {"day": "2026-02-01", "count": 1},
        "stage": "live",
    }
    assert explicit(begin=date(2026, 1, 5))["parts"][0] == rows


def test_a_field_of_several_steps_has_the_strictest_type_and_a_default_that_all_have() -> None:
    assert shared.normalise_input({"text": "a", "limit": 1}) == {"text": "a", "limit": 1}
    with pytest.raises(RequestError, match="text: input should be a valid string"):
        shared.normalise_input({"text": None, "limit": 1})
    with pytest.raises(RequestError, match="limit: missing"):
        shared.normalise_input({"text": "a"})


def test_several_final_steps_give_an_object_of_their_results() -> None:
    assert run(shared, text="monday", limit=3).output == {"note": "None monday 3", "title": "mon"}


def test_a_graph_is_a_child_of_a_workflow_that_calls_it() -> None:
    assert run_workflow(day=date(2026, 1, 5)) == "got 5 in live"


def run_workflow(day: date) -> str:
    return World(others=real).run(parent, day=day).output


def test_a_graph_is_found_in_its_module_like_a_workflow() -> None:
    found = Registry.from_modules([__name__]).workflows
    assert found["by_name"] is by_name
    assert {"by_name", "explicit", "shared", "parent"} <= set(found)


def test_generated_runs_of_a_graph_behave_as_its_python() -> None:
    assert check_workflow(by_name, examples=30, seed=1)["SUCCEEDED"]
    assert check_workflow(explicit, examples=30, seed=1)["SUCCEEDED"]


def test_a_refused_graph_raises_its_refusals_when_it_is_called() -> None:
    broken = dag("broken", step("a", nothing, depends_on=["a"]))
    with pytest.raises(CompileErrors, match="`a` depends on itself"):
        broken()


def test_settings_of_a_task_for_one_step_are_those_of_its_state() -> None:
    graph = dag("timed", step("nothing", nothing.options(timeout=timedelta(seconds=9))))
    states = compile_workflow(graph).asl["States"]
    assert states["nothing"]["TimeoutSeconds"] == 9


def test_a_text_that_looks_like_an_expression_stays_a_text() -> None:
    graph = dag("texts", step("title", title, arguments={"text": "{% 1 %}", "limit": 9}))
    assert run(graph).output == "{% 1 %}"


def test_the_order_of_definition_decides_nothing() -> None:
    done: list[str] = []

    def noted(name: str) -> Task[..., Any]:
        def work() -> None:
            done.append(name)

        return Task(work, name=name)

    names = ["d", "c", "b", "a"]
    steps = [
        step(name, noted(name), depends_on=names[place + 1 :]) for place, name in enumerate(names)
    ]
    dag("backwards", *steps)()
    assert done == ["a", "b", "c", "d"]
