"""From an execution's ARN to its log, or to its start when no worker has begun it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from holdfast.core.run_ids import run_of_uuid
from holdfast.core.state import Execution, MachineOrigin
from holdfast.runtime.effects import Effect, Get
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions.arns import ExecutionArn, parse_execution_arn
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import execution_does_not_exist, invalid_arn
from holdfast.stepfunctions.starts import Start, find_start


@dataclass(frozen=True, slots=True)
class FoundExecution:
    """`state` is None while there is a start and no log."""

    arn: ExecutionArn
    run: str
    state: Execution | None
    start: Start | None

    @property
    def origin(self) -> MachineOrigin:
        origin = self._state.origin if self.start is None else self.start.origin
        assert origin is not None
        return origin

    @property
    def definition(self) -> str:
        return self.start.definition if self.start is not None else self._state.definition

    @property
    def started_ms(self) -> int:
        return self.start.started_ms if self.start is not None else self._state.started_ms

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
        for find_run in (_run_in_name, _run_of_name):
            run = yield from find_run(service, arn)
            found = None if run is None else (yield from _found(service, arn, run))
            if found is not None:
                return found
    raise execution_does_not_exist(text)


def _run_in_name(service: Service, arn: ExecutionArn) -> Generator[Effect, Any, str | None]:
    """The name is the run: in the notation of a UUID, or, of a child, nearly as it is."""
    yield from ()
    run = run_of_uuid(arn.name)
    if run is None:
        return keys.run_of_child(arn.name)
    secrets = service.keys.secrets.values()
    is_ours = any(keys.is_minted(service.tenant, run, secret) for secret in secrets)
    return run if is_ours else None


def _run_of_name(service: Service, arn: ExecutionArn) -> Generator[Effect, Any, str | None]:
    key = keys.name(service.tenant, keys.machine_workflow(arn.machine), arn.name)
    item = yield Get(tables.MAIL, key, keys.ONLY)
    return None if item is None else str(item["run"])


def _found(
    service: Service, arn: ExecutionArn, run: str
) -> Generator[Effect, Any, FoundExecution | None]:
    log = Log(service.tenant, run, "api", "")
    yield from log.load()
    if log.state is not None:
        origin = log.state.origin
        is_it = origin is not None and origin["execution_arn"] == arn.text
        return FoundExecution(arn, run, log.state, None) if is_it else None
    start = yield from find_start(service, arn, run)
    return None if start is None else FoundExecution(arn, run, None, start)
