"""What must hold of a world's store, whatever went wrong. Each checker returns what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.core.apply import fold
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.state import Execution
from holdfast.core.state_json import to_json
from holdfast.errors import HoldfastError
from holdfast.runtime.codec import Reader, Record, blobs_named_by
from holdfast.runtime.effects import Item
from holdfast.sim.world import World


@dataclass(frozen=True, slots=True)
class History:
    """One execution as the store holds it, read from its first record."""

    run: str
    items: tuple[Item, ...]
    records: tuple[Record, ...]
    state: Execution

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for record in self.records for event in record.events)


def histories(world: World) -> list[History]:
    """Raises HoldfastError when a log cannot be folded."""
    by_run: dict[str, list[Item]] = {}
    for item in world.services.items("executions"):
        by_run.setdefault(str(item["pk"]).partition("#")[2], []).append(item)
    return [_history(world, run, items) for run, items in by_run.items()]


def _history(world: World, run: str, items: list[Item]) -> History:
    blobs = {key.rpartition("/")[2]: data for key, data in world.services.blobs().items()}
    missing = [digest for item in items for digest in blobs_named_by(item) if digest not in blobs]
    if missing:
        raise HoldfastError("HF901", f"execution {run} names blobs that are not stored: {missing}")
    reader = Reader(blobs)
    records = tuple(reader.record(item) for item in items)
    assert reader.state is not None
    return History(run, tuple(items), records, reader.state)


def check(world: World) -> list[str]:
    """-> every violation in the world, as sentences; empty when all is well."""
    try:
        found = histories(world)
    except (HoldfastError, KeyError, AssertionError) as error:
        return [f"a log cannot be read: {error!r}"]
    violations = [text for history in found for text in _of_history(world, history)]
    violations += _children_were_asked_for(found)
    return [*violations, *_tasks_were_scheduled(world, found), *_leftovers(world, found)]


def _of_history(world: World, history: History) -> Iterator[str]:
    yield from _dense(history)
    yield from _snapshots_equal_the_fold(world, history)
    yield from _applied_once(history)
    yield from _never_early(history)
    yield from _one_end(history)


def _dense(history: History) -> Iterator[str]:
    numbers = [record.sequence for record in history.records]
    if numbers != list(range(len(numbers))):
        yield f"{history.run}: records {numbers} are not dense"
    ids = [event.id for event in history.events if event.id]
    if ids != list(range(1, len(ids) + 1)):
        yield f"{history.run}: event ids are not dense"
    if any(event.previous >= event.id for event in history.events if event.id):
        yield f"{history.run}: an event precedes its own predecessor"


def _snapshots_equal_the_fold(world: World, history: History) -> Iterator[str]:
    blobs = {key.rpartition("/")[2]: data for key, data in world.services.blobs().items()}
    state: Execution | None = None
    for item, record in zip(history.items, history.records, strict=True):
        state = fold(record.events, state)
        if "so" in item:
            reader = Reader(blobs)
            reader.from_snapshot(item)
            assert reader.state is not None
            assert state is not None
            if to_json(reader.state) != to_json(state):
                yield f"{history.run}: the snapshot of record {record.sequence} is not the fold"


#: Events after which an attempt runs.
_ASKING = frozenset({"TaskScheduled", "LambdaFunctionScheduled", "ItemsAsked", "ResultsAsked"})


def _applied_once(history: History) -> Iterator[str]:
    """A task's result is applied to its own attempt, and attempts have no gaps."""
    attempts: dict[int, int] = {}
    open_attempts = 0
    for event in history.events:
        if event.type == "TaskScheduled":
            entry, attempt = event.holdfast["entry"], event.holdfast["attempt"]
            if attempt != attempts.get(entry, 0) + 1:
                yield f"{history.run}: entry {entry} goes from {attempts.get(entry)} to {attempt}"
            attempts[entry] = attempt
            open_attempts += 1
        elif event.type in {"TaskSucceeded", "TaskFailed", "TaskTimedOut"}:
            open_attempts -= 1
        if open_attempts < 0:
            yield f"{history.run}: more results than scheduled attempts"
            return
    used = [event.holdfast["event"] for event in history.events if "event" in event.holdfast]
    if len(used) != len(set(used)):
        yield f"{history.run}: an event was used twice"


def _never_early(history: History) -> Iterator[str]:
    due: dict[str, int] = {}
    for event in history.events:
        frame = event.holdfast.get("frame", "")
        if event.type == "TimerSet":
            due[frame] = event.holdfast["due"]
        elif event.type == "WaitStateExited" and event.at_ms < due.pop(frame, 0):
            yield f"{history.run}: a timer fired early at {event.at_ms}"


def _one_end(history: History) -> Iterator[str]:
    has_ended = False
    for event in history.events:
        if has_ended and event.type != "ExecutionRedriven":
            yield f"{history.run}: {event.type} follows the end of the history"
            return
        has_ended = event.type in TERMINAL_EVENTS


def _tasks_were_scheduled(world: World, found: Iterable[History]) -> Iterator[str]:
    """Nothing ran that no committed event asked for."""
    scheduled = {
        (history.run, event.holdfast["entry"], event.holdfast["attempt"])
        for history in found
        for event in history.events
        if event.type in _ASKING
    }
    for ran in world.task_runs:
        if ran not in scheduled:
            yield f"task attempt {ran} ran, and the log never scheduled it"


def _children_were_asked_for(found: Iterable[History]) -> Iterator[str]:
    """Nothing began for a parent whose log has no such place."""
    found = list(found)
    places = {
        (history.run, event.holdfast["entry"])
        for history in found
        for event in history.events
        if "entry" in event.holdfast
    }
    for history in found:
        parent = history.state.parent
        if parent is not None and (parent["run"], parent["entry"]) not in places:
            yield f"{history.run} began, and the log of {parent['run']} never asked for it"


def _leftovers(world: World, found: Iterable[History]) -> Iterator[str]:
    ended = {history.run for history in found if history.state.is_ended}
    for item in world.services.items("executions"):
        is_running_entry = str(item.get("lp", "")).split("#")[2:3] == ["RUNNING"]
        if is_running_entry and str(item["ls"]).partition("#")[2] in ended:
            yield f"{item['pk']!r}: ended, and still listed as RUNNING"
        if "ev" not in item and "eb" not in item:
            yield f"{item['pk']!r}: a record without events"


def lost(world: World) -> list[str]:
    """-> executions that were accepted and have not ended."""
    accepted = {
        str(item["run"])
        for item in world.services.items("mail")
        if str(item["pk"]).split("#")[1:2] == ["n"]
    }
    ended = {history.run for history in histories(world) if history.state.is_ended}
    open_runs = {history.run for history in histories(world) if not history.state.is_ended}
    return sorted((accepted | open_runs) - ended)
