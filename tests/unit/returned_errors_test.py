"""`return_exceptions=True`, and errors that functions of a workflow return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import TaskError, each, parallel
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from typing import Any, Literal
from pydantic import BaseModel
from holdfast import (
    Retry, TaskError, compensating, each, parallel, seconds, sleep, task, timeout, workflow,
)

class Declined(TaskError):
    code: str
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.upper()
class Gone(TaskError): ...
class Receipt(BaseModel):
    id: str
class Voucher(BaseModel):
    kind: Literal["voucher"] = "voucher"
    code: str
class Cash(BaseModel):
    kind: Literal["cash"] = "cash"
    cents: int

def fail(order: str) -> None:
    if order.startswith("bad"):
        raise Declined(order)
    if order.startswith("gone"):
        raise Gone(order)
    if order.startswith("odd"):
        raise ValueError(order)
@task
def pay(order: str) -> Receipt:
    fail(order)
    return Receipt(id=order)
@task
def count(order: str) -> int:
    fail(order)
    return len(order)
@task
def row(order: str) -> dict[str, Any]:
    fail(order)
    return {"Error": "none", "Cause": order}
@task
def anything(order: str) -> Any:
    fail(order)
    return [{"Holdfast.Exception": True}] if order == "list" else {"Error": order}
@task
def maybe(order: str) -> list[str] | None:
    fail(order)
    return [order] if order else None
@task
def means(order: str) -> Voucher | Cash:
    fail(order)
    return Voucher(code=order) if order else Cash(cents=5)
@task
def undo_it(order: str) -> None: ...
"""

ORDERS: tuple[list[str], ...] = (
    [],
    ["a"],
    ["bad1"],
    ["a", "bad1", "b", "gone2", "odd3"],
    ["", "bad1"],
    ["list", "odd"],
)


def found(folder: Path, text: str, orders: list[str]) -> Any:
    """Return the output or the error of `flow(orders)`, the same in Python and compiled."""
    with loaded(folder, HEADER + text) as module:
        end = assert_same(module.flow, {"orders": orders})
        return end.output if end.error is None else end.error


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("task", ["pay", "count", "row", "anything", "maybe", "means"])
def test_every_item_has_its_result_or_its_error(
    tmp_path: Path, task: str, orders: list[str]
) -> None:
    text = f"""
@workflow
def flow(orders: list[str]) -> dict[str, Any]:
    outcomes = each(orders, {task}, concurrency=2, return_exceptions=True)
    paid = [one for one in outcomes if not isinstance(one, Exception)]
    failed = [
        f"{{order}}: {{type(one).__name__}} {{one}}"
        for order, one in zip(orders, outcomes)
        if isinstance(one, Exception)
    ]
    codes = [one.code for one in outcomes if isinstance(one, Declined)]
    return {{"paid": paid, "failed": failed, "codes": codes}}
"""
    output = found(tmp_path, text, orders)
    is_failed = [order.startswith(("bad", "gone", "odd")) for order in orders]
    assert len(output["failed"]) == sum(is_failed)
    assert len(output["paid"]) == len(orders) - sum(is_failed)


