"""A gate: the state of one limit for one key, and the conditional writes that change it.

The problem. A thousand workers must not begin more attempts than a dependency accepts. They share
no memory, each may crash between any two effects, and their clocks differ. A simple counter would
become wrong: a worker that crashes never decrements it, and one that repeats a write counts twice.

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

A permit has the id of its attempt, an owner `o:<id>` and an end `u:<id>`. It is not a mere count:
`n` changes only in the write that adds or removes a permit, so it always equals their number. The
permit of a crashed worker expires at its end, and the next attempt that takes a permit replaces it
in the same write.

Rules of this file:
* F1 Every change is one conditional write: two workers cannot take the last place.
* F2 Only the owner gives a permit back. Otherwise a worker that was suspended could free the place
  of its successor.
* F9 While attempts wait, a new attempt does not go first.
* F14 A permit expires at its end + 2 x clock error: a clock that is ahead frees no place too early.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.lazy_dataclass import dataclass
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
from holdfast.runtime.gates.rules import GateId, LimitRule
from holdfast.runtime.storage import keys, tables

#: The end of a permit that belongs to an execution. It never passes, because only the end of the
#: execution returns the permit.
NEVER_MS: Final = 10**15 - 1
UNTIL: Final = "u:"
OWNER: Final = "o:"
_WHOLE: Final = 1_000  # the factor, in thousandths, of a limit that is not slowed


@dataclass(frozen=True, slots=True)
class Permit:
    """The right of one attempt to run until `until_ms`."""

    until_ms: int
    owner: str

    def has_lapsed(self, now_ms: int) -> bool:
        return self.until_ms + 2 * CLOCK_ERROR_MS < now_ms


@dataclass(frozen=True, slots=True)
class Gate:
    """The decoded item. Every field has a default, for a gate that was never used.

    * `tat_us`: when the next token arrives. `permits`: by id. `has_waiters`: attempts wait.
    * `chain`: the number of the tick that serves the queue. `chain_message`: the message that wrote
      the number. `chain_ms`: when the next tick is due, 0 when the chain has ended.
    * `cursor`: the text whose turn was last, of a limit that takes turns.
    * `slowed`: how often the limit was slowed down. `factor`, in thousandths, applies from
      `slowed_ms` and rises with time; `floor` is its minimum.
    * `closed_ms`: nothing begins before this time. `failures`: their number since `failing_ms`.
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

    def factor_at(self, now_ms: int) -> float:
        """Return the part of the limit that is allowed at this time. It is computed from the time,
        so that the recovery of a slowed limit costs no write.

        Directly after a refusal the factor is the speed that the dependency accepted. It rises
        slowly at first and then faster and faster, as the probing half of CUBIC does (RFC 9438). So
        the limit, which does not know the dependency's rate, is close to it most of the time, and
        finds out when that rate has doubled.
        """
        if not self.slowed:
            return 1.0
        probed = max(0, now_ms - self.slowed_ms) / GATE_PROBE_MS
        return float(min(1.0, self.factor / _WHOLE * (1 + probed**3)))

    def interval_us(self, rule: LimitRule, now_ms: int) -> int:
        assert rule.interval_us is not None
        return max(1, int(rule.interval_us / self.factor_at(now_ms)))

    def ahead_us(self, rule: LimitRule, now_ms: int) -> int:
        """Return how far `tat` may be ahead of the time: the burst minus one start.

        A slowed limit has only a part of its burst. After each pause, the dependency would refuse a
        full burst again.
        """
        burst = max(1, int(rule.burst * self.factor_at(now_ms)))
        return (burst - 1) * self.interval_us(rule, now_ms)

    def places(self, rule: LimitRule, now_ms: int) -> int:
        assert rule.concurrency is not None
        return max(1, int(rule.concurrency * self.factor_at(now_ms)))

    def is_closed(self, now_ms: int) -> bool:
        return self.closed_ms > now_ms

    def is_chain_dead(self, now_ms: int) -> bool:
        """Return True when no tick can arrive any longer: the last one is later than any message
        can be.
        """
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
    """Return a write of the gate's item. Each write also moves the item's TTL.

    The item of a gate whose permits executions hold lives as long as their logs.
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
    """Return the conditions that the gate is open and that its speed is still the one that was
    read.
    """
    slowed = Condition("fv", "=", gate.slowed) if gate.slowed else Condition("fv", "absent")
    return (Condition("nb", "<=", now_ms, or_absent=True), slowed)


def take_token(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Take one token for an attempt that is not in the queue. DynamoDB has no max(), so the state
    `seen` decides which of two forms of the update is used.
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
    """Take the next token although other attempts wait. It is for an attempt that was let in, but
    whose own token has become too old.
    """
    interval_us, now_us = seen.interval_us(rule, now_ms), now_ms * 1_000
    same = Condition("tat", "=", seen.tat_us) if seen.tat_us else Condition("tat", "absent")
    put = {"tat": max(seen.tat_us, now_us) + interval_us}
    return update(gate_id, now_ms, *_unchanged(seen, now_ms), same, put=put)


def slot_ms(rule: LimitRule, gate: Gate, tat_us: int, now_ms: int) -> int:
    """Return the time from which a token may be used: the one whose taking moved `tat` from
    `tat_us`.
    """
    return max(now_ms, -(-(tat_us - gate.ahead_us(rule, now_ms)) // 1_000))


def give_token_back(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Give back the token of an attempt that another gate has refused."""
    used = Condition("tat", ">", now_ms * 1_000)
    return update(gate_id, now_ms, used, add={"tat": -seen.interval_us(rule, now_ms)})


