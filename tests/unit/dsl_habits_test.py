"""Habits of Python that a first draft has: steps in comprehensions, `:=`, mixed dicts, dispatch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.api.surface import workflow
from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.errors import WorkflowError
from tests.unit.dsl_kit import assert_same, loaded, run_compiled

HEADER = """
from __future__ import annotations
import contextlib
from dataclasses import dataclass
from typing import Any, Final
from holdfast import TaskError, WaitTimeout, minutes, task, wait_for_event, workflow

class Odd(TaskError): ...

@dataclass
class Point:
    x: int
    y: int = 0

@task
def double(value: int) -> int:
    return value * 2
@task
def even(value: int) -> int:
    if value % 2:
        raise Odd(str(value))
    return value
@task
def is_big(value: int) -> bool:
    return value > 2
@task
def up_to(value: int) -> list[int]:
    return list(range(value))
@task
def found(value: int) -> int | None:
    return value or None

HANDLERS = {"twice": double, "same": even}
LIMIT = 3

@workflow
"""
NUMBERS: list[dict[str, Any]] = [{"xs": []}, {"xs": [2, 4]}, {"xs": [1, 2, 3]}]
SAME = {
    "steps in comprehensions": """
def flow(xs: list[int]) -> list[Any]:
    plain = [double(x) for x in xs if x > 1]
    pairs = {str(x): double(x) for x in xs}
    members = {double(x) % 4 for x in xs}
    nested = [(x, y) for x in xs for y in up_to(x) if is_big(y + x)]
    return [plain, pairs, sorted(members), nested, [double(x) for x in up_to(len(xs))]]
""",
    "steps in generators that are used up": """
def flow(xs: list[int]) -> list[Any]:
    total = sum(double(x) for x in xs) + max((double(x) for x in xs), default=0)
    text = ",".join(str(double(x)) for x in xs)
    return [total, text, sorted(double(-x) for x in xs)]
""",
    "any and all stop early": """
def flow(xs: list[int]) -> list[bool]:
    return [any(is_big(x) for x in xs), not all(is_big(x) for x in xs)]
""",
    "an error of a step in a comprehension": """
def flow(xs: list[int]) -> list[int]:
    try:
        return [even(x) for x in xs]
    except Odd as err:
        return [int(str(err))]
""",
    "assignments in expressions": """
def flow(xs: list[int]) -> list[Any]:
    left = list(xs)
    seen = 0
    while (size := len(left)) > 0:
        if (last := left.pop()) == 2:
            break
        seen += last
    if (one := found(size)) is not None:
        seen += one
    return [size, seen, one]
""",
    "the rest of a list": """
def flow(xs: list[int]) -> list[Any]:
    first, *rest = [0, *xs]
    *others, last = [*xs, 9]
    rest.append(first)
    a, *middle, b = [1, *xs, 2]
    return [rest, others, last, middle, a + b]
""",
    "too few for the names around the rest": """
def flow(xs: list[int]) -> list[int]:
    a, *rest, b = xs
    return [a, *rest, b]
""",
    "a dict of several types": """
def flow(xs: list[int]) -> dict[str, Any]:
    state = {"status": "new", "tries": 0, "seen": [], "last": None}
    for x in xs:
        state["tries"] += 1
        state["seen"].append(x)
        state["last"] = x
        if state["tries"] > 1:
            state["status"] = state["status"].upper()
    return state
""",
    "tasks by name": """
def flow(xs: list[int]) -> list[int]:
    kind = "twice" if len(xs) > 2 else "same"
    return [HANDLERS[kind](x * 2) for x in xs if kind in HANDLERS]
""",
    "the name and the class of an error": """
