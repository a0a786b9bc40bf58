"""Local functions as branches: by their names, and called with arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_branching_test import HEADER
from tests.unit.dsl_kit import assert_same, loaded


def came_to(folder: Path, text: str, **values: Any) -> tuple[Any, list[str]]:
    """The output, and the orders that were charged, the same in plain Python and compiled."""
    with loaded(folder, f"{HEADER}@workflow\n{text}") as module:
        found = assert_same(module.flow, values)
    assert found.error is None, found.cause
    return found.output, [call[1]["order"] for call in found.trace if call[0] == "charge"]


def states_of(folder: Path, text: str) -> dict[str, Any]:
    with loaded(folder, f"{HEADER}@workflow\n{text}") as module:
        return dict(compile_workflow(module.flow).asl["States"])


def refusal_of(folder: Path, text: str) -> str:
    source = f"{HEADER}@workflow\n{text}"
    with loaded(folder, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    return str(refused.value)


def test_a_local_function_is_called_with_other_arguments_in_each_branch(tmp_path: Path) -> None:
    text = """
def flow(o: str) -> list[str]:
    def twice(name: str, times: int) -> str:
        name = charge(name)
        return name * times
    a, b, c = parallel(
        lambda: twice("a", 1), lambda: twice(times=2, name=o), lambda: twice(f"{o}{o}", 3)
    )
    return [a, b, c]
"""
    assert came_to(tmp_path, text, o="b") == (["a", "bb", "bbbbbb"], ["a", "b", "bb"])


def test_a_mere_name_needs_no_state_and_a_computed_value_needs_one(tmp_path: Path) -> None:
    text = """
def flow(o: str, line: Line) -> None:
    def pay(name: str, more: str) -> None:
        charge(name)
        charge(more)
    parallel(lambda: pay(line.sku, "x"), lambda: pay(o + "!", o))
"""
    states = states_of(tmp_path, text)
    (parallel,) = [state for state in states.values() if state["Type"] == "Parallel"]
    plain, computed = parallel["Branches"]
    assert [state["Type"] for state in plain["States"].values()] == ["Task", "Task", "Succeed"]
    assert [s["Type"] for s in computed["States"].values()] == ["Pass", "Task", "Task", "Succeed"]
    assert '"$line.sku' not in str(plain)
    assert plain["States"]["charge"]["Arguments"] == {"order": "{% $line.sku %}"}


def test_a_local_function_is_called_for_each_item(tmp_path: Path) -> None:
    text = """
def flow(names: list[str], suffix: str) -> list[str]:
    def paid(name: str, end: str) -> str:
        try:
            return charge(name) + end
        except Refused as err:
            return f"refused {err}"
    return each(names, lambda one: paid(one, suffix))
"""
    expected = ["a!", "refused bad", "c!"], ["a", "bad", "c"]
    assert came_to(tmp_path, text, names=["a", "bad", "c"], suffix="!") == expected


def test_steps_in_the_arguments_run_first_and_in_order(tmp_path: Path) -> None:
    text = """
def flow(o: str) -> list[str]:
    def joined(a: str, b: str) -> str:
        return charge(a + b)
    a, b = parallel(lambda: joined(charge(o), charge("y")), lambda: joined("p", b="q"))
    return [a, b]
"""
    assert came_to(tmp_path, text, o="x") == (["xy", "pq"], ["x", "pq", "y", "xy"])


def test_parameters_may_be_spelled_like_names_around_them(tmp_path: Path) -> None:
    text = """
def flow(a: str, b: str) -> list[str]:
    def swapped(b: str, a: str) -> str:
        return f"{a}{b}{charge(a)}"
    x, y = parallel(lambda: swapped(a, b), lambda: swapped(b, a))
    return [x, y]
"""
    assert came_to(tmp_path, text, a="1", b="2") == (["212", "121"], ["2", "1"])


def test_a_function_sees_the_names_where_it_is_defined_not_where_it_runs(tmp_path: Path) -> None:
    text = """
