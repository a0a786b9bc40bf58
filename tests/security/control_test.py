"""Stops and redrives: by each caller, in each state. A refused one stores nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast_simulator.invariants import check
from tests.security.cases import Case, each
from tests.security.doors import IAM, Doors, opened, tenant
from tests.unit.states_kit import ROLE

DAY_MS = 86_400_000
STATES: dict[str, Any] = {
    "Wait": {"Type": "Wait", "Seconds": 100, "End": True},
    "Pass": {"Type": "Pass", "End": True},
    "Fail": {"Type": "Fail", "Error": "Broken", "Cause": "as it is"},
}
#: The life of an execution before its stop or redrive.
LIVES = {
    "not begun": "Wait",
    "running": "Wait",
    "succeeded": "Pass",
    "failed": "Fail",
    "aborted": "Wait",
    "failed long ago": "Fail",
}


@dataclass(frozen=True)
class Stage:
    doors: Doors
    arn: str

    def call(self, operation: str, who: Any = None, **request: Any) -> tuple[int, Any]:
        given = {"executionArn": self.arn, **request}
        return self.doors.states(operation, given, who or tenant("acme"))

    def status(self) -> str:
        return str(self.call("DescribeExecution")[1]["status"])

    def history(self) -> Any:
        return self.call("GetExecutionHistory")[1]["events"]


def staged(life: str) -> Stage:
    doors = Doors()
    text = json.dumps({"StartAt": "A", "States": {"A": STATES[LIVES[life]]}})
    create = {"name": "m", "definition": text, "roleArn": ROLE}
    made = doors.states("CreateStateMachine", create, tenant("acme"))[1]
    start = {"stateMachineArn": made["stateMachineArn"], "name": "first"}
    stage = Stage(doors, doors.states("StartExecution", start, tenant("acme"))[1]["executionArn"])
    if life != "not begun":
        doors.site.work()
    if life == "aborted":
        stage.call("StopExecution")
        doors.site.work()
    if life == "failed long ago":
        doors.site.shop.world.now_ms += 14 * DAY_MS + 1
    return stage


# -- in which state --------------------------------------------------------------------------------


@each(
    Case("not begun", "not begun", "ABORTED"),
    Case("running", "running", "ABORTED"),
    Case("succeeded", "succeeded", ""),
    Case("failed", "failed", ""),
    Case("aborted", "aborted", ""),
)
def test_a_stop_ends_running_executions_and_no_others(case: Case) -> None:
    stage = staged(case.given)
    before = stage.status(), stage.history()
    status, answer = stage.call("StopExecution", error="Mine", cause="again")
    assert status == 200
    if not case.code:
        assert stage.doors.wrote() == []
        assert answer["stopDate"] == stage.call("DescribeExecution")[1]["stopDate"]
    stage.doors.site.work()

    assert stage.status() == (case.code or before[0])
    assert case.code or stage.history() == before[1]
    assert check(stage.doors.site.shop.world) == []


@each(
    Case("not begun", "not begun", "Execution is RUNNING and cannot be redriven"),
    Case("running", "running", "Execution is RUNNING and cannot be redriven"),
    Case("succeeded", "succeeded", "Execution is SUCCEEDED and cannot be redriven"),
    Case("failed long ago", "failed long ago", "Execution redrivable period exceeded"),
)
def test_an_execution_that_cannot_be_redriven_says_why_and_stays(case: Case) -> None:
    stage = staged(case.given)
    before = stage.doors.stored()
    status, answer = stage.call("RedriveExecution")

    assert (status, answer["__type"]) == (400, "ExecutionNotRedrivable")
    assert case.code in answer["message"]
    assert stage.doors.stored() == before


def test_a_second_redrive_of_a_redriven_execution_is_refused() -> None:
    stage = staged("aborted")
    token = {"clientToken": "first"}
    status, first = stage.call("RedriveExecution", **token)
    assert status == 200
    assert stage.call("RedriveExecution", **token) == (200, first)
    # No worker has begun it, but the execution counts as running already.
    assert stage.call("RedriveExecution")[1]["__type"] == "ExecutionNotRedrivable"
    stage.doors.site.work()
    shown = stage.call("DescribeExecution")[1]

    assert (shown["redriveCount"], shown["status"]) == (1, "RUNNING")
    assert stage.call("RedriveExecution")[1]["__type"] == "ExecutionNotRedrivable"
    assert check(stage.doors.site.shop.world) == []


@pytest.mark.parametrize("behind_ms", [0, 1, 500, 1_000])
def test_a_request_is_not_lost_when_the_clock_is_behind(behind_ms: int) -> None:
    stage = staged("running")
    world = stage.doors.site.shop.world
    for operation, status in (
        ("StopExecution", "ABORTED"),
        ("RedriveExecution", "RUNNING"),
        ("StopExecution", "ABORTED"),
    ):
        assert stage.call(operation)[0] == 200
        stage.doors.site.work()
        assert stage.status() == status
        world.now_ms -= behind_ms


def test_a_stop_that_comes_late_does_not_undo_an_end() -> None:
    stage = staged("running")
    assert stage.call("StopExecution", error="First")[0] == 200
    stage.doors.site.shop.world.now_ms += 1
    assert stage.call("StopExecution", error="Second")[0] == 200
    stage.doors.site.work()

    assert stage.call("DescribeExecution")[1]["error"] == "First"
    ends = [event["type"] for event in stage.history() if event["type"].startswith("Execution")]
    assert ends == ["ExecutionStarted", "ExecutionAborted"]


def test_an_express_execution_can_be_neither_stopped_nor_redriven() -> None:
    doors = Doors()
    text = json.dumps({"StartAt": "A", "States": {"A": STATES["Pass"]}})
    create = {"name": "q", "definition": text, "roleArn": ROLE, "type": "EXPRESS"}
    arn = doors.states("CreateStateMachine", create)[1]["stateMachineArn"]
    started = doors.states("StartExecution", {"stateMachineArn": arn})[1]["executionArn"]
    for operation in ("StopExecution", "RedriveExecution"):
        status, answer = doors.states(operation, {"executionArn": started})
        assert (status, answer["__type"]) == (400, "InvalidArn")
        assert doors.wrote() == []


# -- callers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("life", sorted(LIVES))
@pytest.mark.parametrize("operation", ["StopExecution", "RedriveExecution", "UpdateMapRun"])
def test_a_tenant_cannot_stop_or_redrive_another_tenants_execution(
    operation: str, life: str
) -> None:
    stage = staged(life)
    before = stage.doors.stored()
    map_run = stage.arn.replace(
        ":execution:m:first", ":mapRun:m/x:4f1f8a36-2b8a-4a54-a7f1-62f1a4b1"
    )
    strangers = [*map(tenant, ("mallory", "Acme", "acme2")), IAM]
    for who in strangers:
        request = {"mapRunArn": map_run + "f1a1", "maxConcurrency": 1}
        status, answer = stage.call(operation, who, **request)
        assert (status, answer["__type"]) in {
            (400, "ExecutionDoesNotExist"),
            (400, "ResourceNotFound"),
        }
    status, answer = stage.call(operation, tenant(""), mapRunArn=map_run + "f1a1")

    assert (status, answer["__type"]) == (400, "AccessDeniedException")
    assert stage.doors.stored() == before


@pytest.mark.parametrize("who", ["mallory", "Acme", "default"])
def test_nobody_stops_a_workflow_that_is_not_theirs(who: str) -> None:
    doors = Doors()
    acme = opened(doors, "acme")
    caller = IAM if who == "default" else tenant(who)
    before = doors.stored()
    for identifier in (acme.run, "order-1", f"{acme.run}.2.1"):
        status, answer = doors.http("POST", f"/executions/{identifier}/stop", {}, caller)
        assert (status, answer["error"]["code"]) == (404, "HF207")
    assert doors.stored() == before


# -- with which words ------------------------------------------------------------------------------


@each(
    Case("a number as the error", {"error": 5}, "HF233"),
    Case("a list as the error", {"error": ["E"]}, "HF233"),
    Case("an object as the cause", {"cause": {"a": 1}}, "HF233"),
    Case("true as the cause", {"error": "E", "cause": True}, "HF233"),
    Case("half a surrogate pair", {"error": "\ud800"}, "HF243"),
)
def test_the_words_of_a_stop_or_a_failure_are_text(case: Case) -> None:
    shop = opened(Doors())
    before = shop.doors.stored()
    answer = {"error": "E", **case.given, "token": shop.token}
    for target, body in ((f"/executions/{shop.run}/stop", case.given), ("/answers", answer)):
        status, refusal = shop.doors.http("POST", target, body)
        assert (status, refusal["error"]["code"]) == (400, case.code)
        assert shop.doors.stored() == before


def test_an_answer_that_is_an_output_and_an_error_is_neither() -> None:
    shop = opened(Doors())
    before = shop.doors.stored()
    for error in ("E", None, ""):
        body = {"token": shop.token, "output": 1, "error": error}
        assert shop.doors.http("POST", "/answers", body)[1]["error"]["code"] == "HF233"
    assert shop.doors.stored() == before


@each(
    Case("a word", {"now": "true"}, "HF233"),
    Case("a number", {"now": 1}, "HF233"),
    Case("null", {"now": None}, "HF233"),
)
def test_whether_a_stop_waits_for_the_undo_is_true_or_false(case: Case) -> None:
    """Any other true value would cut an undo by mistake."""
    shop = opened(Doors())
    before = shop.doors.stored()
    status, refusal = shop.doors.http("POST", f"/executions/{shop.run}/stop", case.given)
    assert (status, refusal["error"]["code"]) == (400, case.code)
    assert shop.doors.stored() == before


def test_a_failure_without_words_does_not_pass_for_the_answer_before_it() -> None:
    shop = opened(Doors())
    first = {"token": shop.token, "output": 1}
    assert shop.doors.http("POST", "/answers", first)[0] == 200
    for later in ({"error": None}, {"error": "E"}, {"output": 2}):
        status, answer = shop.doors.http("POST", "/answers", {"token": shop.token, **later})
        assert (status, answer["error"]["code"]) == (409, "HF231")
    assert shop.doors.http("POST", "/answers", first)[0] == 200
