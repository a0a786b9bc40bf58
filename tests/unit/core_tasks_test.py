"""Tasks of state machines in the core: scheduled, submitted, begun, polled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core import advance as advancing
from holdfast.core import decision
from holdfast.core.advance import Transition, advance
from holdfast.core.apply.apply import apply, fold
from holdfast.core.commands import OfferActivity, ReadAnswer, StartTimer
from holdfast.core.events import Event
from holdfast.core.facts import (
    ActivityStarted,
    DecisionInputs,
    EventReceived,
    Fact,
    FailedWith,
    HeartbeatSeen,
    Polled,
    Started,
    Submitted,
    Succeeded,
    TakenOver,
    TaskUnknown,
    TimedOut,
)
from holdfast.core.state import ROOT, Attempt, Awaiting, MachineOrigin, Parent
from holdfast.core.state_json import from_json, to_json
from holdfast.core.waits import pending_commands
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.resources import METRIC_DURABLE_STEPS
from holdfast.runtime import measuring
from holdfast.runtime.effects import Measure
from tests.builders import Machine, machine, wait_for
from tests.unit.core_kit import RUN, START_MS, Case, claim, one
from tests.unit.states_kit import PLACE, ROLE

FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:f"
SEND = "arn:aws:states:::sqs:sendMessage"
CALLBACK = f"{SEND}.waitForTaskToken"
BUILD = "arn:aws:states:::codebuild:startBuild.sync"
NEST = "arn:aws:states:::states:startExecution.sync:2"
ACTIVITY = PLACE.activity("pack")
TOKEN = {"token": "{% $states.context.Task.Token %}"}
AGAIN = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
TOO_LARGE = "x" * PAYLOAD_BYTES_MAX


def task(resource: str, **fields: Any) -> Machine:
    return {"Type": "Task", "Resource": resource, **fields}


PASS = {"Type": "Pass"}


def origin_of(execution_type: str = "STANDARD") -> MachineOrigin:
    return {
        "execution_arn": PLACE.execution("m", "e"),
        "execution_name": "e",
        "state_machine_arn": PLACE.machine("m"),
        "state_machine_name": "m",
        "role_arn": ROLE,
        "type": "EXPRESS" if execution_type == "EXPRESS" else "STANDARD",
    }


class MachineCase(Case):
    """An execution of a state machine: tokens can be made, and AWS's quotas hold."""

    def begin(self, data: Any = None, execution_type: str = "STANDARD") -> MachineCase:
        self.offer(Started(RUN, "e", "m", data, START_MS, origin_of(execution_type)))
        return self

    def _step(self, facts: tuple[Any, ...]) -> None:
        def token(entry: int, attempt: int) -> str:
            return f"token of {entry}.{attempt}"

        moment = DecisionInputs(self.now_ms, lambda: 0.5, claim, clock_error_ms=0, token=token)
        step = advance(self.program, self._state, facts, moment)
        self.events += step.events
        self._state = step.state
        assert fold(self.events) == step.state
        assert from_json(json.loads(json.dumps(to_json(step.state)))) == step.state

    def submit(self, output: Any = None) -> MachineCase:
        waiting = self.waiting()
        self.offer(Submitted(waiting.entry, waiting.attempt, output))
        return self


def begun(state: Mapping[str, Any], data: Any = None, **top: Any) -> MachineCase:
    return MachineCase(one(state, **top)).begin(data)


# -- scheduling ------------------------------------------------------------------------------------


def test_a_function_has_events_of_its_own() -> None:
    case = begun(task(FUNCTION, Arguments={"n": 1}))
    waiting = case.waiting()
    assert (waiting.kind, waiting.target, waiting.arguments) == ("lambda", FUNCTION, {"n": 1})
    assert case.last("LambdaFunctionScheduled").details == {
        "resource": FUNCTION,
        "input": {"n": 1},
    }
    assert case.succeed(2).output == 2
    assert case.types[2:5] == [
        "LambdaFunctionScheduled",
        "LambdaFunctionStarted",
        "LambdaFunctionSucceeded",
    ]


