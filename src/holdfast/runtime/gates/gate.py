"""A gate: the state of one limit for one key, and the conditional writes that change it.

The problem. A thousand workers must not begin more attempts than a dependency takes. They share no
memory, each may crash between any two effects, and their clocks differ. A counter in one place
drifts: a worker that crashes never counts down, and one that repeats a write counts twice.

A gate is one item of the table `mail`. Every change is one conditional write of it:

    take a token    rate          tat moves on by T                  IF no waiters, enough tokens
    take a permit   concurrency   u:<id>, o:<id> are set, n + 1      IF no waiters, n < places
    give back       concurrency   u:<id>, o:<id> are removed, n - 1  IF o:<id> is mine
    begin a queue   both          w is set, the chain gets number tn + 1
    dispense        both          tat or permits for waiters, tn + 1 IF the chain is mine

Rates use GCRA: `tat` is the theoretical arrival time of the next token, in microseconds. A token is
free while tat <= now + (burst - 1) x T, with T the time between two tokens. So a rate needs one
number, and an idle limit costs nothing: `tat` in the past means a full bucket.

    T = 50 ms, burst 2                     tat
    12:00:00.000  first start: bucket full  12:00:00.050
    12:00:00.001  second: tat <= now + T    12:00:00.100
    12:00:00.002  third: tat > now + T      refused: it queues, and is let in at 12:00:00.050

A permit is named by its attempt and has an owner and an end, `u:<id>`. It is never a mere count:
`n` changes only in the write that adds or removes a permit, so it cannot drift. A permit whose
worker crashed lapses at its end, and the next taker replaces it in the same write.

Rules of this file:
* F1 Every change is one conditional write: two workers cannot take the last place.
* F2 Only the owner gives a permit back: a worker that was frozen would free its successor's place.
* F9 While there are waiters, no newcomer passes.
* F14 A permit lapses at its end + 2 x clock error: a clock that is ahead frees no place too early.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.limits import (
    CLOCK_ERROR_MS,
    GATE_FACTOR_MIN,
    GATE_PROBE_MS,
    GATE_RETENTION_SECONDS,
    GATE_SLOW_FACTOR,
    GATE_SLOW_FLOOR,
    GATE_SLOW_MARGIN,
    GATE_SLOW_MS,
    GATE_TRIPPED_FACTOR,
    RECORD_RETENTION_SECONDS,
)
from holdfast.runtime.effects import Condition, Update
from holdfast.runtime.gates.rules import MICROSECONDS, GateId, LimitRule
from holdfast.runtime.storage import keys, tables

#: The expiry of a permit that an execution itself holds: only the execution's end returns it.
NEVER_MS: Final = 10**15 - 1
UNTIL: Final = "u:"
OWNER: Final = "o:"
_WHOLE: Final = 1_000  # the factor of a limit that nothing has slowed, in thousandths


@dataclass(frozen=True, slots=True)
class Permit:
    """The right of one attempt to run until `until_ms`."""

    until_ms: int
    owner: str

    def has_lapsed(self, now_ms: int) -> bool:
        return self.until_ms + 2 * CLOCK_ERROR_MS < now_ms


@dataclass(frozen=True, slots=True)
class Gate:
    """The decoded item; a gate that was never used has the default of every field.

    `tat_us`: when the next token arrives. `permits` by id. `has_waiters`: attempts queue. `chain`:
    the number of the tick that serves the queue; `chain_message` wrote it; `chain_ms`: when the
    next tick is due, 0 when the chain has ended. `cursor`: the fair key that was served last.
    `slowed`: how often the limit was slowed down; `factor`, in thousandths, holds from `slowed_ms`
    and recovers with time, `floor` is its minimum. `closed_ms`: nothing begins before. `failures`
    since `failing_ms`.
    """

    tat_us: int = 0
    permits: Mapping[str, Permit] = ()  # type: ignore[assignment]  # an empty mapping, made below
    count: int = 0
    has_waiters: bool = False
    chain: int = 0
    chain_message: str = ""
    chain_ms: int = 0
    cursor: str = ""
    slowed: int = 0
    slowed_ms: int = 0
    factor: int = _WHOLE
    floor: int = 0
    closed_ms: int = 0
    failures: int = 0
    failing_ms: int = 0
    run_ms: int = 0

    def factor_at(self, now_ms: int) -> float:
        """Return the part of the limit that is allowed: a function of time, so recovery costs no
        write.

        After a refusal the factor is the speed that the dependency accepted. It stays near it at
        first and then rises faster and faster, as the probing half of CUBIC does (RFC 9438): a
        limit that does not know the dependency's rate is close to it most of the time, and notices
        when the rate has doubled.
        """
        if not self.slowed:
            return 1.0
        probed = max(0, now_ms - self.slowed_ms) / GATE_PROBE_MS
        return float(min(1.0, self.factor / _WHOLE * (1 + probed**3)))

    def interval_us(self, rule: LimitRule, now_ms: int) -> int:
        assert rule.interval_us is not None
        return max(1, int(rule.interval_us / self.factor_at(now_ms)))

    def ahead_us(self, rule: LimitRule, now_ms: int) -> int:
        """Return how far `tat` may be ahead of the time: the burst but for one start.

        A slowed limit has a part of its burst: all of it after each pause would be refused again.
        """
        burst = max(1, int(rule.burst * self.factor_at(now_ms)))
        return (burst - 1) * self.interval_us(rule, now_ms)

    def places(self, rule: LimitRule, now_ms: int) -> int:
        assert rule.concurrency is not None
        return max(1, int(rule.concurrency * self.factor_at(now_ms)))

    def is_closed(self, now_ms: int) -> bool:
        return self.closed_ms > now_ms

    def is_chain_dead(self, now_ms: int) -> bool:
        """Return True when no tick is under way: the last tick is later than any message can be."""
        return self.has_waiters and self.chain_ms + CHAIN_GRACE_MS < now_ms


#: A tick that has not arrived this long after its time counts as lost.
CHAIN_GRACE_MS: Final = 5_000


def gate_from(item: Mapping[str, Any] | None) -> Gate:
    stored: Mapping[str, Any] = item or {}
    permits = {
        name.removeprefix(UNTIL): Permit(
            int(value), str(stored.get(OWNER + name.removeprefix(UNTIL), ""))
        )
        for name, value in stored.items()
        if name.startswith(UNTIL)
    }
    return Gate(
        tat_us=int(stored.get("tat", 0)),
        permits=permits,
        count=int(stored.get("n", 0)),
        has_waiters="w" in stored,
        chain=int(stored.get("tn", 0)),
        chain_message=str(stored.get("tm", "")),
        chain_ms=int(stored.get("nx", 0)),
        cursor=str(stored.get("cu", "")),
        slowed=int(stored.get("fv", 0)),
        slowed_ms=int(stored.get("fa", 0)),
        factor=int(stored.get("fc", _WHOLE)),
        floor=int(stored.get("fl", 0)),
        closed_ms=int(stored.get("nb", 0)),
        failures=int(stored.get("xn", 0)),
        failing_ms=int(stored.get("xa", 0)),
        run_ms=int(stored.get("sv", 0)),
    )


# -- writes ----------------------------------------------------------------------------------------


def update(
    gate: GateId,
    now_ms: int,
    *where: Condition,
    put: Mapping[str, str | int] | None = None,
    add: Mapping[str, int] | None = None,
    remove: tuple[str, ...] = (),
    ends_ms: int = 0,
) -> Update:
    """A write of the gate's item; each one moves the end of an idle gate's item.

    The item of a gate that executions hold lives as long as their logs.
    """
    ends_ms = min(ends_ms, now_ms + RECORD_RETENTION_SECONDS * 1_000)
    ttl = max(now_ms, ends_ms) // 1_000 + GATE_RETENTION_SECONDS
    return Update(
        tables.MAIL,
        keys.gate(str(gate)),
        keys.ONLY,
        put={**(put or {}), "ttl": ttl},
        add=add or {},
        remove=remove,
        where=where,
    )


NO_WAITERS: Final = Condition("w", "absent")


def _unchanged(gate: Gate, now_ms: int) -> tuple[Condition, ...]:
    """Return the conditions that the gate is open and its speed is the one that the writer read."""
    slowed = Condition("fv", "=", gate.slowed) if gate.slowed else Condition("fv", "absent")
    return (Condition("nb", "<=", now_ms, or_absent=True), slowed)


def take_token(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Take one token for an attempt that does not queue. `seen` decides which of two update forms
    is used, because DynamoDB has no max().
    """
    interval_us, now_us = seen.interval_us(rule, now_ms), now_ms * 1_000
    conditions = (NO_WAITERS, *_unchanged(seen, now_ms))
    if seen.tat_us <= now_us:
        is_full = Condition("tat", "<=", now_us, or_absent=True)
        put: dict[str, str | int] = {"tat": now_us + interval_us}
        return update(gate_id, now_ms, *conditions, is_full, put=put)
    return update(
        gate_id,
        now_ms,
        *conditions,
        Condition("tat", ">", now_us),
        Condition("tat", "<=", now_us + seen.ahead_us(rule, now_ms)),
        add={"tat": interval_us},
    )


