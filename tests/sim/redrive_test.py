"""An execution that is redriven, killed at every effect: what had ended is not run again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.runtime import watchdog
from holdfast.runtime.effects import (
    Effect,
    Item,
    Put,
    PutIfAbsent,
    RunTask,
    Send,
    TaskFailed,
    TaskSucceeded,
    Unlist,
)
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.invariants import check, histories
from holdfast_simulator.world import (
    START_MS,
    CrashAt,
    Hook,
    Killed,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import Machine, machine
from tests.thorough import some
from tests.unit.stack_kit import Stack

SEND = "arn:aws:states:::sqs:sendMessage"


def branch(name: str) -> Machine:
    arguments = f"{{% {{'name': '{name}'}} %}}"
    task = {"Type": "Task", "Resource": SEND, "Arguments": arguments, "End": True}
    return {"StartAt": name, "States": {name: task}}


BOTH = {"Type": "Parallel", "Branches": [branch("sound"), branch("broken")], "End": True}


class Repair:
    """One of two branches fails, until the service that it calls is repaired."""

    def __init__(self, hook: Hook = no_faults) -> None:
        self._is_broken = True
        self.stack = Stack(json.dumps(machine({"both": BOTH})), self._work, hook)

    def _work(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        name = effect.arguments["name"]
        if name == "broken" and self._is_broken:
            return TaskFailed("Broken", None)
        return TaskSucceeded(name)

    def run(self) -> Any:
        """Return status and output after the redrive."""
        arn = self.stack.start(None)
        self.stack.world.run()
        assert self.stack.parent.state.status == "FAILED"
        self._is_broken = False
        self.stack.world.now_ms += 60_000
        try:
            self.stack.call("RedriveExecution", executionArn=arn)
        except StatesFault as fault:
            assert fault.code == "ExecutionNotRedrivable"  # it was heard, and its answer was lost
        self.stack.world.run()
        state = self.stack.parent.state
        return state.status, state.output, state.redrives


EXPECTED = ("SUCCEEDED", ["sound", "broken"], 1)


def test_the_branch_that_had_ended_is_not_run_again() -> None:
    repair = Repair()
    assert repair.run() == EXPECTED
    entered = [e for e in repair.stack.parent.events if e.details.get("name") == "sound"]
    assert len(entered) == 2  # entered and exited, once
    assert repair.stack.is_sound


def test_a_redrive_whose_worker_crashed_after_its_watchdog_row_is_found_without_its_message() -> (
    None
):
    rows: list[Item] = []

    def loses_the_wake(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_wish = isinstance(effect, Send) and world.now_ms >= START_MS + 60_000
        if is_wish and when == "after" and not rows:
            (ended,) = histories(world)
            sequence = ended.records[-1].sequence + 1
            rows.append(
                watchdog.watch_item("default", ended.run, world.now_ms, sequence, world.now_ms)
            )
            world.services.perform(Put("mail", rows[0]))
            for received in world.services.receive("work"):
                world.services.delete(received.receipt)

    assert Repair(loses_the_wake).run() == EXPECTED
    assert len(rows) == 1


def test_of_its_records_it_is_listed_by_the_last_alone() -> None:
    outcomes: list[TaskSucceeded | TaskFailed] = [
        TaskSucceeded(1),
        TaskSucceeded(2),
        TaskFailed("Broken", None),
        TaskSucceeded(3),
    ]
    send = {"Type": "Task", "Resource": SEND, "Arguments": "{% $states.input %}"}
    states = {"a": {**send, "Next": "b"}, "b": {**send, "Next": "c"}, "c": {**send, "End": True}}
    stack = Stack(json.dumps(machine(states)), lambda _: outcomes.pop(0))
    arn = stack.start(None)
    stack.world.run()
    stack.call("RedriveExecution", executionArn=arn)
    stack.world.run()
    listed = [item["sk"] for item in stack.world.services.items("executions") if "lp" in item]
    assert listed == [stack.parent.records[-1].sequence]
    assert stack.is_sound


@pytest.mark.parametrize("number", [0, 1])
def test_it_is_not_listed_as_running_though_both_of_its_ends_were_cut_short(number: int) -> None:
    """The first worker crashes before it removes the entry from the list, as does the one after the
    redrive: by then the execution has ended again, in the record that opens it.
    """
    seen: list[Effect] = []

    def die(world: SimulatorWorld, effect: Effect, when: When) -> None:
        del world
        if isinstance(effect, Unlist) and when == "before":
            seen.append(effect)
            if len(seen) <= number + 1:
                raise Killed

    task = {"Type": "Fail", "Error": "Broken"}
    nap = {"Type": "Wait", "Seconds": 60, "Next": "fail"}
    stack = Stack(json.dumps(machine({"nap": nap, "fail": task})), _nothing, die)
    arn = stack.start(None)
    stack.world.run(until_ms=stack.world.now_ms + 62_000)
    stack.call("RedriveExecution", executionArn=arn)
    stack.world.run()
    assert stack.parent.state.redrives == 1
    assert check(stack.world) == []


def _nothing(_effect: RunTask) -> TaskSucceeded:
    return TaskSucceeded(None)


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_changes_nothing(when: When) -> None:
    counting = CrashAt(None, when)
    Repair(counting).run()
    assert counting.seen > 40
    for number in some(counting.numbers):
        repair = Repair(CrashAt(number, when))
        assert repair.run() == EXPECTED, number
        assert repair.stack.world.kills == 1
        assert repair.stack.is_sound, number


def test_its_time_out_is_requested_again_when_the_worker_of_the_redrive_crashes() -> None:
    """The wake comes back, and the time-out of an execution has no entry by which to know it."""

    def die(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_record = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if when == "after" and is_record and stack.parent.state.redrives and not world.kills:
            raise Killed

    outcomes: list[TaskSucceeded | TaskFailed] = [TaskFailed("Broken", None), TaskSucceeded(1)]
    states = {
        "a": {"Type": "Task", "Resource": SEND, "Arguments": "{% $states.input %}", "Next": "nap"},
        "nap": {"Type": "Wait", "Seconds": 7_200, "End": True},
    }
    flow = {**machine(states), "TimeoutSeconds": 300}
    stack = Stack(json.dumps(flow), lambda _: outcomes.pop(0))
    arn = stack.start(None)
    stack.world.run()
    stack.world.hook = die
    stack.call("RedriveExecution", executionArn=arn)
    redriven_ms = stack.world.now_ms
    stack.world.run(until_ms=redriven_ms + 360_000)

    assert stack.world.kills == 1
    assert stack.parent.state.status == "TIMED_OUT"
    assert stack.is_sound
