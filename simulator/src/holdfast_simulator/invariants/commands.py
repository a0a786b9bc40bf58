"""I4: workers carry out exactly what records request.

Workers carry out the commands of a state (`core/waits.py`) after its record is stored: messages,
rows, inbox items, attempts. Only the attempts of record 0 may come before it, because they follow
from the start message alone (R3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.asl.program import Json
from holdfast.core.commands import (
    Command,
    RegisterForEvent,
    RunAttempt,
    StartChild,
    StartTimer,
    StopChild,
)
from holdfast.core.events import Event
from holdfast.core.run_ids import child_run
from holdfast.core.state import Awaiting, Execution
from holdfast.core.waits import pending_commands
from holdfast.runtime.effects import Item
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import Record
from holdfast_simulator import dispatches
from holdfast_simulator.dispatches import DispatchKey
from holdfast_simulator.evidence import Evidence, Ran
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import bus
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.swarm import FREEZES_MS

#: Entry and attempt, with the record that requests the attempt and its arguments.
_Asked: TypeAlias = dict[tuple[int, int], tuple[int, Json]]

_SCHEDULED: Final = frozenset({"TaskScheduled", "LambdaFunctionScheduled"})
#: The time until a worker that was frozen at the end of the faults has continued.
_THAWED_MS: Final = 60_000
#: The commands of a distributed Map: read the items, write the results.
_MAP_RUN: Final = frozenset({"ItemsAsked", "ResultsAsked"})


def asked_for(case: Case) -> Iterator[str]:
    asked = {history.run: _attempts_of(history) for history in case.histories}
    unknown = {(run, *place) for run, *place in case.ran if tuple(place) not in asked.get(run, {})}
    stopped = _stopped_at_once(case, asked)
    yield from _children(case)
    if case.evidence is not None:
        written = written_ms(case.evidence)
        for ran in case.evidence.ran:
            # The host may have been frozen before it began, more than once, and have continued
            # after record 0: at the latest when the faults end.
            latest_ms = max(
                written[ran.run, 0] + FREEZES_MS[-1], case.evidence.faults_end_ms + _THAWED_MS
            )
            if ran.run in stopped and ran.at_ms < latest_ms:
                unknown.discard((ran.run, ran.entry, ran.attempt))
            else:
                yield from _ran_in_time(ran, asked.get(ran.run, {}), written)
        yield from _carried_out(case, written)
        yield from case.evidence.forgotten
        yield from bus.told(case)
    for place in sorted(unknown):
        yield f"task attempt {place} ran, and the log never scheduled it"


def _stopped_at_once(case: Case, asked: Mapping[str, _Asked]) -> set[str]:
    """Return executions that were stopped instead of tried again, because the worker of their first
    tasks had crashed or was frozen before record 0 (R3). Such a worker schedules nothing. The
    execution may be redriven, or its time may be over, before the stop is read.
    """
    mail = {str(one["pk"]) for one in case.services.items(tables.MAIL) if _is_control(one)}
    return {
        history.run
        for history in case.histories
        if keys.inbox(history.tenant, history.run) in mail
        and all(sequence for sequence, _ in asked[history.run].values())
    }


def _is_control(item: Item) -> bool:
    return str(item["sk"]).startswith(keys.CONTROL_PREFIX)


def written_ms(evidence: Evidence) -> dict[tuple[str, int], int]:
    """Return the time at which each record was written, by execution and sequence number."""
    return {(one.run, one.sequence): one.at_ms for one in evidence.wrote}


# -- attempts --------------------------------------------------------------------------------------


def _attempts_of(history: StoredHistory) -> _Asked:
    found: _Asked = {}
    for record in history.records:
        for event in record.events:
            if event.type in _SCHEDULED or event.type in _MAP_RUN:
                place = (event.holdfast["entry"], event.holdfast["attempt"])
                found[place] = (record.sequence, _arguments(event))
            elif event.type == "ConditionUnmet":
                entry, attempt = event.holdfast["entry"], event.holdfast["attempt"]
                found[entry, attempt] = (record.sequence, found[entry, attempt - 1][1])
    return found


def _arguments(event: Event) -> Json:
    if event.type in _MAP_RUN:
        found: Json = event.holdfast["arguments"]
        return found
    details: Mapping[str, Json] = event.details
    return details["parameters"] if "parameters" in details else details["input"]


def _ran_in_time(ran: Ran, asked: _Asked, written: Mapping[tuple[str, int], int]) -> Iterator[str]:
    found = asked.get((ran.entry, ran.attempt))
    if found is None:
        return
    sequence, arguments = found
    what = f"{ran.run}: attempt {ran.entry}.{ran.attempt} of {ran.name}"
    if sequence and ran.at_ms < written.get((ran.run, sequence), 0):
        yield f"{what} ran before record {sequence} asked for it"
    if ran.arguments != arguments:
        yield f"{what} ran with other arguments than record {sequence} says"


# -- children --------------------------------------------------------------------------------------


def _children(case: Case) -> Iterator[str]:
    """Check that every child has a place in its parent's log, and each place at most one child."""
    places = {
        (history.run, event.holdfast["entry"])
        for history in case.histories
        for event in history.events
        if "entry" in event.holdfast
    }
    for history in case.histories:
        parent = history.state.parent
        if parent is None:
            continue
        if (parent["run"], parent["entry"]) not in places:
            yield f"{history.run} began, and the log of {parent['run']} never asked for it"
        named = child_run(parent["run"], parent["entry"], parent.get("lane", parent["attempt"]))
        if history.run != named:
            yield f"{history.run} began where {named} is the child of {parent['run']}"


