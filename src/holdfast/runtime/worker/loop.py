"""The worker: one delivery of one message, from load to acknowledgement.

A Lambda function receives messages from the work queue. Each message names one execution. For each
message this module loads the execution's log, decides what follows, appends records, runs tasks,
and deletes the message at the end. It may crash between any two effects; another delivery then
continues. Two things make that safe:

* The log is the only truth. A record is stored with one conditional `PutItem`. Of two workers that
  append the same record number, one is refused; it reloads and offers its facts again.
* Everything else (timers, registrations, wakes, rows of the watchdog) follows from the log, so a
  recovery can send it again.

Rules of this file (R numbers are those of docs/reference/log.md):
* R3  Work that depends on a choice from outside the log starts only after the choice is committed.
* R4  A result is committed before anything that follows from it starts.
* R5  If another worker commits first, results and inbox messages are offered again; chosen attempts
  are chosen again.
* R7  Effects come after the commit that requires them; the acknowledgement comes last.
* R9  After its deadline an invocation writes, leases and acknowledges nothing.
* R10 A message is not acknowledged while another worker has a lease under its id.
* R11 The watchdog row is written first, then the record with the event `Opened`. After a crash
  between them, the start message or the row still leads to the execution.
* R17 An old list entry is removed before the record with the new entry is stored.

    load ─ gather facts ─┬─► commit ─► effects ─┬─► run tasks ─► facts ─┐
                         ▲                      └─► nothing left: ack    │
                         └───────────────────────────────────────────────┘

Example: one task, then the end.

    0 ms   receive `start`; no log; decide: ExecutionStarted, TaskScheduled with a lease
    1 ms   run the task; its result arrives before record 0 is written, and joins it
    40 ms  PutItem record 0: started, scheduled, succeeded, ended
    45 ms  follow-ups of the end; delete the message

A task that takes longer than five seconds (`FIRST_HOLD_MS`) does not delay record 0: an execution
without a log cannot be stopped or shown.

Related modules: the purpose of the delivery (`delivery.py`), a record and its follow-ups
(`committing.py`, R7, R11, R17), the work that a recovery repeats (`recovery.py`, R8), facts from
outside (`external_facts.py`, R14, R15), and the attempts of this delivery (`attempts.py`,
`leases.py`).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.asl.program import Json
from holdfast.core import facts
from holdfast.core.advance import Transition, advance, note
from holdfast.core.facts import DecisionInputs, Fact
from holdfast.core.state import Awaiting, Execution
from holdfast.core.waits import has_more, is_due, leases_of
from holdfast.errors import FormatError, RequestError
from holdfast.limits import (
    CLOCK_ERROR_MS,
    FAILED_EVENT,
    FIRST_HOLD_MS,
    HIDDEN_SECONDS_MAX,
    NAME_EXTENSION_SECONDS,
    RACES_MAX,
    VISIBILITY_EXTENSION_SECONDS,
)
from holdfast.runtime import (
    event_pointers,
    follow_ups,
    inbox,
    measuring,
    messages,
    wait_rows,
    watchdog,
)
from holdfast.runtime.effects import (
    Clock,
    Deadline,
    Effect,
    Message,
    NoResult,
    Send,
    SetVisibility,
    WriteDeadline,
)
from holdfast.runtime.listing import listing
from holdfast.runtime.storage.format_control import require_writable
from holdfast.runtime.worker import external_facts, fast_path, recovery
from holdfast.runtime.worker.attempts import NEVER_MS
from holdfast.runtime.worker.committing import Committing
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.runtime.worker.decision_inputs import DecisionInputsFactory
from holdfast.runtime.worker.delivery import Delivery
from holdfast.runtime.worker.leases import ReceivedMessage

if TYPE_CHECKING:
    from holdfast.runtime.worker.own_claims import OwnClaims

#: A generator that yields effects. It returns True when the message may be deleted.
Delivers: TypeAlias = Generator[Effect, Any, bool]
#: A part of a `Delivers` generator. It returns None while the delivery has more work to do.
MayDeliver: TypeAlias = Generator[Effect, Any, bool | None]

OTHER_FORMAT_SECONDS = 60


def deliver(setting: WorkerConfig, delivery: ReceivedMessage) -> Delivers:
    """Process the message. Return True when it may be deleted; else SQS delivers it again."""
    try:
        require_writable(setting.formats)
        messages.require_readable(delivery.body)
        kind = delivery.body["k"]
        if kind in messages.OF_NO_EXECUTION or kind == messages.REMIND:
            # Imported here for cold starts: many workers process only executions.
            from holdfast.runtime.worker import other_messages  # noqa: PLC0415

            return (yield from other_messages.process(setting, delivery))
        return (yield from Processing(setting, Delivery(delivery)).run())
    except FormatError:
        # The log is in a format that this code cannot read, so this code must not append to it. A
        # worker of the right release will receive the message later.
        yield SetVisibility(OTHER_FORMAT_SECONDS)
        return False


@dataclass
class Processing(Committing):
    """A delivery that is processing one execution.

    * `run_for`: the state of record 0, if tasks have run before record 0 is committed.
    * `claims`: the events that this delivery has claimed; None before the first.
    """

    held_until_ms: int = 0
    run_for: Execution | None = None
    claims: OwnClaims | None = None

    # -- the delivery ------------------------------------------------------------------------------

    def run(self) -> Delivers:
        is_done = yield from self._run()
        self.setting.warm_logs.keep(self.log)
        if self.setting.ended_logs is not None:
            self.setting.ended_logs.keep(self.log)
        if self.unlogged:
            yield from self._write_log()
        if is_done:
            # The results of attempts that were stopped cause no event, and so no commit gives back
            # their permits. Do it here, or the permits would stay taken until they expire.
            yield from self.attempts.release()
            yield from self._give_back_claims()
        return is_done

    def _run(self) -> Delivers:
        yield from self._load_first()
        if self.log.is_gone or self.log.has_succeeded:
            return True
        if self.log.state is None:
            if self.delivery.kind == messages.START:
                return (yield from self._fresh())
            yield from external_facts.begin_to_stop(
                self.log.tenant, self.log.run, self.delivery.body
            )
            # Without a log there is nothing to do for this message. If it announces a request, the
            # request is in the inbox, and the worker that writes record 0 reads the inbox.
            return True
        yield from self._look_back()
        if self.state.is_ended:
            source = self.setting.status_source
            self.facts += yield from recovery.redrives(self.delivery, self.log, source)
            if self.facts:
                yield from self._send_failure()
            if self.facts and not (yield from self._keeps_key()):
                self.facts = []
            if not self.facts:
                return (yield from self._leave_ended())
        # Only the log of an open execution needs a new snapshot.
        elif self.delivery.is_renewal:
            return (yield from self._renew())
        if not self.delivery.is_recovering and external_facts.is_known_end(
            self.state, self.delivery.body
        ):
            return not (yield from self._leave_to_another((yield Clock())))
        if (yield from recovery.goes_alone(self.delivery, self.log)):
            return True
        yield from self._fetch(self.state.definition)
        yield from self._gather()
        self.facts += yield from self.attempts.take()
        return (yield from self._work())

    def _load_first(self) -> NoResult:
        kept = self.setting.warm_logs.take(self.log.partition)
        if kept is not None and not self.delivery.is_recovering:
            is_loaded = yield from self.log.load_newer(kept)
            # A delivery with a concurrent one recovers, and the records that this process has
            # written itself have no details.
            if is_loaded and not self.delivery.has_twin(self.log):
                return
        hint = messages.hint_of(self.delivery.body)
        yield from self._load(hint, needs_success=self.delivery.needs_success)

    def _load(self, hint: messages.Hint | None = None, *, needs_success: bool = True) -> NoResult:
        yield from self.log.load(hint, needs_success=needs_success)
        since_ms = self.delivery.shared_since_ms
        if self.log.state is not None and since_ms is not None:
            yield from self.log.read_back(since_ms)
        self.has_twin = self.delivery.has_twin(self.log)

    def _look_back(self) -> NoResult:
        yield from recovery.look_back(self.delivery, self.log, self.setting.status_source)
        if self.delivery.is_recovering:
            # The worker that wrote these records may have crashed before it wrote the log.
            for record in self.delivery.own_records(self.log):
                self._keep_for_log(record.events)

    def _renew(self) -> Delivers:
        """Write a new snapshot for a quarantined execution (R16), without evaluating its
        definition.
        """
        yield from self._fetch(self.state.definition)
        now_ms, limit_ms = (yield Clock()), (yield WriteDeadline())
        if now_ms >= limit_ms:
            return False
        if self.log.is_aging(now_ms) or self.log.is_behind:
            yield from self._commit(Transition((), self.state), now_ms)
        return not (yield from self._leave_to_another(now_ms))

    def _leave_ended(self) -> Delivers:
        """Finish the follow-ups of an end when this delivery is a recovery. Otherwise the worker
        that wrote the end still has its message, or the sweeper will check the execution.
        """
        if self.delivery.kind == messages.WAKE_GRANT:
            yield from self.attempts.permits.refuse_grant(self.delivery.body, self.state)
        event = self.delivery.body.get("event")
        if event is not None:
            from holdfast.runtime import kept_events  # noqa: PLC0415  (few events come too late)

            yield from kept_events.keep_after_end(self.log.tenant, self.state, event)
        if self.delivery.is_recovering:
            yield from self._repair_search_rows()
            yield from self._leave()
            if any(isinstance(frame.waiting, Awaiting) for frame in self.state.resting.values()):
                from holdfast.runtime.worker import own_claims  # noqa: PLC0415  (few end so)

                yield from own_claims.free_resting(self.log, self.state)
        return True

    def _give_back_claims(self) -> NoResult:
        """Give back the events that this delivery, an earlier one of its message, or the sender has
        claimed and its execution has not used.
        """
        if self.claims is not None:
            yield from self.claims.give_back()
        event, state = self.delivery.body.get("event"), self.log.state
        if event is None or (state is not None and event["id"] in state.used_events):
            return
        if self.delivery.is_recovering or "claimed" in event:
            # Imported here for cold starts: few events come to an execution that does not use them.
            from holdfast.runtime.worker import own_claims  # noqa: PLC0415

            yield from own_claims.give_on(self.log, event)

    def _keeps_key(self) -> Generator[Effect, Any, bool]:
        """Take the business key of a keyed workflow again for a retry. Return False when another
        execution has the key now: no two executions of one key may run at the same time.
        """
        definition = yield from self.setting.programs.fetch(self.log.tenant, self.state.definition)
        if "keyed" in definition.source_map:
            from holdfast.runtime.commands import keyed  # noqa: PLC0415  (as in `_leave`)

            known, tenant = self.setting.lookup(), self.log.tenant
            try:
                yield from keyed.continue_with_key(known, tenant, self.state)
            except RequestError as refused:
                yield from keyed.note_void_retry(tenant, self.state, refused)
                return False
        return True

    def _leave(self) -> NoResult:
        """Carry out the follow-ups of the end. The key of a keyed workflow is released first,
        because after the last follow-up the sweeper no longer sees the execution, and could not
        repair a missing one.
        """
        yield from self.attempts.permits.leave_workflow(self.state)
        definition = yield from self.setting.programs.fetch(self.log.tenant, self.state.definition)
        if "keyed" in definition.source_map:
            # Imported here for cold starts: most workflows have no key.
            from holdfast.runtime.commands import keyed_events  # noqa: PLC0415

            yield from keyed_events.at_end(self.setting.lookup(), self.log)
        yield from self._send_failure()
        yield from follow_ups.at_end(self.log)

    def _send_failure(self) -> NoResult:
        """Send the event of an end without success, if a deployed workflow waits for it.

        An execution of such a workflow sends none: if it always fails, it would start itself for
        ever.
        """
        known = self.setting.workflows
        if not (follow_ups.is_failure(self.state) and known.is_awaited(FAILED_EVENT)):
            return
        definition = yield from self.setting.programs.fetch(self.log.tenant, self.state.definition)
        if FAILED_EVENT not in definition.source_map.get("events", ()):
            # Imported here for cold starts: few executions fail.
            from holdfast.runtime.commands import failures  # noqa: PLC0415

            yield from failures.send(self.setting.lookup(), self.log.tenant, self.state, definition)

    def _fresh(self) -> Delivers:
        """Process the start message of an execution that has no log yet."""
        body = self.delivery.body
        was_known = self.setting.programs.is_known(self.log.tenant, body["definition"])
        yield from self._fetch(body["definition"])
        program = self.program
        data = yield from inbox.unstow(self.log.tenant, self.log.run, body["input"])
        if body.get("fork"):
            return (yield from self._fork(data))
        started = self.delivery.started(data)
        place = yield from self.attempts.permits.admit(
            self.log.tenant, started.workflow, data, body["definition"], now_ms=(yield Clock())
        )
        started = replace(started, refused=place)
        now_ms = yield Clock()
        moment = self.moments.at(now_ms, body["t0"])
        if body.get("held"):
            step = note(program, None, started, moment)
        else:
            step = advance(program, None, [started], moment)
        yield from measuring.begun(step.state, body["t0"], now_ms)
        is_first_chance = (
            self.delivery.received.receive_count == 1 and not self.delivery.is_recovering
        )
        self.held_until_ms = now_ms + FIRST_HOLD_MS
        if (
            was_known
            and is_first_chance
            and self.attempts.may_run_first(step.state, self.held_until_ms)
            and fast_path.asks_for_the_same_later(program, started, step.state, self._unused())
        ):
            self.run_for = step.state
            return (yield from self._work(step))
        over = yield from self._step(step, now_ms)
        return (yield from self._work()) if over is None else over

    def _fork(self, request: Json) -> Delivers:
        """Begin the log with a copy of another execution's history. The first step of the fork runs
        after that commit.
        """
        from holdfast.runtime.worker import forking  # noqa: PLC0415  (few executions are forks)

        started, programs = self.delivery.started(None), self.setting.programs
        forked = yield from forking.read(self.log, programs, started, request)
        now_ms = yield Clock()
        place = yield from self.attempts.permits.admit(
            *(self.log.tenant, forked.started.workflow, forked.input, self._definition),
            now_ms=now_ms,
        )
        forked = replace(forked, started=replace(forked.started, refused=place))
        moment = self.moments.at(now_ms, self.delivery.body["t0"])
        step = advance(self.program, None, [forked], moment)
        yield from measuring.begun(step.state, self.delivery.body["t0"], now_ms)
        over = yield from self._step(step, now_ms)
        return (yield from self._work()) if over is None else over

    def _unused(self) -> DecisionInputs:
        """Return inputs for a decision that will not be committed. Its random numbers are not
        counted, so the real decision gets the same ones.
        """
        setting = self.setting
        return DecisionInputsFactory(
            self.delivery, self.log, setting.keys, setting.attempt_seconds_max, setting.misuse
        ).at(0, 0)

    def _fetch_targets(self) -> NoResult:
        """Add the program of its target to each request for a migration."""
        for place, fact in enumerate(self.facts):
            if isinstance(fact, facts.MigrateRequested) and fact.program is None:
                yield from self.setting.programs.fetch(self.log.tenant, fact.target)
                program = self.setting.programs.program(fact.target)
                self.facts[place] = replace(fact, program=program)

    def _gather(self) -> NoResult:
        """Collect the external facts that the message announces. A recovering delivery reads all
        facts.
        """
        tenant, body, kind = self.log.tenant, self.delivery.body, self.delivery.kind
        now_ms = yield Clock()
        if self.delivery.is_recovering:
            self.facts += yield from inbox.control_facts(tenant, self.state)
            found = yield from external_facts.facts_for(tenant, self.state, now_ms)
            yield from follow_ups.register_uses(self.log, found, now_ms)
            self.facts += found
            if not (yield from follow_ups.has_entry(self.log)):
                # A worker has removed the list entry and crashed before it wrote the record with
                # the new one. The pause or the migration that caused the move may no longer apply,
                # so this delivery restores the entry. Otherwise the execution would be missing from
                # the list.
                self.unlisted = self.state.opened_at
            yield from self._carry_out_again(now_ms)
            if now_ms - self.state.started_ms > NAME_EXTENSION_SECONDS * 1_000:
                yield from follow_ups.keep_name(self.log, now_ms)
        elif kind == messages.WAKE_MAIL:
            self.facts += yield from external_facts.named_mail(tenant, self.state, body, now_ms)
        elif kind == messages.GO:
            # The worker that handed the attempt on may have written `Opened` without reading the
            # inbox. Without this read, a stop that was stored before would not be applied.
            self.facts += yield from inbox.control_facts(tenant, self.state)
        if kind == messages.WAKE_GRANT:
            self.facts += yield from self.attempts.permits.let_in(body, self.state)
        if kind == messages.WAKE_TIMER:
            entry, due_ms = body["entry"], body["due"]
            is_early = yield from external_facts.again_if_early(self.log, entry, due_ms, now_ms)
            self.delivery.is_sent_again = is_early
        yield from self.attempts.poll(lambda: self.program, now_ms)

    def _carry_out_again(self, now_ms: int) -> NoResult:
        yield from wait_rows.repair_row(self.log, now_ms)
        yield from self._repair_search_rows()
        wanted = self.setting.question_events
        again = recovery.carry_out_again(self.delivery, self.log, self.program, now_ms, wanted)
        self.facts += yield from again

    # -- the loop ----------------------------------------------------------------------------------

    def _work(self, pending: Transition | None = None) -> Delivers:
        """Commit the known facts and run the attempts of this delivery, until neither is left.

        `pending` is record 0 before its commit: the first tasks run, and their results become part
        of the record. The wait for them is short, because an execution without a log cannot be
        stopped.
        """
        while True:
            now_ms, limit_ms = (yield Clock()), (yield WriteDeadline())
            if now_ms >= limit_ms:
                return False
            state = pending.state if pending is not None else self.state
            until_ms = self.held_until_ms
            if pending is None:
                if is_due(state, now_ms - 2 * CLOCK_ERROR_MS):
                    self.facts += yield from self._past_timeouts(state, now_ms)
                until_ms = NEVER_MS
                if self.attempts.needs_leases(state):
                    claims, until_ms = self.attempts.claim_late(state, now_ms)
                    self.facts += claims
            until_ms = min(limit_ms, until_ms)
            step = Transition((), state)
            yield from self._fetch_targets()
            if self.facts or has_more(state):
                step = yield from self._claimed(self._decide(state, now_ms), state, now_ms)
            is_held = pending is not None and now_ms >= self.held_until_ms
            over: bool | None = None
            if step.events or is_held:
                if pending is not None:
                    step = Transition(pending.events + step.events, step.state)
                    pending = None
                over = yield from self._step(step, now_ms)
            else:
                over = yield from self._run_attempts(state, until_ms, now_ms)
            if over is not None:
                return over

    def _run_attempts(self, state: Execution, until_ms: int, now_ms: int) -> MayDeliver:
        """Begin the idle attempts if the invocation has the time; else wait for results of the
        running ones. Without either, this delivery ends.
        """
        idle = self.attempts.idle(self._pending(state))
        if idle:
            program, left_ms = self.program, (yield Deadline()) - now_ms
            if self.attempts.fit(idle, left_ms):
                self.facts += yield from self.attempts.begin(program, state, idle, now_ms)
                return None
        if self.attempts.begun:
            self.facts += yield from self.attempts.collect(until_ms)
            return None
        return (yield from (self._hand_on(now_ms) if idle else self._acknowledge(now_ms)))

    def _step(self, step: Transition, now_ms: int) -> MayDeliver:
        if not (yield from self._commit(step, now_ms)):
            return (yield from self._after_race())
        if not self.state.is_ended:
            return None
        yield from self._leave()
        return True

    def _past_timeouts(self, state: Execution, now_ms: int) -> inbox.FactsResult:
        if external_facts.begins_a_wait(state, self.facts):
            return []
        return (yield from external_facts.past_timeouts(self.log.tenant, state, now_ms))

    def _decide(self, state: Execution, now_ms: int) -> Transition:
        if not self._has_news(state) and not has_more(state):
            return Transition((), state)
        return self._decided(state, now_ms)

    def _decided(self, state: Execution, now_ms: int) -> Transition:
        self.offered, self.facts = self.facts, []
        program, moment = self.program, self.moments.at(now_ms, now_ms, state, self.offered)
        return advance(program, state, self.offered, moment)

    def _claimed(
        self, step: Transition, state: Execution, now_ms: int
    ) -> Generator[Effect, Any, Transition]:
        """Claim the events that the decision uses. If another execution has claimed one of them,
        decide again without it.
        """
        if step.state.used_events is state.used_events:
            return step
        if self.claims is None:
            # Imported here for cold starts: most executions use no event.
            from holdfast.runtime.worker.own_claims import OwnClaims  # noqa: PLC0415

            self.claims = OwnClaims(self.log)
        while step.state.used_events is not state.used_events:
            lost = yield from self.claims.take(state, step.state, self.offered)
            if lost is None:
                return step
            self.facts = [one for one in self.offered if not _is_about(one, lost.event_id)]
            # A wait with pointers was offered only the earliest event. A later one may be stored,
            # and no other wake would lead to it.
            named = {"id": lost.event_id, "name": lost.name, "key": lost.key}
            self.facts += yield from event_pointers.facts_of_wake(
                self.log.tenant, state, named, now_ms
            )
            step = self._decided(state, now_ms)
        return step

    def _has_news(self, state: Execution) -> bool:
        """Return True when the facts need a commit now. While attempts run, the fact that children
        were stopped waits for another fact, to save a record.
        """
        if all(isinstance(fact, facts.ChildrenStopped) for fact in self.facts):
            is_at_work = self.attempts.begun or self.attempts.mine(self._pending(state))
            return bool(self.facts) and not is_at_work
        return True

    def _after_race(self) -> MayDeliver:
        """Handle a refused commit (R5): keep the facts, drop the chosen attempts, and load the log
        again.

        Return None so that the loop of the caller continues. A recursive call would fail: two
        workers of one execution may be refused in turn hundreds of times.
        """
        self.races += 1
        if self.races > RACES_MAX:
            return False
        self.facts = [*self.offered, *self.facts]
        self.facts = [fact for fact in self.facts if not isinstance(fact, INTENTIONS)]
        self.attempts.forget_intentions()
        was_fresh = self.log.state is None
        yield from self._load()
        if self.log.state is None:
            # Another record was there when the put was refused, but now the log is empty: TTL has
            # deleted it, or it is damaged. SQS delivers the message again.
            return False
        if was_fresh and self.run_for and not fast_path.is_same_start(self.run_for, self.state):
            # The first tasks ran for another start, so their results are dropped.
            return False
        yield measuring.conflict(self.state)
        # The log may have begun with another start message: the parent of a child execution may
        # have sent two, with different definitions. So fetch the definition that record 0 names.
        yield from self._fetch(self.state.definition)
        yield from self._look_back()
        if self.state.is_ended:
            return (yield from self._leave_ended())
        if self.delivery.is_recovering:
            now_ms = yield Clock()
            if was_fresh:
                # The worker that wrote `Opened` may have crashed before it read the inbox. Read it
                # now. Otherwise a request in it, such as a stop, could remain unread.
                self.facts += yield from inbox.control_facts(self.log.tenant, self.state)
            yield from self._carry_out_again(now_ms)
        self.facts += yield from self.attempts.take()
        return None

    # -- handing on and ending a delivery ----------------------------------------------------------

    def _hand_on(self, now_ms: int) -> MayDeliver:
        """Hand the next attempts on to another invocation, because the time left in this one is too
        short.
        """
        self.facts += self.attempts.hand_on(self.state)
        told = self._decided(self.state, now_ms)
        if told.events and not (yield from self._commit(told, now_ms)):
            return (yield from self._after_race())
        if not self.state.is_opened:
            yield from watchdog.watch(self.log, self.state, now_ms)
            step = self._with_opened(Transition((), self.state), now_ms)
            listed = listing(self.log.tenant, step.state, now_ms)
            indexed = wait_rows.indexed_by_entry(self.log, step.state, now_ms)
            if not (yield from self.log.commit(step, now_ms, listed, indexed)):
                return (yield from self._after_race())
            yield from self._put_search_rows(None, now_ms, is_listed=True)
        owner = self.delivery.received.owner
        body = messages.go(self.log.tenant, self.log.run, owner, self.log.hint)
        yield Send((Message(body),))
        # SQS may delete the message only when no later delivery has received it. A later delivery
        # whose worker crashes needs the message again (R10).
        return not self.delivery.is_overtaken(self.log)

    def _leave_to_another(self, now_ms: int) -> Generator[Effect, Any, bool]:
        """Return True when another delivery needs the message although this one has finished (R10).

        The message must exist until the lease of the other worker ends. If the other worker
        received the message later, the commands of its last commit may not be carried out yet.
        """
        if self.delivery.is_overtaken(self.log):
            return True
        for claim in leases_of(self.state):
            if self.delivery.has_message_of(claim):
                left_seconds = (claim.until_ms - now_ms) // 1_000 + VISIBILITY_EXTENSION_SECONDS
                yield SetVisibility(min(max(1, left_seconds), HIDDEN_SECONDS_MAX))
                return True
        return False

    def _acknowledge(self, now_ms: int) -> MayDeliver:
        if (yield from self._leave_to_another(now_ms)):
            return False
        is_behind = self.delivery.is_recovering and self.log.is_behind
        if self.log.is_aging(now_ms) or is_behind or self._is_unlisted():
            return (yield from self._refresh(now_ms))
        return True

    def _refresh(self, now_ms: int) -> MayDeliver:
        """Commit a new snapshot or a new list entry. Without a new snapshot, TTL would delete
        records of an execution that waits for months, or its records would stay in an old format
        (R16).
        """
        if not (yield from self._commit(Transition((), self.state), now_ms)):
            return (yield from self._after_race())
        return True


def _is_about(fact: Fact, event_id: str) -> bool:
    return isinstance(fact, facts.EventReceived) and fact.event_id == event_id


#: Facts that follow from the state alone. If another worker commits first, they must be computed
#: from the new state. The old ones would be applied to a state that they do not fit (R5).
INTENTIONS = (facts.Tick, facts.TakenOver, facts.Opened, facts.TaskUnknown)
