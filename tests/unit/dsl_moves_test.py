"""Changes of values that no other name leads to: results of helpers, received data, values whose
first name is not read again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import copy
from pydantic import BaseModel
from holdfast import receive, task, wait_for_event, workflow

class Job(BaseModel):
    name: str
    tags: list[str] = []

class State(BaseModel):
    nodes: dict[str, str | None] = {}
    jobs: list[Job] = []
    def free(self) -> list[str]:
        return [name for name, job in self.nodes.items() if job is None]
    def names(self) -> list[str]:
        found: list[str] = []
        for job in self.jobs:
            found.append(job.name)
        return found
    def named(self) -> list[str]:
        found = [job.name for job in self.jobs]
        return found
    def tags(self) -> list[str]:
        return self.jobs[0].tags
    def items(self) -> list[str]:
        return self.jobs[0].tags
    def copy(self) -> list[str]:
        return self.tags()
    def some(self) -> list[str]:
        return self.jobs[0].tags if self.jobs else []
    def all(self) -> list[Job]:
        return [job for job in self.jobs]

def free_of(nodes: dict[str, str | None]) -> list[str]:
    return sorted(name for name, job in nodes.items() if job is None)

def twice(nodes: dict[str, str | None]) -> list[str]:
    return free_of(nodes) + free_of(nodes)

def tags_of(jobs: list[Job]) -> list[str]:
    tags = jobs[0].tags
    return tags

def through(jobs: list[Job]) -> list[str]:
    return tags_of(jobs)

def group(groups: dict[str, list[str]], name: str) -> None:
    groups.setdefault(name, []).append(name)

def group_all(groups: dict[str, list[str]], names: list[str]) -> None:
    for name in names:
        if name not in groups:
            groups[name] = []
        groups[name].append(name)

@task
def made(name: str) -> Job:
    return Job(name=name)
"""
STATE = {
    "nodes": {"a": None, "b": "busy", "c": None},
    "jobs": [{"name": "x", "tags": ["t"]}, {"name": "y"}],
}
#: Lines of a workflow that has `state`, and what it returns.
SAME = {
    "a method": "free = state.free(); state.nodes['a'] = free[0]; free.append('q')",
    "a method in a loop": "free = 0\n    for name in state.free():\n"
    "        state.nodes[name] = str(len(state.free())); free += 1",
    "a list of a method": "free = list(state.free()); state.nodes['a'] = free[0]",
    "a method with a loop": "free = state.names(); state.jobs.append(Job(name=free[0]))",
    "a method with a name": "free = state.named(); state.jobs.append(Job(name=free[0]))",
    "a function": "free = free_of(state.nodes); state.nodes['a'] = free[0]; free.append('q')",
    "a function of a function": "free = twice(state.nodes); state.nodes['a'] = free[-1]",
    "another name": "free = state.free(); other = state; other.jobs[0].tags.append('q')\n"
    "    return [other, free]",
    "a part": "free = state.jobs; free[0].tags.append('q'); return [free]",
    "an item": "free = state.jobs[0]; free.tags.append('q'); return [free]",
    "a shallow copy": "free = state.model_copy(); free.jobs[0].tags.append('q'); return [free]",
    "a copied list": "free = list(state.jobs); free[0].tags.append('q'); return [free]",
    "a choice": "free = [] if len(state.jobs) > 9 else state.jobs\n"
    "    free.append(Job(name='z')); return [free]",
    "an or": "free = state.jobs or []; free.append(Job(name='z')); return [free]",
    "a name of each round": "free = 0\n    for name in ['p', 'q']:\n"
    "        job = made(name); kept = job; kept.tags.append(name); free += len(kept.tags)",
    "groups that functions change": "free: dict[str, list[str]] = {}\n"
    "    group(free, 'p'); group(free, 'p'); group_all(free, ['p', 'q'])",
    "a case": "free = 0; job: Job | None = made('m')\n    match job:\n"
    "        case Job() as found:\n            found.tags.append('q'); free = len(found.tags)\n"
    "        case None:\n            pass",
}
#: The last line changes a value that another name shows, too.
SHARED = {
    "a part of a method": "free = state.tags(); state.jobs[0].tags.append('q')",
    "a result of a method": "free = state.tags(); free.append('q')",
    "a method named items": "free = state.items(); free.append('q')",
    "a method named copy": "free = state.copy(); free.append('q')",
    "one of two results": "free = state.some(); state.jobs[0].tags.append('q')",
    "items of a method": "free = state.all(); state.jobs[0].tags.append('q')",
    "a name in a function": "free = tags_of(state.jobs); state.jobs[0].tags.append('q')",
    "a function in a function": "free = through(state.jobs); state.jobs[0].tags.append('q')",
    "a name that is read later": "free = state.jobs; free.append(Job(name='z'))",
    "a name of an earlier round": "free: list[list[Job]] = []; jobs = [made('m')]\n"
    "    for _ in range(2):\n        kept = jobs; kept.append(made('n')); free.append(kept)",
    "a name that only one way assigns": "free: list[Job] = []; jobs = [made('m')]\n"
    "    for place in range(2):\n        if place == 0:\n            jobs = [made('n')]\n"
    "        kept = jobs; kept.append(made('o')); free.extend(kept)",
    "a name that the next round reads first": "free = 0; jobs = [made('m')]\n"
    "    for place in range(3):\n        free += len(jobs); jobs = [made('n')]\n"
    "        kept = jobs; kept.append(made('o'))",
    "a name that the test of a loop reads": "free = 0; jobs = [made('m')]\n"
    "    while free < 9 and len(jobs) < 2:\n        free += 1; jobs = [made('n')]\n"
    "        kept = jobs; kept.append(made('o'))",
    "a name that an outer loop reads": "free = 0; jobs = [made('m')]\n"
    "    for _ in range(2):\n        free += len(jobs)\n        for _ in range(2):\n"
    "            jobs = [made('n')]; kept = jobs; kept.append(made('o'))",
    "a group between two calls of a local function": "groups: dict[str, list[str]] = {}\n"
    "    def put(name: str) -> None:\n        groups.setdefault(name, []).append(name)\n"
    "    put('p'); free = groups['p']; put('p')",
    "a group before a function changes it": "groups: dict[str, list[str]] = {'p': []}\n"
    "    groups['p'].append('a'); free = groups['p']; group(groups, 'p')",
    "a name in an expression": "job = made('m'); free = [job, (kept := job)]\n"
    "    kept.tags.append('q')",
    "a name of a function inside": "job = made('m')\n    def shown() -> Job:\n"
    "        return job\n    kept = job; kept.tags.append('q'); free = shown()",
    "two names of a case": "free = ['']; job: Job | None = made('m')\n    match job:\n"
    "        case Job(tags=tags) as found:\n            found.tags.append('q'); free = tags\n"
    "        case None:\n            pass",
    "a copy of a name that is read later": "free = state.model_copy(); free.jobs.clear()",
}
#: `{data}` is received data of the type `Job`.
RECEIVED = {
    "an event": "    job = wait_for_event('come', Job, key='k')\n{}    return job\n",
    "a request": "    kept = Job(name='z')\n    with receive('come', Job, key='k') as request:\n"
    "        job = request.data\n    {}        kept = job\n        request.reply(1)\n"
    "    return kept\n",
    "a case of an event": "    match wait_for_event('come', Job, key='k'):\n"
    "        case Job() as job:\n        {}            return job\n",
}