def test_a_function_that_fails_has_an_event_of_its_own() -> None:
    case = begun(task(FUNCTION)).fail("E", "why")
    assert case.last("LambdaFunctionFailed").details == {"error": "E", "cause": "why"}
    assert case.failure == ("E", "why")


def test_a_call_of_a_service_names_service_action_and_region() -> None:
    case = begun(task("arn:aws:states:::aws-sdk:s3:getObject", Arguments={"Bucket": "b"}))
    assert (case.waiting().kind, case.waiting().target) == ("service", "aws-sdk:s3:getObject")
    assert case.last("TaskScheduled").details == {
        "resourceType": "aws-sdk:s3",
        "resource": "getObject",
        "region": "eu-west-1",
        "parameters": {"Bucket": "b"},
    }


def test_the_role_that_a_call_takes_is_scheduled_and_kept() -> None:
    credentials = {"RoleArn": "{% $states.input %}"}
    case = begun(task(BUILD, Arguments={}, Credentials=credentials), ROLE)
    assert case.last("TaskScheduled").details["taskCredentials"] == {"roleArn": ROLE}
    assert case.waiting().credentials == ROLE
    assert case.submit().waiting().credentials == ROLE


def test_credentials_without_a_role_fail_the_state() -> None:
    case = begun(task(SEND, Arguments={}, Credentials="{% $states.input %}"), {"RoleArn": 7})
    assert case.status == "FAILED"
    error, cause = case.failure
    assert error == "States.Runtime"
    assert str(cause).endswith("[The value for the field 'RoleArn' must be a STRING]")
    assert "TaskScheduled" not in case.types


def test_a_task_may_have_three_years() -> None:
    case = begun(task(SEND, Arguments={}, TimeoutSeconds="{% 99999999 %}"))
    assert case.waiting().timeout_seconds == 99_999_999


# -- callbacks -------------------------------------------------------------------------------------


def test_a_callback_is_called_submitted_and_answered() -> None:
    case = begun(task(CALLBACK, Arguments=TOKEN))
    assert isinstance(case.waiting(), Attempt)
    assert case.waiting().arguments == {"token": "token of 0.1"}
    case.submit({"MessageId": "m"})
    assert isinstance(case.waiting(), Awaiting)
    assert pending_commands(case.state) == [ReadAnswer(0, 1)]
    assert case.succeed("yes").output == "yes"
    assert case.types[2:6] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"]


def test_an_answer_before_the_call_has_returned_is_left_for_later() -> None:
    case = begun(task(CALLBACK, Arguments=TOKEN))
    seen = len(case.events)
    case.succeed("yes")
    assert len(case.events) == seen


def test_a_failure_of_the_call_is_that_of_the_task() -> None:
    assert begun(task(CALLBACK, Arguments=TOKEN)).fail("SQS.Gone", "why").failure == (
        "SQS.Gone",
        "why",
    )


def test_a_second_submission_leaves_no_trace() -> None:
    case = begun(task(CALLBACK, Arguments=TOKEN)).submit(1)
    seen = len(case.events)
    case.submit(2)
    assert len(case.events) == seen


def test_the_time_out_counts_from_the_call_and_the_heartbeat_from_its_end() -> None:
    case = begun(task(CALLBACK, Arguments=TOKEN, TimeoutSeconds=100, HeartbeatSeconds=30))
    case.now_ms += 10_000
    waiting = case.submit().waiting()
    assert (waiting.due_ms, waiting.heartbeat_due_ms) == (START_MS + 100_000, START_MS + 40_000)
    case.offer(HeartbeatSeen(0, START_MS + 20_000))
    assert case.waiting().heartbeat_due_ms == START_MS + 50_000
    assert case.after(41).failure == ("States.Timeout", None)


def test_a_retry_of_a_callback_has_a_token_of_its_own() -> None:
    case = begun(task(CALLBACK, Arguments=TOKEN, Retry=AGAIN)).submit().fail("E")
    assert case.waiting().arguments == {"token": "token of 0.2"}


