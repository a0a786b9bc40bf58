"""The worker at executions of state machines: nested ones, jobs, tokens, events on the bus."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from holdfast.core import advance
from holdfast.integrations import Integrations
from holdfast.limits import ATTEMPTS_IN_FLIGHT_MAX, CHILD_DEPTH_MAX
from holdfast.runtime import inbox, messages
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Deadline,
    Effect,
    Message,
    Put,
    PutIfAbsent,
    RunTask,
    Send,
    SetVisibility,
    TaskFailed,
    TaskPending,
    TaskResult,
    TaskSucceeded,
    WriteDeadline,
)
from holdfast.runtime.status_events import AWS_SOURCE
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import deliver
from holdfast.stepfunctions.api import CHANCE_BYTES
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.invariants import histories
from holdfast_simulator.world import Killed, SimulatorWorld, When, no_faults
from tests.sim.doctor_kit import purge
from tests.unit.integrations_kit import Clients
from tests.unit.states_kit import PLACE
from tests.unit.states_world import WAIT, Office, states

NEST = "arn:aws:states:::states:startExecution.sync"
BUILD = "arn:aws:states:::codebuild:startBuild.sync"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:f"
CALLBACK = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
FAIL = {"Type": "Fail", "Error": "E", "Cause": "why"}


def nest(**fields: Any) -> dict[str, Any]:
    arguments = {"StateMachineArn": PLACE.machine("inner")}
    return states(Nest={"Type": "Task", "Resource": NEST, "Arguments": arguments, **fields})


class Firm:
    """An office whose tasks start nested executions, and request a build that takes 10 s."""

    def __init__(self, is_told: bool = False) -> None:
        self.office = Office(self._work)
        self.world = self.office.world
        self.polled: list[tuple[int, RunTask]] = []
        self.tokens: list[str] = []
        self.build: TaskResult = TaskSucceeded("built")
        self._numbers = count(1_000)
        if is_told:
            self.world.setting = replace(self.world.setting, status_source=AWS_SOURCE)

    def _work(self, effect: RunTask) -> TaskResult:
        if effect.is_poll:
            self.polled.append((self.world.now_ms, effect))
            is_over = self.world.now_ms >= effect.submitted["until"]
            return self.build if is_over else TaskPending()
        if effect.name == "states:startExecution":
            return self._nest(effect)
        if effect.kind == "callback":
            self.tokens.append(effect.arguments["token"])
        return TaskSucceeded({"until": self.world.now_ms + 10_000})

    def _nest(self, effect: RunTask) -> TaskResult:
        chance = hashlib.sha256(str(next(self._numbers)).encode()).digest()[:CHANCE_BYTES]
        request = {"stateMachineArn": effect.arguments["StateMachineArn"]}
        call = self.office.api.call("StartExecution", request, chance, _parent(effect))
        return TaskSucceeded({"ExecutionArn": run(call, self.office.perform)["executionArn"]})

    def start(self, outer: dict[str, Any], inner: dict[str, Any] | None = None) -> str:
        if inner is not None:
            self.office.create(inner, "inner")
        execution = self.office.start(self.office.create(outer, "outer"), name="e1")
        self.office.wait(2)
        return execution

    def nested(self) -> dict[str, Any]:
        rows = self.office.call("ListExecutions", stateMachineArn=PLACE.machine("inner"))
        (row,) = rows["executions"]
        return self.office.describe(row["executionArn"])


def handle(world: SimulatorWorld, delivery: ReceivedMessage) -> bool:
    """One delivery by hand, of a message that is in no queue."""

    def perform(effect: Effect) -> Any:
        match effect:
            case WriteDeadline() | Deadline():
                return world.now_ms + 100_000
            case SetVisibility():
                return None
            case _:
                return world.perform(effect)

    return bool(run(deliver(world.setting, delivery), perform))


def _parent(effect: RunTask) -> Any:
    return {"run": effect.run, "entry": effect.entry, "attempt": effect.attempt, "as_json": False}


# -- nested executions -----------------------------------------------------------------------------


def test_the_output_of_a_nested_execution_is_that_of_the_task() -> None:
    firm = Firm()
    execution = firm.start(nest(), states(Done={"Type": "Pass", "Output": 7}))
    found = json.loads(firm.office.describe(execution)["output"])
    assert (found["Status"], found["Output"]) == ("SUCCEEDED", "7")
    assert found["ExecutionArn"] == firm.nested()["executionArn"]
    assert firm.office.types(execution)[2:6] == [
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
    ]


def test_the_failure_of_a_nested_execution_is_that_of_the_task() -> None:
    firm = Firm()
    found = firm.office.describe(firm.start(nest(), states(No=FAIL)))
    assert (found["status"], found["error"]) == ("FAILED", "States.TaskFailed")
    told = json.loads(found["cause"])
    assert (told["Error"], told["Cause"], told["Status"]) == ("E", "why", "FAILED")


def test_a_machine_that_calls_itself_without_end_fails_before_ids_grow_too_long() -> None:
    """Each fails with the failure of the one below; the innermost was not let in."""

    def work(effect: RunTask) -> TaskResult:
        return integrations.perform(effect)

    office = Office(work)

    def answer(operation: str, request: dict[str, Any], effect: RunTask) -> dict[str, Any]:
        chance = hashlib.sha256(effect.run.encode()).digest()[:CHANCE_BYTES]
        return dict(
            run(office.api.call(operation, request, chance, _parent(effect)), office.perform)
        )

    integrations = Integrations(Clients({}), answer)  # type: ignore[arg-type]
    office.create(nest(), "inner")
    execution = office.start(PLACE.machine("inner"))
    office.wait(600)
    assert office.describe(execution)["error"] == "States.TaskFailed"
    errors = [history.state.error for history in histories(office.world)]
    assert errors == ["States.TaskFailed"] * CHILD_DEPTH_MAX + ["Holdfast.TooDeep"]


def test_arguments_that_are_no_request_fail_the_state_before_its_task_is_scheduled() -> None:
    office = Office()
    services = Integrations(Clients({}), lambda *_: {})  # type: ignore[arg-type]
    office.world.setting = replace(office.world.setting, misuse=services.find_misuse)
    send: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage"}
    send |= {
        "Arguments": "{% {'Body': 1} %}",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Rest"}],
    }
    execution = office.start(office.create(states(Send=send, Rest=WAIT)))
    office.wait(1)
    events = office.call("GetExecutionHistory", executionArn=execution)["events"]
    assert [event["type"] for event in events] == [
        "ExecutionStarted",
        "TaskStateEntered",
        "ExecutionFailed",
    ]
    assert office.describe(execution)["cause"] == (
        "An error occurred while executing the state 'Send' (entered at the event id #2). "
        "The Parameters '{\"Body\":1}' could not be used to start the Task: "
        '[The field "Body" is not supported by Step Functions]'
    )


def test_a_stopped_parent_stops_its_awaited_children() -> None:
    firm = Firm()
    execution = firm.start(nest(), states(Rest=WAIT))
    assert firm.nested()["status"] == "RUNNING"
    firm.office.call("StopExecution", executionArn=execution)
    firm.office.wait(2)
    assert firm.office.describe(execution)["status"] == "ABORTED"
    assert firm.nested()["status"] == "ABORTED"


def test_a_task_that_times_out_stops_its_child_or_job() -> None:
    firm = Firm()
    execution = firm.start(nest(TimeoutSeconds=10), states(Rest=WAIT))
    firm.office.wait(15)
    assert firm.office.describe(execution)["error"] == "States.Timeout"
    assert firm.nested()["status"] == "ABORTED"


def test_a_parent_that_is_stopped_during_a_call_stops_the_started_child() -> None:
    """The stop is committed by another delivery, before the answer of the call is."""
    firm = Firm()
    nested = nest()
    nested["States"]["Rest"] = {"Type": "Wait", "Seconds": 3, "Next": "Nest"}
    nested["StartAt"] = "Rest"
    execution = PLACE.machine("outer").replace(":stateMachine:", ":execution:") + ":e1"
    begin = firm.office.world.tasks

    def begin_and_stop(effect: RunTask) -> TaskResult:
        result = begin(effect)
        firm.office.call("StopExecution", executionArn=execution)
        firm.world.run(until_ms=firm.world.now_ms)
        return result

    firm.world.tasks = begin_and_stop
    assert firm.start(nested, states(Rest=WAIT)) == execution
    firm.office.wait(10)
    assert firm.office.describe(execution)["status"] == "ABORTED"
    assert firm.nested()["status"] == "ABORTED"


# -- jobs ------------------------------------------------------------------------------------------

JOB = {"Type": "Task", "Resource": BUILD, "Arguments": {"ProjectName": "p"}}


def test_a_job_is_polled_with_the_answer_of_its_call_until_it_has_ended() -> None:
    firm = Firm()
    began_ms = firm.world.now_ms
    execution = firm.start(states(Job=JOB))
    firm.office.wait(60)
    assert firm.office.describe(execution)["output"] == '"built"'
    assert [(at_ms - began_ms) // 1_000 for at_ms, _ in firm.polled] == [2, 5, 10]
    _, effect = firm.polled[-1]
    assert effect.submitted == {"until": began_ms + 10_000}
    assert effect.arguments == {"ProjectName": "p"}


def test_a_job_that_fails_fails_its_task() -> None:
    firm = Firm()
    firm.build = TaskFailed("States.TaskFailed", "the build is broken")
    execution = firm.start(states(Job=JOB))
    firm.office.wait(60)
    found = firm.office.describe(execution)
    assert (found["error"], found["cause"]) == ("States.TaskFailed", "the build is broken")


def test_a_job_that_does_not_end_is_asked_for_until_its_task_times_out() -> None:
    firm = Firm()
    firm.build = TaskPending()
    execution = firm.start(states(Job={**JOB, "TimeoutSeconds": 3_600}))
    firm.office.wait(4_000)
    assert firm.office.describe(execution)["error"] == "States.Timeout"
    assert 60 <= len(firm.polled) <= 70


def test_one_delivery_asks_for_no_more_jobs_than_it_may_have_in_flight() -> None:
    firm = Firm()
    firm.build = TaskPending()
    branches = [{"StartAt": f"J{n}", "States": {f"J{n}": {**JOB, "End": True}}} for n in range(50)]
    execution = firm.start(states(All={"Type": "Parallel", "Branches": branches}))
    firm.world.now_ms += 60_000
    (record, *_) = firm.world.services.items("executions")
    run_id = str(record["pk"]).partition("#")[2]
    delivery = ReceivedMessage(messages.recover("default", run_id), "m", 1, "owner", 0)

    firm.polled.clear()
    assert handle(firm.world, delivery)
    assert len(firm.polled) == ATTEMPTS_IN_FLIGHT_MAX
    assert firm.office.describe(execution)["status"] == "RUNNING"


# -- redrive ---------------------------------------------------------------------------------------


def test_a_redriven_execution_is_listed_once_though_its_end_held_a_snapshot() -> None:
    """The record of the end is read by its snapshot alone: its log had begun to age."""
    office = Office()
    nap = {"Type": "Wait", "Seconds": 46 * 86_400 - 3_600}
    execution = office.start(office.create(states(Rest=nap, No=FAIL)), name="e1")
    office.wait(47 * 86_400)
    assert any("ss" in item for item in office.world.services.items("executions"))
    office.call("RedriveExecution", executionArn=execution)
    office.wait(5)
    assert office.describe(execution)["redriveCount"] == 1
    assert sum("lp" in item for item in office.world.services.items("executions")) == 1


def test_a_renewal_that_finds_a_redrive_carries_it_out() -> None:
    """A record of its own would replace the redrive, whose message would then be over."""
    office = Office()
    nap = {"Type": "Wait", "Seconds": 46 * 86_400 - 3_600}
    execution = office.start(office.create(states(Rest=nap, No=FAIL)), name="e1")
    office.wait(47 * 86_400)
    office.call("RedriveExecution", executionArn=execution)
    (record, *_) = office.world.services.items("executions")
    run_id = str(record["pk"]).partition("#")[2]
    delivery = ReceivedMessage(messages.renew("default", run_id), "m", 1, "owner", 0)

    assert handle(office.world, delivery)
    assert office.describe(execution)["redriveCount"] == 1


def test_two_redrives_of_one_end_are_one() -> None:
    """The other one was not for the end that the first came to, in the same second."""
    office = Office()
    execution = office.start(office.create(states(No=FAIL)))
    office.wait(60)
    office.call("RedriveExecution", executionArn=execution)
    with pytest.raises(StatesFault, match="cannot be redriven"):
        office.call("RedriveExecution", executionArn=execution)
    office.wait(60)
    assert office.describe(execution)["redriveCount"] == 1


def test_a_stop_between_two_redrives_is_not_lost() -> None:
    office = Office()
    rest = {**WAIT, "Seconds": 600}
    execution = office.start(office.create(states(Rest=rest)))
    office.call("StopExecution", executionArn=execution)
    office.wait(5)
    (record, *_) = office.world.services.items("executions")
    log = Log("default", str(record["pk"]).partition("#")[2], "owner", "")
    wishes = [
        {"kind": inbox.REDRIVE},
        {"error": "No", "cause": "after all"},
        {"kind": inbox.REDRIVE},
    ]
    for number, fields in enumerate(wishes):
        at_ms = office.world.now_ms + number
        item = inbox.control_item("default", log.run, f"{at_ms:015d}", at_ms, fields)
        office.world.services.perform(Put("mail", item))
    wake = messages.wake_mail("default", log.run, keys.control(""))
    office.world.services.perform(Send((Message(wake),)))
    office.wait(60)
    # The second redrive has no wake yet. It is still pending, so the execution counts as running.
    events = office.call("GetExecutionHistory", executionArn=execution)["events"]
    assert [one["type"] for one in events[-2:]] == ["ExecutionRedriven", "ExecutionAborted"]
    assert events[-1]["executionAbortedEventDetails"]["error"] == "No"
    assert office.describe(execution)["status"] == "RUNNING"


def test_a_renewal_does_not_delete_a_message_whose_task_another_worker_has_leased() -> None:
    """The first worker with the message has redriven the execution, and crashed."""

    def die(_world: SimulatorWorld, effect: Effect, _when: When) -> None:
        if isinstance(effect, RunTask):
            raise Killed

    office = Office(lambda _: TaskFailed("E", None))
    execution = office.start(office.create(states(Try={"Type": "Task", "Resource": FUNCTION})))
    office.wait(5)
    office.call("RedriveExecution", executionArn=execution)
    (record, *_) = office.world.services.items("executions")
    body = messages.renew("default", str(record["pk"]).partition("#")[2])

    office.world.hook = die
    with pytest.raises(Killed):
        handle(office.world, ReceivedMessage(body, "m", 1, "first", 0))
    office.world.hook = no_faults
    assert not handle(office.world, ReceivedMessage(body, "m", 2, "second", 0))


def test_a_renewal_past_its_limit_writes_nothing() -> None:
    office = Office()
    execution = office.start(office.create(states(Rest={**WAIT, "Seconds": 600})))
    office.wait(5)
    before = office.world.services.items("executions")
    body = messages.renew("default", str(before[0]["pk"]).partition("#")[2])

    def perform(effect: Effect) -> Any:
        return (
            office.world.now_ms
            if isinstance(effect, WriteDeadline)
            else office.world.perform(effect)
        )

    office.world.now_ms += 50 * 86_400_000
    delivery = ReceivedMessage(body, "m", 1, "owner", office.world.now_ms)
    assert not run(deliver(office.world.setting, delivery), perform)
    assert office.world.services.items("executions") == before
    assert office.describe(execution)["status"] == "RUNNING"


def test_a_redrive_is_watched_at_once() -> None:
    """No start message guards it; and its own message may vanish, as here, with its worker."""
    outcomes: list[TaskResult] = [TaskSucceeded("done"), TaskFailed("E", None)]

    def die_after_redrive(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_record = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if is_record and when == "after" and not world.kills:
            purge(world)
            raise Killed

    office = Office(lambda _: outcomes.pop())
    execution = office.start(office.create(states(Try={"Type": "Task", "Resource": FUNCTION})))
    office.wait(1)
    assert office.describe(execution)["status"] == "FAILED"
    office.world.hook = die_after_redrive
    office.call("RedriveExecution", executionArn=execution)
    office.wait(7_200)
    assert (office.world.kills, office.describe(execution)["status"]) == (1, "SUCCEEDED")


# -- tokens ----------------------------------------------------------------------------------------


def test_every_worker_that_schedules_an_attempt_makes_the_same_token() -> None:
    """After lost answers and races another worker decides: the caller's token must not depend on
    the worker.
    """
    tokens = set()
    for is_lost in (False, True):
        firm = Firm()
        ask = {"Type": "Task", "Resource": CALLBACK}
        arguments = "{% {'token': $states.context.Task.Token} %}"
        execution = firm.office.start(
            firm.office.create(
                states(Rest={**WAIT, "Seconds": 5}, Ask={**ask, "Arguments": arguments})
            )
        )
        if is_lost:
            firm.world.hook = _DeliversTwice()
        firm.office.wait(300)
        assert firm.office.describe(execution)["status"] == "RUNNING"
        tokens |= set(firm.tokens)
    assert len(tokens) == 1


class _DeliversTwice:
    """The first delivery is over before anything was done, and its message comes again."""

    def __init__(self) -> None:
        self._is_done = False

    def __call__(self, world: Any, effect: Any, when: str) -> None:
        if isinstance(effect, SetVisibility) and when == "after" and not self._is_done:
            self._is_done = True
            raise Killed


# -- events on the bus -----------------------------------------------------------------------------


def test_the_start_and_the_end_of_an_execution_are_published() -> None:
    firm = Firm(is_told=True)
    execution = firm.start(states(Rest={**WAIT, "Seconds": 1}, No=FAIL))
    firm.office.wait(60)
    running, failed = firm.world.services.published
    assert (running.source, running.detail_type) == (
        "aws.states",
        "Step Functions Execution Status Change",
    )
    assert running.resources == (execution,)
    shown = firm.office.describe(execution)
    assert running.detail == {
        "executionArn": execution,
        "stateMachineArn": PLACE.machine("outer"),
        "stateMachineVersionArn": None,
        "stateMachineAliasArn": None,
        "name": "e1",
        "status": "RUNNING",
        "startDate": int(shown["startDate"] * 1_000),
        "stopDate": None,
        "input": "{}",
        "inputDetails": {"included": True},
        "output": None,
        "outputDetails": None,
        "error": None,
        "cause": None,
        "redriveCount": 0,
        "redriveDate": None,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": "Execution is RUNNING and cannot be redriven",
    }
    assert failed.detail == {
        **running.detail,
        "status": "FAILED",
        "stopDate": int(shown["stopDate"] * 1_000),
        "error": "E",
        "cause": "why",
        "redriveStatus": "REDRIVABLE",
        "redriveStatusReason": None,
    }


def test_the_loser_of_a_race_publishes_a_start_that_a_snapshot_hides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first worker with the message froze at record 0, wrote it and crashed; others continued
    from there.
    """
    monkeypatch.setattr(advance, "PURE_STATES_PER_RECORD_MAX", 1)
    monkeypatch.setattr("holdfast.runtime.storage.log.SNAPSHOT_BYTES_MIN", 0)
    monkeypatch.setattr("holdfast.runtime.storage.log.SNAPSHOT_RATIO", 0)
    puts: list[PutIfAbsent] = []

    def freeze_the_first(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_put = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if not is_put or when != "before":
            return
        assert isinstance(effect, PutIfAbsent)
        puts.append(effect)
        if len(puts) == 1:
            raise Killed  # Nothing else shows this crash
        if len(puts) == 2:
            world.services.perform(puts[0])
            body = messages.recover("default", str(effect.item["pk"]).partition("#")[2])
            assert handle(world, ReceivedMessage(body, "m", 1, "another", world.now_ms))

    firm = Firm(is_told=True)
    firm.world.hook = freeze_the_first
    firm.start(states(**{f"S{n}": {"Type": "Pass"} for n in range(9)}))
    firm.office.wait(600)
    told = [event.detail["status"] for event in firm.world.services.published]
    assert sorted(set(told)) == ["RUNNING", "SUCCEEDED"]


def test_an_end_whose_message_is_gone_is_published_after_the_sweepers_check() -> None:
    """It was delivered twice: one worker deleted it, while the other one wrote the end, and
    crashed.
    """

    def die(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not isinstance(effect, PutIfAbsent) or when != "after":
            return
        if effect.table == "executions" and effect.item["st"] == "FAILED":
            purge(world)
            raise Killed

    firm = Firm(is_told=True)
    firm.world.hook = die
    firm.start(states(Rest={**WAIT, "Seconds": 1}, No=FAIL))
    firm.office.wait(4_000)
    assert [one.detail["status"] for one in firm.world.services.published] == ["RUNNING", "FAILED"]


def test_an_end_that_is_redriven_at_once_is_published_after_its_writer_crashed() -> None:
    has_died = False

    def die(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        nonlocal has_died
        if has_died or not isinstance(effect, PutIfAbsent) or when != "after":
            return
        if effect.table == "executions" and effect.item["st"] == "FAILED":
            has_died = True
            raise Killed

    firm = Firm(is_told=True)
    firm.world.hook = die
    execution = firm.start(states(Rest={**WAIT, "Seconds": 1}, No=FAIL))
    firm.office.call("RedriveExecution", executionArn=execution)
    firm.office.wait(4_000)
    told = {
        (one.detail["status"], one.detail["redriveCount"]) for one in firm.world.services.published
    }
    assert told == {("RUNNING", 0), ("FAILED", 0), ("RUNNING", 1), ("FAILED", 1)}


def test_data_that_no_event_can_hold_is_left_out() -> None:
    firm = Firm(is_told=True)
    machine = firm.office.create(states(Done={"Type": "Pass"}))
    firm.office.start(machine, "x" * 140_000)
    firm.office.wait(1)
    running, succeeded = (event.detail for event in firm.world.services.published)
    assert running["inputDetails"] == {"included": True}
    assert (succeeded["input"], succeeded["inputDetails"]) == (None, {"included": False})
    assert succeeded["outputDetails"] == {"included": True}


@pytest.mark.parametrize("execution_type", ["STANDARD", "EXPRESS"])
def test_express_executions_and_silent_workers_publish_nothing(execution_type: str) -> None:
    firm = Firm(is_told=execution_type == "EXPRESS")
    machine = firm.office.create(states(Done={"Type": "Pass"}), type=execution_type)
    firm.office.start(machine)
    firm.office.wait(1)
    assert firm.world.services.published == []