def _flow(lines: str) -> str:
    body = lines if "return" in lines else f"{lines}\n    return [state, free]"
    return f"{HEADER}\n@workflow\ndef flow(state: State) -> object:\n    {body}\n"


@pytest.mark.parametrize("what", SAME)
def test_a_value_without_another_name_changes_as_in_python(what: str, tmp_path: Path) -> None:
    with loaded(tmp_path, _flow(SAME[what])) as module:
        assert_same(module.flow, {"state": STATE})


@pytest.mark.parametrize("what", SHARED)
def test_a_value_with_another_name_is_not_changed(what: str, tmp_path: Path) -> None:
    with loaded(tmp_path, _flow(SHARED[what])) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "HF023" in str(refused.value)


@pytest.mark.parametrize("what", RECEIVED)
def test_received_data_is_changed_by_the_workflow(what: str, tmp_path: Path) -> None:
    source = RECEIVED[what].format("    job.tags.append('q')\n")
    source = f"{HEADER}\n@workflow\ndef flow() -> object:\n{source}"
    come: dict[str, Any] = {"come": {"name": "x", "tags": ["t"]}}
    if what == "a request":
        with loaded(tmp_path, source) as module:
            assert compile_workflow(module.flow)
        return
    with loaded(tmp_path, source) as module:
        assert assert_same(module.flow, {}, come).output["tags"] == ["t", "q"]


