"""Finds state machines, deployed workflows and versions by ARN.

If a machine or version does not exist, AWS's exception is raised.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.runtime.effects import Effect
from holdfast.runtime.storage.json_values import json_text
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import MachineArn
from holdfast.stepfunctions.catalogue import Service, Snapshot, StateMachine, Version
from holdfast.stepfunctions.faults import state_machine_does_not_exist
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
    return (yield from catalogue.machine(service.tenant, name))


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


def require_version(service: Service, arn: MachineArn) -> Generator[Effect, Any, Version]:
    version = None
    if is_here(service, arn) and arn.version is not None:
        version = yield from catalogue.version(service.tenant, arn.name, arn.version)
    if version is None:
        raise state_machine_does_not_exist(arn.text)
    return version
