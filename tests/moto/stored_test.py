"""`serve` on a file, in this process: health, drain, the clock, events of the bus, a restart."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from botocore.session import Session

from holdfast.local import serve
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.moto.conftest import PATIENCE_SECONDS, Shell
from tests.sqlite import held_workflows

pytestmark = pytest.mark.xdist_group("serve")

MODULES = ["statemachines.document_signing"]
WAIT = ('{"doc_id": "1", "signers": ["ada"]}', "document.signed", "1/ada")


def call(url: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(f"{url}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


def test_an_execution_goes_on_in_the_next_serve_of_its_file(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deployment_of(MODULES)
    with serving(deployment, port=0, data=data) as served:
        shell = Shell(served.url, capsys)
        run = shell.json("start", "document_signing", "--name", "c1", "--input", WAIT[0])
    assert served.is_drained
    with serving(deployment, port=0, data=data) as served:
        shell = Shell(served.url, capsys)
        assert shell.json("show", "c1")["execution"] == run["execution"]
        session = Session()
        session.set_credentials("local", "local")
        bus = session.create_client("events", "us-east-1", endpoint_url=served.url)
        detail = {"name": WAIT[1], "key": WAIT[2], "data": {"by": "Ada", "at": "2026-03-02"}}
        bus.put_events(
            Entries=[
                {
                    "EventBusName": "holdfast",
                    "Source": "shop",
                    "DetailType": "holdfast.event",
                    "Detail": json.dumps(detail),
                }
            ]
        )
        shell.until(lambda shown: shown["status"] == "SUCCEEDED", "show", "c1")


def test_health_says_where_the_data_is_and_what_is_queued(data: Path) -> None:
    with serving(deployment_of([]), port=0, data=data) as served:
        status, found = call(served.url, "/health")
        assert (status, found["status"], found["data"]) == (200, "ok", str(data))
        assert found["queued"] == {"work": 0, "single": 0, "starts": 0}


def test_commands_have_the_clock_of_a_serve_that_was_moved_on(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deployment_of(MODULES)
    with serving(deployment, port=0, data=data) as served:
        shell = Shell(served.url, capsys)
        served.clock.advance(3 * 86_400_000)
        shell.json("start", "document_signing", "--name", "c1", "--input", WAIT[0])
        shell.until(lambda rows: [row["name"] for row in rows] == ["c1"], "list", "--since", "1h")
        assert [row["name"] for row in shell.json("list", "--until", "1h")] == []
        served.clock.advance(86_400_000)
        assert shell("show", "c1") == 0
        assert "1 d" in shell.printed
        assert "4 d" not in shell.printed
        shell("list")
        assert "1 d" in shell.printed


def test_the_clock_moves_on_by_whole_milliseconds(data: Path) -> None:
    with serving(deployment_of([]), port=0, data=data) as served:
        assert call(served.url, "/clock", {"milliseconds": 3_600_000}) == (
            200,
            {"clock_lead_seconds": 3_600},
        )
        refused: tuple[Any, ...] = (
            {"milliseconds": 0},
            {"milliseconds": "1"},
            {"milliseconds": 10**15},
            {},
            [],
        )
        for wrong in refused:
            status, answer = call(served.url, "/clock", wrong)
            assert (status, answer["error"]["code"]) == (400, "HF286")
    assert served.clock.lead_ms == 3_600_000


def test_a_task_that_outlasts_the_drain_is_run_again_by_the_next_serve(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "DRAIN_SECONDS", 0.1)
    deployment = deployment_of(["tests.sqlite.held_workflows"])
    with serving(deployment, port=0, data=data) as served:
        Shell(served.url, capsys).json("start", "hold", "--name", "h1")
        assert held_workflows.BEGUN.wait(PATIENCE_SECONDS)
    assert not served.is_drained
    held_workflows.RELEASED.set()
    with serving(deployment, port=0, data=data) as served:
        shell = Shell(served.url, capsys)
        shell.until(lambda shown: shown["status"] == "SUCCEEDED", "show", "h1")
    assert served.is_drained
