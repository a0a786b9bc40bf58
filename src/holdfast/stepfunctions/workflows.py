"""Deployed workflows as state machines of the Step Functions API.

A deployed workflow has the ARN of a state machine with its name, the compiled definition and the
type STANDARD. Its source is the user's code, so this API does not create, change or delete it.

The name of a deployed workflow always means the workflow. CreateStateMachine with such a name is
refused. A machine that was created with that name before the deployment is hidden, and visible
again when no workflow has the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.core.run_ids import child_name, uuid_of
from holdfast.core.state import Execution, MachineOrigin
from holdfast.stepfunctions.arns import ArnRegion, MachineArn
from holdfast.stepfunctions.catalogue import Service, Snapshot, StateMachine
from holdfast.stepfunctions.faults import StatesFault, validation

#: The settings that DescribeStateMachine shows for a machine that was created without settings (AWS
#: API).
DEFAULT_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "logging": {"level": "OFF", "includeExecutionData": False},
    "tracing": {"enabled": False},
    "encryption": {"type": "AWS_OWNED_KEY"},
}
#: The creation time that is shown for the state machine of a workflow. A deployment does not store
#: the real one.
CREATED_MS: Final = 0


def find_workflow(service: Service, name: str) -> StateMachine | None:
    """Return the deployed workflow in the form of a state machine, None for any other name."""
    definition = service.workflows.get(name)
    if definition is None:
        return None
    now = Snapshot(
        definition.hash, "", role_of(service.place), "STANDARD", revision=None, **DEFAULT_SETTINGS
    )
    return StateMachine(name, now, CREATED_MS, CREATED_MS)


def role_of(place: ArnRegion) -> str:
    """Return an ARN for members that AWS requires. It is not used: tasks of a workflow run with the
    worker's role.
    """
    return f"arn:{place.partition}:iam::{place.account}:role/holdfast-worker"


def origin_of_workflow(
    place: ArnRegion, workflow: str, run: str, name: str | None
) -> MachineOrigin:
    """Return the ARNs and names with which this API shows an execution of a workflow."""
    execution_name = name or own_name(run)
    return {
        "execution_arn": place.execution(workflow, execution_name),
        "execution_name": execution_name,
        "state_machine_arn": place.machine(workflow),
        "state_machine_name": workflow,
        "role_arn": role_of(place),
        "type": "STANDARD",
    }


def origin_of_state(service: Service, state: Execution) -> MachineOrigin:
    if state.origin is not None:
        return state.origin
    return origin_of_workflow(service.place, state.workflow, state.run, state.name)


def own_name(run: str) -> str:
    """Return the name of an execution that was started without one."""
    return child_name(run) if "." in run else uuid_of(run)


def refuse_workflow(service: Service, arn: MachineArn) -> None:
    """Refuse an operation that would change a deployed workflow. Raises ValidationException."""
    if arn.place == service.place and arn.name in service.workflows:
        raise validation(
            f"{arn.name} is a workflow of this stack's code, and not changed by this API: "
            "change its source, compile and deploy"
        )


def refuse_name_of_workflow(service: Service, name: str) -> None:
    """Refuse the name of a deployed workflow. Raises StateMachineAlreadyExists."""
    if name in service.workflows:
        raise StatesFault(
            "StateMachineAlreadyExists",
            f"State Machine Already Exists: '{service.place.machine(name)}' is a workflow of this "
            "stack's code; choose another name",
        )
