"""A workflow that calls another, on a laptop: `serve`, and the output of the command line
for both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.moto.conftest import Shell

pytestmark = pytest.mark.xdist_group("serve")

SOURCE = """
from __future__ import annotations

from pydantic import BaseModel

from holdfast import TaskError, ask, task, workflow


class Decision(BaseModel):
    approved: bool


class Refused(TaskError): ...


@task
def note(order: str, box: str) -> str:
    return f"{order} in {box}"


@workflow
def ship(order: str, box: str = "a box") -> str:
    decision = ask(f"ship {order}?", Decision, assignee="clerk")
    if not decision.approved:
        raise Refused("not today")
    return note(order, box)


@workflow
def sell(order: str) -> str:
    try:
        shipped = ship(order)
    except Refused as err:
        return f"refused: {err}"
    return shipped
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("flows")
    (folder / "selling_flows.py").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        with serving(deployment_of(["selling_flows"]), port=0) as served:
            yield served.url
    sys.modules.pop("selling_flows", None)


def begun(shell: Shell, name: str) -> tuple[str, str]:
    """Return the ids of the parent and of the child, which waits for a clerk."""
    start = ("start", "sell", "--name", name, "--input", json.dumps({"order": name}))
    parent = shell.json(*start)["execution"]
    is_called = lambda shown: shown["waits"] and shown["waits"][0]["kind"] == "workflow"  # noqa: E731
    child = shell.until(is_called, "show", name)["waits"][0]["execution"]
    is_asked = lambda shown: shown["waits"] and shown["waits"][0]["kind"] == "ask"  # noqa: E731
    shell.until(is_asked, "show", child)
    return parent, child


def answered(shell: Shell, child: str, approved: bool) -> None:
    token = shell.json("show", child)["waits"][0]["token"]
    assert shell("answer", token, "--output", json.dumps({"approved": approved})) == 0


@pytest.mark.parametrize(
    ("approved", "output"), [(True, "o1 in a box"), (False, "refused: not today")]
)
def test_the_childs_result_or_error_arrives_in_the_parent(
    shell: Shell, approved: bool, output: str
) -> None:
    name = "o1" if approved else "o2"
    _, child = begun(shell, name)
    answered(shell, child, approved)
    shown = shell.until(lambda shown: shown["status"] != "RUNNING", "show", name)
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", output)


def test_each_of_the_two_names_the_other(shell: Shell) -> None:
    parent, child = begun(shell, "o3")
    assert shell("show", "o3") == 0
    assert f"workflow ship, execution {child}" in shell.printed
    assert shell("show", child) == 0
    assert parent in shell.printed
    assert "called by" in shell.printed
    listed = shell.json("list", "--workflow", "ship")
    assert child in [row["execution"] for row in listed]


def test_a_stop_of_the_parent_stops_the_child(shell: Shell) -> None:
    _, child = begun(shell, "o4")
    assert shell("stop", "o4") == 0
    shell.until(lambda shown: shown["status"] == "ABORTED", "show", child)
    shell.until(lambda shown: shown["status"] == "ABORTED", "show", "o4")
