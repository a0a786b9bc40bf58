"""One decision while it is made: the events so far, and the state that they give.

Every change goes through `emit`, and so through `apply`: the state always equals the fold of the
events that will be in the log. Below the class are helpers for the events of tasks, and the size
limits of values.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.jsonata import jsonata
from holdfast.asl.program import Json, MapState, ParallelState, Program, State, TaskState
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core.apply.apply import apply
from holdfast.core.events import OWN_EVENTS, TASK_EVENTS, Event
from holdfast.core.facts import DecisionInputs
from holdfast.core.state import ROOT, Attempt, Awaiting, Entered, Execution, Frame, Lanes
from holdfast.limits import HISTORY_EVENTS_MAX, PAYLOAD_BYTES_MAX, STATE_SECONDS_MAX

_SERVICE_PREFIX: Final = ":states:::"
# One encoder for all calls, because `json.dumps` with these options would create an encoder for
# each call.
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_LAST_EVENTS: Final = frozenset({"ExecutionSucceeded", "ExecutionFailed"})
_LAST_MS: Final = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
#: The states that can have a Retry. AWS counts retries only for these states.
_RETRIED: Final = (TaskState, ParallelState, MapState)


class HistoryFullError(Exception):
    """The next event would be AWS's last one, and it is not the success of the execution."""


class Decision:
    """The work of one call of `advance`. It is mutable and is dropped after the call. `state` is
    set when the execution has started.
    """

    def __init__(self, program: Program, state: Execution | None, moment: DecisionInputs) -> None:
        self.program = program
        self.moment = moment
        self.events: list[Event] = []
        #: The ids of frames whose states are entered but not evaluated yet, oldest first.
        self.entered: deque[str] = deque()
        self.pure_states = 0
        self.is_started = state is not None
        if state is not None:
            self.state: Execution = state
        self._moment = jsonata.EvaluationMoment(moment.now_ms, moment.draw)

    def go_on_with(self, program: Program) -> None:
        """Use another definition from here on: the execution continues as new, with a new input."""
        self.program = program
        self.__dict__.pop("_around", None)

    def reenter(self) -> None:
        """Evaluate the states that the execution has entered: a record ended before they were
        evaluated, or a redrive has opened them again.
        """
        frames = self.state.frames.values()
        self.entered.extend(frame.id for frame in frames if isinstance(frame.waiting, Entered))

    def frame(self, frame_id: str) -> Frame:
        return self.state.frames[frame_id]

    def state_of(self, frame: Frame) -> State:
        return self.program.states[frame.position]

    # -- events ------------------------------------------------------------------------------------

    def emit(
        self,
        event_type: str,
        *,
        frame: str = ROOT,
        previous: int = 0,
        details: Mapping[str, Any] | None = None,
        at_ms: int | None = None,
        **holdfast: Any,
    ) -> int:
        """Append one event, apply it, and return its id (0 for an event that AWS does not have)."""
        if frame != ROOT:
            holdfast["frame"] = frame
        event_id = 0
        if event_type not in OWN_EVENTS:
            event_id = self.state.last_event + 1 if self.is_started else 1
            is_last = event_id >= HISTORY_EVENTS_MAX and event_type not in _LAST_EVENTS
            if is_last and has_history_limit(self.state):
                raise HistoryFullError
        at_ms = self.moment.now_ms if at_ms is None else at_ms
        event = Event(event_type, event_id, previous, at_ms, details or {}, holdfast)
        self.state = apply(self.state if self.is_started else None, event)
        self.is_started = True
        self.events.append(event)
        return event_id

    def replay(self, event: Event) -> None:
        """Append and apply an event that was copied from another execution's history."""
        self.state = apply(self.state if self.is_started else None, event)
        self.is_started = True
        self.events.append(event)

    def claim(self, timeout_seconds: int | None) -> dict[str, Any]:
        """Return the field of an event that has the lease of an attempt which begins now. {}:
        another worker runs the attempt.
        """
        claim = self.moment.claim(timeout_seconds)
        if claim is None:
            return {}
        return {"claim": [claim.owner, claim.message, claim.receive_count, claim.until_ms]}

    # -- expressions -------------------------------------------------------------------------------

    def evaluate(
        self,
        template: Template,
        frame: Frame,
        extra: Mapping[str, Json] | None = None,
        *,
        token: str | None = None,
        item: Json = None,
    ) -> Json:
        """Evaluate a template. Raises StateError.

        `extra` adds to `$states`: `result` or `errorOutput`. `token` is the callback token of the
        task that is being scheduled. `item` is the Map.Item of the iteration that is being started.
        """
        context = self._context(frame)
        if token is not None:
            context["Task"] = {"Token": token}
        if item is not None:
            context["Map"] = {"Item": item}
        states = {"input": frame.input, "context": context, **(extra or {})}
        bindings = self._variables(frame)
        bindings["states"] = states
        return template.evaluate(bindings, self._moment)

    def _variables(self, frame: Frame) -> dict[str, Json]:
        """Return the variables that a frame sees: its own, then those of the frames around it."""
        own: dict[str, Json] = dict(frame.variables)
        if frame.owner is None:
            return own
        return {**self._variables(self.state.frames[frame.owner]), **own}

    def _context(self, frame: Frame) -> dict[str, Json]:
        position: dict[str, Json] = {
            "Name": frame.position,
            "EnteredTime": iso_time(frame.entered_ms),
        }
        if isinstance(self.program.states.get(frame.position), _RETRIED):
            position["RetryCount"] = sum(frame.retries.values())
        context: dict[str, Json] = {**self._around, "State": position}
        item = self._map_item(frame)
        if item is not None:
            context["Map"] = {"Item": item}
        return context

    @functools.cached_property
    def _around(self) -> dict[str, Json]:
        """Return the part of the context object that all states of the execution share."""
        state, origin = self.state, self.state.origin
        execution: dict[str, Json] = {
            "Id": state.run if origin is None else origin["execution_arn"],
            "Input": state.input,
            "StartTime": iso_time(state.started_ms),
            "Name": (state.name or state.run) if origin is None else origin["execution_name"],
            **({} if origin is None else {"RoleArn": origin["role_arn"]}),
        }
        if origin is None or origin["type"] != "EXPRESS":
            # AWS redrives only standard executions, so the context object of an express one has no
            # count.
            execution["RedriveCount"] = state.redrives
        machine: dict[str, Json] = {"Id": state.definition, "Name": state.workflow}
        if origin is not None:
            machine = {
                "Id": origin["state_machine_arn"],
                "Name": origin["state_machine_name"],
            }
        return {"Execution": execution, "StateMachine": machine}

    def _map_item(self, frame: Frame) -> Json:
        """Return index and value of the innermost Map iteration that the frame is in."""
        while frame.owner is not None:
            owner = self.frame(frame.owner)
            if isinstance(owner.waiting, Lanes) and isinstance(owner.waiting.items, list):
                return {"Index": frame.lane, "Value": owner.waiting.items[frame.lane]}
            frame = owner
        return None


