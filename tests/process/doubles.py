"""Events that must have happened once: executions, children, steps, results, records, list entries
of ends.

The logs are compared with other observations: of callers that got an execution's id, of the cloud
that accepted records, of processes that began tasks; and with the prediction from the input alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from holdfast.core.events import Event
from holdfast.runtime.listing import is_listed, read_entry
from tests.process.chaos import Harm
from tests.process.evidence import RESULTS, Log, place
from tests.process.expected import Expected, Step, expected, step
from tests.process.journal import digest
from tests.process.ledger import Begun, attempt_of
from tests.process.pace import SECONDS
from tests.process.scene import Scene

#: The time within which a fault's effect on a delivery shows: its visibility, and a task.
AFTERMATH_SECONDS: Final = SECONDS + 5.0
_TASK: Final = "task:"
_CHILD: Final = "workflow:"


def violations(scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield the execution, or another subject, and the violation."""
    yield from _one_execution_each(scene)
    yield from _children_as_asked(scene)
    yield from _records_as_accepted(scene)
    yield from _begun_again_for_a_reason(scene)
    for log in scene.found.logs.values():
        texts = (
            *_as_expected(log),
            *_results_are_of_their_attempts(log),
            *_results_were_worked_for(scene, log),
            *_no_retry_early(scene, log),
            *_listed_once(log),
        )
        for text in texts:
            yield log.run, text


# -- executions ------------------------------------------------------------------------------------


def _one_execution_each(scene: Scene) -> Iterator[tuple[str, str]]:
    """Check that a name is one execution, after any number of starts, and that no others exist."""
    by_name = scene.found.names
    for answer in scene.answers:
        name = answer.key.rpartition(".")[0]
        if answer.is_start and answer.told != by_name.get(name):
            yield name, f"a caller was told {answer.told}, and it is {by_name.get(name)}"
    known = set(by_name.values())
    for log in scene.found.logs.values():
        if "." not in log.run and log.run not in known:
            yield log.run, f"an execution without a caller, of the name {log.state.name}"


def _children_as_asked(scene: Scene) -> Iterator[tuple[str, str]]:
    logs = scene.found.logs
    asked = {child for log in logs.values() for child in _asked_children(log)}
    for run in sorted(asked - logs.keys()):
        yield run, "lost: a child that was asked for, and there is no log of it"
    for run in sorted(run for run in logs if "." in run and run not in asked):
        yield run, "a child that no log asked for"


def _asked_children(log: Log) -> Iterator[str]:
    """A step that was asked for twice has two children, and is found as a step."""
    for event in _scheduled(log, _CHILD):
        yield f"{log.run}.{event.holdfast['entry']}.{event.holdfast['attempt']}"


# -- one log ---------------------------------------------------------------------------------------


def _as_expected(log: Log) -> Iterator[str]:
    (started,) = [event for event in log.events if event.type == "ExecutionStarted"]
    end = expected(log.state.workflow, started.details["input"])
    if log.state.status != end.status:
        yield f"{log.state.workflow} ended {log.state.status} {log.state.error}, not {end.status}"
    elif end.status == "SUCCEEDED" and log.state.output != end.output:
        yield f"{log.state.workflow} came to {log.state.output!r}, not {end.output!r}"
    yield from _steps_as_expected(log, end)


def _steps_as_expected(log: Log, end: Expected) -> Iterator[str]:
    wanted = Counter(end.steps)
    taken = Counter(_step(event) for event in _scheduled(log))
    for one in sorted((taken - wanted).keys()):
        yield f"doubled: the step {one} was taken {taken[one]} times, not {wanted[one]}"
    if end.status == "SUCCEEDED":
        for one in sorted((wanted - taken).keys()):
            yield f"lost: the step {one} was taken {taken[one]} times, not {wanted[one]}"


def _step(event: Event) -> Step:
    return step(event.details["resource"], event.details["parameters"])


def _scheduled(log: Log, *kinds: str) -> list[Event]:
    """Return the scheduled tasks and children, unless the caller selects others."""
    return [
        event
        for event in log.events
        if event.type == "TaskScheduled"
        and event.details["resource"].startswith(kinds or (_TASK, _CHILD))
    ]


def _results_are_of_their_attempts(log: Log) -> Iterator[str]:
    """In its own line each result closes the attempt before it, and there is no second one."""
    opened: dict[str, tuple[int, int]] = {}
    for event in log.events:
        frame = event.holdfast.get("frame", "")
        if event.type == "TaskScheduled":
            opened[frame] = event.holdfast["entry"], event.holdfast["attempt"]
        elif event.type in RESULTS and opened.pop(frame, None) is None:
            yield f"doubled: event {event.id}, {event.type}, is of no open attempt of its line"


