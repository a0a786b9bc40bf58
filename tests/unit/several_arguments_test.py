"""`each(zip(…), f)` with one argument for each part of an item, and `f(*pair)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import each, task
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from typing import Any
from pydantic import BaseModel
from holdfast import TaskError, each, parallel, pure, task, workflow

class Line(BaseModel):
    sku: str
    tags: list[str]
    span: tuple[int, str] = (2, "x")
class Gone(TaskError): ...
@task
def pay(count: int, name: str) -> str:
    if name == "bad":
        raise Gone(name)
    return f"{count}{name}"
@task
def tag(line: Line, tags: list[str], note: str | None = None) -> list[str]:
    return [line.sku, *tags, str(note)]
@pure
def times(count: int, name: str) -> str:
    return name * count
@workflow
def child(count: int, name: str) -> str:
    return pay(count, name)
def helper(count: int, name: str) -> str:
    return pay(count, name) + "!"
def summed(*numbers: int) -> int:
    return sum(numbers)
"""
FLOW = """
@workflow
def flow(ns: list[int], names: list[str]) -> Any:
    {}
"""
GIVEN: dict[str, Any] = {"ns": [3, 1, 2], "names": ["a", "bc"]}
PAID = ["3a", "1bc"]
PARTS_THAT_ARE_LISTS = """\
lines = [Line(sku=name, tags=[name] * n) for n, name in zip([0, 1, 2], names)]
    return each([(line, line.tags) for line in lines], tag)"""
A_FIELD = """\
lines = [Line(sku=name, tags=[]) for name in names]
    return each(lines, lambda line: pay(*line.span))"""
A_LOCAL_DEF = """\
def both(n: int, name: str) -> str:
        return pay(n + 1, name)
    return each(zip(ns, names), both)"""


def output(folder: Path, body: str, given: dict[str, Any] = GIVEN) -> Any:
    with loaded(folder, HEADER + FLOW.format(body)) as module:
        end = assert_same(module.flow, given)
        return end.output if end.error is None else end.error


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return each(zip(ns, names), lambda n, name: pay(n, name))", PAID),
        ("return each(zip(ns, names), pay)", PAID),
        ("return each(zip(ns, names), pay.options(label='p'), concurrency=1)", PAID),
        ("return each(zip(ns, names), child)", PAID),
        ("return each(zip(ns, names), helper)", ["3a!", "1bc!"]),
        ("return each(enumerate(names), lambda i, name: pay(i, name))", ["0a", "1bc"]),
        ("return each(enumerate(names, 5), pay)", ["5a", "6bc"]),
        ("return each(zip(ns, names), lambda pair: pay(*pair))", PAID),
        ("return each(zip(ns, names), lambda pair: times(*pair))", ["aaa", "bc"]),
        ("return each(zip(ns, names), lambda pair: child(*pair))", PAID),
        ("return each(zip(ns, names), lambda pair: helper(*pair))", ["3a!", "1bc!"]),
        ("return [times(*pair) for pair in zip(ns, names)]", ["aaa", "bc"]),
        ("return each(zip(ns, ns), lambda pair: summed(*pair, 10))", [16, 12, 14]),
        ("return each(zip(ns, names, ns), lambda a, b, c: pay(a + c, b))", ["6a", "2bc"]),
        ("return each({name: 7 for name in names}.items(), lambda k, n: pay(n, k))", ["7a", "7bc"]),
        ("return each(zip(ns, names), lambda pair: pair[1])", ["a", "bc"]),
        (PARTS_THAT_ARE_LISTS, [["a", "None"], ["bc", "bc", "None"]]),
        (A_FIELD, ["2x", "2x"]),
        (A_LOCAL_DEF, ["4a", "2bc"]),
    ],
)
def test_the_parts_of_a_tuple_are_arguments(tmp_path: Path, body: str, wanted: Any) -> None:
    assert output(tmp_path, body) == wanted


