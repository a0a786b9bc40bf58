"""DescribeStateMachineForExecution: the state machine as it was when the execution started."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from holdfast.runtime.effects import Effect, JsonResult
from holdfast.runtime.storage.json_values import json_text
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import parse_machine_arn
from holdfast.stepfunctions.catalogue import Service, Snapshot, StateMachine, Version
from holdfast.stepfunctions.finding import FoundExecution, require_execution
from holdfast.stepfunctions.lookup import find_machine, text_of
from holdfast.stepfunctions.machines import references_in
from holdfast.stepfunctions.workflows import DEFAULT_SETTINGS


def describe_state_machine_for_execution(
    service: Service, request: Mapping[str, Any], _: bytes
) -> JsonResult:
    """Describe the state machine of an execution. Definition and role are the execution's own. The
    settings are the machine's present ones, or AWS's defaults when the machine was deleted.
    """
    found = yield from require_execution(service, request["executionArn"])
    machine = yield from _machine(service, found)
    version = yield from _version(service, found)
    then = _then(machine, version)
    origin = found.origin
    shown: dict[str, Any] = {
        "stateMachineArn": origin["state_machine_arn"],
        "name": origin["state_machine_name"],
        "roleArn": origin["role_arn"],
    }
    if "map_run_arn" in origin:
        shown["mapRunArn"] = origin["map_run_arn"]
        shown["label"] = found.arn.label
    text = "{}"  # AWS docs: the definition has this text when the data is left out
    if request.get("includedData") != "METADATA_ONLY":
        text = yield from _text(service, found, then)
    settings = _settings(found, then, _updated_ms(machine, version, found.started_ms))
    return {**shown, **settings, "definition": text, **references_in(text)}


def _text(
    service: Service, found: FoundExecution, then: Snapshot | None
) -> Generator[Effect, Any, str]:
    """Return the original text of the machine's definition or, if the machine has changed since, a
    stored text of the same definition.
    """
    if then is not None and then.definition == found.definition:
        return (yield from text_of(service, then))
    text = yield from catalogue.any_text_of(service.tenant, found.definition)
    if text is not None:
        return str(text)
    definition = yield from service.programs.fetch(service.tenant, found.definition)
    return json_text(definition.asl)


def _settings(found: FoundExecution, then: Snapshot | None, updated_ms: int) -> dict[str, Any]:
    if then is None:
        settings: dict[str, Any] = {
            f"{name}Configuration": given for name, given in DEFAULT_SETTINGS.items()
        }
        return {**settings, "updateDate": updated_ms}
    settings = {
        "loggingConfiguration": then.logging,
        "tracingConfiguration": then.tracing,
        "encryptionConfiguration": then.encryption,
        "updateDate": updated_ms,
    }
    is_same = then.definition == found.definition and then.revision is not None
    return {**settings, "revisionId": then.revision} if is_same else settings


def _machine(
    service: Service, found: FoundExecution
) -> Generator[Effect, Any, StateMachine | None]:
    """Return the machine; None if a machine with the same name was created after the start."""
    machine = yield from find_machine(service, found.origin["state_machine_name"])
    return None if machine is None or machine.created_ms > found.started_ms else machine


def _version(service: Service, found: FoundExecution) -> Generator[Effect, Any, Version | None]:
    text = found.origin.get("version_arn")
    if text is None:
        return None
    arn = parse_machine_arn(text)
    return (yield from catalogue.version(service.tenant, arn.name, arn.version or 0))


def _then(machine: StateMachine | None, version: Version | None) -> Snapshot | None:
    if version is not None:
        return version.then
    return None if machine is None else machine.now


def _updated_ms(machine: StateMachine | None, version: Version | None, started_ms: int) -> int:
    """Return the time of the machine's last change before the start; if it was changed after the
    start, the time of its creation.
    """
    if version is not None:
        return version.created_ms
    if machine is None:
        return started_ms
    return machine.updated_ms if machine.updated_ms <= started_ms else machine.created_ms
