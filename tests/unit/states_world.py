"""A world whose front door is AWS's API: machines are created and started as a client does it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Deadline,
    Effect,
    Pause,
    RunTask,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.world import Hook, SimulatorWorld, no_faults
from tests.builders import KEYS
from tests.unit.states_kit import PLACE, ROLE, documented

Row = dict[str, Any]


def nothing(_: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskSucceeded({})


def states(**by_name: Mapping[str, Any]) -> Row:
    """Return a definition in JSONata whose states follow each other in the order given."""
    names = list(by_name)
    shown = {}
    for place, (name, state) in enumerate(by_name.items()):
        is_last = place == len(names) - 1
        ends = state["Type"] in {"Succeed", "Fail", "Choice"} or "Next" in state or "End" in state
        follow = {} if ends else {"End": True} if is_last else {"Next": names[place + 1]}
        shown[name] = {**state, **follow}
    return {"QueryLanguage": "JSONata", "StartAt": names[0], "States": shown}


PASS = {"Type": "Pass"}
WAIT = {"Type": "Wait", "Seconds": 100}


class Office:
    """One world, one tenant. A caller waits while time passes."""

    def __init__(
        self,
        tasks: Callable[[RunTask], TaskResult] = nothing,
        hook: Hook = no_faults,
    ) -> None:
        programs = Programs()
        self.world = SimulatorWorld(
            WorkerConfig(programs, lambda *_: True, lambda: KEYS), tasks, hook
        )
        self.service = Service(programs, KEYS, "default", PLACE, PAYLOAD_BYTES_MAX)
        self.api = StatesApi(self.service)
        self.call_ms_max = 900_000
        self._numbers = count()

    def perform(self, effect: Effect) -> Any:
        if isinstance(effect, Deadline):
            return self.world.now_ms + self.call_ms_max
        if isinstance(effect, Pause):
            until_ms = self.world.now_ms + effect.milliseconds
            self.world.run(until_ms=until_ms)
            self.world.now_ms = max(self.world.now_ms, until_ms)
            return None
        return self.world.perform(effect)

    def call(self, operation: str, **request: Any) -> Any:
        chance = hashlib.sha256(str(next(self._numbers)).encode()).digest()[:CHANCE_BYTES]
        return run(self.api.call(operation, request, chance), self.perform)

    def refusal(self, operation: str, **request: Any) -> tuple[str, str]:
        """Return code and message of the fault."""
        try:
            answer = self.call(operation, **request)
        except StatesFault as fault:
            assert fault.code in documented(operation), fault
            return fault.code, fault.message
        raise AssertionError(f"{operation} was not refused: {answer}")

    def create(self, definition: Mapping[str, Any], name: str = "flow", **request: Any) -> str:
        text = json.dumps(definition)
        made = self.call("CreateStateMachine", name=name, definition=text, roleArn=ROLE, **request)
        return str(made["stateMachineArn"])

    def start(self, machine_arn: str, data: Any = None, **request: Any) -> str:
        given = {} if data is None else {"input": json.dumps(data)}
        answer = self.call("StartExecution", stateMachineArn=machine_arn, **given, **request)
        return str(answer["executionArn"])

    def describe(self, execution_arn: str) -> Row:
        found: Row = self.call("DescribeExecution", executionArn=execution_arn)
        return found

    def history(self, execution_arn: str, **request: Any) -> list[Row]:
        answer = self.call("GetExecutionHistory", executionArn=execution_arn, **request)
        events: list[Row] = answer["events"]
        return events

    def types(self, execution_arn: str) -> list[str]:
        return [event["type"] for event in self.history(execution_arn)]

    def wait(self, seconds: int = 0) -> None:
        """Everything that happens in so long; the clock stands at the end of it."""
        until_ms = self.world.now_ms + seconds * 1_000
        self.world.run(until_ms=until_ms)
        self.world.now_ms = max(self.world.now_ms, until_ms)
