"""The plan of a commit: what it needs beside its record, from the states before and after it.

    watchdog row ─► old list entry removed ─► record ─► rows of waits ─► commands ─► inbox
    before `Opened` (R11)   (R17)             (R4)                         (R7)

`CommitPlan` says which of these the commit needs. `loop.py` carries the plan out.
"""

from __future__ import annotations

from holdfast.core.advance import Transition
from holdfast.core.commands import Command
from holdfast.core.migrating import carried_out
from holdfast.core.state import Execution
from holdfast.core.waits import new_commands
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import FIRST_HOLD_MS


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The plan of a commit.

    * `asked_before`, `asked`: the pending commands before and after the record.
    * `has_more`: the record reached its budget, so the worker continues the execution at once.
    * `is_busy`: this delivery continues the execution, or runs attempts of it.
    * `must_open`: the record must open the execution.
    * `was_aging`: the record renews the snapshot and the names before TTL deletes them.
    * `is_unlisted`: the old list entry was removed, and no later record has one.
    """

    before: Execution | None
    step: Transition
    asked_before: list[Command]
    asked: list[Command]
    has_more: bool
    is_busy: bool
    must_open: bool
    was_aging: bool
    is_unlisted: bool

    @property
    def after(self) -> Execution:
        return self.step.state

    @property
    def is_over(self) -> bool:
        return self.after.is_ended

    @property
    def is_redrive(self) -> bool:
        return self.before is not None and self.before.is_ended

    @property
    def is_resumed(self) -> bool:
        return self._is_repaused and self.after.paused is None

    @property
    def _is_repaused(self) -> bool:
        before = self.before
        return before is not None and before.paused != self.after.paused and not self.is_over

    @property
    def _is_migrated(self) -> bool:
        return any(event.type == "Migrated" for event in self.step.events)

    @property
    def is_relisted(self) -> bool:
        """Return True when the record has a list entry that replaces an older one.

        A list entry shows the pause, the definition and the steps. So the record of a pause, a
        resume or a migration has a new entry, because the old one would show the state before.
        """
        if self.is_over:
            return False
        is_moved = self.after.is_opened and (self._is_repaused or self._is_migrated)
        return self.was_aging or self.is_unlisted or (is_moved and not self.is_redrive)

    @property
    def is_opening(self) -> bool:
        """Return True when the record has the event `Opened` and a list entry."""
        return self.must_open or self.is_relisted

    @property
    def is_listed(self) -> bool:
        return self.is_opening or self.is_over

    @property
    def is_resting(self) -> bool:
        """Return True when the execution is listed already, and this delivery stops now because
        the execution waits.
        """
        return self.after.is_opened and not self.is_busy

    @property
    def new_commands(self) -> list[Command]:
        """Return the commands to carry out. An ended execution has only the follow-ups of its end,
        and the commands of a resumed or retried one are all new.
        """
        if self.is_over:
            return []
        if self.is_redrive or self.is_resumed:
            return new_commands(self.asked, [])
        done = self.asked_before
        if self._is_migrated:
            done = carried_out(self.before, self.step.events)
        return new_commands(self.asked, done)


def must_open(before: Execution | None, after: Execution, now_ms: int, *, is_busy: bool) -> bool:
    """Return True when the record must have the event `Opened`: for an execution that will wait, or
    that has run for long. Without it, only the start message leads to the execution, which is too
    late after a crash.

    The start message of a retried execution was deleted at its end, so SQS would not deliver it
    again after a crash. The record of the retry therefore opens the execution.
    """
    if after.is_ended or after.is_opened:
        return False
    is_redrive = before is not None and before.is_ended
    return is_redrive or not is_busy or now_ms - after.started_ms > FIRST_HOLD_MS
