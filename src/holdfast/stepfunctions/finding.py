"""Executions by ARN: those of state machines, and those of workflows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from holdfast.core.state import Execution, MachineOrigin
from holdfast.runtime.commands.start_rows import Start, find_start
from holdfast.runtime.effects import Effect, Get
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions.arns import ExecutionArn, parse_execution_arn
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import execution_does_not_exist, invalid_arn
from holdfast.stepfunctions.workflows import origin_of_state, origin_of_workflow


@dataclass(frozen=True, slots=True)
class FoundExecution:
    """`state` is None before the first record; then `start` says what was accepted.

    Such a start has no input when it came through the API of Holdfast, which stores no row of it.
    """

    arn: ExecutionArn
    run: str
    origin: MachineOrigin
    state: Execution | None
    start: Start | None

    @property
    def definition(self) -> str:
        return self.start.definition if self.start is not None else self._state.definition

    @property
    def started_ms(self) -> int:
        return self.start.started_ms if self.start is not None else self._state.started_ms

    @property
    def is_workflow(self) -> bool:
        if self.start is not None:
            return not keys.is_machine_workflow(self.start.workflow)
        return self._state.origin is None

    @property
    def _state(self) -> Execution:
        assert self.state is not None
        return self.state


def require_execution(service: Service, text: str) -> Generator[Effect, Any, FoundExecution]:
    """Raises InvalidArn, ExecutionDoesNotExist. Costs a strong read, one more for a given name."""
    arn = parse_execution_arn(text)
    if arn.express is not None:
        # AWS keeps no history of express executions that the API could ask for.
        raise invalid_arn("Resource type not valid in this context: express")
    if arn.place == service.place:
        found = yield from _find(service, arn)
        if found is not None:
            return found
    raise execution_does_not_exist(text)


def _find(service: Service, arn: ExecutionArn) -> Generator[Effect, Any, FoundExecution | None]:
    owners = _owners(service, arn.machine)
    run = service.known.run_in_name(service.tenant, arn.name)
    if run is not None:
        found = yield from _of_run(service, arn, run, owners)
        if found is not None:
            return found
    for owner in owners:
        item = yield Get("mail", keys.name(service.tenant, owner, arn.name), keys.ONLY)
        if item is not None:
            found = yield from _of_run(service, arn, str(item["run"]), [owner])
            if found is None and not keys.is_machine_workflow(owner):
                # The name row is proof of an accepted start.
                found = _accepted(service, arn, str(item["run"]), int(item["t0"]), str(item["dh"]))
            if found is not None:
                return found
    return None


def _owners(service: Service, machine: str) -> list[str]:
    """-> the engine's names that executions of such an ARN may have, the likelier one first.

    A deployed workflow hides a machine of its name. Executions of both are found.
    """
    owners = [keys.machine_workflow(machine)]
    if keys.is_name(machine):
        owners.insert(0 if machine in service.workflows else 1, machine)
    return owners


def _of_run(
    service: Service, arn: ExecutionArn, run: str, owners: list[str]
) -> Generator[Effect, Any, FoundExecution | None]:
    log = Log(service.tenant, run, "api", "")
    yield from log.load()
    if log.state is not None:
        origin = origin_of_state(service, log.state)
        is_it = origin["execution_arn"] == arn.text
        return FoundExecution(arn, run, origin, log.state, None) if is_it else None
    for owner in owners:
        start = yield from find_start(service.tenant, owner, run, arn.text)
        if start is not None and start.origin is not None:
            return FoundExecution(arn, run, start.origin, None, start)
    deployed = service.workflows.get(arn.machine)
    if deployed is None or log.is_gone or "." in run:
        return None
    is_unnamed = run == service.known.run_in_name(service.tenant, arn.name)
    if is_unnamed and (yield from service.known.may_begin(log)):
        return _accepted(service, arn, run, keys.minted_ms(run), deployed.hash)
    return None


def _accepted(
    service: Service, arn: ExecutionArn, run: str, started_ms: int, definition: str
) -> FoundExecution:
    """An execution of a workflow that no worker has begun, and whose input is in its message."""
    name = None if run == service.known.run_in_name(service.tenant, arn.name) else arn.name
    origin = origin_of_workflow(service.place, arn.machine, run, name)
    start = Start(run, arn.machine, name, started_ms, definition, origin, {})
    return FoundExecution(arn, run, origin, None, start)
