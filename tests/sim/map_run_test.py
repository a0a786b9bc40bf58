"""Distributed Maps through the real handlers, killed at every effect: the outcome is the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.definitions import Programs
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.worker import Setting
from holdfast.sim.invariants import History, check, histories, lost
from holdfast.sim.world import CrashAt, Hook, Killed, RandomCrashes, When, World, no_faults
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from tests.builders import KEYS, Machine, machine
from tests.unit.states_kit import PLACE, ROLE

READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "ReaderConfig": {"InputType": "JSON"},
    "Arguments": {"Bucket": "b", "Key": "k"},
}
WRITER = {"Resource": "arn:aws:states:::s3:putObject", "Arguments": {"Bucket": "b"}}
ITEMS = [{"n": n} for n in range(7)]
SEND = "arn:aws:states:::sqs:sendMessage"
DOUBLE = {"Type": "Task", "Resource": SEND, "Arguments": {"n": "{% $states.input.n %}"}}
TOKEN = {"n": 0, "token": "{% $states.context.Task.Token %}"}
WAIT = {"Type": "Task", "Resource": f"{SEND}.waitForTaskToken", "Arguments": TOKEN}


def a_map(states: Machine, **fields: Any) -> Machine:
    """A distributed Map of these states, each of which ends it unless it says otherwise."""
    ends = {
        name: state if "Next" in state or "Choices" in state else {**state, "End": True}
        for name, state in states.items()
    }
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": next(iter(states)),
        "States": ends,
    }
    return {"Type": "Map", "ItemProcessor": processor, **fields}


def work(effect: RunTask) -> TaskSucceeded | TaskFailed:
    match effect.kind:
        case "read":
            return TaskSucceeded({"items": ITEMS, "sources": [["S3://b/k", len(ITEMS)]]})
        case "write":
            return TaskSucceeded([r["status"] for r in effect.arguments["results"]])
        case _ if effect.arguments["n"] < 0:
            return TaskFailed("Negative", None)
        case _:
            return TaskSucceeded(2 * effect.arguments["n"])


class Stack:
    """One world, one state machine of one Map, and the API to both."""

    def __init__(self, definition: Machine, hook: Hook = no_faults) -> None:
        programs = Programs()
        self.world = World(Setting(programs, lambda *_: True, lambda: KEYS), work, hook)
        self._api = StatesApi(Service(programs, KEYS, "default", PLACE, PAYLOAD_BYTES_MAX))
        text = json.dumps(machine({"all": {**definition, "End": True}}))
        made = self._call("CreateStateMachine", name="m", definition=text, roleArn=ROLE)
        self._machine = made["stateMachineArn"]

    def start(self, data: Any) -> str:
        request = {"stateMachineArn": self._machine, "name": "e1", "input": json.dumps(data)}
        return str(self._call("StartExecution", **request)["executionArn"])

    def stop(self, arn: str) -> None:
        self._call("StopExecution", executionArn=arn)

    def run(self, data: Any) -> Any:
        """One execution from start to end; -> its output, or its error."""
        self.start(data)
        self.world.run()
        state = self.parent.state
        return state.output if state.status == "SUCCEEDED" else state.error

    @property
    def parent(self) -> History:
        return next(history for history in histories(self.world) if "." not in history.run)

    @property
    def children(self) -> Counter[str]:
        """-> how many children there are, by status."""
        found = [history for history in histories(self.world) if "." in history.run]
        return Counter(history.state.status for history in found)

    @property
    def is_sound(self) -> bool:
        return (check(self.world), lost(self.world)) == ([], [])

    def _call(self, operation: str, **request: Any) -> Any:
        """As a caller does who tries again until an answer comes."""
        for _ in range(10):
            try:
                return self.world.call(self._api.call(operation, request, bytes(CHANCE_BYTES)))
            except Killed:
                self.world.kills += 1
        raise AssertionError("no answer in ten tries")


MANY = a_map({"double": DOUBLE}, Items="{% $states.input %}", MaxConcurrency=3)
READ = a_map({"double": DOUBLE}, ItemReader=READER, ResultWriter=WRITER, MaxConcurrency=3)
INNER = a_map({"double": DOUBLE}, Items="{% [$states.input, $states.input] %}")
NESTED = a_map({"inner": INNER}, Items="{% $states.input %}")

#: Definition, input, output, and how many children there are in the end.
MAPS = [
    pytest.param(MANY, ITEMS, [2 * n for n in range(7)], 7, id="items"),
    pytest.param(READ, None, ["SUCCEEDED"] * 7, 7, id="read and written"),
    pytest.param(NESTED, ITEMS[:3], [[0, 0], [2, 2], [4, 4]], 9, id="nested"),
]


@pytest.mark.parametrize(("definition", "data", "output", "count"), MAPS)
def test_every_child_runs_once_and_its_result_counts_once(
    definition: Machine, data: Any, output: Any, count: int
) -> None:
    stack = Stack(definition)
    assert stack.run(data) == output
    assert stack.children == {"SUCCEEDED": count}
    assert set(stack.world.task_runs.values()) == {1}
    assert stack.is_sound


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("definition", "data", "output", "count"), MAPS)
def test_one_crash_at_any_effect_changes_nothing(
    definition: Machine, data: Any, output: Any, count: int, when: When
) -> None:
    counting = CrashAt(None, when)
    Stack(definition, counting).run(data)
    assert counting.seen > 100
    for number in range(counting.seen):
        stack = Stack(definition, CrashAt(number, when))
        assert stack.run(data) == output, number
        assert stack.world.kills == 1
        assert stack.children == {"SUCCEEDED": count}, number
        assert stack.is_sound, number


def test_crashes_at_random_lose_no_child() -> None:
    for seed in range(10):
        print(f"seed {seed}")
        stack = Stack(NESTED, RandomCrashes(seed, chance=0.02, crashes_max=200))
        assert stack.run(ITEMS) == [[2 * n, 2 * n] for n in range(7)]
        assert stack.is_sound


# -- what ends with the parent ---------------------------------------------------------------------


def test_a_parent_that_is_stopped_stops_its_children() -> None:
    stack = Stack(a_map({"wait": WAIT}, Items="{% $states.input %}"))
    arn = stack.start([1, 2, 3])
    stack.world.run()
    assert stack.children == {"RUNNING": 3}
    stack.stop(arn)
    stack.world.run()
    assert stack.parent.state.status == "ABORTED"
    assert stack.children == {"ABORTED": 3}
    assert stack.is_sound


def test_stopping_reaches_the_children_of_children() -> None:
    inner = a_map({"wait": WAIT}, Items=[1, 2])
    stack = Stack(a_map({"inner": inner}, Items="{% $states.input %}"))
    arn = stack.start([1, 2])
    stack.world.run()
    stack.stop(arn)
    stack.world.run()
    assert stack.children == {"ABORTED": 2 + 4}
    assert stack.is_sound


@pytest.mark.parametrize("fields", [{}, {"ResultWriter": WRITER}])
def test_a_failure_too_many_stops_the_others(fields: Machine) -> None:
    rule = {"Condition": "{% $states.input.n < 0 %}", "Next": "double"}
    which = {"Type": "Choice", "Choices": [rule], "Default": "wait"}
    states = {"which": which, "double": DOUBLE, "wait": WAIT}
    stack = Stack(a_map(states, Items="{% $states.input %}", **fields))
    error = stack.run([{"n": 1}, {"n": -1}, {"n": 2}])
    assert error == "States.ExceedToleratedFailureThreshold"
    assert stack.children == {"FAILED": 1, "ABORTED": 2}
    assert stack.is_sound
