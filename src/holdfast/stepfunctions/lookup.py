"""State machines, deployed workflows among them, and versions by ARN.

A machine or version that does not exist is refused with AWS's exception.
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
    """Return True when the ARN is of this stack's region and account.

    An ARN with a label names a Map's part of a state machine. No operation accepts such a part.
    """
    return arn.place == service.place and arn.label is None


def find_machine(service: Service, name: str) -> Generator[Effect, Any, StateMachine | None]:
    """Return the deployed workflow of that name, or else the machine that this API has made."""
    workflow = find_workflow(service, name)
    if workflow is not None:
        return workflow
    return (yield from catalogue.machine(service.tenant, name))


def text_of(service: Service, then: Snapshot) -> Generator[Effect, Any, str]:
    """Return the definition as it was given, or as it was compiled."""
    if then.text:
        return (yield from catalogue.text_of(service.tenant, then))
    definition = yield from service.programs.fetch(service.tenant, then.definition)
    return json_text(definition.asl)


def require_machine(service: Service, arn: MachineArn) -> Generator[Effect, Any, StateMachine]:
    """Return the machine that the ARN names. A qualified ARN names a version or an alias."""
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
