"""The direct run: a workflow function runs as plain Python, with a harness that has virtual
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, cast

from holdfast.api.boundary import JsonValue, Misfit, parse_payload
from holdfast.api.branches import unended
from holdfast.api.harness import ContinueAsNew, OwnExecution, harness
from holdfast.api.retries import Retry
from holdfast.api.runs_on import Worker
from holdfast.api.task_errors import StepInterrupted
from holdfast.api.tasks import Polling, Task
from holdfast.api.workflows import Workflow
from holdfast.asl import error_names
from holdfast.asl.program import PollRule, Retrier
from holdfast.core.retry import delay_ms, poll_delay_ms
from holdfast.limits import LANES_MAX, STATE_SECONDS_MAX
from holdfast.testing.ends import End, RunTimedOut, TooManyLanes, end_of_error
from holdfast.testing.line import ControlLine, Group, current_line
from holdfast.testing.lines import ControlLines
from holdfast.testing.outcomes import ScriptError
from holdfast.testing.places import WaitingPlace
from holdfast.testing.script import Script, ScriptedAnswer
from holdfast.testing.secrecy import SEALS, to_json
from holdfast.testing.timeline import Over, Timeline, Trace

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
_MILLISECOND = timedelta(milliseconds=1)
#: Replaces the random number for the jitter of a retry. The run in Python and the compiled run use
#: the same number, so that their delays are equal.
DRAWN = 0.5


def run_direct(
    workflow: Workflow[..., Any],
    given: Mapping[str, JsonValue],
    script: Script,
    stop_ms: int | None,
) -> Trace:
    """Run the workflow with the script. Raises ScriptError when the script does not fit the
    workflow.
    """
    timeline = Timeline(script)
    direct = _Direct(timeline, ControlLines(timeline))
    token = harness.set(direct)
    root: _Execution
    try:
        # The stop comes first, so that it precedes other events at the same time.
        if stop_ms is not None:
            timeline.begin(
                WaitingPlace((), lambda _: direct.abort(root), "silent", timeout_ms=stop_ms)
            )
        root = direct.execution(workflow, given, (), lambda _: None)
        direct.lines.run(root.line)
    finally:
        harness.reset(token)
    assert root.end is not None
    return Trace(root.end, timeline.calls, root.ended_ms, result=root.line.result)


class _Execution:
    """A running workflow: its main line, and how it ended."""

    def __init__(self, line: ControlLine, deadline: WaitingPlace | None) -> None:
        self.line = line
        self.deadline = deadline
        self.stopped: Literal["ABORTED", "TIMED_OUT"] | None = None
        self.end: End | None = None
        self.error: Exception | None = None
        self.ended_ms = 0


@dataclass
class _Direct:
    """The harness (`api.harness.Harness`) for the lines of control of one run."""

    timeline: Timeline
    lines: ControlLines

    def execution(
        self,
        workflow: Workflow[..., Any],
        given: Mapping[str, JsonValue],
        path: tuple[int | str, ...],
        on_end: Callable[[_Execution], None],
    ) -> _Execution:
        line = ControlLine(
            path=path,
            execution=self.timeline.new_execution(path),
            body=lambda: None,
            on_end=lambda _: self._ended(workflow, execution, on_end),
        )
        execution = _Execution(line, None)

        def body() -> Any:
            data: Any = given
            while True:
                values = workflow.boundary.parse_arguments(data, SEALS)
                try:
                    return workflow.function(**values)
                except ContinueAsNew as again:
                    data = self._renewed(workflow, again)

        line.body = body
        if workflow.timeout is not None:
            timeout_ms = _whole_milliseconds(workflow.timeout.total_seconds())

            def expire(_: Over) -> None:
                self._stop(execution, "TIMED_OUT")

            execution.deadline = WaitingPlace(path, expire, "silent", timeout_ms=timeout_ms)
            self.timeline.begin(execution.deadline)
        return execution

    def _renewed(self, workflow: Workflow[..., Any], again: ContinueAsNew) -> JsonValue:
        """Return the input with which the workflow begins again."""
        line = current_line.get()
        given = to_json(workflow.bind(*again.given, **again.named))
        self.lines.wait(line, WaitingPlace(line.path, None, "again", workflow.name, given))
        # A line that was cancelled meanwhile does not begin again.
        self.lines.require_open(line)
        return workflow.normalise_input(given, SEALS)

    def abort(self, execution: _Execution) -> None:
        self._stop(execution, "ABORTED")

    def _stop(self, execution: _Execution, status: Literal["ABORTED", "TIMED_OUT"]) -> None:
        if execution.end is not None or execution.stopped == "ABORTED":
            return
        is_first, execution.stopped = execution.stopped is None, status
        if is_first:
            self.lines.cancel(execution.line)

    def _ended(
        self,
        workflow: Workflow[..., Any],
        execution: _Execution,
        on_end: Callable[[_Execution], None],
    ) -> None:
        line = execution.line
        if execution.deadline is not None:
            self.timeline.close(execution.deadline)
        execution.ended_ms = self.timeline.now_ms
        if line.is_cancelled:
            execution.end = End(execution.stopped or "ABORTED")
        elif line.error is not None:
            execution.error = line.error
            execution.end = end_of_error(line.error)
        else:
            execution.end = End("SUCCEEDED", output=_dumped(workflow, line.result))
        on_end(execution)

    # -- tasks -------------------------------------------------------------------------------------

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        line = current_line.get()
        plain = to_json(arguments)
        self.timeline.script.tasks[task.name] = task
        begins_ms, key = self.timeline.now_ms, self.timeline.new_key(line.execution.id)
        attempt, failures, polls = 0, 0, 0
        while True:
            attempt += 1
            place = WaitingPlace(
                path=line.path,
                owner=None,
                kind="pure" if task.is_pure else "task",
                name=task.name,
                arguments=plain,
                subject=task,
                attempt=attempt,
                begins_ms=begins_ms,
                timeout_ms=_timeout_ms(task.timeout),
                key=key,
                pool=task.runs_on.pool if isinstance(task.runs_on, Worker) else None,
            )
            answer = self.lines.wait(line, place).answer
            error = RunTimedOut("") if answer is None else answer.error
            if error is None:
                assert answer is not None
                if task.polling is None or answer.output is not None:
                    return task.boundary.parse_result(answer.output, SEALS)
                polls += 1
                begins_ms = self.timeline.now_ms + poll_delay_ms(_rule_of(task.polling), polls)
                continue
            failures, polls = failures + 1, 0
            delay = _retry_delay_ms(task.retry, error, failures)
            if delay is None or _is_interrupted_for_good(task, error):
                raise error
            begins_ms = self.timeline.now_ms + delay

    def run_workflow(self, workflow: Workflow[..., Any], arguments: dict[str, Any], /) -> Any:
        line = current_line.get()
        self.lines.require_open(line)
        given = cast(dict[str, JsonValue], to_json(arguments))
        self.timeline.script.workflows[workflow.name] = workflow
        begins_ms, attempt = self.timeline.now_ms, 0
        while True:
            attempt += 1
            place = WaitingPlace(
                path=line.path,
                owner=None,
                kind="workflow",
                name=workflow.name,
                arguments=given,
                subject=workflow,
                attempt=attempt,
                begins_ms=begins_ms,
                timeout_ms=_timeout_ms(workflow.call_timeout),
            )
            answer = self._child_end(line, workflow, given, place)
            error = RunTimedOut("") if answer is None else answer.error
            if error is None:
                assert answer is not None
                return workflow.boundary.parse_result(answer.output, SEALS)
            delay = _retry_delay_ms(workflow.retry, error, attempt)
            if delay is None:
                raise error
            begins_ms = self.timeline.now_ms + delay

    def _child_end(
        self,
        line: ControlLine,
        workflow: Workflow[..., Any],
        given: Mapping[str, JsonValue],
        place: WaitingPlace,
    ) -> ScriptedAnswer | None:
        """Return the end of one child execution; None when it is stopped by the call's timeout."""

        def tell(child: _Execution) -> None:
            if not place.is_closed:
                self.timeline.finish(place, _told(child))

        def run_child() -> None:
            child = self.execution(workflow, given, (*line.path, workflow.name), tell)
            self.lines.start(child.line)
            line.child = child.line

        place.run_child = run_child
        answer = self.lines.wait(line, place).answer
        child, line.child = line.child, None
        if answer is None and child is not None:
            self.lines.cancel(child)
        return answer

    # -- waits -------------------------------------------------------------------------------------

    def wait(
        self,
        kind: Literal["event", "ask"],
        name: str,
        payload: type[Any],
        /,
        *,
        arguments: Mapping[str, Any],
        timeout_seconds: float | None,
        kept: bool = True,
    ) -> Any:
        line = current_line.get()
        started_ms = (line.execution.started - _EPOCH) // _MILLISECOND
        plain = cast(dict[str, JsonValue], to_json(dict(arguments)))
        place = WaitingPlace(
            path=line.path,
            owner=None,
            kind=kind,
            name=name,
            arguments={key: value for key, value in plain.items() if value is not None},
            subject=payload,
            timeout_ms=None if timeout_seconds is None else _whole_milliseconds(timeout_seconds),
            oldest_ms=None if kept else started_ms,
        )
        return self._payload(line, place, payload)

    def _payload(self, line: ControlLine, place: WaitingPlace, payload: Any) -> Any:
        """Wait for the answer at this place and return its value. Raises the error of the answer,
        RunTimedOut.
        """
        answer = self.lines.wait(line, place).answer
        if answer is None:
            raise RunTimedOut("")
        if answer.error is not None:
            raise answer.error
        return parse_payload(payload, answer.output, SEALS)

    def sleep(self, seconds: float, /) -> None:
        self._sleep_ms(_whole_milliseconds(seconds))

    def sleep_until(self, moment: datetime, /) -> None:
        self._sleep_ms(self._until_ms(moment, "sleep_until()"))

    def _until_ms(self, moment: datetime, where: str) -> int:
        if moment.tzinfo is None:
            raise ValueError(f"{where} takes a datetime with a time zone")
        # Drop parts of a millisecond, as the engine does.
        return (moment - _EPOCH) // _MILLISECOND - self.timeline.now_ms

    def send(
        self, name: str, data: object, /, *, key: str, later: timedelta | datetime | None
    ) -> str | None:
        line = current_line.get()
        arguments: JsonValue = {"key": key, "data": to_json(data)}
        place = WaitingPlace(line.path, None, "send", name, arguments)
        place.after_ms = self._after_ms(later)
        answer = self.lines.wait(line, place).answer
        assert answer is not None
        return None if answer.output is None else str(answer.output)

    def request(
        self, name: str, data: object, /, *, key: str, returns: Any, timeout_seconds: float | None
    ) -> Any:
        line = current_line.get()
        place = WaitingPlace(
            path=line.path,
            owner=None,
            kind="request",
            name=name,
            arguments={"key": key, "data": to_json(data)},
            subject=returns,
            timeout_ms=None if timeout_seconds is None else _whole_milliseconds(timeout_seconds),
        )
        return self._payload(line, place, returns)

    def reply(self, request: str, value: object, error: Exception | None, /) -> None:
        line = current_line.get()
        arguments: dict[str, JsonValue] = {"request": request}
        if error is None:
            arguments["value"] = to_json(value)
        else:
            end = end_of_error(error)
            arguments |= {"error": end.error, "cause": end.cause}
        self.lines.wait(line, WaitingPlace(line.path, None, "reply", "", arguments))

    def start(
        self,
        workflow: Workflow[..., Any],
        arguments: dict[str, Any],
        /,
        *,
        later: timedelta | datetime | None,
    ) -> str:
        line = current_line.get()
        place = WaitingPlace(line.path, None, "start", workflow.name, to_json(arguments))
        place.after_ms = self._after_ms(later)
        answer = self.lines.wait(line, place).answer
        assert answer is not None
        return str(answer.output)

    def _after_ms(self, later: timedelta | datetime | None) -> int | None:
        """Return after how many milliseconds a command has its effect; None when it is at once."""
        match later:
            case None:
                return None
            case timedelta():
                return max(_milliseconds(later.total_seconds()), 0)
            case datetime():
                return max(self._until_ms(later, "at="), 0)

    def stop(self, execution: str, /) -> None:
        line = current_line.get()
        self.lines.wait(line, WaitingPlace(line.path, None, "stop", execution))

    def own_execution(self) -> OwnExecution:
        return current_line.get().execution

    def publish(self, name: str, value: object, /) -> None:
        self.timeline.publish(name, to_json(value), current_line.get().path)

    def note(self, attributes: Mapping[str, object], /) -> None:
        """Do nothing, because no run reads a search attribute. `Run.attributes` are those of the
        compiled run.
        """

    def _sleep_ms(self, duration_ms: int) -> None:
        line = current_line.get()
        if duration_ms <= 0:
            # This sleep takes no time. In the compiled workflow it is a Wait state all the same, so
            # a cancelled line ends here.
            self.lines.require_open(line)
            return
        arguments: JsonValue = {"seconds": duration_ms / 1_000}
        self.lines.wait(
            line, WaitingPlace(line.path, None, "sleep", "", arguments, timeout_ms=duration_ms)
        )

    # -- branches and scopes -----------------------------------------------------------------------

    def run_branches(
        self,
        branches: Sequence[Callable[[], Any]],
        /,
        *,
        concurrency: int,
        needed: int | None,
        tolerated: int,
        after: Sequence[Sequence[int]] = (),
        returns_errors: bool = False,
    ) -> list[Any]:
        line = current_line.get()
        self.lines.require_open(line)
        if len(branches) > LANES_MAX:
            raise TooManyLanes(error_names.too_many_lanes_cause(len(branches), LANES_MAX))
        results = unended(len(branches), returns_errors=returns_errors)
        group = Group(
            line, list(branches), needed, tolerated, results, after, returns_errors=returns_errors
        )
        return self.lines.branch(line, group, concurrency)

    def timeout(self, seconds: float, /) -> AbstractContextManager[None]:
        return self._scope(_whole_milliseconds(seconds))

    def shielded(self) -> AbstractContextManager[None]:
        return self._scope(None)

    @contextmanager
    def _scope(self, timeout_ms: int | None) -> Iterator[None]:
        line = current_line.get()
        scope = self.lines.enter(line, timeout_ms)
        try:
            yield
        except BaseException as error:
            self.lines.leave(line, scope, error)
            raise
        self.lines.leave(line, scope, None)


