"""A world for a workflow: the outcomes of its tasks, the answers of people, and the time."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Generic, ParamSpec, TypeVar

from holdfast.api.boundary import JsonValue
from holdfast.api.library import task_of
from holdfast.api.library_models import has_computed_default
from holdfast.api.library_signatures import VOLATILE
from holdfast.api.limits import Limit
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.limits import EVENT_RETENTION_SECONDS, REQUEST_SUFFIX
from holdfast.sealed import hidden
from holdfast.testing.cached import CachedResults
from holdfast.testing.compare import Difference, difference
from holdfast.testing.compiled import run_compiled
from holdfast.testing.definitions import definition_of, introduce, received_by, with_children
from holdfast.testing.direct import run_direct
from holdfast.testing.ends import End, EndStatus
from holdfast.testing.outcomes import UNSCRIPTED, Outcome, ScriptError, require_duration
from holdfast.testing.script import CALLS_MAX, Script, Sent
from holdfast.testing.secrecy import SEALS, to_json
from holdfast.testing.sets import gives_sets
from holdfast.testing.timeline import Call, Trace

P = ParamSpec("P")
R = TypeVar("R")

_UNNAMED: Final = ("sleep", "again", "publish", "reply", "stop")
STARTED: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)  # noqa: UP017


@dataclass(frozen=True)
class Run(Generic[R]):
    """The result of both runs. `error` and `cause` describe a failure; `ended` is the time since
    the start.
    """

    end: End
    calls: list[Call]
    ended: timedelta
    result: Any
    #: The error name of the compiled run. It differs from that of Python when an expression fails,
    #: because a state machine has one name for all such errors.
    compiled_error: str | None
    #: The scripted outcomes and the sent events that the run did not use.
    unused: list[str]
    #: The search attributes at the end of the run, as JSON and by name.
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> EndStatus:
        return self.end.status

    @property
    def output(self) -> R:
        """Return the result of the workflow, as Python."""
        if self.end.status != "SUCCEEDED":
            error = ": ".join(part for part in (self.error, self.cause) if part)
            unused = f"\nScripted, and not asked for: {', '.join(self.unused)}"
            raise AssertionError(
                f"the workflow did not succeed: {self.status} {error}".rstrip()
                + (unused if self.unused else "")
            )
        output: R = self.result
        return output

    @property
    def error(self) -> str | None:
        return self.end.error

    @property
    def cause(self) -> str:
        return self.end.cause

    @property
    def steps(self) -> list[str]:
        """Return the names of all tasks, child workflows, events and questions, in the order of
        their beginnings.
        """
        return [call.name for call in self.calls if call.kind not in _UNNAMED]

    @property
    def published(self) -> dict[str, Any]:
        """Return the newest value that the workflow has published under each name, as JSON."""
        return {call.name: call.arguments for call in self.calls if call.kind == "publish"}

    @property
    def replies(self) -> dict[str, dict[str, Any]]:
        """Return the reply to each request, by the id of the request: its `value` as JSON, or its
        `error` and `cause`.
        """
        found = [dict(call.arguments) for call in self.calls if call.kind == "reply"]
        return {reply.pop("request"): reply for reply in found}

    def calls_of(self, called: Task[..., Any] | Workflow[..., Any] | str) -> list[Call]:
        """Return the attempts of the task, or the waits for the event or question of this name."""
        name = called if isinstance(called, str) else called.name
        return [call for call in self.calls if call.name == name]


class World:
    """The scripted environment of a run. `outcomes` are by Task, by child Workflow, by a function
    of Python's library that draws a value, or by text: the name of an event, or the title of a
    question. A child without an outcome runs itself.

    `others` is the outcome of every other call. With None such a call returns None, and a task that
    must return a value is refused; `real` calls the task itself. `starts` is the time of the
    virtual clock at the start. Tasks keep their declared limits; `limits` replaces those with the
    same names. A run with more than `calls_max` calls fails, because it probably never ends. `name`
    is the name of the execution; without it the name is its id, `run`.
    """

    def __init__(
        self,
        outcomes: Mapping[Any, Outcome] | None = None,
        *,
        others: Outcome = UNSCRIPTED,
        starts: datetime = STARTED,
        limits: Sequence[Limit] = (),
        calls_max: int = CALLS_MAX,
        name: str | None = None,
    ) -> None:
        self._name = name
        self._calls_max = calls_max
        self._limits = tuple(limits)
        self._outcomes = {_name(key): outcome for key, outcome in (outcomes or {}).items()}
        self._others = others
        self._started_ms = round(starts.timestamp() * 1_000)
        self._sent: list[Sent] = []
        #: The script of the present run: a scripted function may send events, too.
        self._running: Script | None = None
        self._requests = 0
        self._stop: timedelta | None = None
        #: The results of tasks with a cache, from the runs so far.
        self._cached = CachedResults()

    def send(
        self, event: str, payload: Any = None, *, key: str | None = None, at: timedelta
    ) -> None:
        """Send an event at the time `at` after the start. With `key` None it fits any key that the
        workflow waits for. `at=-days(7)`: it was sent 7 days before the start, and kept.

        The scripted function of a task may send, too: for one execution, and not before the task
        begins.
        """
        moment = self._kept(at) or self._moment(at, "send(at=…)")
        self._add(Sent("event", event, payload, key, None, moment))

    def request(self, name: str, data: Any = None, *, key: str | None = None, at: timedelta) -> str:
        """Send a request at the time `at` after the start, and return its id: `run.replies` has the
        reply.
        """
        self._requests += 1
        request_id = f"request-{self._requests}"
        moment = self._moment(at, "request(at=…)")
        given = (request_id, data)
        self._add(Sent("event", name + REQUEST_SUFFIX, given, key, None, moment))
        return request_id

    def answer(
        self, title: str, answer: Any, *, assignee: str | None = None, at: timedelta
    ) -> None:
        """Let a person answer the question with this title, at the time `at` after the start."""
        moment = self._moment(at, "answer(at=…)")
        self._add(Sent("ask", title, answer, None, assignee, moment))

    def _add(self, sent: Sent) -> None:
        (self._sent if self._running is None else self._running.sending).append(sent)

    def _kept(self, at: timedelta) -> int | None:
        """Return the time of an event that was sent before the start; None for a later one. The
        function of a task sends none: it runs after the start.
        """
        is_later = not isinstance(at, timedelta) or at >= timedelta()
        if is_later or self._running is not None:
            return None
        if -at > timedelta(seconds=EVENT_RETENTION_SECONDS):
            raise ScriptError(
                f"send(at=…) takes at least -days(14), and not {at!r}: it is not kept"
            )
        return self._started_ms + round(at.total_seconds() * 1_000)

    def _moment(self, at: timedelta, where: str) -> int:
        return self._started_ms + round(require_duration(at, where).total_seconds() * 1_000)

    def stop(self, *, at: timedelta) -> None:
        """Stop the execution at the time `at` after the start, as an operator does."""
        self._stop = require_duration(at, "stop(at=…)")

    def run(self, workflow: Workflow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Run the workflow as Python and compiled. Raises Difference when the two runs differ."""
        if not isinstance(workflow, Workflow):
            raise ScriptError(f"{workflow!r} is no workflow: world.run(a_workflow, its, arguments)")
        signature = inspect.signature(workflow.function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ScriptError(f"{error}; it is {workflow.name}{signature}") from None
        given: dict[str, JsonValue] = to_json(bound.arguments)
        return self.run_json(workflow, given)

    def run_json(self, workflow: Workflow[P, R], given: Mapping[str, JsonValue], /) -> Run[R]:
        """Run the workflow as `run` does, from the input as JSON."""
        normal: Any = workflow.normalise_input(dict(given), SEALS)
        script = self._running = self._script(workflow)
        try:
            return self._run(workflow, normal, script)
        finally:
            self._running = None

    def _run(
        self, workflow: Workflow[P, R], normal: Mapping[str, JsonValue], script: Script
    ) -> Run[R]:
        stop_ms = None if self._stop is None else round(self._stop.total_seconds() * 1_000)
        is_volatile = reads_clock_or_chance(workflow)
        try:
            if is_volatile:
                direct = _without_python(workflow, normal, script, stop_ms)
            else:
                direct = run_direct(workflow, normal, script, stop_ms)
        except ScriptError as error:
            # The mistake is in the test, so the frames of the test kit would not help the author.
            raise error.with_traceback(None) from None
        cached, script.cached = script.cached, self._cached.copy()
        script.is_replay = True
        compiled = direct if is_volatile else run_compiled(workflow, normal, script, stop_ms)
        has_sets = gives_sets(workflow)
        differs = None if is_volatile else difference(direct, compiled, has_sets=has_sets)
        if differs is not None:
            raise Difference(
                f"{workflow.name} compiled does not do what its Python does.\n{differs}"
            )
        self._cached = cached
        assert direct.end is not None
        ended = timedelta(milliseconds=direct.ended_ms - self._started_ms)
        assert compiled.end is not None
        # Hide secrets, as reports do. A test cannot know the encrypted form of a secret, so it
        # could not compare it.
        end = replace(direct.end, output=hidden(direct.end.output))
        calls = [replace(call, arguments=hidden(call.arguments)) for call in direct.calls]
        return Run(
            *(end, calls, ended, direct.result, compiled.end.error, script.unused),
            attributes=compiled.attributes,
        )

    def _script(self, workflow: Workflow[..., Any]) -> Script:
        return Script(
            outcomes=self._outcomes,
            others=self._others,
            sent=self._sent,
            started_ms=self._started_ms,
            workflow=workflow.name,
            name=self._name,
            received=received_by(workflow),
            limits=self._limits,
            calls_max=self._calls_max,
            cached=self._cached.copy(),
        )


def reads_clock_or_chance(workflow: Workflow[..., Any]) -> bool:
    """Return True for a workflow with a step such as `uuid.uuid4()`, and for one that calls such a
    workflow. Two runs of it have different values, so only the compiled run counts.
    """
    steps = (definition_of(one).tasks for one in with_children(workflow))
    return any(name in VOLATILE or has_computed_default(name) for one in steps for name in one)


def _without_python(
    workflow: Workflow[..., Any],
    given: Mapping[str, JsonValue],
    script: Script,
    stop_ms: int | None,
) -> Trace:
    introduce(script, workflow)
    compiled = run_compiled(workflow, given, script, stop_ms)
    if compiled.end is None:
        raise ScriptError(compiled.why)
    if compiled.end.status != "SUCCEEDED":
        return compiled
    result = workflow.boundary.parse_result(compiled.end.output, SEALS)
    return replace(compiled, result=result)


def _name(key: Task[..., Any] | Workflow[..., Any] | str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, Task | Workflow):
        return key.name
    step = task_of(key)
    if step is not None and step.name in VOLATILE:
        return step.name
    raise ScriptError(
        f"{key!r} is no task: outcomes are given by task or child workflow, by a function that "
        "draws a value (uuid.uuid4), or by the name of an event or the title of a question as text"
    )
