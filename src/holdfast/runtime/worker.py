"""The worker: one delivery of one message, from load to acknowledgement.

Rules of this file (docs/log.md tells them in full; R numbers are the protocol's):
* R3  What depends on a choice from outside the log starts only after the commit of that choice.
* R4  A result is committed before anything that follows from it starts.
* R5  After a lost race results and mail are offered again; intentions are drawn up anew.
* R7  Effects come after the commit that asks for them, the acknowledgement comes last.
* R8  A recovering delivery carries out again all that is owed; the others trust a foreign record.
* R9  Past its limit an invocation writes, claims and acknowledges nothing.
* R10 A message under whose id another owner works is not acknowledged.
* R11 Watched before unguarded: the watch row, then the record that says `Opened`.
* R14 Before a time-out is committed, its mail is read: a stored answer wins.
* R15 The due time decides; a message only wakes, and one that is early is sent again.

    load ─ gather facts ─┬─► commit ─► effects ─┬─► run tasks ─► facts ─┐
                         ▲                      └─► nothing left: ack    │
                         └───────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from holdfast import resources
from holdfast.asl.program import Program, Task
from holdfast.core import facts
from holdfast.core.advance import Step, advance, is_redriven_by, note
from holdfast.core.commands import (
    WHOLE_EXECUTION,
    Command,
    RunAttempt,
    StartChild,
    StartTimer,
    StopChild,
    entry_of,
    has_more,
    owed,
)
from holdfast.core.events import Event
from holdfast.core.facts import Fact, Moment
from holdfast.core.overdue import overdue_frames
from holdfast.core.state import ANSWERED_LATER, Attempt, Awaiting, Children, Execution, Origin
from holdfast.errors import FormatError
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    CALLBACK_SECONDS_MAX,
    CLOCK_ERROR_MS,
    FAST_PATH_TIMEOUT_SECONDS_MAX,
    FIRST_HOLD_MS,
    NAME_EXTENSION_SECONDS,
    RACES_MAX,
    TAKEOVERS_IN_COMPANY_MAX,
    VISIBILITY_EXTENSION_SECONDS,
)
from holdfast.runtime import children, duties, keys, mail, messages, status_events
from holdfast.runtime.child_workflows import NO_WORKFLOWS, Workflows, call, name_in
from holdfast.runtime.claims import (
    Delivery,
    Ticket,
    attempts_of,
    is_lost,
    make_claim,
    result_fact,
    run_seconds,
    ticket_of,
)
from holdfast.runtime.codec import Record, reading
from holdfast.runtime.control import require_writable
from holdfast.runtime.definitions import Programs
from holdfast.runtime.effects import (
    Begin,
    Clock,
    Deadline,
    Effect,
    Finished,
    Limit,
    Measure,
    Message,
    RunTask,
    Send,
    SetVisibility,
)
from holdfast.runtime.formats import FORMATS, Formats
from holdfast.runtime.log import Log, draw
from holdfast.runtime.tokens import Keys, Token, make_token

Does: TypeAlias = Generator[Effect, Any, Any]

OTHER_FORMAT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Setting:
    """What this process knows: definitions, which functions it can run, how to sign a token, and
    which workflows it can start for those that call them.

    `status_source`: by whom the bus is told when executions of state machines begin and end; None:
    by nobody. `formats`: what is read of logs, and written.
    """

    programs: Programs
    knows: Callable[[str, bool], bool]
    keys: Callable[[], Keys]
    status_source: str | None = None
    workflows: Workflows = NO_WORKFLOWS
    formats: Formats = FORMATS


def deliver(setting: Setting, delivery: Delivery) -> Generator[Effect, Any, bool]:
    """-> True when the message may be deleted. False: it comes back by itself."""
    try:
        require_writable(setting.formats)
        body = messages.require_readable(delivery.body)
        return (yield from Hold(setting, delivery, body).run())
    except FormatError:
        # This code must not append to a log that it cannot fold; the right one will take it.
        yield SetVisibility(OTHER_FORMAT_SECONDS)
        return False


@dataclass(frozen=True, slots=True)
class Begun:
    """`deadline_ms` is 0 for an attempt without a time-out.

    `polls` is how often the job had been asked for.
    """

    deadline_ms: int
    is_answered_later: bool
    polls: int = 0


@dataclass
class Hold:
    """A delivery at work on one execution."""

    setting: Setting
    delivery: Delivery
    body: Any
    log: Log = field(init=False)
    program: Program = field(init=False)
    facts: list[Fact] = field(default_factory=list)
    begun: dict[Ticket, Begun] = field(default_factory=dict)
    taken: set[Ticket] = field(default_factory=set)
    offered: list[Fact] = field(default_factory=list)
    is_recovering: bool = False
    races: int = 0
    draws: int = 0
    has_run_tasks: bool = False
    held_until_ms: int = 0

    def __post_init__(self) -> None:
        setting, delivery = self.setting, self.delivery
        tenant, run = self.body["t"], self.body["run"]
        self.log = Log(tenant, run, delivery.owner, delivery.message_id, setting.formats)
        self.is_recovering = (
            delivery.receive_count > 1
            or self.kind == messages.RECOVER
            or bool(messages.replaced_by(self.body))
        )

    @property
    def kind(self) -> str:
        return str(self.body["k"])

    @property
    def state(self) -> Execution:
        assert self.log.state is not None
        return self.log.state

    # -- the delivery ------------------------------------------------------------------------------

    def run(self) -> Generator[Effect, Any, bool]:
        yield from self.log.load(messages.hint_of(self.body))
        if self.log.state is None:
            if self.kind != messages.START:
                return True  # its mail is stored; whoever opens the execution looks for it
            return (yield from self._fresh())
        self._notice_twin()
        yield from self._publish_again()
        if self.state.is_ended and not (yield from self._is_redriven()):
            if self.is_recovering or self.kind in {messages.START, messages.GO}:
                yield from duties.at_end(self.log)
            return True
        if (yield from self._goes_alone()):
            return True
        yield from self._program_of(self.state.definition)
        yield from self._gather()
        yield from self._take()
        return (yield from self._work())

    def _goes_alone(self) -> Generator[Effect, Any, bool]:
        """An attempt whose owners die is tried again where nobody else's work dies with it."""
        running = (frame.waiting for frame in self.state.frames.values())
        suspects = [
            attempt.claim
            for attempt in running
            if isinstance(attempt, Attempt)
            and attempt.takeovers >= TAKEOVERS_IN_COMPANY_MAX
            and attempt.claim is not None
        ]
        may_go = self.state.is_opened and self._may_take_over()  # opened: R11
        if not suspects or self.delivery.is_alone or not may_go:
            return False
        now_ms = yield Clock()
        if not any(is_lost(claim, self.delivery, now_ms) for claim in suspects):
            return False
        replaced = (*messages.replaced_by(self.body), self.delivery.message_id)
        body = messages.recover(self.log.tenant, self.log.run, replaced)
        yield Send((Message(body),), queue="single")
        return True

    def _is_redriven(self) -> Generator[Effect, Any, bool]:
        """Somebody asks that an execution goes on which has ended."""
        is_over = not self.state.resting or self.state.is_undone
        if is_over or not (self.is_recovering or self.kind == messages.WAKE_MAIL):
            return False
        asked = yield from mail.control_facts(self.log.tenant, self.state)
        self.facts += asked
        wishes = (fact for fact in asked if isinstance(fact, facts.RedriveRequested))
        if not any(is_redriven_by(self.state, wish) for wish in wishes):
            return False
        # The duties of this end may still be owed, and the next state knows nothing of them.
        yield from duties.at_end(self.log)
        return True

    def _fresh(self) -> Generator[Effect, Any, bool]:
        """The start message of an execution that has no log yet."""
        was_known = self.setting.programs.is_known(self.body["definition"])
        yield from self._program_of(self.body["definition"])
        data = yield from mail.unstow(self.log.tenant, self.log.run, self.body["input"])
        started = facts.Started(
            self.log.run,
            self.body.get("name"),
            self.body["workflow"],
            data,
            self.body["t0"],
            self.body.get("origin"),
            self.body.get("parent"),
        )
        yield Measure(resources.METRIC_EXECUTIONS_STARTED, 1)
        now_ms = yield Clock()
        moment = self._moment(now_ms, self.body["t0"])
        if self.body.get("held"):
            step = note(self.program, None, started, moment)
        else:
            step = advance(self.program, None, [started], moment)
        is_first_chance = self.delivery.receive_count == 1 and not self.is_recovering
        self.held_until_ms = now_ms + FIRST_HOLD_MS
        if was_known and is_first_chance and self._may_run_first(step.state):
            return (yield from self._work(step))
        if not (yield from self._commit(step, now_ms)):
            return (yield from self._after_race())
        if self.state.is_ended:
            yield from duties.at_end(self.log)
            return True
        return (yield from self._work())

    def _may_run_first(self, state: Execution) -> bool:
        """The first tasks run before record 0: they follow from the message alone (R3).

        Not beside a timer that may be due before then: nobody else would wake for it. Not those of
        a workflow that another calls: hosts of two deployments may have sent its start, each with
        its own definition, and record 0 says which of them counts.
        """
        if state.parent is not None and state.origin is None:
            return False
        attempts = attempts_of(state)
        timers = [command for command in owed(state) if isinstance(command, StartTimer)]
        return (
            bool(attempts)
            and all(timer.due_ms > self.held_until_ms for timer in timers)
            and all(
                (attempt.timeout_seconds or 0) <= FAST_PATH_TIMEOUT_SECONDS_MAX
                and self._knows(attempt)
                for attempt in attempts
            )
        )

    def _program_of(self, definition_hash: str) -> Does:
        yield from self.setting.programs.fetch(self.log.tenant, definition_hash)
        self.program = self.setting.programs.program(definition_hash)

    def _notice_twin(self) -> None:
        """A record under our message id by another owner: its holder shares our message (R8)."""
        self.is_recovering |= any(
            record.message == self.delivery.message_id
            and not record.nonce.startswith(f"{self.delivery.owner}.")
            for record in self.log.records
        )

    # -- what has happened outside -----------------------------------------------------------------

    def _gather(self) -> Does:
        now_ms = yield Clock()
        if self.is_recovering:
            self.facts += yield from mail.control_facts(self.log.tenant, self.state)
            self.facts += yield from mail.facts_for(self.log.tenant, self.state, now_ms)
            self.facts += yield from self._carry_out_again(now_ms)
            if now_ms - self.state.started_ms > NAME_EXTENSION_SECONDS * 1_000:
                yield from duties.keep_name(self.log, now_ms)
        elif self.kind == messages.WAKE_MAIL:
            self.facts += yield from self._named_mail(str(self.body["key"]), now_ms)
        elif self.kind == messages.GO:
            # Who handed on may have opened the execution, and had no time to look.
            self.facts += yield from mail.control_facts(self.log.tenant, self.state)
        if self.kind == messages.WAKE_TIMER:
            yield from self._again_if_early(now_ms)
        yield from self._poll(now_ms)

    def _carry_out_again(self, now_ms: int) -> mail.Facts:
        ended = yield from children.all_notices(self.log.tenant, self.state)
        known = [StartChild(fact.entry, fact.lane) for fact in ended]
        again = [
            command
            for command in self._owed_again()
            if command not in known and not self._sees_to(command, now_ms)
        ]
        if self.state.redrives:
            yield from duties.unlist_stale(self.log)
        found = yield from duties.carry_out(self.log, self.program, again, now_ms)
        return [*ended, *found]

    def _sees_to(self, command: Command, now_ms: int) -> bool:
        """What is due happens in this very delivery; should it die, its message comes back.

        To send a wake besides would let one whose worker always dies multiply without end: each
        delivery one more wake, and of each, once it is a dead letter, one more that recovers.
        """
        match command:
            case StartTimer(entry, due_ms):
                is_due = due_ms + 2 * CLOCK_ERROR_MS <= now_ms
                return is_due and (self._has_place_for_all() or not self._is_question(entry))
            case RunAttempt(attempt=attempt):
                return attempt.due_ms + 2 * CLOCK_ERROR_MS <= now_ms
            case _:
                return False

    def _has_place_for_all(self) -> bool:
        return len(self.state.frames) <= ATTEMPTS_IN_FLIGHT_MAX

    def _is_question(self, entry: int) -> bool:
        """A job is asked for there, if there is a place."""
        frame = self.state.frame_of(entry)
        waiting = None if frame is None else frame.waiting
        return isinstance(waiting, Awaiting) and waiting.poll_due_ms is not None

    def _owed_again(self) -> list[Command]:
        """What may never have been carried out (R8).

        The sweeper asks for all of it. A message that came back asks for what records of its own
        ask for: if each of them repeated everything, every crash would multiply the messages.
        """
        everything = owed(self.state)
        if self.kind == messages.RECOVER:
            return everything
        records = self._own_records()
        if records and records[0] is self.log.records[0]:
            return everything  # older records of ours may be folded into the snapshot
        opened = {event.holdfast.get("entry") for record in records for event in record.events}
        return [
            command
            for command in everything
            # Any record may close the wait for a child; and that it was told is soon in the log.
            if entry_of(command) in opened or isinstance(command, StopChild)
        ]

    def _own_records(self) -> list[Record]:
        """-> of the records at hand, those that were written under the ids of our message."""
        ours = {self.delivery.message_id, *messages.replaced_by(self.body)}
        return [record for record in self.log.records if record.message in ours]

    def _named_mail(self, key: str, now_ms: int) -> mail.Facts:
        tenant, run = self.log.tenant, self.log.run
        if key.startswith("x#"):
            return (yield from mail.control_facts(tenant, self.state))
        if key.startswith("t#"):
            return (yield from mail.answer_by_key(tenant, run, key))
        if key.startswith(keys.TAKEN_PREFIX):
            return (yield from mail.taken_by_key(tenant, run, key))
        if key.startswith(children.NOTICE_PREFIX):
            with reading("a key of mail"):
                entry = int(key.removeprefix(children.NOTICE_PREFIX))
            return (yield from self._notices(entry))
        return (yield from mail.facts_for(tenant, self.state, now_ms))

    def _notices(self, entry: int) -> mail.Facts:
        frame = self.state.frame_of(entry)
        if frame is None or not isinstance(frame.waiting, Children):
            return []
        ended = yield from children.notices(self.log.tenant, self.log.run, frame.waiting)
        return list(ended)

    def _again_if_early(self, now_ms: int) -> Does:
        """The sender's clock ran ahead of ours: without a copy the only wake would be gone."""
        entry, due_ms = int(self.body["entry"]), int(self.body["due"])
        is_open = entry == WHOLE_EXECUTION or self.state.is_open(entry)
        if is_open and now_ms < due_ms + 2 * CLOCK_ERROR_MS:
            yield from duties.start_timer(self.log, entry, due_ms, now_ms)

    def _past_timeouts(self, now_ms: int) -> Does:
        """R14: for each wait that is about to time out, its mail first; then the tick."""
        past_ms = now_ms - 2 * CLOCK_ERROR_MS
        overdue = overdue_frames(self.state, past_ms)
        is_late = self.state.due_ms is not None and self.state.due_ms <= past_ms
        if not overdue and not is_late:
            return
        tenant, run = self.log.tenant, self.log.run
        for frame in overdue:
            match frame.waiting:
                case Awaiting() as awaiting:
                    self.facts += yield from mail.mail_of(tenant, run, awaiting, now_ms)
                case Children() as open_children:
                    self.facts += yield from children.notices(tenant, run, open_children)
        self.facts.append(facts.Tick())

    # -- attempts ----------------------------------------------------------------------------------

    def _take(self) -> Does:
        now_ms = yield Clock()
        for attempt in attempts_of(self.state):
            ticket = ticket_of(attempt)
            if attempt.claim is None:
                if attempt.due_ms + 2 * CLOCK_ERROR_MS <= now_ms or attempt.is_unknown:
                    self._take_unclaimed(attempt, ticket)
            elif self.kind == messages.GO and attempt.claim.owner == self.body["from"]:
                self.taken.add(ticket)
            elif is_lost(attempt.claim, self.delivery, now_ms) and self._may_take_over():
                self.facts.append(facts.TakenOver(*ticket))

    def _take_unclaimed(self, attempt: Attempt, ticket: Ticket) -> None:
        is_own_wake = self.kind == messages.WAKE_TIMER and self.body["entry"] == attempt.entry
        if self.is_recovering:
            if not attempt.is_unknown or self._knows(attempt):
                self.facts.append(facts.TakenOver(*ticket))
        elif self.kind in {messages.START, messages.GO} or is_own_wake:
            self.taken.add(ticket)

    def _may_take_over(self) -> bool:
        return self.is_recovering or self.kind in {messages.START, messages.GO}

    def _mine(self, state: Execution) -> list[Attempt]:
        """Attempts that this delivery runs or is about to run."""
        return [
            attempt
            for attempt in attempts_of(state)
            if (attempt.claim is not None and attempt.claim.owner == self.delivery.owner)
            or ticket_of(attempt) in self.taken
        ]

    def _knows(self, attempt: Attempt) -> bool:
        workflow = name_in(attempt.target)
        if workflow is not None:
            return workflow in self.setting.workflows.definitions
        if attempt.kind not in {"task", "pure"}:
            return True  # a service's action: whoever calls it says when there is none
        return self.setting.knows(attempt.target, attempt.kind == "pure")

    # -- the loop ----------------------------------------------------------------------------------

    def _work(self, pending: Step | None = None) -> Generator[Effect, Any, bool]:
        """Commits what is known, runs what it holds, until nothing is left.

        `pending` is record 0 before its commit: its first tasks run, their results join it. It
        does not wait for them for long: an execution without a log cannot be stopped.
        """
        while True:
            now_ms, limit_ms = (yield Clock()), (yield Limit())
            if now_ms >= limit_ms:
                return False
            state = pending.state if pending is not None else self.state
            if pending is None:
                yield from self._past_timeouts(now_ms)
            step = self._decide(state, now_ms)
            is_held = pending is not None and now_ms >= self.held_until_ms
            if step.events or is_held:
                if pending is not None:
                    step = Step(pending.events + step.events, step.state)
                    pending = None
                if not (yield from self._commit(step, now_ms)):
                    return (yield from self._after_race())
                if self.state.is_ended:
                    yield from duties.at_end(self.log)
                    return True
                continue
            idle = [a for a in self._mine(state) if ticket_of(a) not in self.begun]
            idle = idle[: self._places()]
            if idle:
                left_ms = (yield Deadline()) - now_ms
                if (
                    self.has_run_tasks
                    and left_ms < max(run_seconds(a.timeout_seconds) for a in idle) * 1_000
                ):
                    if not self.begun:
                        return (yield from self._hand_on(now_ms))
                    yield from self._collect(limit_ms)
                    continue
                yield from self._begin(state, idle, now_ms)
            elif self.begun:
                until_ms = limit_ms if pending is None else min(limit_ms, self.held_until_ms)
                yield from self._collect(until_ms)
            else:
                return (yield from self._acknowledge(now_ms))

    def _places(self) -> int:
        """-> how many more attempts and questions may be in flight."""
        return ATTEMPTS_IN_FLIGHT_MAX - len(self.begun)

    def _decide(self, state: Execution, now_ms: int) -> Step:
        if not has_more(state) and not self._has_news(state):
            return Step((), state)
        return self._decided(state, now_ms)

    def _decided(self, state: Execution, now_ms: int) -> Step:
        offered, self.facts = self.facts, []
        # Kept until the commit: a lost race offers them again.
        self.offered = offered
        return advance(self.program, state, offered, self._moment(now_ms, now_ms))

    def _has_news(self, state: Execution) -> bool:
        """That children were stopped is written with something else, or when nothing else comes."""
        if all(isinstance(fact, facts.ChildrenStopped) for fact in self.facts):
            return bool(self.facts) and not (self.begun or self._mine(state))
        return True

    def _begin(self, state: Execution, attempts: list[Attempt], now_ms: int) -> Does:
        for attempt in attempts:
            ticket = ticket_of(attempt)
            if not self._knows(attempt):
                self.taken.discard(ticket)
                self.facts.append(facts.TaskUnknown(*ticket))
                continue
            if name_in(attempt.target) is not None:
                yield from self._start_workflow(attempt, now_ms)
                continue
            deadline_ms = now_ms + run_seconds(attempt.timeout_seconds) * 1_000
            self.begun[ticket] = Begun(
                deadline_ms if attempt.timeout_seconds else 0, attempt.kind in ANSWERED_LATER
            )
            self.has_run_tasks = True
            yield Begin(ticket, self._task(state, attempt, deadline_ms))

    def _start_workflow(self, attempt: Attempt, now_ms: int) -> Does:
        """A child is begun here and now: two effects, no code of the user's but its types."""
        workflows, programs = self.setting.workflows, self.setting.programs
        self.facts.append((yield from call(self.log, programs, workflows, attempt, now_ms)))
        self.taken.discard(ticket_of(attempt))

    def _task(self, state: Execution, waiting: Attempt | Awaiting, deadline_ms: int) -> RunTask:
        frame = state.frame_of(waiting.entry)
        task = None if frame is None else self.program.states[frame.position]
        return RunTask(
            name=waiting.target,
            kind=waiting.kind,
            arguments=waiting.arguments,
            tenant=self.log.tenant,
            run=self.log.run,
            run_name=state.name,
            workflow=state.workflow,
            entry=waiting.entry,
            attempt=waiting.attempt,
            deadline_ms=deadline_ms,
            credentials=waiting.credentials,
            arns=_arns(state.origin),
            resource=task.resource if isinstance(task, Task) else "",
        )

    def _poll(self, now_ms: int) -> Does:
        """Asks for jobs whose time has come: upon their own wake, or when recovering.

        Asking changes nothing, so it may come before a commit, and twice. Those for which there is
        no place are left to their own wakes.
        """
        for frame in self.state.frames.values():
            job = frame.waiting
            if not isinstance(job, Awaiting) or job.poll_due_ms is None:
                continue
            is_own_wake = self.kind == messages.WAKE_TIMER and self.body["entry"] == job.entry
            is_due = job.poll_due_ms + 2 * CLOCK_ERROR_MS <= now_ms
            if is_due and (is_own_wake or self.is_recovering) and self._places():
                ticket = (job.entry, job.attempt)
                deadline_ms = now_ms + run_seconds(None) * 1_000
                self.begun[ticket] = Begun(0, is_answered_later=False, polls=job.polls)
                task = self._task(self.state, job, deadline_ms)
                yield Begin(ticket, replace(task, is_poll=True, submitted=job.submitted))

    def _collect(self, until_ms: int) -> Does:
        """Waits for results, not past a time-out of theirs nor past `until_ms`."""
        timeouts = [begun.deadline_ms for begun in self.begun.values() if begun.deadline_ms]
        done = yield Finished(min([until_ms, *timeouts]))
        for ticket, result in done:
            begun = self.begun.get(ticket, _OVER)
            later, polls = begun.is_answered_later, begun.polls
            self.facts.append(result_fact(ticket, result, is_answered_later=later, polls=polls))
        finished = {ticket for ticket, _ in done}
        now_ms = yield Clock()
        for ticket, begun in self.begun.items():
            is_over = begun.deadline_ms and begun.deadline_ms <= now_ms
            if is_over and ticket not in finished:
                self.facts.append(facts.TimedOut(*ticket))
                finished.add(ticket)
        for ticket in finished:
            # A result that comes after its time-out has no ticket left and is dropped.
            self.begun.pop(ticket, None)
            self.taken.discard(ticket)

    # -- committing --------------------------------------------------------------------------------

    def _commit(self, step: Step, now_ms: int) -> Generator[Effect, Any, bool]:
        before = self.log.state
        must_open = (
            not step.state.is_opened
            and not step.state.is_ended
            and self._must_open(step.state, now_ms)
        )
        if must_open:
            yield from duties.watch(self.log, step.state, now_ms)
        was_aging = self.log.is_aging(now_ms) and not step.state.is_ended
        if must_open or was_aging:
            step = self._with_opened(step, now_ms)
        listing = duties.listing(self.log.tenant, step.state, is_opening=must_open or was_aging)
        if not (yield from self.log.commit(step, now_ms, listing)):
            return False
        self.offered = []
        self.draws = self.races = 0
        if was_aging:
            assert before is not None, "what ages has a log"
            yield from duties.renew(self.log, before, now_ms)
        if before is not None and before.is_ended:
            yield from duties.unlist_stale(self.log)
        if not self.state.is_ended:  # else all that is owed belongs to the end
            owed_before = [] if before is None or before.is_ended else owed(before)
            new = [command for command in owed(self.state) if command not in owed_before]
            self.facts += yield from duties.carry_out(self.log, self.program, new, now_ms)
        yield from self._publish(step.events)
        yield from duties.measure(step)
        if must_open or has_more(self.state):
            # Just opened: mail from before. A full record: a loop without a wait has no other look.
            self.facts += yield from mail.control_facts(self.log.tenant, self.state)
        return True

    def _publish(self, events: Iterable[Event]) -> Does:
        if self.setting.status_source is not None:
            yield from status_events.publish(self.state, events, self.setting.status_source)

    def _publish_again(self) -> Does:
        """Who committed a beginning or an end under our message may not have told it (R8)."""
        if self.is_recovering:
            yield from self._publish([e for record in self._own_records() for e in record.events])

    def _must_open(self, state: Execution, now_ms: int) -> bool:
        """It parks, or has run for so long that its start message is a poor guard."""
        return not self._claimed_by_me(state) or now_ms - state.started_ms > FIRST_HOLD_MS

    def _claimed_by_me(self, state: Execution) -> bool:
        return has_more(state) or bool(self._mine(state))

    def _with_opened(self, step: Step, now_ms: int) -> Step:
        opened = facts.Opened(self.log.sequence + 1)
        more = note(self.program, step.state, opened, self._moment(now_ms, now_ms))
        return Step(step.events + more.events, more.state)

    def _after_race(self) -> Generator[Effect, Any, bool]:
        """Another writer was first (R5): keep the facts, forget the intentions, look again."""
        self.races += 1
        if self.races > RACES_MAX:
            return False
        self.facts = [*self.offered, *self.facts]
        self.facts = [fact for fact in self.facts if not isinstance(fact, INTENTIONS)]
        self.taken = {ticket for ticket in self.taken if ticket in self.begun}
        yield from self.log.load()
        if self.log.state is None:
            return False  # a refused put to an empty log: TTL or damage; let the message come back
        # Of a child's two starts another may have counted: that of another definition.
        yield from self._program_of(self.state.definition)
        self._notice_twin()
        yield from self._publish_again()
        if self.state.is_ended:
            if self.is_recovering or self.kind in {messages.START, messages.GO}:
                yield from duties.at_end(self.log)
            return True
        if self.is_recovering:
            now_ms = yield Clock()
            self.facts += yield from self._carry_out_again(now_ms)
        yield from self._take()
        return (yield from self._work())

    # -- letting go --------------------------------------------------------------------------------

    def _hand_on(self, now_ms: int) -> Generator[Effect, Any, bool]:
        """Too little time is left for the next attempt: another invocation takes it from here."""
        told = self._decided(self.state, now_ms)
        if told.events and not (yield from self._commit(told, now_ms)):
            return (yield from self._after_race())
        if not self.state.is_opened:
            yield from duties.watch(self.log, self.state, now_ms)
            step = self._with_opened(Step((), self.state), now_ms)
            listing = duties.listing(self.log.tenant, step.state, is_opening=True)
            if not (yield from self.log.commit(step, now_ms, listing)):
                return (yield from self._after_race())
        owner = self.delivery.owner
        body = messages.go(self.log.tenant, self.log.run, owner, self.log.hint)
        yield Send((Message(body),))
        return True

    def _acknowledge(self, now_ms: int) -> Generator[Effect, Any, bool]:
        for attempt in attempts_of(self.state):
            claim = attempt.claim
            if claim is not None and claim.message == self.delivery.message_id:
                # R10: the message is another's too, for nothing of ours is left; it must outlive
                # that claim.
                left_seconds = (claim.until_ms - now_ms) // 1_000 + VISIBILITY_EXTENSION_SECONDS
                yield SetVisibility(max(1, left_seconds))
                return False
        if self.is_recovering and (self.log.is_aging(now_ms) or self.log.is_behind):
            return (yield from self._refresh(now_ms))
        return True

    def _refresh(self, now_ms: int) -> Generator[Effect, Any, bool]:
        """R16: what rests for months outlives its records, or their format, by a new snapshot."""
        if not (yield from self._commit(Step((), self.state), now_ms)):
            return (yield from self._after_race())
        return True

    # -- deciding ----------------------------------------------------------------------------------

    def _moment(self, now_ms: int, decided_ms: int) -> Moment:
        sequence = self.log.sequence + 1

        def next_draw() -> float:
            self.draws += 1
            return draw(self.log.run, sequence, self.draws)

        return Moment(
            now_ms=decided_ms,
            draw=next_draw,
            claim=lambda timeout_seconds: make_claim(self.delivery, timeout_seconds, now_ms),
            clock_error_ms=CLOCK_ERROR_MS,
            token=self._token,
        )

    def _token(self, entry: int, attempt: int) -> str:
        """The same text whoever schedules the attempt: it counts from the id of the execution."""
        expires_ms = keys.minted_ms(self.log.run) + CALLBACK_SECONDS_MAX * 1_000
        token = Token(self.log.tenant, self.log.run, entry, attempt, expires_ms)
        return make_token(token, self.setting.keys())


#: What was meant to be done on the old state; after a lost race it is drawn up anew (R5).
INTENTIONS = (facts.Tick, facts.TakenOver, facts.Opened, facts.TaskUnknown)

#: A result that comes after its time-out; the state refuses it.
_OVER = Begun(0, is_answered_later=False)


def _arns(origin: Origin | None) -> tuple[str, ...]:
    return () if origin is None else (origin["state_machine_arn"], origin["execution_arn"])
