"""One execution driven by hand through `advance`: facts in, events out, time as told.

After every step the state in hand is held against the fold of the whole history, and against its
own JSON: no test here has to ask for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.asl.parsing.parse import parse_definition
from holdfast.core.advance import advance
from holdfast.core.apply.apply import fold
from holdfast.core.events import Event
from holdfast.core.facts import DecisionInputs, Fact, FailedWith, Started, Succeeded, Tick
from holdfast.core.state import Attempt, Awaiting, Execution, Frame, Lease
from holdfast.core.state_json import from_json, to_json
from holdfast.core.waits import has_more
from tests.builders import Machine, call, machine

START_MS = 1_800_000_000_000
RUN = "01run"


def one(state: Mapping[str, Any], **top: Any) -> Machine:
    """A definition of this one state, called `it`, which ends it."""
    ends = {} if state["Type"] in {"Succeed", "Fail", "Choice"} else {"End": True}
    return machine({"it": {**ends, **state}}, **top)


def part(name: str, follow: str | None = None) -> tuple[Machine, Machine]:
    """A task `name`, taken back by `undo <name>`, and its entry in the extension.

    `why_<name>` is the reason.
    """
    states = {
        name: call(name, follow),
        f"undo {name}": call(f"undo {name}", f"{name} undone"),
        f"{name} undone": {"Type": "Fail", "Error": "never seen"},
    }
    undo = {
        "States": [name],
        "Begin": f"undo {name}",
        "End": f"{name} undone",
        "Assign": {f"why_{name}": "{% $states.errorOutput.Error %}"},
    }
    return states, undo


def nobody(_timeout_seconds: int | None) -> None:
    """Return attempts without a lease."""
    return


def claim(timeout_seconds: int | None) -> Lease:
    return Lease("me", "message", 1, START_MS + 1_000 * (timeout_seconds or 60))


class Case:
    """`at` is the state that waits; it may be left out where only one does."""

    def __init__(
        self,
        definition: Machine,
        *,
        draw: Callable[[], float] = lambda: 0.5,
        claim: Callable[[int | None], Lease | None] = claim,
    ) -> None:
        self.program = parse_definition(definition)
        self.now_ms = START_MS
        self.events: list[Event] = []
        self.records = 0
        self._draw = draw
        self._claim = claim
        self._state: Execution | None = None

    # -- what happens ------------------------------------------------------------------------------

    def start(self, data: Any = None, name: str | None = "order-1") -> Case:
        return self.offer(Started(RUN, name, "flow", data, START_MS))

    def offer(self, *facts: Fact) -> Case:
        """Offer the facts, then continue for as long as records are full."""
        self._step(facts)
        while self._state is not None and has_more(self._state):
            self._step(())
        return self

    def _step(self, facts: tuple[Fact, ...]) -> None:
        moment = DecisionInputs(self.now_ms, self._draw, self._claim, clock_error_ms=0)
        step = advance(self.program, self._state, facts, moment)
        self.events += step.events
        self.records += bool(step.events)
        self._state = step.state
        assert fold(self.events) == step.state
        assert from_json(json.loads(json.dumps(to_json(step.state)))) == step.state

    def succeed(self, output: Any = None, at: str | None = None) -> Case:
        waiting = self.waiting(at)
        return self.offer(Succeeded(waiting.entry, waiting.attempt, output))

    def fail(self, error: str | None, cause: str | None = None, at: str | None = None) -> Case:
        waiting = self.waiting(at)
        return self.offer(FailedWith(waiting.entry, waiting.attempt, error, cause))

    def after(self, seconds: float) -> Case:
        self.now_ms += int(seconds * 1_000)
        return self.offer(Tick())

    # -- what is seen ------------------------------------------------------------------------------

    @property
    def state(self) -> Execution:
        assert self._state is not None
        return self._state

    @property
    def output(self) -> Any:
        assert self.state.status == "SUCCEEDED", (self.state.error, self.state.cause)
        return self.state.output

    @property
    def failure(self) -> tuple[str | None, str | None]:
        assert self.state.status == "FAILED", self.state
        return self.state.error, self.state.cause

    def frame(self, at: str | None = None) -> Frame:
        """The one frame in state `at`, or the one that waits for a result from outside."""
        (found,) = [
            frame
            for frame in self.state.frames.values()
            if (at is None and isinstance(frame.waiting, Attempt | Awaiting))
            or frame.position == at
        ]
        return found

    def waiting(self, at: str | None = None) -> Any:
        return self.frame(at).waiting

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def positions(self) -> list[str]:
        """The states in which tasks and waits are open, in the order of their frames."""
        return [frame.position for frame in self.state.frames.values() if _is_leaf(frame)]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def links(self) -> list[tuple[int, int, str]]:
        """(id, previous, type) of every event that AWS has too."""
        return [(event.id, event.previous, event.type) for event in self.events if event.id]

    def last(self, event_type: str) -> Event:
        found: Event = next(event for event in reversed(self.events) if event.type == event_type)
        return found


def _is_leaf(frame: Frame) -> bool:
    return hasattr(frame.waiting, "entry") and not hasattr(frame.waiting, "results")


def run(definition: Machine, data: Any = None, **options: Any) -> Case:
    """A machine that waits for nothing, from start to end."""
    return Case(definition, **options).start(data)