def test_the_errors_can_be_counted_and_raised(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> int:
    outcomes = each(orders, pay, return_exceptions=True)
    errors = [one for one in outcomes if isinstance(one, Exception)]
    if len(errors) > 1:
        raise errors[0]
    return len(errors)
"""
    assert found(tmp_path, text, ["a", "bad1", "b"]) == 1
    assert found(tmp_path, text, ["gone1", "bad1", "b"]) == "Gone"


def test_a_match_tells_errors_from_results(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    found: list[str] = []
    for one in each(orders, means, return_exceptions=True):
        match one:
            case Declined() as error:
                found.append(error.code)
            case Gone():
                found.append("gone")
            case Voucher(code=code):
                found.append(code)
            case Exception():
                found.append(f"{one}")
            case _:
                found.append(str(one.cents))
    return found
"""
    assert found(tmp_path, text, ["a", "bad1", "gone", "odd", ""]) == [
        "a",
        "BAD1",
        "gone",
        "odd",
        "5",
    ]


def test_every_branch_has_its_result_or_its_error(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    one, other = parallel(
        lambda: pay(orders[0]), lambda: count(orders[1]), return_exceptions=True
    )
    first = one.id if isinstance(one, Receipt) else type(one).__name__
    return [first, f"{other + 1}" if not isinstance(other, Exception) else type(other).__name__]
"""
    assert found(tmp_path, text, ["a", "bad1"]) == ["a", "Declined"]
    assert found(tmp_path, text, []) == ["IndexError", "IndexError"]
    odd = HEADER + text.replace("orders[0]", "max(set(orders))")
    with loaded(tmp_path, odd) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    # `max(set(orders))` may fail as well, and its error has another name in the state machine.
    assert {one.code for one in refused.value.diagnostics} == {"HF034"}
    text = text.replace("type(one).__name__", '"error"').replace("type(other).__name__", '"error"')
    assert found(tmp_path, text, ["a", "bad1"]) == ["a", "error"]
    assert found(tmp_path, text, ["bad1", "a"]) == ["error", "2"]
    assert found(tmp_path, text, ["bad1"]) == ["error", "error"]


def test_an_item_that_fails_undoes_its_own_steps_and_stops_no_other(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> int:
    def kept(order: str) -> str:
        with compensating() as undo:
            undo(undo_it, order)
            return pay(order).id
    return len([one for one in each(orders, kept, return_exceptions=True) if one == "a"])
"""
    text = text.replace('if one == "a"', "if isinstance(one, Exception)")
    with loaded(tmp_path, HEADER + text) as module:
        end = assert_same(module.flow, {"orders": ["a", "bad1", "c"]})
    undone = [call[1]["order"] for call in end.trace if call[0] == "undo_it"]
    assert (end.output, undone) == (1, ["bad1"])


def test_a_block_that_is_too_late_cancels_the_items_instead_of_returning_their_errors(
    tmp_path: Path,
) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> int:
    def late(order: str) -> int:
        sleep(seconds(len(order)))
        return 1
    with timeout(seconds(3)):
        return len(each(orders, late, return_exceptions=True))
"""
    assert found(tmp_path, text, ["a", "bb"]) == 2
    assert found(tmp_path, text, ["a", "bbbb"]) == "BlockTimeout"


@pytest.mark.parametrize("task", ["pay", "count", "row"])
def test_a_function_may_return_the_error_that_it_caught(tmp_path: Path, task: str) -> None:
    text = f"""
def attempt(order: str) -> Any:
    try:
        return {task}(order)
    except Declined as error:
        return error
@workflow
def flow(orders: list[str]) -> list[str]:
    def tried(order: str) -> Any:
        try:
            return {task}(order)
        except (Declined, Gone) as error:
            return error
    inside, local = attempt(orders[0]), tried(orders[0])
    outcomes = [inside, local, *each(orders, tried)]
    return [str(one) if isinstance(one, Exception) else "done" for one in outcomes]
"""
    assert found(tmp_path, text, ["a", "bad1"]) == ["done", "done", "done", "bad1"]
    assert found(tmp_path, text, ["bad1", "gone", "b"]) == ["bad1", "bad1", "bad1", "gone", "done"]


def test_an_error_that_no_field_tells_from_a_dict_is_not_asked_for(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> bool:
    last: dict[str, Any] | Exception = {}
    try:
        last = row(orders[0])
    except Declined as error:
        last = error
    return isinstance(last, Exception)
"""
    with loaded(tmp_path, HEADER + text) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert [one.code for one in refused.value.diagnostics] == ["HF048"]


def test_errors_leave_no_workflow(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> Any:
    return each(orders, pay, return_exceptions=True)
"""
    with loaded(tmp_path, HEADER + text) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert [one.code for one in refused.value.diagnostics] == ["HF040"]


def test_the_state_machine_is_plain_asl_with_a_catch_in_each_iteration(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> int:
    return len(each(orders, pay, return_exceptions=True))
"""
    with loaded(tmp_path, HEADER + text) as module:
        asl = compile_workflow(module.flow).asl
    (state,) = [one for one in asl["States"].values() if one["Type"] == "Map"]
    (paid,) = [one for one in state["ItemProcessor"]["States"].values() if one["Type"] == "Task"]
    assert [one["ErrorEquals"] for one in paid["Catch"]] == [["States.ALL"]]
    assert "Holdfast" not in state


class Broken(TaskError):  # noqa: N818
    pass


def test_a_call_without_an_engine_returns_the_errors_too() -> None:
    def half(number: int) -> int:
        if number % 2:
            raise Broken(str(number))
        return number // 2

    numbers = [0, 1, 2]
    assert [str(one) for one in each(numbers, half, return_exceptions=True)] == ["0", "1", "1"]
    one, other = parallel(lambda: half(1), lambda: half(2), return_exceptions=True)
    assert (isinstance(one, Broken), other) == (True, 1)


def test_the_help_for_a_raised_item_that_may_be_a_value_is_code_that_works(tmp_path: Path) -> None:
    flow = """
@workflow
def flow(orders: list[str]) -> str:
    outcomes = each(orders, count, return_exceptions=True)
    {}
    return "paid"
"""
    with (
        loaded(tmp_path, HEADER + flow.format("raise outcomes[0]")) as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    (help_,) = [one.help for one in refused.value.diagnostics if one.code == "HF043"]
    assert help_ is not None
    mended = flow.format(help_.replace("\n", "\n    "))
    with loaded(tmp_path, HEADER + mended) as module:
        assert assert_same(module.flow, {"orders": ["bad"]}).error == "Declined"
        assert assert_same(module.flow, {"orders": ["tea"]}).output == "paid"
