"""The Resource, the Credentials and the two time limits of a Task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.asl.resources import Resource, is_arn_of_a_task, read_resource
from holdfast.asl.validation import paths, values
from holdfast.asl.validation.report import RuleScope, expected


def check_resource(scope: RuleScope, value: Any, location: str) -> None:
    """Check a Task's Resource, and whether a machine of this type may use it."""
    if not isinstance(value, str):
        return expected(scope, location, "STRING")
    found = read_resource(value)
    if found is not None:
        return _express_resource(scope, found, location)
    if not is_arn_of_a_task(value):
        return scope.refuse(location, "Value is not a valid resource ARN")
    return scope.refuse(location, unrecognized(value))


def unrecognized(resource: str) -> str:
    """Return AWS's sentence about a Resource that it does not know."""
    return (
        f"The resource provided {resource} is not recognized. The value is not a valid resource "
        "ARN, or the resource is not available in this region."
    )


def _express_resource(scope: RuleScope, found: Resource, location: str) -> None:
    if scope.machine_type != "EXPRESS":
        return
    if found.kind == "activity":
        scope.refuse(location, "Express state machine does not support Activity ARN")
    elif found.pattern:
        pattern = found.pattern.removesuffix(":2")
        scope.refuse(
            location,
            f"Express state machine does not support '{pattern}' service integration ",
        )


def check_credentials(scope: RuleScope, value: Any, location: str) -> None:
    """Check a Task's Credentials: a role, which may be an expression."""
    if scope.is_jsonata and isinstance(value, str):
        return values.jsonata_text(scope, value, location)
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    if not {"RoleArn", "RoleArn.$"} & value.keys():
        return scope.refuse(location, "The field 'RoleArn' is required but was missing")
    return paths.payload_or_template(scope, value, location)


def check_task(scope: RuleScope, state: Mapping[str, Any], location: str) -> None:
    """Check rules for two fields of a Task together."""
    timeout, heartbeat = state.get("TimeoutSeconds"), state.get("HeartbeatSeconds")
    if isinstance(timeout, int) and isinstance(heartbeat, int) and heartbeat >= timeout:
        scope.refuse(
            f"{location}/HeartbeatSeconds",
            "'HeartbeatSeconds' must be smaller than 'TimeoutSeconds'",
        )
    resource = state.get("Resource")
    found = read_resource(resource) if isinstance(resource, str) else None
    if found is not None and found.kind == "activity" and "Credentials" in state:
        scope.refuse(location, "The field 'Credentials' is not supported for activities")
