"""The log of a state machine: what its executions write to CloudWatch Logs, at each level."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast import resources
from holdfast.limits import LOG_BATCH_EVENTS_MAX, LOG_DATA_BYTES_MAX
from holdfast.runtime import execution_logs
from holdfast.runtime.effects import Measure, RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast_simulator.world import Killed
from tests.unit.states_world import PASS, WAIT, Office, states

CALL = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets", "Arguments": {}}
GROUP = "/aws/vendedlogs/states/flow"
GROUP_ARN = f"arn:aws:logs:eu-west-1:123456789012:log-group:{GROUP}:*"
FATAL = {"ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted"}
LOGS = "aws-sdk:cloudwatchlogs:"
MISSING = TaskFailed("CloudWatchLogs.ResourceNotFoundException", "The log stream does not exist.")
Line = dict[str, Any]


class Logs:
    """CloudWatch Logs with one group. `events` has the log events of each stream, and `refusal`
    the answer to every call while it is set.
    """

    def __init__(self, work: Callable[[RunTask], TaskResult] = lambda _: TaskSucceeded({})) -> None:
        self.work = work
        self.events: dict[str, list[Line]] = {}
        self.calls: list[str] = []
        self.refusal: TaskFailed | None = None

    def perform(self, effect: RunTask) -> TaskResult:
        if not effect.name.startswith(LOGS):
            return self.work(effect)
        action, asked = effect.name.removeprefix(LOGS), effect.arguments
        if action == "describeLogGroups":
            return TaskSucceeded({"LogGroups": [{"LogGroupName": GROUP}]})
        self.calls.append(action)
        if self.refusal is not None:
            return self.refusal
        assert asked["LogGroupName"] == GROUP
        stream = asked["LogStreamName"]
        if action == "createLogStream":
            self.events.setdefault(stream, [])
        elif stream not in self.events:
            return MISSING
        else:
            times = [one["Timestamp"] for one in asked["LogEvents"]]
            assert times == sorted(times)
            self.events[stream] += asked["LogEvents"]
        return TaskSucceeded({})

    @property
    def lines(self) -> list[Line]:
        return [json.loads(one["Message"]) for all_ in self.events.values() for one in all_]

    @property
    def types(self) -> list[str]:
        return [line["type"] for line in self.lines]


def asked(level: str = "ALL", *, has_data: bool = True) -> dict[str, Any]:
    destination = {"cloudWatchLogsLogGroup": {"logGroupArn": GROUP_ARN}}
    return {"level": level, "includeExecutionData": has_data, "destinations": [destination]}


def logged(
    definition: dict[str, Any],
    level: str = "ALL",
    work: Callable[[RunTask], TaskResult] = lambda _: TaskSucceeded({"n": 1}),
    *,
    has_data: bool = True,
    data: Any = None,
    **machine: Any,
) -> tuple[Office, Logs, str]:
    """Run one execution of the machine to its end."""
    logs = Logs(work)
    office = Office(logs.perform)
    setting = asked(level, has_data=has_data)
    arn = office.create(definition, loggingConfiguration=setting, **machine)
    execution = office.start(arn, data)
    office.wait(1_000)
    return office, logs, execution


def as_logged(event: dict[str, Any], execution: str) -> Line:
    """Return the log event of an event of GetExecutionHistory."""
    details = [value for name, value in event.items() if name.endswith("EventDetails")]
    return {
        "id": str(event["id"]),
        "type": event["type"],
        "details": details[0] if details else {},
        "previous_event_id": str(event["previousEventId"]),
        "event_timestamp": str(round(event["timestamp"] * 1_000)),
        "execution_arn": execution,
        "redrive_count": "0",
    }


FAILING = states(A=PASS, B={**CALL, "Catch": [{"ErrorEquals": ["x"], "Next": "C"}]}, C=PASS)


def declined(_: RunTask) -> TaskFailed:
    return TaskFailed("Declined", "no money")


def test_the_log_has_every_event_of_the_history_in_the_shape_of_aws() -> None:
    office, logs, execution = logged(states(A=PASS, B=CALL), data={"order": 7})

    assert logs.lines == [as_logged(event, execution) for event in office.history(execution)]
    first = logs.lines[0]
    assert list(first) == [
        "id",
        "type",
        "details",
        "previous_event_id",
        "event_timestamp",
        "execution_arn",
        "redrive_count",
    ]
    assert first["details"]["input"] == '{"order":7}'
    (stream,) = logs.events
    assert stream.startswith("states/flow/20")


def test_a_delivery_writes_its_log_in_one_call() -> None:
    _, logs, _ = logged(states(A=CALL, B=CALL, C=CALL))
    # The stream of the day is made by the first.
    assert logs.calls == ["putLogEvents", "createLogStream", "putLogEvents"]


@pytest.mark.parametrize("level", ["ERROR", "FATAL"])
def test_a_level_leaves_out_what_is_no_error(level: str) -> None:
    _, logs, _ = logged(FAILING, level, declined)
    wanted = {"ERROR": ["TaskFailed", "ExecutionFailed"], "FATAL": ["ExecutionFailed"]}
    assert logs.types == wanted[level]


def test_a_machine_that_logs_nothing_costs_no_call() -> None:
    logs = Logs()
    office = Office(logs.perform)
    office.start(office.create(states(A=CALL)))
    office.wait(10)
    assert logs.calls == []
    office.start(office.create(states(A=CALL), "quiet", loggingConfiguration=asked("FATAL")))
    office.wait(10)
    assert logs.calls == []


#: AWS docs, table "Log levels": the types that are logged at ERROR, and those that only ALL has.
AT_ERROR = [
    "ExecutionAborted",
    "ExecutionFailed",
    "ExecutionTimedOut",
    "FailStateEntered",
    "LambdaFunctionFailed",
    "LambdaFunctionScheduleFailed",
    "LambdaFunctionStartFailed",
    "LambdaFunctionTimedOut",
    "MapIterationAborted",
    "MapIterationFailed",
    "MapStateAborted",
    "MapStateFailed",
    "ParallelStateAborted",
    "ParallelStateFailed",
    "TaskFailed",
    "TaskStartFailed",
    "TaskStateAborted",
    "TaskSubmitFailed",
    "TaskTimedOut",
    "WaitStateAborted",
]
AT_ALL = [
    "ChoiceStateEntered",
    "ChoiceStateExited",
    "ExecutionStarted",
    "ExecutionSucceeded",
    "LambdaFunctionScheduled",
    "LambdaFunctionStarted",
    "LambdaFunctionSucceeded",
    "MapIterationStarted",
    "MapIterationSucceeded",
    "MapStateEntered",
    "MapStateExited",
    "MapStateStarted",
    "MapStateSucceeded",
    "ParallelStateEntered",
    "ParallelStateExited",
    "ParallelStateStarted",
    "ParallelStateSucceeded",
    "PassStateEntered",
    "PassStateExited",
    "SucceedStateEntered",
    "SucceedStateExited",
    "TaskScheduled",
    "TaskStarted",
    "TaskStateEntered",
    "TaskStateExited",
    "TaskSubmitted",
    "TaskSucceeded",
    "WaitStateEntered",
    "WaitStateExited",
]


def test_the_levels_are_those_of_the_table_of_aws() -> None:
    table = defaultdict(set)
    for level in ("ALL", "ERROR", "FATAL"):
        for one in (*AT_ERROR, *AT_ALL):
            if execution_logs.is_wanted(level, one):
                table[level].add(one)
    assert table == {"ALL": {*AT_ERROR, *AT_ALL}, "ERROR": {*AT_ERROR}, "FATAL": FATAL}


def test_without_execution_data_the_log_has_no_values() -> None:
    _, logs, _ = logged(states(A=CALL), data={"card": "4111"}, has_data=False)
    assert "4111" not in json.dumps(logs.lines)
    assert not [line for line in logs.lines if {"input", "output"} & line["details"].keys()]


def test_data_that_is_too_long_is_cut_and_says_so() -> None:
    long = '"' * 100_000  # is 400,000 bytes when it is escaped twice
    _, logs, _ = logged(states(A=PASS), data=long)
    details = logs.lines[0]["details"]
    assert details["inputDetails"] == {"truncated": True}
    assert len(json.dumps(details["input"], ensure_ascii=False).encode()) <= LOG_DATA_BYTES_MAX
    assert json.dumps(long, ensure_ascii=False).startswith(details["input"])


def test_a_log_that_is_refused_is_counted_and_delays_nothing() -> None:
    measured: list[Measure] = []
    logs = Logs()
    logs.refusal = TaskFailed("CloudWatchLogs.AccessDeniedException", "no")
    office = Office(logs.perform)
    office.world.services.when_measured = measured.append
    execution = office.start(office.create(states(A=PASS), loggingConfiguration=asked()))
    office.wait(10)

    assert office.describe(execution)["status"] == "SUCCEEDED"
    lost = [one for one in measured if one.name == resources.METRIC_LOG_EVENTS_LOST]
    assert [(one.value, one.labels.error) for one in lost] == [
        (4, "CloudWatchLogs.AccessDeniedException")
    ]


def test_an_express_execution_is_found_by_its_log() -> None:
    logs = Logs()
    office = Office(logs.perform)
    setting = asked()
    machine = office.create(states(A=PASS), type="EXPRESS", loggingConfiguration=setting)
    arn = office.call("StartSyncExecution", stateMachineArn=machine)["executionArn"]
    other = office.start(machine)
    office.wait(10)

    assert {line["execution_arn"] for line in logs.lines} == {arn, other}
    own = [line["type"] for line in logs.lines if line["execution_arn"] == arn]
    assert own == ["ExecutionStarted", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"]


def test_an_express_execution_that_is_out_of_time_says_so() -> None:
    logs = Logs()
    office = Office(logs.perform)
    waits = states(A={"Type": "Wait", "Seconds": 400})
    machine = office.create(waits, type="EXPRESS", loggingConfiguration=asked("FATAL"))
    assert office.call("StartSyncExecution", stateMachineArn=machine)["status"] == "TIMED_OUT"
    assert logs.types == ["ExecutionTimedOut"]


def test_a_long_delivery_writes_now_and_then() -> None:
    logs = Logs()
    office = Office(logs.perform)

    def slow(_: RunTask) -> TaskSucceeded:
        office.world.now_ms += 6_000
        return TaskSucceeded({})

    logs.work = slow
    office.start(office.create(states(A=CALL, B=CALL, C=CALL), loggingConfiguration=asked()))
    office.wait(100)
    assert logs.calls.count("putLogEvents") > 2
    assert logs.types[-1] == "ExecutionSucceeded"
    assert len(logs.types) == len({line["id"] for line in logs.lines})


def test_the_children_of_a_map_log_where_their_parent_does() -> None:
    inner = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}
    processor = {**inner, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    each = {"Type": "Map", "Label": "L", "Items": [1, 2], "ItemProcessor": processor}
    _, logs, execution = logged(states(A=each))
    arns = {line["execution_arn"] for line in logs.lines}
    assert len(arns) == 3
    assert execution in arns


def test_a_redriven_execution_counts_in_its_log() -> None:
    answers: Iterator[TaskResult] = iter([TaskFailed("Once", None), TaskSucceeded({})])
    logs = Logs(lambda _: next(answers))
    office = Office(logs.perform)
    execution = office.start(office.create(states(A=CALL), loggingConfiguration=asked()))
    office.wait(10)
    office.call("RedriveExecution", executionArn=execution)
    office.wait(10)

    counts = {line["type"]: line["redrive_count"] for line in logs.lines}
    assert counts["ExecutionFailed"] == "0"
    assert (counts["ExecutionRedriven"], counts["ExecutionSucceeded"]) == ("1", "1")


def test_a_worker_that_crashed_before_its_log_has_it_written_by_the_next() -> None:
    logs = Logs()
    crashes = iter([True])

    def crash_once(world: Any, effect: Any, when: str) -> None:
        is_log = isinstance(effect, RunTask) and effect.name == f"{LOGS}putLogEvents"
        if is_log and when == "before" and next(crashes, False):
            raise Killed

    office = Office(logs.perform, crash_once)
    execution = office.start(office.create(states(A=PASS, B=CALL), loggingConfiguration=asked()))
    office.wait(2_000)

    ids = {int(line["id"]) for line in logs.lines}
    assert ids == {event["id"] for event in office.history(execution)}


def test_a_second_delivery_of_a_message_logs_the_same_events() -> None:
    logs = Logs()
    office = Office(logs.perform)
    machine = office.create(states(A=PASS, B=WAIT), loggingConfiguration=asked())
    execution = office.start(machine, {"order": 7})
    queue = office.world.services.queue("starts")
    (message,) = queue.messages.values()
    office.wait(1)
    queue.place(replace(message, key="copy", visible_at=office.world.now_ms, receive_count=0))
    office.wait(1_000)

    history = [as_logged(event, execution) for event in office.history(execution)]
    assert len(logs.lines) > len(history)
    assert [line for line in logs.lines if line not in history] == []


def test_many_events_are_written_in_several_calls() -> None:
    lines = [{"Timestamp": 1, "Message": "m"}] * (LOG_BATCH_EVENTS_MAX + 1)
    batches = list(execution_logs.batched_lines(lines))
    assert [len(batch) for batch in batches] == [LOG_BATCH_EVENTS_MAX, 1]

    long = [{"Timestamp": 1, "Message": "é" * 250_000}] * 4
    assert [len(batch) for batch in execution_logs.batched_lines(long)] == [2, 2]
