"""The cost of compiling: how often the compiler visits a step, at any nesting."""

from __future__ import annotations

import ast
from pathlib import Path
from unittest import mock

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.steps.steps import Steps
from tests.unit.dsl_kit import loaded

DEPTH = 6
HEADER = """
from __future__ import annotations
from holdfast import task, workflow

@task
def count(n: int) -> int:
    return n

@workflow
def flow(xs: list[int]) -> str:
"""


def _nested(loop: str, before: str, innermost: str) -> str:
    """Return a workflow of six loops, each in the one before it."""
    lines = [f"    {before}"]
    lines += [f"{'    ' * (level + 1)}{loop.format(level)}" for level in range(DEPTH)]
    return "\n".join([HEADER, *lines, f"{'    ' * (DEPTH + 1)}{innermost}", "    return text"])


@pytest.mark.parametrize(
    ("source", "rounds"),
    [
        (_nested("for v{} in xs:", "text = 'a'", "last = count(7)"), 1),
        (_nested("while count({}) > 0:", "text = 'a'", "last = count(7)"), 1),
        # A literal before each loop, any text after its first round.
        (_nested("for v{} in xs:", "text = 'a'", "text = str(count(7))"), 1 + DEPTH),
    ],
    ids=["for", "while", "a type that grows"],
)
def test_a_step_is_lowered_once_and_once_more_for_each_loop_that_it_changes(
    source: str, rounds: int, tmp_path: Path
) -> None:
    lower = Steps.lower
    texts: list[str] = []

    def noting(steps: Steps, node: ast.Call, function: object) -> object:
        texts.append(steps.expressions.unit.text(node))
        return lower(steps, node, function)

    with loaded(tmp_path, source) as module, mock.patch.object(Steps, "lower", noting):
        compile_workflow(module.flow)
    assert texts.count("count(7)") == rounds
