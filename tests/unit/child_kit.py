"""A family of workflows in one world: `outer` is started, and calls the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.asl.parsing.parse import definition_hash
from holdfast.errors import RequestError
from holdfast.runtime.child_workflows import Workflows
from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import RunTask, TaskResult
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import Hook, Killed, SimulatorWorld, no_faults
from tests.builders import CHANCE, KEYS, AnyTypes, Machine, add

TENANT = "default"
#: Where a definition is not stored with a map of its own.
EVENTS = {"events": {"paid": "m:Paid"}}


def call_of(workflow: str, target: str | None = None, **fields: Any) -> Machine:
    """A Task that calls a workflow; `target` None: the end."""
    follow = {"End": True} if target is None else {"Next": target}
    return {"Type": "Task", "Resource": f"holdfast:workflow:{workflow}", **follow, **fields}


class _Fitting(AnyTypes):
    """The types of every workflow here: an object whose `n`, if any, is a number."""

    def normalise_input(self, _tenant: str, _workflow: str, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("n", 0), int | float):
            raise RequestError("HF210", "n: input should be a number")
        return value


class Family:
    """A world of parents and children. `known` may change while time passes: it is the deployed
    code.
    """

    def __init__(
        self,
        machines: Mapping[str, Machine],
        tasks: Callable[[RunTask], TaskResult] = add,
        hook: Hook = no_faults,
    ) -> None:
        self.known: dict[str, Definition] = {}
        self.programs = Programs()
        self.front = Front(self.programs, self.known, AnyTypes(), KEYS)
        workflows = Workflows(self.known, _Fitting())
        setting = WorkerConfig(self.programs, lambda *_: True, lambda: KEYS, None, workflows)
        self.world = SimulatorWorld(setting, tasks, hook)
        for name, definition in machines.items():
            self.deploy(name, definition)

    def deploy(self, name: str, definition: Machine) -> Definition:
        self.known[name] = Definition(definition, EVENTS, definition_hash(definition))
        self.programs.add(self.known[name])
        return self.known[name]

    # -- doors -------------------------------------------------------------------------------------

    def start(self, data: Any = None) -> str:
        request = {"workflow": "outer", "input": data or {}, "name": "o1"}
        return str(self.insist(lambda: self.front.start(TENANT, request, CHANCE))["execution"])

    def stop(self, run: str, **request: Any) -> Any:
        return self.insist(lambda: self.front.stop(TENANT, run, request, CHANCE))

    def describe(self, run: str) -> Any:
        return self.insist(lambda: self.front.describe(TENANT, run))

    def pay(self) -> Any:
        request = {"name": "paid", "key": "k1", "data": "paid", "id": "e1"}
        return self.insist(lambda: self.front.event(TENANT, request, CHANCE))

    def insist(self, make: Callable[[], Any]) -> Any:
        """Call as a caller that retries until it gets an answer."""
        for _ in range(10):
            try:
                return self.world.call(make())
            except Killed:
                self.world.kills += 1
        raise AssertionError("no answer in ten tries")

    # -- what has happened -------------------------------------------------------------------------

    def run(self, data: Any = None) -> StoredHistory:
        """Return the history of `outer`, from its start until nothing is left to happen."""
        self.start(data)
        self.world.run()
        return self.outer

    def settle(self, seconds: float = 1) -> None:
        until_ms = self.world.now_ms + int(seconds * 1_000)
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    @property
    def outer(self) -> StoredHistory:
        return next(found for found in histories(self.world) if "." not in found.run)

    @property
    def output(self) -> Any:
        return self.outer.state.output

    @property
    def children(self) -> list[StoredHistory]:
        found = [history for history in histories(self.world) if "." in history.run]
        return sorted(found, key=lambda history: history.run)

    def statuses(self) -> tuple[str, list[str]]:
        return self.outer.state.status, [child.state.status for child in self.children]

    def is_sound(self) -> bool:
        assert check(self.world) == []
        return lost(self.world) == []
