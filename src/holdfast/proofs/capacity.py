"""Capacity: which limit is reached first when so many executions of a workflow start in a second.

The states of the workflow say how often an execution calls each task at least: once for each state
that calls it, outside of loops and lists. From this follows the use of each limit, and of the
workers: the part of them that these calls take. With a use above 1, executions wait longer and
longer.

The definition does not say how long a task runs. Pass measured times. Without them the report lists
the tasks whose time is not known, and leaves their concurrency limits out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.api.limits import Limit
from holdfast.proofs.graph import MachineLevel

#: The number of attempts that the messages of one invocation may run at once.
_ATTEMPTS_OF_A_WORKER: Final = 10
_OWN_TASK: Final = "holdfast:task:"


@dataclass(frozen=True, slots=True)
class Use:
    """The use of one capacity. `name` is a limit or "workers". `part` is 1.0 when all of it is
    used. `change` is the setting that increases it.
    """

    name: str
    part: float
    allows: str
    change: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity at a rate. `uses` begins with the one that is reached first. `unknown` are tasks
    whose run time was not given.
    """

    workflow: str
    starts_per_second: float
    uses: tuple[Use, ...]
    unknown: tuple[str, ...]

    @property
    def highest(self) -> float | None:
        """Return the starts per second that the first of `uses` allows; None without one."""
        if not self.uses or not self.uses[0].part:
            return None
        return self.starts_per_second / self.uses[0].part


def capacity_of(
    workflow: str,
    levels: Sequence[MachineLevel],
    limits: Mapping[str, Sequence[Limit]],
    *,
    starts_per_second: float,
    seconds: Mapping[str, float],
    workers: int,
) -> Capacity:
    """Return which limit is reached first.

    `limits` are those of each task, `seconds` says how long an attempt runs, `workers` how many run
    at once.
    """
    calls = Counter(calls_in(levels))
    rates = {task: count * starts_per_second for task, count in calls.items()}
    found = list(_uses_of_limits(rates, limits, seconds))
    known = sum(rate * seconds[task] for task, rate in rates.items() if task in seconds)
    if known:
        places = workers * _ATTEMPTS_OF_A_WORKER
        change = 'more concurrency of "worker": `functions` of Holdfast(…), or in cdk.json'
        found.append(Use("workers", known / places, f"{places} attempts at once", change))
    unknown = tuple(sorted(task for task in calls if task not in seconds))
    uses = tuple(sorted(found, key=lambda use: -use.part))
    return Capacity(workflow, starts_per_second, uses, unknown)


def measured_seconds(histories: Iterable[Iterable[Mapping[str, Any]]]) -> dict[str, float]:
    """Return how long an attempt of each task ran: the mean over histories in the form of the API.

    An attempt runs until its result. It begins with the event that schedules it or, after a wait,
    gives it to a worker; the result's `previousEventId` names that event. A short wait in a queue
    is included.
    """
    spans: dict[str, list[float]] = {}
    for history in histories:
        begun: dict[int, tuple[str, datetime]] = {}
        for event in history:
            at = datetime.fromisoformat(event["timestamp"])
            details = event.get(f"{event['type'][:1].lower()}{event['type'][1:]}EventDetails", {})
            resource = str(details.get("resource", ""))
            task, previous = resource.removeprefix("task:"), event.get("previousEventId", 0)
            match event["type"]:
                case "TaskScheduled" if task != resource:
                    begun[event["id"]] = (task, at)
                case "TaskStarted" if previous in begun:
                    begun[event["id"]] = begun[previous]
                case "TaskSucceeded" | "TaskFailed" if previous in begun:
                    name, since = begun[previous]
                    spans.setdefault(name, []).append((at - since).total_seconds())
    return {task: sum(found) / len(found) for task, found in spans.items()}


def calls_in(levels: Iterable[MachineLevel]) -> Iterator[str]:
    """Yield the task of each state that calls one."""
    for level in levels:
        for state in level.states.values():
            resource = state.get("Resource")
            if isinstance(resource, str) and resource.startswith(_OWN_TASK):
                yield resource.removeprefix(_OWN_TASK)


def _uses_of_limits(
    rates: Mapping[str, float], limits: Mapping[str, Sequence[Limit]], seconds: Mapping[str, float]
) -> Iterator[Use]:
    taken: Counter[str] = Counter()
    known: dict[str, Limit] = {}
    for task, rate in rates.items():
        for limit in limits.get(task, ()):
            if limit.key is not None:
                # Leave out a limit with a key. It counts separately for each value, and the proof
                # does not know how often each value occurs.
                continue
            if limit.rate is not None:
                taken[limit.name] += rate  # type: ignore[assignment]  # a Counter adds floats, too
            elif task in seconds:
                taken[limit.name] += rate * seconds[task]  # type: ignore[assignment]
            else:
                continue
            known[limit.name] = limit
    for name, limit in known.items():
        if limit.rate is not None:
            allows = f"{limit.rate.per_second:g} starts a second"
            yield Use(
                name, taken[name] / limit.rate.per_second, allows, "a higher rate, or batches"
            )
        elif limit.concurrency is not None:
            allows = f"{limit.concurrency} at once"
            yield Use(name, taken[name] / limit.concurrency, allows, "more places, or faster tasks")
