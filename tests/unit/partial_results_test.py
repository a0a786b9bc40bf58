"""Partial results: limits together with `return_exceptions`, and `cancel_others=False`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import BranchCancelled, TaskError, each, parallel
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from typing import Any
from pydantic import BaseModel
from holdfast import (
    BranchCancelled, TaskError, compensating, each, parallel, seconds, shielded, sleep, task,
    timeout, workflow,
)

class Declined(TaskError):
    code: str
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.upper()
class Gone(TaskError): ...
class Receipt(BaseModel):
    id: str

@task
def pay(order: str) -> Receipt:
    if order.startswith("bad"):
        raise Declined(order)
    if order.startswith("gone"):
        raise Gone(order)
    if order.startswith("odd"):
        raise ValueError(order)
    return Receipt(id=order)
@task
def row(order: str) -> dict[str, Any]:
    return {"id": pay.function(order).id}
@task
def undo_it(order: str) -> None: ...

def told(one: Any) -> str:
    if isinstance(one, BranchCancelled):
        return "cancelled"
    if isinstance(one, Declined):
        return one.code
    if isinstance(one, Exception):
        return f"{type(one).__name__} {one}"
    return "value"
"""


def found(folder: Path, text: str, orders: list[str]) -> Any:
    """Return the output or the error of `flow(orders)`, the same in Python and compiled."""
    with loaded(folder, HEADER + text) as module:
        end = assert_same(module.flow, {"orders": orders})
        return end.output if end.error is None else f"{end.error} {end.cause}"


def refusals(folder: Path, text: str) -> list[tuple[str, str, str | None]]:
    with loaded(folder, HEADER + text) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    return [(one.code, one.message, one.help) for one in refused.value.diagnostics]


EACH = """
@workflow
def flow(orders: list[str]) -> list[str]:
    reserved = each(orders, {task}, {limits}, return_exceptions=True)
    return [told(one) for one in reserved]
"""
CANCELLED = "cancelled"
SUCCESS_LAST = ["BAD1", "BAD2", "value"]


@pytest.mark.parametrize("task", ["pay", "row"])
@pytest.mark.parametrize(
    ("limits", "orders", "wanted"),
    [
        ("tolerate=1", ["a", "b"], ["value", "value"]),
        ("tolerate=1", ["bad1", "a"], ["BAD1", "value"]),
        ("tolerate=1, concurrency=1", ["bad1", "a", "gone", "b"], ["BAD1", "value", "Gone gone"]),
        ("tolerate=0, concurrency=1", ["a", "odd", "b"], ["value", "ValueError odd"]),
        ("at_least=2, concurrency=1", ["a", "bad1", "b", "c"], ["value", "BAD1", "value"]),
        ("at_least=1", ["a"], ["value"]),
        ("at_least=2, concurrency=1", ["bad1", "bad2", "a"], ["BAD1", "BAD2"]),
        ("at_least=3, concurrency=1", ["bad1", "b", "a"], ["BAD1"]),
        ("at_least=2, tolerate=0, concurrency=1", ["a", "bad1", "b", "c"], ["value", "BAD1"]),
        (
            "at_least=1, tolerate=3, concurrency=1",
            ["bad1", "bad2", "b", "c"],
            ["BAD1", "BAD2", "value"],
        ),
        ("tolerate=1, concurrency=1", [], []),
    ],
)
def test_the_result_has_each_value_each_error_and_what_did_not_end(
    tmp_path: Path, task: str, limits: str, orders: list[str], wanted: list[str]
) -> None:
    text = EACH.format(task=task, limits=limits)
    missing = [CANCELLED] * (len(orders) - len(wanted))
    assert found(tmp_path, text, orders) == [*wanted, *missing]


def test_a_computed_limit_is_checked_although_nothing_is_raised(tmp_path: Path) -> None:
    text = EACH.format(task="pay", limits="at_least=len(orders) - 1, concurrency=1")
    assert found(tmp_path, text, ["a", "b", "bad1"]) == ["value", "value", "cancelled"]
    assert found(tmp_path, text, ["a"]) == "ValueError at_least is not 1 to the number of calls"


