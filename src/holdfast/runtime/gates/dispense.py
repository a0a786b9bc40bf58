"""Dispensers: a worker that freed a place, or a tick message, lets waiting attempts begin.

The problem. An attempt that waits at a gate uses no worker, so it cannot check whether its turn has
come. Something else must wake the right attempt, in the right order, as soon as there is room, and
only as many as there is room for.

    concurrency   a worker gives its permit back ─► the gate says that attempts wait
                  ─► the same worker gives the place to the next row and wakes it
    rate          a tick (a delayed message) arrives together with the next token
                  ─► gives out the tokens of the next two seconds ─► sends the next tick

Ticks. One chain of ticks serves a queue. Each tick increments the chain's number `tn` in the same
write in which it gives out tokens or permits, and the next tick carries the new number. A duplicate
tick, or a tick of an older chain, finds another number and is dropped (F15). The queue of a
concurrency limit has a chain, too: one tick a minute, or when the next permit expires, because a
worker may crash between giving its permit back and waking the next attempt.

Rules of this file:
* F8  A dispenser that finds the queue empty clears the mark `w`, then reads the queue again: an
  attempt may have put its row in between. In the reverse order that attempt would wait for ever.
* F10 First the permit is granted, then the wake is sent: the woken worker must find its permit.
* F12 If a write gets no answer, the gate's item names the message that wrote it, so the next
  delivery of the tick knows.
* F22 Turns are decided when rows are taken and not when they are put, so new weights apply to the
  whole queue.

Example: rate 20/s, burst 1, 100 rows.

    12:00:00.000  tick 7: tokens for 0.00, 0.05, … 2.00 s: 41 rows; tat, tn = 8: one write
                  41 wakes with delays of 0, 1 and 2 s; the rows are deleted; tick 8 in 1 s
    12:00:01.000  tick 8: 20 more rows
    12:00:04.000  tick 11: the last rows; `w` is cleared; no row is left: the chain ends
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from holdfast.core.commands import JoinQueue
from holdfast.core.run_ids import TIME_CHARACTERS, digits
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    CLAIM_GRACE_MS,
    CLAIM_SECONDS_DEFAULT,
    CLOCK_ERROR_MS,
    GATE_AHEAD_MS,
    GATE_GRANTS_MAX,
    GATE_HANDOVER_MS,
    GATE_TICK_MS_MAX,
    GATE_TOKEN_MS,
    SQS_DELAY_SECONDS_MAX,
)
from holdfast.runtime import messages
from holdfast.runtime.effects import (
    Clock,
    Condition,
    Delete,
    Effect,
    Get,
    Item,
    Message,
    NoResult,
    Put,
    Query,
    Send,
    Update,
)
from holdfast.runtime.gates import gate as gates
from holdfast.runtime.gates import queue
from holdfast.runtime.gates.gate import OWNER, UNTIL, Gate, Permit, gate_from
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.queue import Choice, Waiter
from holdfast.runtime.gates.rules import NO_KEY, GateId, LimitRule
from holdfast.runtime.storage import keys, tables

#: After this many refused writes in a row a worker stops processing a tick, and SQS delivers the
#: tick again.
_RACES_MAX: Final = 8
#: The time until the next tick while a limit is paused. A resume starts a new chain of ticks.
_REST_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Chain:
    """The tick that this worker processes: its number in the chain, and the id of its message."""

    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Dispenser:
    """The work of one dispenser at one gate. `chain` is that of the tick; None for a worker that
    has given a permit back. `owner` is the prefix of the owners in the permits that it grants.
    """

    gate_id: GateId
    rule: LimitRule
    owner: str
    chain: Chain | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """An attempt that the gate lets begin: the owner of its permit ("" for a token), and the
    earliest time of its begin.
    """

    waiter: Waiter
    owner: str
    slot_ms: int


@dataclass(frozen=True, slots=True)
class Round:
    """One write of a dispenser: the permits or tokens that it grants, and the time of the next
    tick.
    """

    write: Update
    grants: tuple[Grant, ...]
    choice: Choice
    next_ms: int


# -- joining and leaving a queue -------------------------------------------------------------------


def join(
    tenant: str, run: str, command: JoinQueue, now_ms: int, more: Item | None = None
) -> NoResult:
    """Put the row of a waiting attempt, then read the gate (F7). If its queue has no chain of
    ticks, start one.

    `more` are attributes of the row besides those that give its place.
    """
    yield Put(tables.MAIL, {**queue.row_of(tenant, run, command, now_ms), **(more or {})})
    yield from _serve_from_now_on(GateId.parse(command.queued.gate), now_ms)


def leave(run: str, command: JoinQueue) -> NoResult:
    yield Delete(tables.MAIL, keys.queue(command.queued.gate), queue.row_key(run, command))


def _serve_from_now_on(gate_id: GateId, now_ms: int) -> NoResult:
    item = yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)
    gate = gate_from(item)
    if gate.has_waiters and not gate.is_chain_dead(now_ms):
        return
    begun = yield gates.begin_chain(gate_id, gate, now_ms)
    if begun.is_done:
        yield next_tick(gate_id, gate_from(begun.item).chain, 0)


def next_tick(gate_id: GateId, chain: int, delay_seconds: int) -> Send:
    return Send((Message(messages.tick(str(gate_id), chain), delay_seconds),))


# -- dispensing ------------------------------------------------------------------------------------


def tick(memory: GateMemory, body: Any, message: str, owner: str) -> Generator[Effect, Any, bool]:
    """Process a tick. Return True when its message may be deleted. False when this code does not
    know the limit, or when every write was refused because the gate had changed: SQS then delivers
    the tick again.
    """
    gate_id, chain = GateId.parse(body["gate"]), Chain(int(body["chain"]), message)
    declared = memory.book.rule(gate_id.limit)
    if declared is None:
        return False
    now_ms = yield Clock()
    rule = (yield from memory.rule(declared, now_ms, is_fresh=True)).of_shard(gate_id.shard)
    for _ in range(_RACES_MAX):
        now_ms = yield Clock()
        gate = gate_from((yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)))
        if gate.chain_message == message and gate.chain == chain.number + 1:
            # An earlier delivery of this tick has incremented the number of the chain and then
            # crashed. Continue with the new number; otherwise the chain would end here.
            chain = Chain(gate.chain, message)
        if gate.chain != chain.number or not gate.has_waiters:
            return True
        if rule.is_paused:
            yield from _rest(gate_id, chain, now_ms, rule.paused_until_ms)
            return True
        gate = yield from _forget_ended(gate_id, gate, now_ms)
        step = yield from _plan(Dispenser(gate_id, rule, owner, chain), gate, now_ms)
        written = yield step.write
        if written.is_done:
            yield from _let_in(gate_id, step, now_ms)
            yield from _go_on(gate_id, gate_from(written.item), step, now_ms)
            return True
    return False


def _forget_ended(gate_id: GateId, gate: Gate, now_ms: int) -> Generator[Effect, Any, Gate]:
    """Return the gate without the permit of its oldest execution, if that execution has ended.

    The permit of an execution never expires. The worker that ends the execution gives it back, but
    may crash before. This check, once in each tick, gives it back then.
    """
    held = sorted(name for name, one in gate.permits.items() if one.until_ms == gates.NEVER_MS)
    if not held:
        return gate
    run, tenant = held[0], gate.permits[held[0]].owner
    newest = yield Query(tables.EXECUTIONS, keys.execution(tenant, run), reverse=True, limit=1)
    if not newest or newest[0]["st"] == "RUNNING":
        return gate
    written = yield gates.give_permit_back(gate_id, run, tenant, now_ms)
    return gate_from(written.item)


def after_release(
    memory: GateMemory, gate_id: GateId, gate: Gate, owner: str, now_ms: int
) -> NoResult:
    """Let waiting attempts begin after this worker has given a permit back."""
    declared = memory.book.rule(gate_id.limit)
    if declared is None:
        return
    rule = (yield from memory.rule(declared, now_ms)).of_shard(gate_id.shard)
    for _ in range(_RACES_MAX):
        if not gate.has_waiters or rule.is_paused or gate.is_closed(now_ms):
            return
        step = yield from _plan(Dispenser(gate_id, rule, owner), gate, now_ms)
        if not step.grants and not step.choice.is_all:
            # Another dispenser has already given the free place to an attempt.
            return
        written = yield step.write
        gate = gate_from(written.item)
        if written.is_done:
            yield from _let_in(gate_id, step, now_ms)
            if step.choice.is_all:
                yield from empty(gate_id, gate.chain, now_ms)
            return


def _rest(gate_id: GateId, chain: Chain, now_ms: int, until_ms: int) -> NoResult:
    """Send the next tick of a paused queue. `until_ms` is the end of the pause, if it has one.

    A tick comes at that end, or as close before it as a message can be delayed. A resume starts new
    chains at the gates of a limit without keys. The gates of a limit with keys are not known to it,
    so their queues keep a tick a minute.
    """
    has_tick = gate_id.key != NO_KEY or until_ms > now_ms
    due_ms = now_ms + (GATE_TICK_MS_MAX if gate_id.key != NO_KEY else _REST_MS)
    if until_ms > now_ms:
        due_ms = _within(min(due_ms, until_ms), now_ms)
    mine = Condition("tn", "=", chain.number)
    put: dict[str, str | int] = {"nx": due_ms, "tm": chain.message}
    written = yield gates.update(gate_id, now_ms, mine, put=put, add={"tn": 1}, ends_ms=due_ms)
    if written.is_done and has_tick:
        yield next_tick(gate_id, chain.number + 1, -(-(due_ms - now_ms) // 1_000))


def reopen(gate_id: GateId, gate: Gate, now_ms: int) -> NoResult:
    """Start a new chain for the queue of a limit that was closed for a while. The first tick comes
    when the limit opens, because the next tick of the old chain may be a minute away.
    """
    if gate.has_waiters:
        begun = yield gates.begin_chain(gate_id, gate, now_ms, gate.closed_ms)
        if begun.is_done:
            delay_seconds = -(-(gate.closed_ms - now_ms) // 1_000)
            within = min(max(0, delay_seconds), SQS_DELAY_SECONDS_MAX)
            yield next_tick(gate_id, gate_from(begun.item).chain, within)


def _plan(dispenser: Dispenser, gate: Gate, now_ms: int) -> Generator[Effect, Any, Round]:
    plan = _plan_tokens if dispenser.rule.is_rate else _plan_permits
    return (yield from plan(dispenser, gate, now_ms))


def _plan_tokens(dispenser: Dispenser, gate: Gate, now_ms: int) -> Generator[Effect, Any, Round]:
    gate_id, rule = dispenser.gate_id, dispenser.rule
    slots = gates.tokens_until(rule, gate, now_ms, now_ms + GATE_AHEAD_MS, GATE_GRANTS_MAX)
    choice = Choice((), gate.cursor, is_all=False)
    if slots:
        choice = yield from queue.choose(str(gate_id), rule, gate.cursor, len(slots))
    slots = slots[: len(choice.waiters)]
    put: dict[str, str | int] = {"cu": choice.cursor}
    where = [_same("tat", gate.tat_us)]
    after = gate
    if slots:
        put["tat"] = gates.tat_after(rule, gate, now_ms, slots)
        after = Gate(tat_us=int(put["tat"]), permits={}, closed_ms=gate.closed_ms)
    next_slot_ms = gates.tokens_until(rule, after, now_ms, now_ms + _REST_MS, 1)
    due_ms = (next_slot_ms[0] if next_slot_ms else now_ms + _REST_MS) - GATE_AHEAD_MS
    due_ms = _within(due_ms, now_ms)
    grants = tuple(
        Grant(waiter, "", slot) for waiter, slot in zip(choice.waiters, slots, strict=True)
    )
    write = _write(dispenser, now_ms, due_ms, where=where, put=put)
    return Round(write, grants, choice, due_ms)


def _plan_permits(dispenser: Dispenser, gate: Gate, now_ms: int) -> Generator[Effect, Any, Round]:
    gate_id, rule, owner = dispenser.gate_id, dispenser.rule, dispenser.owner
    dead = gates.lapsed(gate, now_ms)
    is_open = not gate.is_closed(now_ms)
    free = max(0, gate.places(rule, now_ms) - (gate.count - len(dead))) if is_open else 0
    choice = Choice((), gate.cursor, is_all=False)
    if free:
        choice = yield from queue.choose(str(gate_id), rule, gate.cursor, free)
    put: dict[str, str | int] = {"cu": choice.cursor}
    where = [_same("n", gate.count)]
    grants: list[Grant] = []
    for waiter in choice.waiters:
        held = gate.permits.get(waiter.permit_id)
        own = _permit_for(waiter, owner, now_ms)
        if held is None:
            where.append(Condition(UNTIL + waiter.permit_id, "absent"))
        else:
            # The attempt already has a permit, which the new one replaces. So the place must be
            # counted only once.
            where.append(_same(UNTIL + waiter.permit_id, held.until_ms))
            where.append(Condition(OWNER + waiter.permit_id, "=", held.owner))
            if waiter.permit_id in dead:
                dead.remove(waiter.permit_id)
            else:
                own = _again(held, own)
        put[UNTIL + waiter.permit_id] = own.until_ms
        put[OWNER + waiter.permit_id] = own.owner
        grants.append(Grant(waiter, own.owner, now_ms))
    where += [_same(UNTIL + name, gate.permits[name].until_ms) for name in dead]
    remove = tuple(prefix + name for name in dead for prefix in (UNTIL, OWNER))
    granted = {name.removeprefix(UNTIL) for name in put if name.startswith(UNTIL)}
    more = sum(name not in gate.permits for name in granted) - len(dead)
    ends_ms = [permit.until_ms for name, permit in gate.permits.items() if name not in dead]
    ends_ms += [int(value) for name, value in put.items() if name.startswith(UNTIL)]
    due_ms = min(ends_ms, default=now_ms) + 2 * CLOCK_ERROR_MS + 1_000
    if gate.is_closed(now_ms):
        due_ms = gate.closed_ms
    due_ms = _within(min(due_ms, now_ms + GATE_TICK_MS_MAX), now_ms)
    write = _write(dispenser, now_ms, due_ms, where=where, put=put, add={"n": more}, remove=remove)
    return Round(write, tuple(grants), choice, due_ms)


def _permit_for(waiter: Waiter, owner: str, now_ms: int) -> Permit:
    """Return a new permit. Its owner ends with the time at which this wait began: the next try of
    an attempt that was refused has the same attempt number, and waits anew.
    """
    if waiter.attempt == 0:
        return Permit(gates.NEVER_MS, waiter.tenant)
    run_seconds = waiter.run_seconds or CLAIM_SECONDS_DEFAULT
    until_ms = now_ms + GATE_HANDOVER_MS + run_seconds * 1_000 + CLAIM_GRACE_MS
    return Permit(until_ms, f"{owner}.{digits(waiter.since_ms, TIME_CHARACTERS)}")


def _again(held: Permit, own: Permit) -> Permit:
    """Return the permit for a row whose attempt has one.

    A dispenser has granted it to this wait before, and crashed or has not deleted the row yet. A
    wake with that owner may be under way, so the owner stays, and the permit lasts as long as a new
    one. Else it is the permit of the try before this wait. Its worker may be frozen, and must not
    give back the permit of this try: it gets a new owner.
    """
    is_of_this_wait = held.owner.rpartition(".")[2] == own.owner.rpartition(".")[2]
    owner = held.owner if is_of_this_wait else own.owner
    return Permit(max(held.until_ms, own.until_ms), owner)


def _within(due_ms: int, now_ms: int) -> int:
    """Return the time of the next tick: at least a second ahead, at most SQS's longest delay."""
    return min(max(due_ms, now_ms + 1_000), now_ms + SQS_DELAY_SECONDS_MAX * 1_000)


