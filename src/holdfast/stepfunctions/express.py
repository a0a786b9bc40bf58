"""StartSyncExecution: an express machine runs in memory, on the same core as every execution.

It has no log and no messages, because the caller waits for it. Tasks run as in a worker; the run
itself waits for its timers. If the process crashes, the run is lost and the caller's request fails
(AWS docs, "Standard and Express workflows": at most once when synchronous).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import Json, Program
from holdfast.core import facts
from holdfast.core.advance import advance
from holdfast.core.diagnosis import next_due_ms
from holdfast.core.events import Event
from holdfast.core.facts import DecisionInputs, Fact
from holdfast.core.run_ids import uuid_of
from holdfast.core.state import Attempt, Execution, MachineOrigin
from holdfast.core.waits import attempts_of, has_more
from holdfast.runtime import execution_logs
from holdfast.runtime.effects import (
    Begin,
    Clock,
    Deadline,
    Effect,
    Finished,
    JsonResult,
    Pause,
    RunTask,
    Ticket,
)
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.json_values import json_text
from holdfast.runtime.storage.log import draw
from holdfast.runtime.worker.attempts import result_fact, ticket_of
from holdfast.stepfunctions.arns import require_name
from holdfast.stepfunctions.catalogue import Service, Startable
from holdfast.stepfunctions.faults import type_not_supported
from holdfast.stepfunctions.starts import input_of, origin_of, shown_trace, traced
from holdfast.stepfunctions.versions import resolve_for_start

DURATION_MS_MAX: Final = 300_000  # AWS quota: an express execution's five minutes
BILLED_MS: Final = 100  # AWS pricing: durations are rounded up to 100 ms
# AWS rounds the memory up to 64 MB (AWS pricing). The memory of a single run is not measured here,
# so the least is shown.
BILLED_MEMORY_MB: Final = 64


def start_sync_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Run the execution, and return its end: SUCCEEDED, FAILED or TIMED_OUT. Several may have the
    same name.

    Raises StateMachineTypeNotSupported for a standard machine.
    """
    if "name" in request:
        require_name(request["name"])
    startable = yield from resolve_for_start(service, request["stateMachineArn"], chance)
    if startable.type != "EXPRESS":
        raise type_not_supported()
    data = input_of(service, request)
    yield from service.programs.fetch(service.tenant, startable.definition)
    now_ms = yield Clock()
    run = keys.mint_run(service.tenant, now_ms, chance, service.keys.secret, service.spread.minted)
    origin = _origin(service, startable, request, run)
    hold = ExpressRun(service, service.programs.program(startable.definition), origin)
    state = yield from hold.run(run, data, now_ms)
    end_ms = yield Clock()
    return _answer(state, end_ms, has_data=request.get("includedData") != "METADATA_ONLY")


def _origin(
    service: Service, startable: Startable, request: Mapping[str, Any], run: str
) -> MachineOrigin:
    identifier = uuid_of(run)
    name = str(request.get("name", identifier))
    arn = service.place.express(startable.name, name, identifier)
    return traced(origin_of(service, startable, arn, name), request)


def _answer(state: Execution, end_ms: int, *, has_data: bool) -> dict[str, Any]:
    origin, status = state.origin, state.status
    assert origin is not None
    if not state.is_ended:
        status = "TIMED_OUT"
    stopped_ms = end_ms if state.stopped_ms is None else state.stopped_ms
    included = {"included": has_data}
    shown: dict[str, Any] = {
        "executionArn": origin["execution_arn"],
        "stateMachineArn": origin["state_machine_arn"],
        "name": origin["execution_name"],
        "startDate": state.started_ms,
        "stopDate": stopped_ms,
        "status": status,
        "inputDetails": included,
        # AWS sends this member for every end, even for one without an output, as recordings show.
        "outputDetails": included,
        "billingDetails": _billed(stopped_ms - state.started_ms),
        **shown_trace(origin),
    }
    error = error_names.TIMEOUT if status == "TIMED_OUT" and state.error is None else state.error
    texts = {"error": error, "cause": state.cause}
    shown |= {name: text for name, text in texts.items() if text is not None}
    if has_data:
        shown["input"] = json_text(state.input)
        if status == "SUCCEEDED":
            shown["output"] = json_text(state.output)
    return shown


def _billed(duration_ms: int) -> dict[str, int]:
    return {
        "billedDurationInMilliseconds": max(1, math.ceil(duration_ms / BILLED_MS)) * BILLED_MS,
        "billedMemoryUsedInMB": BILLED_MEMORY_MB,
    }


# -- the run ---------------------------------------------------------------------------------------