def test_open_branches_are_cancelled_and_undone_before_the_result(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    def kept(order: str) -> str:
        with compensating() as undo:
            undo(undo_it, order)
            sleep(seconds(len(order)))
            return pay(order).id
    return [told(one) for one in each(orders, kept, tolerate=0, return_exceptions=True)]
"""
    with loaded(tmp_path, HEADER + text) as module:
        end = assert_same(module.flow, {"orders": ["a", "bad1", "longer"]})
    undone = [call[1]["order"] for call in end.trace if call[0] == "undo_it"]
    assert (end.output, undone) == (["value", "BAD1", "cancelled"], ["bad1", "longer"])


def test_the_result_of_a_shielded_branch_that_ends_late_is_dropped(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    def kept(order: str) -> str:
        with shielded():
            sleep(seconds(len(order)))
            return pay(order).id
    return [told(one) for one in each(orders, kept, tolerate=0, return_exceptions=True)]
"""
    assert found(tmp_path, text, ["bad1", "longer", "gone and late"])[1:] == [CANCELLED] * 2


@pytest.mark.parametrize("concurrency", [0, 1])
def test_branches_of_parallel_have_the_same_limits(tmp_path: Path, concurrency: int) -> None:
    text = f"""
@workflow
def flow(orders: list[str]) -> list[str]:
    one, two, three = parallel(
        lambda: pay(orders[0]),
        lambda: row(orders[1]),
        lambda: len(orders[2]),
        at_least=2, concurrency={concurrency}, return_exceptions=True,
    )
    return ["error" if isinstance(x, Exception) else "value" for x in (one, two, three)]
"""
    assert found(tmp_path, text, ["bad1", "a", "b"]) == ["error", "value", "value"]
    assert found(tmp_path, text, ["bad1", "bad2", "b"])[0] == "error"
    assert found(tmp_path, text, ["bad1"])[:2] == ["error", "error"]


def test_batches_have_the_same_limits(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    def packed(some: list[str]) -> list[str]:
        return [pay(one).id for one in some]
    outcomes = each(
        orders, packed, batch=2, concurrency=1, tolerate=0, return_exceptions=True
    )
    return [told(one) for one in outcomes]
"""
    assert found(tmp_path, text, ["a", "b", "bad1", "c", "d"]) == ["value", "BAD1", "cancelled"]


def test_an_error_that_a_branch_returns_is_no_failure(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    def inner(order: str) -> Any:
        outcomes = each([order], pay, tolerate=0, return_exceptions=True)
        return outcomes[0]
    outcomes = each(orders, inner, tolerate=0, concurrency=1, return_exceptions=True)
    return ["error" if isinstance(one, (Declined, Gone)) else "other" for one in outcomes]
"""
    assert found(tmp_path, text, ["bad1", "a", "gone"]) == ["error", "other", "error"]


def test_a_block_that_is_too_late_cancels_all_branches(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> int:
    def late(order: str) -> int:
        sleep(seconds(len(order)))
        return 1
    with timeout(seconds(3)):
        return len(each(orders, late, tolerate=1, return_exceptions=True))
"""
    assert found(tmp_path, text, ["a", "bb"]) == 2
    assert found(tmp_path, text, ["a", "bbbb"]) == "BlockTimeout "


def test_the_limits_are_an_extension_of_the_state(tmp_path: Path) -> None:
    text = EACH.format(task="pay", limits="tolerate=1")
    with loaded(tmp_path, HEADER + text) as module:
        asl = compile_workflow(module.flow).asl
    (state,) = [one for one in asl["States"].values() if one["Type"] == "Map"]
    assert state["Holdfast"] == {"Tolerated": 1, "ReturnErrors": True}


class Broken(TaskError):  # noqa: N818
    pass


def half(number: int) -> int:
    if number % 2:
        raise Broken(str(number))
    return number // 2


def test_a_call_without_an_engine_returns_partial_results_too() -> None:
    outcomes = each([2, 1, 4], half, tolerate=0, return_exceptions=True)
    assert [type(one) for one in outcomes] == [int, Broken, BranchCancelled]
    one, other = parallel(lambda: 1, lambda: half(2), at_least=1, return_exceptions=True)
    assert (one, type(other)) == (1, BranchCancelled)


LATE = """
@workflow
def flow(orders: list[str]) -> {returns}:
    def slow(order: str) -> str:
        sleep(seconds(10 - len(order)))
        return pay(order).id
    {body}
"""


PAIR = """\
a, b = parallel(lambda: slow(orders[0]), lambda: slow(orders[1]), cancel_others=False)
    return [a, b]
"""


@pytest.mark.parametrize(
    "body",
    [
        "return each(orders, slow, cancel_others=False)",
        "return each(orders, slow, concurrency=2, cancel_others=False)",
        "paid = each(orders, slow, cancel_others=False)\n    return paid",
        "return sorted(each(orders, slow, cancel_others=False))",
        PAIR,
    ],
)
def test_all_branches_end_before_the_first_error_is_raised(tmp_path: Path, body: str) -> None:
    text = LATE.format(returns="list[str]", body=body)
    with loaded(tmp_path, HEADER + text) as module:
        good = assert_same(module.flow, {"orders": ["a", "bb"]})
        assert good.output == ["a", "bb"]
        bad = assert_same(module.flow, {"orders": ["bad1", "gone22"]})
        # `gone22` fails first; the order of the branches decides.
        assert (bad.error, [call[0] for call in bad.trace].count("pay")) == ("Declined", 2)
        assert assert_same(module.flow, {"orders": ["a", "gone"]}).error == "Gone"


def test_a_handler_catches_the_late_error_as_it_was(tmp_path: Path) -> None:
    text = LATE.format(
        returns="str",
        body="""try:
        each(orders, slow, cancel_others=False)
    except Declined as error:
        return error.code
    except Exception as error:
        return f"other {error}"
    return "paid\"""",
    )
    assert found(tmp_path, text, ["a", "bad1", "bad2"]) == "BAD1"
    assert found(tmp_path, text, ["odd", "bad2"]) == "other odd"
    assert found(tmp_path, text, ["a"]) == "paid"


def test_a_branch_inside_a_branch_raises_late(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str]:
    def inner(order: str) -> int:
        return len(each([order, "a"], pay, cancel_others=False))
    outcomes = each(orders, inner, return_exceptions=True)
    again = each(outcomes, lambda one: one, cancel_others=False)
    return [told(one) for one in again]
"""
    assert found(tmp_path, text, ["a", "bad1"]) == ["value", "BAD1"]


def test_a_late_error_is_undone_and_passes_a_finally(tmp_path: Path) -> None:
    text = """
def paid(orders: list[str]) -> list[Receipt]:
    return each(orders, pay, cancel_others=False)
@workflow
def flow(orders: list[str]) -> int:
    with compensating() as undo:
        undo(undo_it, "all")
        try:
            one, other = parallel(
                lambda: paid(orders), lambda: len(paid(orders)), cancel_others=False
            )
            return len(one) + other
        finally:
            undo_it("finally")
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert assert_same(module.flow, {"orders": ["a", "b"]}).output == 4
        end = assert_same(module.flow, {"orders": ["a", "bad1", "gone"]})
    assert (end.error, end.cause) == ("Declined", '{"message":"bad1","fields":{"code":"BAD1"}}')
    assert [call[1]["order"] for call in end.trace if call[0] == "undo_it"] == ["finally", "all"]
    assert [call[0] for call in end.trace].count("pay") == 6


def test_late_errors_need_no_extension(tmp_path: Path) -> None:
    text = LATE.format(returns="list[str]", body="return each(orders, slow, cancel_others=False)")
    with loaded(tmp_path, HEADER + text) as module:
        asl = compile_workflow(module.flow).asl
    assert not any("Holdfast" in state for state in asl["States"].values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("cancel_others=False, return_exceptions=True", "return_exceptions, tolerate and at_least"),
        ("cancel_others=False, tolerate=1", "return_exceptions, tolerate and at_least"),
        ("cancel_others=len(orders) > 1", "it is no variable"),
    ],
)
def test_what_does_not_go_with_late_errors_is_refused(
    tmp_path: Path, arguments: str, message: str
) -> None:
    text = f"""
@workflow
def flow(orders: list[str]) -> int:
    return len(each(orders, pay, {arguments}))
"""
    ((code, said, _),) = refusals(tmp_path, text)
    assert code == "HF008"
    assert message in said


def test_a_call_without_an_engine_raises_late() -> None:
    seen: list[int] = []

    def noted(number: int) -> int:
        seen.append(number)
        return half(number)

    with pytest.raises(Broken, match="1"):
        each([2, 1, 3, 4], noted, cancel_others=False)
    assert seen == [2, 1, 3, 4]
    with pytest.raises(ValueError, match="cancel_others is not given with"):
        each([1], half, cancel_others=False, tolerate=1)  # type: ignore[call-overload]
