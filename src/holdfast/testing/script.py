"""The script of a world: the outcome of each attempt and wait, computed once for both runs."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from pydantic_core import PydanticSerializationError

from holdfast.api.boundary import JsonValue, Misfit, normalise_payload
from holdfast.api.harness import harness
from holdfast.api.limits import Limit
from holdfast.api.task_context import TaskContext, running_task
from holdfast.api.task_errors import InvalidArguments, InvalidResult
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.asl.whole_numbers import with_whole_numbers
from holdfast.limits import REQUEST_SUFFIX
from holdfast.testing.cached import CachedResults
from holdfast.testing.outcomes import (
    UNSCRIPTED,
    InTurn,
    Never,
    Outcome,
    Real,
    ScriptError,
    Takes,
    Unscripted,
    is_error,
    is_function,
    outcome_of,
)
from holdfast.testing.places import WaitingPlace
from holdfast.testing.secrecy import SEALS, to_json

#: A run fails after this many calls, because a script with so many probably never ends.
CALLS_MAX: Final = 10_000


class Diverged(Exception):  # noqa: N818
    """The second run made a call that the first run did not make."""


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """The outcome after `takes_ms` (None: never): an error, or the JSON of a value."""

    takes_ms: int | None
    output: JsonValue = None
    error: BaseException | None = None
    #: What the scripted function of a task has sent: `world.send(…)` in it.
    sends: tuple[Sent, ...] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """An event, or a person's answer, that is sent at a time. With `key` None it fits every
    wait.
    """

    kind: str
    name: str
    value: Any
    key: str | None
    assignee: str | None
    at_ms: int

    def __str__(self) -> str:
        to = next((f", {name}={to!r}" for name, to in self._to.items() if to is not None), "")
        return f"{self.kind} {self.name} (sent{to})"

    @property
    def _to(self) -> dict[str, str | None]:
        return {"key": self.key, "assignee": self.assignee}

    def is_for(self, place: WaitingPlace) -> bool:
        if (self.kind, self.name) != (place.kind, place.name):
            return False
        if place.oldest_ms is not None and self.at_ms < place.oldest_ms:
            return False
        asked: Any = place.arguments
        return all(to in (None, asked.get(name)) for name, to in self._to.items())


@dataclass(frozen=True, slots=True)
class ScriptedPulse:
    """The heartbeats of an attempt in a test. None is missed."""

    kept: dict[str, Any]
    step: str

    def beat(self, progress: Any = None) -> None:
        if progress is not None:
            self.kept[self.step] = progress


@dataclass(slots=True)
class Script:
    """The outcomes of a test, by the name of a task or event, or the title of a question.

    Every outcome is computed once, in the direct run. The compiled run (`is_replay`) gets the same
    outcomes, so functions are called once per attempt, and drawn values are equal in both runs.
    `others` is the outcome of every other call; `draw` may compute it.
    """

    outcomes: Mapping[str, Outcome]
    others: Outcome
    sent: Sequence[Sent]
    started_ms: int
    workflow: str
    #: The name of the execution, if the test gives it one.
    name: str | None = None
    #: The events that the workflow and its children take with `receive` alone.
    received: Collection[str] = ()
    draw: Callable[[WaitingPlace, int], Outcome] | None = None
    #: These limits replace the limits with the same names that tasks declare.
    limits: Sequence[Limit] = ()
    calls_max: int = CALLS_MAX
    #: The tasks and events of the direct run, by name. The compiled run looks them up here, because
    #: it has only their names.
    tasks: dict[str, Task[..., Any]] = field(default_factory=dict)
    workflows: dict[str, Workflow[..., Any]] = field(default_factory=dict)
    is_replay: bool = False
    _known: dict[tuple[str, int], ScriptedAnswer] = field(default_factory=dict)
    _sent_answers: dict[int, ScriptedAnswer] = field(default_factory=dict)
    #: The events that scripted functions have sent, by their position among all of the run.
    _sent_by_functions: dict[int, Sent] = field(default_factory=dict)
    #: The events that the scripted function which runs now has sent.
    sending: list[Sent] = field(default_factory=list)
    cached: CachedResults = field(default_factory=CachedResults)
    _run_themselves: set[str] = field(default_factory=set)
    #: The last progress in a heartbeat of each step, for its next attempt.
    _progress: dict[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> dict[str, list[ScriptedAnswer]]:
        """Return the computed outcomes, by name, in the order of attempts."""
        found: dict[str, list[ScriptedAnswer]] = {}
        for (name, _), answer in sorted(self._known.items()):
            found.setdefault(name, []).append(answer)
        return found

    @property
    def names(self) -> list[str]:
        return [*self.outcomes, *map(str, self.sent)]

    @property
    def unused(self) -> list[str]:
        """Return the outcomes that were not used, often because a name or a key is spelled in two
        ways.
        """
        asked = {name for name, _ in self._known} | self._run_themselves
        all_sent = {**dict(enumerate(self.sent)), **self._sent_by_functions}
        sent = [str(one) for number, one in all_sent.items() if number not in self._sent_answers]
        return [*(name for name in self.outcomes if name not in asked), *sent]

    def stored(self, number: int, sent: Sent) -> Sent:
        """Return what is sent as the engine stores it: an event that only `receive` takes is a
        request. `number` is its position among all that are sent in the run.
        """
        if sent.kind != "event" or sent.name not in self.received:
            return sent
        given = (f"event-{number + 1}", sent.value)
        return replace(sent, name=sent.name + REQUEST_SUFFIX, value=given)

    def note_sent(self, number: int, sent: Sent) -> None:
        """Record what a scripted function has sent, for `unused`."""
        self._sent_by_functions[number] = sent

    def task_answer(self, place: WaitingPlace, number: int) -> ScriptedAnswer:
        """Return the outcome of the `number`-th attempt of this task in the run."""
        key = (place.name, number)
        if key not in self._known:
            self._require_first(place, number)
            answer = self._work_out(place, number)
            self._known[key] = replace(answer, sends=tuple(self.sending))
            self.sending.clear()
        return self._known[key]

    def drawn(self, step: Task[..., Any], arguments: JsonValue) -> ScriptedAnswer | None:
        """Return the scripted outcome of a step that draws a value, such as `uuid.uuid4()`; None
        when the script does not name it, so that the library draws.
        """
        if step.name not in self.outcomes:
            return None
        number = 1 + sum(name == step.name for name, _ in self._known)
        place = WaitingPlace((), None, "pure", step.name, arguments, step)
        return self.task_answer(place, number)

    def child_answer(self, place: WaitingPlace, number: int) -> ScriptedAnswer | None:
        """Return the scripted outcome of a child workflow; None when the child itself runs."""
        found = self._known.get((place.name, number))
        if found is not None or self.is_replay or place.name not in self.outcomes:
            return found
        takes, outcome = outcome_of(self.outcomes[place.name], number)
        if isinstance(outcome, Unscripted | Real):
            if takes:
                raise ScriptError(
                    f"{place.name} is scripted to take {takes}, and runs itself: the outcomes of "
                    "its own steps say how long it takes"
                )
            self._run_themselves.add(place.name)
            return None
        self._known[(place.name, number)] = self._work_out(place, number)
        return self._known[(place.name, number)]

    def _require_first(self, place: WaitingPlace, number: int) -> None:
        if self.is_replay:
            what = f"{place.kind} {place.name} {place.arguments!r:.200}"
            raise Diverged(f"{what} comes for the {number}. time, in this run alone")

    def workflow_called(self, name: str) -> Workflow[..., Any]:
        if name not in self.workflows:
            raise Diverged(f"the child workflow {name} is started in this run alone")
        return self.workflows[name]

    def _work_out(self, place: WaitingPlace, number: int) -> ScriptedAnswer:
        task: Task[..., Any] = place.subject
        # The engine passes 2 for 2.0. Without this, a parameter of type Any would have another type
        # in the test.
        given = with_whole_numbers(_as_object(place.arguments))
        try:
            values = task.boundary.parse_arguments(given, SEALS)
        except Misfit as misfit:
            return ScriptedAnswer(0, error=InvalidArguments(f"{task.name}({misfit})"))
        takes, outcome = outcome_of(self._outcome(place, number), number)
        takes_ms = _milliseconds(takes)
        if isinstance(outcome, Never):
            return ScriptedAnswer(None)
        if is_error(outcome):
            return ScriptedAnswer(
                takes_ms, error=_made(outcome) if isinstance(outcome, type) else outcome
            )
        if isinstance(outcome, Real):
            return self._call(place, task.function, values, takes_ms)
        if is_function(outcome):
            _require_callable_with(outcome, place, values)
            return self._call(place, outcome, values, takes_ms)
        return ScriptedAnswer(takes_ms, output=_scripted_result(task, outcome))

    def _call(
        self,
        place: WaitingPlace,
        function: Callable[..., Any],
        values: dict[str, Any],
        takes_ms: int,
    ) -> ScriptedAnswer:
        task: Task[..., Any] = place.subject
        context = TaskContext(
            execution="run",
            name=None,
            workflow=self.workflow,
            task=task.name,
            attempt=place.attempt,
            idempotency_key=place.key,
            load_progress=lambda: self._progress.get(place.key),
        )
        try:
            with (
                running_task(context, ScriptedPulse(self._progress, place.key)),
                _without_harness(),
            ):
                result = function(**values)
        except ScriptError:
            raise
        except Exception as error:  # noqa: BLE001 - any error of a task crosses by its name
            return ScriptedAnswer(takes_ms, error=error)
        if is_error(result):
            return ScriptedAnswer(takes_ms, error=result)
        if function is not task.function:
            return ScriptedAnswer(takes_ms, output=_scripted_result(task, result))
        try:
            return ScriptedAnswer(takes_ms, output=task.boundary.dump_result(result, SEALS))
        except Misfit as misfit:
            return ScriptedAnswer(takes_ms, error=InvalidResult(f"{task.name}: {misfit}"))

    def _outcome(self, place: WaitingPlace, number: int) -> Outcome:
        said = self.outcomes.get(place.name, UNSCRIPTED)
        leaf = outcome_of(said, number)[1]
        if not isinstance(leaf, Unscripted):
            return said
        default = self._default(place, number)
        return default if said is UNSCRIPTED else _replaced(said, default)

    def _default(self, place: WaitingPlace, number: int) -> Outcome:
        if self.draw is not None:
            return self.draw(place, number)
        if not isinstance(self.others, Unscripted):
            return self.others
        if place.kind == "pure":
            return Real()
        if place.subject.boundary.returns_nothing:
            return None
        if place.name in self.outcomes:
            raise ScriptError(
                f"attempt {number} of {place.name} is not scripted: say what comes of those that "
                "do not fail, fails(…, then=…)"
            )
        scripted = ", ".join(self.names) or "nothing"
        raise ScriptError(
            f"{place.name}({place.arguments!r:.200}) was called and is not scripted. Scripted are: "
            f"{scripted}. Give World({{{place.name}: …}}) a value, an error, a function, or `real` "
            "to call the task itself"
        )

    # Waits.

    def wait_answer(self, place: WaitingPlace, number: int) -> ScriptedAnswer | None:
        """Return the scripted outcome; None when the script does not name it, so that a sent event
        or answer counts.
        """
        found = self._known.get((place.name, number))
        if found is not None or self.is_replay:
            return found
        said = self.outcomes.get(place.name, UNSCRIPTED)
        if self.draw is not None and said is UNSCRIPTED:
            said = self.draw(place, number)
        takes, outcome = outcome_of(said, number)
        if isinstance(outcome, Unscripted):
            return None
        answer = self._wait_answer(place, takes, outcome)
        self._known[(place.name, number)] = answer
        return answer

    def _wait_answer(
        self, place: WaitingPlace, takes: timedelta, outcome: Outcome
    ) -> ScriptedAnswer:
        if isinstance(outcome, Never):
            return ScriptedAnswer(None)
        if is_function(outcome):
            _require_callable_with(outcome, place, _as_object(place.arguments))
            outcome = outcome(**_as_object(place.arguments))
        return _answer_of(place, _milliseconds(takes), outcome)

    def sent_answer(self, number: int, value: Any, place: WaitingPlace) -> ScriptedAnswer:
        """Return the answer for an event or answer that was sent. `number` is its position among
        all that are sent in the run.
        """
        if number not in self._sent_answers:
            self._require_first(place, 1)
            self._sent_answers[number] = _answer_of(place, 0, value)
        return self._sent_answers[number]


@contextlib.contextmanager
def _without_harness() -> Iterator[None]:
    """Call without the harness: as in the engine, a task that calls another task calls only its
    function.
    """
    token = harness.set(None)
    try:
        yield
    finally:
        harness.reset(token)


def _made(error: type[BaseException]) -> BaseException:
    try:
        return error()
    except TypeError as why:
        raise ScriptError(
            f"{error.__name__} is scripted by its class, and needs arguments ({why}): "
            f"script {error.__name__}(…)"
        ) from None


def _require_callable_with(
    function: Callable[..., Any], place: WaitingPlace, values: Mapping[str, Any]
) -> None:
    # A function that is written in C may have no signature. It is then called without this check.
    with contextlib.suppress(ValueError):
        try:
            inspect.signature(function).bind(**values)
        except TypeError as error:
            raise ScriptError(
                f"{place.kind} {place.name} is scripted with a function that does not take its "
                f"arguments ({error}): lambda {', '.join(values)}: …"
            ) from None


def _scripted_result(task: Task[..., Any], result: Any) -> JsonValue:
    try:
        return task.boundary.dump_result(result, SEALS)
    except Misfit as misfit:
        raise ScriptError(
            f"{task.name} is scripted to return {result!r:.80}, which does not fit its "
            f"annotation: {misfit}"
        ) from None


def _replaced(outcome: Outcome, default: Outcome) -> Outcome:
    """Return the outcome, with `default` where the script gives none."""
    match outcome:
        case Unscripted():
            return default
        case Takes(duration, inner):
            return Takes(duration, _replaced(inner, default))
        case InTurn(outcomes):
            return InTurn(tuple(_replaced(inner, default) for inner in outcomes))
        case _:
            return outcome


def _answer_of(place: WaitingPlace, takes_ms: int, outcome: Outcome) -> ScriptedAnswer:
    """Return the end of a wait: its data, or the error with which the other side fails it."""
    if not is_error(outcome):
        return ScriptedAnswer(takes_ms, output=_normalised(place, outcome))
    if place.kind == "event" and place.name.endswith(REQUEST_SUFFIX):
        raise ScriptError(
            f"request {place.name.removesuffix(REQUEST_SUFFIX)} is scripted to be {outcome!r}, and "
            "a request has data: script `never` to let the wait time out"
        )
    return ScriptedAnswer(takes_ms, error=_made(outcome) if isinstance(outcome, type) else outcome)


def _normalised(place: WaitingPlace, value: Any) -> JsonValue:
    try:
        return normalise_payload(place.subject, to_json(value), SEALS)
    except (Misfit, PydanticSerializationError) as misfit:
        raise ScriptError(
            f"{place.kind} {place.name} is given {value!r:.80}, which does not fit "
            f"{_shown(place.subject)}: {misfit}"
        ) from None


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else repr(hint)


def _as_object(arguments: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(arguments, dict)
    return arguments


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
