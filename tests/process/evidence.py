"""The stored tables at the end of a trial, and the rules that must hold.

The log itself is the evidence: it is read from its first record, without any worker's memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from holdfast.core.apply.apply import fold
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.state import Execution
from holdfast.core.state_json import to_json
from holdfast.runtime.effects import Item
from holdfast.runtime.listing import OPEN
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.codec import Reader, Record
from tests.process.plan import Planned

Writers = Mapping[str, list[str]]
#: When each record came to the cloud, by its place, in seconds.
Arrived = Mapping[str, float]

#: Results of an attempt.
RESULTS = frozenset({"TaskSucceeded", "TaskFailed", "TaskTimedOut"})


def place(item: Item) -> str:
    """Return partition and sequence of a record, as the cloud's journal names them."""
    return f"{item['pk']!s} {item['sk']!s}"


@dataclass(frozen=True, slots=True)
class Log:
    """One execution as it is stored."""

    run: str
    items: tuple[Item, ...]
    records: tuple[Record, ...]
    state: Execution

    @property
    def events(self) -> list[Event]:
        return [event for record in self.records for event in record.events]


@dataclass(frozen=True, slots=True)
class Evidence:
    logs: Mapping[str, Log]
    names: Mapping[str, str]
    """Of each name that was claimed, the execution."""
    quarantined: tuple[str, ...]
    unreadable: Mapping[str, str]
    """Of each execution whose log cannot be folded, why."""


def evidence_of(executions: list[Item], mail: list[Item]) -> Evidence:
    by_run: dict[str, list[Item]] = {}
    for item in sorted(executions, key=lambda item: int(item["sk"])):
        by_run.setdefault(str(item["pk"]).partition("#")[2], []).append(item)
    logs: dict[str, Log] = {}
    unreadable: dict[str, str] = {}
    for run, items in by_run.items():
        try:
            logs[run] = _log(run, items)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
            unreadable[run] = repr(error)
    named = [item for item in mail if str(item["pk"]).split("#")[1:2] == ["n"]]
    return Evidence(
        logs=logs,
        names={str(item["pk"]).rpartition("#")[2]: str(item["run"]) for item in named},
        quarantined=tuple(str(i["sk"]) for i in mail if i["pk"] == keys.QUARANTINE),
        unreadable=unreadable,
    )


def _log(run: str, items: list[Item]) -> Log:
    """Values of these workflows are small: none of them is in a blob."""
    numbers = [int(item["sk"]) for item in items]
    if numbers != list(range(len(numbers))):
        raise ValueError(f"its records are {numbers}, not dense")
    reader = Reader({})
    records = tuple(reader.record(item) for item in items)
    assert reader.state is not None
    return Log(run, tuple(items), records, reader.state)


# -- rules that must hold --------------------------------------------------------------------------


def violations(
    found: Evidence, plan: list[Planned], writers: Writers, arrived: Arrived
) -> Iterator[tuple[str, str]]:
    """Yield execution, or its name, and the violation."""
    for log in found.logs.values():
        of_writing = (*_one_writer_each(log, writers), *_in_its_time(log, arrived))
        for text in (*_of_log(log), *of_writing):
            yield log.run, text
    for planned in plan:
        for text in _as_planned(found, planned):
            yield planned.name, text
    for run, why in found.unreadable.items():
        yield run, f"its log cannot be read: {why}"
    for run in found.quarantined:
        yield run, "its message was quarantined"


def _of_log(log: Log) -> Iterator[str]:
    yield from _ids_are_dense(log)
    yield from _snapshots_equal_the_fold(log)
    yield from _one_result_each(log)
    yield from _one_end(log)
    yield from _undone_in_reverse(log)


def _ids_are_dense(log: Log) -> Iterator[str]:
    ids = [event.id for event in log.events if event.id]
    if ids != list(range(1, len(ids) + 1)):
        yield "the ids of its events are not dense"


def _one_writer_each(log: Log, writers: Writers) -> Iterator[str]:
    for item in log.items:
        accepted = writers.get(place(item), [])
        if accepted != [item["w"]]:
            yield f"record {place(item)} is by {item['w']!r}, and accepted were {accepted}"


def _snapshots_equal_the_fold(log: Log) -> Iterator[str]:
    state: Execution | None = None
    for item, record in zip(log.items, log.records, strict=True):
        state = fold(record.events, state)
        if "so" in item:
            reader = Reader({})
            reader.from_snapshot(item)
            assert reader.state is not None
            assert state is not None
            if to_json(reader.state) != to_json(state):
                yield f"the snapshot of record {record.sequence} is not the fold of its events"


