"""The permits and tokens of one delivery: taken before its attempts begin, given back after they
end.

Order. A task may have several limits. Every worker takes them in the same order: concurrency limits
by name, then rates, the slowest first. If one refuses, the worker gives the others back and the
attempt waits at that gate without any permit. If the attempt was let in by one gate and the next
one refuses, it keeps the permits that it has and waits there in front of all others (F17). Two
other designs would fail: if attempts waited with permits from the start, two limits could block
each other; if they gave everything back each time, two full gates could refuse two attempts in turn
for ever. A token cannot be kept while an attempt waits. So an attempt that was let in once takes
the next token of each further rate before those that wait there.

Rules of this file:
* F2  A permit is given back only by its owner; no count is decremented without that.
* F3  Without a lease in the log, a delivery does not use the permit that another delivery for the
  same attempt has: both would run with it, and the first to end would free it.
* F4  Every start takes its own token, also after a take-over.
* F5  The worker has the attempt's lease, or the start message implies it, before it takes a permit.
  So after a crash the log names the attempt that the permit belongs to.
* F13 A token is used within three seconds of its time, or another one is taken. Otherwise wakes
  that were delayed would all begin at once.
* F19 An attempt that fails gives its permits back before it waits for its retry.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import field, replace
from typing import Any, Final

from holdfast import resources
from holdfast.asl.program import Json
from holdfast.core.commands import argument_text
from holdfast.core.facts import Granted, Refused
from holdfast.core.state import BATCH_PREFIX, Admission, Attempt, Execution, Queued
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    CLAIM_GRACE_MS,
    CLAIM_SECONDS_DEFAULT,
    GATE_AHEAD_MS,
    GATE_TOKEN_MS,
    INLINE_TIMEOUT_SECONDS_MAX,
)
from holdfast.runtime import measuring
from holdfast.runtime.effects import Clock, Effect, Get, Measure, NoResult, Pause, Ticket
from holdfast.runtime.gates import dispense
from holdfast.runtime.gates import gate as gates
from holdfast.runtime.gates.gate import Gate, Permit, gate_from
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.queue import permit_id
from holdfast.runtime.gates.rules import (
    GateId,
    LimitRule,
    LimitUse,
    Settings,
    gate_of,
)
from holdfast.runtime.gates.scopes import Scope, covering, is_scope
from holdfast.runtime.storage import keys, tables

#: A worker tries one conditional write at most this often, each time with a newer state of the
#: gate.
_TRIES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Held:
    """One permit, or one token when `owner` is "". `until_ms` is the end of a permit or token that
    the gate has granted; 0 when the worker took it itself.
    """

    gate: GateId
    owner: str
    until_ms: int = 0


@dataclass
class Permits:
    """The permits of one delivery. Mutable. `granted` are those that the wake of this delivery
    brought.

    `is_logged`: the execution has a log, so the leases of this delivery are written there.
    """

    memory: GateMemory
    tenant: str
    run: str
    owner: str
    held: dict[Ticket, list[Held]] = field(default_factory=dict)
    granted: dict[Ticket, Held] = field(default_factory=dict)
    is_logged: bool = False
    #: The longest time for which an attempt may run on this worker
    #: (`WorkerConfig.attempt_seconds_max`).
    seconds_max: int = INLINE_TIMEOUT_SECONDS_MAX

    def uses(self, attempt: Attempt) -> tuple[LimitUse, ...]:
        """Return the limits of the attempt's task, in the order in which workers take them."""
        uses = () if attempt.kind == "pure" else self.memory.book.uses(attempt.target)
        return in_order(uses)

    # -- before an execution begins ----------------------------------------------------------------

    def admit(
        self, tenant: str, workflow: str, data: Json, definition: str, *, now_ms: int
    ) -> Generator[Effect, Any, Refused | None]:
        """Return None when an execution may begin: no pause covers it, and every limit of its
        workflow has room. Otherwise return its place in the queue. `definition` is the hash of the
        definition with which it begins: a later start needs no place while it waits.

        Every worker of the execution shares its permit, whose owner is the tenant. So a second
        delivery of the start finds the permit and continues.
        """
        paused = yield from self.memory.pause_of(covering(workflow), now_ms)
        if paused is not None:
            return _held_by(paused, (0, 0), now_ms)
        uses = self.memory.book.of_workflow.get(workflow, ())
        if not uses or _is_waiting(definition):
            return None
        taken: list[GateId] = []
        for use in in_order(uses):
            rule = yield from self.memory.rule(use.rule, now_ms)
            gate_id = gate_of(use, rule, data, self.run)
            if not (yield from self._may_begin(gate_id, rule, tenant, now_ms)):
                for other in taken:
                    yield from self._leave(other, tenant, now_ms)
                return Refused(0, 0, self._place(gate_id, use, data, now_ms))
            taken.append(gate_id)
        return None

    def _may_begin(
        self, gate_id: GateId, rule: LimitRule, tenant: str, now_ms: int
    ) -> Generator[Effect, Any, bool]:
        part = rule.of_shard(gate_id.shard)
        if rule.is_paused:
            return False
        if part.is_rate:
            return (yield from self._take_token(gate_id, part, now_ms)) is not None
        permit = Permit(gates.NEVER_MS, tenant)
        gate = Gate(permits={})
        for _ in range(_TRIES_MAX):
            written = yield gates.take_permit(
                gate_id, part, gate, now_ms, permit_id=self.run, permit=permit
            )
            gate = self.memory.see(gate_id, written.item, now_ms)
            if written.is_done or self.run in gate.permits:
                return True
            if gate.has_waiters or not gates.may_take_permit(part, gate, now_ms):
                return False
        return False

    def leave_workflow(self, state: Execution) -> NoResult:
        """Give back the permit of an ended execution, and let the next execution begin."""
        for use in self.memory.book.of_workflow.get(state.workflow, ()):
            if not use.rule.is_rate:
                now_ms = yield Clock()
                rule = yield from self.memory.rule(use.rule, now_ms)
                gate_id = gate_of(use, rule, _input_of(state), self.run)
                yield from self._leave(gate_id, self.tenant, now_ms)

    def _leave(self, gate_id: GateId, tenant: str, now_ms: int) -> NoResult:
        yield from self._give_permit_back(Held(gate_id, tenant), (0, 0), now_ms)

    # -- before an attempt begins ------------------------------------------------------------------

    def hold_back(
        self, attempt: Attempt, workflow: str, now_ms: int
    ) -> Generator[Effect, Any, Refused | None]:
        """Return the place of an attempt whose task, workflow or stack is paused; None without a
        pause. If a gate has granted it a permit, the next attempt in that gate's queue gets the
        permit.
        """
        paused = yield from self.memory.pause_of(covering(workflow, attempt), now_ms)
        if paused is None:
            return None
        granted = self.granted.pop((attempt.entry, attempt.attempt), None)
        if granted is not None:
            yield from self._give_back([granted], attempt, now_ms)
        return _held_by(paused, (attempt.entry, attempt.attempt), now_ms)

    def acquire(self, attempt: Attempt, now_ms: int) -> Generator[Effect, Any, Refused | None]:
        """Return None when every limit of the attempt lets it begin; otherwise the fact that it was
        refused.
        """
        ticket = (attempt.entry, attempt.attempt)
        if attempt.kind == "task" and attempt.target in self.memory.book.batches:
            gate_id = GateId(f"{BATCH_PREFIX}{attempt.target}", self.tenant)
            return Refused(*ticket, Queued(str(gate_id), now_ms))
        granted = self.granted.pop(ticket, None)
        taken: list[Held] = []
        for use in self.uses(attempt):
            rule = yield from self.memory.rule(use.rule, now_ms)
            gate_id = gate_of(use, rule, attempt.arguments, self.run)
            found = yield from self._take(gate_id, rule, attempt, granted, now_ms)
            if found is not None:
                taken.append(found)
                continue
            is_passed = granted is not None and granted.gate != gate_id
            kept = tuple((one.gate, one.owner) for one in taken if one.owner) if is_passed else ()
            yield from self._give_back(
                [one for one in taken if (one.gate, one.owner) not in kept], attempt, now_ms
            )
            if granted is not None and granted.owner and granted not in taken:
                yield from self._give_back([granted], attempt, now_ms)
            queued = replace(
                self._place(gate_id, use, attempt.arguments, now_ms),
                kept=tuple((str(gate), owner) for gate, owner in kept),
                is_front=is_passed,
            )
            return Refused(*ticket, queued)
        if not taken:
            return None
        if (yield Clock()) - now_ms > GATE_TOKEN_MS + 2 * GATE_AHEAD_MS:
            # The host was suspended between the first permit and now, so some permits and tokens
            # may have expired. Give all of them back and queue the attempt again.
            yield from self._give_back(taken, attempt, now_ms)
            use = self.uses(attempt)[0]
            return Refused(*ticket, self._place(taken[0].gate, use, attempt.arguments, now_ms))
        self.held[ticket] = taken
        return None

    def _place(self, gate_id: GateId, use: LimitUse, arguments: Json, now_ms: int) -> Queued:
        """Return the attempt's place in the queue of the limit that has refused it."""
        fair = "" if use.fair is None else argument_text(arguments, use.fair)
        return Queued(str(gate_id), now_ms, fair)

    def _take(
        self,
        gate_id: GateId,
        rule: LimitRule,
        attempt: Attempt,
        granted: Held | None,
        now_ms: int,
    ) -> Generator[Effect, Any, Held | None]:
        part = rule.of_shard(gate_id.shard)
        if granted is not None and granted.gate == gate_id:
            if now_ms <= granted.until_ms:
                if not granted.owner:
                    yield from _wait_for_slot(granted.until_ms - GATE_TOKEN_MS - now_ms)
                return granted
            if granted.owner:
                return (yield from self._keep(granted, attempt, now_ms))
            return (yield from self._take_next(gate_id, part))
        if rule.is_paused:
            return None
        if granted is not None and part.is_rate:
            # A token expires soon, so an attempt cannot keep it while it waits at another gate.
            # Take the token now. Otherwise an attempt with two rates would lose the token of one
            # rate while it waits for the other.
            return (yield from self._take_next(gate_id, part))
        # An attempt that another gate let begin, or that another worker took over, may already have
        # a permit at this gate. So the read of the gate is skipped only for a new attempt.
        is_new = granted is None and not attempt.takeovers
        if is_new and self.memory.is_busy(gate_id, now_ms):
            return None
        if part.is_rate:
            return (yield from self._take_token(gate_id, part, now_ms))
        return (yield from self._take_permit(gate_id, part, attempt, now_ms))

    def _take_token(
        self, gate_id: GateId, rule: LimitRule, now_ms: int
    ) -> Generator[Effect, Any, Held | None]:
        gate = self.memory.seen(gate_id)
        for _ in range(_TRIES_MAX):
            written = yield gates.take_token(gate_id, rule, gate, now_ms)
            gate = self.memory.see(gate_id, written.item, now_ms)
            if written.is_done:
                return Held(gate_id, "")
            is_full = not gates.may_take_token(rule, gate, now_ms)
            if gate.has_waiters or gate.is_closed(now_ms) or is_full:
                return None
        return None

    def _take_next(self, gate_id: GateId, rule: LimitRule) -> Generator[Effect, Any, Held | None]:
        is_taken = yield from take_next_token(self.memory, gate_id, rule)
        return Held(gate_id, "") if is_taken else None

    def _take_permit(
        self, gate_id: GateId, rule: LimitRule, attempt: Attempt, now_ms: int
    ) -> Generator[Effect, Any, Held | None]:
        name = permit_id(self.run, attempt.entry, attempt.attempt)
        permit = Permit(_until_ms(attempt, now_ms, self.seconds_max), self.owner)
        gate = self.memory.seen(gate_id)
        if not gates.may_take_permit(rule, gate, now_ms):
            # The gate was full when it was last read, and may have room by now. Try the conditional
            # write as if it were empty: the write is refused if the gate is still full.
            gate = Gate(permits={})
        for _ in range(_TRIES_MAX):
            written = yield gates.take_permit(
                gate_id, rule, gate, now_ms, permit_id=name, permit=permit
            )
            gate = self.memory.see(gate_id, written.item, now_ms)
            if written.is_done:
                return Held(gate_id, self.owner)
            mine = gate.permits.get(name)
            claim = attempt.claim if self.is_logged else None
            is_ours = claim is not None and claim.owner == self.owner
            if mine is not None and not is_ours and not mine.has_lapsed(now_ms):
                # Another delivery of the same message runs the attempt, so this worker must not
                # (F3).
                return None
            if mine is not None:
                # This permit belongs to the attempt: the attempt kept it, the gate granted it, or a
                # worker that has crashed took it. Take it over instead of a second one.
                written = yield gates.own_permit(gate_id, name, permit, mine.owner, now_ms)
                gate = self.memory.see(gate_id, written.item, now_ms)
                if written.is_done:
                    return Held(gate_id, self.owner)
                continue
            is_full = not gates.may_take_permit(rule, gate, now_ms)
            if gate.has_waiters or gate.is_closed(now_ms) or is_full:
                return None
        return None

    def _keep(
        self, granted: Held, attempt: Attempt, now_ms: int
    ) -> Generator[Effect, Any, Held | None]:
        """Extend a granted permit whose wake was delayed; otherwise it could expire while the
        attempt runs. Return None when another attempt has the place by now.
        """
        name = permit_id(self.run, attempt.entry, attempt.attempt)
        permit = Permit(_until_ms(attempt, now_ms, self.seconds_max), self.owner)
        written = yield gates.own_permit(granted.gate, name, permit, granted.owner, now_ms)
        return Held(granted.gate, self.owner) if written.is_done else None

    # -- after an attempt has ended ----------------------------------------------------------------

    def release(self, tickets: list[Ticket]) -> NoResult:
        """Give back the permits of ended attempts, and let waiting attempts begin."""
        for ticket in tickets:
            held = self.held.pop(ticket, [])
            if any(one.owner for one in held):
                now_ms = yield Clock()
                for one in held:
                    if one.owner:
                        yield from self._give_permit_back(one, ticket, now_ms)

    def let_in(
        self, body: Any, state: Execution
    ) -> Generator[Effect, Any, list[Granted | Refused]]:
        """Return the fact that a gate has let an attempt or execution begin; nothing if that wait
        has ended.
        """
        ticket = (int(body["entry"]), int(body["attempt"]))
        frame = state.frame_of(ticket[0])
        waiting = None if frame is None else frame.waiting
        queued = waiting.queued if isinstance(waiting, Attempt | Admission) else None
        if queued is None or queued.gate != body["gate"] or state.paused is not None:
            yield from self.refuse_grant(body, state)
            return []
        now_ms = yield Clock()
        if is_scope(GateId.parse(queued.gate).limit):
            return (yield from self._let_go(ticket, queued, state, now_ms))
        waited_ms = max(0, now_ms - queued.since_ms)
        labels = measuring.labels_of(state)._replace(limit=GateId.parse(queued.gate).limit)
        yield Measure(resources.METRIC_LIMIT_WAIT, waited_ms / 1_000, "Seconds", labels)
        if isinstance(waiting, Attempt):
            held = Held(GateId.parse(body["gate"]), body["own"], body["until"])
            self.granted[ticket] = held
        return [Granted(*ticket, body["gate"])]

    def _let_go(
        self, ticket: Ticket, queued: Queued, state: Execution, now_ms: int
    ) -> Generator[Effect, Any, list[Granted | Refused]]:
        """Let an attempt or execution begin after a pause. An execution still needs the limits of
        its workflow first; an attempt takes its limits when it begins.
        """
        if ticket[1] == 0:
            place = yield from self.admit(
                self.tenant, state.workflow, state.input, state.definition, now_ms=now_ms
            )
            if place is not None:
                return [replace(place, entry=ticket[0])]
        return [Granted(*ticket, queued.gate)]

    def refuse_grant(self, body: Any, state: Execution) -> NoResult:
        """Handle the wake of a grant for which there is no attempt to begin: it has ended, or its
        execution is paused. Give its permit back, unless an earlier wake has begun the attempt and
        it still runs.
        """
        ticket = (int(body["entry"]), int(body["attempt"]))
        frame = state.frame_of(ticket[0])
        waiting = None if frame is None else frame.waiting
        if ticket[1] == 0 and not state.is_ended and not isinstance(waiting, Admission):
            # An earlier wake has already begun the execution, which still uses its permit.
            return
        is_open = isinstance(waiting, Attempt) and waiting.attempt == ticket[1]
        if body["own"] and (not is_open or state.paused is not None):
            held = Held(GateId.parse(body["gate"]), body["own"])
            yield from self._give_permit_back(held, ticket, (yield Clock()))

    def _give_back(self, taken: list[Held], attempt: Attempt, now_ms: int) -> NoResult:
        for one in taken:
            if one.owner:
                ticket = (attempt.entry, attempt.attempt)
                yield from self._give_permit_back(one, ticket, now_ms)
                continue
            declared = self.memory.book.rule(one.gate.limit)
            if declared is not None:
                rule = (yield from self.memory.rule(declared, now_ms)).of_shard(one.gate.shard)
                seen = self.memory.seen(one.gate)
                yield gates.give_token_back(one.gate, rule, seen, now_ms)

    def _give_permit_back(self, held: Held, ticket: Ticket, now_ms: int) -> NoResult:
        name = permit_id(self.run, *ticket)
        written = yield gates.give_permit_back(held.gate, name, held.owner, now_ms)
        gate = self.memory.see(held.gate, written.item, now_ms)
        if written.is_done and gate.has_waiters:
            owner = f"{self.owner}.{ticket[0]}.{ticket[1]}"
            yield from dispense.after_release(self.memory, held.gate, gate, owner, now_ms)

    # -- slowing down ------------------------------------------------------------------------------

    def throttle(
        self, attempt: Attempt, retry_after_ms: int
    ) -> Generator[Effect, Any, Refused | None]:
        """Slow down the limits of an attempt's task, because the dependency asked to be called
        later. Every rate slows down; a task without rates slows down all its limits. The attempt
        waits at the first of them. Return None when the task has no limits.
        """
        uses = self.uses(attempt)
        chosen = [use for use in uses if use.rule.is_rate] or list(uses)
        now_ms = yield Clock()
        first: Refused | None = None
        for use in chosen:
            rule = yield from self.memory.rule(use.rule, now_ms)
            gate_id = gate_of(use, rule, attempt.arguments, self.run)
            yield from slow_down(self.memory, gate_id, rule, retry_after_ms)
            if first is None:
                place = self._place(gate_id, use, attempt.arguments, now_ms)
                first = Refused(attempt.entry, attempt.attempt, place)
        return first

    def note_outcome(self, attempt: Attempt, *, has_failed: bool) -> NoResult:
        """Count the outcome for the circuit breakers of the attempt's limits. A success costs a
        write only if this process has seen failures.
        """
        for use in self.uses(attempt):
            if use.rule.trip is None:
                continue
            now_ms = yield Clock()
            rule = yield from self.memory.rule(use.rule, now_ms)
            gate_id = gate_of(use, rule, attempt.arguments, self.run)
            if has_failed:
                yield from self._count_failure(gate_id, rule, now_ms)
            elif self.memory.seen(gate_id).failures:
                written = yield gates.forget_failures(gate_id, now_ms)
                self.memory.see(gate_id, written.item, now_ms)

    def _count_failure(self, gate_id: GateId, rule: LimitRule, now_ms: int) -> NoResult:
        assert rule.trip is not None
        gate = self.memory.seen(gate_id)
        for _ in range(_TRIES_MAX):
            written = yield gates.count_failure(gate_id, rule, gate, now_ms)
            gate = self.memory.see(gate_id, written.item, now_ms)
            if written.is_done:
                break
        if gate.failures >= rule.trip.failures and not gate.is_closed(now_ms):
            written = yield gates.trip(gate_id, rule, gate, now_ms)
            gate = self.memory.see(gate_id, written.item, now_ms)
            if written.is_done:
                yield from dispense.reopen(gate_id, gate, now_ms)