def may_take_token(rule: LimitRule, gate: Gate, now_ms: int) -> bool:
    return gate.tat_us <= now_ms * 1_000 + gate.ahead_us(rule, now_ms)


def reserve_token(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Take the next token, although other attempts wait, for an attempt whose own token is
    too old.
    """
    interval_us, now_us = seen.interval_us(rule, now_ms), now_ms * 1_000
    same = Condition("tat", "=", seen.tat_us) if seen.tat_us else Condition("tat", "absent")
    put = {"tat": max(seen.tat_us, now_us) + interval_us}
    return update(gate_id, now_ms, *_unchanged(seen, now_ms), same, put=put)


def slot_ms(rule: LimitRule, gate: Gate, tat_us: int, now_ms: int) -> int:
    """Return the time from which the token that moved `tat` away from `tat_us` may be used."""
    return max(now_ms, -(-(tat_us - gate.ahead_us(rule, now_ms)) // 1_000))


def give_token_back(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Return the update that gives back the token of an attempt that another gate has refused."""
    used = Condition("tat", ">", now_ms * 1_000)
    return update(gate_id, now_ms, used, add={"tat": -seen.interval_us(rule, now_ms)})


def take_permit(
    gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int, *, permit_id: str, permit: Permit
) -> Update:
    """Take one place for an attempt that does not queue. The same write replaces a lapsed
    permit.
    """
    conditions = [NO_WAITERS, *_unchanged(seen, now_ms), Condition(UNTIL + permit_id, "absent")]
    put = _stored(permit_id, permit)
    places = seen.places(rule, now_ms)
    if seen.count < places:
        fits = Condition("n", "<", places, or_absent=True)
        return update(
            gate_id, now_ms, *conditions, fits, put=put, add={"n": 1}, ends_ms=permit.until_ms
        )
    dead = lapsed(seen, now_ms)[0]
    same = Condition(UNTIL + dead, "=", seen.permits[dead].until_ms)
    fits = Condition("n", "<=", places)
    gone = (UNTIL + dead, OWNER + dead)
    return update(
        gate_id, now_ms, *conditions, same, fits, put=put, remove=gone, ends_ms=permit.until_ms
    )


def _stored(permit_id: str, permit: Permit) -> dict[str, str | int]:
    return {UNTIL + permit_id: permit.until_ms, OWNER + permit_id: permit.owner}


def may_take_permit(rule: LimitRule, gate: Gate, now_ms: int) -> bool:
    places = gate.places(rule, now_ms)
    return gate.count < places or (gate.count == places and bool(lapsed(gate, now_ms)))


def lapsed(gate: Gate, now_ms: int) -> list[str]:
    return [name for name, permit in gate.permits.items() if permit.has_lapsed(now_ms)]


def own_permit(gate_id: GateId, permit_id: str, permit: Permit, owner: str, now_ms: int) -> Update:
    """The permit of this attempt, from its earlier owner to the present one.

    The caller has the attempt's lease. The log gives it to one worker, so any earlier owner of the
    permit is the attempt's place in the queue, or a worker that counts as lost.
    """
    put = _stored(permit_id, permit)
    return update(
        gate_id,
        now_ms,
        Condition(OWNER + permit_id, "=", owner),
        put=put,
        ends_ms=permit.until_ms,
    )


def give_permit_back(gate_id: GateId, permit_id: str, owner: str, now_ms: int) -> Update:
    return update(
        gate_id,
        now_ms,
        Condition(OWNER + permit_id, "=", owner),
        remove=(UNTIL + permit_id, OWNER + permit_id),
        add={"n": -1},
    )


# -- the queue's chain of ticks --------------------------------------------------------------------


def begin_chain(gate_id: GateId, seen: Gate, now_ms: int, due_ms: int = 0) -> Update:
    """Mark the gate as one with waiting attempts, and give its chain of ticks a new number.

    `due_ms`: the time of the first tick; 0: now.
    """
    same = Condition("tn", "=", seen.chain) if seen.chain else Condition("tn", "absent")
    put: dict[str, str | int] = {"w": 1, "nx": due_ms or now_ms, "tm": ""}
    return update(gate_id, now_ms, same, put=put, add={"tn": 1})


def end_chain(gate_id: GateId, chain: int, now_ms: int) -> Update:
    """Return the update that ends the chain of an empty queue: new attempts need not queue any
    longer.
    """
    return update(gate_id, now_ms, Condition("tn", "=", chain), remove=("w", "nx"))


# -- slowing down ----------------------------------------------------------------------------------


def slow_down(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int, hold_ms: int) -> Update:
    """The dependency refused a call: the limit closes for `hold_ms` and is slower after it (F20).

    A rate that was kept for two seconds and refused r times was r starts too fast in two seconds.
    So each refusal takes one such start from the speed, here and in `slow_further`: the calls that
    are under way bring the limit to the speed that the dependency accepts. GATE_FACTOR_MIN is left
    in any case: refusals may have other reasons than the speed, and from near zero the limit would
    need minutes to recover.
    """
    same = Condition("fv", "=", seen.slowed) if seen.slowed else Condition("fv", "absent")
    margin = GATE_SLOW_MARGIN if rule.is_rate else GATE_SLOW_FACTOR
    speed = int(seen.factor_at(now_ms) * margin * _WHOLE)
    factor = max(GATE_FACTOR_MIN, speed - min(_refused_part(rule), speed // 2))
    floor = max(GATE_FACTOR_MIN, int(factor * GATE_SLOW_FLOOR))
    put = {"fc": factor, "fl": floor, **_closed(seen, now_ms, hold_ms)}
    return update(gate_id, now_ms, same, put=put, add={"fv": 1})


def slow_further(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int, hold_ms: int) -> Update:
    """A call that began before the limit slowed down was refused, too.

    A burst may have many more calls under way than the speed says, so a floor is left.
    """
    less = _refused_part(rule)
    above_floor = Condition("fc", ">", seen.floor + less)
    put = _closed(seen, now_ms, hold_ms)
    return update(gate_id, now_ms, above_floor, put=put, add={"fc": -less, "fv": 1})


def _closed(seen: Gate, now_ms: int, hold_ms: int) -> dict[str, str | int]:
    open_ms = now_ms + hold_ms
    return {"fa": open_ms, "nb": max(seen.closed_ms, open_ms)}


def is_slowing(seen: Gate, now_ms: int) -> bool:
    """Return True while calls that began before the last refusal may still be refused."""
    return bool(seen.slowed) and now_ms - seen.slowed_ms < GATE_SLOW_MS


def _refused_part(rule: LimitRule) -> int:
    """Return the part of the limit, in thousandths, that one start in `GATE_SLOW_MS` is."""
    if rule.interval_us is None:
        return 0
    return max(1, -(-rule.interval_us * _WHOLE // (GATE_SLOW_MS * 1_000)))


def count_failure(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Count one failure for the circuit breaker; the first failure of a window starts its count."""
    assert rule.trip is not None
    if seen.failures and now_ms - seen.failing_ms <= rule.trip.within_ms:
        return update(gate_id, now_ms, Condition("xa", "=", seen.failing_ms), add={"xn": 1})
    same = Condition("xa", "=", seen.failing_ms) if seen.failing_ms else Condition("xa", "absent")
    return update(gate_id, now_ms, same, put={"xn": 1, "xa": now_ms})


def forget_failures(gate_id: GateId, now_ms: int) -> Update:
    return update(gate_id, now_ms, Condition("xn", ">", 0), put={"xn": 0})


def trip(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Trip the circuit breaker: nothing begins for a while. Then a few attempts probe, at a tenth
    of the speed.
    """
    assert rule.trip is not None
    same = Condition("fv", "=", seen.slowed) if seen.slowed else Condition("fv", "absent")
    open_ms = now_ms + rule.trip.hold_ms
    closed_ms, probing = max(seen.closed_ms, open_ms), int(GATE_TRIPPED_FACTOR * _WHOLE)
    put = {"fc": probing, "fa": open_ms, "nb": closed_ms, "xn": 0}
    return update(gate_id, now_ms, same, put=put, add={"fv": 1})


def tokens_until(rule: LimitRule, gate: Gate, now_ms: int, until_ms: int, wanted: int) -> list[int]:
    """Return the slots, in ms, of the next tokens that may be used by `until_ms`, at most
    `wanted`.
    """
    interval_us = gate.interval_us(rule, now_ms)
    ahead_us = gate.ahead_us(rule, now_ms)
    tat_us = max(gate.tat_us, now_ms * 1_000)
    begin_ms = max(now_ms, gate.closed_ms)
    slots: list[int] = []
    while len(slots) < wanted:
        slot = max(begin_ms, -(-(tat_us - ahead_us) // 1_000))
        if slot > until_ms:
            break
        slots.append(slot)
        tat_us = max(tat_us, slot * 1_000) + interval_us
    return slots


def tat_after(rule: LimitRule, gate: Gate, now_ms: int, slots: list[int]) -> int:
    """Return `tat` once the slots of `tokens_until` are given out."""
    interval_us = gate.interval_us(rule, now_ms)
    tat_us = max(gate.tat_us, now_ms * 1_000)
    for slot in slots:
        tat_us = max(tat_us, slot * 1_000) + interval_us
    return tat_us


def per_second(interval_us: int) -> float:
    return MICROSECONDS / interval_us
