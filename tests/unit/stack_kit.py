"""One state machine in a world of its own: the API, its workers, and its executions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import Hook, Killed, RunsTask, SimulatorWorld, no_faults
from tests.builders import KEYS
from tests.unit.states_kit import PLACE, ROLE


class Stack:
    """`definition` is the machine's text; `tasks` does what its executions ask for."""

    def __init__(self, definition: str, tasks: RunsTask, hook: Hook = no_faults) -> None:
        programs = Programs()
        self.world = SimulatorWorld(
            WorkerConfig(programs, lambda *_: True, lambda: KEYS), tasks, hook
        )
        self._api = StatesApi(Service(programs, KEYS, "default", PLACE, PAYLOAD_BYTES_MAX))
        made = self.call("CreateStateMachine", name="m", definition=definition, roleArn=ROLE)
        self._machine = made["stateMachineArn"]

    def start(self, data: Any) -> str:
        """Return the ARN of the machine's one execution."""
        request = {"stateMachineArn": self._machine, "name": "e1", "input": json.dumps(data)}
        return str(self.call("StartExecution", **request)["executionArn"])

    def stop(self, arn: str) -> None:
        self.call("StopExecution", executionArn=arn)

    def run(self, data: Any) -> Any:
        """The execution from start to end; returns its output, or its error."""
        self.start(data)
        self.world.run()
        state = self.parent.state
        return state.output if state.status == "SUCCEEDED" else state.error

    @property
    def parent(self) -> StoredHistory:
        return next(history for history in histories(self.world) if "." not in history.run)

    @property
    def children(self) -> Counter[str]:
        """How many children there are, by status."""
        found = [history for history in histories(self.world) if "." in history.run]
        return Counter(history.state.status for history in found)

    @property
    def is_sound(self) -> bool:
        return (check(self.world), lost(self.world)) == ([], [])

    def call(self, operation: str, **request: Any) -> Any:
        """Call as a caller that retries until it gets an answer."""
        for _ in range(10):
            try:
                return self.world.call(self._api.call(operation, request, bytes(CHANCE_BYTES)))
            except Killed:
                self.world.kills += 1
        raise AssertionError("no answer in ten tries")
