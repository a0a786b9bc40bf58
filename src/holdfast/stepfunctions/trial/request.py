"""The request of TestState, read and checked as far as possible without the state.

Codes and texts are those of recordings, or else in their style. Types, lengths and enums were
already checked against AWS's model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from holdfast.asl.program import Json, MapState, ParallelState, State, TaskState
from holdfast.stepfunctions.arns import require_role_arn
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault, validation
from holdfast.stepfunctions.starts import input_of, json_problem
from holdfast.stepfunctions.trial import context, schema

InspectionLevel: TypeAlias = Literal["INFO", "DEBUG", "TRACE"]

#: The name of a state that is tested alone, in its context object and in the locations of its
#: definition.
STATE_NAME: Final = "StateName"
_ALONE: Final = (
    "TestState API does not support Map or Parallel states. "
    "Supported state types include: [Task, Wait, Pass, Succeed, Fail, Choice]"
)


@dataclass(frozen=True, slots=True)
class MockedResult:
    """A mocked result of a task."""

    value: Json
    mode: schema.Mode


@dataclass(frozen=True, slots=True)
class MockedError:
    """A mocked error, or the error of a state. Either field may be absent."""

    error: str | None
    cause: str | None


Mock: TypeAlias = MockedResult | MockedError


@dataclass(frozen=True, slots=True)
class Trial:
    """A request for one state. `input_text` is its input as written. `failed_iterations` and
    `context` are None when the request does not have them.
    """

    input: Json
    input_text: str
    variables: Mapping[str, Json]
    level: InspectionLevel
    reveals: bool
    role_arn: str | None
    mock: Mock | None
    context: Json | None
    retries: int
    failed_iterations: int | None
    reader_data: str | None

    @property
    def trace(self) -> Literal["PUBLIC", "ALL"] | None:
        """Return the parts of an HTTP request to show; None: the level shows none."""
        if self.level != "TRACE":
            return None
        return "ALL" if self.reveals else "PUBLIC"


def parse_trial(service: Service, request: Mapping[str, Any]) -> Trial:
    """Parse the request. Raises StatesFault: ValidationException, InvalidArn,
    InvalidExecutionInput; AccessDeniedException for secrets that this stack does not reveal.
    """
    mock = _mock(request.get("mock"))
    configuration = request.get("stateConfiguration") or {}
    if mock is None:
        _refuse_without_mock(request, configuration)
    elif request.get("revealSecrets"):
        raise validation("TestState does not support RevealSecrets when a mock is specified.")
    reveals = bool(request.get("revealSecrets"))
    if reveals and not service.may_reveal_secrets:
        raise StatesFault(
            "AccessDeniedException",
            f"User: {service.caller or 'anonymous'} is not authorized to perform: "
            "states:RevealSecrets, because a stack does not show the secrets of connections",
        )
    return Trial(
        input=input_of(service, request),
        input_text=request.get("input", "{}"),
        variables=_variables(request.get("variables")),
        level=cast("InspectionLevel", request.get("inspectionLevel", "INFO")),
        reveals=reveals,
        role_arn=require_role_arn(request["roleArn"]) if "roleArn" in request else None,
        mock=mock,
        context=json_of(request["context"], "Context") if "context" in request else None,
        retries=configuration.get("retrierRetryCount", 0),
        failed_iterations=configuration.get("mapIterationFailureCount"),
        reader_data=configuration.get("mapItemReaderData"),
    )


def _mock(given: Mapping[str, Any] | None) -> Mock | None:
    if given is None or not ("result" in given or "errorOutput" in given):
        return None
    if "result" in given and "errorOutput" in given:
        raise validation(
            "A test mock should have only one of the following fields: [result, errorOutput]."
        )
    if "result" in given:
        mode = given.get("fieldValidationMode", "STRICT")
        return MockedResult(json_of(given["result"], "Mocked result"), cast("schema.Mode", mode))
    error = given["errorOutput"]
    if "error" not in error:
        raise validation("The field 'error' is required when mock.errorOutput is specified.")
    return MockedError(error["error"], error.get("cause"))


def _refuse_without_mock(request: Mapping[str, Any], configuration: Mapping[str, Any]) -> None:
    given = [name for name in ("context",) if name in request]
    given += [name for name in configuration if configuration[name] is not None]
    for name in given:
        title = name[:1].upper() + name[1:]
        raise validation(f"TestState does not support {title} when a mock is not specified.")


def _variables(text: str | None) -> Mapping[str, Json]:
    variables = {} if text is None else json_of(text, "Variables")
    if not isinstance(variables, dict):
        raise validation("Variables must be a JSON object.")
    return variables


def json_of(text: str, what: str) -> Json:
    """Return the JSON. Raises ValidationException, which names `what`."""
    if json_problem(text) is not None:
        raise validation(f"{what} must be valid JSON.")
    return cast("Json", json.loads(text))


# -- checks against the state ----------------------------------------------------------------------


def require_fit(trial: Trial, state: State) -> None:
    """Raise StatesFault when mock, role, context or configuration do not fit the state."""
    _require_mockable(trial, state)
    if trial.mock is None and isinstance(state, TaskState):
        if trial.role_arn is None:
            raise validation("RoleArn must be specified when testing a Task state")
        _require_callable(state)
    if trial.context is not None:
        problem = context.find_problem(trial.context, state)
        if problem is not None:
            raise validation(problem)
    if isinstance(trial.mock, MockedResult):
        problem = _result_problem(trial.mock, state)
        if problem is not None:
            raise validation(problem)


def _require_mockable(trial: Trial, state: State) -> None:
    if isinstance(state, MapState | ParallelState):
        if trial.mock is None:
            raise StatesFault("InvalidDefinition", _ALONE)
    elif trial.mock is not None and not isinstance(state, TaskState):
        kind = type(state).__name__.removesuffix("State")
        raise validation(f"State type '{kind}' is not supported when a mock is specified")


def _require_callable(task: TaskState) -> None:
    """Refuse a task that would wait for an answer from outside and has no mock (API reference)."""
    if task.kind in {"sync", "callback", "activity", "event", "ask", "token"}:
        raise StatesFault(
            "InvalidDefinition",
            "TestState API does not support Activity tasks, '.sync' or '.waitForTaskToken' "
            "service integration patterns when a mock is not specified",
        )


def _result_problem(mock: MockedResult, state: State) -> str | None:
    match state:
        case TaskState():
            return schema.find_problem(state, mock.value, mock.mode)
        case MapState(run=run) if run and run.writer and run.writer.arguments:
            return None if isinstance(mock.value, dict) else "Mocked result must be a JSON object."
        case _ if not isinstance(mock.value, list):
            return "Mocked result must be an array."
        case ParallelState() if len(mock.value) != len(state.branches):
            return (
                "Mocked result must contain the same number of items as number of Parallel "
                "branches."
            )
        case _:
            return None
