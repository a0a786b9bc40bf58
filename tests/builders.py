"""Small machines, worlds and answers for tests, built in one line each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import pytest

from holdfast.asl.parsing.parse import definition_hash
from holdfast.runtime import event_claims
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import Effect, Item, RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast_simulator.invariants import StoredHistory, histories
from holdfast_simulator.world import Hook, Killed, SimulatorWorld, no_faults

CHANCE = b"01234567"
KEYS = SigningKeys("k1", {"k1": b"a secret of the test, 32 bytes.."})
Machine = dict[str, Any]


def machine(states: Mapping[str, Any], **top: Any) -> Machine:
    """A definition that starts at its first state."""
    return {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states, **top}


def call(name: str, target: str | None = None, **fields: Any) -> Machine:
    """A Task of a registered function; `target` None: the end."""
    follow = {"End": True} if target is None else {"Next": target}
    return {"Type": "Task", "Resource": f"holdfast:task:{name}", **follow, **fields}


def wait_for(event: str, target: str | None = None, **fields: Any) -> Machine:
    follow = {"End": True} if target is None else {"Next": target}
    arguments = {"event": event, "key": "k1"}
    resource = "holdfast:event.waitForTaskToken"
    return {"Type": "Task", "Resource": resource, "Arguments": arguments, **follow, **fields}


def ask(target: str | None = None, **fields: Any) -> Machine:
    follow = {"End": True} if target is None else {"Next": target}
    arguments = {"title": "Approve?", "assignee": "role:clerk"}
    resource = "holdfast:ask.waitForTaskToken"
    return {"Type": "Task", "Resource": resource, "Arguments": arguments, **follow, **fields}


def chain(length: int) -> Machine:
    """`length` tasks in a row, each adding one to {"n": …}."""
    arguments = {"n": "{% $states.input.n %}"}
    states = {
        f"step {number}": call(
            "add", f"step {number + 1}" if number + 1 < length else None, Arguments=arguments
        )
        for number in range(length)
    }
    return machine(states)


def add(effect: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskSucceeded({"n": effect.arguments["n"] + 1})


class AnyTypes:
    """Lets every value through."""

    def normalise_input(self, tenant: str, workflow: str, value: Any) -> Any:
        return value

    def schema_of(self, reference: str) -> dict[str, Any]:
        del reference
        return {}

    def normalise_payload(self, tenant: str, reference: str, value: Any, what: str) -> Any:
        return value

    def normalise_result(self, tenant: str, name: str, value: Any, is_workflow: bool) -> Any:
        return value

    def convert(self, tenant: str, function: str, values: Mapping[str, Any]) -> Any:
        return dict(values)


class Shop:
    """One world with one workflow, `flow`, and its front door."""

    def __init__(
        self,
        definition: Machine,
        tasks: Callable[[RunTask], TaskSucceeded | TaskFailed] = add,
        hook: Hook = no_faults,
        knows: Callable[[str, bool], bool] = lambda name, is_pure: True,
    ) -> None:
        source_map = {"events": {"paid": "m:Paid", "signed": "m:Signed"}}
        self.definition = Definition(definition, source_map, definition_hash(definition))
        self.programs = Programs()
        self.programs.add(self.definition)
        setting = WorkerConfig(self.programs, knows, lambda: KEYS)
        workflows = {"flow": self.definition}
        self.front = Front(self.programs, workflows, AnyTypes(), KEYS, spread=setting.spread)
        self.world = SimulatorWorld(setting, tasks, hook)
        self.tenant = "default"

    def start(self, data: Any = None, name: str | None = "order-1") -> str:
        """Start an execution as a caller that retries until it gets an answer; return the
        execution's id.
        """
        request = {"workflow": "flow", "input": data, "name": name}
        return str(self.insist(lambda: self.front.start(self.tenant, request, CHANCE))["execution"])

    def send_event(self, event: str = "paid", data: Any = None, event_id: str = "e1") -> Any:
        request = {"name": event, "key": "k1", "data": data, "id": event_id}
        return self.insist(lambda: self.front.event(self.tenant, request, CHANCE))

    def stop(self, run: str) -> Any:
        return self.insist(lambda: self.front.stop(self.tenant, run, {}, CHANCE))

    def describe(self, run: str) -> Any:
        return self.insist(lambda: self.front.describe(self.tenant, run))

    def answer(self, run: str, **request: Any) -> Any:
        token = next(wait["token"] for wait in self.describe(run)["waits"] if "token" in wait)
        return self.insist(lambda: self.front.answer(self.tenant, {"token": token, **request}))

    def insist(self, make: Callable[[], Any]) -> Any:
        for _ in range(10):
            try:
                return self.world.call(make())
            except Killed:
                self.world.kills += 1
        raise AssertionError("no answer in ten tries")

    def run(self, data: Any = None) -> StoredHistory:
        """One execution from start to end; returns its history."""
        run = self.start(data)
        self.world.run()
        return self.history(run)

    def history(self, run: str) -> StoredHistory:
        return next(history for history in histories(self.world) if history.run == run)


def without_claims_of_senders(patch: pytest.MonkeyPatch) -> None:
    """Let senders claim no event for the only execution that waits, so that its worker does."""

    def unclaimed(item: Item) -> Generator[Effect, Any, Item]:
        return item
        yield

    patch.setattr(event_claims, "for_only_execution", unclaimed)
