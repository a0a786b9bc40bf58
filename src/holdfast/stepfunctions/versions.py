"""Versions: copies of a state machine at one revision, with a number. Numbers are never used
again.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, Final

from holdfast.runtime.effects import Clock, Delete, Effect, JsonResult, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import MachineArn, parse_machine_arn
from holdfast.stepfunctions.catalogue import Service, Snapshot, Startable, StateMachine, Version
from holdfast.stepfunctions.faults import (
    StatesFault,
    concurrent,
    conflict,
    quota_exceeded,
    state_machine_does_not_exist,
    validation,
)
from holdfast.stepfunctions.lookup import (
    find_machine,
    is_here,
    refuse_deleting,
    refuse_label,
    require_machine,
    require_version,
)
from holdfast.stepfunctions.pages import page
from holdfast.stepfunctions.settings import log_setting_of
from holdfast.stepfunctions.workflows import refuse_workflow

VERSIONS_MAX: Final = 1_000  # AWS docs, PublishStateMachineVersion: versions of one machine
INITIAL_REVISION = "INITIAL"  # AWS's name, in requests, of the revision that has no id yet


def publish_state_machine_version(
    service: Service, request: dict[str, Any], _: bytes
) -> JsonResult:
    """Publish a version. The same revision has one version, however often it is published."""
    arn = parse_machine_arn(request["stateMachineArn"])
    refuse_workflow(service, arn)
    machine = yield from require_machine(service, arn)
    refuse_deleting(service, machine)
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
    service: Service, machine: StateMachine, description: str | None
) -> Generator[Effect, Any, Version]:
    """Return the version of this revision: the existing one or a new one.

    The version is stored first, and then its number in the machine. So a request after a crash in
    between finds the version.
    """
    newest = yield from _newest(service, machine.name)
    now_ms = yield Clock()
    for _ in range(catalogue.RACES_MAX):
        # Compare the definition and the role, and not only the id of the revision. The first
        # revision of every machine has no id, so a machine that was deleted and created again would
        # look unchanged.
        if newest is not None and newest.then == machine.now:
            yield from _count(service, machine.name, newest.number)
            return newest
        number = max(machine.versions, newest.number if newest else 0) + 1
        yield from require_room(service, machine.name, number)
        wanted = Version(machine.name, number, machine.now, now_ms, description)
        found = yield PutIfAbsent(tables.MAIL, catalogue.version_item(service.tenant, wanted))
        newest = wanted if found is None else catalogue.read_version(found)
    raise concurrent()


def require_room(service: Service, name: str, number: int) -> Generator[Effect, Any, None]:
    """Raise ServiceQuotaExceededException when the machine has as many versions as AWS allows.
    `number` is that of the next one.

    There are at most as many as the greatest number says, so the versions are rarely counted.
    """
    if number > VERSIONS_MAX and len((yield from catalogue.versions(service.tenant, name))) >= (
        VERSIONS_MAX
    ):
        raise quota_exceeded(f"a state machine can have at most {VERSIONS_MAX} versions")


def _newest(service: Service, name: str) -> Generator[Effect, Any, Version | None]:
    found = yield from catalogue.versions(service.tenant, name, limit=1)
    return found[0] if found else None


def _count(service: Service, name: str, number: int) -> Generator[Effect, Any, None]:
    """Store the greatest number ever given, so that a deleted version's number is not reused."""
    arn = parse_machine_arn(service.place.machine(name))
    yield from catalogue.change(
        service.tenant,
        lambda: require_machine(service, arn),
        lambda seen: replace(seen, versions=max(seen.versions, number)),
    )


def list_state_machine_versions(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """List versions, the newest first."""
    arn = parse_machine_arn(request["stateMachineArn"])
    machine = None
    if is_here(service, arn):
        machine = yield from find_machine(service, arn.name)
    if machine is None:
        # In AWS's model this operation has no exception StateMachineDoesNotExist.
        raise StatesFault("InvalidArn", f"Invalid arn: {arn.text}")
    versions = yield from catalogue.versions(service.tenant, arn.name)
    shown, more = yield from page(
        service,
        request,
        versions,
        f"versions:{arn.name}",
        lambda one: keys.version(one.number),
        is_descending=True,
    )
    listed = [
        {
            "stateMachineVersionArn": service.place.version(arn.name, version.number),
            "creationDate": version.created_ms,
        }
        for version in shown
    ]
    return {"stateMachineVersions": listed, **more}


def delete_state_machine_version(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """Delete a version. If it does not exist, that is no error. Executions of the version
    continue.
    """
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
    yield Delete(tables.MAIL, keys.machine(service.tenant, arn.name), keys.version(arn.version))
    return {}


# -- the version of a start ------------------------------------------------------------------------


def resolve_for_start(
    service: Service, text: str, chance: bytes
) -> Generator[Effect, Any, Startable]:
    """Return what a start needs of the machine, version or alias with this ARN.

    An alias selects one of its versions by weight; the last bytes of `chance` decide. Raises
    InvalidArn, StateMachineDoesNotExist.
    """
    arn = parse_machine_arn(text)
    refuse_label(arn)
    name = arn.name
    if arn.qualifier is None:
        machine = yield from require_machine(service, arn)
        refuse_deleting(service, machine)
        return _startable(service, name, machine.now)
    if arn.version is not None:
        version = yield from require_version(service, arn)
        return _startable(service, name, version.then, version_arn=arn.text)
    number = yield from _chosen(service, arn, chance)
    chosen = parse_machine_arn(service.place.version(name, number))
    version = yield from require_version(service, chosen)
    return _startable(service, name, version.then, version_arn=chosen.text, alias_arn=arn.text)


def _chosen(service: Service, arn: MachineArn, chance: bytes) -> Generator[Effect, Any, int]:
    """Return the number of the version that an alias selects for this start."""
    alias = None
    if is_here(service, arn):
        alias = yield from catalogue.alias(service.tenant, arn.name, str(arn.alias))
    if alias is None:
        raise state_machine_does_not_exist(arn.text)
    ticket = int.from_bytes(chance[-4:], "big") % 100
    for number, weight in alias.routes:
        if ticket < weight:
            return number
        ticket -= weight
    raise AssertionError(f"the weights of {arn.text} do not add up to 100")


def _startable(service: Service, name: str, then: Snapshot, **arns: str) -> Startable:
    machine_arn, log = service.place.machine(name), log_setting_of(then.logging)
    return Startable(machine_arn, name, then.role_arn, then.type, then.definition, log=log, **arns)
