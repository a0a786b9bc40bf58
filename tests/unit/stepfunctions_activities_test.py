"""Activities: their catalogue, and polls that hand each task to one worker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import ServiceFault
from holdfast.limits import CLOCK_ERROR_MS, VISIBILITY_SECONDS
from holdfast.runtime import messages
from holdfast.runtime.effects import (
    Delete,
    Doubt,
    Effect,
    Get,
    Message,
    Put,
    PutIfAbsent,
    Query,
    Send,
)
from holdfast.runtime.storage import keys
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.sim.doctor_kit import purge
from tests.sim.retention_test import Ttl
from tests.unit.states_kit import PLACE
from tests.unit.states_world import Office, states

ACTIVITY = PLACE.activity("pack")
DAY_SECONDS = 86_400


def flow(**fields: Any) -> dict[str, Any]:
    return states(Do={"Type": "Task", "Resource": ACTIVITY, **fields})


@pytest.fixture
def office() -> Office:
    office = Office()
    office.call("CreateActivity", name="pack")
    return office


def poll(office: Office, worker: str | None = "w1") -> Any:
    named = {} if worker is None else {"workerName": worker}
    return office.call("GetActivityTask", activityArn=ACTIVITY, **named)


# -- the catalogue ---------------------------------------------------------------------------------


def test_an_activity_is_created_once(office: Office) -> None:
    created = office.call("CreateActivity", name="pack")
    office.world.now_ms += 1_000
    again = office.call("CreateActivity", name="pack", tags=[{"key": "k", "value": "v"}])
    assert again == created
    assert created["activityArn"] == ACTIVITY
    assert office.call("DescribeActivity", activityArn=ACTIVITY) == {
        **created,
        "name": "pack",
        "encryptionConfiguration": {"type": "AWS_OWNED_KEY"},
    }


@pytest.mark.parametrize("name", ["a b", "a/b", "a:b", "a\x00", "a^b", "a|b"])
def test_a_name_that_aws_refuses(office: Office, name: str) -> None:
    assert office.refusal("CreateActivity", name=name) == ("InvalidName", f"Invalid Name: '{name}'")


def test_a_deleted_activity_is_gone_and_may_be_deleted_again(office: Office) -> None:
    for _ in range(2):
        assert office.call("DeleteActivity", activityArn=ACTIVITY) == {}
    expected = ("ActivityDoesNotExist", f"Activity Does Not Exist: '{ACTIVITY}'")
    assert office.refusal("DescribeActivity", activityArn=ACTIVITY) == expected
    assert office.refusal("GetActivityTask", activityArn=ACTIVITY) == expected


def test_activities_are_listed_in_pages(office: Office) -> None:
    for name in ("a", "z"):
        office.call("CreateActivity", name=name)
    first = office.call("ListActivities", maxResults=2)
    rest = office.call("ListActivities", nextToken=first["nextToken"])
    listed = [row["name"] for row in (*first["activities"], *rest["activities"])]
    assert listed == ["a", "pack", "z"]
    assert "nextToken" not in rest


def test_a_page_token_from_the_future_is_invalid(office: Office) -> None:
    """So read the tokens of the code before tokens had a time."""
    office.call("CreateActivity", name="z")
    token = office.call("ListActivities", maxResults=1)["nextToken"]
    office.world.now_ms -= 3_600_000
    assert office.refusal("ListActivities", nextToken=token)[0] == "InvalidToken"


def test_the_token_of_a_page_expires_after_a_day(office: Office) -> None:
    office.call("CreateActivity", name="z")
    token = office.call("ListActivities", maxResults=1)["nextToken"]
    office.wait(24 * 3600 - 60)
    assert len(office.call("ListActivities", nextToken=token)["activities"]) == 1
    office.wait(120)
    expected = ("InvalidToken", "Invalid Token: 'Invalid token'")
    assert office.refusal("ListActivities", nextToken=token) == expected


# -- polls -----------------------------------------------------------------------------------------


def test_a_poll_takes_the_task_and_its_answer_ends_it(office: Office) -> None:
    execution = office.start(office.create(flow()), {"n": 1})
    office.wait(1)
    task = poll(office)
    assert json.loads(task["input"]) == {"n": 1}
    office.call("SendTaskSuccess", taskToken=task["taskToken"], output='{"n": 2}')
    office.wait(1)
    assert office.describe(execution)["output"] == '{"n":2}'
    events = office.history(execution)[2:5]
    assert [event["type"] for event in events] == [
        "ActivityScheduled",
        "ActivityStarted",
        "ActivitySucceeded",
    ]
    assert events[0]["activityScheduledEventDetails"]["resource"] == ACTIVITY
    assert events[1]["activityStartedEventDetails"] == {"workerName": "w1"}


def test_a_worker_without_a_name_has_none_in_the_history(office: Office) -> None:
    execution = office.start(office.create(flow()))
    office.wait(1)
    poll(office, None)
    office.wait(1)
    assert office.history(execution)[3]["activityStartedEventDetails"] == {}


def test_a_task_is_handed_to_one_poll(office: Office) -> None:
    execution = office.start(office.create(flow()))
    office.wait(1)
    first, second = poll(office, "w1"), poll(office, "w2")
    assert first["taskToken"]
    assert second == {}
    office.wait(1)
    assert office.types(execution).count("ActivityStarted") == 1


def test_a_poll_that_finds_nothing_waits_for_a_minute(office: Office) -> None:
    began_ms = office.world.now_ms
    assert poll(office) == {}
    assert office.world.now_ms - began_ms == 60_000


def test_a_poll_ends_before_its_caller_does(office: Office) -> None:
    office.call_ms_max = 20_000
    began_ms = office.world.now_ms
    assert poll(office) == {}
    assert office.world.now_ms - began_ms == 20_000


def test_a_poll_sees_a_task_that_comes_while_it_waits(office: Office) -> None:
    machine = office.create(flow())
    began_ms = office.world.now_ms
    office.world.at(began_ms + 7_000, lambda: office.start(machine, "late"))
    assert json.loads(poll(office)["input"]) == "late"
    assert 7_000 <= office.world.now_ms - began_ms <= 10_000


def test_tasks_are_handed_out_in_the_order_of_their_scheduling(office: Office) -> None:
    machine = office.create(flow())
    for number in range(3):
        office.start(machine, number)
        office.wait(1)
    assert [poll(office)["input"] for _ in range(3)] == ["0", "1", "2"]


def test_a_task_of_a_stopped_execution_is_not_handed_out(office: Office) -> None:
    machine = office.create(flow())
    stopped, other = office.start(machine, "stopped"), office.start(machine, "other")
    office.wait(1)
    office.call("StopExecution", executionArn=stopped)
    office.wait(1)
    assert poll(office)["input"] == '"other"'
    assert poll(office) == {}
    assert office.describe(other)["status"] == "RUNNING"


def test_a_retry_is_a_task_again_when_it_is_due(office: Office) -> None:
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 30, "MaxAttempts": 1}]
    execution = office.start(office.create(flow(Retry=retry)))
    office.wait(1)
    office.call("SendTaskFailure", taskToken=poll(office)["taskToken"], error="Broken")
    office.wait(1)
    failed_ms = office.world.now_ms
    task = poll(office)
    assert office.world.now_ms - failed_ms >= 29_000
    office.call("SendTaskSuccess", taskToken=task["taskToken"], output="1")
    office.wait(1)
    assert office.describe(execution)["output"] == "1"


def test_a_retry_is_not_handed_out_early_whichever_clock_is_wrong(office: Office) -> None:
    """The host that decided when, and that which is asked, may each be half a second off."""
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 30, "MaxAttempts": 1}]
    execution = office.start(office.create(flow(Retry=retry)))
    office.wait(1)
    first = poll(office)
    scheduled_ms = office.world.now_ms
    office.call("SendTaskFailure", taskToken=first["taskToken"], error="Broken")
    office.wait(1)
    (row,) = office.world.perform(Query("mail", keys.activity_tasks("default", "pack")))
    due_ms = int(str(row["sk"]).partition("#")[0])
    assert scheduled_ms + 30_000 <= due_ms
    for early_ms in (0, 2 * CLOCK_ERROR_MS - 1):
        office.world.now_ms, office.call_ms_max = due_ms + early_ms, 0
        assert poll(office) == {}
    office.world.now_ms = due_ms + 2 * CLOCK_ERROR_MS
    assert poll(office)["taskToken"]
    assert office.describe(execution)["status"] == "RUNNING"


def test_a_pollers_answer_outlives_weeks_without_a_delivery() -> None:
    """It was accepted. Meanwhile TTL deletes everything that it may."""
    office = Office()
    office.call("CreateActivity", name="pack")
    execution = office.start(office.create(flow(TimeoutSeconds=30 * DAY_SECONDS)))
    office.wait(1)
    task = poll(office)
    office.call("SendTaskSuccess", taskToken=task["taskToken"], output="1")
    purge(office.world)
    office.world.now_ms += 15 * DAY_SECONDS * 1_000
    Ttl(office.world, None).expire()
    office.wait(600)
    assert office.describe(execution)["status"] == "SUCCEEDED"
    assert "ActivityStarted" in office.types(execution)


def test_a_worker_that_falls_silent_is_timed_out(office: Office) -> None:
    execution = office.start(office.create(flow(TimeoutSeconds=20)))
    office.wait(1)
    task = poll(office)
    office.wait(30)
    assert office.describe(execution)["error"] == "States.Timeout"
    assert office.types(execution)[-2:] == ["ActivityTimedOut", "ExecutionFailed"]
    token = task["taskToken"]
    assert office.refusal("SendTaskHeartbeat", taskToken=token)[0] == "TaskTimedOut"


@pytest.mark.parametrize("where", ["Send", "Delete"])
def test_a_task_taken_by_a_crashed_poll_stays_taken(where: str) -> None:
    """The claim is stored first; the next poll sends the wake again, and takes no task."""
    armed: list[str] = []

    def hook(_: SimulatorWorld, effect: Effect, when: When) -> None:
        kind = {"Send": Send, "Delete": Delete}[where]
        if armed and when == "before" and isinstance(effect, kind):
            armed.clear()
            raise Killed

    office = Office(hook=hook)
    office.call("CreateActivity", name="pack")
    execution = office.start(office.create(flow(TimeoutSeconds=300)))
    office.wait(1)
    armed.append("now")
    with pytest.raises(Killed):
        poll(office, "w1")
    assert poll(office, "w2") == {}
    office.wait(1)
    assert office.history(execution)[3]["activityStartedEventDetails"] == {"workerName": "w1"}


@pytest.mark.parametrize("where", ["Send", "Delete"])
@pytest.mark.parametrize("retry", ["later", "never"])
def test_a_taken_task_is_returned_in_spite_of_later_faults(where: str, retry: Any) -> None:
    """No other poll would get it, and without a time-out the execution would wait for ever."""
    armed: list[str] = []

    def hook(_: SimulatorWorld, effect: Effect, when: When) -> None:
        kind = {"Send": Send, "Delete": Delete}[where]
        if armed and when == "before" and isinstance(effect, kind):
            armed.clear()
            raise ServiceFault("HF321", "the request was throttled", retry=retry)

    office = Office(hook=hook)
    office.call("CreateActivity", name="pack")
    execution = office.start(office.create(flow()))
    office.wait(1)
    armed.append("now")
    task = poll(office, "w1")
    assert poll(office, "w2") == {}
    office.call("SendTaskSuccess", taskToken=task["taskToken"], output="1")
    office.wait(1)
    assert office.describe(execution)["output"] == "1"
    assert office.history(execution)[3]["activityStartedEventDetails"] == {"workerName": "w1"}


def test_an_uncertain_claim_of_a_task_is_settled_by_the_same_poll() -> None:
    lost: list[Effect] = []

    def hook(_: SimulatorWorld, effect: Effect, when: When) -> None:
        is_claim = isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("s#")
        if is_claim and when == "after" and not lost:
            lost.append(effect)
            raise Doubt("put_item")
        if isinstance(effect, Get) and str(effect.sk).startswith("s#") and len(lost) == 1:
            lost.append(effect)
            raise ServiceFault("HF322", "no answer came", retry="now")

    office = Office(hook=hook)
    office.call("CreateActivity", name="pack")
    office.start(office.create(flow()), "x")
    office.wait(1)
    assert poll(office)["input"] == '"x"'
    assert len(lost) == 2


@pytest.mark.parametrize("count", [1, 25])
def test_a_task_whose_log_cannot_be_read_hides_no_other(office: Office, count: int) -> None:
    machine = office.create(flow())
    for _ in range(count):
        office.start(machine, "damaged")
    office.wait(1)
    for item in office.world.services.items("executions"):
        office.world.services.perform(Put("executions", {**item, "ev": "[["}))
    office.start(machine, "whole")
    office.wait(1)
    assert poll(office)["input"] == '"whole"'
    assert poll(office) == {}


def test_a_late_start_of_a_task_comes_before_its_answer(office: Office) -> None:
    """The wake of the answer overtakes that of the start."""
    execution = office.start(office.create(flow()))
    office.wait(1)
    task = poll(office)
    received = office.world.services.receive("work")
    assert len(received) == 1
    office.call("SendTaskSuccess", taskToken=task["taskToken"], output="1")
    office.wait()
    assert office.types(execution)[2:5] == [
        "ActivityScheduled",
        "ActivityStarted",
        "ActivitySucceeded",
    ]


# -- activities that do not exist ------------------------------------------------------------------


def test_a_task_whose_activity_does_not_exist_fails_at_once() -> None:
    office = Office()
    execution = office.start(office.create(flow()))
    office.wait(10)
    described = office.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.Runtime")
    assert described["cause"] == f"Activity Does Not Exist: '{ACTIVITY}'"
    failed = next(
        event for event in office.history(execution) if event["type"] == "ActivityScheduleFailed"
    )
    assert failed["activityScheduleFailedEventDetails"] == {
        "error": "States.Runtime",
        "cause": f"Activity Does Not Exist: '{ACTIVITY}'",
    }


def test_a_task_that_no_poller_has_taken_fails_when_its_activity_is_deleted(office: Office) -> None:
    execution = office.start(office.create(flow()))
    office.wait(10)
    office.call("DeleteActivity", activityArn=ACTIVITY)
    office.wait(10)
    assert office.describe(execution)["cause"] == f"Activity Does Not Exist: '{ACTIVITY}'"
    assert "ActivityScheduleFailed" in office.types(execution)


def test_a_taken_task_goes_on_when_its_activity_is_deleted(office: Office) -> None:
    execution = office.start(office.create(flow()))
    office.wait(10)
    token = poll(office)["taskToken"]
    office.call("DeleteActivity", activityArn=ACTIVITY)
    office.call("SendTaskSuccess", taskToken=token, output="7")
    office.wait(10)
    assert office.describe(execution)["output"] == "7"


def test_a_recovery_leaves_a_taken_task_of_a_deleted_activity_to_its_worker(
    office: Office,
) -> None:
    execution = office.start(office.create(flow()))
    office.wait(10)
    token = poll(office)["taskToken"]
    purge(office.world)
    office.call("DeleteActivity", activityArn=ACTIVITY)
    office.wait(VISIBILITY_SECONDS)
    run = str(office.world.services.items("executions")[0]["pk"]).rpartition("#")[2]
    office.world.services.perform(Send((Message(messages.recover("default", run)),)))
    office.wait(10)
    office.call("SendTaskSuccess", taskToken=token, output="7")
    office.wait(10)
    assert office.describe(execution).get("output") == "7"
    assert "ActivityScheduleFailed" not in office.types(execution)
