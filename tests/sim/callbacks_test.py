"""Tasks that are answered later, with a crash at every effect: callback, nested execution,
job and activity.

A sender repeats an answer until it is accepted. A poller that crashes keeps the activity's task:
its time-out and a retry complete it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import partial
from itertools import count
from typing import Any

import pytest

from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Deadline,
    Effect,
    RunTask,
    TaskPending,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.status_events import AWS_SOURCE
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import (
    CrashAt,
    Hook,
    Killed,
    RandomCrashes,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import KEYS, Machine, machine
from tests.thorough import some
from tests.unit.states_kit import PLACE, ROLE

INNER = PLACE.machine("inner")
ACTIVITY = PLACE.activity("pack")
AGAIN = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 5}]
JOB_MS = 20_000


def a_task(resource: str, following: str | None, **fields: Any) -> Machine:
    follow = {"End": True} if following is None else {"Next": following}
    return {"Type": "Task", "Resource": resource, **follow, **fields}


TOKEN = {"QueueUrl": "q", "MessageBody": "{% $states.context.Task.Token %}"}
START = {"StateMachineArn": INNER, "Input": {"from": "outer"}}
OUTER = machine(
    {
        "ask": a_task("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "nest", Arguments=TOKEN),
        "nest": a_task(
            "arn:aws:states:::states:startExecution.sync:2",
            "build",
            Arguments=START,
            Output="{% $states.result.Output %}",
        ),
        "build": a_task(
            "arn:aws:states:::codebuild:startBuild.sync",
            "pack",
            Arguments={"ProjectName": "p"},
            Output={"inner": "{% $states.input %}", "build": "{% $states.result %}"},
        ),
        "pack": a_task(
            ACTIVITY,
            None,
            TimeoutSeconds=60,
            Retry=AGAIN,
            Output={"before": "{% $states.input %}", "packed": "{% $states.result %}"},
        ),
    }
)
REST = machine(
    {
        "rest": {"Type": "Wait", "Seconds": 5, "Next": "done"},
        "done": {"Type": "Pass", "Output": {"slept": True}, "End": True},
    }
)
OUTPUT = {"before": {"inner": {"slept": True}, "build": "built"}, "packed": "parcel"}


class Firm:
    """A world with both machines, a person, a poller, and slow builds."""

    def __init__(self, hook: Hook = no_faults) -> None:
        programs = Programs()
        setting = WorkerConfig(programs, lambda *_: True, lambda: KEYS, AWS_SOURCE)
        self.world = SimulatorWorld(setting, self._work, hook)
        self._api = StatesApi(Service(programs, KEYS, "default", PLACE, PAYLOAD_BYTES_MAX))
        self._numbers = count()
        self.insist("CreateActivity", name="pack")
        for name, definition in (("inner", REST), ("outer", OUTER)):
            text = json.dumps(definition)
            self.insist("CreateStateMachine", name=name, definition=text, roleArn=ROLE)

    def run(self) -> Any:
        """Return the outer execution's output, or its error."""
        self.insist("StartExecution", stateMachineArn=PLACE.machine("outer"), name="e1", input="{}")
        self.world.at(self.world.now_ms + 30_000, self._poll)
        self.world.run()
        state = self.outer.state
        return state.output if state.status == "SUCCEEDED" else (state.error, state.cause)

    @property
    def outer(self) -> StoredHistory:
        return next(found for found in histories(self.world) if "." not in found.run)

    @property
    def children(self) -> list[StoredHistory]:
        return [found for found in histories(self.world) if "." in found.run]

    # -- who does what -----------------------------------------------------------------------------

    def _work(self, effect: RunTask) -> TaskResult:
        match effect.kind:
            case "callback":
                answer = partial(self._answer, effect.arguments["MessageBody"], '"yes"')
                self.world.at(self.world.now_ms + 3_000, answer)
                return TaskSucceeded({"MessageId": "m1"})
            case "sync" if effect.name == "states:startExecution":
                return self._nest(effect)
            case _ if effect.is_poll:
                is_over = self.world.now_ms >= effect.submitted["until"]
                return TaskSucceeded("built") if is_over else TaskPending()
            case _:
                return TaskSucceeded({"until": self.world.now_ms + JOB_MS})

    def _nest(self, effect: RunTask) -> TaskResult:
        request = {"stateMachineArn": INNER, "input": json.dumps(effect.arguments["Input"])}
        answer = self._call("StartExecution", request, _parent(effect))
        return TaskSucceeded({"ExecutionArn": answer["executionArn"]})

    def _answer(self, token: str, output: str) -> None:
        try:
            self.insist("SendTaskSuccess", taskToken=token, output=output)
        except StatesFault as fault:
            assert fault.code == "TaskTimedOut"  # it was answered before

    def _poll(self) -> None:
        """Take a task and answer it, every half minute, until no execution needs it."""
        task: dict[str, Any] = {}
        try:
            task = self._call("GetActivityTask", {"activityArn": ACTIVITY})
        except Killed:
            self.world.kills += 1
        if task:
            self._answer(task["taskToken"], '"parcel"')
        found = [history for history in histories(self.world) if "." not in history.run]
        if not found or not found[0].state.is_ended:
            self.world.at(self.world.now_ms + 30_000, self._poll)

    # -- calls -------------------------------------------------------------------------------------

    def insist(self, operation: str, **request: Any) -> Any:
        for _ in range(10):
            try:
                return self._call(operation, request)
            except Killed:
                self.world.kills += 1
        raise AssertionError("no answer in ten tries")

    def _call(self, operation: str, request: dict[str, Any], parent: Any = None) -> Any:
        chance = hashlib.sha256(str(next(self._numbers)).encode()).digest()[:CHANCE_BYTES]
        return run(self._api.call(operation, request, chance, parent), self._perform)

    def _perform(self, effect: Effect) -> Any:
        """Perform an effect without waiting: a poll that finds nothing comes again."""
        return self.world.now_ms if isinstance(effect, Deadline) else self.world.perform(effect)