# -- jobs ------------------------------------------------------------------------------------------


def test_a_job_is_polled_after_a_second_then_two_then_four_up_to_a_minute() -> None:
    case = begun(task(BUILD, Arguments={})).submit({"Build": {"Id": "b"}})
    rests = []
    for number in range(9):
        due_ms = case.waiting().poll_due_ms
        assert StartTimer(0, due_ms) in pending_commands(case.state)
        rests.append((due_ms - case.now_ms) // 1_000)
        case.now_ms = due_ms
        case.offer(Polled(0, 1, number))
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert case.succeed("built").output == "built"


def test_a_poll_that_was_counted_counts_once() -> None:
    case = begun(task(BUILD, Arguments={})).submit()
    case.offer(Polled(0, 1, 0))
    seen = len(case.events)
    case.offer(Polled(0, 1, 0), Polled(0, 2, 1), Polled(7, 1, 1))
    assert len(case.events) == seen


def test_a_poll_is_no_time_out_and_a_time_out_is_no_poll() -> None:
    case = begun(task(BUILD, Arguments={}, TimeoutSeconds=5)).submit()
    assert case.after(3).status == "RUNNING"
    assert case.after(3).failure == ("States.Timeout", None)


@pytest.mark.parametrize("resource", [NEST, "holdfast:workflow:ship"])
def test_another_execution_reports_its_end_and_is_not_polled(resource: str) -> None:
    case = begun(task(resource, Arguments={"StateMachineArn": "m"})).submit({"ExecutionArn": "a"})
    assert case.waiting().poll_due_ms is None
    assert pending_commands(case.state) == [ReadAnswer(0, 1)]
    case.offer(Polled(0, 1, 0))
    assert case.types[-1] == "TaskSubmitted"


def test_the_parent_of_an_execution_is_in_its_history_and_in_a_snapshot() -> None:
    parent: Parent = {"run": "p", "entry": 3, "attempt": 1}
    case = Case(machine({"rest": {"Type": "Wait", "Seconds": 5, "End": True}}))
    case.offer(Started(RUN, None, "ship", {}, START_MS, parent=parent))
    assert case.state.parent == parent
    assert case.state.origin is None
    assert fold(case.events) == case.state == from_json(to_json(case.state))


# -- activities ------------------------------------------------------------------------------------


def test_an_activity_is_offered_until_a_poller_has_taken_it() -> None:
    case = begun(task(ACTIVITY, Arguments={"n": 1}, HeartbeatSeconds=30))
    assert case.last("ActivityScheduled").details["resource"] == ACTIVITY
    assert "ActivityStarted" not in case.types
    assert pending_commands(case.state) == [OfferActivity(0, 1)]
    case.now_ms += 20_000
    case.offer(ActivityStarted(0, 1, "w"), ActivityStarted(0, 1, "other"))
    assert case.last("ActivityStarted").details == {"workerName": "w"}
    assert case.waiting().heartbeat_due_ms == START_MS + 50_000
    assert pending_commands(case.state) == [StartTimer(0, START_MS + 50_000)]
    assert case.succeed(2).output == 2
    assert case.types[2:5] == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]


@pytest.mark.parametrize("bound", [{"TimeoutSeconds": 10}, {"HeartbeatSeconds": 10}])
def test_an_activity_has_its_time_from_when_a_poller_has_taken_it(bound: dict[str, int]) -> None:
    """AWS docs, Task state: both counts begin when ActivityStarted is logged."""
    case = begun(task(ACTIVITY, **bound, Retry=AGAIN)).after(1_000)
    for attempt in (1, 2):
        assert pending_commands(case.state) == [OfferActivity(0, attempt)]
        case.offer(ActivityStarted(0, attempt, "w")).after(9)
        assert case.types.count("ActivityTimedOut") == attempt - 1
        case.after(2)
    assert case.failure == ("States.Timeout", None)
    assert case.types.count("ActivityTimedOut") == 2


