"""`holdfast doctor`, from the command line through the HTTP API to an execution and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qsl

import pytest

from holdfast import cli
from holdfast.remote import client
from holdfast.remote.connecting import Api
from holdfast.runtime import messages
from holdfast.runtime.maintenance import dead_letters
from tests.builders import call, chain, machine
from tests.sim.doctor_kit import settle, vanish
from tests.unit.codec_test import noise
from tests.unit.host_kit import Site, site

NAP = machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}})
Command = Callable[..., int]


def api_of(found: Site) -> Api:
    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        asked = dict(parse_qsl(query))
        status, answer = found.request(method, path, json.loads(body or b"{}"), query=asked)
        return status, json.dumps(answer).encode()

    return Api(carry, "the test")


@pytest.fixture
def found() -> Site:
    return site(NAP)


@pytest.fixture
def doctor(found: Site, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(client, "connect", lambda *_, **__: api_of(found))
    return lambda *arguments: cli.main(["doctor", *arguments])


def lost_wake(found: Site) -> str:
    run = found.shop.start()
    settle(found.shop.world)
    vanish(found.shop.world)
    return run


def test_where_all_is_well_it_says_so_and_exits_with_0(
    found: Site, doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    found.shop.start()
    settle(found.shop.world)
    assert doctor() == 0
    assert capsys.readouterr().out == "everything that should move does\n"
    assert doctor("--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_stuck_execution_is_shown_with_reason_and_repair_and_exits_with_1(
    found: Site, doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lost_wake(found)
    assert doctor() == 1
    shown = capsys.readouterr().out
    for part in ("order-1  TIMER_OVERDUE", "a timer is overdue", "in state nap", run, "--repair:"):
        assert part in shown
    assert found.shop.world.services.depth("work") == 0  # A report without repair sends nothing
    assert doctor("order-1", "--json") == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["execution"], row["reason"]) == (run, "TIMER_OVERDUE")


def test_a_repair_restarts_it_and_reports_the_repair(
    found: Site, doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lost_wake(found)
    assert doctor("--repair") == 1
    assert "repaired: a worker is told to look at it" in capsys.readouterr().out
    found.shop.world.run()
    assert found.shop.history(run).state.status == "SUCCEEDED"
    assert doctor() == 0


def test_a_missing_execution_is_reported_with_a_code(
    doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor("order-9") == 1
    assert "error[HF207]" in capsys.readouterr().err


def test_a_quarantined_execution_is_marked_in_the_list_and_explained(
    found: Site, doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    run = found.shop.start()
    settle(found.shop.world)
    letter = dead_letters.StoredDeadLetter(messages.recover("default", run, ("a", "b")), "c")
    found.shop.world.call(dead_letters.revive(letter))
    assert cli.main(["list"]) == 0
    assert "quarantined" in capsys.readouterr().out
    assert cli.main(["show", "order-1"]) == 0
    assert "a person to look: it is quarantined" in capsys.readouterr().out
    found.shop.world.now_ms += 600_000
    assert doctor() == 1
    assert "QUARANTINED" in capsys.readouterr().out


def lost_blob(found: Site) -> str:
    """Return an execution whose input was in the bucket and was deleted."""
    run = found.shop.start(noise(400_000), name="hurt")
    settle(found.shop.world)
    blobs = found.shop.world.services._blobs
    assert blobs
    blobs.clear()
    return run


def test_one_lost_blob_is_said_and_hides_no_other_execution(
    found: Site, doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    hurt = lost_blob(found)
    other = lost_wake(found)
    assert doctor("--json") == 1
    rows = {row["execution"]: row for row in json.loads(capsys.readouterr().out)}
    reasons = {run: row["reason"] for run, row in rows.items()}
    assert reasons == {hurt: "UNREADABLE_LOG", other: "TIMER_OVERDUE"}
    assert "HF324" in rows[hurt]["says"]
    assert hurt not in rows[hurt]["says"]  # Like AWS's own messages: it may name roles and tables
    assert doctor("hurt") == 1
    assert "UNREADABLE_LOG" in capsys.readouterr().out


def test_the_dead_letter_of_an_execution_with_a_lost_blob_is_quarantined_and_listed(
    found: Site, doctor: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    hurt = lost_blob(found)
    letter = dead_letters.StoredDeadLetter(messages.recover("default", hurt, ("a", "b")), "c")
    found.shop.world.call(dead_letters.revive(letter))
    other = lost_wake(found)
    assert cli.main(["list", "--json"]) == 0
    rows = {row["execution"]: row for row in json.loads(capsys.readouterr().out)}
    assert {run: row.get("waits_for") for run, row in rows.items()} == {
        hurt: "quarantined",
        other: None,
    }
    assert doctor("--json") == 1
    reasons = {row["execution"]: row["reason"] for row in json.loads(capsys.readouterr().out)}
    assert reasons == {hurt: "QUARANTINED", other: "TIMER_OVERDUE"}


@pytest.mark.parametrize("body", [{"after": 7}, {"after": "x"}, {"execution": ["a"]}])
def test_a_request_that_means_nothing_is_refused(found: Site, body: dict[str, object]) -> None:
    status, answer = found.request("POST", "/doctor", body)
    assert (status, answer["error"]["code"]) in {(400, "HF209"), (400, "HF201")}
    assert found.shop.world.services.depth("work") == 0


def test_a_tenant_without_a_name_gets_no_report() -> None:
    found = site(chain(1))
    for method in ("GET", "POST"):
        status, answer = found.request(method, "/doctor", {}, claims={"tenant": "a#b"})
        assert (status, answer["error"]["code"]) == (403, "HF240")


def test_an_execution_on_a_task_that_the_code_no_longer_has_is_found_at_once(
    doctor: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = {"nap": {"Type": "Wait", "Seconds": 1, "Next": "ship"}, "ship": call("ship")}
    found = site(machine(states), knows=lambda *_: False)
    monkeypatch.setattr(client, "connect", lambda *_, **__: api_of(found))
    run = found.shop.start()
    settle(found.shop.world, 10)
    assert doctor() == 1
    shown = capsys.readouterr().out
    assert "UNKNOWN_FUNCTION" in shown
    assert "help: deploy a module with 'ship'" in shown
    assert f"holdfast migrate {run} --dry-run" in shown
