"""`functools.reduce`, `tuple(…)` and functions of `itertools` do what they do in Python."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import functools
import itertools
import operator
from functools import reduce
from typing import Any
from holdfast import each, task, workflow

SIZE = 2

@task
def double(value: int) -> int:
    return value * 2
@task
def total(values: list[int]) -> int:
    return sum(values)

def added(one: int, other: int) -> int:
    return one + other if one > other else other - one

"""
NUMBERS: list[dict[str, Any]] = [{"xs": []}, {"xs": [3]}, {"xs": [1, 4, -2, 8, 5]}]
SAME = {
    "reduce": """
@workflow
def flow(xs: list[int]) -> Any:
    total = reduce(lambda so_far, x: so_far + x, xs, 0)
    share = reduce(lambda so_far, x: so_far + x / 2, xs, 0)
    text = functools.reduce(lambda a, b: f"{a}{b},", xs, "")
    counts = reduce(lambda counts, x: counts | {x: counts.get(x, 0) + 1}, xs, {0: 0})
    found = reduce(lambda found, x: [*found, x, len(found)], xs, [1])
    none = reduce(lambda a, b: None if a is None else a + b, xs, None)
    more = [reduce(added, xs, 1), reduce(operator.add, xs, 2), reduce(max, xs, 0)]
    return [total, f"{share:.1f}", text, counts, found, none, more, reduce(operator.mul, [*xs, 1])]
""",
    "reduce without a first value": """
@workflow
def flow(xs: list[int]) -> Any:
    return reduce(lambda a, b: a * 2 + b, xs)
""",
    "lists in lists": """
@workflow
def flow(xs: list[int]) -> Any:
    rows = [[x, 1] for x in xs]
    return [reduce(lambda a, b: a + b, rows, []), reduce(lambda a, row: a + row[0], rows, 0)]
""",
    "islice, chain and tuple": """
@workflow
def flow(xs: list[int]) -> Any:
    found = [x for x in itertools.islice(xs, 2)]
    for x in itertools.islice(xs, 1, None):
        found.append(double(x))
    for x in itertools.chain(xs, [9]):
        found.append(x)
    pair = tuple(xs)
    one = tuple(x + 1 for x in itertools.islice(xs, 1, 4, 2))
    return [found, list(itertools.islice(range(9), 3)), pair, one, len(pair), total(pair), xs[:1]]
""",
}


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_same_in_python_and_compiled(name: str, tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + SAME[name]) as module:
        for values in NUMBERS:
            assert_same(module.flow, values)


BATCHED = """
@workflow
def flow(xs: list[int]) -> Any:
    found = [total(list(batch)) for batch in itertools.batched(xs, 2)]
    for batch in itertools.batched(xs, SIZE):
        found.append(len(batch))
    return [found, list(itertools.batched(xs, 3))]
"""


@pytest.mark.skipif(not hasattr(itertools, "batched"), reason="new in Python 3.12")
def test_batches_are_tuples(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + BATCHED) as module:
        for values in NUMBERS:
            assert_same(module.flow, values)


REFUSED = {
    "a function with a step": "return reduce(lambda a, b: a + double(b), xs, 0)",
    "a function with one parameter": "return reduce(lambda a: a, xs, 0)",
    "a function that is not known": "return reduce(print, xs, 0)",
    "an iterator that is kept": "found = itertools.chain(xs, xs)\nreturn [list(found), len(xs)]",
    "the length of an iterator": "return len(itertools.islice(xs, 2))",
    "a bound that may be negative": "return list(itertools.islice(xs, xs[0]))",
    "a change of a tuple": "found = tuple(xs)\nfound.append(1)\nreturn found",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_python_does_otherwise_is_refused(name: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in REFUSED[name].splitlines())
    source = f"{HEADER}@workflow\ndef flow(xs: list[int]) -> Any:\n{body}"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors):
        compile_module(module)
