"""I16 for an execution that waits: it may wait only for something that can still happen.

The check reads each line of control from the state, and the scenario. It does not use the engine's
own rules about due times and waits, so an error in them shows. Each child is checked by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import assert_never

from holdfast.core.run_ids import child_run
from holdfast.core.state import (
    Admission,
    Attempt,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Timer,
    is_told,
)
from holdfast.limits import EVENT_RETENTION_SECONDS
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.dues import stuck_ms_max
from holdfast_simulator.invariants.event_claims import is_too_old, usable_since_ms


class Rests:
    """One open execution. `running`: the ids of all open executions of the tenant."""

    def __init__(
        self, evidence: Evidence, history: StoredHistory, running: Collection[str], now_ms: int
    ) -> None:
        self._evidence, self._history, self._running = evidence, history, running
        self._patience_ms = stuck_ms_max(evidence, history.run)
        self._before_ms = now_ms - self._patience_ms
        self._moved_ms = history.records[-1].at_ms

    def violations(self) -> Iterator[str]:
        state = self._history.state
        if state.paused is not None:
            # The execution waits for its resume; I17 examines a resume that no worker has applied
            return
        if self._is_past(state.due_ms):
            yield f"{state.run} runs, and its time was over at {state.due_ms}"
        for frame in state.frames.values():
            wanted_ms = self._wanted_ms(frame)
            if self._is_past(wanted_ms):
                yield (
                    f"{state.run} rests in {frame.position!r} on {type(frame.waiting).__name__},"
                    f" which should be over since {wanted_ms}"
                )

    def _is_past(self, at_ms: int | None) -> bool:
        return at_ms is not None and at_ms < self._before_ms

    def _wanted_ms(self, frame: Frame) -> int | None:
        """Return the time of the first event that ends or changes the wait; None without any."""
        waiting = frame.waiting
        moments = [deadline.due_ms for deadline in frame.deadlines]
        match waiting:
            case Timer(_, due_ms) | Delay(_, due_ms):
                moments.append(due_ms)
            case Attempt(claim=claim, due_ms=due_ms):
                moments.append(due_ms if claim is None else claim.until_ms)
            case Awaiting():
                moments += self._awaited(frame, waiting)
            case ChildExecutions(entry=entry):
                children = (child_run(self._run, entry, lane) for lane in waiting.open_lanes)
                if not any(child in self._running for child in children):
                    moments.append(self._moved_ms)
            case Lanes():
                frames = self._history.state.frames.values()
                if not any(one.owner == frame.id for one in frames):
                    moments.append(self._moved_ms)
            case Entered() | Exited() | FailedState() | Admission():
                moments.append(self._moved_ms)
            case _:
                assert_never(waiting)
        return min(moments, default=None)

    @property
    def _run(self) -> str:
        return self._history.run

    def _awaited(self, frame: Frame, waiting: Awaiting) -> Iterator[int]:
        dues = (waiting.due_ms, waiting.heartbeat_due_ms, waiting.poll_due_ms)
        yield from (due for due in dues if due is not None)
        scenario = self._evidence.scenario
        if waiting.kind == "event":
            yield from self._brought(waiting)
        elif waiting.kind == "activity":
            seconds = scenario.outcome(waiting.target, waiting.attempt).seconds
            yield waiting.since_ms + int(seconds * 1_000)
        elif not is_told(waiting.target):
            if waiting.poll_due_ms is None:
                seconds = scenario.answer(frame.position).seconds
                yield waiting.since_ms + int(seconds * 1_000)
        elif child_run(self._run, waiting.entry, waiting.attempt) not in self._running:
            yield self._moved_ms

    def _usable_since_ms(self, waiting: Awaiting, place: str, event_id: str) -> int | None:
        """An event that is not stored was never accepted. TTL may have deleted a stored one."""
        sk = keys.stored_event(event_id)
        for item in self._evidence.services.items(tables.MAIL):
            if (item["pk"], item["sk"]) == (place, sk):
                if is_too_old(waiting.arguments, self._history.state.started_ms, item):
                    return None
                return usable_since_ms(self._evidence, self._history.tenant, self._run, item)
        return 0

    # -- events ------------------------------------------------------------------------------------

    def _brought(self, waiting: Awaiting) -> Iterator[int]:
        """Yield the time of each event that the wait could have used. An event that expires too
        soon for a worker to read it does not count.
        """
        used = {event.holdfast.get("event") for event in self._history.events}
        place = keys.event(self._history.tenant, waiting.event_name, waiting.event_key)
        for brought in self._evidence.scenario.events:
            is_for_it = (brought.event, brought.key) == (waiting.event_name, waiting.event_key)
            if not is_for_it or brought.id in used:
                continue
            # For an event that the API did not accept, only the attempt to send it is known.
            stored_ms = self._evidence.stored.get((place, keys.stored_event(brought.id)))
            usable_ms = self._usable_since_ms(waiting, place, brought.id)
            if usable_ms is None:
                continue
            there_ms = max(stored_ms or 0, usable_ms, waiting.since_ms)
            expires_ms = (stored_ms or there_ms) + EVENT_RETENTION_SECONDS * 1_000
            if expires_ms > there_ms + self._patience_ms:
                yield there_ms