def test_the_other_arguments_of_each_go_with_several_parameters(tmp_path: Path) -> None:
    body = """limits = 0
    outcomes = each(zip(ns, names), pay, tolerate=limits, concurrency=1, return_exceptions=True)
    return [not isinstance(one, Exception) for one in outcomes]"""
    given = {"ns": [1, 2, 3], "names": ["a", "bad", "b"]}
    assert output(tmp_path, body, given) == [True, False, False]
    late = "return each(zip(ns, names), pay, cancel_others=False)"
    assert output(tmp_path, late, given) == "Gone"
    assert output(tmp_path, late) == PAID


def test_a_function_that_takes_one_argument_gets_the_tuple(tmp_path: Path) -> None:
    body = """def both(pair: tuple[int, str]) -> str:
        return pay(pair[0], pair[1])
    return each(zip(ns, names), both)"""
    assert output(tmp_path, body) == PAID


def help_of(folder: Path, body: str) -> tuple[str, str]:
    with (
        loaded(folder, HEADER + FLOW.format(body)) as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    (found,) = refused.value.diagnostics
    assert found.help is not None
    return found.code, found.help


@pytest.mark.parametrize(
    ("call", "mended"),
    [
        ("each(ns, lambda: 1)", "lambda item: 1"),
        ("each(ns, lambda n, more: n + 1)", "lambda n: n + 1"),
        ("each(ns, lambda n, more=1: n)", "lambda n: n"),
        ("each(zip(ns, names), lambda a, b, c: b)", "lambda a, b: b"),
        ("parallel(lambda n: 1, lambda: 2)", "lambda: 1"),
    ],
)
def test_the_help_for_a_branch_is_code_that_works(tmp_path: Path, call: str, mended: str) -> None:
    code, help_ = help_of(tmp_path, f"return {call}")
    assert (code, help_) == ("HF007", mended)
    start = call.index("lambda")
    ends = [call.find(", lambda: 2"), len(call) - 1]
    end = next(one for one in ends if one > start)
    output(tmp_path, f"return {call[:start]}{help_}{call[end:]}")


def test_a_task_with_more_parameters_than_the_item_has_parts_is_refused(tmp_path: Path) -> None:
    code, help_ = help_of(tmp_path, "return each(ns, pay)")
    assert (code, help_) == ("HF007", "lambda item: pay(item, …)  # or each(zip(items, …), pay)")
    assert help_of(tmp_path, "return [times(*names) for name in names]")[0] == "HF008"


CHANGED_BY_A_HELPER = """\
groups = [names[0]]
    pair = (groups, "x")
    grow(*pair)
    return [groups, pair[0]]"""
TWO_LENGTHS = """\
pair: Any = (1, 2)
    total = 0
    for n in ns:
        total += summed(*pair)
        pair = (n, n, n)
    return total"""


GROW = """
def grow(names: list[str], more: str) -> None:
    names.append(more)
"""


@pytest.mark.parametrize(("body", "code"), [(CHANGED_BY_A_HELPER, "HF023"), (TWO_LENGTHS, "HF040")])
def test_what_a_star_would_hide_is_refused(tmp_path: Path, body: str, code: str) -> None:
    text = HEADER + GROW + FLOW.format(body)
    with loaded(tmp_path, text) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert [one.code for one in refused.value.diagnostics] == [code]


@task
def joined(count: int, name: str) -> str:
    return f"{count}{name}"


def test_a_call_without_an_engine_spreads_tuples_only() -> None:
    pairs = [(1, "a"), (2, "b")]
    assert each(pairs, lambda count, name: f"{count}{name}") == ["1a", "2b"]
    assert each(pairs, joined) == ["1a", "2b"]
    assert each(pairs, lambda pair: pair[0]) == [1, 2]
    assert each([1, 2], str) == ["1", "2"]
    lists: Any = [[1, "a"]]
    with pytest.raises(TypeError):
        each(lists, lambda count, name: f"{count}{name}")
