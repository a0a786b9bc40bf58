"""`holdfast migrate` and `holdfast deploy-check`: what they print, ask for and return."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from holdfast import cli
from holdfast.migration.model import Position
from holdfast.remote import client
from holdfast.remote.connecting import Api
from tests.builders import CHANCE
from tests.unit.dsl_kit import loaded
from tests.unit.host_kit import Site
from tests.unit.migration_kit import HEADER, WHY, TwoVersions, compiled
from tests.unit.migration_test import AFTER_PAY, work
from tests.unit.pausing_test import settle

CHECKED = AFTER_PAY.replace("    answer", "    check(amount)\n    answer")
BEFORE_SHIP = AFTER_PAY.replace("    ship", "    check(amount)\n    ship")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoVersions:
    """Three orders: two wait for a signature, one for the next try of its payment."""
    found = TwoVersions(compiled(tmp_path, AFTER_PAY), compiled(tmp_path, CHECKED), work)
    for name in ("a", "b"):
        found.begun({"amount": 5}, name, seconds=2_000)
    found.begun({"amount": 5}, "c")

    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        fields = dict(pair.split("=") for pair in query.split("&") if pair)
        given: Any = json.loads(body) if body else None
        # a new deployment starts new processes, with the newest definitions
        status, answer = Site(found).request(method, unquote(path), given, query=fields)
        return status, json.dumps(answer).encode()

    monkeypatch.setattr(client, "connect", lambda *_, **__: Api(carry, "here"))
    return found


def run(*line: str) -> int:
    return cli.main([*line])


def test_a_dry_run_counts_each_position_and_says_why_not(
    shop: TwoVersions, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.deploy()
    assert run("migrate", "flow", "--dry-run") == 0
    out = capsys.readouterr().out
    assert out.startswith("flow: 1 may move, 2 stay on their version, 0 have it already\n")
    assert "-      2  wait for signed" in out
    assert "+      1  pay (waits to be tried again)" in out
    assert "`check` may stand before `wait for signed` in the new version" in out


def test_migrate_moves_those_that_may_and_undo_takes_them_back(
    shop: TwoVersions, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.deploy()
    assert run("migrate", "flow") == 2  # a reason is missing
    with pytest.raises(SystemExit):
        run("migrate", "flow", "--canary", "0", "--reason", "the law")
    assert (
        run("migrate", "flow", "--canary", "5", "--rate", "100/s", "--reason", "the law", "--json")
        == 0
    )
    asked = json.loads(capsys.readouterr().out)
    assert len(asked["asked"]) == 1 and asked["refused"] == {}
    settle(shop)
    (moved,) = asked["asked"]
    assert run("history", moved) == 0
    assert f"from {shop.old.hash[:12]} to {shop.new.hash[:12]}" in capsys.readouterr().out
    assert run("migrate", "flow", "--dry-run") == 0
    assert "0 may move, 2 stay on their version, 1 has it already" in capsys.readouterr().out
    assert run("migrate", "flow", "--undo", "--reason", "not yet") == 0
    assert capsys.readouterr().out.startswith("1 execution was asked to move, 2 stay")
    settle(shop)
    assert {state.definition for state in map(shop.state, asked["asked"])} == {shop.old.hash}


def test_one_execution_is_asked_by_its_name(
    shop: TwoVersions, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.deploy()
    assert run("migrate", "flow:a", "--dry-run") == 1
    assert "may not move" in capsys.readouterr().out
    assert run("migrate", "flow:a", "--reason", "the law") == 1
    assert "error[HF541]" in capsys.readouterr().err
    assert run("migrate", "flow:c", "--reason", "the law") == 0
    assert "was asked to move" in capsys.readouterr().out


def test_the_deploy_check_reads_a_stack_or_a_saved_report(
    shop: TwoVersions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "positions.json"
    with loaded(tmp_path, HEADER + BEFORE_SHIP) as module:
        name = module.__name__
        assert run("deploy-check", name, "--strict") == 0
        direct = capsys.readouterr().out
        assert direct.startswith("flow: 3 may move, 0 stay on their version")
        assert run("deploy-check", name, "--save", str(saved)) == 0
        assert "running executions of flow 3" in capsys.readouterr().out
        assert run("deploy-check", name, "--report", str(saved)) == 0
        assert capsys.readouterr().out == direct
        assert run("deploy-check", name, "--report", str(tmp_path / "none")) == 2
    with loaded(tmp_path, HEADER + CHECKED) as module:
        name = module.__name__
        assert run("deploy-check", name, "--report", str(saved)) == 0
        assert run("deploy-check", name, "--report", str(saved), "--strict") == 1
    without_ship = (
        (HEADER + CHECKED).replace("@task\ndef ship", "def ship").replace("    ship(receipt)\n", "")
    )
    capsys.readouterr()
    with loaded(tmp_path, without_ship) as module:
        assert run("deploy-check", module.__name__, "--report", str(saved)) == 1
        assert "stranded: this code has no task ship" in capsys.readouterr().out


def test_the_deploy_check_counts_the_executions_of_a_workflow_that_the_code_no_longer_has(
    shop: TwoVersions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "@workflow\ndef other(n: int) -> int:\n    return n\n"
    with loaded(tmp_path, HEADER.replace("def ship", "def send_off") + other) as module:
        assert run("deploy-check", module.__name__) == 1
    out = capsys.readouterr().out
    assert out.startswith("flow: 0 may move, 3 stay on their version")
    assert "the new code has no workflow of this name" in out
    assert "stranded: this code has no task ship" in out


def test_a_saved_report_holds_no_values(shop: TwoVersions) -> None:
    report = shop.insist(lambda: shop.front.positions("default", {"workflow": "flow"}))
    text = json.dumps(report)
    assert "r-1" not in text
    for row in report["positions"]:
        position = Position.from_json(row)
        assert Position.from_json(json.loads(json.dumps(position.to_json()))) == position


def test_a_bulk_moves_in_the_stack_and_reports_each_refusal(shop: TwoVersions) -> None:
    shop.deploy()
    request = {"operation": "migrate", "filters": {"workflow": "flow"}, **WHY}
    told = shop.insist(lambda: shop.front.bulk("default", request, CHANCE))
    settle(shop, 30)
    shown = shop.describe(told["execution"])
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", {"done": 1, "refused": 2})
    moved = [
        one
        for one in shop.insist(lambda: shop.front.executions("default", {}))["executions"]
        if one["workflow"] == "flow" and shop.moves(one["execution"])
    ]
    assert [one["name"] for one in moved] == ["c"]
