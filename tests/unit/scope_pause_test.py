"""Pauses of a task, a workflow and the stack: over HTTP, and from the command line."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from holdfast import cli
from holdfast.remote import client
from holdfast.remote.connecting import Api
from holdfast_simulator.flow import Work
from tests.unit.limits_commands_test import LimitedStack, stack

WHY = {"reason": "outage", "by": "kim"}
PAUSE = {"task": "task0", "paused": True, **WHY}
RESUME = {"task": "task0", "paused": False, "reason": "over", "by": "ann"}
SINCE = "2027-01-15T08:00:00.000Z"


@pytest.fixture
def paused() -> LimitedStack:
    """Three executions whose task is paused."""
    found = stack("task0", "task1")
    found.post("/pauses", PAUSE)
    found.run(*[Work(100 * number) for number in range(3)], seconds=2)
    return found


def test_pauses_show_since_when_by_whom_why_and_how_many_wait(paused: LimitedStack) -> None:
    (shown,) = paused.get("/pauses")["pauses"]
    assert shown.pop("oldest").startswith("2027-01-15T08:00:0")
    assert shown == {
        "scope": "task task0", "task": "task0", "paused": True, "since": SINCE, **WHY,
        "waiting": 3,
    }  # fmt: skip


def test_show_and_history_say_that_a_pause_holds_the_step(paused: LimitedStack) -> None:
    run = paused.world.open_runs()[0]
    (wait,) = paused.get(f"/executions/{run}")["waits"]
    assert {name: wait[name] for name in ("kind", "scope", "task", "paused_since", "reason")} == {
        "kind": "paused", "scope": "task task0", "task": "task0", "paused_since": SINCE,
        "reason": "outage",
    }  # fmt: skip
    events = paused.get(f"/executions/{run}/history")["events"]
    (held,) = (event for event in events if event["type"] == "AttemptQueued")
    own = held["holdfast"]
    assert (own["gate"], own["reason"], own["by"]) == ("pause:task:task0#-.0", "outage", "kim")


def test_a_resume_lets_them_go_and_leaves_no_pause(paused: LimitedStack) -> None:
    told = paused.post("/pauses", RESUME)
    assert (told["paused"], told["waiting"]) == (False, 3)
    paused.run(seconds=60)
    assert paused.get("/pauses") == {"pauses": []}
    assert paused.world.open_runs() == []


def test_limits_do_not_list_the_gates_of_pauses(paused: LimitedStack) -> None:
    names = [limit["name"] for limit in paused.get("/limits")["limits"]]
    assert names == ["bank", "customer", "ledger"]


def test_a_held_execution_can_be_stopped(paused: LimitedStack) -> None:
    run = paused.world.open_runs()[0]
    paused.world.stop(run)
    paused.run(seconds=5)
    assert paused.get(f"/executions/{run}")["status"] == "ABORTED"
    assert paused.get("/pauses")["pauses"][0]["waiting"] == 2


def test_the_same_pause_again_changes_nothing_and_another_one_is_refused(
    paused: LimitedStack,
) -> None:
    assert paused.post("/pauses", PAUSE)["since"] == SINCE
    status, code, _ = paused.refusal("/pauses", {**PAUSE, "reason": "other"})
    assert (status, code) == (409, "HF235")
    status, code, _ = paused.refusal("/pauses", {**RESUME, "task": "task1"})
    assert (status, code) == (409, "HF236")


def test_a_new_execution_of_a_paused_workflow_says_who_holds_it() -> None:
    held = stack("task0")
    held.post("/pauses", {"workflow": "flow", "paused": True, **WHY})
    (run,) = held.run(Work(0), seconds=2)
    (wait,) = held.get(f"/executions/{run}")["waits"]
    assert (wait["kind"], wait["scope"]) == ("paused", "workflow flow")
    events = held.get(f"/executions/{run}/history")["events"]
    own = next(event for event in events if event["type"] == "ExecutionQueued")["holdfast"]
    assert (own["reason"], own["by"]) == ("outage", "kim")


@pytest.mark.parametrize(
    ("body", "code", "help_"),
    [
        ({"paused": True, **WHY}, "HF226", "expected: exactly one of them"),
        ({**PAUSE, "all": True}, "HF226", "expected: exactly one of them"),
        ({"all": "yes", "paused": True, **WHY}, "HF226", "expected: true"),
        (
            {**PAUSE, "task": "chrage"},
            "HF226",
            "expected: one that is deployed; known: task0, task1",
        ),
        (
            {"workflow": "x", "paused": True, **WHY},
            "HF226",
            "expected: one that is deployed; known: flow",
        ),
        ({**PAUSE, "paused": "yes"}, "HF226", "expected: true to pause, false to resume"),
        ({**PAUSE, "until": "2027-01-15T08:00"}, "HF226", "expected: a later time with its zone"),
        ({**PAUSE, "until": "2026-01-15T08:00:00Z"}, "HF226", "expected: a later time"),
        ({"all": True, "paused": True}, "HF234", ""),
    ],
)
def test_a_request_that_names_no_scope_or_no_time_is_refused(
    body: Any, code: str, help_: str
) -> None:
    status, found, found_help = stack().refusal("/pauses", body)
    assert (status, found) == (400, code)
    assert found_help.startswith(help_)


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def say(
    paused: LimitedStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        asked, sent = dict(parse_qsl(query)), json.loads(body or b"{}")
        status, answer = paused.site.request(method, path, sent, query=asked)
        return status, json.dumps(answer).encode()

    monkeypatch.setattr(client, "connect", lambda *_, **__: Api(carry, "here"))

    def line(*words: str, status: int = 0) -> str:
        assert cli.main(words) == status
        printed = capsys.readouterr()
        return printed.out + printed.err

    return line


def test_the_command_line_pauses_shows_and_resumes(say: Any) -> None:
    assert say("pauses") == (
        "task task0 is paused since 2027-01-15T08:00:00.000Z by kim: outage; 3 wait\n"
    )
    told = say("pause", "--all", "--reason", "fire", "--by", "ann", "--until", "2030-01-01T00:00Z")
    assert "everything is paused since" in told
    assert "until 2030-01-01T00:00:00.000Z by ann: fire; 0 wait; workers see it" in told
    assert "everything is paused" in say("list")
    assert "task task0 is paused" in say("doctor")
    say("resume", "--all", "--reason", "out", "--by", "ann")
    told = say("resume", "--task", "task0", "--reason", "over", "--by", "ann")
    assert told == "task task0 is resumed; 3 wait for their turn\n"


@pytest.mark.parametrize(
    "line",
    [
        ("pause", "--reason", "why"),
        ("pause", "o1", "--all", "--reason", "why"),
        ("pause", "--all", "--timers", "run", "--reason", "why"),
        ("pause", "o1", "--until", "2d", "--reason", "why"),
    ],
)
def test_a_line_that_mixes_scope_and_execution_is_refused(say: Any, line: tuple[str, ...]) -> None:
    assert "HF282" in say(*line, status=2)
