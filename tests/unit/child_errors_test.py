"""Errors of the expressions of a child workflow, as its caller sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, real
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

CHILDREN = """
from __future__ import annotations
from typing import Any
from holdfast import Retry, TaskError, choice, each, parallel, task, workflow

class Empty(TaskError): ...

@task
def noted(text: str) -> None: ...

@workflow
def at(xs: list[int], n: int) -> int:
    noted("before")
    return 12 // xs[n]

@workflow
def outer(xs: list[int], n: int) -> int:
    return at(xs, n) + int("x" if n == 1 else "2")

@workflow
def again_from(n: int) -> int:
    return again_from(n - 1) if n > 0 else {1: 1}[n]

@workflow
def most(xs: list[int]) -> int:
    return max(x for x in xs)

@workflow
def passes_on(xs: list[int]) -> int:
    try:
        return most(xs)
    except Exception:
        noted("failed")
        raise

@workflow
def kept(xs: list[int]) -> int:
    last: Exception | None = None
    for _ in range(2):
        try:
            return max(x for x in xs)
        except Exception as err:
            last = err
    assert last is not None
    raise last

@workflow
def several(prices: dict[str, int], names: list[str]) -> list[int]:
    return [prices[name] for name in names]

@workflow
def caught(xs: list[int]) -> int:
    try:
        return max(x for x in xs)
    except Exception:
        raise Empty("no numbers")

@workflow
def alone(xs: list[int], n: int) -> int:
    return 12 // xs[n]

BY_NAME = choice(at, outer)
"""
CALLERS = {
    "text": """
try:
    return str(outer([0, 1], n))
except Exception as err:
    return f"{type(err).__name__}: {err}"
""",
    "names": """
try:
    return str(at([0, 1], n))
except IndexError as err:
    return f"index {err}"
except ZeroDivisionError:
    return "zero"
""",
    "a table": """
try:
    return str(BY_NAME["outer"](xs=[0, 1], n=n))
except (LookupError, ArithmeticError, ValueError) as err:
    return f"{err}"
""",
    "outcomes": """
out = []
for one in each([n, 9], lambda k: at([0, 1], k), return_exceptions=True):
    if isinstance(one, Exception):
        out.append(f"{type(one).__name__} {isinstance(one, IndexError)}")
return out
""",
    "retry": """
return at.options(retry=Retry(max_attempts=2, on=(ZeroDivisionError,)))([0, 1], n)
""",
    "itself": """
try:
    return again_from(n)
except KeyError as err:
    return f"{err}"
""",
}
REFUSED = {
    "a name": ("HF032", "try:\n    return most([])\nexcept ValueError:\n    return 0"),
    "a text": ("HF034", "try:\n    return most([])\nexcept Exception as err:\n    return f'{err}'"),
    "a class": (
        "HF034",
        "try:\n    return most([])\nexcept Exception as err:\n    return type(err).__name__",
    ),
    "a grandchild": (
        "HF034",
        "try:\n    return passes_on([])\nexcept Exception as err:\n    return f'{err}'",
    ),
    "a kept error": ("HF032", "try:\n    return kept([])\nexcept ValueError:\n    return 0"),
    "a comprehension": (
        "HF032",
        "try:\n    return several({}, ['a'])\nexcept KeyError:\n    return 0",
    ),
    "a retry": ("HF008", "return most.options(retry=Retry(on=(ValueError,)))([])"),
    "an outcome": (
        "HF034",
        (
            "out = each([[0]], most, return_exceptions=True)\n"
            "return [f'{one}' for one in out if isinstance(one, Exception)]"
        ),
    ),
}
ACCEPTED = {
    "no name": "try:\n    return most([])\nexcept Exception:\n    return 0",
    "an error of its own": "try:\n    return caught([])\nexcept Empty as err:\n    return f'{err}'",
    "a retry of all": "return most.options(retry=Retry(max_attempts=2))([3])",
    "only the successes": (
        "out = each([[], [3]], most, return_exceptions=True)\n"
        "return [one for one in out if not isinstance(one, Exception)]"
    ),
}


def _module(body: str) -> str:
    rows = "".join(f"    {row}\n" for row in body.strip().split("\n"))
    return f"{CHILDREN}\n@workflow\ndef flow(n: int) -> Any:\n{rows}"


@pytest.mark.parametrize("what", CALLERS)
def test_a_caller_sees_pythons_error_of_an_expression_of_its_child(
    what: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, _module(CALLERS[what])) as module:
        runs = [World(others=real).run_json(module.flow, {"n": n}) for n in (0, 1, 2)]
    assert not any("States." in f"{run.error} {run.end.output}" for run in runs)
    assert all(run.compiled_error == run.error for run in runs)


def test_the_engine_brings_pythons_error_to_the_caller(tmp_path: Path) -> None:
    with loaded(tmp_path, _module(CALLERS["text"])) as module:
        client = Client.of(MemoryStack(module.__name__).api)
        runs = [client.start("flow", {"n": n}) for n in (1, 2)]
        found = [run.describe()["output"] for run in runs]
    assert found[1] == "IndexError: list index out of range"
    assert found[0] == "ValueError: invalid literal for int() with base 10: 'x'"


@pytest.mark.parametrize("what", REFUSED)
def test_a_caller_that_reads_an_error_without_a_name_is_refused(what: str, tmp_path: Path) -> None:
    code, body = REFUSED[what]
    with (
        loaded(tmp_path, _module(body)) as module,
        pytest.raises(CompileErrors, match=code),
    ):
        compile_workflow(module.flow)


@pytest.mark.parametrize("what", ACCEPTED)
def test_a_caller_that_does_not_read_the_error_is_accepted(what: str, tmp_path: Path) -> None:
    with loaded(tmp_path, _module(ACCEPTED[what])) as module:
        run = World(others=real).run_json(module.flow, {"n": 1})
    assert run.status == "SUCCEEDED"


def _states(workflow: Any) -> int:
    return len(compile_workflow(workflow).asl["States"])


def test_only_a_workflow_that_another_one_calls_has_tests_of_its_own(tmp_path: Path) -> None:
    with loaded(tmp_path, _module(CALLERS["names"])) as module:
        assert _states(module.at) > _states(module.alone) + 1
        # A comprehension stays one expression.
        assert _states(module.several) <= 2


OTHER = """
from holdfast import workflow
import children

@workflow
def reads() -> str:
    try:
        return str(children.alone([], 0))
    except Exception as err:
        return f"{err}"

@workflow
def catches() -> str:
    try:
        return str(children.alone([], 0))
    except Exception:
        return "failed"
"""


def test_a_caller_in_another_module_reads_no_error_of_an_expression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "children.py").write_text(CHILDREN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with loaded(tmp_path, OTHER) as module:
        with pytest.raises(CompileErrors, match="HF034"):
            compile_workflow(module.reads)
        assert World(others=real).run_json(module.catches, {}).end.output == "failed"
