"""An event with an error in place of data: `wait_for_event` raises the error."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Client, ask, cli, role, workflow
from holdfast.api.surface import minutes, seconds
from holdfast.cli.arguments import future
from holdfast.errors import RequestError
from holdfast.remote import client as remote
from holdfast.runtime.storage import tables
from holdfast.testing import World, fails, replay
from holdfast.testing.outcomes import ScriptError
from holdfast_simulator.world import Killed
from tests.thorough import stride
from tests.unit import failing_event_flows as flows
from tests.unit.client_kit import MemoryStack

BROKEN: dict[str, Any] = {"error": "NoPaperError", "cause": "tray 2 is empty"}


@pytest.fixture
def stack() -> MemoryStack:
    return MemoryStack(flows.__name__)


@pytest.fixture
def client(stack: MemoryStack) -> Client:
    return Client.of(stack.api)


def test_a_handler_catches_the_error_of_an_event(client: Client) -> None:
    started = client.start("label", {"parcel": "p1"})
    sent = client.event("label.printed", "p1", **BROKEN)
    assert sent["waiting"] == 1
    assert started.result(timeout=5) == "NoPaperError: tray 2 is empty"


def test_an_error_without_a_handler_ends_the_execution(client: Client) -> None:
    started = client.start("labels", {"parcels": ["p1"]})
    client.event("label.printed", "p1", error="Jam")
    described = started.describe()
    assert (described["status"], described["error"]) == ("FAILED", "Jam")


def test_an_event_that_fails_a_wait_is_used_once_and_a_retry_waits_for_the_next(
    client: Client,
) -> None:
    started = client.start("labels", {"parcels": ["p1", "p2"]})
    client.event("label.printed", "p2", "L-2")
    client.event("label.printed", "p1", **BROKEN, id="e1")
    assert started.describe()["status"] == "FAILED"
    assert client.events("label.printed", "p1") == []
    started.retry()
    assert started.describe()["status"] == "RUNNING"
    client.event("label.printed", "p1", "L-1")
    assert started.result(timeout=5) == ["L-1", "L-2"]


def test_it_is_kept_until_a_wait_and_counts_once(client: Client) -> None:
    for _ in range(2):
        client.event("label.printed", "p1", **BROKEN, id="e1")
    [kept] = client.events("label.printed", "p1")
    assert (kept["event"], kept["error"]) == ("e1", "NoPaperError")
    first, second = (client.start("label", {"parcel": "p1"}) for _ in range(2))
    assert first.result(timeout=5) == "NoPaperError: tray 2 is empty"
    assert second.describe()["status"] == "RUNNING"
    with pytest.raises(RequestError) as refused:
        client.event("label.printed", "p1", "L-1", id="e1")
    assert refused.value.code == "HF213"


def test_it_starts_a_keyed_workflow(client: Client) -> None:
    run = client.event("label.wanted", "p1", **BROKEN)["execution"]
    assert client.describe(run)["output"] == "no paper"


def test_it_may_be_for_one_execution_and_later(stack: MemoryStack, client: Client) -> None:
    other, started = (client.start("label", {"parcel": "p1"}) for _ in range(2))
    at = datetime.fromtimestamp(stack.world.now_ms / 1_000 + 60, UTC)
    client.event("label.printed", "p1", **BROKEN, execution=started.execution, at=at)
    stack.world.run(until_ms=stack.world.now_ms + 120_000)
    assert started.result(timeout=5) == "NoPaperError: tray 2 is empty"
    assert other.describe()["status"] == "RUNNING"


@pytest.mark.parametrize(
    ("name", "data", "failure"),
    [
        ("label.printed", "L-1", BROKEN),
        ("label.printed", None, {"cause": "tray 2 is empty"}),
        ("label.asked", None, BROKEN),
    ],
)
def test_data_and_an_error_exclude_each_other(
    client: Client, name: str, data: Any, failure: dict[str, Any]
) -> None:
    with pytest.raises(RequestError) as refused:
        client.event(name, "p1", data, **failure)
    assert refused.value.code == "HF233"


def test_older_code_refuses_such_an_event(stack: MemoryStack, client: Client) -> None:
    client.event("label.printed", "p1", **BROKEN)
    [item] = [one for one in stack.world.services.items(tables.MAIL) if "error" in one]
    assert item["f"] == 3
    client.start("label", {"parcel": "p1"}).result(timeout=5)
    [claimed] = [one for one in stack.world.services.items(tables.MAIL) if "error" in one]
    assert (claimed["f"], "cl" in claimed) == (3, True)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_anywhere_fails_the_wait_once(when: str) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride(1, 7)
        stack = MemoryStack(flows.__name__, works=False)
        left = [number]

        def hook(_world: Any, _effect: Any, at: str, left: list[int] = left) -> None:
            if at == when:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed

        client = Client.of(stack.api)
        first, second = (client.start("label", {"parcel": "p1"}) for _ in range(2))
        client.event("label.printed", "p1", **BROKEN)
        stack.world.hook = hook
        stack.world.run(until_ms=stack.world.now_ms + 86_400_000)
        is_over, left[0] = left[0] > 0, 0
        found = sorted(one.describe()["output"] for one in (first, second))
        assert found == ["NoPaperError: tray 2 is empty", "late"], number
    assert number > 20


def test_a_test_scripts_the_error_of_an_event() -> None:
    world = World({"label.printed": fails(flows.NoPaperError("tray 2 is empty"))})
    assert world.run(flows.label, "p1").output == "NoPaperError: tray 2 is empty"
    world = World()
    world.send("label.printed", flows.PrinterError("a jam"), key="p1", at=minutes(5))
    run = world.run(flows.label, "p1")
    assert (run.output, run.ended) == ("PrinterError: a jam", minutes(5))


def test_a_test_scripts_the_error_of_a_question() -> None:
    assert World({"Sure?": flows.PrinterError("off")}).run(sure).error == "PrinterError"


def test_a_request_has_data_in_a_test() -> None:
    world = World()
    world.send("label.asked", flows.PrinterError("off"), key="p1", at=seconds(1))
    with pytest.raises(ScriptError):
        world.run(flows.asked, "p1")


def test_a_replay_raises_the_recorded_error(client: Client) -> None:
    started = client.start("label", {"parcel": "p1"})
    client.event("label.printed", "p1", **BROKEN)
    replay(flows.label, started.history())


@workflow
def sure() -> bool:
    return ask("Sure?", bool, assignee=role("clerk"))


def test_the_command_line_sends_errors_and_later_starts_and_events(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote, "connect", lambda *_, **__: stack.api)
    soon = datetime.fromtimestamp(stack.world.now_ms / 1_000 + 60, UTC).isoformat()
    start = ["start", "label", "--input", '{"parcel": "p1"}', "--name", "label-1"]
    assert cli.main([*start, "--at", soon]) == 0
    failure = ["event", "label.printed", "--key", "p1", "--error", "NoPaperError"]
    assert cli.main([*failure, "--cause", "tray 2 is empty", "--at", soon]) == 0
    assert "is sent later, by 01" in capsys.readouterr().out
    client = Client.of(stack.api)
    assert client.describe("label-1")["status"] == "RUNNING"
    stack.world.run(until_ms=stack.world.now_ms + 120_000)
    assert client.describe("label-1")["output"] == "NoPaperError: tray 2 is empty"
    with pytest.raises(SystemExit):
        cli.main([*failure, "--data", "1"])


def test_a_span_of_the_command_line_counts_from_now() -> None:
    before = datetime.now(UTC)
    assert minutes(15) <= future("15min") - before < minutes(16)
    assert future("2027-01-15T08:00Z") == datetime(2027, 1, 15, 8, tzinfo=UTC)
