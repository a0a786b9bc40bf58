"""Generated tests: inputs and outcomes are drawn by the types that workflows, tasks and events
declare.
"""

from __future__ import annotations

import secrets
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn

from holdfast.api.boundary import JsonValue
from holdfast.api.task_errors import TaskError
from holdfast.api.workflows import Workflow
from holdfast.compiler.types.failures import ErrorClasses as Failures
from holdfast.compiler.types.failures import has_plain_text
from holdfast.limits import REQUEST_SUFFIX
from holdfast.testing.compare import Difference
from holdfast.testing.outcomes import Outcome, ScriptError, never, real, takes
from holdfast.testing.places import WaitingPlace
from holdfast.testing.script import Script, ScriptedAnswer
from holdfast.testing.secrecy import to_json
from holdfast.testing.strategies import values_of
from holdfast.testing.world import World

if TYPE_CHECKING:
    from hypothesis.strategies import DataObject

#: A generated run is given up after this many calls, because its drawn results may keep a loop
#: running for ever.
_CALLS_MAX: Final = 200
_DURATIONS: Final = (0, 1, 60, 3_600, 86_400)
_STOPS: Final = (0, 1, 90, 4_000, 90_000)


def check_workflow(
    workflow: Workflow[..., Any],
    /,
    *,
    examples: int = 100,
    outcomes: Mapping[Any, Outcome] | None = None,
    inputs: Mapping[str, Sequence[Any]] | None = None,
    stops: bool = True,
    seed: int | None = None,
) -> Counter[str]:
    """Run `examples` generated worlds, each in both ways, and return how many ended with each
    status.

    Where `outcomes` names no outcome, it is drawn: values of the declared types, the errors of the
    workflow's modules, time-outs, durations; with `stops` also a stop of the execution, which ends
    each run of a workflow with a key. `inputs` names parameters with the values to choose from.
    Raises Difference with the smallest script that shows one. Needs hypothesis (holdfast[testing]).
    """
    if not isinstance(workflow, Workflow) or examples < 1:
        found = f"check_workflow({workflow!r}, examples={examples})"
        raise ScriptError(f"{found} takes a workflow and at least one example")
    used_seed = secrets.randbits(32) if seed is None else seed
    parameters, chosen = _parameters(workflow), dict(inputs or {})
    for name in chosen.keys() - parameters.keys():
        raise ScriptError(f"check_workflow(inputs=…): {workflow.name} has no parameter {name}")
    errors = _errors_of(workflow)
    ended: Counter[str] = Counter()

    def check(data: DataObject) -> None:
        given = {name: _drawn(data, name, hint, chosen) for name, hint in parameters.items()}
        plain: dict[str, JsonValue] = to_json(given)
        world = Generated(outcomes, data, errors)
        # A workflow with a key may have an endless loop.
        stop = _drawn_stop(data, is_certain=workflow.keyed is not None) if stops else None
        if stop is not None:
            world.stop(at=stop)
        try:
            ended[world.run_json(workflow, plain).status] += 1
        except Difference as found:
            again = f"check_workflow({_variable(workflow)}, seed={used_seed})"
            script = world.to_text(workflow, plain)
            raise Difference(f"{found}\n\nThe script:\n{script}\nAgain: {again}") from None

    _run_examples(check, examples, used_seed)
    return ended


def _run_examples(check: Callable[[DataObject], None], examples: int, seed: int) -> None:
    """Run the check with generated data, and after a failure with smaller data."""
    try:
        import hypothesis  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ScriptError("check_workflow needs hypothesis: pip install hypothesis") from None

    # Import jsonata-python first. It raises the recursion limit, and hypothesis would report a
    # change of the limit during a test.
    import jsonata.jsonata  # noqa: F401, PLC0415
    from hypothesis import strategies as st  # noqa: PLC0415

    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        # Not "explain": it traces every line of many more runs, for notes about draws.
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        print_blob=False,
    )
    hypothesis.seed(seed)(settings(hypothesis.given(st.data())(check)))()


def _drawn_stop(data: DataObject, *, is_certain: bool) -> timedelta | None:
    """Return when the execution is stopped; None: it is not."""
    from hypothesis import strategies as st  # noqa: PLC0415

    if not is_certain and data.draw(st.integers(0, 5)) != 5:
        return None
    return timedelta(seconds=data.draw(st.sampled_from(_STOPS)), milliseconds=500)