@dataclass
class ExpressRun:
    """One run of an express execution, from its start to its end or to `until_ms`. `begun` has the
    time-out of each running task.
    """

    service: Service
    program: Program
    origin: MachineOrigin
    until_ms: int = 0
    begun: dict[Ticket, int] = field(default_factory=dict)
    draws: int = 0
    unlogged: list[Event] = field(default_factory=list)

    def run(self, run: str, data: Json, now_ms: int) -> Generator[Effect, Any, Execution]:
        """Return the state at the end. If it has not ended, the run has timed out."""
        # Stop at the deadline of this process at the latest. The caller waits for it, and its
        # invocation may end before the five minutes of the run.
        self.until_ms = min(now_ms + DURATION_MS_MAX, (yield Deadline()))
        workflow = keys.machine_workflow(self.origin["state_machine_name"])
        started = facts.Started(run, None, workflow, data, now_ms, self.origin)
        state = self._advance(None, [started], run, now_ms)
        while not state.is_ended:
            offered: list[Fact] = []
            if not has_more(state):
                offered = yield from self._begin(state, now_ms)
                offered = offered or (yield from self._wait(state, now_ms))
            now_ms = yield Clock()
            if now_ms >= self.until_ms:
                break
            offered = [*offered, *self._timed_out(now_ms), facts.Tick()]
            state = self._advance(state, offered, run, now_ms)
        if self.unlogged:
            if not state.is_ended:
                last = self.unlogged[-1].id
                self.unlogged.append(Event("ExecutionTimedOut", last + 1, last, now_ms, {}, {}))
            yield from execution_logs.write(self.service.tenant, state, self.unlogged)
        return state

    def _advance(
        self, state: Execution | None, offered: Sequence[Fact], run: str, now_ms: int
    ) -> Execution:
        step = advance(self.program, state, offered, self._moment(run, now_ms))
        if "log" in self.origin:
            self.unlogged += step.events
        return step.state

    def _begin(self, state: Execution, now_ms: int) -> Generator[Effect, Any, list[Fact]]:
        """Begin the tasks that are due. Return the failures of those that cannot begin."""
        failures: list[Fact] = []
        for attempt in attempts_of(state):
            ticket = ticket_of(attempt)
            if ticket in self.begun or attempt.due_ms > now_ms:
                continue
            missing = self.service.missing_task(attempt.kind, attempt.target)
            if missing is not None:
                failures.append(result_fact(ticket, missing, is_answered_later=False))
                continue
            seconds = attempt.timeout_seconds
            deadline_ms = self.until_ms if seconds is None else now_ms + seconds * 1_000
            self.begun[ticket] = deadline_ms
            yield Begin(ticket, self._task(state, attempt, deadline_ms))
        return failures

    def _task(self, state: Execution, attempt: Attempt, deadline_ms: int) -> RunTask:
        return RunTask(
            name=attempt.target,
            kind=attempt.kind,
            arguments=attempt.arguments,
            tenant=self.service.tenant,
            run=state.run,
            run_name=state.name,
            workflow=state.workflow,
            entry=attempt.entry,
            attempt=attempt.attempt,
            deadline_ms=deadline_ms,
            credentials=attempt.credentials,
            arns=(self.origin["state_machine_arn"], self.origin["execution_arn"]),
            is_timed=True,
        )

    def _wait(self, state: Execution, now_ms: int) -> Generator[Effect, Any, list[Fact]]:
        """Wait for a task's result, a timer or a time-out, and return the facts."""
        until_ms = min([self.until_ms, *self.begun.values(), *self._dues(state)])
        if not self.begun:
            yield Pause(max(0, until_ms - now_ms))
            return []
        done = yield Finished(until_ms)
        known = [(ticket, result) for ticket, result in done if ticket in self.begun]
        for ticket, _ in known:
            del self.begun[ticket]
        return [result_fact(*one, is_answered_later=False) for one in known]

    def _dues(self, state: Execution) -> list[int]:
        due: list[int] = [] if state.due_ms is None else [state.due_ms]
        for frame in state.frames.values():
            waiting = frame.waiting
            due += [deadline.due_ms for deadline in frame.deadlines]
            is_begun = isinstance(waiting, Attempt) and ticket_of(waiting) in self.begun
            next_ms = None if is_begun else next_due_ms(frame)
            due += [] if next_ms is None else [next_ms]
        return due

    def _timed_out(self, now_ms: int) -> list[Fact]:
        """Return the facts of attempts that have timed out. Forget these attempts, so that their
        late results are ignored.
        """
        late = [ticket for ticket, deadline_ms in self.begun.items() if deadline_ms <= now_ms]
        for ticket in late:
            del self.begun[ticket]
        return [facts.TimedOut(*ticket) for ticket in late]

    def _moment(self, run: str, now_ms: int) -> DecisionInputs:
        def next_draw() -> float:
            self.draws += 1
            return draw(run, 0, self.draws)

        # The run has one host and one clock, so it needs no margin for differences between clocks.
        return DecisionInputs(now_ms, next_draw, claim=lambda _: None, clock_error_ms=0)
