"""Executions in full: each event with all its fields, and its change of the state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.core.facts import (
    ActivityStarted,
    EventReceived,
    Fact,
    HeartbeatSeen,
    Polled,
    StopRequested,
    Submitted,
)
from holdfast.core.state_json import to_json
from tests.unit.core_tasks_test import MachineCase

GONE = "(gone)"


class Told(MachineCase):
    """`lines` are the events so far, one fact at a time."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        super().__init__(dict(definition))
        self.lines: list[str] = []
        self._known: dict[str, Any] = {}

    def _step(self, facts: tuple[Fact, ...]) -> None:
        first = len(self.events)
        super()._step(facts)
        self.lines.append(f"-- {', '.join(type(fact).__name__ for fact in facts)}")
        for event in self.events[first:]:
            own = f" | {_text(event.holdfast)}" if event.holdfast else ""
            self.lines.append(
                f"{event.id} <{event.previous} {event.type} {_text(event.details)}{own}"
            )
        state = _by_id(to_json(self.state))
        self.lines.append(f"= {_text(_changed(self._known, state))}")
        self._known = state

    @classmethod
    def of_machine(
        cls, definition: Mapping[str, Any], data: Any = None, execution_type: str = "STANDARD"
    ) -> Told:
        """A state machine's execution, started; `start` begins one of a workflow."""
        case = cls(definition)
        case.begin(data, execution_type)
        return case

    # -- what happens ------------------------------------------------------------------------------

    def beat(self, seconds: int = 0) -> Told:
        self.now_ms += seconds * 1_000
        self.offer(HeartbeatSeen(self.waiting().entry, self.now_ms))
        return self

    def poll(self) -> Told:
        waiting = self.waiting()
        self.offer(Polled(waiting.entry, waiting.attempt, waiting.polls))
        return self

    def take(self, worker: str | None) -> Told:
        waiting = self.waiting()
        self.offer(ActivityStarted(waiting.entry, waiting.attempt, worker))
        return self

    def receive(self, event_id: str, data: Any, at: str | None = None) -> Told:
        self.offer(EventReceived(self.waiting(at).entry, event_id, data, self.now_ms + 60_000))
        return self

    def return_from_call(self, output: Any, at: str | None = None) -> Told:
        waiting = self.waiting(at)
        self.offer(Submitted(waiting.entry, waiting.attempt, output))
        return self

    def stop(self, control: str = "1", *, by_parent: bool = False) -> Told:
        self.offer(StopRequested(control, "Closed", "the shop closes", by_parent))
        return self


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _by_id(document: Mapping[str, Any]) -> dict[str, Any]:
    frames = {
        name: {frame["id"]: frame for frame in document[name]} for name in ("frames", "resting")
    }
    return {**document, **frames}


def _changed(before: Any, after: Any) -> Any:
    """Return the new or different fields of the second JSON object."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    found = {
        key: _changed(before.get(key), value)
        for key, value in after.items()
        if key not in before or before[key] != value
    }
    return found | {key: GONE for key in before if key not in after}
