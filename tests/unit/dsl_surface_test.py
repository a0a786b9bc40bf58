"""The functions for writing a workflow, run as plain Python."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import (
    CompensationFailed,
    InvalidArguments,
    InvalidResult,
    Retry,
    TaskContext,
    TaskError,
    ask,
    compensating,
    days,
    each,
    execution_id,
    execution_name,
    execution_started,
    hours,
    minutes,
    parallel,
    publish,
    role,
    seconds,
    send,
    sleep,
    task,
    task_context,
    wait_for_event,
    workflow,
)
from holdfast.api.registry import Registry
from holdfast.api.surface import running_task
from holdfast.errors import RequestError, WorkflowError


class Line(BaseModel):
    sku: str
    qty: int = 1


class Order(BaseModel):
    id: str
    lines: list[Line] = []
    coupon: str | None = None


@task
def count(order: Order, factor: int = 2) -> int:
    return len(order.lines) * factor


@task
def wrong() -> int:
    return "secret"  # type: ignore[return-value]


@workflow
def flow(order: Order, dry: bool = False) -> int:
    return 0 if dry else count(order)


def test_a_task_runs_as_the_function_it_is() -> None:
    assert count(Order(id="a", lines=[Line(sku="x")])) == 2
    assert count.name == "count"


def test_a_task_is_called_with_json_and_answers_with_json() -> None:
    @task
    def first(order: Order) -> Line | None:
        return order.lines[0] if order.lines else None

    assert first.call_json({"order": {"id": "a", "lines": [{"sku": "x"}]}}) == {
        "sku": "x",
        "qty": 1,
    }
    assert first.call_json({"order": {"id": "a"}}) is None


def test_a_parameter_that_is_left_out_keeps_its_default() -> None:
    assert count.call_json({"order": {"id": "a", "lines": [{"sku": "x"}]}}) == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "count(order: missing)"),
        ({"order": {"id": "a"}, "more": 1}, "count(more: unknown)"),
        ({"order": {"id": "a", "lines": [{"sku": 5}]}}, "order.lines[0].sku: input should be a"),
        ({"order": {"id": "a"}, "factor": "secret"}, "factor: input should be a valid integer"),
    ],
)
def test_arguments_that_do_not_fit_are_named_and_not_shown(
    arguments: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InvalidArguments) as refused:
        count.call_json(arguments)
    assert expected in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_result_that_does_not_fit_is_named_and_not_shown() -> None:
    with pytest.raises(InvalidResult, match="wrong: result: input should be") as refused:
        wrong.call_json({})
    assert "secret" not in str(refused.value)


def test_an_input_is_made_complete() -> None:
    assert flow.normalise_input({"order": {"id": "a"}}) == {
        "order": {"id": "a", "lines": [], "coupon": None},
        "dry": False,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], "the input of flow is list, expected a JSON object"),
        ({"dry": True}, "order: missing"),
        ({"order": {"id": "a", "lines": [{"qty": 1}]}}, "order.lines[0].sku: field required"),
        ({"order": {"id": "a"}, "x": 1}, "x: unknown"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_by_field(value: Any, expected: str) -> None:
    with pytest.raises(RequestError) as refused:
        flow.normalise_input(value)
    assert refused.value.code == "HF210"
    assert expected in refused.value.message
    assert refused.value.help


def test_a_retry_that_no_state_machine_can_keep_is_refused_where_it_is_made() -> None:
    refused_settings: tuple[dict[str, Any], ...] = (
        {"max_attempts": 0},
        {"backoff": 0.5},
        {"interval": timedelta(milliseconds=500)},
        {"max_delay": timedelta(0)},
    )
    for settings in refused_settings:
        with pytest.raises(WorkflowError) as refused:
            Retry(**settings)
        assert refused.value.code == "HF061"


def test_options_change_a_copy() -> None:
    patient = count.options(timeout=minutes(5), label="count slowly")
    assert (patient.name, patient.timeout, patient.label) == ("count", minutes(5), "count slowly")
    assert (count.timeout, count.label) == (None, None)


def test_parallel_and_each_run_in_order_and_give_every_result() -> None:
    seen: list[int] = []

    def note(n: int) -> int:
        seen.append(n)
        return n * 10

    assert parallel(lambda: note(1), lambda: note(2)) == (10, 20)
    assert each([3, 4], note, concurrency=1) == [30, 40]
    assert seen == [1, 2, 3, 4]


def test_undo_runs_in_reverse_order_and_the_error_is_raised_again() -> None:
    undone: list[Any] = []
    names = ["a"]
    with pytest.raises(TaskError, match="broken"), compensating() as undo:
        undo(undone.append, names)
        undo(undone.append, 2)
        names.append("b")
        raise TaskError("broken")
    assert undone == [2, ["a"]]


def test_without_an_error_nothing_is_undone() -> None:
    undone: list[int] = []
    with compensating() as undo:
        undo(undone.append, 1)
    assert undone == []


def test_an_undo_step_that_fails_does_not_stop_the_others() -> None:
    undone: list[int] = []

    @task
    def broken() -> None:
        raise TaskError("no money")

    with pytest.raises(CompensationFailed) as failed, compensating() as undo:
        undo(undone.append, 1)
        undo(broken)
        undo(undone.append, 3)
        raise ValueError("why")
    assert undone == [3, 1]
    assert str(failed.value) == "undo of broken failed: no money"
    assert isinstance(failed.value.__cause__, ValueError)


@pytest.mark.parametrize(
    "wait",
    [
        lambda: wait_for_event("paid", Order, key="k"),
        lambda: ask("Sure?", bool, assignee=role("clerk")),
    ],
)
def test_a_question_outside_an_engine_has_no_answer(wait: Any) -> None:
    with pytest.raises(WorkflowError) as refused:
        wait()
    assert refused.value.code == "HF080"


@pytest.mark.parametrize(
    "call", [lambda: publish("done", 1), lambda: sleep(days(1)), lambda: send("done", 1, key="k")]
)
def test_a_step_of_workflows_in_a_running_task_is_an_error(call: Any) -> None:
    context = TaskContext("e1", None, "flow", "copy", 1, "e1/1")
    with running_task(context), pytest.raises(WorkflowError, match="`copy` is a task") as refused:
        call()
    assert refused.value.code == "HF080"


@pytest.mark.parametrize("read", [execution_id, execution_name, execution_started])
def test_outside_an_engine_no_execution_has_an_id(read: Any) -> None:
    where = rf"{read.__name__}\(\) was called outside an engine"
    with pytest.raises(WorkflowError, match=where) as no:
        read()
    assert no.value.code == "HF080"


def test_outside_an_engine_sleep_takes_no_time() -> None:
    sleep(days(3650))


def test_durations_and_roles() -> None:
    assert (seconds(90), minutes(90), hours(36)) == (
        timedelta(minutes=1.5),
        timedelta(hours=1.5),
        days(1.5),
    )
    assert role("clerk") == "role:clerk"


def test_a_task_can_read_its_execution() -> None:
    assert task_context().execution == "local"
    context = TaskContext("run-1", "order-1", "flow", "count", 2, "key")
    with running_task(context):
        assert task_context() is context
    assert task_context().execution == "local"


def test_a_registry_collects_the_objects_of_modules_also_imported_ones() -> None:
    registry = Registry.from_modules(["tests.golden.shop", "tests.golden.truth"])
    assert registry.tasks["charge"].name == "charge"
    assert set(registry.workflows) == {"flow", "other"}


def test_two_tasks_of_one_name_are_refused_by_place() -> None:
    with pytest.raises(WorkflowError) as refused:
        Registry.from_modules(["tests.golden.truth", "tests.golden.text"])
    assert refused.value.code == "HF071"
    assert "tests.golden.truth.flow and tests.golden.text.flow" in refused.value.message


def test_a_module_that_is_missing_is_named() -> None:
    with pytest.raises(WorkflowError) as refused:
        Registry.from_modules(["tests.golden.nowhere"])
    assert refused.value.code == "HF070"
