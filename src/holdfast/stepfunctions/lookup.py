"""Finds state machines, deployed workflows and versions by ARN.

If a machine or version does not exist, AWS's exception is raised.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.runtime.effects import Delete, Effect
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.json_values import json_text
from holdfast.stepfunctions import catalogue, deletion
from holdfast.stepfunctions.arns import MachineArn, parse_machine_arn
from holdfast.stepfunctions.catalogue import Service, Snapshot, StateMachine, Version
from holdfast.stepfunctions.faults import (
    state_machine_deleting,
    state_machine_does_not_exist,
    validation,
)
from holdfast.stepfunctions.workflows import find_workflow


def is_here(service: Service, arn: MachineArn) -> bool:
    """Return True when the ARN has this stack's region and account.

    An ARN with a label is that of a Map inside a state machine. No operation accepts it.
    """
    return arn.place == service.place and arn.label is None


def find_machine(service: Service, name: str) -> Generator[Effect, Any, StateMachine | None]:
    """Return the deployed workflow with that name; without one, the machine that this API has
    created.
    """
    workflow = find_workflow(service, name)
    if workflow is not None:
        return workflow
    return (yield from find_created(service, name))


def find_created(service: Service, name: str) -> Generator[Effect, Any, StateMachine | None]:
    """Return the machine that this API has created with the name.

    A machine that is being deleted is removed when its last execution has ended.
    """
    machine = yield from catalogue.machine(service.tenant, name)
    if machine is None or not machine.is_deleting:
        return machine
    arn = parse_machine_arn(service.place.machine(name))
    if (yield from deletion.has_open_executions(service, arn, machine)):
        return machine
    # Another process may have removed the machine, and a client may have created one with the same
    # name since.
    yield Delete(tables.MAIL, keys.machines(service.tenant), name, catalogue.IF_DELETING)
    return None


def refuse_deleting(service: Service, machine: StateMachine) -> None:
    """Raise StateMachineDeleting for a machine that is being deleted."""
    if machine.is_deleting:
        raise state_machine_deleting(service.place.machine(machine.name))


def text_of(service: Service, then: Snapshot) -> Generator[Effect, Any, str]:
    """Return the original text of the definition, or for a workflow the compiled text."""
    if then.text:
        return (yield from catalogue.text_of(service.tenant, then))
    definition = yield from service.programs.fetch(service.tenant, then.definition)
    return json_text(definition.asl)


def require_machine(service: Service, arn: MachineArn) -> Generator[Effect, Any, StateMachine]:
    """Return the machine of the ARN. An ARN with a qualifier is that of a version or an alias."""
    machine = None
    if is_here(service, arn) and arn.qualifier is None:
        machine = yield from find_machine(service, arn.name)
    if machine is None:
        raise state_machine_does_not_exist(arn.text)
    return machine


def refuse_label(arn: MachineArn) -> None:
    """Refuse the ARN of a distributed Map in a state machine (AWS docs: "the request fails with
    ValidationException").
    """
    if arn.label is not None:
        raise validation(
            f"A state machine ARN is expected, without a Map's label: '{arn.text}'",
            "API_DOES_NOT_SUPPORT_LABELED_ARNS",
        )


def require_version(service: Service, arn: MachineArn) -> Generator[Effect, Any, Version]:
    version = None
    if is_here(service, arn) and arn.version is not None:
        version = yield from catalogue.version(service.tenant, arn.name, arn.version)
    if version is None:
        raise state_machine_does_not_exist(arn.text)
    return version