# -- the events of a task --------------------------------------------------------------------------


def event_type(state: TaskState, what: str) -> str:
    """Return the event type of a task: for "Scheduled", "TaskScheduled" or
    "LambdaFunctionScheduled".
    """
    return f"{TASK_EVENTS.get(state.kind, 'Task')}{what}"


def resource_of(state: TaskState) -> dict[str, Any]:
    """Return the resource type and name that each Task… event repeats. The events of Lambda tasks
    and activities have neither, so the result is empty for them.
    """
    if state.kind in TASK_EVENTS:
        return {}
    resource_type, resource = _split(state.resource)
    return {"resourceType": resource_type, "resource": resource}


@functools.lru_cache(maxsize=1_024)
def _split(resource: str) -> tuple[str, str]:
    """Return service and action: arn:aws:states:::aws-sdk:s3:getObject gives (aws-sdk:s3,
    getObject).
    """
    _, is_service, action = resource.partition(_SERVICE_PREFIX)
    if not is_service:
        resource_type, _, name = resource.partition(":")
        return resource_type, name
    if action.startswith("aws-sdk:"):
        service, _, name = action.removeprefix("aws-sdk:").partition(":")
        return f"aws-sdk:{service}", name
    service, _, name = action.partition(":")
    return service, name


def started_event(decision: Decision, frame: Frame, state: TaskState) -> int:
    """Write the start event of a task that a worker runs, and return its id. It is written together
    with the end of the task, to save a commit. For other tasks return the id of the event before.
    """
    if not isinstance(frame.waiting, Attempt):
        return frame.previous
    started, details = event_type(state, "Started"), resource_of(state)
    return decision.emit(started, frame=frame.id, previous=frame.previous, details=details)


