"""The context object of a state under test: the caller's, or that of an invented execution.

Sources: API reference, TestState (`context`); recordings of AWS for texts and structure.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl.program import Json, MapState, ParallelState, State, TaskState
from holdfast.core.decision import iso_time
from holdfast.stepfunctions.arns import ArnRegion

_FIELDS: Final[Mapping[str, Mapping[str, type[Any]]]] = {
    "Execution": {
        "Id": str,
        "Input": object,
        "Name": str,
        "RoleArn": str,
        "StartTime": str,
        "RedriveCount": int,
        "RedriveTime": str,
    },
    "State": {"EnteredTime": str, "Name": str, "RetryCount": int},
    "StateMachine": {"Id": str, "Name": str},
    "Task": {"Token": str},
}
_KINDS: Final[Mapping[type[Any], str]] = {str: "a string", int: "a number"}


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """The place and time of a test. `chance` are 16 random bytes."""

    place: ArnRegion
    role_arn: str | None
    now_ms: int
    chance: bytes


def find_problem(context: Json, state: State) -> str | None:
    """Return the problem in a context object that a caller has written, or None."""
    problem = _problem(context, state)
    return problem and f"Invalid Context object provided: {problem}"


def _problem(context: Json, state: State) -> str | None:
    if not isinstance(context, dict):
        return "Context object must be a JSON object"
    for name, value in context.items():
        if name == "Map":
            return "'Map' field is not supported when mocking a Context object"
        if name not in _FIELDS:
            return f"Field '{name}' is not allowed"
        problem = _problem_within(name, value)
        if problem is not None:
            return problem
    if "Task" in context and not has_token(state):
        return (
            "Context object contains 'Task' when state is not a Task state with a '.sync' or "
            "'.waitForTaskToken' service integration pattern"
        )
    return None


def _problem_within(name: str, value: Json) -> str | None:
    if not isinstance(value, dict):
        return f"Field '{name}' must be an object"
    for key, item in value.items():
        kind = _FIELDS[name].get(key)
        if kind is None:
            return f"Field '{key}' is not allowed"
        if not isinstance(item, kind) or (kind is int and isinstance(item, bool)):
            return f"Field '{key}' must be {_KINDS[kind]}"
    return None


def has_token(state: State) -> bool:
    return isinstance(state, TaskState) and state.kind in {"callback", "sync"}


def context_of(state: State, data: Json, retries: int, setting: TrialSetting) -> dict[str, Json]:
    """Return the context object of a state that is entered now.

    Machine, execution and token are invented for this call. As in recordings of AWS, it is an
    express execution.
    """
    machine = str(uuid.UUID(bytes=setting.chance))
    execution = str(uuid.uuid5(uuid.NAMESPACE_URL, machine))
    at = iso_time(setting.now_ms)
    role: dict[str, Json] = {} if setting.role_arn is None else {"RoleArn": setting.role_arn}
    task: dict[str, Json] = {"Task": {"Token": execution}} if has_token(state) else {}
    position: dict[str, Json] = {"Name": state.name, "EnteredTime": at}
    if isinstance(state, TaskState | ParallelState | MapState):
        position["RetryCount"] = retries
    return {
        "Execution": {
            "Id": setting.place.arn("express", machine, execution),
            "Input": data,
            "Name": execution,
            **role,
            "StartTime": at,
        },
        "StateMachine": {"Id": setting.place.machine(machine), "Name": machine},
        "State": position,
        **task,
    }