def test_an_activity_of_a_snapshot_that_knows_its_due_time_keeps_it() -> None:
    """Code of the release before counted from the schedule."""
    state = begun(task(ACTIVITY, TimeoutSeconds=10)).state
    waiting = replace(state.frames[ROOT].waiting, due_ms=START_MS + 10_000, timeout_seconds=None)  # type: ignore[type-var]
    state = state.with_frame(state.frames[ROOT]._replace(waiting=waiting))
    state = from_json(to_json(state))
    last = state.last_event
    state = apply(state, Event("ActivityStarted", last + 1, last, START_MS + 5_000, {}, {}))
    assert state.frames[ROOT].waiting.due_ms == START_MS + 10_000  # type: ignore[union-attr]


def test_a_start_of_an_attempt_that_was_replaced_leaves_no_trace() -> None:
    case = begun(task(ACTIVITY, TimeoutSeconds=10, Retry=AGAIN))
    case.offer(ActivityStarted(0, 1, "w")).after(11).offer(ActivityStarted(0, 1, "late"))
    assert case.types.count("ActivityStarted") == 1


# -- in a branch ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "fact"),
    [
        (FUNCTION, TaskUnknown(1, 1)),
        (FUNCTION, TakenOver(1, 1)),
        (BUILD, Submitted(1, 1, None)),
        (BUILD, Polled(1, 1, 0)),
        (ACTIVITY, ActivityStarted(1, 1, "w")),
        (ACTIVITY, HeartbeatSeen(1, START_MS + 9_000)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_events_of_a_task_happen_in_its_branch(resource: str, fact: Fact) -> None:
    state = {**task(resource, Arguments={}, HeartbeatSeconds=30), "End": True}
    branch = {"StartAt": "it", "States": {"it": state}}
    case = MachineCase(machine({"all": {"Type": "Parallel", "Branches": [branch], "End": True}}))
    case.begin()
    if isinstance(fact, Polled):
        case.submit()
    if isinstance(fact, HeartbeatSeen):
        case.offer(ActivityStarted(1, 1, "w"))
    seen = len(case.events)
    case.offer(fact)

    assert {event.holdfast["frame"] for event in case.events[seen:]} == {"0.0"}


# -- counts ---------------------------------------------------------------------------------------


def durable_steps(case: MachineCase) -> float:
    measured = Counter[str]()
    for effect in measuring.committed(None, Transition(tuple(case.events), case.state)):
        assert isinstance(effect, Measure)
        measured[effect.name] += int(effect.value)
    return measured[METRIC_DURABLE_STEPS]


@pytest.mark.parametrize("resource", [SEND, FUNCTION, ACTIVITY])
@pytest.mark.parametrize(
    "end",
    [Succeeded(0, 1, None), FailedWith(0, 1, "E", None), TimedOut(0, 1)],
    ids=lambda end: type(end).__name__,
)
def test_the_end_of_an_attempt_is_a_durable_step(resource: str, end: Fact) -> None:
    case = begun(task(resource, Arguments={}))
    case.offer(ActivityStarted(0, 1, None))
    assert durable_steps(case) == 0
    case.offer(end)
    assert durable_steps(case) == 1


@pytest.mark.parametrize(
    ("resource", "event"), [(CALLBACK, "TaskSubmitFailed"), (SEND, "TaskFailed")]
)
def test_a_call_that_fails_before_its_answer_is_awaited_was_not_submitted(
    resource: str, event: str
) -> None:
    case = begun(task(resource, Arguments={}))
    case.offer(FailedWith(0, 1, "E", "C"))
    told = case.last(event)
    assert (told.details["error"], told.details["cause"]) == ("E", "C")


def test_a_submitted_task_that_fails_has_failed() -> None:
    case = begun(task(CALLBACK, Arguments={}))
    case.offer(Submitted(0, 1, {}))
    case.offer(FailedWith(0, 1, "E", "C"))
    assert case.last("TaskFailed").details["error"] == "E"


def test_the_end_of_a_wait_is_a_durable_step() -> None:
    assert durable_steps(begun({"Type": "Wait", "Seconds": 0})) == 1


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", [SEND, CALLBACK, FUNCTION, ACTIVITY])
def test_a_result_that_is_too_large_fails_the_task(resource: str) -> None:
    case = begun(task(resource, Arguments={}))
    if resource == CALLBACK:
        case.submit()
    case.succeed(TOO_LARGE)
    name = "sqs" if "sqs" in resource else resource
    cause = (
        f"The state/task '{name}' returned a result with a size exceeding the maximum number of "
        "bytes service limit."
    )
    assert case.failure == ("States.DataLimitExceeded", cause)


@pytest.mark.parametrize(("more", "status"), [(0, "SUCCEEDED"), (1, "FAILED")])
def test_a_result_is_measured_in_bytes_of_compact_json(more: int, status: str) -> None:
    around = len('{"a":"é","b":"é"}'.encode())
    text = "x" * (PAYLOAD_BYTES_MAX - around + more)
    assert begun(task(SEND, Arguments={})).succeed({"a": f"é{text}", "b": "é"}).status == status


def test_half_a_character_can_be_measured() -> None:
    half = "\ud800" + "x" * (PAYLOAD_BYTES_MAX // 2)
    assert begun(task(SEND, Arguments={})).succeed(half).output == half


def test_a_child_of_a_workflow_has_no_quota_on_sizes() -> None:
    origin: MachineOrigin = {**origin_of(), "is_unbounded": True}
    case = MachineCase(one(task(SEND, Arguments={})))
    case.offer(Started(RUN, "e", "m", None, START_MS, origin))
    assert case.succeed(TOO_LARGE).output == TOO_LARGE


def test_the_answer_of_a_call_may_be_too_large_as_well() -> None:
    assert begun(task(CALLBACK, Arguments={})).submit(TOO_LARGE).status == "FAILED"


def test_a_result_that_is_too_large_may_be_caught() -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "caught"}]
    states = {
        "it": {**task(SEND, Arguments={}, Catch=catch), "End": True},
        "caught": {"Type": "Pass", "Output": "{% $states.input.Error %}", "End": True},
    }
    case = MachineCase(machine(states)).begin()
    assert case.succeed(TOO_LARGE).output == "States.DataLimitExceeded"


def test_an_event_that_is_too_large_fails_one_wait() -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "it"}]
    states = {"it": {**wait_for("paid"), "Catch": catch}}
    case = MachineCase(machine(states)).begin()
    for _ in range(2):
        case.offer(EventReceived(case.waiting().entry, "e1", TOO_LARGE, START_MS + 60_000))
    assert case.types.count("TaskFailed") == 1
    assert "e1" in case.state.used_events


