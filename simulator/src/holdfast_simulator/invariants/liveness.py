"""I16 to I20: after the faults every execution continues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from holdfast.asl.resources import BULK_WORKFLOW
from holdfast.core.attempt_facts import WORKER_LOST
from holdfast.core.events import Event
from holdfast.core.run_ids import parent_run
from holdfast.limits import (
    CLOCK_ERROR_MS,
    POLL_SECONDS_MAX,
    SQS_DELAY_SECONDS_MAX,
    TAKEOVERS_IN_COMPANY_MAX,
    TAKEOVERS_MAX,
)
from holdfast.runtime import listing
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.dues import (
    LOST_MS,
    UNHIDDEN_MS,
    ExpectedMoment,
    all_dues,
    late_ms_max,
    skews,
    stuck_ms_max,
)
from holdfast_simulator.invocations import SHORT_MS

#: I18: by how much a wait of up to 15 minutes, and a longer one, may end late after the faults.
LATE_MS_MAX: Final = 60_000
LONG_LATE_MS_MAX: Final = 120_000
#: I20: the most messages by the number of an execution's events, however often hosts crash and
#: queues deliver again. A dead letter that is sent again counts as a cause. `SPARE` more are
#: allowed.
SPARE: Final = 40
MESSAGES_PER_EVENT_MAX: Final = 4
#: The sweeper checks an idle execution once an hour, and workers poll a job once a minute, at most.
_HOUR_MS: Final = 3_600_000
_QUESTIONS_PER_HOUR: Final = 3_600 // POLL_SECONDS_MAX


def open_runs(case: Case) -> set[str]:
    """Return executions that were accepted and have not ended."""
    accepted = {
        str(item["run"])
        for item in case.services.items(tables.MAIL)
        if str(item["pk"]).split("#")[1:2] == ["n"]
    }
    ended = {history.run for history in case.histories if history.state.is_ended}
    return (accepted | {history.run for history in case.histories}) - ended


def none_lost(case: Case) -> Iterator[str]:
    if case.evidence is not None:  # None in a world that is examined while it runs
        for run in sorted(open_runs(case)):
            yield f"{run} was accepted and has not ended"
        yield from case.evidence.unguarded
        yield from case.evidence.restless
        yield from case.evidence.diagnosed
    yield from _listed_as_running(case)


def _listed_as_running(case: Case) -> Iterator[str]:
    ended = {history.run for history in case.histories if history.state.is_ended}
    for item in case.services.items(tables.EXECUTIONS):
        if listing.is_open_entry(item) and listing.read_entry(item).run in ended:
            yield f"{item['pk']!r}: ended, and still listed as RUNNING"


def none_stuck(case: Case) -> Iterator[str]:
    """Check that an execution which only needs time to pass moves within the stated time after the
    faults.
    """
    for run, since_ms, at_ms in case.schedule.stuck:
        yield f"{run} should have moved at {since_ms}, and had not at {at_ms}"
    yield from case.schedule.unheard
    for history, due, late_ms in _late(case):
        most_ms = late_ms_max(case.schedule, history, due.set_ms)
        if late_ms > (LOST_MS if due.is_parked else most_ms):
            yield f"{history.run}: a {due.what} due at {due.due_ms} came {late_ms} ms late"
    begun = _begun_ms(case.schedule)
    for history in case.histories:
        yield from _late_mail(case.schedule, history, begun.get((history.tenant, history.run), 0))
    # A start whose first task crashes its workers is tried again without end
    if not case.schedule.scenario.kills:
        yield from _late_beginnings(case)


def _late_beginnings(case: Case) -> Iterator[str]:
    """Yield executions whose start was sent and whose log began too late. A child that has not
    begun counts until its parent has ended: after that no result of it is used, and the sweeper has
    no row that leads to it.
    """
    evidence, begun, ended = case.schedule, _begun_ms(case.schedule), dict[tuple[str, str], int]()
    for history in case.histories:
        if history.state.is_ended:
            ended[history.tenant, history.run] = history.records[-1].at_ms
    for (kind, *whose), sent_ms in evidence.dispatches.first_ms.items():
        tenant, run = map(str, whose[:2])
        needed_until_ms = ended.get((tenant, parent_run(run) or ""), evidence.ended_ms)
        begun_ms = begun.get((tenant, run), needed_until_ms)
        late_ms = begun_ms - max(sent_ms, evidence.faults_end_ms)
        if kind == "start" and late_ms > stuck_ms_max(evidence, run):
            yield f"{run}: its start was sent at {sent_ms}, and its log begins {late_ms} ms late"


def _begun_ms(evidence: Evidence) -> dict[tuple[str, str], int]:
    """Return the true time of the first record of each execution."""
    return {(one.tenant, one.run): one.at_ms for one in evidence.wrote if one.sequence == 0}


def _late_mail(evidence: Evidence, history: StoredHistory, begun_ms: int) -> Iterator[str]:
    """Yield inbox messages for a wait that were applied too late, including the start of an
    activity's task, from which its time counts. The waits of a start count from the first record,
    as in `_late`.
    """
    skew_of, most_ms = skews(evidence), stuck_ms_max(evidence, history.run)
    waits: dict[str, tuple[Event, int]] = {}
    for record in history.records:
        skew_ms = skew_of.get((history.tenant, history.run, record.sequence), 0)
        for event in record.events:
            frame = str(event.holdfast.get("frame", ""))
            if event.type.endswith("Scheduled") or event.type == "TaskSubmitted":
                asked = waits[frame][0] if event.type == "TaskSubmitted" else event
                waits[frame] = (asked, event.at_ms - skew_ms)
            elif frame in waits and event.type.endswith(_APPLIES_MAIL):
                asked, since_ms = waits[frame]
                if event.type != "ActivityStarted":
                    del waits[frame]
                place = _mail_of(history, asked, event)
                stored_ms = evidence.stored.get(place)
                if stored_ms is not None:
                    wanted_ms = max(stored_ms, since_ms, begun_ms, evidence.faults_end_ms)
                    late_ms = event.at_ms - skew_ms - wanted_ms
                    if late_ms > most_ms:
                        yield f"{history.run}: {place[1]} was applied {late_ms} ms late"


_APPLIES_MAIL: Final = ("Succeeded", "Failed", "TimedOut", "ActivityStarted")


def _mail_of(history: StoredHistory, asked: Event, event: Event) -> tuple[str, str]:
    """Return the key of the stored result of the task that `asked` scheduled and `event` ends."""
    if "event" in event.holdfast:
        arguments = asked.details["parameters"]
        partition = keys.event(history.tenant, arguments["event"], arguments["key"])
        return partition, keys.stored_event(event.holdfast["event"])
    key = keys.taken if event.type == "ActivityStarted" else keys.answer
    ticket = (asked.holdfast["entry"], asked.holdfast["attempt"])
    return keys.inbox(history.tenant, history.run), key(*ticket)


def in_time(case: Case) -> Iterator[str]:
    """Check waits that began after the faults. Decisions of a start have the time of its caller. An
    old worker lives for the rest of its invocation. Where tasks crash their workers, the faults
    never end.
    """
    for history, due, late_ms in () if case.schedule.scenario.kills else _late(case):
        began_ms = due.set_ms - due.skew_ms - CLOCK_ERROR_MS
        if due.what == "begin":
            began_ms -= SHORT_MS  # The worker that decided may have had hardly any time left
        is_undisturbed = began_ms > case.schedule.faults_end_ms and not due.is_parked
        latest_ms = LONG_LATE_MS_MAX if due.is_long else LATE_MS_MAX
        if is_undisturbed and late_ms > latest_ms:
            yield f"{history.run}: a {due.what} due at {due.due_ms} came {late_ms} ms late"


def _late(case: Case) -> Iterator[tuple[StoredHistory, ExpectedMoment, int]]:
    """Yield the delay of each wait's end, counted from the end of the faults if it was due before.
    Several workers in turn may run a task.

    The events of a start have the time of its message. A child whose parent's worker was killed
    before it sent the message, and whose parent has ended since, begins a quarter of an hour later
    (R18), so its waits count from its first record.
    """
    evidence = case.schedule
    begun = _begun_ms(evidence)
    for history, due in all_dues(case):
        # A wait that another event ends long after its due time was late, too.
        ended_ms = due.over_ms if due.came_ms is None else due.came_ms
        if ended_ms is not None and due.what != "attempt":
            set_ms = due.set_ms - due.skew_ms
            begun_ms = begun.get((history.tenant, history.run), 0)
            wanted_ms = max(due.true_ms, set_ms, begun_ms, evidence.faults_end_ms)
            yield history, due, ended_ms - wanted_ms


def dead_letters(case: Case) -> Iterator[str]:
    """Check that a dead letter which is sent again at the end changes no execution that has ended.
    An execution that never began, because its start was lost, has not ended: its dead start begins
    it.
    """
    yield from case.schedule.redriven


def bounded(case: Case) -> Iterator[str]:
    if case.evidence is not None:
        if case.evidence.is_endless:
            yield "it goes round in circles"
        for history in case.histories:
            yield from _amounts(history, case.evidence)
            yield from _in_company(history, case.evidence)
        yield from _ran_once(case, case.evidence)
    for history in case.histories:
        for item, record in zip(history.items, history.records, strict=True):
            if not record.events and "so" not in item:
                yield f"{history.run}: record {record.sequence} says nothing"
        yield from _owners(history)


def _amounts(history: StoredHistory, evidence: Evidence) -> Iterator[str]:
    """Check the numbers of messages, records and rows against the events that caused them.

    Heartbeats and polls count as causes. Allowed are a row for each hour; for each row its message;
    for each dead letter the message that replaces it; for each delivery of a parent the messages
    that start or stop a child, once for recovery and once after the write; and for each attempt
    that failed because it lost its workers, a record for each of these workers.
    """
    began_ms = history.records[0].at_ms
    sent_ms = evidence.dispatches.first_ms.get(("start", history.tenant, history.run), began_ms)
    hours = (history.records[-1].at_ms - min(began_ms, sent_ms)) // _HOUR_MS + 1
    asking = {event.holdfast.get("frame") for event in history.events if event.type == "Polled"}
    seen = ("HeartbeatSeen", "ConditionUnmet")
    events = sum(bool(event.id) or event.type in seen for event in history.events)
    events += len(asking) * _QUESTIONS_PER_HOUR * hours
    happened = events + evidence.put_back
    lost = sum(event.details.get("error") == WORKER_LOST for event in history.events)
    rows = len(evidence.dispatches.rows[history.run])
    parent = history.state.parent
    # Each worker that fails within a page of a bulk operation leaves a row.
    pages = evidence.deliveries[history.run] if history.state.workflow == BULK_WORKFLOW else 0
    passed_on = 0 if parent is None else 2 * evidence.deliveries[parent["run"]]
    bounds = {
        "messages": (
            evidence.messages[history.run],
            MESSAGES_PER_EVENT_MAX * happened + rows + evidence.letters[history.run] + passed_on,
        ),
        "records": (len(history.records), events + lost * (TAKEOVERS_MAX + 1)),
        "rows for the sweeper": (rows, happened + hours + pages),
    }
    for what, (count, most) in bounds.items():
        if count > SPARE + most:
            yield f"{history.run}: {count} {what} for {events} events in {hours} hours"


def _ran_once(case: Case, evidence: Evidence) -> Iterator[str]:
    """Check that no attempt is taken away from a running worker.

    Among the faults some workers did not run, and others crash at the end of their function's time,
    or because of their task. A message from that time that is delivered once more requests its
    timers again: two wakes for everything scheduled until then.
    """
    if evidence.scenario.kills:
        return
    began: dict[tuple[str, int, int], int] = {}
    for one in evidence.ran:
        place = (one.run, one.entry, one.attempt)
        if one.is_poll or one.at_ms == began.setdefault(place, one.at_ms):
            continue
        # A late message may arrive just after the sweeper has sent an equal one.
        settled_ms = max(UNHIDDEN_MS, stuck_ms_max(evidence, one.run))
        if _woken_ms(case, place) > evidence.faults_end_ms + settled_ms:
            yield f"{one.run}: attempt {one.entry}.{one.attempt} ran again at {one.at_ms}"


def _in_company(history: StoredHistory, evidence: Evidence) -> Iterator[str]:
    """Check that a task that crashed its workers is taken over by a worker without other messages.

    This applies to attempts scheduled long after the faults, and lost for certain when the next
    worker came: a lease may lapse while a worker checks, and it checks once. An attempt that was
    handed over is not lost. Until the log is opened the start message guards an execution, in any
    batch.
    """
    settled_ms = evidence.faults_end_ms + UNHIDDEN_MS
    claims: dict[str, tuple[str, int, int]] = {}
    is_opened = False
    for record, state in zip(history.records, history.states, strict=True):
        for event in record.events:
            own, frame = event.holdfast, str(event.holdfast.get("frame", ""))
            if event.type.endswith(_BEGINS_ANEW):
                claims.pop(frame, None)
                if event.at_ms > settled_ms:
                    _, message, _, until_ms = own.get("claim", ("", "", 0, 0))
                    claims[frame] = (message, until_ms, 0)
            elif event.type == "Claimed" and frame in claims:
                owner, message, _, until_ms = own["claim"]
                before, lapsed_ms, takeovers = claims[frame]
                claims[frame] = (message, until_ms, own["takeovers"])
                is_sure = message == before or event.at_ms > lapsed_ms + _WHILE_HE_LOOKS_MS
                is_marked = own["takeovers"] > max(takeovers, TAKEOVERS_IN_COMPANY_MAX)
                if is_marked and is_sure and is_opened and owner in evidence.in_company:
                    yield f"{history.run}: what was lost {own['takeovers']} times has company"
        is_opened = state.is_opened


_WHILE_HE_LOOKS_MS: Final = 60_000
#: Events after which an attempt begins: also those of a distributed Map, and of a function that was
#: unknown before.
_BEGINS_ANEW: Final = ("Scheduled", "ItemsAsked", "ResultsAsked", "TaskUnknown", "ConditionUnmet")


def _woken_ms(case: Case, place: tuple[str, int, int]) -> int:
    """Return the earliest time at which its wake was sent; -1 for a record that was never
    written.
    """
    run, *ticket = place
    for history in case.histories:
        for event in history.events if history.run == run else ():
            own = event.holdfast
            is_attempt = event.type.endswith(("Scheduled", "ConditionUnmet"))
            if is_attempt and [own["entry"], own["attempt"]] == ticket:
                due_ms: int = own.get("due", event.at_ms)
                return max(event.at_ms, due_ms - SQS_DELAY_SECONDS_MAX * 1_000)
    return -1


def _owners(history: StoredHistory) -> Iterator[str]:
    """Check the number of owners. An attempt that loses its owner has a bounded number of
    successors. A function that was unknown has as many again. An owner that extends its lease is
    no successor.
    """
    claims: Counter[str] = Counter()
    owners: dict[str, str] = {}
    for event in history.events:
        frame = str(event.holdfast.get("frame", ""))
        if event.type.endswith(_BEGINS_ANEW):
            claims[frame] = 0
        elif event.type == "Claimed":
            owner = event.holdfast["claim"][0]
            claims[frame] += owners.get(frame) != owner
            owners[frame] = owner
            if claims[frame] > TAKEOVERS_MAX + 1:
                yield f"{history.run}: an attempt was claimed {claims[frame]} times"
