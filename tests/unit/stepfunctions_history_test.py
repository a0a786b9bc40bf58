"""GetExecutionHistory: AWS's view of the log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.history import WITHOUT_DETAILS
from tests.unit.states_kit import ROLE
from tests.unit.states_world import PASS, Office, states

S3 = "arn:aws:states:::aws-sdk:s3:listBuckets"
FLOW = states(
    A={"Type": "Pass", "Assign": {"x": "{% {'a': 1} %}"}},
    B={"Type": "Task", "Resource": S3, "Arguments": {"Prefix": "p"}},
)


def done(_: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskSucceeded({"Buckets": []})


@pytest.fixture
def office() -> Office:
    return Office(done)


def test_the_history_of_a_machine_is_in_the_form_of_aws(office: Office) -> None:
    execution = office.start(office.create(FLOW), {"n": 1})
    office.wait()
    no_cut = {"truncated": False}
    events = office.history(execution)
    assert [(event["id"], event["previousEventId"], event["type"]) for event in events] == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "PassStateEntered"),
        (3, 2, "PassStateExited"),
        (4, 3, "TaskStateEntered"),
        (5, 4, "TaskScheduled"),
        (6, 5, "TaskStarted"),
        (7, 6, "TaskSucceeded"),
        (8, 7, "TaskStateExited"),
        (9, 8, "ExecutionSucceeded"),
    ]
    details = [
        next((event[key] for key in event if key.endswith("EventDetails")), None)
        for event in events
    ]
    resource = {"resource": "listBuckets", "resourceType": "aws-sdk:s3"}
    assert details[:7] == [
        {"input": '{"n":1}', "inputDetails": no_cut, "roleArn": ROLE},
        {"name": "A", "input": '{"n":1}', "inputDetails": no_cut},
        {
            "name": "A",
            "output": '{"n":1}',
            "outputDetails": no_cut,
            "assignedVariables": {"x": '{"a":1}'},
            "assignedVariablesDetails": no_cut,
        },
        {"name": "B", "input": '{"n":1}', "inputDetails": no_cut},
        {**resource, "region": "eu-west-1", "parameters": '{"Prefix":"p"}'},
        resource,
        {**resource, "output": '{"Buckets":[]}', "outputDetails": no_cut},
    ]
    assert all(isinstance(event["timestamp"], float) for event in events)
    assert not any("holdfast" in event or "record" in event for event in events)


def test_an_execution_without_a_record_has_a_started_event(office: Office) -> None:
    execution = office.start(office.create(FLOW), {"n": 1})
    [started] = office.history(execution)
    office.wait()
    assert office.history(execution)[0] == started


def test_without_data(office: Office) -> None:
    execution = office.start(office.create(FLOW), {"n": 1})
    office.wait()
    text = json.dumps(office.history(execution, includeExecutionData=False))
    for name in ("input", "output", "parameters", "assignedVariables", "inputDetails"):
        assert f'"{name}"' not in text
    assert '"roleArn"' in text


@pytest.mark.parametrize("is_reversed", [False, True])
def test_pages_hold_every_event_once(office: Office, is_reversed: bool) -> None:
    execution = office.start(office.create(FLOW))
    office.wait()
    found: list[int] = []
    request: dict[str, Any] = {"maxResults": 2, "reverseOrder": is_reversed}
    while True:
        answer = office.call("GetExecutionHistory", executionArn=execution, **request)
        found += [event["id"] for event in answer["events"]]
        if "nextToken" not in answer:
            break
        request["nextToken"] = answer["nextToken"]
    assert found == sorted(range(1, 10), reverse=is_reversed)


def test_a_token_of_the_other_order_is_invalid(office: Office) -> None:
    execution = office.start(office.create(FLOW))
    office.wait()
    answer = office.call("GetExecutionHistory", executionArn=execution, maxResults=2)
    refused = office.refusal(
        "GetExecutionHistory",
        executionArn=execution,
        nextToken=answer["nextToken"],
        reverseOrder=True,
    )
    assert refused == ("InvalidToken", "Invalid Token: 'Invalid token'")


def test_an_event_without_content_has_empty_details_or_none(office: Office) -> None:
    lanes = {"StartAt": "P", "States": {"P": {"Type": "Fail"}}}
    execution = office.start(office.create(states(A={"Type": "Parallel", "Branches": [lanes]})))
    office.wait()
    by_type = {event["type"]: event for event in office.history(execution)}
    assert set(by_type["ParallelStateStarted"]) == {"id", "previousEventId", "timestamp", "type"}
    assert set(by_type["ParallelStateFailed"]) == {"id", "previousEventId", "timestamp", "type"}
    assert by_type["ExecutionFailed"]["executionFailedEventDetails"] == {}


def test_events_without_details_are_those_that_aws_has_none_for() -> None:
    from botocore.session import get_session  # slow to import

    model = get_session().get_service_model("stepfunctions")
    members = set(model.shape_for("HistoryEvent").members)
    types = model.shape_for("HistoryEventType").metadata["enum"]
    have_details = {f"{member[0].upper()}{member[1:]}" for member in members}
    without = {
        name
        for name in types
        if f"{name}EventDetails" not in have_details
        and not name.endswith(("StateEntered", "StateExited"))
    }
    assert without == WITHOUT_DETAILS


def test_a_stop_is_shown_with_empty_details(office: Office) -> None:
    execution = office.start(office.create(states(W={"Type": "Wait", "Seconds": 60}, A=PASS)))
    office.wait(1)
    office.call("StopExecution", executionArn=execution)
    office.wait(1)
    last = office.history(execution, reverseOrder=True)[0]
    assert (last["type"], last["previousEventId"]) == ("ExecutionAborted", 0)
    assert last["executionAbortedEventDetails"] == {}


def test_the_view_of_aws_has_no_traceback() -> None:
    def failing(traceback: str | None) -> list[dict[str, Any]]:
        office = Office(lambda _: TaskFailed("Declined", "no money", traceback))
        execution = office.start(office.create(FLOW))
        office.wait()
        return office.history(execution)

    assert failing('  File "shop/bank.py", line 3, in pay') == failing(None)