def _drawn(data: DataObject, name: str, hint: Any, chosen: Mapping[str, Sequence[Any]]) -> Any:
    """Return a value of a parameter, one of those that the test has chosen for it."""
    from hypothesis import strategies as st  # noqa: PLC0415
    from hypothesis.errors import ResolutionFailed  # noqa: PLC0415

    if name in chosen:
        return data.draw(st.sampled_from(chosen[name]))
    try:
        return data.draw(values_of(hint))
    except ResolutionFailed:
        raise ScriptError(
            f"no value can be drawn for {name}: {getattr(hint, '__name__', hint)}. Give values to "
            f"choose from: check_workflow(…, inputs={{{name!r}: […]}})"
        ) from None


class Generated(World):
    """A world in which outcomes that the test does not name are drawn."""

    def __init__(
        self,
        outcomes: Mapping[Any, Outcome] | None,
        data: DataObject,
        errors: list[type[BaseException]],
    ) -> None:
        super().__init__(outcomes)
        self._data = data
        self._errors = errors
        self._drawn = 0
        self._last: Script | None = None

    def _script(self, workflow: Workflow[..., Any]) -> Script:
        self._last = replace(super()._script(workflow), draw=self._draw)
        return self._last

    def _draw(self, place: WaitingPlace, _number: int) -> Outcome:
        import hypothesis  # noqa: PLC0415
        from hypothesis import strategies as st  # noqa: PLC0415

        self._drawn += 1
        if self._drawn > _CALLS_MAX:
            hypothesis.reject()
        if place.kind == "pure":
            return real
        # Add another number of milliseconds for each call. Otherwise two calls could end at the
        # same time by chance.
        duration = timedelta(
            seconds=self._data.draw(st.sampled_from(_DURATIONS)), milliseconds=self._drawn
        )
        kind = self._data.draw(st.integers(0, 9))
        if kind == 9 and place.timeout_ms is not None:
            return never
        type_ = _type_of(place)
        is_failure = type_ in (NoReturn, Never) or (kind in (7, 8) and _may_fail(place))
        if is_failure and self._errors:
            error = self._data.draw(st.sampled_from(self._errors))
            return takes(duration, error(f"error {self._drawn}"))
        return takes(duration, self._data.draw(values_of(type_)))

    def to_text(self, workflow: Workflow[..., Any], given: Mapping[str, JsonValue]) -> str:
        """Return the world as code that can be pasted into a test."""
        assert self._last is not None
        lines = ["world = World(", "    {"]
        for name, answers in self._last.answers.items():
            shown = [_shown(answer) for answer in answers]
            outcome = shown[0] if len(shown) == 1 else f"in_turn({', '.join(shown)})"
            lines.append(f"        {name!r}: {outcome},")
        lines += ["    }", ")"]
        if self._stop is not None:
            lines.append(f"world.stop(at=timedelta(seconds={self._stop.total_seconds()}))")
        return "\n".join([*lines, f"world.run_json({_variable(workflow)}, {dict(given)!r})"])


def _shown(answer: ScriptedAnswer) -> str:
    if answer.takes_ms is None:
        return "never"
    outcome = repr(answer.output if answer.error is None else answer.error)
    if not answer.takes_ms:
        return outcome
    return f"takes(timedelta(milliseconds={answer.takes_ms}), {outcome})"


def _may_fail(place: WaitingPlace) -> bool:
    is_received = place.kind == "event" and place.name.endswith(REQUEST_SUFFIX)
    return place.kind in ("task", "request", "event", "ask") and not is_received


def _variable(workflow: Workflow[..., Any]) -> str:
    return workflow.function.__name__


def _parameters(workflow: Workflow[..., Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(workflow.function, include_extras=True)
    hints.pop("return", None)
    return hints


def _type_of(place: WaitingPlace) -> Any:
    if place.kind in ("event", "ask", "request"):
        return place.subject
    hints = typing.get_type_hints(place.subject.function, include_extras=True)
    return hints.get("return", Any)


def _errors_of(workflow: Workflow[..., Any]) -> list[type[BaseException]]:
    """Return the errors that the workflow's modules define or import, and one that they do not
    name.
    """
    known = Failures(workflow.function).subclasses(TaskError)
    own = [cls for cls in known if not cls.__module__.startswith("holdfast.")]
    return [cls for cls in (*own, TaskError, RuntimeError) if has_plain_text(cls)]
