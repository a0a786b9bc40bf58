"""Commits: a record of the log, what must exist before it, and its follow-ups.

    watchdog row ─► old list entry removed ─► record ─► rows of waits ─► commands ─► inbox
    before `Opened` (R11)   (R17)             (R4)                         (R7)

`CommitPlan` says which of these a commit needs, from the states before and after the record.
`Committing` carries the plan out: it is the part of a delivery that commits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from dataclasses import field
from typing import Any

from holdfast.asl.program import Program
from holdfast.core import facts
from holdfast.core.advance import Transition, note
from holdfast.core.commands import Command, JoinQueue, OpenQuestion
from holdfast.core.events import Event
from holdfast.core.facts import Fact
from holdfast.core.state import Execution
from holdfast.core.waits import abandoned_attempts, has_more, new_commands, pending_commands
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import FIRST_HOLD_MS, LOG_EVENTS_HELD_MAX, LOG_HELD_MS_MAX
from holdfast.runtime import follow_ups, inbox, measuring, status_events, wait_rows, watchdog
from holdfast.runtime.effects import Effect, NoResult
from holdfast.runtime.listing import listing
from holdfast.runtime.storage.log import Log
from holdfast.runtime.wait_text import IndexedWaits
from holdfast.runtime.worker.attempts import Attempts
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.decision_inputs import DecisionInputsFactory
from holdfast.runtime.worker.delivery import Delivery


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
            # Imported here for cold starts: few executions migrate.
            from holdfast.core import migrating  # noqa: PLC0415

            done = migrating.carried_out(self.before, self.step.events)
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


@dataclasses.dataclass
class Committing:
    """The part of a delivery that commits records. `loop.Processing` is the whole delivery.

    * `facts`: facts that no decision has used yet.
    * `offered`: the facts of the next commit. If another worker commits first, they are offered
      again.
    * `has_twin`: another worker that received the same message has written to the loaded log.
    * `unlisted`: the record whose entry was removed from the list, while no later record has an
      entry.
    * `unlogged`: committed events of a state machine with a log (`runtime/execution_logs.py`),
      until the log is written.
    """

    setting: WorkerConfig
    delivery: Delivery
    log: Log = field(init=False)
    attempts: Attempts = field(init=False)
    moments: DecisionInputsFactory = field(init=False)
    facts: list[Fact] = field(default_factory=list)
    offered: list[Fact] = field(default_factory=list)
    races: int = 0
    has_twin: bool = False
    unlisted: int | None = None
    unlogged: list[Event] = field(default_factory=list)
    _definition: str = ""
    _program: Program | None = None
    _last_pending: tuple[Execution, list[Command]] | None = None

    def __post_init__(self) -> None:
        setting, delivery = self.setting, self.delivery
        tenant, run, received = delivery.body["t"], delivery.body["run"], delivery.received
        owner, message = received.owner, received.message_id
        self.log = Log(tenant, run, owner, message, setting.formats, setting.archives)
        self.attempts = Attempts(setting, delivery, self.log, lambda: self.program)
        self.moments = DecisionInputsFactory(
            delivery, self.log, setting.keys, setting.attempt_seconds_max, setting.misuse
        )

    @property
    def state(self) -> Execution:
        assert self.log.state is not None
        return self.log.state

    @property
    def program(self) -> Program:
        """Return the program of the execution's definition, parsed at the first use."""
        if self._program is None:
            self._program = self.setting.programs.program(self._definition)
        return self._program

    def _fetch(self, definition_hash: str) -> NoResult:
        yield from self.setting.programs.fetch(self.log.tenant, definition_hash)
        self._definition, self._program = definition_hash, None

    def _pending(self, state: Execution) -> list[Command]:
        """Return the pending commands of the state. A commit and the steps around it need those of
        the same state, and a wide Map has many.
        """
        if self._last_pending is None or self._last_pending[0] is not state:
            self._last_pending = (state, pending_commands(state))
        return self._last_pending[1]

    # -- the record --------------------------------------------------------------------------------

    def _commit(self, step: Transition, now_ms: int) -> Generator[Effect, Any, bool]:
        """Append the record and carry out its follow-ups. Return False, without follow-ups, when
        another worker has written the record with this number.
        """
        plan = self._plan(step, now_ms)
        yield from self._prepare(plan, now_ms)
        if plan.is_opening:
            step = self._with_opened(step, now_ms)
        listed = listing(self.log.tenant, step.state, now_ms) if plan.is_listed else {}
        known, indexed = self.log.indexed, self._indexed(plan, step.state, now_ms)
        if not (yield from self.log.commit(step, now_ms, listed, indexed)):
            return False
        after = plan.after
        if after.attributes or after.notes:
            shown = None if plan.was_aging else plan.before
            yield from self._put_search_rows(shown, now_ms, is_listed=plan.is_listed)
        if not plan.is_listed and indexed != known:
            yield from wait_rows.put_row(self.log, now_ms)
        elif plan.is_opening:
            yield from wait_rows.drop_row(self.log, now_ms)
        offered, self.offered = self.offered, []
        self.moments.draws = self.races = 0
        # The execution continued as new, or it was migrated.
        if after.definition != self._definition:
            yield from self._fetch(after.definition)
        for attempt in abandoned_attempts(plan.asked_before, after, offered, now_ms):
            # Imported here for cold starts: few tasks declare a heartbeat.
            from holdfast.runtime import heartbeats  # noqa: PLC0415

            step_of = heartbeats.Step(self.log.tenant, self.log.run, attempt.entry)
            yield from heartbeats.mark_over(step_of, attempt.attempt, now_ms)
        yield from self._follow(plan, now_ms)
        yield from self._report(plan, step, now_ms)
        if plan.must_open or plan.has_more:
            # Read the inbox. An execution that was just opened may have older messages in it. An
            # execution that loops without a wait would otherwise never notice a stop.
            self.facts += yield from inbox.control_facts(self.log.tenant, self.state)
        return True

    def _plan(self, step: Transition, now_ms: int) -> CommitPlan:
        before, after = self.log.state, step.state
        asked_before = [] if before is None else self._pending(before)
        asked, more = self._pending(after), has_more(after)
        is_busy = more or bool(self.attempts.mine(asked))
        return CommitPlan(
            before,
            step,
            asked_before,
            asked,
            has_more=more,
            is_busy=is_busy,
            must_open=must_open(before, after, now_ms, is_busy=is_busy),
            was_aging=self.log.is_aging(now_ms) and not after.is_ended,
            is_unlisted=self._is_unlisted(),
        )

    def _prepare(self, plan: CommitPlan, now_ms: int) -> NoResult:
        """Carry out what must exist before the record (R11, R17)."""
        # During a pause the next check of the sweeper may be a week away. After the resume every
        # wait may be due at once, so the check moves to an earlier time.
        if plan.must_open or plan.is_resumed:
            yield from watchdog.watch(self.log, plan.after, now_ms)
        if self.has_twin:
            yield from watchdog.watch_closely(self.log, now_ms)
        if plan.is_relisted or plan.is_redrive:
            yield from follow_ups.leave_list(self.log)
            self.unlisted = self.state.opened_at

    def _is_unlisted(self) -> bool:
        """Return True when the list lacks the open execution: this delivery has removed the old
        entry, but another worker committed first, and its record has no new entry.
        """
        state = self.log.state
        return state is not None and state.is_opened and state.opened_at == self.unlisted

    def _with_opened(self, step: Transition, now_ms: int) -> Transition:
        opened = facts.Opened(self.log.sequence + 1)
        moment = self.moments.at(now_ms, now_ms, step.state)
        more = note(self.program, step.state, opened, moment)
        return Transition(step.events + more.events, more.state)

    def _indexed(self, plan: CommitPlan, state: Execution, now_ms: int) -> IndexedWaits:
        """Return what the index of waits contains from the record on."""
        if plan.is_listed:
            return wait_rows.indexed_by_entry(self.log, state, now_ms)
        if plan.is_resting:
            return wait_rows.indexed_at_rest(self.log, state, now_ms)
        return self.log.indexed

    # -- after the record --------------------------------------------------------------------------

    def _follow(self, plan: CommitPlan, now_ms: int) -> NoResult:
        """Carry out the commands of the record, after it is stored (R7)."""
        yield from self._release(plan.asked_before, plan.asked)
        if plan.was_aging:
            yield from follow_ups.keep_name(self.log, now_ms)
        new = plan.new_commands
        if new:
            wanted = self.setting.question_events
            done = follow_ups.carry_out(self.log, self.program, new, now_ms, wanted)
            self.facts += yield from done

    def _release(self, asked_before: list[Command], asked: list[Command]) -> NoResult:
        """Give back the permits of ended attempts, and remove ended attempts from queues. This
        happens after the commit of the record.
        """
        if self.attempts.permits.held:
            yield from self.attempts.release()
        if any(isinstance(command, JoinQueue | OpenQuestion) for command in asked_before):
            yield from follow_ups.withdraw(self.log, asked_before, asked)

    def _put_search_rows(
        self, known: Execution | None, now_ms: int, *, is_listed: bool
    ) -> NoResult:
        # Imported here for cold starts: most workflows have no search attributes.
        from holdfast.runtime import search_rows  # noqa: PLC0415

        yield from search_rows.put_new(self.log, known, now_ms, is_listed=is_listed)

    def _repair_search_rows(self) -> NoResult:
        if self.state.attributes or self.state.notes:
            from holdfast.runtime import search_rows  # noqa: PLC0415

            yield from search_rows.repair(self.log)

    def _report(self, plan: CommitPlan, step: Transition, now_ms: int) -> NoResult:
        """Report the record to the event bus, the metrics and the log of the state machine."""
        if self.setting.status_source is not None:
            yield from status_events.publish(self.state, step.events, self.setting.status_source)
        yield from measuring.committed(plan.before, step)
        self._keep_for_log(step.events)
        if self.unlogged and (
            len(self.unlogged) >= LOG_EVENTS_HELD_MAX
            or now_ms - self.unlogged[0].at_ms > LOG_HELD_MS_MAX
        ):
            yield from self._write_log()

    def _keep_for_log(self, events: Sequence[Event]) -> None:
        origin = self.state.origin
        if origin is not None and "log" in origin:
            self.unlogged += events

    def _write_log(self) -> NoResult:
        # Imported here for cold starts: most state machines have no log.
        from holdfast.runtime import execution_logs  # noqa: PLC0415

        events, self.unlogged = self.unlogged, []
        yield from execution_logs.write(self.log.tenant, self.state, events)