def test_the_arguments_of_a_task_may_be_too_large() -> None:
    given = {"MessageBody": "{% $states.input & $states.input %}"}
    case = begun(task(SEND, Arguments=given), "x" * (PAYLOAD_BYTES_MAX // 2))
    assert case.state.error == "States.DataLimitExceeded"
    assert "TaskScheduled" not in case.types


@pytest.mark.parametrize(("bytes_each", "status"), [(100, "SUCCEEDED"), (0, "FAILED")])
def test_the_variables_of_one_assign_share_the_quota(bytes_each: int, status: str) -> None:
    half = "x" * (PAYLOAD_BYTES_MAX // 2 - bytes_each)
    case = begun({"Type": "Pass", "Assign": {"a": half, "b": half}, "Output": 1})
    assert case.status == status
    assert case.state.error == (None if status == "SUCCEEDED" else "States.DataLimitExceeded")


def with_few_events(
    patch: pytest.MonkeyPatch, definition: Machine, most: int, kind: str = "STANDARD"
) -> MachineCase:
    """Run the machine with AWS's limit on its history, here of `most` events."""
    for module in (decision, advancing):
        patch.setattr(module, "HISTORY_EVENTS_MAX", most)
    origin: MachineOrigin = {**origin_of(kind), "has_history_limit": True}
    case = MachineCase(definition)
    case.offer(Started(RUN, "e", "m", None, START_MS, origin))
    return case


def test_a_history_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = machine({"it": {"Type": "Pass", "Next": "again"}, "again": {**PASS, "Next": "it"}})
    case = with_few_events(monkeypatch, endless, 10)
    assert case.failure == (
        "States.Runtime",
        "The execution reached the maximum number of history events (10).",
    )
    assert case.last("ExecutionFailed").id == 10


def test_the_last_event_of_a_history_may_be_its_success(monkeypatch: pytest.MonkeyPatch) -> None:
    two = machine({"it": {**PASS, "Next": "end"}, "end": {**PASS, "End": True}})
    assert with_few_events(monkeypatch, two, 6).status == "SUCCEEDED"
    assert with_few_events(monkeypatch, two, 5).status == "FAILED"


def test_a_running_task_does_not_outlive_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "caught"}]
    states = {
        "it": {**task(SEND, Arguments={}, Catch=catch), "End": True},
        "caught": {**PASS, "End": True},
    }
    case = with_few_events(monkeypatch, machine(states), 5)
    assert case.status == "RUNNING"
    case.succeed()
    assert (case.status, case.last("ExecutionFailed").id) == ("FAILED", 5)
    assert not pending_commands(case.state)


def test_an_execution_without_the_limit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "HISTORY_EVENTS_MAX", 3)
    assert begun({"Type": "Pass"}).status == "SUCCEEDED"


