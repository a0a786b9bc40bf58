"""Finds executions by ARN: those of state machines, and those of workflows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from holdfast.core.state import Execution, MachineOrigin
from holdfast.runtime.commands.start_rows import Start, find_start
from holdfast.runtime.effects import Effect, Get, Item
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions.arns import ExecutionArn, parse_execution_arn
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import execution_does_not_exist, invalid_arn
from holdfast.stepfunctions.workflows import origin_of_state, origin_of_workflow


@dataclass(frozen=True, slots=True)
class FoundExecution:
    """An execution that a request names. `state` is None before the first record; `start` then has
    the accepted request.

    A start through the API of Holdfast has no input here, because that API stores no row of it.
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
    """Return the execution. Raises InvalidArn, ExecutionDoesNotExist. Costs a strongly consistent
    read, and another one when it was started with a name.
    """
    arn = parse_execution_arn(text)
    if arn.express is not None:
        # AWS has no history of express executions in this API, so refuse them, too.
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
        found = yield from _of_run(service, arn, run, owners, None)
        if found is not None:
            return found
    for owner in owners:
        item = yield Get(tables.MAIL, keys.name(service.tenant, owner, arn.name), keys.ONLY)
        if item is not None:
            found = yield from _of_run(service, arn, str(item["run"]), [owner], item)
            if found is not None:
                return found
    return None


def _owners(service: Service, machine: str) -> list[str]:
    """Return the names under which executions with such an ARN may be stored, the more likely one
    first.

    A deployed workflow hides a state machine with its name, but executions of both are found.
    """
    owners = [keys.machine_workflow(machine)]
    if keys.is_name(machine):
        owners.insert(0 if machine in service.workflows else 1, machine)
    return owners


def _of_run(
    service: Service, arn: ExecutionArn, run: str, owners: list[str], name_row: Item | None
) -> Generator[Effect, Any, FoundExecution | None]:
    """Return the execution: from its log, or from its start if it has no log yet."""
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
    start = None if log.is_gone else (yield from _accepted(service, arn, log, name_row))
    if start is None or start.origin is None:
        return None
    return FoundExecution(arn, run, start.origin, None, start)


def _accepted(
    service: Service, arn: ExecutionArn, log: Log, name_row: Item | None
) -> Generator[Effect, Any, Start | None]:
    """Return the start of a deployed workflow that has no row: its input is only in the start
    message.

    The row of the name, or a recent id that this stack created, proves that the start was accepted.
    """
    deployed, run = service.workflows.get(arn.machine), log.run
    if deployed is None or "." in run:
        return None
    if name_row is not None:
        if keys.is_machine_workflow(str(name_row["pk"]).split("#")[2]):
            return None
        name, started_ms, definition = arn.name, int(name_row["t0"]), str(name_row["dh"])
        origin = origin_of_workflow(service.place, arn.machine, run, name)
        return Start(run, arn.machine, name, started_ms, definition, origin, {})
    if not (yield from service.known.may_begin(log)):
        return None
    origin = origin_of_workflow(service.place, arn.machine, run, None)
    return Start(run, arn.machine, None, keys.minted_ms(run), deployed.hash, origin, {})
