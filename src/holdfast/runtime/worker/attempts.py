"""The attempts that one delivery of a message runs: which attempts it takes, how it begins them,
and their results.

Rules of this file (R numbers are those of docs/reference/log.md):
* R3 Before record 0 is committed only the first tasks run: they follow from the start message
  alone.
* R9 An attempt begins only if it can end before the deadline of the invocation. The first attempts
  of a delivery always begin.
* R15 The due time decides when an attempt begins, by the clock of the worker that begins it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import field, replace
from typing import Any, Final, assert_never

from holdfast.asl.program import Program, State, TaskState
from holdfast.asl.resources import is_request, started_by
from holdfast.core import facts
from holdfast.core.commands import Command, RunAttempt, StartTimer
from holdfast.core.facts import Fact
from holdfast.core.state import ANSWERED_LATER, Attempt, Awaiting, Execution, Lease, MachineOrigin
from holdfast.core.waits import attempts_of, is_frozen, pending_commands
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    AWS_THROTTLING_CODES,
    CLAIM_GRACE_MS,
    CLAIM_LATE_MS,
    CLAIM_SECONDS_DEFAULT,
    CLOCK_ERROR_MS,
    FAST_PATH_TIMEOUT_SECONDS_MAX,
    OVERDUE_SECONDS,
    SERVICE_PAUSE_MS,
)
from holdfast.runtime.child_workflows import call, name_in
from holdfast.runtime.effects import (
    Begin,
    Clock,
    Effect,
    Finished,
    NoResult,
    RunTask,
    TaskFailed,
    TaskPending,
    TaskResult,
    TaskSucceeded,
    TaskThrottled,
    Ticket,
)
from holdfast.runtime.gates.permits import Permits
from holdfast.runtime.inbox import FactsResult
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.config import CachePlace, WorkerConfig
from holdfast.runtime.worker.delivery import Delivery, RequestedWork

NEVER_MS: Final = 10**15
#: The error of a task that asked to be called later, when the task has no limit that could slow it
#: down.
THROTTLED: Final = "Throttled"


@dataclass(frozen=True, slots=True)
class Begun:
    """A running attempt, or a poll of a job.

    `deadline_ms` is 0 for an attempt without a time-out. `polls` counts the earlier polls of a job.
    `attempt` is None for a poll. `cache`: where to store the result, for a task with a cache.
    """

    deadline_ms: int
    is_answered_later: bool
    polls: int = 0
    attempt: Attempt | None = None
    cache: CachePlace | None = None


def _open_attempts(state: Execution) -> Iterator[Attempt]:
    """Yield the attempts that the execution waits for, also those that a pause holds back."""
    for frame in state.frames.values():
        if isinstance(frame.waiting, Attempt):
            yield frame.waiting


def ticket_of(attempt: Attempt) -> Ticket:
    return attempt.entry, attempt.attempt


def run_seconds(timeout_seconds: int | None, seconds_max: int) -> int:
    """Return the longest run of an attempt in seconds: its time-out, or `seconds_max` if that is
    shorter. A Lambda invocation ends after a fixed time, whatever the time-out of the task.
    """
    return min(timeout_seconds or CLAIM_SECONDS_DEFAULT, seconds_max)


def result_fact(
    ticket: Ticket, result: TaskResult, *, is_answered_later: bool, polls: int = 0
) -> Fact:
    """Return the fact for a task's result. `polls`: the number of polls before this poll of a
    job.
    """
    match result:
        case TaskSucceeded(output) if is_answered_later:
            return facts.Submitted(*ticket, output)
        case TaskSucceeded(output):
            return facts.Succeeded(*ticket, output)
        case TaskFailed(error, cause, traceback):
            return facts.FailedWith(*ticket, error, cause, traceback)
        case TaskPending():
            return facts.Polled(*ticket, polls)
        case TaskThrottled(_, cause, traceback):
            return facts.FailedWith(*ticket, THROTTLED, cause, traceback)
        case _:
            assert_never(result)


@dataclass
class Attempts:
    """The attempts of one delivery of a message. Mutable.

    `begun`: attempts and polls of jobs that run now. `taken`: attempts that this delivery has
    chosen to run without a lease of its own in the log. A choice is dropped when another worker
    commits first.
    """

    setting: WorkerConfig
    delivery: Delivery
    log: Log
    #: Returns the program of the execution's definition.
    program: Callable[[], Program]
    begun: dict[Ticket, Begun] = field(default_factory=dict)
    taken: set[Ticket] = field(default_factory=set)
    has_run_tasks: bool = False
    permits: Permits = field(init=False)
    _has_limits: bool = field(init=False)
    _once_program: Program | None = None
    _once_states: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        owner, book = self.delivery.received.owner, self.setting.gates.book
        self._has_limits = bool(book.of_task or book.batches)
        self.permits = Permits(
            *(self.setting.gates, self.log.tenant, self.log.run, owner),
            seconds_max=self.setting.attempt_seconds_max,
        )

    # -- choosing the attempts ---------------------------------------------------------------------

    def take(self) -> FactsResult:
        """Choose the attempts of this delivery. Return the take-overs that must be committed before
        these attempts run.
        """
        assert self.log.state is not None
        now_ms = yield Clock()
        taken_over: list[Fact] = []
        is_overtaken = self.delivery.is_overtaken(self.log)
        places = self.delivery.places(self.log) if self.delivery.is_recovering else None
        once = self._once(self.log.state)
        for attempt in attempts_of(self.log.state):
            ticket, claim = ticket_of(attempt), attempt.claim
            if is_overtaken and not self.delivery.has_message_of(claim):
                continue
            if claim is None:
                if attempt.due_ms + 2 * CLOCK_ERROR_MS <= now_ms or attempt.is_unknown:
                    taken_over += self._take_unclaimed(attempt, places, once, now_ms)
            elif self.delivery.is_handed(claim) and not self.delivery.is_recovering:
                if ticket in once:
                    taken_over.append(facts.TakenOver(*ticket, is_handed=True))
                else:
                    self.taken.add(ticket)
            elif self.delivery.may_take_over and self.delivery.has_lost(claim, now_ms):
                taken_over.append(facts.TakenOver(*ticket))
        return taken_over

    def _once(self, state: Execution) -> frozenset[Ticket]:
        """Return the attempts that start their task at most once.

        Such an attempt begins only under a lease of this delivery that is in the log. A later
        delivery that finds another worker's lease there knows that the task may have started, and
        the attempt fails (`core/advance.py`, `_taken_over`).
        """
        running = [
            (frame.position, ticket_of(frame.waiting))
            for frame in state.frames.values()
            if isinstance(frame.waiting, Attempt)
        ]
        if not running:
            # A delivery that finds nothing to run does not parse the definition.
            return frozenset()
        program = self.program()
        if self._once_program is not program:
            self._once_program = program
            self._once_states = frozenset(
                name
                for name, one in program.states.items()
                if isinstance(one, TaskState) and one.is_at_most_once
            )
        return frozenset(ticket for position, ticket in running if position in self._once_states)

    def _take_unclaimed(
        self,
        attempt: Attempt,
        places: RequestedWork | None,
        once: frozenset[Ticket],
        now_ms: int,
    ) -> list[Fact]:
        """Choose an attempt without a lease, if this delivery should run it. Return its take-over,
        if one is needed. `places` bounds the number of take-overs of a recovering delivery.

        The delivery of the attempt's own wake message runs it, and needs no lease as long as no
        recovery can happen. Another delivery takes the attempt only if that wake may be lost: the
        attempt is overdue, or this worker should have sent the wake.
        """
        ticket, is_wake = ticket_of(attempt), self.delivery.is_wake_of_attempt(attempt)
        if places is None:
            if is_wake and ticket in once:
                return [facts.TakenOver(*ticket)]
            if is_wake:
                self.taken.add(ticket)
            return []
        if attempt.is_unknown:
            may_take = self._knows(attempt)
        else:
            is_overdue = attempt.due_ms + OVERDUE_SECONDS * 1_000 <= now_ms
            may_take = is_wake or is_overdue or places.is_in_doubt(attempt.entry)
        return [facts.TakenOver(*ticket)] if may_take else []

    def claim_late(self, state: Execution, now_ms: int) -> tuple[list[Fact], int]:
        """Return leases for attempts that have run for long, and the time at which the next lease
        is needed.

        Without a lease the sweeper would soon report such an attempt as overdue, or find that the
        lease of the previous worker has ended; another worker would then run it, too.
        """
        claims = [] if state.paused is None else self._claim_in_pause(state)
        next_ms, once = NEVER_MS, self._once(state)
        for attempt in _open_attempts(state):
            if not self._renews(state, attempt, once):
                continue
            claim = attempt.claim
            late_ms = claim.until_ms - CLAIM_GRACE_MS if claim else attempt.due_ms + CLAIM_LATE_MS
            if late_ms <= now_ms:
                claims.append(facts.TakenOver(*ticket_of(attempt), is_handed=True))
            else:
                next_ms = min(next_ms, late_ms)
        return claims, next_ms

    def _renews(self, state: Execution, attempt: Attempt, once: frozenset[Ticket]) -> bool:
        """Return True when this delivery runs the attempt and may need a new lease for it.

        An attempt that starts its task at most once would fail without a lease, also in a pause. A
        lease of another worker that has taken the attempt over is left alone.
        """
        ticket, claim = ticket_of(attempt), attempt.claim
        if ticket in once and claim is not None and self._is_mine(claim):
            return True
        is_free = claim is None or self.delivery.is_handed(claim)
        return state.paused is None and ticket in self.taken and is_free

    def needs_leases(self, state: Execution) -> bool:
        """Return True when `claim_late` may find an attempt that needs a lease."""
        return bool(self.taken) or bool(self._once(state))

    def _is_mine(self, claim: Lease) -> bool:
        return claim.owner == self.delivery.received.owner

    def _claim_in_pause(self, state: Execution) -> list[Fact]:
        """At a pause: return leases for attempts that run without one, and drop those that have not
        begun.

        A resume sends the wake of each attempt without a lease again. Without this, another worker
        would run the attempt while this worker still runs it. The dropped attempts run after the
        resume.
        """
        self.taken &= self.begun.keys()
        return [
            facts.TakenOver(*ticket_of(attempt), is_handed=True)
            for attempt in _open_attempts(state)
            if attempt.claim is None and ticket_of(attempt) in self.taken
        ]

    def hand_on(self, state: Execution) -> list[Fact]:
        """Return leases for attempts that this worker hands on to another invocation, and that it
        held only because it received their message.

        The next worker takes over only attempts whose lease belongs to the worker that handed them
        on.
        """
        return [
            facts.TakenOver(*ticket_of(attempt), is_handed=True)
            for attempt in (command.attempt for command in self.mine(pending_commands(state)))
            if attempt.claim is None or attempt.claim.owner != self.delivery.received.owner
        ]

    def mine(self, asked: Iterable[Command]) -> list[RunAttempt]:
        """Return the commands whose attempts this delivery runs or is about to run."""
        owner, taken = self.delivery.received.owner, self.taken
        return [
            command
            for command in asked
            if isinstance(command, RunAttempt)
            and (
                (command.attempt.claim is not None and command.attempt.claim.owner == owner)
                or ticket_of(command.attempt) in taken
            )
        ]

    def idle(self, asked: Iterable[Command]) -> list[RunAttempt]:
        """Return the attempts to begin next: chosen ones that do not run yet, as many as may run at
        once.
        """
        idle = [one for one in self.mine(asked) if ticket_of(one.attempt) not in self.begun]
        return idle[: self._places()]

    def fit(self, idle: list[RunAttempt], left_ms: int) -> bool:
        """Return True when the longest of these attempts can end before the deadline (R9).

        The first attempts of a delivery always fit. Without this, an attempt that is longer than
        the time left after a load would never begin.
        """
        longest_seconds = max(self._run_seconds(one.attempt.timeout_seconds) for one in idle)
        return not self.has_run_tasks or left_ms >= longest_seconds * 1_000

    def _run_seconds(self, timeout_seconds: int | None) -> int:
        return run_seconds(timeout_seconds, self.setting.attempt_seconds_max)

    def may_run_first(self, state: Execution, held_until_ms: int) -> bool:
        """Return True when the first tasks may run before record 0 is committed (R3).

        They wait for record 0 in five cases:
        * A timer may be due before the tasks end. Without a log, no message would wake the
          execution for it.
        * Another workflow called this one. Hosts of two deployments may have sent its start, each
          with its own definition, and record 0 decides between them.
        * The task calls a workflow. If the worker crashed and the execution was stopped before the
          next delivery, no log would name the child, and it would run on.
        * The task starts at most once, and the log has to know its lease before.
        * The task is a command, such as sending an event. The worker stores the command under its
          entry number, and without the log another delivery could use that number for a different
          step.
        """
        if state.parent is not None and state.origin is None:
            return False
        attempts = attempts_of(state)
        timers = [command for command in pending_commands(state) if isinstance(command, StartTimer)]
        return (
            bool(attempts)
            and not self._once(state)
            and all(timer.due_ms > held_until_ms for timer in timers)
            and all(
                (attempt.timeout_seconds or 0) <= FAST_PATH_TIMEOUT_SECONDS_MAX
                and _workflow_of(attempt) is None
                and not _is_command(attempt)
                and self._knows(attempt)
                for attempt in attempts
            )
        )

    def forget_intentions(self) -> None:
        """Drop the chosen attempts that have not begun, because another worker committed first
        (R5). Running attempts continue.
        """
        self.taken = {ticket for ticket in self.taken if ticket in self.begun}

    def _knows(self, attempt: Attempt) -> bool:
        workflow = _workflow_of(attempt)
        if workflow is not None:
            return workflow in self.setting.workflows.definitions
        if attempt.kind not in {"task", "pure"}:
            # This is a call of an AWS service. The worker makes the call without a function of the
            # user, and an unknown name fails in the call.
            return True
        return self.setting.knows(attempt.target, attempt.kind == "pure")

    def _places(self) -> int:
        """Return how many more attempts and polls of jobs may run at the same time."""
        return ATTEMPTS_IN_FLIGHT_MAX - len(self.begun)

    # -- beginning ---------------------------------------------------------------------------------

    def begin(
        self, program: Program, state: Execution, idle: list[RunAttempt], now_ms: int
    ) -> FactsResult:
        """Begin the attempts. Return the facts that are known at once: the function of a task is
        unknown, a called workflow was started, a limit makes an attempt wait, or a cache has the
        result.
        """
        known: list[Fact] = []
        for command in idle:
            fact = yield from self._begin(program, state, command, now_ms)
            if fact is not None:
                self.taken.discard(ticket_of(command.attempt))
                known.append(fact)
        return known

    def _begin(
        self, program: Program, state: Execution, command: RunAttempt, now_ms: int
    ) -> Generator[Effect, Any, Fact | None]:
        """Begin the attempt, or return the fact that is known at once."""
        attempt = command.attempt
        ticket = ticket_of(attempt)
        if not self._knows(attempt):
            return facts.TaskUnknown(*ticket)
        held = yield from self.permits.hold_back(attempt, state.workflow, now_ms)
        if held is not None:
            return held
        if _is_command(attempt):
            return (yield from self._carry_out(attempt))
        if _workflow_of(attempt) is not None:
            return (yield from self._start_workflow(attempt, now_ms))
        cache = self._cache_of(state.workflow, attempt)
        cached = yield from self._cached(cache, ticket, now_ms)
        # A cached result needs no permit. One that a gate has granted is taken, so that the end of
        # the delivery gives it back.
        if self._has_limits and (cached is None or ticket in self.permits.granted):
            self.permits.is_logged = self.log.state is not None
            refused = yield from self.permits.acquire(attempt, now_ms)
            if refused is not None:
                return refused
        if cached is not None:
            return cached
        deadline_ms = now_ms + self._run_seconds(attempt.timeout_seconds) * 1_000
        self.begun[ticket] = Begun(
            deadline_ms if attempt.timeout_seconds else 0,
            attempt.kind in ANSWERED_LATER,
            attempt=attempt,
            cache=cache,
        )
        self.has_run_tasks = True
        task = program.states[state.frames[command.frame].position]
        yield Begin(ticket, self._task(state, task, attempt, deadline_ms))
        return None

    def _cache_of(self, workflow: str, attempt: Attempt) -> CachePlace | None:
        """Return where the result of the attempt is stored; None for a task without a cache."""
        if self.setting.cache_of is None or attempt.kind != "task":
            return None
        rule = self.setting.cache_of(workflow, attempt.target)
        if rule is None:
            return None
        # Imported here for cold starts: most tasks have no cache.
        from holdfast.runtime.worker.cached_results import place_of  # noqa: PLC0415

        return place_of(rule, attempt.arguments)

    def _cached(
        self, cache: CachePlace | None, ticket: Ticket, now_ms: int
    ) -> Generator[Effect, Any, Fact | None]:
        if cache is None:
            return None
        from holdfast.runtime.worker import cached_results  # noqa: PLC0415  (as in `_cache_of`)

        return (yield from cached_results.find(self.log.tenant, cache, ticket, now_ms))

    def _keep(self, begun: Begun, result: TaskResult) -> NoResult:
        """Store the result of a task with a cache."""
        if begun.cache is not None and isinstance(result, TaskSucceeded):
            from holdfast.runtime.worker import cached_results  # noqa: PLC0415  (as in `_cache_of`)

            tenant, run = self.log.tenant, self.log.run
            yield from cached_results.keep(tenant, run, begun.cache, result.output)

    def _carry_out(self, attempt: Attempt) -> Generator[Effect, Any, Fact]:
        # Imported here for cold starts: most workers never carry out a command.
        from holdfast.runtime.worker.own_commands import carry_out  # noqa: PLC0415

        return (yield from carry_out(self.setting, self.log, self.permits, attempt))

    def _start_workflow(self, attempt: Attempt, now_ms: int) -> Generator[Effect, Any, Fact]:
        """Start the called workflow in this thread. It takes two effects and runs no task, only the
        constructors of the user's types.
        """
        workflows, programs = self.setting.workflows, self.setting.programs
        return (yield from call(self.log, programs, workflows, attempt, now_ms))

    def _task(
        self, state: Execution, task: State, waiting: Attempt | Awaiting, deadline_ms: int
    ) -> RunTask:
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
            resource=task.resource if isinstance(task, TaskState) else "",
            heartbeat_seconds=waiting.heartbeat_seconds,
            is_timed=isinstance(waiting, Attempt) and bool(waiting.timeout_seconds),
        )

    def poll(self, program: Callable[[], Program], now_ms: int) -> NoResult:
        """Poll the jobs whose poll is due: for the job's own wake message, or during a recovery.

        A poll changes nothing, so it may run before a commit, and twice. A job for which no place
        is free is polled at its own wake.
        """
        state = self.log.state
        assert state is not None
        if is_frozen(state):
            return
        for frame in state.frames.values():
            job = frame.waiting
            if not isinstance(job, Awaiting) or job.poll_due_ms is None:
                continue
            is_asked = self.delivery.is_recovering or self.delivery.is_wake_of(job.entry)
            is_due = job.poll_due_ms + 2 * CLOCK_ERROR_MS <= now_ms
            if is_due and is_asked and self._places():
                ticket = (job.entry, job.attempt)
                deadline_ms = now_ms + self._run_seconds(None) * 1_000
                self.begun[ticket] = Begun(0, is_answered_later=False, polls=job.polls)
                task = self._task(state, program().states[frame.position], job, deadline_ms)
                yield Begin(ticket, replace(task, is_poll=True, submitted=job.submitted))

    # -- ending ------------------------------------------------------------------------------------

    def collect(self, until_ms: int) -> FactsResult:
        """Return results of running attempts. Wait for them at most until `until_ms`, and at most
        until the first time-out of a running attempt.
        """
        timeouts = [begun.deadline_ms for begun in self.begun.values() if begun.deadline_ms]
        done = yield Finished(min([until_ms, *timeouts]))
        seen: list[Fact] = []
        for ticket, returned in done:
            begun = self.begun.get(ticket, _OVER)
            result = self._as_throttled(begun, returned)
            if isinstance(result, TaskThrottled):
                seen.append((yield from self._throttled(ticket, begun, result)))
                continue
            if begun.attempt is not None and self._has_limits:
                has_failed = isinstance(result, TaskFailed)
                yield from self.permits.note_outcome(begun.attempt, has_failed=has_failed)
            yield from self._keep(begun, result)
            later, polls = begun.is_answered_later, begun.polls
            seen.append(result_fact(ticket, result, is_answered_later=later, polls=polls))
        finished = {ticket for ticket, _ in done}
        now_ms = yield Clock()
        for ticket, begun in self.begun.items():
            is_over = begun.deadline_ms and begun.deadline_ms <= now_ms
            if is_over and ticket not in finished:
                seen.append(facts.TimedOut(*ticket))
                finished.add(ticket)
        for ticket in finished:
            # Forget the attempt, so that its result is dropped if it arrives after the time-out.
            self.begun.pop(ticket, None)
            self.taken.discard(ticket)
        return seen

    def release(self) -> NoResult:
        """Give back the permits (places under a limit) of attempts that no longer run."""
        over = [ticket for ticket in self.permits.held if ticket not in self.begun]
        if over:
            yield from self.permits.release(over)

    def _as_throttled(self, begun: Begun, result: TaskResult) -> TaskResult:
        """Return a service's throttling error as TaskThrottled if the service's action has limits.

        The name of such an error is `<Service>.<code>`, where the code may end in "Exception".
        """
        attempt = begun.attempt
        if not isinstance(result, TaskFailed) or not self._has_limits or attempt is None:
            return result
        code = (result.error or "").rpartition(".")[2]
        is_throttled = {code, code.removesuffix("Exception")} & AWS_THROTTLING_CODES
        if attempt.kind == "task" or not is_throttled or not self.permits.uses(attempt):
            return result
        return TaskThrottled(SERVICE_PAUSE_MS, result.cause)

    def _throttled(
        self, ticket: Ticket, begun: Begun, result: TaskThrottled
    ) -> Generator[Effect, Any, Fact]:
        """Slow down the limits of the task, and let the attempt wait. A task without limits
        fails.
        """
        if begun.attempt is not None:
            refused = yield from self.permits.throttle(begun.attempt, result.retry_after_ms)
            if refused is not None:
                return refused
        return facts.FailedWith(*ticket, THROTTLED, result.cause, result.traceback)


#: Stands for an attempt that was forgotten after its time-out. The core ignores the late result of
#: such an attempt.
_OVER = Begun(0, is_answered_later=False)


def _workflow_of(attempt: Attempt) -> str | None:
    """Return the workflow that the attempt calls or starts; None for every other task."""
    match attempt.kind:
        case "sync":
            return name_in(attempt.target)
        case "command":
            return started_by(attempt.target)
        case _:
            return None


def _is_command(attempt: Attempt) -> bool:
    """Return True for a command that the worker carries out itself (`own_commands.py`)."""
    return attempt.kind == "command" or is_request(attempt.kind, attempt.target)


def _arns(origin: MachineOrigin | None) -> tuple[str, ...]:
    return () if origin is None else (origin["state_machine_arn"], origin["execution_arn"])