def _same(attribute: str, value: int) -> Condition:
    """Return the condition that the attribute still has the value that was read. Stored 0 and a
    missing attribute are the same.
    """
    return Condition(attribute, "=", value, or_absent=value == 0)


def _write(
    dispenser: Dispenser,
    now_ms: int,
    due_ms: int,
    *,
    where: list[Condition],
    put: dict[str, str | int],
    add: dict[str, int] | None = None,
    remove: tuple[str, ...] = (),
) -> Update:
    added = {name: value for name, value in (add or {}).items() if value}
    ends_ms = [int(value) for name, value in put.items() if name.startswith(UNTIL)]
    chain = dispenser.chain
    if chain is not None:
        where = [*where, Condition("tn", "=", chain.number)]
        put = {**put, "tm": chain.message, "nx": due_ms}
        added["tn"] = 1
    return gates.update(
        dispenser.gate_id,
        now_ms,
        *where,
        put=put,
        add=added,
        remove=remove,
        ends_ms=max([due_ms, *ends_ms]),
    )


def _let_in(gate_id: GateId, step: Round, now_ms: int) -> NoResult:
    """Send the wakes, then delete the rows. After a crash in between an attempt is woken twice, and
    only the first wake takes effect.
    """
    if not step.grants:
        return
    yield Send(tuple(_wake(gate_id, grant, now_ms) for grant in step.grants))
    for grant in step.grants:
        yield Delete(tables.MAIL, keys.queue(str(gate_id)), grant.waiter.sk)


def _wake(gate_id: GateId, grant: Grant, now_ms: int) -> Message:
    waiter = grant.waiter
    body = messages.wake_grant(
        waiter.tenant,
        waiter.run,
        entry=waiter.entry,
        attempt=waiter.attempt,
        gate=str(gate_id),
        own=grant.owner,
        until=grant.slot_ms + (GATE_HANDOVER_MS if grant.owner else GATE_TOKEN_MS),
    )
    return Message(body, max(0, grant.slot_ms - now_ms) // 1_000)


def _go_on(gate_id: GateId, gate: Gate, step: Round, now_ms: int) -> NoResult:
    if step.choice.is_all:
        yield from empty(gate_id, gate.chain, now_ms)
    else:
        yield next_tick(gate_id, gate.chain, -(-(step.next_ms - now_ms) // 1_000))


def empty(gate_id: GateId, chain: int, now_ms: int) -> NoResult:
    """Clear the mark that attempts wait, then read the queue again (F8)."""
    yield gates.end_chain(gate_id, chain, now_ms)
    if (yield Query(tables.MAIL, keys.queue(str(gate_id)), limit=1)):
        yield from _serve_from_now_on(gate_id, now_ms)
