"""StartSyncExecution: an express machine runs while its caller waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.api import StatesApi
from tests.unit.states_kit import PLACE, ROLE
from tests.unit.states_world import PASS, Office, states

INPUT = "{% $states.input %}"
CALL = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets", "Arguments": INPUT}


def echo(effect: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskSucceeded({"asked": effect.arguments})


def ask(office: Office, definition: dict[str, Any], data: Any = None, **request: Any) -> Any:
    machine = office.create(definition, type="EXPRESS")
    given = {} if data is None else {"input": json.dumps(data)}
    return office.call("StartSyncExecution", stateMachineArn=machine, **given, **request)


def test_the_answer_is_how_the_execution_ended() -> None:
    office = Office(echo)
    flow = states(A=CALL, B={**PASS, "Output": "{% $states.context.Execution.Id %}"})
    found = ask(office, flow, {"n": 1}, name="first")
    arn = found["executionArn"]
    assert arn.startswith(PLACE.arn("express", "flow", "first") + ":")
    assert found == {
        "executionArn": arn,
        "stateMachineArn": PLACE.machine("flow"),
        "name": "first",
        "startDate": office.world.now_ms / 1_000,
        "stopDate": office.world.now_ms / 1_000,
        "status": "SUCCEEDED",
        "input": '{"n":1}',
        "inputDetails": {"included": True},
        "output": json.dumps(arn),
        "outputDetails": {"included": True},
        "billingDetails": {"billedDurationInMilliseconds": 100, "billedMemoryUsedInMB": 64},
    }


def test_nothing_is_stored_of_it() -> None:
    office = Office(echo)
    machine = office.create(states(A=CALL), type="EXPRESS")
    before = office.world.services.effects.copy()
    office.call("StartSyncExecution", stateMachineArn=machine)
    done = office.world.services.effects - before
    assert set(done) <= {"Get", "Clock", "RunTask"}


def test_a_failure_has_error_and_cause() -> None:
    found = ask(Office(), states(A={"Type": "Fail", "Error": "Broken", "Cause": "why"}))
    assert (found["status"], found["error"], found["cause"]) == ("FAILED", "Broken", "why")
    assert "output" not in found
    assert found["outputDetails"] == {"included": True}


def test_metadata_only_leaves_the_data_out() -> None:
    found = ask(Office(), states(A=PASS), {"n": 1}, includedData="METADATA_ONLY")
    assert {"input", "output"}.isdisjoint(found)
    assert found["inputDetails"] == {"included": False}


def test_timers_and_retries_are_waited_for() -> None:
    busy = TaskFailed("Busy", None)
    answers: Iterator[TaskSucceeded | TaskFailed] = iter([busy, busy, TaskSucceeded(7)])
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "BackoffRate": 2}]
    office = Office(lambda _: next(answers))
    began_ms = office.world.now_ms
    found = ask(office, states(W={"Type": "Wait", "Seconds": 10}, A={**CALL, "Retry": retry}))
    assert (found["status"], found["output"]) == ("SUCCEEDED", "7")
    assert office.world.now_ms - began_ms == 16_000
    assert found["billingDetails"]["billedDurationInMilliseconds"] == 16_000


def test_branches_run_side_by_side() -> None:
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Wait", "Seconds": seconds, "End": True}}}
        for name, seconds in (("x", 5), ("y", 9))
    ]
    office = Office()
    began_ms = office.world.now_ms
    found = ask(office, states(A={"Type": "Parallel", "Branches": branches}), 1)
    assert found["output"] == "[1,1]"
    assert office.world.now_ms - began_ms == 9_000


def test_five_minutes_are_the_end() -> None:
    office = Office()
    began_ms = office.world.now_ms
    found = ask(office, states(W={"Type": "Wait", "Seconds": 3_600}))
    assert (found["status"], found["error"]) == ("TIMED_OUT", "States.Timeout")
    assert office.world.now_ms - began_ms == 300_000


def test_an_express_execution_ends_with_its_process() -> None:
    """A process that crashes leaves its caller without an answer, and the caller asks again."""
    office = Office()
    office.call_ms_max = 26_000
    began_ms = office.world.now_ms
    found = ask(office, states(W={"Type": "Wait", "Seconds": 100}))
    assert (found["status"], found["error"]) == ("TIMED_OUT", "States.Timeout")
    assert office.world.now_ms - began_ms == 26_000


def test_a_machine_may_allow_less() -> None:
    office = Office()
    flow = {**states(W={"Type": "Wait", "Seconds": 60}), "TimeoutSeconds": 20}
    began_ms = office.world.now_ms
    found = ask(office, flow)
    assert (found["status"], found["error"]) == ("TIMED_OUT", "States.Timeout")
    assert office.world.now_ms - began_ms == 20_000


def test_a_loop_without_a_wait_ends_too() -> None:
    """Every effect takes ten seconds here, so five minutes pass."""
    office = Office()
    office.world.hook = lambda world, *_: setattr(world, "now_ms", world.now_ms + 10_000)
    never = {"Type": "Choice", "Default": "A", "Choices": [{"Condition": False, "Next": "C"}]}
    found = ask(office, states(A=PASS, B=never, C=PASS))
    assert found["status"] == "TIMED_OUT"


def test_a_standard_machine_is_refused() -> None:
    office = Office()
    machine = office.create(states(A=PASS))
    assert office.refusal("StartSyncExecution", stateMachineArn=machine) == (
        "StateMachineTypeNotSupported",
        "This operation is not supported by this type of state machine",
    )


def test_an_express_execution_may_be_started_without_waiting() -> None:
    ran: list[RunTask] = []

    def task(effect: RunTask) -> TaskSucceeded | TaskFailed:
        ran.append(effect)
        return TaskSucceeded(None)

    office = Office(task)
    machine = office.create(states(A=CALL), type="EXPRESS")
    arns = {office.start(machine, name="same") for _ in range(2)}
    assert len(arns) == 2
    assert all(arn.startswith(PLACE.arn("express", "flow", "same") + ":") for arn in arns)
    office.wait(1)
    assert len(ran) == 2


@pytest.mark.parametrize("operation", ["DescribeExecution", "GetExecutionHistory", "StopExecution"])
def test_an_express_execution_has_no_history_to_ask_for(operation: str) -> None:
    office = Office()
    execution = office.start(office.create(states(A=PASS), type="EXPRESS"))
    code, _ = office.refusal(operation, executionArn=execution)
    assert code == "InvalidArn"


def test_executions_of_an_express_machine_are_not_listed() -> None:
    office = Office()
    machine = office.create(states(A=PASS), type="EXPRESS")
    code, _ = office.refusal("ListExecutions", stateMachineArn=machine)
    assert code == "StateMachineTypeNotSupported"


@pytest.mark.parametrize("resource", ["holdfast:task:pack", "holdfast:pure:pack"])
def test_a_task_that_no_worker_has_fails_a_call_that_waits(resource: str) -> None:
    ran: list[str] = []

    def perform(task: RunTask) -> TaskSucceeded:
        ran.append(task.name)
        return TaskSucceeded(1)

    office = Office(perform)
    is_known = [True]
    office.service = replace(office.service, knows=lambda name, _: is_known[0] and name == "pack")
    office.api = StatesApi(office.service)
    state = {"Type": "Task", "Resource": resource, "Arguments": {}}
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    machine = office.create(states(A={**state, "Catch": catch}, Caught=PASS), type="EXPRESS")
    definition = json.dumps(states(A=state))
    tested = {"definition": definition, "stateName": "A", "roleArn": ROLE}
    assert office.call("StartSyncExecution", stateMachineArn=machine)["output"] == "1"
    assert office.call("TestState", **tested)["output"] == "1"
    assert ran == ["pack", "pack"]
    is_known[0] = False
    for answer in (
        office.call("StartSyncExecution", stateMachineArn=machine),
        office.call("TestState", **tested),
    ):
        assert (answer["status"], answer["error"]) == ("FAILED", "States.Runtime")
        assert answer["cause"] == "no worker knows a task named 'pack'"
    assert ran == ["pack", "pack"]
