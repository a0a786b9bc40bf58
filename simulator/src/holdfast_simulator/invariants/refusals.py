"""I7, I9, I12: each refusal has a reason in the stored data.

The API reads the stored data at some time between a request and its answer. A valid reason for a
refusal stays valid, so it must exist at the time of the answer. A refusal without a reason would
lose the data of a caller, who does not try again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.runtime.effects import Item
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.answers import TokenClaims, says, ticket_of
from holdfast_simulator.evidence import Told
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.lines import HistoryLines
from holdfast_simulator.invariants.programs import program_of

Mail: TypeAlias = Mapping[tuple[str, str], Item]

#: The code for a name that belongs to an execution with another input.
_OTHER_INPUT: Final = "HF212"
#: Events that end an attempt, and events after which a line has left its attempt.
_ENDS_IT: Final = ("Succeeded", "Failed", "TimedOut", "StateEntered", "StateExited")
_LEAVES_IT: Final = frozenset({"UndoStarted", "DeadlinePassed"})


def of_mail(case: Case, mail: Mail) -> Iterator[str]:
    """Check the refusals of answers, heartbeats and events. An answer and a heartbeat may be
    refused after the end of their token or wait, and an answer also after another answer. An event,
    and a read, may never be refused.
    """
    reasons = _Reasons(case, mail)
    for told in case.schedule.told:
        if told.refused is None:
            continue
        how = f"was refused with {told.refused} at {told.at_ms}"
        match told.what:
            case "answer" | "heartbeat" if not reasons.has(told):
                yield f"the {told.what} to {ticket_of(told.request['token'])[:4]} {how}"
            case "event":
                yield f"event {told.request['id']} {how}"
            case "look":
                yield f"a look at {told.run} {how}"


def of_starts(case: Case) -> Iterator[str]:
    """Check the refusals of starts: the name has to belong to an execution with another input."""
    begun = {(history.tenant, history.run): history.state for history in case.histories}
    for one in case.schedule.started:
        if one.refused is None:
            continue
        place = (keys.name(one.tenant, one.workflow, str(one.name)), keys.ONLY)
        # TTL may have deleted the row since
        rows = (row for row in case.services.items(tables.MAIL) if (row["pk"], row["sk"]) == place)
        item = next(rows, None)
        owner = None if item is None else begun.get((one.tenant, str(item["run"])))
        is_taken = owner is not None and owner.input != one.data
        was_taken = is_taken and case.schedule.stored[place] <= one.at_ms
        if one.refused != _OTHER_INPUT or not was_taken:
            yield f"the start of {one.name} with {one.data!r:.90} was refused with {one.refused}"


def of_stops(case: Case) -> Iterator[str]:
    """Check the refusals of stops. Only an execution that was never accepted may refuse one. A stop
    after the end is accepted, and leaves no trace.
    """
    for told in case.schedule.told:
        if told.what == "stop" and told.refused is not None:
            yield f"the stop of {told.run} was refused with {told.refused} at {told.at_ms}"


class _Reasons:
    """The reasons for which an answer or a heartbeat may be refused."""

    def __init__(self, case: Case, mail: Mail) -> None:
        self._case, self._mail = case, mail
        self._attempts: dict[tuple[str, str], _Attempts | None] = {}

    def has(self, told: Told) -> bool:
        ticket = ticket_of(told.request["token"])
        is_token_over = ticket.expires_ms <= told.at_ms + self._case.schedule.swarm.skew_ms
        match told.refused:
            case "HF230":  # The token is not valid
                return is_token_over
            case "HF231":  # Another answer was given
                return self._is_stored(ticket, told.at_ms) and not self._says(ticket, told)
            # The wait is over; but a repetition of the accepted answer is accepted (R12)
            case "HF232":
                was_told = self._is_stored(ticket, told.asked_ms) and self._says(ticket, told)
                return self._is_wait_over(ticket, told.at_ms) and not was_told
            case "TaskTimedOut":  # A heartbeat is refused for both reasons
                return is_token_over or self._is_wait_over(ticket, told.at_ms)
            case _:
                return False

    def _is_stored(self, ticket: TokenClaims, at_ms: int) -> bool:
        stored_ms = self._case.schedule.stored.get(ticket.place)
        return stored_ms is not None and stored_ms <= at_ms

    def _says(self, ticket: TokenClaims, told: Told) -> bool:
        return says(self._mail[ticket.place], told.request)

    def _is_wait_over(self, ticket: TokenClaims, at_ms: int) -> bool:
        """Return True when the wait is over. Without a log it is not: the first tasks run before
        the log begins.
        """
        place = (ticket.tenant, ticket.run)
        if place not in self._attempts:
            self._attempts[place] = self._read(*place)
        attempts = self._attempts[place]
        return attempts is not None and attempts.are_over(ticket, at_ms)

    def _read(self, tenant: str, run: str) -> _Attempts | None:
        found = [one for one in self._case.histories if (one.tenant, one.run) == (tenant, run)]
        return _Attempts(self._case, found[0]) if found else None


class _Attempts(HistoryLines):
    """The attempts of all logs. `over_ms`: the time at which the log first had the end of an
    attempt, or of the wait for its job; a redrive may open it again, which is not tested here.
    `began_ms`: the time at which the log began.
    """

    def __init__(self, case: Case, history: StoredHistory) -> None:
        program = program_of(case, history)
        assert program is not None
        super().__init__(program)
        self.over_ms: dict[tuple[int, int], int] = {}
        self._open_in: dict[str, tuple[int, int]] = {}
        wrote_ms = {
            one.sequence: one.at_ms
            for one in case.schedule.wrote
            if (one.tenant, one.run) == (history.tenant, history.run)
        }
        self.began_ms = self._now_ms = wrote_ms[0]
        self._known: set[tuple[int, int]] = set()
        for record in history.records:
            self._now_ms = wrote_ms[record.sequence]
            for _ in self.read(record.events):
                pass  # Other invariants report errors in its lines
            for frame in [frame for frame in self._open_in if frame not in self.lines]:
                self._close_in(frame)

    def are_over(self, ticket: TokenClaims, at_ms: int) -> bool:
        """Return True when the log had its end by then. An attempt that the log never had was over
        from its first record on: its worker had lost the race for that record.
        """
        place = (ticket.entry, ticket.attempt)
        if place not in self._known:
            return self.began_ms <= at_ms
        return self.over_ms.get(place, at_ms + 1) <= at_ms

    def on_event(self, event: Event, frame: str) -> Iterator[str]:
        if event.type in TERMINAL_EVENTS:
            for each in list(self._open_in):
                self._close_in(each)
        elif event.type in _LEAVES_IT or event.type.endswith(_ENDS_IT):
            self._close_in(frame)
        elif event.type.endswith("Scheduled"):
            place = (event.holdfast["entry"], event.holdfast["attempt"])
            self._open_in[frame] = place
            self._known.add(place)
        yield from ()

    def _close_in(self, frame: str) -> None:
        place = self._open_in.pop(frame, None)
        if place is not None:
            self.over_ms.setdefault(place, self._now_ms)
