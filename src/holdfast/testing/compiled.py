"""The compiled run: the state machine runs on the core, without a runtime and without AWS."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, assert_never

from holdfast.api.boundary import JsonValue
from holdfast.api.library import LOG, NOW, library_task
from holdfast.api.library_signatures import CLOCKS
from holdfast.api.services import HTTP_TARGET
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.asl.resources import (
    AGAIN,
    CHILD_WORKFLOW,
    CONTAINER,
    POOL,
    REPLY,
    STOP,
    is_later,
    is_request,
    started_by,
)
from holdfast.compiler.graphs.services import service_named
from holdfast.core.advance import advance
from holdfast.core.apply.apply import apply
from holdfast.core.events import Event
from holdfast.core.facts import (
    ActivityStarted,
    DecisionInputs,
    EventReceived,
    Fact,
    FailedWith,
    Renewed,
    Started,
    StopRequested,
    Submitted,
    Succeeded,
    Tick,
    TimedOut,
)
from holdfast.core.later import later_ms
from holdfast.core.state import (
    KEPT,
    ROOT,
    Admission,
    Attempt,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    OpenDeadline,
    Timer,
)
from holdfast.core.waits import has_more
from holdfast.errors import RequestError
from holdfast.service_models import python_name
from holdfast.testing.definitions import answer_type, event_type, program_of
from holdfast.testing.direct import DRAWN
from holdfast.testing.ends import CHILD_ABORTED, End, end_of_error
from holdfast.testing.places import RunPath, WaitingPlace
from holdfast.testing.script import Diverged, Script, ScriptedAnswer
from holdfast.testing.secrecy import SEALS
from holdfast.testing.timeline import Over, Timeline, Trace

#: To fire one timer, the run makes it due this much earlier than now. Timers that are due now do
#: not fire with it.
_TICK_MS = 2
_FOR_EVER_MS = 1 << 62
#: Stands for the number of a deadline and means the time-out of the whole execution.
_WHOLE = -1


def run_compiled(
    workflow: Workflow[..., Any],
    given: Mapping[str, JsonValue],
    script: Script,
    stop_ms: int | None,
) -> Trace:
    """Run the compiled workflow with the answers that the direct run has received."""
    timeline = Timeline(script)
    machines = _Machines(timeline)
    root: _Machine
    try:
        # The stop comes first, so that it precedes other events at the same time.
        if stop_ms is not None:
            timeline.begin(WaitingPlace((), lambda _: root.stop(), "silent", timeout_ms=stop_ms))
        root = machines.start(workflow, given, (), None)
        while machines.are_open:
            over = timeline.next()
            if over is None:
                return Trace(None, timeline.calls, timeline.now_ms, str(timeline.stuck()))
            over.place.owner(over)
    except Diverged as diverged:
        return Trace(None, timeline.calls, timeline.now_ms, str(diverged))
    return Trace(root.end(), timeline.calls, root.ended_ms, attributes=root.attributes())


@dataclass
class _Machines:
    """The executions of one run: the workflow, and the children that it starts."""

    timeline: Timeline
    running: list[_Machine] = field(default_factory=list)

    @property
    def are_open(self) -> bool:
        return any(not machine.state.is_ended for machine in self.running)

    def start(
        self,
        workflow: Workflow[..., Any],
        given: Mapping[str, JsonValue],
        path: RunPath,
        parent: WaitingPlace | None,
    ) -> _Machine:
        machine = _Machine(self, workflow, path, parent)
        self.running.append(machine)
        machine.begin(given)
        return machine


class _Machine:
    """One execution on the core, and its waits by entry number and attempt."""

    state: Execution

    def __init__(
        self,
        machines: _Machines,
        workflow: Workflow[..., Any],
        path: RunPath,
        parent: WaitingPlace | None,
    ) -> None:
        self.machines = machines
        self.workflow = workflow
        self.path = path
        self.parent = parent
        self.ended_ms = 0
        self._program = program_of(workflow)
        self._timeline = machines.timeline
        self._own = self._timeline.new_execution(path)
        self._places: dict[tuple[int, int], WaitingPlace] = {}
        self._children: dict[int, _Machine] = {}

    def begin(self, given: Mapping[str, JsonValue]) -> None:
        now_ms = self._timeline.now_ms
        own = self._own
        name = None if own.name == own.id else own.name
        started = Started(own.id, name, self.workflow.name, dict(given), now_ms)
        self._advance(None, [started], self._moment())
        self._settle()

    def stop(self) -> None:
        if not self.state.is_ended:
            self._offer(StopRequested("1", None, None))

    def end(self) -> End:
        state = self.state
        match state.status:
            case "SUCCEEDED":
                return End("SUCCEEDED", output=state.output)
            case "FAILED":
                return End("FAILED", None, state.error, state.cause or "")
            case "ABORTED" | "TIMED_OUT" as status:
                return End(status)
            case _:
                raise AssertionError("the execution is still running")

    def attributes(self) -> dict[str, JsonValue]:
        """Return the search attributes by name."""
        assert self.state is not None
        return {name: one.value for name, one in self.state.attributes.items()}

    def _moment(self, clock_error_ms: int = 0) -> DecisionInputs:
        return DecisionInputs(
            now_ms=self._timeline.now_ms,
            draw=lambda: DRAWN,
            claim=lambda _: None,
            clock_error_ms=clock_error_ms,
            token=lambda entry, attempt: f"token {entry}.{attempt}",
        )

    def _offer(self, fact: Fact) -> None:
        self._advance(self.state, [fact], self._moment())
        self._settle()

    def _advance(
        self, state: Execution | None, offered: Sequence[Fact], moment: DecisionInputs
    ) -> None:
        transition = advance(self._program, state, offered, moment)
        self.state = transition.state
        if any(event.type == "Published" for event in transition.events):
            self._note_published(state, transition.events)

    def _note_published(self, state: Execution | None, events: Sequence[Event]) -> None:
        """Record published values together with their branches, which may have ended since."""
        for event in events:
            if event.type == "Published":
                assert state is not None
                frame = state.frames[event.holdfast.get("frame", ROOT)]
                path = (*self.path, *lanes_of(state, frame))
                self._timeline.publish(event.holdfast["name"], event.holdfast["value"], path)
            state = apply(state, event)

    def _tick(self, state: Execution) -> None:
        """Apply every event that was due in `state` at least `_TICK_MS` ago."""
        moment = self._moment(_TICK_MS // 2)
        self._advance(state, [Tick()], moment)
        self._settle()

    def _settle(self) -> None:
        """Open a place for each new wait, and close the places of waits that have ended."""
        while not self.state.is_ended:
            facts = [] if has_more(self.state) else self._of_library()
            if not facts and not has_more(self.state):
                break
            self._advance(self.state, facts, self._moment())
        wanted = {} if self.state.is_ended else self._wanted()
        for key in [key for key in self._places if key not in wanted]:
            self._timeline.close(self._places.pop(key))
            child = self._children.pop(key[0], None)
            if child is not None:
                child.stop()
        begun = [key for key in wanted if key not in self._places]
        self._places = wanted
        for key in begun:
            if wanted[key].kind == "workflow":
                wanted[key].run_child = partial(self._start_child, key, wanted[key])
            self._timeline.begin(wanted[key])
        if self.state.is_ended and not self.ended_ms:
            self.ended_ms = self._timeline.now_ms
            if self.parent is not None and not self.parent.is_closed:
                self._timeline.finish(self.parent, ScriptedAnswer(0))

    def _of_library(self) -> list[Fact]:
        """Return the results of functions of Python's library, which the direct run really
        calls.
        """
        waiting = (frame.waiting for frame in self.state.frames.values())
        return [
            self._library_result(attempt, task)
            for attempt in waiting
            if isinstance(attempt, Attempt) and attempt.kind == "pure"
            if (task := library_task(attempt.target)) is not None
        ]

    def _library_result(self, attempt: Attempt, step: Task[..., Any]) -> Fact:
        answer = self._timeline.script.drawn(step, attempt.arguments)
        if answer is None:
            return pure_result(attempt, step, self._timeline.now_ms)
        return _fact(attempt, answer)

    def _start_child(self, key: tuple[int, int], place: WaitingPlace) -> None:
        workflow = self._timeline.script.workflow_called(place.name)
        path = (*place.path, place.name)
        given: Any = place.arguments
        # As the engine does: a parameter `n: int` of the child gets 1 for True. An input that does
        # not fit ends the child as it does in Python.
        with contextlib.suppress(RequestError):
            given = workflow.normalise_input(given, SEALS)
        self._offer(Submitted(*key, None))
        child = self.machines.start(workflow, given, path, place)
        self._children[key[0]] = child
        # Without an answer the timeout of the call has passed, and the child still runs.
        place.owner = lambda over: self._offer(
            TimedOut(*key) if over.answer is None else _told(*key, child.end())
        )

    # -- places ------------------------------------------------------------------------------------

    def _wanted(self) -> dict[tuple[int, int], WaitingPlace]:
        """Return the waits of the state. The deadline of a block comes before the waits inside
        it.
        """
        found: dict[tuple[int, int], WaitingPlace] = {}

        def want(entry: int, number: int, *make: Any) -> None:
            known = self._places.get((entry, number))
            found[entry, number] = known or make[0](*make[1:])

        if self.state.due_ms is not None and self.state.stopping is None:
            want(_WHOLE, 0, self._timeout, self.state.due_ms)
        for frame in self.state.frames.values():
            path = (*self.path, *lanes_of(self.state, frame))
            for due in frame.deadlines:
                want(due.entry, 0, self._deadline, path, frame.id, due)
            waiting = frame.waiting
            match waiting:
                case Attempt():
                    want(waiting.entry, waiting.attempt, self._attempt, path, waiting)
                case Awaiting():
                    want(waiting.entry, waiting.attempt, self._wait, path, waiting, frame.position)
                case Timer(entry, due_ms) | Delay(entry, due_ms):
                    want(entry, 1, self._timer, path, frame, due_ms)
                case (
                    Entered() | Exited() | FailedState() | Admission() | Lanes() | ChildExecutions()
                ):
                    # No event from outside ends these waits.
                    pass
                case _:
                    assert_never(waiting)
        return found

    def _again(self, path: RunPath, attempt: Attempt) -> WaitingPlace:
        def renew(_: Over) -> None:
            data = self.workflow.normalise_input(attempt.arguments, SEALS)
            self._offer(Renewed(attempt.entry, attempt.attempt, self._program, data))

        return WaitingPlace(path, renew, "again", self.workflow.name, attempt.arguments)

    def _command(self, path: RunPath, attempt: Attempt) -> WaitingPlace:
        given: Any = attempt.arguments
        if attempt.target == AGAIN:
            return self._again(path, attempt)
        started, now_ms = started_by(attempt.target), self._timeline.now_ms
        if attempt.target == REPLY:
            place = WaitingPlace(path, None, "reply", "", given)
        elif attempt.target == STOP:
            place = WaitingPlace(path, None, "stop", given["execution"])
        elif started is None:
            place = WaitingPlace(path, None, "send", given["name"])
            place.arguments = {"key": given["key"], "data": given["data"]}
        elif is_later(attempt.target):
            place = WaitingPlace(path, None, "start", started, given["input"])
        else:
            place = WaitingPlace(path, None, "start", started, given)
        if is_later(attempt.target):
            place.after_ms = later_ms(given, now_ms) - now_ms
        place.owner = lambda over: self._offer(_fact(attempt, over.answer))
        return place

    def _attempt(self, path: RunPath, attempt: Attempt) -> WaitingPlace:
        if attempt.kind == "command":
            return self._command(path, attempt)
        if is_request(attempt.kind, attempt.target):
            return self._request(path, attempt)
        if attempt.target.startswith(CONTAINER):
            return self._elsewhere(path, attempt)
        timeout = attempt.timeout_seconds
        is_child = attempt.target.startswith(CHILD_WORKFLOW)
        name = _name_of(attempt)
        script = self._timeline.script
        task: Any = script.tasks.get(name)
        if is_child:
            name = name.removeprefix(CHILD_WORKFLOW)
            task = script.workflow_called(name)
        elif task is None and attempt.kind == "service":
            # No module declares the call of a service: the name alone says what it is.
            task = service_named(name)
        arguments: Any = attempt.arguments
        # Add the defaults of omitted parameters. The call in Python has them, too, so both runs
        # then have the same arguments.
        if task is not None:
            arguments = {**task.boundary.default_arguments(SEALS), **arguments}

        def end(over: Over) -> None:
            if is_child:
                # The child has an outcome of the script, so no child has been started.
                self._offer(Submitted(attempt.entry, attempt.attempt, None))
            self._offer(_fact(attempt, over.answer))

        return WaitingPlace(
            path=path,
            owner=end,
            kind="workflow" if is_child else "pure" if attempt.kind == "pure" else "task",
            name=name,
            arguments=arguments,
            subject=task,
            attempt=attempt.attempt,
            begins_ms=attempt.due_ms,
            timeout_ms=None if timeout is None else timeout * 1_000,
            key=self._key(attempt),
        )

    def _request(self, path: RunPath, attempt: Attempt) -> WaitingPlace:
        given: Any = attempt.arguments
        frame = self.state.frame_of(attempt.entry)
        assert frame is not None
        timeout = attempt.timeout_seconds

        def end(over: Over) -> None:
            self._offer(Submitted(attempt.entry, attempt.attempt, None))
            self._offer(_fact(attempt, over.answer))

        return WaitingPlace(
            path=path,
            owner=end,
            kind="request",
            name=given["name"],
            arguments={"key": given["key"], "data": given["data"]},
            subject=answer_type(self.workflow, frame.position),
            timeout_ms=None if timeout is None else timeout * 1_000,
        )

    def _elsewhere(self, path: RunPath, waiting: Attempt | Awaiting) -> WaitingPlace:
        """Let another process take the task at once. After that the task runs as any other task
        does.
        """
        given: Any = waiting.arguments
        task = self._timeline.script.tasks.get(given["task"])
        arguments = given["arguments"]
        if task is not None:
            arguments = {**task.boundary.default_arguments(SEALS), **arguments}
        timeout = waiting.timeout_seconds
        since_ms, begun = _begun(waiting)

        def end(over: Over) -> None:
            self._offer(begun)
            self._offer(_fact(waiting, over.answer))

        return WaitingPlace(
            path=path,
            owner=end,
            kind="task",
            name=given["task"],
            arguments=arguments,
            subject=task,
            attempt=waiting.attempt,
            begins_ms=since_ms,
            timeout_ms=None if timeout is None else timeout * 1_000,
            key=self._key(waiting),
            pool=_pool_of(waiting.target),
        )

    def _key(self, waiting: Attempt | Awaiting) -> str:
        """Return the idempotency key of a task, in the form that the engine gives it."""
        return f"{self._own.id}.{waiting.entry}"

    def _wait(self, path: RunPath, awaiting: Awaiting, position: str) -> WaitingPlace:
        if awaiting.kind == "activity":
            return self._elsewhere(path, awaiting)
        asked: Any = awaiting.arguments
        is_event = awaiting.kind == "event"
        named = "event" if is_event else "title"
        others = {
            key: value
            for key, value in asked.items()
            if key not in (named, KEPT) and value is not None
        }
        return WaitingPlace(
            path=path,
            owner=lambda over: self._offer(_fact(awaiting, over.answer)),
            kind="event" if is_event else "ask",
            name=asked[named],
            arguments=others,
            subject=(
                event_type(self.workflow, asked[named])
                if is_event
                else answer_type(self.workflow, position)
            ),
            timeout_ms=None if awaiting.due_ms is None else awaiting.due_ms - awaiting.since_ms,
            oldest_ms=None if awaiting.takes_kept_events else self.state.started_ms,
        )

    # The waits that end by time alone. Each of them is made due separately, in the order of the
    # timeline.

    def _timer(self, path: RunPath, waits: Frame, due_ms: int) -> WaitingPlace:
        def fire(_: Over) -> None:
            frame = self.state.frames[waits.id]
            assert isinstance(frame.waiting, Timer | Delay)
            waiting = replace(frame.waiting, due_ms=self._timeline.now_ms - _TICK_MS)
            self._tick(self.state.with_frame(frame._replace(waiting=waiting)))

        left_ms = due_ms - self._timeline.now_ms
        # Python does not sleep when the time has already come, and it does not sleep before a state
        # is tried again.
        if left_ms <= 0 or isinstance(waits.waiting, Delay):
            return WaitingPlace(path, fire, "silent", timeout_ms=max(left_ms, 0))
        arguments: JsonValue = {"seconds": left_ms / 1_000}
        return WaitingPlace(path, fire, "sleep", "", arguments, timeout_ms=left_ms)

    def _deadline(self, path: RunPath, frame_id: str, due: OpenDeadline) -> WaitingPlace:
        def fire(_: Over) -> None:
            frame = self.state.frames[frame_id]
            early = due._replace(due_ms=self._timeline.now_ms - _TICK_MS)
            deadlines = tuple(early if one.entry == due.entry else one for one in frame.deadlines)
            self._tick(self.state.with_frame(frame._replace(deadlines=deadlines)))

        left_ms = due.due_ms - self._timeline.now_ms
        return WaitingPlace(path, fire, "silent", timeout_ms=left_ms)

    def _timeout(self, due_ms: int) -> WaitingPlace:
        def fire(_: Over) -> None:
            self._tick(self.state._replace(due_ms=self._timeline.now_ms - _TICK_MS))

        return WaitingPlace(self.path, fire, "silent", timeout_ms=due_ms - self._timeline.now_ms)


def lanes_of(state: Execution, frame: Frame) -> RunPath:
    """Return the line of control of a frame: the branches or iterations that lead to it."""
    if frame.owner is None:
        return ()
    return (*lanes_of(state, state.frames[frame.owner]), frame.lane)


def _fact(waiting: Attempt | Awaiting, answer: ScriptedAnswer | None) -> Fact:
    entry, attempt = waiting.entry, waiting.attempt
    if answer is None:
        return TimedOut(entry, attempt)
    if answer.error is not None:
        assert isinstance(answer.error, Exception)
        end = end_of_error(answer.error)
        if waiting.kind == "event":
            received = entry, f"event {entry}", None, _FOR_EVER_MS
            return EventReceived(*received, error=end.error, cause=end.cause)
        return FailedWith(entry, attempt, end.error, end.cause)
    if waiting.kind == "event":
        return EventReceived(entry, f"event {entry}", answer.output, _FOR_EVER_MS)
    return Succeeded(entry, attempt, answer.output)


def _begun(waiting: Attempt | Awaiting) -> tuple[int, Fact]:
    """Return when the task may begin, and the fact that it has."""
    if isinstance(waiting, Attempt):
        return waiting.due_ms, Submitted(waiting.entry, waiting.attempt, None)
    return waiting.since_ms, ActivityStarted(waiting.entry, waiting.attempt, None)


def _pool_of(target: str) -> str | None:
    return target.removeprefix(POOL) if target.startswith(POOL) else None


def _name_of(attempt: Attempt) -> str:
    """Return the name with which a test scripts the attempt: `aws.s3.put_object`, `http.post`."""
    if attempt.kind != "service":
        return attempt.target
    if attempt.target == HTTP_TARGET:
        arguments: Any = attempt.arguments
        return f"http.{arguments['Method'].lower()}"
    return python_name(attempt.target)


def pure_result(attempt: Attempt, task: Task[..., Any], now_ms: int) -> Fact:
    """Call a pure function, as a worker does. A step that reads the clock reads the virtual one."""
    arguments: Any = attempt.arguments
    if task.name == LOG:
        return Succeeded(attempt.entry, attempt.attempt, None)
    if task.name in CLOCKS:
        return Succeeded(attempt.entry, attempt.attempt, _read_clock(task, now_ms))
    try:
        return Succeeded(attempt.entry, attempt.attempt, task.call_json(arguments))
    except Exception as error:  # noqa: BLE001 - as the worker does
        end = end_of_error(error)
        return FailedWith(attempt.entry, attempt.attempt, end.error, end.cause)


def _read_clock(task: Task[..., Any], now_ms: int) -> JsonValue:
    now = datetime.fromtimestamp(now_ms / 1_000, timezone.utc)  # noqa: UP017
    if task.name == "time.time":
        return now_ms / 1_000
    if task.name == "datetime.date.today":
        return task.boundary.dump_result(now.date())
    return task.boundary.dump_result(now if task.name == NOW else now.replace(tzinfo=None))


def _told(entry: int, attempt: int, end: End) -> Fact:
    match end.status:
        case "SUCCEEDED":
            return Succeeded(entry, attempt, end.output)
        case "FAILED":
            return FailedWith(entry, attempt, end.error, end.cause)
        case "TIMED_OUT":
            return TimedOut(entry, attempt)
        case "ABORTED":
            return FailedWith(entry, attempt, CHILD_ABORTED, "")
