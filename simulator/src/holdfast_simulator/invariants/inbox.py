"""I7: answers and events, from their sender to the wait that uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import Json
from holdfast.core.events import Event
from holdfast.core.state import Execution
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import child_workflows
from holdfast.runtime.effects import Item
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.answers import says, ticket_of
from holdfast_simulator.evidence import Told
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import refusals
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.dues import all_dues, stuck_ms_max
from holdfast_simulator.invariants.event_claims import is_too_old, usable_since_ms
from holdfast_simulator.invariants.refusals import Mail

_TOO_LARGE: Final = error_names.DATA_LIMIT_EXCEEDED


def used_once(case: Case) -> Iterator[str]:
    """Check answers and events. Each answer is accepted once and used by its own wait. Each event
    is kept, and used at most once, by one execution. A refused one leaves nothing, and its refusal
    must be right.
    """
    mail = {(str(item["pk"]), str(item["sk"])): item for item in case.services.items(tables.MAIL)}
    users: dict[tuple[str, str], str] = {}
    for history in case.histories:
        waits = _Waits(case, mail, history)
        yield from waits.read()
        yield from _given_up(mail, history)
        for place in waits.used_itself:
            user = users.setdefault(place, history.run)
            if user != history.run:
                yield f"{history.run} uses the event {place[1]}, which {user} has used"
    if case.evidence is None:
        return
    for told in case.schedule.told:
        match told.what:
            case "answer" if told.refused is None:
                yield from _accepted(case, mail, told)
            case "event" if told.refused is None:
                yield from _kept(case, mail, told)
            case "contradiction" | "forgery" if told.refused is None:
                yield f"a {told.what} was accepted: {ticket_of(told.request['token'])}"
    yield from _unexplained(case, mail)
    yield from _given_up_alive(case)
    yield from refusals.of_mail(case, mail)


# -- answers ---------------------------------------------------------------------------------------


def _accepted(case: Case, mail: Mail, told: Told) -> Iterator[str]:
    ticket = ticket_of(told.request["token"])
    item = mail.get(ticket.place)
    if item is None or not says(item, told.request):
        yield f"the answer to {ticket[:4]} was accepted, and is not stored: {told.request!r:.90}"
    if ticket.tenant != told.tenant:
        yield f"{told.tenant} was let answer {ticket[:4]}"
    if told.asked_ms - case.schedule.swarm.skew_ms > ticket.expires_ms:
        yield f"the token of {ticket[:4]} was accepted at {told.asked_ms}, past {ticket.expires_ms}"


def _unexplained(case: Case, mail: Mail) -> Iterator[str]:
    """Yield applied answers and events that were never sent."""
    given: dict[tuple[str, str], list[Any]] = {}
    for told in case.schedule.told:
        if told.what == "answer":  # A refused one may have been stored by an earlier try
            given.setdefault(ticket_of(told.request["token"]).place, []).append(told.request)
    ends = {}
    for history in case.histories:
        parent = history.state.parent
        if parent is not None and "lane" not in parent:
            sk = keys.answer(parent["entry"], parent["attempt"])
            ends[keys.inbox(history.tenant, parent["run"]), sk] = history
    for place, history in ends.items():
        if history.state.is_ended and place not in mail:
            yield f"{history.run} has ended, and its caller was not told"
    brought = {one.id for one in case.schedule.scenario.events}
    for (pk, sk), item in mail.items():
        kind = pk.split("#")[1:2]
        if kind == ["in"] and sk.startswith("t#"):
            child = ends.get((pk, sk))
            is_given = any(says(item, request) for request in given.get((pk, sk), ()))
            if not is_given and (child is None or not _tells(item, child)):
                yield f"{pk} {sk}: an answer without a caller: {item}"
        is_event = kind == ["ev"] and sk.startswith(keys.EVENT_PREFIX)
        if is_event and sk.removeprefix(keys.EVENT_PREFIX) not in brought:
            yield f"{pk} {sk}: an event without a caller"


def _tells(item: Item, child: StoredHistory) -> bool:
    state = child.state
    if not state.is_ended:
        return False
    if state.status == "SUCCEEDED":
        return says(item, {"output": state.output})
    return says(item, child_workflows.error_of(state))


def _given_up_alive(case: Case) -> Iterator[str]:
    """Check that an accepted heartbeat keeps its wait open for the stated time."""
    beats: dict[tuple[str, int, int], list[Told]] = {}
    for told in case.schedule.told:
        if told.what == "heartbeat" and told.refused is None:
            _, run, entry, attempt, _ = ticket_of(told.request["token"])
            beats.setdefault((run, entry, attempt), []).append(told)
    for history, due in all_dues(case) if beats else ():
        if due.what == "time-out" and due.came_ms is not None and due.beat_seconds is not None:
            for told in beats.get((history.run, *due.ticket), ()):
                until_ms = told.asked_ms + due.beat_seconds * 1_000 - CLOCK_ERROR_MS
                if told.at_ms < due.came_ms < until_ms:
                    yield (
                        f"{history.run}: {due.ticket} timed out at {due.came_ms}, and its heartbeat"
                        f" of {told.asked_ms} was accepted"
                    )


def _given_up(mail: Mail, history: StoredHistory) -> Iterator[str]:
    """Check that no attempt is told that nothing waits for it, and its result counts all the
    same.
    """
    tickets: dict[str, tuple[int, int]] = {}
    for event in history.events:
        own, frame = event.holdfast, event.holdfast.get("frame", "")
        if event.type == "TaskScheduled":
            tickets[frame] = own["entry"], own["attempt"]
        if event.type == "TaskSucceeded" and frame in tickets:
            entry, attempt = tickets[frame]
            item = mail.get((keys.inbox(history.tenant, history.run), keys.heartbeat(entry)), {})
            if int(item.get("over", 0)) >= attempt:
                yield f"{history.run}: {entry}.{attempt} has succeeded, and was marked as over"


# -- events ----------------------------------------------------------------------------------------


def _kept(case: Case, mail: Mail, told: Told) -> Iterator[str]:
    """Check that the event is stored and, if no execution waited for it by then, listed among the
    waiting events.
    """
    detail = told.request
    partition = keys.event(told.tenant, detail["name"], detail["key"])
    item = mail.get((partition, keys.stored_event(detail["id"])))
    said = detail if "error" in detail else {"output": detail["data"]}
    if item is None or not says(item, said):
        yield f"event {detail['id']} was accepted, and is not stored"
        return
    is_listed = any(
        pk == keys.early_events(told.tenant) and sk.endswith(f"#{detail['id']}") for pk, sk in mail
    )
    was_waited_for = any(
        pk == partition and sk.startswith(keys.REGISTRATION_PREFIX) and at_ms <= told.at_ms
        for (pk, sk), at_ms in case.schedule.stored.items()
    )
    if not is_listed and not was_waited_for:
        yield f"event {detail['id']} was accepted: no execution waits for it, and no list has it"


@dataclass
class _Wait:
    """`key`: the key of the event. `is_over`: the call that must come before the answer has
    ended.
    """

    kind: str
    entry: int
    attempt: int
    partition: str = ""
    is_called: bool = False
    since_ms: int = 0
    arguments: Json = None


class _Waits:
    """The waits of one history. The cause of an end has to be in the inbox, and a message that
    arrives in time ends the wait.
    """

    def __init__(self, case: Case, mail: Mail, history: StoredHistory) -> None:
        self.case, self.mail, self.history = case, mail, history
        self.waits: dict[str, _Wait] = {}
        self.used: set[str] = set()
        self.started_ms = 0
        #: Without those in the part of the history that a fork has copied.
        self.used_itself: list[tuple[str, str]] = []

    def read(self) -> Iterator[str]:
        before: Execution | None = None
        for record, state in zip(self.history.records, self.history.states, strict=True):
            self.started_ms = state.started_ms
            for event, is_copied in self.history.marked(record):
                if not is_copied:
                    self.used_itself += self._place_of_event(event)
                for text in self._at(event, before):
                    if not is_copied:
                        yield f"{self.history.run}: {text}"
            before = state

    def _at(self, event: Event, before: Execution | None) -> Iterator[str]:
        """`before`: the state that the event's record follows."""
        frame = event.holdfast.get("frame", "")
        match event.type:
            case "TaskScheduled":
                self.waits[frame] = self._wait(event)
            case "TaskSubmitted":
                self.waits[frame].is_called = True
                self.waits[frame].since_ms = event.at_ms
            case "TaskSucceeded" | "TaskFailed" | "TaskTimedOut" if frame in self.waits:
                yield from self._ended(self.waits.pop(frame), event)
            case "TaskStateAborted":
                self.waits.pop(frame, None)
            case "ExecutionTimedOut" | "Stopping" if _is_out_of_time(event):
                for wait in self.waits.values():
                    if before is not None and before.frame_of(wait.entry) is not None:
                        yield from self._unread(wait, event)

    def _wait(self, event: Event) -> _Wait:
        own, resource = event.holdfast, str(event.details["resource"])
        wait = _Wait("", own["entry"], own["attempt"], since_ms=event.at_ms)
        if event.details["resourceType"] != "holdfast":
            wait.kind = "called" if resource.endswith(".waitForTaskToken") else ""
        elif resource.startswith("event."):
            wait.kind = "event"
            arguments: Any = event.details["parameters"]
            name, key = str(arguments.get("event", "")), str(arguments.get("key", ""))
            wait.arguments = arguments
            wait.partition = keys.event(self.history.tenant, name, key)
        elif resource.startswith(("workflow:", "container:")):
            wait.kind = "called"
        elif resource.endswith(".waitForTaskToken"):
            wait.kind, wait.is_called = "answer", True
        return wait

    def _ended(self, wait: _Wait, event: Event) -> Iterator[str]:
        told: Mapping[str, Json] = event.details
        if wait.kind == "event":
            yield from self._event_wait(wait, event)
        elif wait.kind and wait.is_called and told.get("error") != _TOO_LARGE:
            place = self._place_of_answer(wait)
            item = self.mail.get(place)
            where = f"the wait {place[1]}"
            if item is not None and says(item, told):
                yield from self._in_time(place, wait, event)
                return
            if event.type == "TaskTimedOut":
                yield from self._unread(wait, event)
            elif item is None:
                yield f"{where} ends by {event.type}, and no answer is stored"
            else:
                yield f"{where} ends with {dict(told)!r:.90}, and the answer is {item!r:.200}"

    def _place_of_event(self, event: Event) -> list[tuple[str, str]]:
        """Return the place of the stored event that this event of the history uses, if any."""
        wait = self.waits.get(event.holdfast.get("frame", ""))
        if wait is None or "event" not in event.holdfast:
            return []
        return [(wait.partition, keys.stored_event(event.holdfast["event"]))]

    def _event_wait(self, wait: _Wait, event: Event) -> Iterator[str]:
        where = f"the wait {wait.entry} for an event"
        if event.type == "TaskTimedOut":
            yield from self._unread(wait, event)
        elif event.type == "TaskSucceeded" or "event" in event.holdfast:
            sk = keys.stored_event(event.holdfast["event"])
            item = self.mail.get((wait.partition, sk))
            if sk in self.used:
                yield f"{where} uses {sk} again"
            self.used.add(sk)
            if item is None:
                yield f"{where} uses {sk}, which is not for it"
            elif not says(item, event.details):
                yield f"{where} has got {event.details!r:.90}, and {sk} says {item!r:.90}"
            elif int(item["expires"]) <= event.at_ms:
                yield f"{where} uses {sk}, which is over"
            elif is_too_old(wait.arguments, self.started_ms, item):
                yield f"{where} uses {sk}, which is older than its execution"
            yield from self._in_time((wait.partition, sk), wait, event)

    def _in_time(self, place: tuple[str, str], wait: _Wait, event: Event) -> Iterator[str]:
        """Check that after the last fault a message is used within the stated time. If its wake was
        lost it may wait for the sweeper's check.
        """
        evidence = self.case.evidence
        if evidence is None:
            return
        began_ms = max(wait.since_ms, self.history.records[0].at_ms)
        there_ms = max(evidence.stored.get(place, 0), began_ms, evidence.faults_end_ms)
        latest_ms = there_ms + stuck_ms_max(evidence, self.history.run)
        if event.at_ms > latest_ms + 2 * evidence.swarm.skew_ms:
            yield f"{place[1]} is there since {there_ms}, and is used at {event.at_ms}"

    def _place_of_answer(self, wait: _Wait) -> tuple[str, str]:
        inbox = keys.inbox(self.history.tenant, self.history.run)
        return inbox, keys.answer(wait.entry, wait.attempt)

    def _unread(self, wait: _Wait, event: Event) -> Iterator[str]:
        """Check a time-out of the wait or of the whole execution: no message that ends the wait may
        exist.
        """
        if wait.kind == "event":
            for pk, sk in self.mail:
                is_event = pk == wait.partition and sk.startswith(keys.EVENT_PREFIX)
                if is_event and sk not in self.used and self._may_use(wait, (pk, sk), event.at_ms):
                    yield from self._too_late(
                        (pk, sk), event, f"the wait {wait.entry} for an event"
                    )
        elif wait.kind and wait.is_called:
            place = self._place_of_answer(wait)
            yield from self._too_late(place, event, f"the wait {place[1]}")

    def _may_use(self, wait: _Wait, place: tuple[str, str], at_ms: int) -> bool:
        """Return True when the wait takes events of that age, and no execution had the event, or
        one that ended long enough before without it.
        """
        evidence, run = self.case.evidence, self.history.run
        if evidence is None or is_too_old(wait.arguments, self.started_ms, self.mail[place]):
            return False
        since_ms = usable_since_ms(evidence, self.history.tenant, run, self.mail[place])
        return since_ms is not None and since_ms + stuck_ms_max(evidence, run) < at_ms

    def _too_late(self, place: tuple[str, str], event: Event, where: str) -> Iterator[str]:
        """R14: the worker reads a message that is stored when it reads its clock before it decides
        on a time-out.
        """
        if self.case.evidence is None or place not in self.mail:
            return
        stored_ms = self.case.evidence.stored[place]
        is_valid = int(self.mail[place].get("expires", event.at_ms + 1)) > event.at_ms
        if is_valid and stored_ms < event.at_ms - self.case.evidence.swarm.skew_ms:
            yield f"{where} has timed out at {event.at_ms}, {place[1]} is there since {stored_ms}"


def _is_out_of_time(event: Event) -> bool:
    """Return True when the whole execution timed out, not when it was stopped."""
    return event.type != "Stopping" or bool(event.holdfast["stopping"]["status"] == "TIMED_OUT")
