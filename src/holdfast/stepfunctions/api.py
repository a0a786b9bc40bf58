"""The entry point of the API: from an operation's name and its request to its response or a
StatesFault.

Headers, bytes and status lines of the JSON protocol are handled by the host. A module of operations
is imported when one of its operations is called, so that a cold start imports only what it needs.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.core.state import Parent
from holdfast.runtime.effects import JsonResult
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault

#: The function of one operation. It gets the service, a request that `require_valid` has checked,
#: and CHANCE_BYTES random bytes, from which it creates ids. It returns times in whole milliseconds,
#: which `call` converts to seconds.
Operation: TypeAlias = Callable[[Service, dict[str, Any], bytes], JsonResult]

CHANCE_BYTES: Final = 16

#: The modules, each with the operations that it implements. The name of an operation's function is
#: that of the operation in lower case with underscores.
MODULES: Final[dict[str, tuple[str, ...]]] = {
    "machines": (
        "CreateStateMachine",
        "UpdateStateMachine",
        "DescribeStateMachine",
        "DeleteStateMachine",
        "ListStateMachines",
        "ValidateStateMachineDefinition",
    ),
    "versions": (
        "PublishStateMachineVersion",
        "ListStateMachineVersions",
        "DeleteStateMachineVersion",
    ),
    "aliases": (
        "CreateStateMachineAlias",
        "UpdateStateMachineAlias",
        "DescribeStateMachineAlias",
        "DeleteStateMachineAlias",
        "ListStateMachineAliases",
    ),
    "tags": ("TagResource", "UntagResource", "ListTagsForResource"),
    "executions": (
        "StartExecution",
        "DescribeExecution",
        "StopExecution",
        "RedriveExecution",
    ),
    "listing": ("ListExecutions",),
    "for_execution": ("DescribeStateMachineForExecution",),
    "history": ("GetExecutionHistory",),
    "tasks": ("SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"),
    "activities": (
        "CreateActivity",
        "DescribeActivity",
        "DeleteActivity",
        "ListActivities",
        "GetActivityTask",
    ),
    "express": ("StartSyncExecution",),
    "map_runs": ("ListMapRuns", "DescribeMapRun", "UpdateMapRun"),
    "trial.trial": ("TestState",),
}
OPERATIONS: Final = {name: module for module, names in MODULES.items() for name in names}

#: The members that are times in the responses. `call` converts them to seconds.
_TIMES: Final = {
    "creationDate",
    "updateDate",
    "startDate",
    "stopDate",
    "redriveDate",
    "timestamp",
}


@dataclass(frozen=True, slots=True)
class StatesApi:
    service: Service

    def call(
        self, operation: str, request: Any, chance: bytes, parent: Parent | None = None
    ) -> JsonResult:
        """Return the response in the form of the JSON protocol: times are seconds, with
        milliseconds.

        `parent` is the task that waits for the end of the execution that it starts. Raises
        StatesFault.
        """
        from holdfast.stepfunctions.shapes import require_valid  # noqa: PLC0415

        perform = find_operation(operation)
        is_limited = self.service.payload_bytes_max is not None
        valid = require_valid(operation, request, is_payload_limited=is_limited)
        if parent is not None and operation == "StartExecution":
            from holdfast.stepfunctions.executions import start_nested  # noqa: PLC0415

            response = yield from start_nested(self.service, valid, chance, parent)
        else:
            response = yield from perform(self.service, valid, chance)
        return {name: _seconds(name, member) for name, member in response.items()}


def find_operation(operation: str) -> Operation:
    """Return the function of the operation. Raises StatesFault UnknownOperationException."""
    module = OPERATIONS.get(operation)
    if module is None:
        raise StatesFault("UnknownOperationException", f"there is no operation {operation}")
    found = importlib.import_module(f"holdfast.stepfunctions.{module}")
    function: Operation = getattr(found, function_name(operation))
    return function


def function_name(operation: str) -> str:
    """Return the function's name: CreateStateMachine gives create_state_machine."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()


def _seconds(name: str, value: Any) -> Any:
    """Return the member of a response, with every time in seconds instead of milliseconds."""
    match value:
        case dict():
            return {inner: _seconds(inner, member) for inner, member in value.items()}
        case list() | tuple():
            return [_seconds("", item) for item in value]
        case int() if name in _TIMES:
            return value / 1_000
        case _:
            return value
