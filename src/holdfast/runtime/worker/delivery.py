"""One delivery of a message: its purpose, and the work that earlier deliveries may have left (R8).

SQS delivers a message at least once. The same message may come twice at the same time, or again
after its worker crashed. Each delivery therefore has to answer two questions.

**Is this delivery a recovery?** It is if the message says so (`recover`), if SQS reports a receive
count above one, if the log has a record that another worker wrote under this message, or if it is a
start message of an execution that has ended before it was opened. A recovery carries pending
commands out again, because the earlier worker may have crashed after its commit and before its
effects.

**Which commands are in doubt?** A worker carries out the commands of a record before it commits the
next one. So only the newest record of the message is in doubt, and only the entries that it opened:

    message M, delivery 1:  commit 4 ─ effects of 4 ─ commit 5 ─ crash
    message M, delivery 2:  load 0…5 ─ record 5 is by M: carry out what record 5 asks for
                                     ─ record 4: was carried out before 5 was committed

If every recovery repeated everything, each crash would multiply the messages. `RequestedWork` keeps
for each entry the record that asks for it, and says whether this delivery has to carry it out.

Example: at 10:00:00 a worker commits record 5, which sets a timer, and crashes. At 10:02:00 SQS
makes the message visible again. The second delivery reads record 5, finds that its own message
wrote it, and starts the timer a second time. A timer that was started twice takes effect once,
because the state applies a due time only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from holdfast.asl.program import Json
from holdfast.core import facts
from holdfast.core.state import PRIORITY_DEFAULT, ROOT, Attempt, Execution, Lease
from holdfast.core.waits import place_of
from holdfast.lazy_dataclass import dataclass
from holdfast.runtime import messages
from holdfast.runtime.storage.codec import Record
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.leases import ReceivedMessage, is_lost


@dataclass(frozen=True, slots=True)
class RequestedWork:
    """The pending work of an execution, and the record that requested each part of it.

    The worker that wrote the record carries the work out, or else the next delivery of its message.

    * `ours`: the records that were written under the ids of this message, oldest first.
    * `doubtful`: the record after which its writer may have crashed before it carried out the
      commands.
    * `whose`: for each entry number, the newest record that requests work there.
    * `is_unread`: the records of this message can no longer be read.
    """

    ours: tuple[Record, ...]
    doubtful: Record | None
    whose: Mapping[int, Record]
    is_unread: bool

    def is_in_doubt(self, entry: int) -> bool:
        """Return True when the work of the entry may never have been done: an earlier worker of
        this message may have crashed before it, and no other worker has done it since. Also True
        when the records cannot be read.
        """
        record = self.whose.get(entry)
        if record is None:
            return self.is_unread
        return self.doubtful is not None and record.sequence == self.doubtful.sequence

    def is_ours(self, record: Record) -> bool:
        return any(record.sequence == one.sequence for one in self.ours)


@dataclass
class Delivery:
    """One delivery of a message. Mutable.

    `is_recovering`: an earlier worker of the message may have crashed halfway; the message says so,
    or the log shows it. `is_sent_again`: the message came too early, and this delivery has sent a
    copy.
    """

    received: ReceivedMessage
    is_sent_again: bool = False
    is_recovering: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_recovering = (
            self.received.receive_count > 1
            or self.kind == messages.RECOVER
            or bool(messages.replaced_by(self.body))
        )

    @property
    def body(self) -> Any:
        return self.received.body

    @property
    def kind(self) -> str:
        return str(self.body["k"])

    @property
    def may_take_over(self) -> bool:
        """Return True when this delivery may continue the work of a crashed worker. Messages of
        other kinds only bring a fact.
        """
        return self.is_recovering or self.kind in {messages.START, messages.GO}

    @property
    def is_renewal(self) -> bool:
        """Return True when the message only requests a new snapshot, before TTL deletes records
        that a load needs.
        """
        return self.kind == messages.RECOVER and bool(self.body.get("held"))

    @property
    def needs_success(self) -> bool:
        """Return False when the message changes nothing once its execution has succeeded.

        The last hundred children of a Map send as many wakes. Most of them come after the Map's
        end, and each would load the ends of all children.
        """
        is_wake = self.kind in {messages.WAKE_TIMER, messages.WAKE_MAIL}
        return self.is_recovering or not is_wake or "event" in self.body

    def is_wake_of(self, entry: int) -> bool:
        """Return True when the message is the timer wake of this entry.

        A wake that came too early does not count, because a copy of it will arrive. If both
        counted, two workers would run one attempt.
        """
        is_wake = self.kind == messages.WAKE_TIMER and not self.is_sent_again
        return is_wake and bool(self.body["entry"] == entry)

    def is_wake_of_attempt(self, attempt: Attempt) -> bool:
        """Return True when the message is the wake of this attempt. After a resume the attempt has
        a new due time, so a wake for the old due time does not count.
        """
        return self.is_wake_of(attempt.entry) and bool(self.body["due"] == attempt.due_ms)

    def is_handed(self, claim: Lease) -> bool:
        """Return True when the lease's owner had no time left for the attempt and handed it on with
        this message, or with the message that this one replaces.
        """
        return bool(claim.owner == self.body.get("from"))

    def has_lost(self, claim: Lease, now_ms: int) -> bool:
        """Return True when the owner of the lease has crashed or lost the lease, or when the worker
        to which it handed the attempt on has.
        """
        was_handed = self.is_recovering and self.is_handed(claim)
        return was_handed or is_lost(claim, self.received, now_ms)

    def started(self, data: Json) -> facts.Started:
        """Return the fact of a start message; `data` is its input."""
        body = self.body
        return facts.Started(
            run=body["run"],
            name=body.get("name"),
            workflow=body["workflow"],
            input=data,
            started_ms=body["t0"],
            origin=body.get("origin"),
            parent=body.get("parent"),
            priority=body.get("priority", PRIORITY_DEFAULT),
        )

    def notice_twin(self, log: Log) -> None:
        self.is_recovering |= self.has_twin(log) or self._is_start_of_ended(log)

    def _is_start_of_ended(self, log: Log) -> bool:
        """Return True for a start message of an execution that ended before it was opened.

        The parent of a Map's child sends the start again until the child has reported its end. The
        worker that wrote the end may have crashed before the report, and the queue may have lost
        its message. No watchdog row leads to the child, so only this message does.
        """
        state = log.state
        is_start = self.kind == messages.START
        return is_start and state is not None and state.is_ended and not state.is_opened

    def has_twin(self, log: Log) -> bool:
        """Return True when another worker has written a record under this message's id. That worker
        has received the same message, and may have deleted it.
        """
        own = f"{self.received.owner}."
        records = log.records.of_messages((self.received.message_id,))
        return any(not record.nonce.startswith(own) for record in records)

    @property
    def shared_since_ms(self) -> int | None:
        """Return the time since which other workers may have received this message, or one that it
        replaces; None if no other worker has. For a dead letter, whose age is unknown, the result
        is 0.
        """
        if messages.replaced_by(self.body):
            return 0
        return self.received.sent_ms if self.received.receive_count > 1 else None

    def has_message_of(self, claim: Lease | None) -> bool:
        """Return True when the lease was taken under this message. The message must then not be
        deleted before the lease ends (R10).
        """
        return claim is not None and claim.message == self.received.message_id

    def is_overtaken(self, log: Log) -> bool:
        """Return True when a later delivery of this message has taken a lease.

        Its worker has seen all attempts that could be taken over. This worker must not delete the
        message: the other worker may have crashed halfway, and no further delivery would recover
        its attempts. If that lease has ended, the message may already be deleted.
        """
        own = (event.holdfast.get("claim") for one in self.own_records(log) for event in one.events)
        claims = (Lease(*claim) for claim in own if claim is not None)
        return any(
            self.has_message_of(claim) and claim.receive_count > self.received.receive_count
            for claim in claims
        )

    def places(self, log: Log) -> RequestedWork:
        """Return, for each entry number, the newest of the records that requests work there."""
        assert log.state is not None
        ours = self.own_records(log)
        numbers = {record.sequence for record in ours}
        whose: dict[int, Record] = {}
        for record in log.records:
            for event in record.events:
                # A resume requests the work of every entry again.
                if event.type == "Resumed":
                    whose.update(dict.fromkeys(_all_places(log.state), record))
                entry = event.holdfast.get("entry")
                if entry is not None:
                    whose[entry] = record
                frame = log.state.frames.get(event.holdfast.get("frame", ROOT))
                if frame is not None and record.sequence in numbers:
                    # Two kinds of events have no entry number of their own, although they request
                    # work: a heartbeat requests a new timer, and the end of a child execution
                    # requests the start of the next child. That work has the entry number of the
                    # frame's present wait. Without this step, the next delivery after a crash would
                    # not know that this record requested it.
                    place = place_of(frame.waiting)
                    if place is not None:
                        whose[place] = record
        return RequestedWork(
            tuple(ours), self._doubtful(log, ours), whose, self._is_unread(log, ours)
        )

    def _doubtful(self, log: Log, ours: list[Record]) -> Record | None:
        """Return the record whose commands may not have been carried out.

        A worker carries out the commands of a record before its next commit, so only the newest
        record of this message is in doubt. If two workers have written in turn, the commands of the
        first worker stay undone until they are overdue. None if this worker wrote the newest
        record, or if a worker that received the message later may still be carrying out the
        commands.
        """
        is_sure = not ours or ours[-1].nonce.startswith(f"{self.received.owner}.")
        return None if is_sure or self.is_overtaken(log) else ours[-1]

    def _is_unread(self, log: Log, ours: list[Record]) -> bool:
        """Return True when the records of this message cannot be read, because a snapshot replaces
        them or because they are too old. One readable record is enough: the commands of earlier
        records were carried out before it was committed.
        """
        if ours:
            return all(record.is_folded for record in ours)
        since_ms = self.shared_since_ms
        return since_ms is not None and log.may_reach_beyond(since_ms)

    def own_records(self, log: Log) -> list[Record]:
        """Return the loaded records that were written under this message's id, or under an id that
        this message replaces.
        """
        ours = {self.received.message_id, *messages.replaced_by(self.body)}
        return log.records.of_messages(ours)


def _all_places(state: Execution) -> Iterator[int]:
    for frame in state.frames.values():
        yield from (deadline.entry for deadline in frame.deadlines)
        place = place_of(frame.waiting)
        if place is not None:
            yield place