def _listed_once(log: Log) -> Iterator[str]:
    """Where an execution has ended, its last record is listed, under its status."""
    if not log.state.is_ended:
        return
    last = log.items[-1]
    if not is_listed(last) or read_entry(last).status != log.state.status:
        listed = f"listed as {last.get('st')!r} in {last.get('lp')!r}"
        yield f"it ended {log.state.status} and is {listed}"


# -- beside the logs -------------------------------------------------------------------------------


def _records_as_accepted(scene: Scene) -> Iterator[tuple[str, str]]:
    """Each record that was ever let in is there still, byte for byte."""
    items = {place(item): item for log in scene.found.logs.values() for item in log.items}
    for where, accepted in sorted(scene.digests.items()):
        run = where.split()[0].partition("#")[2]
        if run in scene.found.unreadable:
            continue
        if where not in items:
            yield run, f"lost: record {where} was accepted and is gone"
        elif digest(items[where]) != accepted:
            yield run, f"record {where} is not what was accepted there"


def _results_were_worked_for(scene: Scene, log: Log) -> Iterator[str]:
    """Each attempt with a result had begun somewhere, before that."""
    for attempt, came_at in _results(scene, log):
        begun = scene.beginnings.get(attempt)
        if begun is None or begun[0].at > came_at:
            yield f"attempt {attempt} has a result, and had not begun"


def _results(scene: Scene, log: Log) -> Iterator[tuple[str, float]]:
    """Yield the attempts of tasks that have a result, and when its record came."""
    opened: dict[str, Event] = {}
    for at, event in scene.events(log):
        frame = event.holdfast.get("frame", "")
        if event.type == "TaskScheduled":
            opened[frame] = event
        elif event.type in RESULTS and frame in opened:
            asked = opened.pop(frame)
            if asked.details["resource"].startswith(_TASK):
                yield _attempt(log, asked), at


def _begun_again_for_a_reason(scene: Scene) -> Iterator[tuple[str, str]]:
    """Check repeated attempts. Although attempts run at least once, a second run needs a reason:
    the first worker was lost.

    Or another start caused it: each of two starts continues from the log that it finds.
    """
    logs = scene.found.logs.values()
    results = dict(result for log in logs for result in _results(scene, log))
    claimed = {_attempt(log, e) for log in logs for e in _scheduled(log) if "claim" in e.holdfast}
    for attempt, begun in scene.beginnings.items():
        run = attempt.split()[0]
        for before, again in pairwise(begun if scene.starts.get(run, 0) < 2 else ()):
            # A lapsed lease may be taken over from a worker that is merely slow.
            is_slow = again.at - before.at > SECONDS and results.get(attempt, again.at) >= again.at
            harms = _harms_of(scene, {before.pid, again.pid} if attempt in claimed else None)
            if not is_slow and not any(_befell(harm, before, again) for harm in harms):
                after = f"{again.at - before.at:.1f} s after {before.pid} had"
                yield run, f"doubled: {attempt} was begun by {again.pid} {after}, for no reason"


def _harms_of(scene: Scene, pids: set[int] | None) -> list[Harm]:
    """Return the faults that may have lost the one, or made the other continue with old data.

    None: of any process. An attempt that was scheduled for later has no worker until its wake
    arrives; a recovering worker may arrive at the same moment.
    """
    harms = (harm for harm in scene.harms if not harm.role.startswith("caller"))
    return [h for h in harms if pids is None or h.kind == "stall" or h.pid in pids]


def _befell(harm: Harm, before: Begun, again: Begun) -> bool:
    return harm.begun_at <= again.at and harm.ended_at >= before.at - AFTERMATH_SECONDS


def _no_retry_early(scene: Scene, log: Log) -> Iterator[str]:
    """An attempt after a pause began after that, by the clock of the trial."""
    for event in _scheduled(log, _TASK):
        attempt = _attempt(log, event)
        begun = scene.beginnings.get(attempt)
        if begun is not None and begun[0].at * 1_000 < event.holdfast.get("due", 0):
            yield f"attempt {attempt} began early, at {begun[0].at:.3f}"


def _attempt(log: Log, asked: Event) -> str:
    return attempt_of(log.run, asked.holdfast["entry"], asked.holdfast["attempt"])