# -- messages, rows and mail -----------------------------------------------------------------------


def _carried_out(case: Case, written: Mapping[tuple[str, int], int]) -> Iterator[str]:
    """Check that timers, starts of children, their stops and registrations follow their record."""
    asked: dict[DispatchKey, tuple[str, int]] = {}
    for history in case.histories:
        for record, state in zip(history.records, history.states, strict=True):
            for key in (*_called(history, record), *_keys_of(history.tenant, state)):
                asked.setdefault(key, (history.run, record.sequence))
    roots = {history.run for history in case.histories if history.state.parent is None}
    for key, first_ms in case.schedule.dispatches.first_ms.items():
        kind, _, run, *_ = key
        if kind == "start" and (run in roots or "." not in str(run)):
            continue  # A caller has sent this one
        found = asked.get(key)
        if found is None:
            yield f"{key} was carried out, and no record asked for it"
        elif first_ms < written.get(found, 0) and not (kind == "start" and found[1] == 0):
            yield f"{key} was carried out before record {found[1]} of {found[0]} asked for it"


def _called(history: StoredHistory, record: Record) -> Iterator[DispatchKey]:
    """Yield the workflows that tasks call. An attempt may have started one before its record is
    written.
    """
    for event in record.events:
        if event.type in _SCHEDULED and str(event.details["resource"]).startswith("workflow:"):
            entry, attempt = event.holdfast["entry"], event.holdfast["attempt"]
            yield dispatches.start(history.tenant, child_run(history.run, entry, attempt))


def _keys_of(tenant: str, state: Execution) -> Iterator[DispatchKey]:
    for command in pending_commands(state):
        yield from _keys_of_command(tenant, state, command)


def _keys_of_command(tenant: str, state: Execution, command: Command) -> Iterator[DispatchKey]:
    match command:
        case StartTimer(entry, due_ms):
            yield dispatches.timer(tenant, state.run, entry, due_ms)
        case RunAttempt(attempt=attempt):
            if attempt.claim is None and not attempt.is_unknown:  # The sweeper requests the others
                yield dispatches.timer(tenant, state.run, attempt.entry, attempt.due_ms)
        case StartChild(entry, number):
            yield dispatches.start(tenant, child_run(state.run, entry, number))
        case StopChild(entry, number):
            yield dispatches.stop(tenant, child_run(state.run, entry, number))
        case RegisterForEvent(entry=entry):
            frame = state.frame_of(entry)
            assert frame is not None
            assert isinstance(frame.waiting, Awaiting)
            place = keys.event(tenant, frame.waiting.event_name, frame.waiting.event_key)
            yield dispatches.registration(tenant, state.run, place)


def forgotten(evidence: Evidence, history: StoredHistory, before_ms: int) -> Iterator[str]:
    """Yield the commands that an open execution has requested since before that time, and that no
    worker has carried out.

    A message that was sent and then lost counts as sent. An attempt with a lease is guarded: its
    owner may be at work, and the sweeper has to find that out.
    """
    written = written_ms(evidence)
    older = [
        state
        for record, state in zip(history.records, history.states, strict=True)
        if written.get((history.run, record.sequence), before_ms) < before_ms
    ]
    if not older:
        return
    still = set(_keys_of(history.tenant, history.state))
    for key in _keys_of(history.tenant, older[-1]):
        if key in still and key not in evidence.dispatches.first_ms:
            yield f"{history.run}: {key} was never carried out"
