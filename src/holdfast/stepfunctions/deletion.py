"""The deletion of a state machine.

AWS docs, DeleteStateMachine: the machine has the status DELETING until all of its executions have
ended, and its executions are terminated. Here the deletion stops them. Each operation that finds a
machine in this status looks for open executions, and removes the machine when there are none. So no
process has to wait for the last end.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, Final

from holdfast.runtime.commands.control import request_control
from holdfast.runtime.effects import Clock, Delete, Effect
from holdfast.runtime.listing import NEWEST, Page
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import MachineArn
from holdfast.stepfunctions.catalogue import Service, StateMachine
from holdfast.stepfunctions.execution_lists import Wanted, page_of

#: The executions that one query of a deletion returns.
_PER_PAGE: Final = 100


def delete(
    service: Service, arn: MachineArn, machine: StateMachine, chance: bytes
) -> Generator[Effect, Any, None]:
    """Remove the machine, or mark it and stop its open executions."""
    is_open = yield from has_open_executions(service, arn, machine)
    if not is_open:
        yield Delete(tables.MAIL, keys.machines(service.tenant), arn.name)
        return
    # Mark the machine first, so that no start after the stops finds it.
    yield from catalogue.change(
        service.tenant,
        lambda: _present(service, machine),
        lambda one: replace(one, is_deleting=True),
    )
    yield from _stop_executions(service, arn, chance)


def _present(service: Service, machine: StateMachine) -> Generator[Effect, Any, StateMachine]:
    found = yield from catalogue.machine(service.tenant, machine.name)
    return machine if found is None else found


def _stop_executions(
    service: Service, arn: MachineArn, chance: bytes
) -> Generator[Effect, Any, None]:
    before: str | None = NEWEST
    while before is not None:
        page = yield from _open_executions(service, arn, before, _PER_PAGE)
        for entry in page.entries:
            log = Log(service.tenant, entry.run, "api", "")
            yield from log.load()
            now_ms = yield Clock()
            yield from request_control(service.tenant, entry.run, log.state, (now_ms, chance), {})
        before = page.after


def has_open_executions(
    service: Service, arn: MachineArn, machine: StateMachine
) -> Generator[Effect, Any, bool]:
    """Return True when a standard execution of the machine has not ended. An express one is in no
    list, and ends within five minutes.
    """
    if machine.now.type == "EXPRESS":
        return False
    page = yield from _open_executions(service, arn, NEWEST, 1)
    while not page.entries and page.after is not None:
        page = yield from _open_executions(service, arn, page.after, 1)
    return bool(page.entries)


def _open_executions(
    service: Service, arn: MachineArn, before: str, size: int
) -> Generator[Effect, Any, Page]:
    wanted = Wanted(arn, ("RUNNING",), None)
    return (yield from page_of(service.tenant, service.spread, wanted, before, size))
