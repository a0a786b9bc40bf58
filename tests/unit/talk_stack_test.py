"""Events between workflows, detached starts, published values: through a whole stack."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from holdfast import Client
from holdfast.errors import RequestError
from holdfast.testing import World, replay
from tests.unit import talk_flows
from tests.unit.client_kit import MemoryStack

TOKEN = "open sesame"  # no secret


def test_workflows_talk_to_each_other_and_their_secrets_stay_sealed() -> None:
    talk_flows.read.clear()
    stack = MemoryStack(talk_flows.__name__)
    client = Client.of(stack.api)
    given = {"user": "ann", "token": TOKEN}
    started = client.start("door", given).result(timeout=5)
    session = client.describe(started)
    assert talk_flows.read == [TOKEN]
    assert session["published"]["login"]["user"] == "ann"
    assert session["name"] is not None
    assert client.list(workflow="session").__next__()["execution"] == started
    client.start("leave", {"user": "ann"}).result(timeout=5)
    ended = client.describe(started)
    assert (ended["status"], ended["output"]) == ("SUCCEEDED", 1)
    shown = json.dumps([session, ended, client.history(started)])
    assert "<secret 11 bytes>" in shown
    assert TOKEN not in shown
    assert TOKEN not in repr(stack.world.services.items("executions"))
    assert TOKEN not in repr(stack.world.services.items("mail"))


def test_a_later_event_and_a_later_start_are_executions_until_their_time() -> None:
    talk_flows.read.clear()
    stack = MemoryStack(talk_flows.__name__)
    client = Client.of(stack.api)
    event, started = client.start("tomorrow", {"user": "ann", "token": TOKEN}).result(timeout=5)
    assert [client.describe(one)["workflow"] for one in (event, started)] == [
        "holdfast.later",
        "session",
    ]
    assert {one["execution"] for one in client.list(status="RUNNING")} == {event, started}
    assert TOKEN not in repr(stack.world.services.items("executions"))
    began_ms = stack.world.now_ms
    stack.world.run(until_ms=began_ms + 9 * 60_000)
    assert client.describe(started)["input"] == {"user": "ann", "logins": 0}
    assert not talk_flows.read
    stack.world.run(until_ms=began_ms + 11 * 60_000)
    assert talk_flows.read == [TOKEN]
    assert client.describe(event)["status"] == "SUCCEEDED"
    client.start("leave", {"user": "ann"}).result(timeout=5)
    assert client.handle(started).result(timeout=5) == 1
    assert replay(talk_flows.session, client.history(started)).status == "SUCCEEDED"


def test_a_client_starts_a_workflow_at_a_time() -> None:
    stack = MemoryStack(talk_flows.__name__)
    client = Client.of(stack.api)
    at = datetime.fromtimestamp(stack.world.now_ms / 1_000 + 60, UTC)
    found = [client.start("session", {"user": "ann"}, name="s1", at=at).execution for _ in "12"]
    assert found[0] == found[1]
    with pytest.raises(RequestError, match="HF212"):
        client.start("session", {"user": "ann"}, name="s1")
    given = json.dumps({"workflow": "session", "input": {"user": "ann"}, "at": "2030-01-01"})
    assert b"HF204" in stack.carry("POST", "/executions", given.encode())[1]
    stack.world.run(until_ms=stack.world.now_ms + 61_000)
    assert client.describe(found[0])["input"] == {"user": "ann", "logins": 0}


def test_a_client_sends_an_event_at_a_time() -> None:
    stack = MemoryStack(talk_flows.__name__)
    client = Client.of(stack.api)
    session = client.start("session", {"user": "ann"}).execution
    began_ms = stack.world.now_ms
    at = datetime.fromtimestamp(began_ms / 1_000 + 60, UTC)
    logout = {"kind": "logout"}
    told = [client.event("session", "ann", logout, id="e1", at=at) for _ in "12"]
    assert told[0] == told[1]
    with pytest.raises(RequestError, match="HF211"):
        client.event("session", "ann", {"kind": "none"}, at=at)
    stack.world.run(until_ms=began_ms + 59_000)
    assert client.describe(session)["status"] == "RUNNING"
    stack.world.run(until_ms=began_ms + 61_000)
    assert client.describe(session)["status"] == "SUCCEEDED"
    assert client.describe(told[0]["later"])["workflow"] == "holdfast.later"


def test_a_workflow_stops_an_execution_that_it_has_started() -> None:
    client = Client.of(MemoryStack(talk_flows.__name__).api)
    client.start("guard", {"user": "ann"}).result(timeout=5)
    [session] = client.list(workflow="session")
    stopped = client.describe(session["execution"])
    assert (stopped["status"], stopped["cause"]) == ("ABORTED", "a workflow has stopped it")


def test_a_stop_of_an_ended_execution_does_nothing_and_one_of_none_fails() -> None:
    client = Client.of(MemoryStack(talk_flows.__name__).api)
    ended = client.start("leave", {"user": "ann"}).execution
    client.start("halt", {"execution": ended}).result(timeout=5)
    assert client.describe(ended)["status"] == "SUCCEEDED"
    unknown = client.start("halt", {"execution": "nothing"}).execution
    assert client.describe(unknown)["error"] == "InvalidArguments"


def test_a_test_notes_a_stop() -> None:
    run = World().run(talk_flows.halt, "id-1")
    assert [call.name for call in run.calls if call.kind == "stop"] == ["id-1"]
