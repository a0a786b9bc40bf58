"""State machines and versions by ARN: what is not there is refused with AWS's exception."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.runtime.effects import Effect
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import MachineArn
from holdfast.stepfunctions.catalogue import Service, StateMachine, Version
from holdfast.stepfunctions.faults import state_machine_does_not_exist


def is_here(service: Service, arn: MachineArn) -> bool:
    """-> whether the ARN is of this stack's region and account; nothing else is known here.

    One with a label names a Map's part of a state machine, which is no resource of its own.
    """
    return arn.place == service.place and arn.label is None


def require_machine(service: Service, arn: MachineArn) -> Generator[Effect, Any, StateMachine]:
    """-> the machine that the ARN names. A qualified ARN names something else."""
    machine = None
    if is_here(service, arn) and arn.qualifier is None:
        machine = yield from catalogue.machine(service.tenant, arn.name)
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