def test_data_that_was_kept_before_is_not_changed(tmp_path: Path) -> None:
    source = """
@workflow
def flow() -> list[Job]:
    kept: list[Job] = []
    with receive("come", Job, key="k") as request:
        kept.append(request.data)
        job = request.data
        job.tags.append("q")
        request.reply(1)
    return kept
"""
    with loaded(tmp_path, HEADER + source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "`request.data` (line" in str(refused.value)


def test_the_refusal_names_the_other_holder_and_the_copy_that_works(tmp_path: Path) -> None:
    flow = _flow("free = state.tags(); state.jobs[0].tags.append('q')")
    with loaded(tmp_path, flow) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "`state.tags()` (line" in str(refused.value)
    assert "state = copy.deepcopy(state)" in str(refused.value)
    mended = _flow(
        "free = state.tags(); state = copy.deepcopy(state); state.jobs[0].tags.append('q')"
    )
    with loaded(tmp_path, mended) as module:
        assert_same(module.flow, {"state": STATE})


PARTS = {
    "state.jobs[0].add('q')": "own = copy.deepcopy(state.jobs[0])\nown.add(…)\nstate.jobs[0] = own",
    "group(state.groups.get('p', {}), 'p')": "own = copy.deepcopy(state.groups.get('p', {}))\n"
    "group(own)",
}


@pytest.mark.parametrize("line", PARTS)
def test_the_refusal_of_a_part_as_an_argument_is_code_that_python_can_run(
    line: str, tmp_path: Path
) -> None:
    source = HEADER.replace(
        "    tags: list[str] = []\n",
        "    tags: list[str] = []\n    def add(self, one: str) -> None:\n"
        "        self.tags.append(one)\n",
    ).replace(
        "    jobs: list[Job] = []\n",
        "    jobs: list[Job] = []\n    groups: dict[str, dict[str, list[str]]] = {}\n",
    )
    flow = f"{source}\n@workflow\ndef flow(state: State) -> State:\n    {line}\n    return state\n"
    with loaded(tmp_path, flow) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert [one.help for one in refused.value.diagnostics][:1] == [PARTS[line]]


def test_the_refusal_of_a_shadowed_name_of_a_helper_names_it(tmp_path: Path) -> None:
    source = """
def put(found: list[int], one: int) -> None:
    found.append(max(one, 2))

@workflow
def flow() -> list[int]:
    max = 7
    found: list[int] = []
    put(found, 1)
    return [*found, max]
"""
    with loaded(tmp_path, HEADER + source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "own_max = …" in str(refused.value)
    mended = source.replace("max = 7", "own_max = 7").replace(", max]", ", own_max]")
    with loaded(tmp_path, HEADER + mended) as module:
        assert assert_same(module.flow, {}).output == [2, 7]


def test_an_optional_list_is_taken_from_in_a_loop_inside_a_loop(tmp_path: Path) -> None:
    source = """
@workflow
def flow(waiters: list[str] | None = None) -> list[str]:
    if waiters is None:
        waiters = []
    seen: list[str] = []
    for place in range(3):
        if place == 1:
            waiters.append("x")
        while waiters:
            seen.append(made(waiters.pop(0)).name)
    return seen
"""
    with loaded(tmp_path, HEADER + source) as module:
        assert assert_same(module.flow, {"waiters": ["a", "b"]}).output == ["a", "b", "x"]
        assert assert_same(module.flow, {}).output == ["x"]