def test_a_workflow_has_no_quota_on_sizes() -> None:
    case = Case(one({"Type": "Pass", "Output": TOO_LARGE})).start()
    assert case.output == TOO_LARGE


def test_the_output_of_a_pass_may_be_too_large() -> None:
    case = begun({"Type": "Pass", "Output": "{% $states.input & 'x' %}"}, TOO_LARGE)
    assert case.state.error == "States.DataLimitExceeded"
    assert str(case.state.cause).startswith("The state/task 'it' returned")


@pytest.mark.parametrize(("own", "seconds"), [({}, 300), ({"TimeoutSeconds": 20}, 20)])
def test_an_express_execution_has_five_minutes_or_less(own: Any, seconds: int) -> None:
    rest = one({"Type": "Wait", "Seconds": 1_000}, **own)
    case = MachineCase(rest).begin(execution_type="EXPRESS")
    assert case.state.due_ms == START_MS + seconds * 1_000
    assert case.after(seconds).status == "TIMED_OUT"


@pytest.mark.parametrize(("execution_type", "counts"), [("STANDARD", {0}), ("EXPRESS", set())])
def test_an_express_execution_counts_no_redrives(execution_type: str, counts: set[int]) -> None:
    state = one({"Type": "Pass", "Output": "{% $states.context.Execution %}"})
    shown = MachineCase(state).begin(execution_type=execution_type).output

    assert {value for name, value in shown.items() if name == "RedriveCount"} == counts


def test_a_standard_execution_has_as_long_as_it_takes() -> None:
    assert begun({"Type": "Wait", "Seconds": 1_000}).state.due_ms is None


# -- fields that cannot be worked out --------------------------------------------------------------

NOTHING = "{% $states.input.a + 'x' %}"
FIELDS = [
    pytest.param(task(SEND, Arguments={"n": NOTHING}), id="Arguments"),
    pytest.param(task(SEND, Arguments={}, TimeoutSeconds="{% 'x' %}"), id="TimeoutSeconds"),
    pytest.param(task(SEND, Arguments={}, HeartbeatSeconds="{% 0 %}"), id="HeartbeatSeconds"),
    pytest.param({"Type": "Wait", "Seconds": NOTHING}, id="Seconds"),
    pytest.param({"Type": "Wait", "Timestamp": "{% 'soon' %}"}, id="Timestamp"),
    pytest.param({"Type": "Pass", "Output": NOTHING}, id="Output"),
    pytest.param({"Type": "Pass", "Assign": {"v": NOTHING}}, id="Assign"),
    pytest.param({"Type": "Fail", "Error": NOTHING}, id="Error"),
    pytest.param({"Type": "Fail", "Cause": NOTHING}, id="Cause"),
]