def _told(child: _Execution) -> ScriptedAnswer:
    assert child.end is not None
    match child.end.status:
        case "SUCCEEDED":
            return ScriptedAnswer(0, output=child.end.output)
        case "TIMED_OUT":
            return ScriptedAnswer(0, error=RunTimedOut(""))
        case _:
            return ScriptedAnswer(0, error=child.error)


def _dumped(workflow: Workflow[..., Any], result: Any) -> JsonValue:
    try:
        return workflow.boundary.dump_result(result, SEALS)
    except Misfit as misfit:
        raise ScriptError(f"{workflow.name} returned what does not fit: {misfit}") from None


def _rule_of(polling: Polling) -> PollRule:
    seconds, most = (int(one.total_seconds()) for one in (polling.every, polling.most))
    return PollRule(seconds, polling.backoff, most)


def _retry_delay_ms(retry: Retry | None, error: BaseException, attempt: int) -> int | None:
    """Return the delay before attempt `attempt` + 1; None after the last attempt."""
    if retry is None or attempt >= retry.max_attempts:
        return None
    if isinstance(error, retry.not_on) or (retry.on and not isinstance(error, retry.on)):
        return None
    delay = None if retry.max_delay is None else int(retry.max_delay.total_seconds())
    interval = int(retry.interval.total_seconds())
    delays = tuple(int(one.total_seconds()) for one in retry.delays or ())
    retries = retry.max_attempts - 1
    retrier = Retrier((), interval, retries, retry.backoff, delay, retry.jitter, delays)
    return delay_ms(retrier, attempt - 1, DRAWN)


def _is_interrupted_for_good(task: Task[..., Any], error: BaseException) -> bool:
    """Return True for the loss of a worker that no retry rule names."""
    if not task.at_most_once or not isinstance(error, StepInterrupted):
        return False
    return task.retry is None or StepInterrupted not in task.retry.on


def _timeout_ms(timeout: timedelta | None) -> int | None:
    return None if timeout is None else _whole_milliseconds(timeout.total_seconds())


def _whole_milliseconds(seconds: float) -> int:
    """Return the duration of a wait in milliseconds. Raises ValueError where the engine fails the
    step: it waits for whole seconds, and not for longer than three years.
    """
    if seconds != int(seconds) or seconds > STATE_SECONDS_MAX:
        raise ValueError(
            f"a wait takes whole seconds, at most {STATE_SECONDS_MAX:,}, and not {seconds:,}"
        )
    return int(seconds) * 1_000


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1_000)
