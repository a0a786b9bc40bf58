"""A decision in the making: the events so far, and the state that they give.

Every change goes through `emit`, and so through `apply`: the state in hand is the fold of what will
be in the log.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections import deque
from collections.abc import Mapping
from typing import Any

from holdfast.asl import jsonata
from holdfast.asl.program import Json, Program, State
from holdfast.asl.template import Template
from holdfast.core.apply import apply
from holdfast.core.events import OWN_EVENTS, Event
from holdfast.core.facts import Moment
from holdfast.core.state import ROOT, Execution, Frame, Lanes
from holdfast.errors import HoldfastBug


class Decision:
    """Mutable, used by one call of `advance`, never kept."""

    def __init__(self, program: Program, state: Execution | None, moment: Moment) -> None:
        self.program = program
        self.moment = moment
        self.events: list[Event] = []
        #: Frames that have entered a state which nobody has evaluated yet, oldest first.
        self.entered: deque[str] = deque()
        self.pure_states = 0
        self._state = state

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
        """Appends one event, applies it, and gives its id (0 for an event of our own)."""
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
        self, template: Template, frame: Frame, extra: Mapping[str, Json] | None = None
    ) -> Json:
        """Raises EvaluationError. `extra` adds to `$states`: result or errorOutput."""
        states = {"input": frame.input, "context": self._context(frame), **(extra or {})}
        bindings = {**self.state.bindings_of(frame), "states": states}
        return template.evaluate(bindings, jsonata.Moment(self.moment.now_ms, self.moment.draw))

    def _context(self, frame: Frame) -> dict[str, Json]:
        state = self.state
        context: dict[str, Json] = {
            "Execution": {
                "Id": state.run,
                "Input": state.input,
                "Name": state.name or state.run,
                "StartTime": iso_time(state.started_ms),
                "RedriveCount": 0,
            },
            "State": {
                "EnteredTime": iso_time(frame.entered_ms),
                "Name": frame.position,
                "RetryCount": frame.retry_count,
            },
            "StateMachine": {"Id": state.definition, "Name": state.workflow},
        }
        item = self._map_item(frame)
        return {**context, "Map": {"Item": item}} if item is not None else context

    def _map_item(self, frame: Frame) -> dict[str, Json] | None:
        """-> index and value of the innermost Map iteration that the frame is in."""
        while frame.owner is not None:
            owner = self.frame(frame.owner)
            if isinstance(owner.waiting, Lanes) and isinstance(owner.waiting.items, list):
                return {"Index": frame.lane, "Value": owner.waiting.items[frame.lane]}
            frame = owner
        return None


@functools.lru_cache(maxsize=256)
def iso_time(at_ms: int) -> str:
    """-> UTC with milliseconds, as the context object writes it: 2026-01-02T03:04:05.678Z."""
    at = dt.datetime.fromtimestamp(at_ms / 1_000, tz=dt.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1_000:03d}Z"