def take_next_token(
    memory: GateMemory, gate_id: GateId, rule: LimitRule
) -> Generator[Effect, Any, bool]:
    """Take the next token, before attempts that wait, if it is free within seconds; then wait for
    its time.

    F13: without this, if all workers were slow for long, every wake would come too late for its
    token, and no attempt would ever begin.
    """
    for _ in range(_TRIES_MAX):
        now_ms = yield Clock()
        gate = gate_from((yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)))
        slot_ms = gates.slot_ms(rule, gate, gate.tat_us, now_ms)
        if gate.is_closed(now_ms) or slot_ms - now_ms > 2 * GATE_AHEAD_MS:
            return False
        written = yield gates.reserve_token(gate_id, rule, gate, now_ms)
        memory.see(gate_id, written.item, now_ms)
        if written.is_done:
            yield from _wait_for_slot(slot_ms - now_ms)
            return True
    return False


def slow_down(memory: GateMemory, gate_id: GateId, rule: LimitRule, hold_ms: int) -> NoResult:
    """Slow the limit down (F20). The first refusal slows it; refusals of calls that were already
    under way slow it further.
    """
    part = rule.of_shard(gate_id.shard)
    for _ in range(_TRIES_MAX):
        now_ms = yield Clock()
        gate = gate_from((yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)))
        is_first = not gates.is_slowing(gate, now_ms)
        if not is_first and not part.is_rate:
            if gate.is_closed(now_ms):
                # The refused call was under way when the limit closed.
                return
            # The limit has opened since the last refusal, and this call began after it. Without
            # another pause, the dependency would be called again at once.
            is_first = True
        slower = gates.slow_down if is_first else gates.slow_further
        written = yield slower(gate_id, part, gate, now_ms, hold_ms)
        gate = memory.see(gate_id, written.item, now_ms)
        if is_first and written.is_done:
            yield from dispense.reopen(gate_id, gate, now_ms)
        if written.is_done or not is_first:
            return


