"""Graphs that are registered by HTTP at run time: validated, versioned, started, drawn."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Dag
from holdfast.cli import main
from holdfast.errors import RequestError
from holdfast.runtime.commands import graphs as commands
from holdfast.runtime.commands.lookup import NAMED_OWNERS_MAX
from holdfast.runtime.storage import graphs
from holdfast.runtime.storage.definitions import read_item
from holdfast.runtime.storage.graphs import StoredGraph
from tests.unit import registered_flows
from tests.unit.client_kit import MemoryStack, served

MODULE = registered_flows.__name__
#: The document of the project's mission, as it stands.
ORDER_FULFILLMENT = json.loads(
    """{"workflow_id": "order_fulfillment", "steps": [
    {"id": "validate", "type": "service_call", "depends_on": []},
    {"id": "reserve", "type": "service_call", "depends_on": ["validate"]},
    {"id": "charge", "type": "service_call", "depends_on": ["reserve"]},
    {"id": "ship", "type": "service_call", "depends_on": ["charge"]},
    {"id": "notify", "type": "notification", "depends_on": ["ship"]}]}"""
)
SHORTER = {**ORDER_FULFILLMENT, "steps": ORDER_FULFILLMENT["steps"][:2]}


@pytest.fixture
def stack() -> MemoryStack:
    return MemoryStack(MODULE)


def request(stack: MemoryStack, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    status, answer = stack.carry(method, target, json.dumps(body or {}).encode())
    return status, json.loads(answer)


def test_the_document_runs_as_it_stands(stack: MemoryStack) -> None:
    status, told = request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    start = {"workflow": "order_fulfillment", "input": {"order": "o1"}, "name": "order-1"}
    began, _ = request(stack, "POST", "/executions", start)
    shown = request(stack, "GET", "/executions/order-1")[1]

    assert (status, told["workflow"], told["version"]) == (201, "order_fulfillment", 1)
    assert (began, shown["status"]) == (201, "SUCCEEDED")
    assert shown["output"] == "told: shipped charged reserved valid o1"


def test_an_equal_document_is_the_same_version(stack: MemoryStack) -> None:
    first = request(stack, "POST", "/workflows", ORDER_FULFILLMENT)[1]
    status, again = request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    later = request(stack, "POST", "/workflows", SHORTER)[1]

    assert (status, again) == (200, {**first, "registered": False})
    assert (later["version"], later["registered"]) == (2, True)
    assert later["definition"] != first["definition"]


def test_a_running_execution_keeps_its_version() -> None:
    stack = MemoryStack(MODULE, works=False)
    request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    for number, document in enumerate((SHORTER, SHORTER)):
        start = {"workflow": "order_fulfillment", "input": {"order": "o"}, "name": f"n{number}"}
        request(stack, "POST", "/executions", start)
        request(stack, "POST", "/workflows", document)
    stack.world.run()

    outputs = [request(stack, "GET", f"/executions/n{n}")[1]["output"] for n in range(2)]
    assert outputs == ["told: shipped charged reserved valid o", "reserved valid o"]


def test_executions_of_a_removed_graph_go_on_and_no_further_one_starts() -> None:
    stack = MemoryStack(MODULE, works=False)
    request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    start = {"workflow": "order_fulfillment", "input": {"order": "o1"}, "name": "n1"}
    request(stack, "POST", "/executions", start)
    removed = request(stack, "DELETE", "/workflows/order_fulfillment")
    refused = request(stack, "POST", "/executions", {**start, "name": "n2"})
    stack.world.run()

    assert removed == (200, {"workflow": "order_fulfillment", "removed": True})
    assert (refused[0], refused[1]["error"]["code"]) == (404, "HF205")
    shown = request(stack, "GET", "/executions/order_fulfillment:n1")[1]
    assert shown["output"] == "told: shipped charged reserved valid o1"
    (row,) = request(stack, "GET", "/executions?workflow=order_fulfillment")[1]["executions"]
    assert row["name"] == "n1"
    assert [one["workflow"] for one in request(stack, "GET", "/workflows")[1]["workflows"]] == [
        "of_the_code"
    ]
    again = request(stack, "POST", "/workflows", SHORTER)
    assert (again[0], again[1]["version"]) == (201, 1)


@pytest.mark.parametrize(
    ("name", "status", "code"), [("of_the_code", 409, "HF446"), ("order_fulfilment", 404, "HF205")]
)
def test_only_a_registered_graph_is_removed(
    stack: MemoryStack, name: str, status: int, code: str
) -> None:
    found, answer = request(stack, "DELETE", f"/workflows/{name}")
    assert (found, answer["error"]["code"]) == (status, code)


def test_a_failed_execution_of_a_removed_graph_is_retried(stack: MemoryStack) -> None:
    document = {"workflow_id": "failing", "steps": [{"id": "bill", "type": "service_call"}]}
    registered_flows.DOWN.append("until noon")
    request(stack, "POST", "/workflows", document)
    request(stack, "POST", "/executions", {"workflow": "failing", "input": {}, "name": "f1"})
    assert request(stack, "GET", "/executions/f1")[1]["status"] == "FAILED"
    request(stack, "DELETE", "/workflows/failing")
    status, _ = request(stack, "POST", "/executions/failing:f1/retry", {"reason": "mended"})
    assert status == 200
    assert request(stack, "GET", "/executions/failing:f1")[1]["status"] == "SUCCEEDED"


def test_a_refused_document_answers_with_each_refusal_and_its_place(stack: MemoryStack) -> None:
    document = {
        "workflow_id": "bad",
        "steps": [
            {"id": "validate", "type": "service_call", "depends_on": ["ship"]},
            {"id": "unknown", "type": "service_call"},
        ],
    }
    status, answer = request(stack, "POST", "/workflows", document)
    error = answer["error"]

    assert (status, error["code"]) == (400, "HF440")
    assert [one["code"] for one in error["diagnostics"]] == ["HF056"]
    assert error["diagnostics"][0]["line"] == 1
    assert '"unknown" is none of the tasks' in error["message"]
    assert request(stack, "GET", "/workflows/bad")[0] == 404


def test_a_document_of_400_steps_in_one_line_is_registered(stack: MemoryStack) -> None:
    steps = [
        {"id": f"s{n}", "type": "validate", "depends_on": [f"s{n - 1}"][:n]} for n in range(400)
    ]
    status, _ = request(stack, "POST", "/workflows", {"workflow_id": "long", "steps": steps})
    (stored,) = [item for item in stack.world.services.items("mail") if "#def#" in str(item["pk"])]

    assert status == 201
    assert len(str(read_item(stored).source_map)) < 400 * 300


def test_of_many_refusals_of_one_line_the_first_are_answered(stack: MemoryStack) -> None:
    steps = [{"id": f"s{n}", "type": "nope"} for n in range(400)]
    status, answer = request(stack, "POST", "/workflows", {"workflow_id": "bad", "steps": steps})
    message = answer["error"]["message"]
    _, _, line, caret, *_ = message.splitlines()

    assert status == 400
    assert len(answer["error"]["diagnostics"]) == 50
    assert message.endswith("These are the first 50 of 400 refusals.")
    assert len(json.dumps(answer)) < 60_000
    assert line[caret.index("^") :].startswith('"nope"')


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({**ORDER_FULFILLMENT, "workflow_id": "of_the_code"}, 409, "HF441"),
        ({**ORDER_FULFILLMENT, "stepz": []}, 400, "HF219"),
        ({"workflow_id": "empty", "steps": []}, 400, "HF440"),
        ({"workflow_id": "no steps"}, 400, "HF440"),
        ({**ORDER_FULFILLMENT, "workflow_id": "."}, 400, "HF440"),
        ({**ORDER_FULFILLMENT, "workflow_id": "holdfast.bulk"}, 400, "HF440"),
    ],
)
def test_a_document_that_is_no_new_graph_is_refused(
    stack: MemoryStack, body: Any, status: int, code: str
) -> None:
    found, answer = request(stack, "POST", "/workflows", body)

    assert (found, answer["error"]["code"]) == (status, code)


def test_an_input_that_does_not_fit_the_tasks_is_refused(stack: MemoryStack) -> None:
    request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    start = {"workflow": "order_fulfillment", "input": {"order": 7}}

    status, answer = request(stack, "POST", "/executions", start)

    assert (status, answer["error"]["code"]) == (400, "HF210")


def test_a_graph_is_listed_and_drawn_like_a_workflow_of_the_code(stack: MemoryStack) -> None:
    request(stack, "POST", "/workflows", ORDER_FULFILLMENT)

    rows = request(stack, "GET", "/workflows")[1]["workflows"]
    shown = request(stack, "GET", "/workflows/order_fulfillment")[1]
    drawn = request(stack, "GET", "/workflows/of_the_code")[1]

    assert [(row["workflow"], row.get("version")) for row in rows] == [
        ("of_the_code", None),
        ("order_fulfillment", 1),
    ]
    assert shown["document"] == ORDER_FULFILLMENT
    assert "notify" in shown["picture"]
    assert drawn["picture"].startswith("<svg")
    empty = request(stack, "GET", "/executions?workflow=order_fulfillment")
    assert empty == (200, {"executions": []})


def test_a_picture_that_is_too_large_for_an_answer_is_omitted(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(commands, "_PART_BYTES_MAX", 1_000)
    request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    status, shown = request(stack, "GET", "/workflows/order_fulfillment")

    assert (status, shown["omitted"], "picture" in shown) == (200, ["picture"], False)
    assert shown["document"] == ORDER_FULFILLMENT
    with served(stack) as found:
        asked = ["workflows", "order_fulfillment", "--picture", str(tmp_path / "a.svg")]
        assert main([*asked, "--endpoint", found.url]) == 2


def test_a_graph_belongs_to_the_tenant_that_registered_it(stack: MemoryStack) -> None:
    body = json.dumps(ORDER_FULFILLMENT).encode()
    status, _ = stack.answer("POST", "/workflows", body, "Bearer acme")
    start = json.dumps({"workflow": "order_fulfillment", "input": {"order": "o1"}}).encode()

    assert status == 201
    assert stack.answer("POST", "/executions", start, None)[0] == 404
    assert stack.answer("POST", "/executions", start, "Bearer acme")[0] == 201


def test_a_bare_name_costs_no_read_for_each_of_very_many_graphs(stack: MemoryStack) -> None:
    for number in range(NAMED_OWNERS_MAX + 1):
        graph = StoredGraph(f"g{number}", 1, "0" * 64, json.dumps(SHORTER), 0)
        stack.world.call(graphs.store("default", graph))
    request(stack, "GET", "/executions/order-1")  # the first one reads the stack's settings
    before = stack.world.services.effects.copy()
    status, answer = request(stack, "GET", "/executions/order-1")

    assert (status, answer["error"]["code"]) == (404, "HF207")
    assert stack.world.services.effects - before == {"Clock": 1, "Get": 1, "Query": 2}


def test_a_fork_of_a_graph_takes_another_input(stack: MemoryStack) -> None:
    request(stack, "POST", "/workflows", ORDER_FULFILLMENT)
    start = {"workflow": "order_fulfillment", "input": {"order": "o1"}, "name": "order-1"}
    request(stack, "POST", "/executions", start)
    asked = {"step": "validate", "input": {"order": "o2"}, "reason": "wrong order"}
    status, told = request(stack, "POST", "/executions/order-1/fork", asked)
    wrong = {**asked, "input": {"order": 7}}

    assert status == 200
    shown = request(stack, "GET", f"/executions/{told['execution']}")[1]
    assert shown["output"] == "told: shipped charged reserved valid o2"
    refused = request(stack, "POST", "/executions/order-1/fork", wrong)[1]["error"]
    assert "order" in refused["message"]


def test_kinds_of_steps_of_the_project_are_known(stack: MemoryStack) -> None:
    document = {"workflow_id": "scored", "steps": [{"id": "score", "type": "rated", "scale": 10}]}
    request(stack, "POST", "/workflows", document)
    start = {"workflow": "scored", "input": {"amount": 4}, "name": "s"}
    request(stack, "POST", "/executions", start)

    assert request(stack, "GET", "/executions/s")[1]["output"] == 40


def test_a_graph_whose_task_is_gone_from_the_code_is_not_started() -> None:
    later = MemoryStack("tests.unit.registered_rest").front.graphs

    with pytest.raises(RequestError, match="no longer fits the graph") as refused:
        later.normalise_input("default", json.dumps(ORDER_FULFILLMENT), {"order": "o1"})
    assert (refused.value.code, refused.value.status) == ("HF444", 409)


@pytest.mark.slow
def test_a_process_keeps_few_large_graphs_in_memory(stack: MemoryStack) -> None:
    def graphs_in_memory() -> int:
        gc.collect()
        return sum(isinstance(one, Dag) for one in gc.get_objects())

    before = graphs_in_memory()
    for number in range(4):
        document = {**ORDER_FULFILLMENT, "workflow_id": f"g{number}"}
        text = json.dumps(document) + " " * 20_000
        stack.site.request("POST", "/workflows", text)
        start = {"workflow": f"g{number}", "input": {"order": "o1"}}
        assert request(stack, "POST", "/executions", start)[0] == 201

    assert graphs_in_memory() - before == 2


def test_the_client_and_the_command_line_register_and_draw(
    stack: MemoryStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document, picture = tmp_path / "orders.json", tmp_path / "orders.svg"
    document.write_text(json.dumps(ORDER_FULFILLMENT))
    told = Client.of(stack.api).register(SHORTER)
    with served(stack) as found:
        url = found.url
        codes = [
            main(["register", str(document), "--endpoint", url]),
            main(["workflows", "--endpoint", url]),
            main(["workflows", "order_fulfillment", "--picture", str(picture), "--endpoint", url]),
            main(["workflows", "--remove", "order_fulfillment", "--endpoint", url]),
            main(["workflows", "--remove", "--endpoint", url]),
        ]
    printed = capsys.readouterr().out

    assert told["version"] == 1
    assert codes == [0, 0, 0, 0, 2]
    assert "removed order_fulfillment; its executions go on" in printed
    assert "registered order_fulfillment version 2" in printed
    assert "of_the_code  of the code" in printed
    assert picture.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"workflow_id": "x", "steps": [{"id": "ship", "type": "service_cal"}]}',
            ("graph.json:1:55: error[HF056]", '"type": "service_call"'),
        ),
        ('{"workflow_id": "x",\n', ("graph.json is not JSON", "line 2 column 1")),
    ],
)
def test_the_command_names_the_file_and_the_place_of_a_fault(
    stack: MemoryStack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    said: tuple[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("graph.json").write_text(text)
    with served(stack) as found:
        assert main(["register", "graph.json", "--endpoint", found.url]) == 2
    printed = capsys.readouterr().err
    for words in said:
        assert words in printed


def test_the_page_shows_what_the_command_prints(
    stack: MemoryStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "order_fulfillment.json"
    document.write_text(json.dumps(ORDER_FULFILLMENT))
    with served(stack) as found:
        assert main(["register", str(document), "--endpoint", found.url]) == 0

    page = (Path(__file__).parents[2] / "docs" / "reference" / "dag.md").read_text()
    assert capsys.readouterr().out in page


def test_the_client_raises_the_refusals(stack: MemoryStack) -> None:
    with pytest.raises(RequestError, match="HF056"):
        Client.of(stack.api).register({"workflow_id": "x", "steps": [{"id": "a", "type": "b"}]})
