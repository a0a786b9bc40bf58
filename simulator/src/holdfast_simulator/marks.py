"""Reach marks: named situations that the schedules of a level must have reached. Without them, the
absence of violations would prove nothing.

A mark is a sentence. `watching` observes the situations of hosts and messages while they happen;
`reached` finds the others in the histories at the end. Each kind of fault has a mark, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from holdfast_simulator.swarm import RATES_MAX


class Seen(StrEnum):
    """A situation that is observed while it happens."""

    # Records.
    RACE_LOST = "a race for a record was lost to another host"
    RACES_LOST = "one delivery lost three races"
    OWN_WRITE = "a put was refused by its own first try"
    LATE_FIRST_TRY = "the first try of a put landed after its second"
    DOUBT_DONE = "a record in doubt had been written"
    DOUBT_NOT_DONE = "a record in doubt had not been written"
    THAWED_WROTE = "a host wrote a record after its message had come back while it was frozen"
    THAWED_REFUSED = "a host was refused after its message had come back while it was frozen"
    DIED_AFTER_RECORD = "a host died after a record, before what the record owes"
    DIED_AFTER_WATCH = "a host died between the watch row and the record that says Opened"
    DIED_AFTER_BLOB = "a host died between a blob and its record"
    DIED_AFTER_TIMER = "a sweeper died between a timer's message and the end of its row"
    DIED_AFTER_MOVE = "a sweeper died between a row's next place and its old one"
    STORED_NOT_TOLD = "a worker stored mail and died before it sent the message"
    # Effects.
    FIRST_HOLD_DIED = "a host died at a task, before there was a record 0"
    TWO_SWEEPERS = "one watch row was moved by two sweepers"
    TIMER_ROW = "a timer row became a message"
    TWO_WAKES = "two hosts carried out one owed timer"
    CHILD_TWICE = "the start of a child was sent twice"
    GOES_ALONE = "an attempt whose workers die was sent to be tried alone"
    NOT_ACKNOWLEDGED = "a message under which another works was not acknowledged"
    QUARANTINED = "what kills its workers was quarantined"
    QUARANTINED_START = "a start that kills its workers was quarantined"
    FETCHED = "a cold host fetched a definition"
    UNLISTED_AGAIN = "the duties of an end were done twice"
    # Deliveries.
    START = "a start was delivered"
    WAKE_TIMER = "a timer's wake was delivered"
    WAKE_MAIL = "a wake for mail was delivered"
    GO = "an execution was handed on"
    RECOVER = "a recovery was delivered"
    ARCHIVE = "a page for the archive was delivered"
    DELIVERED_BEFORE = "a message had been delivered before"
    DELIVERED_OFTEN = "a message was delivered for the fourth time"
    COPY = "a copy of a message came as if it were new"
    TWO_HANDS = "one message was in two hands at once"
    TWIN_NOTICED = "a delivery met a record that another one wrote under its message"
    ABSENT = "a wake came for an execution without a log"
    BEGUN_AGAIN = "a start came for an execution that had begun"
    AFTER_END = "a message came for an execution that had ended"
    LETTER = "a dead letter was revived"
    LETTER_START = "a start came back from the dead letters"
    LETTER_AFTER_END = "a dead letter came back after its execution had ended"
    EARLY_WAKE = "a wake came less than a second early"
    EARLY_WAKE_AGAIN = "a wake that was early was sent again"
    PAST_LIMIT = "a delivery found itself past its limit"
    VANISHED = "a message vanished"
    START_VANISHED = "the start of an execution vanished"
    MANY_DIED = "several messages died with one host"
    LIVED_ON = "a delivery went on while its message was with another"
    REPAIRED = "an operator repaired what there was while things went wrong"
    # Time.
    EXPIRED = "a record of an execution that runs was taken by TTL"


class Read(StrEnum):
    """A situation that is found in the stored data at the end."""

    SUCCEEDED = "an execution succeeded"
    FAILED = "an execution failed"
    TIMED_OUT = "an execution ran out of time"
    ABORTED = "an execution was stopped"
    # Tasks.
    TASK_TWICE = "an attempt ran twice"
    FIRST_TASK = "a first task ran before record 0"
    FIRST_TASK_TWICE = "a first task ran again, for its host died before record 0"
    TAKEN_OVER = "a claim was taken over"
    TAKEN_OVER_OFTEN = "an attempt was taken over three times"
    WORKER_LOST = "an attempt failed because its workers died"
    RETRIED = "a retry waited for its time"
    ATTEMPT_TIMED_OUT = "an attempt or a wait timed out"
    # Waits.
    TIMER = "a timer fired"
    LONG_TIMER = "a timer was longer than a message can wait"
    EVENT_BEFORE_LOG = "an event came before its execution had a log"
    EVENT_BEFORE_WAIT = "an event came before the wait for it"
    EVENT_USED = "an event was used"
    ANSWER_IN_WINDOW = "an answer was stored between a time-out's look and its record"
    ANSWER_BEFORE_WAIT = "an answer was stored before the log knew of its wait"
    ANSWER_BEFORE_LOG = "an answer was stored before its execution had a log"
    HEARTBEAT = "a heartbeat put a time-out off"
    ANSWER_LATE = "an answer came after its wait was over"
    CONTRADICTED = "a second answer that says something else was refused"
    FORGED = "a forged token was refused"
    # Stops, undoing, lanes.
    STOP_AFTER_RECORD = "a stop came between a record and what it owes"
    STOP_UNDOES = "a stop set off undoing"
    STOP_IN_UNDO = "a stop came while something was being undone"
    STOP_TWICE = "a second stop changed nothing"
    STOP_NOW = "a stop that does not wait cut the undoing short"
    PAUSED = "an execution was paused and resumed"
    PAUSED_IN_HAND = "a result was recorded while its execution was paused"
    PAUSE_LIFTED = "a stop or a time-out lifted a pause"
    STOP_AFTER_END = "a stop came after the end"
    UNDONE = "something was undone"
    LINE_CANCELLED = "a line was cancelled"
    LANES_CLOSED = "lanes were closed early"
    LANE_TOLERATED = "the failure of a lane was tolerated"
    DEADLINE_PASSED = "the deadline of a block passed"
    FAILED_BESIDE_RETRY = "a lane failed while the retry of another was due"
    LANES_TOGETHER = "two lanes ended in one record"
    RESULTS_TOGETHER = "two results shared a record"
    # Children.
    CHILD = "a workflow began another"
    CHILD_STOPPED = "a child without a waiting parent was stopped"
    CHILD_FIRST = "a child ended before its parent's log knew that it had begun"
    # Workers of two deployments.
    UNKNOWN = "a worker met a task that it does not know"
    # The log.
    FULL_RECORD = "a record was full of states"
    SNAPSHOT = "a record held a snapshot"
    BLOB = "a value went into a blob"
    FORKED = "an execution began as a fork"
    BULK = "a bulk operation was accepted"
    REDRIVEN = "an execution that had ended went on"
    RENEWED = "a log was renewed before TTL could take it"
    # Callers.
    TWO_CALLERS = "two callers were told of one execution"
    OTHER_INPUT = "a name was refused with another input"
    TWO_TENANTS = "two tenants had an execution of one name"


#: For each kind of fault its mark.
FAULTS: Final[Mapping[str, str]] = {kind: f"fault: {kind}" for kind in RATES_MAX}
#: Every mark there is.
ALL_MARKS: Final[tuple[str, ...]] = (*Seen, *Read, *FAULTS.values())
