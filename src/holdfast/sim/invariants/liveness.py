"""I16 to I20: that everything goes on once nothing goes wrong any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from holdfast.core.events import Event
from holdfast.limits import CLOCK_ERROR_MS, TAKEOVERS_MAX
from holdfast.resources import WORKER
from holdfast.runtime import keys
from holdfast.sim.evidence import Evidence
from holdfast.sim.histories import History
from holdfast.sim.invariants.case import Case
from holdfast.sim.invariants.dues import Due, all_dues, skews, stuck_ms_max

#: I18: how late a wait of up to 15 minutes may end, and a longer one, once nothing goes wrong.
LATE_MS_MAX: Final = 60_000
LONG_LATE_MS_MAX: Final = 120_000
#: I20: messages for one execution, however often hosts die and queues deliver again. A dead letter
#: that is put back counts as an event.
MESSAGES_MIN: Final = 40
MESSAGES_PER_EVENT_MAX: Final = 4


def open_runs(case: Case) -> set[str]:
    """-> executions that were accepted and have not ended."""
    accepted = {
        str(item["run"])
        for item in case.services.items("mail")
        if str(item["pk"]).split("#")[1:2] == ["n"]
    }
    ended = {history.run for history in case.histories if history.state.is_ended}
    return (accepted | {history.run for history in case.histories}) - ended


def none_lost(case: Case) -> Iterator[str]:
    if case.evidence is not None:  # a world may have been looked at in the middle
        for run in sorted(open_runs(case)):
            yield f"{run} was accepted and has not ended"
        yield from case.evidence.unguarded
        yield from case.evidence.diagnosed
    yield from _listed_as_running(case)


def _listed_as_running(case: Case) -> Iterator[str]:
    ended = {history.run for history in case.histories if history.state.is_ended}
    for item in case.services.items("executions"):
        is_running_entry = str(item.get("lp", "")).split("#")[2:3] == ["RUNNING"]
        if is_running_entry and str(item["ls"]).partition("#")[2] in ended:
            yield f"{item['pk']!r}: ended, and still listed as RUNNING"


def none_stuck(case: Case) -> Iterator[str]:
    """Time alone asks for it, nothing goes wrong any more: it moves within the stated time."""
    for run, since_ms, at_ms in case.schedule.stuck:
        yield f"{run} should have moved at {since_ms}, and had not at {at_ms}"
    yield from case.schedule.unheard
    for history, due, late_ms in _late(case):
        if late_ms > stuck_ms_max(case.schedule, history.run):
            yield f"{history.run}: a {due.what} due at {due.due_ms} came {late_ms} ms late"
    for history in case.histories:
        yield from _late_mail(case.schedule, history)


def _late_mail(evidence: Evidence, history: History) -> Iterator[str]:
    """What was stored for a wait is applied as soon."""
    skew_of, most_ms = skews(evidence), stuck_ms_max(evidence, history.run)
    inbox = keys.inbox(history.tenant, history.run)
    waits: dict[str, tuple[Event, int]] = {}
    for record in history.records:
        skew_ms = skew_of.get((history.tenant, history.run, record.sequence), 0)
        for event in record.events:
            own, frame = event.holdfast, str(event.holdfast.get("frame", ""))
            if event.type.endswith("Scheduled") or event.type == "TaskSubmitted":
                asked = waits[frame][0] if event.type == "TaskSubmitted" else event
                waits[frame] = (asked, event.at_ms - skew_ms)
            elif frame in waits and event.type.endswith(("Succeeded", "Failed", "TimedOut")):
                asked, since_ms = waits.pop(frame)
                if "event" in own:
                    arguments = asked.details["parameters"]
                    named = keys.event(history.tenant, arguments["event"], arguments["key"])
                    place = (named, f"{keys.EVENT_PREFIX}{own['event']}")
                else:
                    ticket = (asked.holdfast["entry"], asked.holdfast["attempt"])
                    place = (inbox, keys.answer(*ticket))
                stored_ms = evidence.stored.get(place)
                if stored_ms is not None:
                    wanted_ms = max(stored_ms, since_ms, evidence.faults_end_ms)
                    late_ms = event.at_ms - skew_ms - wanted_ms
                    if late_ms > most_ms:
                        yield f"{history.run}: {place[1]} was applied {late_ms} ms late"


def in_time(case: Case) -> Iterator[str]:
    """Of waits that began after the faults. What a start decides bears the time of its caller."""
    for history, due, late_ms in _late(case):
        began_ms = due.set_ms - due.skew_ms - CLOCK_ERROR_MS
        is_undisturbed = began_ms > case.schedule.faults_end_ms
        latest_ms = LONG_LATE_MS_MAX if due.is_long else LATE_MS_MAX
        if is_undisturbed and late_ms > latest_ms:
            yield f"{history.run}: a {due.what} due at {due.due_ms} came {late_ms} ms late"


def _late(case: Case) -> Iterator[tuple[History, Due, int]]:
    """-> how late each wait ended, counted from the end of the faults if it was due before. A task
    that a worker runs may be in the hands of several, one after another.
    """
    for history, due in all_dues(case):
        # A wait that is answered long after its time has not been looked after either.
        is_passed = due.came_ms is None and due.what == "time-out"
        ended_ms = due.over_ms if is_passed else due.came_ms
        if ended_ms is not None and due.what != "attempt":
            set_ms = due.set_ms - due.skew_ms
            wanted_ms = max(due.true_ms, set_ms, case.schedule.faults_end_ms)
            yield history, due, ended_ms - wanted_ms


def dead_letters(case: Case) -> Iterator[str]:
    yield from case.schedule.redriven


def bounded(case: Case) -> Iterator[str]:
    if case.evidence is not None:
        if case.evidence.is_endless:
            yield "it goes round in circles"
        yield from _messages(case, case.evidence)
        yield from _ran_once(case.evidence)
    for history in case.histories:
        for item, record in zip(history.items, history.records, strict=True):
            if not record.events and "so" not in item:
                yield f"{history.run}: record {record.sequence} says nothing"
        yield from _owners(history)


def _messages(case: Case, evidence: Evidence) -> Iterator[str]:
    for history in case.histories:
        sent = evidence.messages[history.run]
        events = len(history.events) + evidence.put_back
        most = MESSAGES_MIN + MESSAGES_PER_EVENT_MAX * events
        if sent > most:
            yield f"{history.run}: {sent} messages for {len(history.events)} events"


def _ran_once(evidence: Evidence) -> Iterator[str]:
    """No attempt is taken away from a worker that lives; among the faults some did not, and others
    die at the end of their function's time, or of what they run.
    """
    if evidence.scenario.kills:
        return
    settled_ms = evidence.faults_end_ms + WORKER.timeout_seconds * 1_000
    began: dict[tuple[str, int, int], int] = {}
    for one in evidence.ran:
        place = (one.run, one.entry, one.attempt)
        if one.is_poll:
            continue
        if settled_ms < began.setdefault(place, one.at_ms) < one.at_ms:
            yield f"{one.run}: attempt {one.entry}.{one.attempt} ran again at {one.at_ms}"


def _owners(history: History) -> Iterator[str]:
    """Who runs an attempt and is lost has so many successors. A function that was not known has as
    many again.
    """
    claims: Counter[str] = Counter()
    for event in history.events:
        frame = str(event.holdfast.get("frame", ""))
        if event.type.endswith("Scheduled") or event.type == "TaskUnknown":
            claims[frame] = 0
        elif event.type == "Claimed":
            claims[frame] += 1
            if claims[frame] > TAKEOVERS_MAX + 1:
                yield f"{history.run}: an attempt was claimed {claims[frame]} times"