def note_started(decision: Decision, *frames: Frame) -> None:
    """Write the start events of the running attempts that are about to end: those of `frames`, or
    of all frames.
    """
    for frame in frames or tuple(decision.state.frames.values()):
        state = decision.program.states.get(frame.position)
        is_running = isinstance(frame.waiting, Attempt) and frame.waiting.claim is not None
        if isinstance(state, TaskState) and is_running:
            started_event(decision, frame, state)


# -- bounds of values ------------------------------------------------------------------------------


def oversize(decision: Decision, what: str, value: Json) -> StateError | None:
    """Return the error for a value above AWS's quota on data between states; None when it fits.

    The quota holds for state machines, not for workflows. Source: AWS docs, "Step Functions service
    quotas"; the text of the error is taken from recorded histories.
    """
    origin = decision.state.origin
    if origin is None or origin.get("is_unbounded", False) or not _is_over(value):
        return None
    cause = (
        f"The state/task '{what}' returned a result with a size exceeding "
        "the maximum number of bytes service limit."
    )
    return StateError(error_names.DATA_LIMIT_EXCEEDED, cause, is_whole=True)


def _is_over(value: Json) -> bool:
    if not isinstance(value, dict | list | str):
        return False
    text = _COMPACT.encode(value)
    # A character has at most four bytes in UTF-8, so a text of a quarter of the maximum always
    # fits. Most values are that short and need not be encoded to be measured.
    if len(text) * 4 <= PAYLOAD_BYTES_MAX:
        return False
    return len(text.encode(errors="surrogatepass")) > PAYLOAD_BYTES_MAX


def result_name(state: TaskState, waiting: Attempt | Awaiting) -> str:
    """Return the name that AWS's error text gives to a task whose result is too large: the
    function's ARN, or the service.
    """
    return waiting.target if state.kind in TASK_EVENTS else _split(state.resource)[0]


def whole_seconds(value: Json, where: str, *, least: int = 0) -> int:
    """Return the value as `whole_number` does. Raises EvaluationError for more seconds than AWS
    allows.
    """
    seconds = _whole(value)
    if seconds is not None and least <= seconds <= STATE_SECONDS_MAX:
        return seconds
    from holdfast.asl.field_errors import seconds_problem  # noqa: PLC0415  # for cold starts

    problem = seconds_problem(where, value, seconds, is_positive=least > 0)
    raise EvaluationError(where, problem, is_late=True)


def whole_number(value: Json, where: str, *, least: int | None = 0) -> int:
    """Return the value as an int. Raises EvaluationError unless it is a whole number and at least
    `least`. `where` is the field, with the object that it is in: "ItemBatcher/MaxItemsPerBatch".
    """
    number = _whole(value)
    if number is not None and (least is None or number >= least):
        return number
    from holdfast.asl.field_errors import number_problem  # noqa: PLC0415  # for cold starts

    problem = number_problem(where.rpartition("/")[2], value, number)
    raise EvaluationError(where, problem, is_late=True)


def _whole(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        return None
    return int(value)


def has_history_limit(state: Execution) -> bool:
    return state.origin is not None and state.origin.get("has_history_limit", False)


def is_history_full(state: Execution) -> bool:
    """Return True when the history has no room for the event of a redrive and one more (AWS docs,
    RedriveExecution: "less than 24,999 events").
    """
    return has_history_limit(state) and state.last_event >= HISTORY_EVENTS_MAX - 1


@functools.lru_cache(maxsize=256)
def iso_time(at_ms: int) -> str:
    """Return the time in UTC with milliseconds, in the format of the context object:
    2026-01-02T03:04:05.678Z.

    A time after the year 9999 is shown as the end of that year, because readers of the text expect
    a year of four digits. Such a time is possible: a Wait until 9999-12-31T23:59:59-18:00.
    """
    at_ms = min(at_ms, _LAST_MS)
    at = dt.datetime.fromtimestamp(at_ms / 1_000, tz=dt.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1_000:03d}Z"
