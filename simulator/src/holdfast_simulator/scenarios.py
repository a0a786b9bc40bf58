"""Programs for the simulator: machines, the results of their tasks, and input from outside.

A scenario is everything that is decided before the first fault: the machines, the outcome of each
attempt of each task, the events and answers that arrive. The simulator decides the rest by draws
and time; the reference interpreter gets these decisions (see `rulings.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.asl.resources import POOL

_CORPUS: Final = "corpus"
#: The results of the tasks of the repository's own workflows; other files are self-contained.
_WORKFLOWS: Final = "statemachines.json"


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The result of one attempt of a task. `error` None: it succeeds.

    `echo`: the output is the arguments. `seconds`: the duration of the work, or the time until the
    answer; meanwhile a heartbeat comes each `beat_seconds`.
    """

    output: Json = None
    error: str | None = None
    cause: str | None = None
    seconds: float = 0
    echo: bool = False
    beat_seconds: float = 0

    def output_for(self, arguments: Json) -> Json:
        return arguments if self.echo else self.output


#: A task with this error kills the process that runs it.
KILLS: Final = "SIGKILL"
_ECHO: Final = AttemptOutcome(echo=True)
_NOTHING: Final = AttemptOutcome()


@dataclass(frozen=True, slots=True)
class Brought:
    """An event from outside; it comes `after_seconds` of virtual time, counted from the start. With
    `error` it fails the wait.
    """

    after_seconds: float
    event: str
    key: str
    data: Json
    id: str
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. `machines`: ASL by workflow; the first is started, the others are called.
    `tasks`: by task name, the outcome of each attempt. `answers`: by state name, the answer of a
    person or a token's holder; `seconds` is the time until it. `jobs`: by task name, the result of
    the job that each attempt begins; `seconds` is how long it runs. `stops`: a caller may stop the
    execution. `pauses`: an operator may pause it, and resumes it in the end. `skips`: by state, the
    result that an operator may give in place of the step's own; it is the same one, so that the end
    stays as the reference says. `quiet_days`: the time without faults at the beginning; they start
    with the sweeper's next check.
    """

    name: str
    about: str
    machines: Mapping[str, Json]
    input: Json = None
    tasks: Mapping[str, tuple[AttemptOutcome, ...]] = field(default_factory=dict)
    events: tuple[Brought, ...] = ()
    answers: Mapping[str, AttemptOutcome] = field(default_factory=dict)
    jobs: Mapping[str, tuple[AttemptOutcome, ...]] = field(default_factory=dict)
    stops: bool = False
    pauses: bool = False
    skips: Mapping[str, Json] = field(default_factory=dict)
    quiet_days: int = 0

    @property
    def started(self) -> str:
        """The workflow that is started."""
        return next(iter(self.machines))

    @property
    def kills(self) -> bool:
        """True when one of its tasks crashes its worker, independent of other faults."""
        outcomes = chain.from_iterable(self.tasks.values())
        return any(outcome.error == KILLS for outcome in outcomes)

    def outcome(self, target: str, attempt: int) -> AttemptOutcome:
        """Return the outcome of an attempt, from 1, of a Task by its target; the last one repeats.

        A function or activity is listed by its name: "ship" for "arn:aws:lambda:…:function:ship".
        The tasks of all pools are listed as "holdfast:pool:".
        """
        return _nth(self.tasks.get(task_name(target), (_ECHO,)), attempt)

    def job(self, target: str, attempt: int) -> AttemptOutcome:
        """Return the result of a job. Without an entry, the result is null at once."""
        return _nth(self.jobs.get(target, (_NOTHING,)), attempt)

    def answer(self, state_name: str) -> AttemptOutcome:
        """Return the answer. Without an entry, null is answered at once."""
        return self.answers.get(state_name, _NOTHING)

    def document(self) -> dict[str, Json]:
        """Return the document that `read` reads."""
        return {
            "name": self.name,
            "about": self.about,
            "machines": dict(self.machines),
            "input": self.input,
            "tasks": {name: [_written(one) for one in many] for name, many in self.tasks.items()},
            "events": [_written(one) for one in self.events],
            "answers": {name: _written(one) for name, one in self.answers.items()},
            "jobs": {name: [_written(one) for one in many] for name, many in self.jobs.items()},
            "stops": self.stops,
            "pauses": self.pauses,
            "skips": dict(self.skips),
            "quiet_days": self.quiet_days,
        }


def task_name(target: str) -> str:
    if target.startswith(POOL):
        return POOL
    return target.rpartition(":function:")[2].rpartition(":activity:")[2]


def offered_in(partition: str) -> tuple[str, str] | None:
    """Return the tenant, and the activity or "holdfast:pool:<pool>", of a partition of offered
    tasks; None for another one.
    """
    for mark, kind in (("#act#", ""), ("#pot#", POOL)):
        tenant, is_offer, name = partition.partition(mark)
        if is_offer:
            return tenant, f"{kind}{name}"
    return None


def _nth(outcomes: tuple[AttemptOutcome, ...], attempt: int) -> AttemptOutcome:
    return outcomes[min(attempt, len(outcomes)) - 1]


def _written(value: AttemptOutcome | Brought) -> dict[str, Json]:
    fields = {name: getattr(value, name) for name in value.__slots__}
    if isinstance(value, AttemptOutcome):
        return {name: one for name, one in fields.items() if one != getattr(_NOTHING, name)}
    failure = {"error", "cause"}
    return {name: one for name, one in fields.items() if one is not None or name not in failure}


def read(document: Mapping[str, Any]) -> Scenario:
    """{"name", "about", "machines", "input"?, "tasks"?, "events"?, "answers"?, "jobs"?, "stops"?,
    "pauses"?, "skips"?, "quiet_days"?}; outcomes of a task or job are a list, of objects with the
    fields of `AttemptOutcome`.
    """
    return Scenario(
        name=document["name"],
        about=document["about"],
        machines=document["machines"],
        input=document.get("input"),
        tasks=_outcomes(document.get("tasks", {})),
        events=tuple(Brought(**one) for one in document.get("events", ())),
        answers={name: AttemptOutcome(**one) for name, one in document.get("answers", {}).items()},
        jobs=_outcomes(document.get("jobs", {})),
        stops=document.get("stops", False),
        pauses=document.get("pauses", False),
        skips=document.get("skips", {}),
        quiet_days=document.get("quiet_days", 0),
    )


def _outcomes(document: Mapping[str, Any]) -> dict[str, tuple[AttemptOutcome, ...]]:
    return {name: tuple(AttemptOutcome(**one) for one in many) for name, many in document.items()}


def corpus() -> tuple[Scenario, ...]:
    """The hand-written scenarios, file by file."""
    folder = resources.files(__package__) / _CORPUS
    files = sorted((one for one in folder.iterdir()), key=lambda one: one.name)
    return tuple(
        read(document)
        for file in files
        if file.name.endswith(".json") and file.name != _WORKFLOWS
        for document in json.loads(file.read_text(encoding="utf-8"))
    )


def statemachine_scenarios(directory: Path) -> tuple[Scenario, ...]:
    """Return paths through the compiled workflows in `directory`, with the workflows that they
    call.
    """
    text = (resources.files(__package__) / _CORPUS / _WORKFLOWS).read_text(encoding="utf-8")
    found = {}
    for file in sorted(directory.glob("*.asl.json")):
        found[file.name.removesuffix(".asl.json")] = json.loads(file.read_text(encoding="utf-8"))
    return tuple(
        read({**path, "machines": {name: found[name] for name in _family(path["workflow"], found)}})
        for path in json.loads(text)
    )


def _family(workflow: str, found: Mapping[str, Any]) -> list[str]:
    """The workflow, then all that it calls, each once."""
    names = [workflow]
    for name in names:
        names += [called for called in _called(found[name]) if called not in names]
    return names


def _called(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        resource = value.get("Resource")
        if isinstance(resource, str) and resource.startswith("holdfast:workflow:"):
            yield resource.rpartition(":")[2]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _called(one)