def _parent(effect: RunTask) -> Any:
    return {"run": effect.run, "entry": effect.entry, "attempt": effect.attempt, "as_json": True}


def told(firm: Firm) -> Counter[tuple[str, str]]:
    """Return the events on the bus, by machine and status."""
    return Counter(
        (event.detail["stateMachineArn"].rpartition(":")[2], event.detail["status"])
        for event in firm.world.services.published
    )


EVENTS = {(name, status) for name in ("outer", "inner") for status in ("RUNNING", "SUCCEEDED")}


def assert_whole(firm: Firm, note: object = None) -> None:
    """Check: one child, one notice, everything in the log once, all events on the bus."""
    assert [child.state.status for child in firm.children] == ["SUCCEEDED"], note
    notices = [
        item
        for item in firm.world.services.items("mail")
        if str(item["sk"]).startswith("t#1.") and firm.outer.run in str(item["pk"])
    ]
    assert len(notices) == 1, note
    assert (check(firm.world), lost(firm.world)) == ([], []), note
    assert set(told(firm)) == EVENTS, note


def test_every_task_is_answered_and_every_end_reported_once() -> None:
    firm = Firm()
    assert firm.run() == OUTPUT
    assert_whole(firm)
    assert set(told(firm).values()) == {1}


def test_a_job_is_asked_for_less_and_less_often() -> None:
    firm = Firm()
    firm.run()
    polls = [event.holdfast["polls"] for event in firm.outer.events if event.type == "Polled"]
    assert polls == list(range(1, len(polls) + 1))
    assert 3 <= len(polls) <= 5  # 1 s, 2 s, 4 s, 8 s …: not every second of twenty


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_changes_nothing(when: When) -> None:
    counting = CrashAt(None, when)
    Firm(counting).run()
    assert counting.seen > 100
    for number in some(counting.numbers):
        firm = Firm(CrashAt(number, when))
        assert firm.run() == OUTPUT, number
        assert firm.world.kills == 1
        assert_whole(firm, number)


def test_crashes_at_random_lose_no_answer() -> None:
    """Seldom enough: a task that four workers in a row die of fails, and so it should."""
    for seed in some(range(10)):
        print(f"seed {seed}")
        firm = Firm(RandomCrashes(seed, chance=0.01, crashes_max=50))
        assert firm.run() == OUTPUT
        assert_whole(firm)
