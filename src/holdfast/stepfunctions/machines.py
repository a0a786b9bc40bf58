"""State machines: create, update, describe, delete, list; and the validation of a definition."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.program import Json
from holdfast.asl.validation.report import MachineType
from holdfast.runtime.effects import Clock, Delete, Effect, JsonResult, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.definitions import Definition
from holdfast.runtime.storage.json_values import printable
from holdfast.stepfunctions import catalogue, deletion, settings, tags, versions
from holdfast.stepfunctions.arns import parse_machine_arn, require_name, require_role_arn
from holdfast.stepfunctions.catalogue import Service, Snapshot, StateMachine, Version
from holdfast.stepfunctions.faults import (
    StatesFault,
    state_machine_deleting,
    unstorable,
    validation,
)
from holdfast.stepfunctions.lookup import (
    find_created,
    is_here,
    refuse_deleting,
    refuse_label,
    require_machine,
    require_version,
    text_of,
)
from holdfast.stepfunctions.pages import page
from holdfast.stepfunctions.workflows import find_workflow, refuse_name_of_workflow, refuse_workflow

if TYPE_CHECKING:
    from holdfast.asl.validation.validate import DefinitionProblem


#: A change of one of these fields creates a new revision of the machine.
_UPDATABLE: Final = (
    "definition",
    "roleArn",
    "loggingConfiguration",
    "tracingConfiguration",
    "encryptionConfiguration",
)
DIAGNOSTICS_MAX: Final = 100  # AWS docs, ValidateStateMachineDefinition § maxResults


# -- create and update -----------------------------------------------------------------------------


def create_state_machine(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """Create a machine. An identical repeated request gets the same response, whatever its role and
    tags (AWS docs).
    """
    name = require_name(request["name"])
    refuse_name_of_workflow(service, name)
    require_role_arn(request["roleArn"])
    _check_version_description(request)
    now = yield from _first_snapshot(service, request)
    now_ms = yield Clock()
    wanted = StateMachine(
        name,
        now,
        now_ms,
        now_ms,
        tags.merged((), request.get("tags", []), service.place.machine(name)),
        published=request.get("publish", False),
        description=request.get("versionDescription"),
    )
    item = catalogue.machine_item(service.tenant, wanted)
    found = yield PutIfAbsent(tables.MAIL, item)
    if found is not None and catalogue.read_machine(found).is_deleting:
        deleting = yield from find_created(service, name)
        if deleting is not None:
            raise state_machine_deleting(service.place.machine(name))
        found = yield PutIfAbsent(tables.MAIL, item)
    machine = wanted if found is None else catalogue.read_machine(found)
    arn = service.place.machine(name)
    if not _is_same_creation(machine, wanted):
        raise StatesFault("StateMachineAlreadyExists", f"State Machine Already Exists: '{arn}'")
    response = {"stateMachineArn": arn, "creationDate": machine.created_ms}
    if wanted.published:
        version = yield from versions.publish(service, machine, wanted.description)
        response["stateMachineVersionArn"] = service.place.version(name, version.number)
    return response


def _first_snapshot(
    service: Service, request: Mapping[str, Any]
) -> Generator[Effect, Any, Snapshot]:
    machine_type: MachineType = "EXPRESS" if request.get("type") == "EXPRESS" else "STANDARD"
    definition, text = yield from _stored(service, request["definition"], machine_type)
    logging = settings.logging_of(request.get("loggingConfiguration", {}))
    yield from settings.require_log_group(service, logging)
    return Snapshot(
        definition,
        text,
        request["roleArn"],
        machine_type,
        logging,
        settings.tracing_of(request.get("tracingConfiguration", {})),
        settings.encryption_of(request.get("encryptionConfiguration")),
        revision=None,
    )


def _is_same_creation(found: StateMachine, wanted: StateMachine) -> bool:
    now = replace(found.now, role_arn=wanted.now.role_arn, revision=None)
    return (
        now == wanted.now
        and found.published == wanted.published
        and found.description == wanted.description
    )


def update_state_machine(service: Service, request: dict[str, Any], chance: bytes) -> JsonResult:
    """Update a machine. An update without a change creates no new revision."""
    arn = parse_machine_arn(request["stateMachineArn"])
    refuse_workflow(service, arn)
    if not any(field in request for field in _UPDATABLE):
        raise StatesFault(
            "MissingRequiredParameter",
            "Either the definition, the role ARN, the LoggingConfiguration, or the "
            "TracingConfiguration must be specified",
        )
    _check_version_description(request)
    refuse_label(arn)
    machine = yield from require_machine(service, arn)
    refuse_deleting(service, machine)
    changes = yield from _changes(service, machine, request)
    if request.get("publish") and replace(machine.now, **changes) != machine.now:
        # Refuse before the change. Otherwise the machine would be updated although its version
        # cannot be published.
        yield from versions.require_room(service, machine.name, machine.versions + 1)
    now_ms = yield Clock()
    revision = str(uuid.UUID(bytes=chance, version=4))

    def decide(seen: StateMachine) -> StateMachine:
        if replace(seen.now, **changes) == seen.now:
            return seen
        now = replace(seen.now, **changes, revision=revision)
        return replace(seen, now=now, updated_ms=now_ms)

    machine = yield from catalogue.change(
        service.tenant, lambda: require_machine(service, arn), decide
    )
    response: dict[str, Any] = {"updateDate": now_ms}
    if machine.now.revision is not None:
        response["revisionId"] = machine.now.revision
    if request.get("publish"):
        version = yield from versions.publish(service, machine, request.get("versionDescription"))
        response["stateMachineVersionArn"] = service.place.version(machine.name, version.number)
    return response


def _changes(
    service: Service, machine: StateMachine, request: Mapping[str, Any]
) -> Generator[Effect, Any, dict[str, Any]]:
    """Return the fields of the snapshot that the request changes."""
    changes: dict[str, Any] = {}
    if "definition" in request:
        definition, text = yield from _stored(service, request["definition"], machine.now.type)
        changes |= {"definition": definition, "text": text}
    if "roleArn" in request:
        changes["role_arn"] = require_role_arn(request["roleArn"])
    if "loggingConfiguration" in request:
        changes["logging"] = settings.logging_of(request["loggingConfiguration"])
        yield from settings.require_log_group(service, changes["logging"])
    if "tracingConfiguration" in request:
        changes["tracing"] = settings.tracing_of(request["tracingConfiguration"])
    if "encryptionConfiguration" in request:
        changes["encryption"] = settings.encryption_of(request["encryptionConfiguration"])
    return changes


def _stored(
    service: Service, text: str, machine_type: MachineType
) -> Generator[Effect, Any, tuple[str, str]]:
    """Return the hash of the definition and the digest of its text. Raises InvalidDefinition."""
    from holdfast.asl.validation.validate import sentence  # noqa: PLC0415  # rarely needed
    from holdfast.stepfunctions.actions import problems_of  # noqa: PLC0415  # rarely needed

    errors = [found for found in problems_of(text, machine_type) if found.severity == "ERROR"]
    if errors:
        raise StatesFault("InvalidDefinition", sentence(errors))
    asl = _require_storable(text)
    definition = Definition(asl, {}, definition_hash(asl))
    digest = yield from catalogue.store_text(service.tenant, definition, text)
    yield from service.programs.store(service.tenant, definition)
    return definition.hash, digest


def _require_storable(text: str) -> Json:
    """Return the definition. Raises InvalidDefinition for a value that only Java's JSON can
    represent.
    """
    asl: Json = json.loads(text)
    try:
        json.dumps(asl, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise unstorable("a number is out of range, or a text holds half a surrogate") from None
    return asl


def _check_version_description(request: Mapping[str, Any]) -> None:
    if "versionDescription" in request and not request.get("publish"):
        raise validation("Version description can only be set when publish is true")


# -- describe, delete, list ------------------------------------------------------------------------


def describe_state_machine(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """Describe a machine as it is, or a version as it was published."""
    arn = parse_machine_arn(request["stateMachineArn"])
    refuse_label(arn)
    described: StateMachine | Version
    if arn.version is None:
        described = machine = yield from require_machine(service, arn)
        then = machine.now
    else:
        described = version = yield from require_version(service, arn)
        then = version.then
    is_whole = request.get("includedData") != "METADATA_ONLY"
    details = yield from details_of(service, then, is_whole=is_whole)
    response = {
        "stateMachineArn": arn.text,
        "name": arn.name,
        "status": "DELETING" if _is_deleting(described) else "ACTIVE",
        "type": then.type,
        "creationDate": described.created_ms,
        **details,
    }
    if isinstance(described, Version) and described.description is not None:
        response["description"] = described.description
    return response


def _is_deleting(described: StateMachine | Version) -> bool:
    return isinstance(described, StateMachine) and described.is_deleting


def details_of(
    service: Service, then: Snapshot, *, is_whole: bool
) -> Generator[Effect, Any, dict[str, Any]]:
    """Return the members that descriptions of a machine and of a version have in common.

    AWS docs: when the data is left out, the definition is {} and the variables are missing.
    """
    text = (yield from text_of(service, then)) if is_whole else "{}"
    details = {
        "definition": text,
        "roleArn": then.role_arn,
        "loggingConfiguration": dict(then.logging),
        "tracingConfiguration": dict(then.tracing),
        "encryptionConfiguration": dict(then.encryption),
    }
    if then.revision is not None:
        details["revisionId"] = then.revision
    return details | references_in(text)


def references_in(text: str) -> dict[str, Any]:
    """Return {"variableReferences"}, or {} when no state reads a variable."""
    from holdfast.stepfunctions.references import variable_references  # noqa: PLC0415

    found = variable_references(json.loads(text))
    return {"variableReferences": found} if found else {}


def delete_state_machine(service: Service, request: dict[str, Any], chance: bytes) -> JsonResult:
    """Delete a machine and stop its executions. If it does not exist, that is no error."""
    arn = parse_machine_arn(request["stateMachineArn"])
    refuse_label(arn)
    if arn.qualifier is not None:
        raise validation(f"A state machine ARN is expected, without a qualifier: '{arn.text}'")
    refuse_workflow(service, arn)
    if not is_here(service, arn):
        return {}
    # Delete the machine after its versions and aliases. After a crash, a repeated request then
    # still finds the rest.
    for alias in (yield from catalogue.aliases(service.tenant, arn.name)):
        yield Delete(tables.MAIL, keys.machine(service.tenant, arn.name), keys.alias(alias.name))
    for version in (yield from catalogue.versions(service.tenant, arn.name)):
        yield Delete(
            tables.MAIL, keys.machine(service.tenant, arn.name), keys.version(version.number)
        )
    machine = yield from catalogue.machine(service.tenant, arn.name)
    if machine is not None:
        yield from deletion.delete(service, arn, machine, chance)
    return {}


def list_state_machines(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    found: dict[str, StateMachine] = {}
    for stored in (yield from catalogue.machines(service.tenant)):
        machine = (yield from find_created(service, stored.name)) if stored.is_deleting else stored
        if machine is not None:
            found[machine.name] = machine
    workflows = [find_workflow(service, name) for name in service.workflows]
    found |= {workflow.name: workflow for workflow in workflows if workflow is not None}
    machines = [found[name] for name in sorted(found)]
    shown, more = yield from page(service, request, machines, "machines", lambda one: one.name)
    listed = [
        {
            "stateMachineArn": service.place.machine(machine.name),
            "name": machine.name,
            "type": machine.now.type,
            "creationDate": machine.created_ms,
        }
        for machine in shown
    ]
    return {"stateMachines": listed, **more}


def validate_state_machine_definition(_: Service, request: dict[str, Any], __: bytes) -> JsonResult:
    """Validate a definition. With the `severity` ERROR (the default) warnings are left out. A
    warning alone is no failure.
    """
    from holdfast.stepfunctions.actions import problems_of  # noqa: PLC0415  # most calls need none

    yield from ()
    machine_type: MachineType = "EXPRESS" if request.get("type") == "EXPRESS" else "STANDARD"
    warns = request.get("severity") == "WARNING"
    found = problems_of(request["definition"], machine_type, warns=warns)
    size = request.get("maxResults") or DIAGNOSTICS_MAX
    diagnostics = [_told(one) for one in found[:size]]
    is_refused = any(one.severity == "ERROR" for one in found)
    return {
        "result": "FAIL" if is_refused else "OK",
        "diagnostics": diagnostics,
        "truncated": len(found) > size,
    }


def _told(found: DefinitionProblem) -> dict[str, str]:
    told = {"severity": found.severity, "code": found.code, "message": printable(found.message)}
    return told if found.location is None else {**told, "location": printable(found.location)}