def take_permit(
    gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int, *, permit_id: str, permit: Permit
) -> Update:
    """Take one place for an attempt that is not in the queue. If a permit has expired, the same
    write replaces it.
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
    """Make the present owner the owner of this attempt's permit.

    The caller has the attempt's lease, which the log gives to only one worker. So the earlier owner
    of the permit is the dispenser that granted it, or a worker that has lost the attempt.
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
    """Mark the gate as having waiting attempts, and start a new chain of ticks, with a new number.

    `due_ms` is the time of the first tick; 0: now.
    """
    same = Condition("tn", "=", seen.chain) if seen.chain else Condition("tn", "absent")
    put: dict[str, str | int] = {"w": 1, "nx": due_ms or now_ms, "tm": ""}
    return update(gate_id, now_ms, same, put=put, add={"tn": 1})


def end_chain(gate_id: GateId, chain: int, now_ms: int) -> Update:
    """End the chain of an empty queue. New attempts then need not wait."""
    return update(gate_id, now_ms, Condition("tn", "=", chain), remove=("w", "nx"))


# -- slowing down ----------------------------------------------------------------------------------


def slow_down(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int, hold_ms: int) -> Update:
    """Slow the limit down after the dependency refused a call: it closes for `hold_ms` and is
    slower after that (F20).

    If a rate runs for two seconds and r calls are refused, it makes r starts too many in two
    seconds. So each refusal reduces the speed by one such start, here and in `slow_further`: the
    refusals of the calls that are under way reduce the limit to the speed that the dependency
    accepts. The speed does not fall below GATE_FACTOR_MIN: calls may be refused for other reasons
    than the speed, and from near zero the recovery would take minutes.
    """
    same = Condition("fv", "=", seen.slowed) if seen.slowed else Condition("fv", "absent")
    margin = GATE_SLOW_MARGIN if rule.is_rate else GATE_SLOW_FACTOR
    speed = int(seen.factor_at(now_ms) * margin * _WHOLE)
    factor = max(GATE_FACTOR_MIN, speed - min(_refused_part(rule), speed // 2))
    floor = max(GATE_FACTOR_MIN, int(factor * GATE_SLOW_FLOOR))
    put = {"fc": factor, "fl": floor, **_closed(seen, now_ms, hold_ms)}
    return update(gate_id, now_ms, same, put=put, add={"fv": 1})


def slow_further(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int, hold_ms: int) -> Update:
    """Slow the limit further: a call that began before the limit slowed down was refused, too.

    After a burst, many more calls may be under way than the speed allows. So the speed does not
    fall below a minimum.
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
    """Return which part of the limit, in thousandths, one start in `GATE_SLOW_MS` is."""
    if rule.interval_us is None:
        return 0
    return max(1, -(-rule.interval_us * _WHOLE // (GATE_SLOW_MS * 1_000)))


def count_failure(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Count one failure for the circuit breaker. The first failure of a time window starts its
    count.
    """
    assert rule.trip is not None
    if seen.failures and now_ms - seen.failing_ms <= rule.trip.within_ms:
        return update(gate_id, now_ms, Condition("xa", "=", seen.failing_ms), add={"xn": 1})
    same = Condition("xa", "=", seen.failing_ms) if seen.failing_ms else Condition("xa", "absent")
    return update(gate_id, now_ms, same, put={"xn": 1, "xa": now_ms})


def forget_failures(gate_id: GateId, now_ms: int) -> Update:
    return update(gate_id, now_ms, Condition("xn", ">", 0), put={"xn": 0})


def trip(gate_id: GateId, rule: LimitRule, seen: Gate, now_ms: int) -> Update:
    """Open the circuit breaker: nothing begins for a while. Then a few attempts are tried, at a
    tenth of the speed.
    """
    assert rule.trip is not None
    same = Condition("fv", "=", seen.slowed) if seen.slowed else Condition("fv", "absent")
    open_ms = now_ms + rule.trip.hold_ms
    closed_ms, probing = max(seen.closed_ms, open_ms), int(GATE_TRIPPED_FACTOR * _WHOLE)
    put = {"fc": probing, "fa": open_ms, "nb": closed_ms, "xn": 0}
    return update(gate_id, now_ms, same, put=put, add={"fv": 1})


def tokens_until(rule: LimitRule, gate: Gate, now_ms: int, until_ms: int, wanted: int) -> list[int]:
    """Return the times, in ms, of the next tokens that may be used by `until_ms`, at most
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
    """Return `tat` after the tokens that `tokens_until` has returned were given out."""
    interval_us = gate.interval_us(rule, now_ms)
    tat_us = max(gate.tat_us, now_ms * 1_000)
    for slot in slots:
        tat_us = max(tat_us, slot * 1_000) + interval_us
    return tat_us
