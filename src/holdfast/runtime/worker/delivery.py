"""What one delivery has come for, and whether another one may have been at it before (R8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.asl.program import Json
from holdfast.core import facts
from holdfast.core.state import ROOT, Attempt, Execution, Lease
from holdfast.core.waits import place_of
from holdfast.runtime import messages
from holdfast.runtime.storage.codec import Record
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.leases import ReceivedMessage, is_lost


@dataclass(frozen=True, slots=True)
class RequestedWork:
    """What is to be done, and who asked for it: it is for him, or for whoever has his message next.

    `ours`: the records that were written under the ids of our message, oldest first. `doubtful`:
    the one among them after which its writer may have died, before he did what it asks for.
    `whose`: by place, the newest record that asks for what is to be done there. `is_unread`: of
    ours nobody can say any more what they asked for.
    """

    ours: tuple[Record, ...]
    doubtful: Record | None
    whose: Mapping[int, Record]
    is_unread: bool

    def is_in_doubt(self, entry: int) -> bool:
        """Whoever had our message may have died before he looked after this place, and nobody else
        has since. What cannot be read any more may be so.
        """
        record = self.whose.get(entry)
        if record is None:
            return self.is_unread
        return self.doubtful is not None and record.sequence == self.doubtful.sequence

    def is_ours(self, record: Record) -> bool:
        return any(record.sequence == one.sequence for one in self.ours)


@dataclass
class Delivery:
    """Mutable; lives for one delivery.

    `is_recovering`: who had the message before may have died with it half done. Known from the
    message, or seen in the log. `is_sent_again`: it came early, and a copy of it is under way.
    """

    delivery: ReceivedMessage
    is_sent_again: bool = False
    is_recovering: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_recovering = (
            self.delivery.receive_count > 1
            or self.kind == messages.RECOVER
            or bool(messages.replaced_by(self.body))
        )

    @property
    def body(self) -> Any:
        return self.delivery.body

    @property
    def kind(self) -> str:
        return str(self.body["k"])

    @property
    def may_take_over(self) -> bool:
        """It goes on from where another has stopped. The other kinds bring a fact, no more."""
        return self.is_recovering or self.kind in {messages.START, messages.GO}

    @property
    def is_renewal(self) -> bool:
        """Nothing is asked for but a younger log."""
        return self.kind == messages.RECOVER and bool(self.body.get("held"))

    def is_wake_of(self, entry: int) -> bool:
        """The message says that the time has come for what waits there. If it has come by now, and
        had not when it was looked at first, the copy says so too: two would run one attempt.
        """
        is_wake = self.kind == messages.WAKE_TIMER and not self.is_sent_again
        return is_wake and bool(self.body["entry"] == entry)

    def is_wake_of_attempt(self, attempt: Attempt) -> bool:
        """A resume moves the due of an attempt: a wake for the old due is not the attempt's."""
        return self.is_wake_of(attempt.entry) and bool(self.body["due"] == attempt.due_ms)

    def is_handed(self, claim: Lease) -> bool:
        """Its holder had no time left for the attempt, and sent this message to have it run, or the
        one that this replaces.
        """
        return bool(claim.owner == self.body.get("from"))

    def has_lost(self, claim: Lease, now_ms: int) -> bool:
        """Its holder is lost, or whoever had the message by which the holder handed it on."""
        was_handed = self.is_recovering and self.is_handed(claim)
        return was_handed or is_lost(claim, self.delivery, now_ms)

    def started(self, data: Json) -> facts.Started:
        """What a start message says; `data` is its input."""
        body = self.body
        return facts.Started(
            run=body["run"],
            name=body.get("name"),
            workflow=body["workflow"],
            input=data,
            started_ms=body["t0"],
            origin=body.get("origin"),
            parent=body.get("parent"),
        )

    def notice_twin(self, log: Log) -> None:
        self.is_recovering |= self.has_twin(log)

    def has_twin(self, log: Log) -> bool:
        """A record under our message id by another owner: its holder shares our message, and may
        have deleted it.
        """
        return any(
            record.message == self.delivery.message_id
            and not record.nonce.startswith(f"{self.delivery.owner}.")
            for record in log.records
        )

    @property
    def shared_since_ms(self) -> int | None:
        """-> since when others may have had the message, or those that it replaces; None: nobody
        has. How old a dead letter was nobody says.
        """
        if messages.replaced_by(self.body):
            return 0
        return self.delivery.sent_ms if self.delivery.receive_count > 1 else None

    def has_message_of(self, claim: Lease | None) -> bool:
        """It was made under our message, which is kept for as long as it stands (R10)."""
        return claim is not None and claim.message == self.delivery.message_id

    def is_overtaken(self, log: Log) -> bool:
        """A later receipt of our message has claimed since. Unless its claim stands still, the
        message may be gone, and nobody would come after us; its holder saw what there was to take
        over. Nor is the message ours to delete, for he may have died with something half done.
        """
        own = (event.holdfast.get("claim") for one in self.own_records(log) for event in one.events)
        claims = (Lease(*claim) for claim in own if claim is not None)
        return any(
            self.has_message_of(claim) and claim.receive_count > self.delivery.receive_count
            for claim in claims
        )

    def places(self, log: Log) -> RequestedWork:
        """-> who asked last for what is to be done at each place, as far as records tell."""
        assert log.state is not None
        ours = self.own_records(log)
        numbers = {record.sequence for record in ours}
        whose: dict[int, Record] = {}
        for record in log.records:
            for event in record.events:
                if event.type == "Resumed":  # it asks anew for everything that waits
                    whose.update(dict.fromkeys(_all_places(log.state), record))
                entry = event.holdfast.get("entry")
                if entry is not None:
                    whose[entry] = record
                frame = log.state.frames.get(event.holdfast.get("frame", ROOT))
                if frame is not None and record.sequence in numbers:
                    # A heartbeat came, or a child ended: that begins a timer, or the next child.
                    place = place_of(frame.waiting)
                    if place is not None:
                        whose[place] = record
        return RequestedWork(
            tuple(ours), self._doubtful(log, ours), whose, self._is_unread(log, ours)
        )

    def _doubtful(self, log: Log, ours: list[Record]) -> Record | None:
        """What a record asks for is done before its writer commits again, so only the newest is in
        doubt; where two wrote in turn, what the first one owed still waits until it is overdue. Not
        if we wrote it, or if he may be at work still who has a later receipt.
        """
        is_sure = not ours or ours[-1].nonce.startswith(f"{self.delivery.owner}.")
        return None if is_sure or self.is_overtaken(log) else ours[-1]

    def _is_unread(self, log: Log, ours: list[Record]) -> bool:
        """Of the records of our message nobody can say what they asked for: they are in a snapshot,
        or so far back that they were not read. One that can be read says that what those before it
        asked for was done: that comes before the next commit.
        """
        if ours:
            return all(record.is_folded for record in ours)
        since_ms = self.shared_since_ms
        return since_ms is not None and log.may_reach_beyond(since_ms)

    def own_records(self, log: Log) -> list[Record]:
        """-> of the records at hand, those that were written under the ids of our message."""
        ours = {self.delivery.message_id, *messages.replaced_by(self.body)}
        return [record for record in log.records if record.message in ours]


def _all_places(state: Execution) -> Iterator[int]:
    for frame in state.frames.values():
        yield from (deadline.entry for deadline in frame.deadlines)
        place = place_of(frame.waiting)
        if place is not None:
            yield place
