"""`execution_id()`: a workflow reads the id by which others find its execution."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from holdfast import Client
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, real
from tests.unit import own_id_flows
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded


@pytest.fixture
def client() -> Client:
    return Client.of(MemoryStack(own_id_flows.__name__).api)


def test_a_workflow_its_branches_and_its_tasks_read_the_id_of_the_list(client: Client) -> None:
    started = client.start("parent", {"numbers": [3, 4]}, name="mine")
    read = started.result(timeout=5)
    [listed] = client.list(workflow="parent")
    assert {*read["own"], *read["branches"]} == {listed["execution"]} == {started.execution}
    assert client.describe(started.execution)["published"] == {"id": started.execution}


def test_a_child_workflow_reads_its_own_id(client: Client) -> None:
    read = client.start("parent", {"numbers": [3, 4]}).result(timeout=5)
    children = read["children"]
    assert sorted(children) == sorted(one["execution"] for one in client.list(workflow="child"))
    assert len({*children}) == 4
    assert read["in children"] == children[:2]
    assert [client.describe(one)["input"]["number"] for one in children] == [1, 2, 3, 4]


def test_the_id_is_the_same_after_again(client: Client) -> None:
    started = client.start("renewed", {})
    assert started.result(timeout=5) == [started.execution, started.execution]


def test_a_workflow_stops_itself_by_its_id(client: Client) -> None:
    execution = client.start("stops_itself", {}).execution
    assert client.describe(execution)["status"] == "ABORTED"


def test_a_world_gives_each_execution_a_stable_id() -> None:
    read = World(others=real).run(own_id_flows.parent, [3, 4]).output
    assert {*read["own"], *read["branches"]} == {"run"}
    assert read["children"] == ["run.child.1", "run.child.2", "run.0.child.1", "run.1.child.1"]
    assert read["in children"] == read["children"][:2]
    assert World().run(own_id_flows.renewed).output == ["run", "run"]


def test_a_workflow_reads_its_name_and_its_start(client: Client) -> None:
    started = client.start("named", {"pause": 0}, name="order-17")
    names, is_same, text, begun = started.result(timeout=5)
    child_name, _, child_begun = names.pop().partition(" ")
    assert names == ["order-17"] * 3
    assert is_same
    described = started.describe()
    assert begun == text.replace(" ", "T").replace("+00:00", "Z")
    assert datetime.fromisoformat(begun) == datetime.fromisoformat(described["started"])
    [child] = client.list(workflow="named_child")
    assert child_name == child["execution"]
    assert datetime.fromisoformat(child_begun) >= datetime.fromisoformat(begun)


def test_without_a_name_the_name_is_the_id(client: Client) -> None:
    started = client.start("named", {"pause": 0})
    assert started.result(timeout=5)[0][0] == started.execution


@pytest.mark.parametrize("fraction", ["", ".005", ".120"])
def test_a_world_gives_an_execution_a_name_and_a_start(fraction: str) -> None:
    starts = datetime.fromisoformat(f"2026-03-01T09:00:00{fraction}+00:00")
    run = World(name="order-17", starts=starts).run(own_id_flows.named, 1)
    assert run.result[0][:3] == ["order-17"] * 3
    assert run.result[0][3] == f"run.named_child.1 {starts + timedelta(seconds=1)}"
    assert run.result[1:] == (True, f"{starts}", starts)


@pytest.mark.parametrize("function", ["execution_id", "execution_name", "execution_started"])
def test_arguments_are_refused(tmp_path: Path, function: str) -> None:
    source = f"""
from holdfast import {function}, workflow

@workflow
def flow(name: str) -> str:
    return f"{{{function}(name)}}"
"""
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors, match="HF008"):
        compile_workflow(module.flow)