def _wait_for_slot(left_ms: int) -> NoResult:
    """Wait for the rest of a second until the token's time, because SQS delays a message by whole
    seconds.

    Otherwise all starts of a second would come at its beginning, and a dependency with a small
    burst would refuse most of them.
    """
    if left_ms > 0:
        yield Pause(min(left_ms, 2 * GATE_AHEAD_MS))


def _held_by(paused: tuple[Scope, Settings], ticket: Ticket, now_ms: int) -> Refused:
    scope, settings = paused
    queued = Queued(str(GateId(scope.gate)), now_ms)
    return Refused(*ticket, queued, settings.reason, settings.paused_by)


def in_order(uses: Iterable[LimitUse]) -> tuple[LimitUse, ...]:
    """Return the limits in the order in which every worker takes them."""
    return tuple(sorted(uses, key=_order))


def _order(use: LimitUse) -> tuple[int, int, str]:
    """Order concurrency limits first, then rates. The slowest rate comes first, because its token
    takes the longest to replace.
    """
    interval_us = use.rule.interval_us
    return (1, -interval_us, use.rule.name) if interval_us is not None else (0, 0, use.rule.name)


def _until_ms(attempt: Attempt, now_ms: int, seconds_max: int) -> int:
    """Return the end of the attempt's lease: a permit is valid as long."""
    if attempt.claim is not None:
        return attempt.claim.until_ms
    seconds = min(attempt.timeout_seconds or CLAIM_SECONDS_DEFAULT, seconds_max)
    return now_ms + seconds * 1_000 + CLAIM_GRACE_MS


def _is_waiting(definition: str) -> bool:
    # Imported here for cold starts: few workflows have limits.
    from holdfast.core.later import is_waiting  # noqa: PLC0415

    return is_waiting(definition)


def _input_of(state: Execution) -> Json:
    """Return the input of the workflow, also when a later start was stopped before it began."""
    written: Any = state.input
    return written["arguments"] if _is_waiting(state.definition) else state.input
