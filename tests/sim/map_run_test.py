"""Distributed Maps through the real handlers, killed at every effect: the outcome is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.runtime.effects import Effect, PutIfAbsent, RunTask, TaskFailed, TaskSucceeded
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.services import WORK_QUEUES
from holdfast_simulator.world import (
    CrashAt,
    Hook,
    Killed,
    RandomCrashes,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import Machine, Shop, machine
from tests.thorough import some
from tests.unit.stack_kit import Stack

READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "ReaderConfig": {"InputType": "JSON"},
    "Arguments": {"Bucket": "b", "Key": "k"},
}
WRITER = {"Resource": "arn:aws:states:::s3:putObject", "Arguments": {"Bucket": "b"}}
ITEMS = [{"n": n} for n in range(7)]
SEND = "arn:aws:states:::sqs:sendMessage"
DOUBLE = {"Type": "Task", "Resource": SEND, "Arguments": "{% {'n': $states.input.n} %}"}
TOKEN = "{% {'n': 0, 'token': $states.context.Task.Token} %}"
WAIT = {"Type": "Task", "Resource": f"{SEND}.waitForTaskToken", "Arguments": TOKEN}


def a_map(states: Machine, execution_type: str = "STANDARD", **fields: Any) -> Machine:
    """A distributed Map of these states, each of which ends it unless it says otherwise."""
    ends = {
        name: state if "Next" in state or "Choices" in state else {**state, "End": True}
        for name, state in states.items()
    }
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": execution_type},
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


def stack_of(definition: Machine, hook: Hook = no_faults) -> Stack:
    """A state machine of one Map."""
    return Stack(json.dumps(machine({"all": {**definition, "End": True}})), work, hook)


MANY = a_map({"double": DOUBLE}, Items="{% $states.input %}", MaxConcurrency=3)
READ = a_map({"double": DOUBLE}, ItemReader=READER, ResultWriter=WRITER, MaxConcurrency=3)
SUM = {"Type": "Pass", "Output": "{% $sum($states.input.Items.n) %}"}
BATCH = {"MaxItemsPerBatch": 2}
BATCHED = a_map({"sum": SUM}, "EXPRESS", Items="{% $states.input %}", ItemBatcher=BATCH)
INNER = a_map({"double": DOUBLE}, Items="{% [$states.input, $states.input] %}")
NESTED = a_map({"inner": INNER}, Items="{% $states.input %}")

WHOLE = "read and written"
#: Definition, input, output, and how many children there are in the end.
MAPS = [
    pytest.param(MANY, ITEMS, [2 * n for n in range(7)], 7, id="items"),
    pytest.param(READ, None, ["SUCCEEDED"] * 7, 7, id=WHOLE),
    pytest.param(BATCHED, [{"n": n} for n in range(9)], [1, 5, 9, 13, 8], 5, id="batches"),
    pytest.param(NESTED, ITEMS[:3], [[0, 0], [2, 2], [4, 4]], 9, id="nested"),
]


@pytest.mark.parametrize(("definition", "data", "output", "count"), MAPS)
def test_every_child_runs_once_and_its_result_counts_once(
    definition: Machine, data: Any, output: Any, count: int
) -> None:
    stack = stack_of(definition)
    assert stack.run(data) == output
    assert stack.children == {"SUCCEEDED": count}
    assert set(stack.world.task_runs.values()) <= {1}
    assert stack.is_sound


def test_a_map_of_a_workflow_runs_as_that_of_a_state_machine() -> None:
    """Its children call services although no ARN of a machine gives a region."""
    shop = Shop(machine({"all": {**MANY, "End": True}}), work)
    history = shop.run(ITEMS)
    assert history.state.output == [2 * n for n in range(7)]
    origins = [one.state.origin for one in histories(shop.world) if "." in one.run]
    machines = {origin["state_machine_arn"].rpartition("/")[0] for origin in origins if origin}
    assert (len(origins), machines) == (7, {"arn:holdfast:states:holdfast::stateMachine:flow"})
    assert (check(shop.world), lost(shop.world)) == ([], [])


#: Reading and writing pass through all stages of the others except a child of a child.
CRASHED = [
    pytest.param(*param.values, id=param.id, marks=[pytest.mark.slow] * (param.id != WHOLE))
    for param in MAPS
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("definition", "data", "output", "count"), CRASHED)
def test_one_crash_at_any_effect_changes_nothing(
    definition: Machine, data: Any, output: Any, count: int, when: When
) -> None:
    counting = CrashAt(None, when)
    stack_of(definition, counting).run(data)
    assert counting.seen > 100
    for number in some(counting.numbers):
        stack = stack_of(definition, CrashAt(number, when))
        assert stack.run(data) == output, number
        assert stack.world.kills == 1
        assert stack.children == {"SUCCEEDED": count}, number
        assert stack.is_sound, number


def test_crashes_at_random_lose_no_child() -> None:
    for seed in some(range(10)):
        print(f"seed {seed}")
        stack = stack_of(NESTED, RandomCrashes(seed, chance=0.02, crashes_max=200))
        assert stack.run(ITEMS) == [[2 * n, 2 * n] for n in range(7)]
        assert stack.is_sound


def test_a_child_whose_worker_crashed_before_its_report_and_whose_queue_is_purged_reports() -> None:
    crashes = 0

    def crash_and_purge(world: SimulatorWorld, effect: Effect, when: When) -> None:
        nonlocal crashes
        is_report = isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("k#")
        if is_report and when == "before" and not crashes:
            crashes += 1
            world.services.queue("work").messages.clear()
            raise Killed

    stack = stack_of(MANY, crash_and_purge)
    assert stack.run(ITEMS) == [2 * n for n in range(7)]
    assert crashes == 1
    assert set(stack.world.task_runs.values()) == {1}
    assert stack.is_sound


# -- children that end with the parent -------------------------------------------------------------


def test_a_parent_that_is_stopped_stops_its_children() -> None:
    stack = stack_of(a_map({"wait": WAIT}, Items="{% $states.input %}"))
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
    stack = stack_of(a_map({"inner": inner}, Items="{% $states.input %}"))
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
    stack = stack_of(a_map(states, Items="{% $states.input %}", **fields))
    error = stack.run([{"n": 1}, {"n": -1}, {"n": 2}])
    assert error == "States.ExceedToleratedFailureThreshold"
    assert stack.children == {"FAILED": 1, "ABORTED": 2}
    assert stack.is_sound


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_of_a_stop_leaves_no_child_running(when: When) -> None:
    definition = a_map({"wait": WAIT}, Items="{% $states.input %}")

    def stopped(number: int | None) -> CrashAt:
        stack = stack_of(definition)
        arn = stack.start([1, 2])
        stack.world.run()
        crash = CrashAt(number, when)
        stack.world.hook = crash
        stack.stop(arn)
        stack.world.run()
        assert stack.parent.state.status == "ABORTED", number
        assert stack.children == {"ABORTED": 2}, number
        assert stack.is_sound, number
        return crash

    for number in some(range(stopped(None).seen)):
        stopped(number)


# -- redrive ---------------------------------------------------------------------------------------


class Mended:
    """Calls that fail for negative numbers, until they are mended."""

    def __init__(self) -> None:
        self.is_mended = False

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        if effect.kind == "write" or self.is_mended:
            return TaskSucceeded("done") if effect.kind != "write" else work(effect)
        return work(effect)


FAILING = [{"n": 1}, {"n": -1}, {"n": 2}, {"n": -2}, {"n": 3}]
SOME_AT_ONCE = a_map(
    {"double": DOUBLE}, Items="{% $states.input %}", MaxConcurrency=2, ToleratedFailureCount=1
)
WRITTEN = a_map({"double": DOUBLE}, Items="{% $states.input %}", ResultWriter=WRITER)
BROKEN = [
    pytest.param(SOME_AT_ONCE, id="some at once"),
    pytest.param(WRITTEN, id="all at once, written"),
]


def redriven(definition: Machine, hook: Hook) -> tuple[Stack, int]:
    """Return the stack after a run that fails and its redrive, and how many effects `hook` had seen
    before that.
    """
    tasks = Mended()
    stack = Stack(json.dumps(machine({"all": {**definition, "End": True}})), tasks, hook)
    arn = stack.start(FAILING)
    stack.world.run()
    assert stack.parent.state.error == "States.ExceedToleratedFailureThreshold"
    tasks.is_mended = True
    seen = hook.seen if isinstance(hook, CrashAt) else 0
    stack.call("RedriveExecution", executionArn=arn, clientToken="once")
    stack.world.run()
    return stack, seen


@pytest.mark.parametrize("definition", BROKEN)
def test_a_redrive_runs_each_child_to_its_success(definition: Machine) -> None:
    stack, _ = redriven(definition, no_faults)
    assert stack.parent.state.status == "SUCCEEDED"
    assert stack.children == {"SUCCEEDED": len(FAILING)}
    assert stack.is_sound


def test_children_that_read_their_stop_after_the_redrive_are_redriven_too() -> None:
    stack = stack_of(a_map({"wait": WAIT}, Items="{% $states.input %}"))
    arn = stack.start([1, 2, 3])
    stack.world.run()
    stack.stop(arn)
    while not stack.parent.state.is_ended:
        assert stack.world._deliver_visible()
    for queue in WORK_QUEUES:
        stack.world.services.receive(queue)  # a host takes the stops, and dies
    stack.call("RedriveExecution", executionArn=arn)
    # The stops are visible again soon, and the sweeper would repeat the redrives in an hour only.
    stack.world.run(until_ms=stack.world.now_ms + 30 * 60_000)
    assert (stack.parent.state.status, stack.children) == ("RUNNING", {"RUNNING": 3})
    redrives = [one.state.redrives for one in histories(stack.world) if "." in one.run]
    assert redrives == [1, 1, 1]
    assert check(stack.world) == []


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("definition", BROKEN)
def test_one_crash_at_any_effect_of_a_redrive_changes_nothing(
    definition: Machine, when: When
) -> None:
    counting = CrashAt(None, when)
    _, begun = redriven(definition, counting)
    for number in some(range(begun, counting.seen, 2)):
        stack, _ = redriven(definition, CrashAt(number, when))
        assert stack.parent.state.status == "SUCCEEDED", number
        assert stack.world.kills == 1
        assert stack.children == {"SUCCEEDED": len(FAILING)}, number
        assert stack.is_sound, number


def test_crashes_at_random_lose_no_child_of_a_redrive() -> None:
    for seed in some(range(6)):
        print(f"seed {seed}")
        stack, _ = redriven(SOME_AT_ONCE, RandomCrashes(seed, chance=0.02, crashes_max=200))
        assert stack.children == {"SUCCEEDED": len(FAILING)}
        assert stack.is_sound
