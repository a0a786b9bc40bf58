"""TestState: runs one state once, without waiting, and returns everything that it computes.

The engine runs the state (`stage.py`); this module prepares its input and the response. Sources:
API reference, TestState; Developer Guide, "Testing state machines with TestState API"; recordings
of AWS for what is shown of which state, and for all texts.

One thing differs from AWS: a Wait does not wait.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.program import Json, MapState, ParallelState, Retrier, State, TaskState
from holdfast.core.retry import delay_ms, find_catcher, matches
from holdfast.core.state import Attempt
from holdfast.runtime.effects import Clock, Effect, RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.trial.context import TrialSetting, context_of
from holdfast.stepfunctions.trial.definition import Tested, find_tested
from holdfast.stepfunctions.trial.http import http_stages
from holdfast.stepfunctions.trial.notes import note_input, observers_of
from holdfast.stepfunctions.trial.request import (
    MockedError,
    MockedResult,
    Trial,
    parse_trial,
    require_fit,
)
from holdfast.stepfunctions.trial.stage import Notes, Play, Scene, stage

#: A test takes at most five minutes (API reference of TestState).
SECONDS_MAX: Final = 300


def test_state(
    service: Service, request: dict[str, Any], chance: bytes
) -> Generator[Effect, Any, dict[str, Any]]:
    """Return {status, output?, error?, cause?, nextState?, inspectionData?}.

    Raises StatesFault: InvalidArn, InvalidDefinition, InvalidExecutionInput, ValidationException.
    """
    trial = parse_trial(service, request)
    tested = find_tested(request["definition"], request.get("stateName"))
    require_fit(trial, tested.state)
    now_ms = yield Clock()
    setting = TrialSetting(service.place, trial.role_arn, now_ms, chance)
    scene = _scene(trial, tested.state, setting)
    notes = Notes()
    note_input(tested, scene, now_ms, notes)
    program = stage(tested.state, scene, notes, observers_of(tested, trial, scene, notes))
    play = Play(program, scene, now_ms)
    failure = _failure_of(notes)
    if play.attempt is not None:
        result = _mocked(trial)
        if result is None:
            call = _call(tested.state, notes, play.attempt, service.tenant, now_ms)
            result = service.missing_task(call.kind, call.name)
            if result is None:
                result = yield replace(call, trace=trial.trace)
            notes.http = http_stages(result.exchange)
        failure = _finish(play, notes, tested, result)
    return _response(trial, tested.state, notes, play, failure)


def _scene(trial: Trial, state: State, setting: TrialSetting) -> Scene:
    context = trial.context
    if context is None:
        context = context_of(state, trial.input, trial.retries, setting)
    return Scene(trial.input, trial.variables, context, trial.retries, setting.chance)


# -- the result ------------------------------------------------------------------------------------


def _mocked(trial: Trial) -> TaskSucceeded | TaskFailed | None:
    match trial.mock:
        case MockedResult(value):
            return TaskSucceeded(value)
        case MockedError(error, cause):
            return TaskFailed(error, cause)
        case _:
            return None


def _call(state: State, notes: Notes, attempt: Attempt, tenant: str, now_ms: int) -> RunTask:
    assert isinstance(state, TaskState)
    seconds = min(attempt.timeout_seconds or SECONDS_MAX, SECONDS_MAX)
    return RunTask(
        name=state.target,
        kind=state.kind,
        arguments=attempt.arguments,
        tenant=tenant,
        run="",
        run_name=None,
        workflow="",
        entry=attempt.entry,
        attempt=attempt.attempt,
        deadline_ms=now_ms + seconds * 1_000,
        credentials=notes.role_arn,
    )


def _finish(
    play: Play, notes: Notes, tested: Tested, result: TaskSucceeded | TaskFailed
) -> MockedError | None:
    """Return the error of the state, whether it was handled or not."""
    if isinstance(result, TaskFailed):
        play.fail(result.error, result.cause)
        return MockedError(result.error, result.cause)
    if isinstance(tested.state, TaskState):
        notes.stages["result"] = result.output
    play.succeed(result.output)
    return _failure_of(notes)


def _failure_of(notes: Notes) -> MockedError | None:
    return None if notes.error is None else MockedError(notes.error.error, notes.error.cause)


# -- the response ----------------------------------------------------------------------------------


def _response(
    trial: Trial, state: State, notes: Notes, play: Play, failure: MockedError | None
) -> dict[str, Any]:
    response: dict[str, Any] = {}
    exited = play.find("StateExited")
    if exited is not None:
        response["status"] = "SUCCEEDED" if failure is None else "CAUGHT_ERROR"
        response["output"] = _text(exited.details["output"])
        response["nextState"] = play.next_state
    elif play.state.is_ended:
        response["status"] = "FAILED"
        failure = MockedError(play.state.error, _without_opening(play.state.cause, state))
    else:
        response["status"] = "RETRIABLE"
    if failure is not None:
        response |= {"error": failure.error, "cause": failure.cause}
    if trial.level != "INFO":
        assigned = exited.details.get("assignedVariables") if exited else None
        response["inspectionData"] = {
            "input": trial.input_text,
            **{name: _text(value) for name, value in notes.stages.items()},
            **notes.numbers,
            **notes.http,
            **_variables({**trial.variables, **(assigned or {})}),
            **_error_details(state, failure, response["status"], trial.retries),
        }
    return {name: value for name, value in response.items() if value is not None}


def _without_opening(cause: str | None, state: State) -> str | None:
    """Return the cause without the sentence that points to an event. AWS leaves it out, because a
    single state has no event.
    """
    opening = f"An error occurred while executing the state '{state.name}' (entered at the event id"
    return cause and cause.removeprefix(f"{opening} #2). ")


def _variables(variables: Mapping[str, Json]) -> dict[str, str]:
    return {"variables": _text(variables)} if variables else {}


def _error_details(
    state: State, failure: MockedError | None, status: str, retries: int
) -> dict[str, Any]:
    """Return the retrier and the catcher that matched the error. A retrier without retries left is
    included.
    """
    if failure is None or not isinstance(state, TaskState | MapState | ParallelState):
        return {}
    error, details = failure.error or "", {}
    found = _find_retrier(state.retry, error)
    if found is not None:
        number, retrier = found
        details["retryIndex"] = number
        if status == "RETRIABLE":
            # AWS shows the longest delay that the jitter may cause.
            details["retryBackoffIntervalSeconds"] = delay_ms(retrier, retries, 1.0) // 1_000
    catcher = find_catcher(state.catch, error)
    if status == "CAUGHT_ERROR" and catcher is not None:
        details["catchIndex"] = state.catch.index(catcher)
    return {"errorDetails": details} if details else {}


def _find_retrier(retriers: tuple[Retrier, ...], error: str) -> tuple[int, Retrier] | None:
    for number, retrier in enumerate(retriers):
        if matches(retrier.errors, error):
            return number, retrier
    return None


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
