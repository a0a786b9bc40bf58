"""`groups[key].append(v)`: accepted where the dict owns its lists, refused where Python differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, real
from tests.unit.dsl_kit import loaded

HEADER = """
from holdfast import parallel, task, workflow

@task
def count(values: list[str]) -> int:
    return len(values)

@workflow
def flow(xs: list[str]) -> object:
    groups: dict[str, list[str]] = {}
"""
FILL = """
    for x in xs:
        if x not in groups:
            groups[x] = []
        groups[x].append(x)
"""
EXTENDED = """
    for x in xs:
        groups.setdefault('all', []).extend([x, str(count(xs))])
    return groups['all'][1:3]
"""
READ = """
    groups = {x: [] for x in xs}
    n = 0
    for x in xs:
        if 'a' in groups[x]:
            n += len(groups[x])
        groups[x].append(x)
    return n
"""
GIVEN = """
    mine: list[str] = []
    groups['a'] = mine
    groups['a'].append('z')
    return mine
"""
HELD = """
    for x in xs:
        groups[x] = []
        held = groups[x]
        groups[x].append(x)
    return held
"""


def result(folder: Path, body: str) -> Any:
    with loaded(folder, HEADER + body) as module:
        return World(others=real).run(module.flow, ["a", "b", "a"]).output


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (FILL + "    return groups", {"a": ["a", "a"], "b": ["b"]}),
        (FILL + "    return {k: len(v) for k, v in groups.items()}", {"a": 2, "b": 1}),
        (FILL + "    return [count(groups['a']), count(values=groups['b'])]", [2, 1]),
        (
            "    for x in xs:\n        groups.setdefault(x, []).append(x)\n    return groups",
            {"a": ["a", "a"], "b": ["b"]},
        ),
        (
            EXTENDED,
            ["3", "b"],
        ),
        (
            READ,
            1,
        ),
        (FILL + "    last = groups['a']\n    return [last, last]", [["a", "a"], ["a", "a"]]),
    ],
)
def test_an_owned_inner_list_grows(tmp_path: Path, body: str, wanted: Any) -> None:
    assert result(tmp_path, body) == wanted


def test_a_missing_key_is_an_error_as_in_python(tmp_path: Path) -> None:
    body = "    try:\n        groups['z'].append(xs[0])\n    except Exception:\n"
    assert result(tmp_path, body + "        return 'none'\n    return 'one'") == "none"


@pytest.mark.parametrize(
    "body",
    [
        "    groups['a'] = xs\n    groups['a'].append('z')\n    return xs",
        GIVEN,
        FILL + "    held = groups['a']\n    groups['a'].append('z')\n    return held",
        HELD,
        FILL + "    for held in groups.values():\n        groups['a'].append('z')\n    return held",
        "    other = groups\n    groups['a'] = []\n    groups['a'].append('z')\n    return other",
        "    groups['a'] = []\n    groups[str(count(xs))].append('z')\n    return groups",
    ],
)
def test_an_inner_list_with_another_name_is_not_changed(tmp_path: Path, body: str) -> None:
    with loaded(tmp_path, HEADER + body) as module, pytest.raises(CompileErrors):
        compile_workflow(module.flow)