@pytest.mark.parametrize("state", FIELDS)
def test_a_field_that_cannot_be_worked_out_fails_the_execution_with_its_event(
    state: Machine,
) -> None:
    case = begun(state, {"a": 1})
    assert case.state.error == "States.QueryEvaluationError"
    assert case.types[-2:] == ["EvaluationFailed", "ExecutionFailed"]
    assert case.last("EvaluationFailed").details["state"] == "it"
    assert "(entered at the event id #2)" in str(case.state.cause)


def test_chance_is_drawn_once_for_a_variable_and_the_output_of_a_pass() -> None:
    states = {
        "it": {
            "Type": "Pass",
            "Parameters": {"id.$": "States.UUID()"},
            "Assign": {"kept.$": "$.id"},
            "Next": "show",
        },
        "show": {"Type": "Pass", "Parameters": {"kept.$": "$kept", "id.$": "$.id"}, "End": True},
    }
    output = Case({"StartAt": "it", "States": states}, draw=_draws()).start().output
    assert output["kept"] == output["id"]


def _draws() -> Any:
    numbers = iter(range(1, 1_000))
    return lambda: next(numbers) / 1_000


# -- tasks that end with their Parallel or Map -----------------------------------------------------


def test_states_that_are_open_when_a_branch_fails_say_that_they_were_aborted() -> None:
    branches = [
        {"StartAt": "fails", "States": {"fails": {**task(SEND, Arguments={}), "End": True}}},
        {"StartAt": "naps", "States": {"naps": {"Type": "Wait", "Seconds": 9, "End": True}}},
        {"StartAt": "calls", "States": {"calls": {**task(FUNCTION), "End": True}}},
    ]
    case = begun({"Type": "Parallel", "Branches": branches})
    failing = case.waiting("fails")
    case.offer(FailedWith(failing.entry, 1, "E", None))
    ends = case.types[case.types.index("TaskFailed") + 1 :]
    assert ends == [
        "TaskStateAborted",
        "WaitStateAborted",
        "LambdaFunctionStarted",
        "TaskStateAborted",
        "ParallelStateFailed",
        "ExecutionFailed",
    ]


def test_states_are_aborted_before_the_parallel_that_they_are_in() -> None:
    branch = {"StartAt": "naps", "States": {"naps": {"Type": "Wait", "Seconds": 9, "End": True}}}
    inner = {"Type": "Parallel", "Branches": [branch], "End": True}
    branches = [
        {"StartAt": "fails", "States": {"fails": {**task(SEND, Arguments={}), "End": True}}},
        {"StartAt": "inner", "States": {"inner": inner}},
    ]
    case = begun({"Type": "Parallel", "Branches": branches}).fail("E", at="fails")
    aborted = [name for name in case.types if name.endswith("Aborted")]
    assert aborted == ["TaskStateAborted", "WaitStateAborted", "ParallelStateAborted"]


def test_iterations_that_are_open_when_one_fails_are_aborted_with_their_states() -> None:
    processor = {
        "StartAt": "calls",
        "States": {"calls": {**task(SEND, Arguments={}), "End": True}},
    }
    case = begun({"Type": "Map", "ItemProcessor": processor}, [1, 2])
    waiting = [f.waiting for f in case.state.frames.values() if isinstance(f.waiting, Attempt)]
    case.offer(FailedWith(waiting[0].entry, 1, "E", None))
    ends = case.types[case.types.index("TaskFailed") + 1 :]
    assert sorted(ends) == [
        "ExecutionFailed",
        "MapIterationAborted",
        "MapIterationFailed",
        "MapStateFailed",
        "TaskStarted",
        "TaskStateAborted",
    ]
