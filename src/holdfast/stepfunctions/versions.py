"""Versions: a state machine as it was at one revision, by number. Numbers are never used again."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeAlias

from holdfast.runtime import keys
from holdfast.runtime.effects import Clock, Delete, Effect, PutIfAbsent
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import parse_machine_arn
from holdfast.stepfunctions.catalogue import MAIL, Machine, Service, Version
from holdfast.stepfunctions.faults import StatesFault, conflict, validation
from holdfast.stepfunctions.machines import is_here, require_machine
from holdfast.stepfunctions.pages import page

Answer: TypeAlias = Generator[Effect, Any, dict[str, Any]]

INITIAL_REVISION = "INITIAL"  # AWS's name, in requests, of the revision that has no id yet


def publish_state_machine_version(service: Service, request: dict[str, Any], _: bytes) -> Answer:
    """The same revision has one version, however often it is published."""
    arn = parse_machine_arn(request["stateMachineArn"])
    machine = yield from require_machine(service, arn)
    current = machine.now.revision or INITIAL_REVISION
    wanted = request.get("revisionId", current)
    if wanted != current:
        raise conflict(
            f"Failed to publish the State Machine version for revision {wanted}. "
            f"The current State Machine revision is {current}."
        )
    version = yield from publish(service, machine, request.get("description"))
    return {
        "stateMachineVersionArn": service.place.version(machine.name, version.number),
        "creationDate": version.created_ms,
    }


def publish(
    service: Service, machine: Machine, description: str | None
) -> Generator[Effect, Any, Version]:
    """-> the version of this revision, the one that exists or a new one.

    The version is stored first, then counted: whoever comes after a crash in between finds it.
    """
    newest = yield from _newest(service, machine.name)
    now_ms = yield Clock()
    while newest is None or newest.then.revision != machine.now.revision:
        number = max(machine.versions, newest.number if newest else 0) + 1
        wanted = Version(machine.name, number, machine.now, now_ms, description)
        found = yield PutIfAbsent(MAIL, catalogue.version_item(service.tenant, wanted))
        newest = wanted if found is None else catalogue.read_version(found)
    yield from _count(service, machine.name, newest.number)
    return newest


def _newest(service: Service, name: str) -> Generator[Effect, Any, Version | None]:
    found = yield from catalogue.versions(service.tenant, name, limit=1)
    return found[0] if found else None


def _count(service: Service, name: str, number: int) -> Generator[Effect, Any, None]:
    """The greatest number ever given is kept: a deleted version's number is not given again."""
    arn = parse_machine_arn(service.place.machine(name))
    yield from catalogue.change(
        service.tenant,
        lambda: require_machine(service, arn),
        lambda seen: replace(seen, versions=max(seen.versions, number)),
    )


def list_state_machine_versions(service: Service, request: dict[str, Any], _: bytes) -> Answer:
    """The newest first."""
    arn = parse_machine_arn(request["stateMachineArn"])
    machine = yield from catalogue.machine(service.tenant, arn.name)
    if machine is None or not is_here(service, arn):
        # AWS's model of this operation has no StateMachineDoesNotExist.
        raise StatesFault("InvalidArn", f"Invalid arn: {arn.text}")
    versions = yield from catalogue.versions(service.tenant, arn.name)
    shown, more = page(
        service, request, versions, f"versions:{arn.name}", lambda one: keys.version(one.number)
    )
    listed = [
        {
            "stateMachineVersionArn": service.place.version(arn.name, version.number),
            "creationDate": version.created_ms,
        }
        for version in shown
    ]
    return {"stateMachineVersions": listed, **more}


def delete_state_machine_version(service: Service, request: dict[str, Any], _: bytes) -> Answer:
    """Deleting what is not there is no error. Executions of the version go on."""
    arn = parse_machine_arn(request["stateMachineVersionArn"])
    if arn.version is None:
        raise validation(f"A state machine version ARN is expected: '{arn.text}'")
    if not is_here(service, arn):
        return {}
    aliases = yield from catalogue.aliases(service.tenant, arn.name)
    using = [
        alias.name
        for alias in aliases
        if any(number == arn.version for number, _weight in alias.routes)
    ]
    if using:
        raise conflict(
            "Version to be deleted must not be referenced by an alias. Current list of aliases "
            f"referencing this version: [{', '.join(using)}]"
        )
    yield Delete(MAIL, keys.machine(service.tenant, arn.name), keys.version(arn.version))
    return {}