def flow(n: int) -> list[int]:
    v = 1
    def seen() -> int:
        return v
    def plus(more: int) -> int:
        return v + more
    v = 10
    def inner() -> int:
        v = 5
        a, b, c = parallel(seen, lambda: plus(v), lambda: v)
        return a * 10_000 + b * 100 + c
    a, b = parallel(inner, seen)
    found = each([7], lambda v: plus(v))
    return [a, b, *found]
"""
    assert came_to(tmp_path, text, n=0)[0] == [101_505, 10, 17]


@pytest.mark.parametrize("name", ["LIMIT", "n"])
def test_a_parameter_of_the_lambda_hides_nothing_from_the_function(
    tmp_path: Path, name: str
) -> None:
    text = f"""
def flow(n: int) -> list[int]:
    def limited(count: int) -> int:
        return {name} + count
    return each([1], lambda {name}: limited({name}))

LIMIT = 100
"""
    assert came_to(tmp_path, text, n=5)[0] == [101 if name == "LIMIT" else 6]


def test_functions_call_functions_and_branch_again(tmp_path: Path) -> None:
    text = """
def flow(o: str) -> list[str]:
    def leaf(name: str, number: int) -> str:
        return charge(f"{name}{number}")
    def tree(name: str) -> str:
        found = [x for x in each([1, 2], lambda number: leaf(name, number))]
        a, b = parallel(lambda: leaf(name, 3), lambda: leaf(found[0], 4))
        return a + b
    x, y = parallel(lambda: tree(o), lambda: tree("z"))
    return [x, y]
"""
    assert came_to(tmp_path, text, o="o")[0] == ["o3o14", "z3z14"]


def test_an_annotation_gives_an_unknown_argument_its_type(tmp_path: Path) -> None:
    text = """
def flow(x: Any) -> list[int]:
    def more(number: int) -> int:
        return number + 1
    a, b = parallel(lambda: more(x), lambda: more(2))
    return [a, b]
"""
    assert came_to(tmp_path, text, x=1)[0] == [2, 3]


def test_a_list_that_a_call_was_given_is_not_changed_afterwards(tmp_path: Path) -> None:
    text = """
def flow(n: int) -> int:
    def kept(some: list[int]) -> list[int]:
        return some
    found = [1]
    a, b = parallel(lambda: kept(found), lambda: 1)
    found.append(2)
    return len(a)
"""
    assert "HF023" in refusal_of(tmp_path, text)


@pytest.mark.parametrize(
    ("call", "code", "help_"),
    [
        ("pay()", "HF008", "pay(name, cents)"),
        ("pay(o, 1, 2)", "HF008", "pay(name, cents)"),
        ("pay(o, name=o)", "HF008", "pay(name, cents)"),
        ("pay(*[o, 1])", "HF008", "pay(name, cents)"),
        ("pay(**{})", "HF008", "pay(name, cents)"),
        ("pay(o, price=1)", "HF008", "pay(name, cents)"),
        ("pay(1, 1)", "HF040", "annotate it as int"),
        ("again(o)", "HF007", "make it a @workflow of its own"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(
    tmp_path: Path, call: str, code: str, help_: str
) -> None:
    text = f"""
def flow(o: str) -> None:
    def pay(name: str, cents: int) -> None:
        charge(name)
    def again(name: str) -> None:
        parallel(lambda: again(name), lambda: charge(name))
    parallel(lambda: {call}, lambda: 1)
"""
    told = refusal_of(tmp_path, text)
    assert f"error[{code}]" in told and help_ in told


def test_a_branch_that_is_a_branch_of_itself_is_refused(tmp_path: Path) -> None:
    text = """
def flow(o: str) -> None:
    def again() -> None:
        parallel(again, lambda: charge(o))
    parallel(again, again)
"""
    assert "its body would have no end" in refusal_of(tmp_path, text)