def flow(xs: list[int]) -> list[str]:
    names: list[str] = []
    for x in xs:
        try:
            even(x)
            even(5 // (x - 2))
        except Odd as err:
            names.append(type(err).__name__ + err.__class__.__name__)
    try:
        even(len(xs))
    except Exception as err:
        if isinstance(err, (Odd, ValueError)):
            names.append(str(err))
        names.append(f"{isinstance(err, WaitTimeout)} {isinstance(err, Exception)}")
    return names
""",
    "the name of a wait's timeout": """
def flow(xs: list[int]) -> str:
    try:
        return wait_for_event("answer", str, key="k", timeout=minutes(5))
    except Exception as err:
        return f"{type(err).__name__} {isinstance(err, WaitTimeout)} {isinstance(err, Odd)}"
""",
    "an error that is raised later": """
def flow(xs: list[int]) -> int:
    last: Exception | None = None
    seen: list[Exception] = []
    for x in xs:
        try:
            even(x)
        except Odd as err:
            last = err
            seen.append(err)
    if len(seen) > 1:
        raise seen[-1]
    if last:
        raise last
    return 0
""",
    "an error that is raised later and caught again": """
def flow(xs: list[int]) -> str:
    last = None
    try:
        for x in xs:
            try:
                even(x)
            except Odd as err:
                last = err
        if last is not None:
            raise last
    except Odd as err:
        return f"{type(err).__name__}: {err}"
    return ""
""",
    "the characters of a text, first keys, constants, fields by their order": """
def flow(xs: list[int]) -> list[Any]:
    name: Final = "aña😀" * len(xs)
    most: Final[int] = 3
    counts: dict[str, int] = {}
    for letter in name:
        counts[letter] = counts.get(letter, 0) + 1
    match Point(len(xs), y=most):
        case Point(0, y):
            first = y
        case Point(x, y=most):
            first = x + most
    found = [letter for place, letter in enumerate(name) if place % 2]
    pair = next(iter(counts.items()), ("", 0))
    return [counts, found, sorted(name), list(reversed(name)), len(set(name)), first, pair,
        next(iter(counts), ""), next(iter(xs), -1)]
""",
    "suppressed errors, named lambdas, constants, sets": """
def flow(xs: list[int]) -> list[int]:
    global LIMIT
    less = lambda n: n - LIMIT
    for x in xs:
        with contextlib.suppress(Odd, ValueError):
            even(x)
            LIMITED = less(x)
            return [LIMITED]
    seen = set(xs)
    seen ^= {2, 5}
    return sorted(seen ^ {7})
""",
}


@pytest.mark.parametrize("what", SAME)
@pytest.mark.parametrize("given", NUMBERS, ids=["none", "even", "three"])
def test_a_habit_of_python_does_what_python_does(
    what: str, given: dict[str, Any], tmp_path: Path
) -> None:
    with loaded(tmp_path, HEADER + SAME[what].lstrip()) as module:
        assert_same(module.flow, given)


def test_a_class_is_no_workflow() -> None:
    with pytest.raises(WorkflowError, match="Path is a class"):
        workflow(Path)


def test_a_workflow_in_a_class_is_refused(tmp_path: Path) -> None:
    source = "class Shop:\n    @workflow\n    def run(self, n: int) -> int:\n        return n\n"
    source = HEADER.removesuffix("@workflow\n") + source
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_module(module)
    assert "without `self`" in str(refused.value)


ASSUMED = """
from typing import Any, Literal, NotRequired, TypedDict
from holdfast import workflow

class Row(TypedDict):
    size: int
    tags: NotRequired[list[str]]

def sized(value: {kind}) -> {kind}:
    return value

@workflow
def flow(data: dict[str, Any]) -> Any:
    value: {kind} = data["x"]
    return sized(data["x"]), value
"""
KINDS: list[tuple[str, list[Any], list[Any]]] = [
    ("str", ["", "2"], [2, None, ["2"], True]),
    ("int", [0, 2], [2.5, True, "2"]),
    ("float | None", [2, 2.5, None], ["", False]),
    ("list[str]", [[], ["a"], ["a", "b"]], [[[]], ["a", 1], "a", {"a": "b"}]),
    ("dict[str, list[int]]", [{}, {"a": [], "b": [1]}], [[], {"a": 1}, {"a": [1], "b": ["c"]}]),
    ("Row", [{"size": 1}, {"size": 1, "tags": ["a"]}], [{}, {"size": "1"}, {"size": 1, "tags": 2}]),
    ("Literal['a', 'b']", ["a"], ["c", 1]),
]


@pytest.mark.parametrize(("kind", "right", "wrong"), KINDS)
def test_a_value_of_unknown_type_has_the_kind_of_its_annotation(
    kind: str, right: list[Any], wrong: list[Any], tmp_path: Path
) -> None:
    with loaded(tmp_path, ASSUMED.format(kind=kind)) as module:
        for value in right:
            assert assert_same(module.flow, {"data": {"x": value}}).output == [value, value]
        for value in wrong:
            cause = run_compiled(module.flow, {"data": {"x": value}}, {}).cause
            assert f"TypeError: value is declared as {kind}, and this " in str(cause)
