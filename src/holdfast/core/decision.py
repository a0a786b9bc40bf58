"""A decision in the making: the events so far, and the state that they give.

Every change goes through `emit`, and so through `apply`: the state in hand is the fold of what will
be in the log.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from holdfast.asl.jsonata import jsonata
from holdfast.asl.program import Json, MapState, ParallelState, Program, State, TaskState
from holdfast.asl.template import Template
from holdfast.core.apply.apply import apply
from holdfast.core.events import OWN_EVENTS, Event
from holdfast.core.facts import DecisionInputs
from holdfast.core.state import ROOT, Execution, Frame, Lanes
from holdfast.errors import HoldfastBug

_LAST_MS: Final = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
#: The states that can have a Retry: AWS counts retries only there.
_RETRIED: Final = (TaskState, ParallelState, MapState)


class Decision:
    """The work of one call of `advance`. Mutable, never kept."""

    def __init__(self, program: Program, state: Execution | None, moment: DecisionInputs) -> None:
        self.program = program
        self.moment = moment
        self.events: list[Event] = []
        #: Frames whose state was entered and not evaluated yet, oldest first.
        self.entered: deque[str] = deque()
        self.pure_states = 0
        self._state = state
        self._moment = jsonata.EvaluationMoment(moment.now_ms, moment.draw)

    @property
    def state(self) -> Execution:
        if self._state is None:
            raise HoldfastBug("an execution that has not started was asked for its state")
        return self._state

    @property
    def is_started(self) -> bool:
        return self._state is not None

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
            event_id = 1 if self._state is None else self._state.last_event + 1
        at_ms = self.moment.now_ms if at_ms is None else at_ms
        event = Event(event_type, event_id, previous, at_ms, details or {}, holdfast)
        self._state = apply(self._state, event)
        self.events.append(event)
        return event_id

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

        `extra` adds to `$states`: result or errorOutput. `token` is the callback token of the task
        that is scheduled, `item` the Map.Item of one that is begun.
        """
        context = self._context(frame)
        if token is not None:
            context["Task"] = {"Token": token}
        if item is not None:
            context["Map"] = {"Item": item}
        states = {"input": frame.input, "context": context, **(extra or {})}
        bindings = self.state.bindings_of(frame)
        bindings["states"] = states
        return template.evaluate(bindings, self._moment)

    @property
    def is_bounded(self) -> bool:
        """True when AWS's quota on the size of data applies: for the API's state machines, unless
        lifted.
        """
        origin = None if self._state is None else self._state.origin
        return origin is not None and not origin.get("is_unbounded", False)

    def _context(self, frame: Frame) -> dict[str, Json]:
        position: dict[str, Json] = {
            "Name": frame.position,
            "EnteredTime": iso_time(frame.entered_ms),
        }
        if isinstance(self.program.states.get(frame.position), _RETRIED):
            position["RetryCount"] = frame.retry_count
        context: dict[str, Json] = {**self._around, "State": position}
        item = self._map_item(frame)
        if item is not None:
            context["Map"] = {"Item": item}
        return context

    @functools.cached_property
    def _around(self) -> dict[str, Json]:
        """The part of the context that is the same in the whole execution."""
        state, origin = self.state, self.state.origin
        execution: dict[str, Json] = {
            "Id": state.run if origin is None else origin["execution_arn"],
            "Input": state.input,
            "StartTime": iso_time(state.started_ms),
            "Name": (state.name or state.run) if origin is None else origin["execution_name"],
            **({} if origin is None else {"RoleArn": origin["role_arn"]}),
        }
        if origin is None or origin["type"] != "EXPRESS":
            execution["RedriveCount"] = state.redrives  # AWS redrives standard executions alone
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


@functools.lru_cache(maxsize=256)
def iso_time(at_ms: int) -> str:
    """Return UTC with milliseconds, as the context object writes it: 2026-01-02T03:04:05.678Z.

    A time after the year 9999 is shown as the end of that year. A definition may wait for
    9999-12-31T23:59:59-18:00, and readers of such a text expect a year of four digits.
    """
    at_ms = min(at_ms, _LAST_MS)
    at = dt.datetime.fromtimestamp(at_ms / 1_000, tz=dt.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1_000:03d}Z"