def _one_result_each(log: Log) -> Iterator[str]:
    """Attempts of an entry count up from 1, and none has two results."""
    attempts: Counter[int] = Counter()
    scheduled = results = 0
    for event in log.events:
        if event.type == "TaskScheduled":
            entry, attempt = event.holdfast["entry"], event.holdfast["attempt"]
            if attempt != attempts[entry] + 1:
                yield f"entry {entry} goes from attempt {attempts[entry]} to {attempt}"
            attempts[entry] = attempt
        scheduled += event.type == "TaskScheduled"
        results += event.type in RESULTS
        if results > scheduled:
            yield "it has more results than attempts"
            return


def _in_its_time(log: Log, arrived: Arrived) -> Iterator[str]:
    """Check the times by the cloud's clock, because the log has its writers' clocks: no timer is
    early, and no event is dated after its record. All processes have one clock. A record that was
    never accepted is reported separately.
    """
    due: dict[str, int] = {}
    for item, record in zip(log.items, log.records, strict=True):
        came_ms = 1_000 * arrived.get(place(item), inf)
        for event in record.events:
            frame = event.holdfast.get("frame", "")
            if event.at_ms > came_ms:
                yield f"{event.type} says {event.at_ms}, and was written at {came_ms:.0f}"
            if event.type == "TimerSet":
                due[frame] = event.holdfast["due"]
            elif event.type == "WaitStateExited" and came_ms < due.pop(frame, 0):
                yield f"a timer fired early, at {came_ms:.0f}"


def _one_end(log: Log) -> Iterator[str]:
    ends = [number for number, event in enumerate(log.events) if event.type in TERMINAL_EVENTS]
    if len(ends) > 1 or (ends and ends[0] != len(log.events) - 1):
        yield "it goes on after its end"


def _undone_in_reverse(log: Log) -> Iterator[str]:
    """Check that bookings are undone once, the last first, by any execution that failed."""
    if log.state.workflow not in {"p_saga", "p_stopped"} or not log.state.is_ended:
        return
    booked = [e.details["output"] for e in _of_task(log, "TaskSucceeded", "book")]
    undone = [e.details["parameters"]["booking"] for e in _of_task(log, "TaskScheduled", "unbook")]
    if undone != booked[::-1]:
        yield f"booked {booked}, and given back {undone}"


def _of_task(log: Log, kind: str, task: str) -> list[Event]:
    return [
        event
        for event in log.events
        if event.type == kind and event.details["resource"] == f"task:{task}"
    ]


def _as_planned(found: Evidence, planned: Planned) -> Iterator[str]:
    run = found.names.get(planned.name)
    log = None if run is None else found.logs.get(run)
    if log is None:
        yield "lost: it was accepted, and there is no log of it"
    elif not log.state.is_ended:
        yield f"lost: {log.run} has not ended"
    elif log.state.status != planned.status:
        yield f"{log.run} ended {log.state.status} {log.state.error}, not {planned.status}"
    elif planned.status == "SUCCEEDED" and log.state.output != planned.output:
        yield f"{log.run} came to {log.state.output!r}, not {planned.output!r}"


def unasked_tasks(found: Evidence, ledger: list[str]) -> Iterator[str]:
    """Yield attempts that ran, and that no log asked for."""
    asked = {
        f"{log.run} {event.holdfast['entry']} {event.holdfast['attempt']}"
        for log in found.logs.values()
        for event in log.events
        if event.type == "TaskScheduled"
    }
    # Its first task may have run before its worker crashed without a record (R3).
    asked |= {f"{log.run} 0 1" for log in found.logs.values() if _was_stopped_at_once(log)}
    yield from sorted(set(ledger) - asked)


def _was_stopped_at_once(log: Log) -> bool:
    """Return True when a stop came before record 0. Record 0 then evaluates nothing, nor do later
    records.
    """
    control = str(log.events[-1].holdfast.get("control", ""))
    is_aborted = log.events[-1].type == "ExecutionAborted" and control != ""
    has_tasks = any(event.type == "TaskScheduled" for event in log.events)
    return is_aborted and not has_tasks and int(control[:15]) < log.records[0].at_ms


def stale_entries(found: Evidence) -> Iterator[str]:
    """Yield executions that have ended and are still listed as RUNNING."""
    for log in found.logs.values():
        partitions = [str(item.get("lp", "")).split("#") for item in log.items]
        if log.state.is_ended and any(parts[2:3] == [OPEN] for parts in partitions):
            yield log.run
