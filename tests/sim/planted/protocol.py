"""Bugs of the log protocol: records, doubts, messages, batches (R1 to R9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.core.advance import Transition
from holdfast.core.apply.apply import fold
from holdfast.core.waits import pending_commands
from holdfast.errors import ServiceFault
from holdfast.runtime import follow_ups
from holdfast.runtime.commands import start
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.effects import Doubt, Get, Item, Put, PutIfAbsent, Query, QueryList
from holdfast.runtime.listing import partitions_of, read_entry
from holdfast.runtime.storage import log
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.storage.spread import Spread
from holdfast.runtime.wait_text import IndexedWaits
from holdfast.runtime.worker import loop, recovery
from holdfast_simulator.invocations import Workers
from holdfast_simulator.services import Services
from tests.builders import call, machine, wait_for
from tests.sim.planted.kit import Brought, Patch, Planted, Scenario

Does = Any

STEPS = Scenario(
    "three steps",
    "one task after another",
    {"main": machine({"a": call("one", "b"), "b": call("two", "c"), "c": call("three")})},
    {"n": 1},
)
NAP = Scenario(
    "a nap",
    "a task, a wait, a task",
    {
        "main": machine(
            {
                "a": call("one", "nap"),
                "nap": {"Type": "Wait", "Seconds": 30, "Next": "b"},
                "b": call("two"),
            }
        )
    },
    {"n": 1},
)
#: An execution that is not registered gets no wake, and the next check is an hour away.
PAID = Scenario(
    "paid late",
    "a task, then an event that comes in half an hour, in time",
    {"main": machine({"a": call("one", "wait"), "wait": wait_for("paid", TimeoutSeconds=86_400)})},
    {"n": 1},
    events=(Brought(1_800, "paid", "k1", {"x": 1}, "e1"),),
)
PAID_SOON = replace(PAID, name="paid soon", events=(Brought(2, "paid", "k1", {"x": 1}, "e1"),))
SOON = {"safety_ms": 200_000}

# -- records ---------------------------------------------------------------------------------------


def _put_blindly(patch: Patch) -> None:
    def put(table: Any, item: Any) -> Does:
        yield Put(table, item)
        return True

    patch.setattr(log, "put_surely", put)


def _read_the_number_late(patch: Patch) -> None:
    real = log.Log.commit

    def commit(
        self: log.Log,
        step: Transition,
        now_ms: int,
        listing: Item,
        indexed: IndexedWaits | None = None,
    ) -> Does:
        newest = yield Query("executions", self.partition, reverse=True, limit=1)
        self.sequence = int(newest[0]["sk"]) if newest else -1
        return (yield from real(self, step, now_ms, listing, indexed))

    patch.setattr(log.Log, "commit", commit)


def _skip_a_number(patch: Patch) -> None:
    real = log.Log._encode

    def encode(self: log.Log, *arguments: Any) -> Any:
        self.sequence += self.sequence >= 0
        return real(self, *arguments)

    patch.setattr(log.Log, "_encode", encode)


def _number_from_memory(patch: Patch) -> None:
    real, remembered = log.Log._encode, dict[str, int]()

    def encode(self: log.Log, *arguments: Any) -> Any:
        self.sequence = remembered.get(self.run, self.sequence)
        remembered[self.run] = self.sequence + 1
        return real(self, *arguments)

    patch.setattr(log.Log, "_encode", encode)


def _split_a_step(patch: Patch) -> None:
    real = loop.Processing._commit

    def commit(self: loop.Processing, step: Transition, now_ms: int) -> Does:
        half = len(step.events) // 2
        before = self.log.state
        if before is None or half == 0:
            return (yield from real(self, step, now_ms))
        between = fold(step.events[:half], before)
        assert between is not None
        first = Transition(step.events[:half], between)
        if not (yield from real(self, first, now_ms)):
            return False
        return (yield from real(self, Transition(step.events[half:], step.state), now_ms))

    patch.setattr(loop.Processing, "_commit", commit)


# -- reads -----------------------------------------------------------------------------------------


def _read_eventually(patch: Patch) -> None:
    """Hide items younger than ten seconds, as a stale replica may."""
    real = Services._query

    def query(self: Any, effect: Query) -> list[Item]:
        found = real(self, effect)
        if effect.table == "mail":
            return found
        return [item for item in found if int(item["at"]) <= self._clock() - 10_000]

    patch.setattr(Services, "_query", query)
    _renew_performers(patch, Query, query)


def _renew_performers(patch: Patch, kind: type[Any], query: Any) -> None:
    real = Services.__init__

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)
        self._performers[kind] = lambda effect: query(self, effect)

    patch.setattr(Services, "__init__", init)


def _ask_the_index(patch: Patch) -> None:
    def claim(tenant: str, wanted: Start, _data: Any) -> Does:
        for partition in partitions_of(tenant, Spread(), ["RUNNING"]):
            page = yield QueryList(partition, 100)
            for entry in map(read_entry, page.items):
                if (entry.workflow, entry.name) == (wanted.workflow, wanted.name):
                    return replace(wanted, run=entry.run)
        return wanted

    patch.setattr(start, "claim_name", claim)

    patch.setattr(start, "claim_name", claim)


# -- doubts ----------------------------------------------------------------------------------------


def _believe_a_doubt(patch: Patch) -> None:
    def believe(table: Any, item: Any) -> Does:
        try:
            return (yield PutIfAbsent(table, item)) is None
        except Doubt:
            return True

    patch.setattr(log, "put_surely", believe)


def _give_up_a_doubt(patch: Patch) -> None:
    def give_up(table: Any, item: Any) -> Does:
        try:
            found = yield PutIfAbsent(table, item)
        except Doubt:
            return False
        return found is None or found.get("w") == item["w"]

    patch.setattr(log, "put_surely", give_up)


def _take_own_record_for_foreign(patch: Patch) -> None:
    def compare_nothing(table: Any, item: Any) -> Does:
        while True:
            try:
                return (yield PutIfAbsent(table, item)) is None
            except Doubt:
                there = yield Get(table, str(item["pk"]), item["sk"])
                if there is not None:
                    return bool(there["w"] == item["w"])

    patch.setattr(log, "put_surely", compare_nothing)


def _swallow_faults(patch: Patch) -> None:
    real = follow_ups.start_timer

    def start_timer(*arguments: Any) -> Does:
        try:
            yield from real(*arguments)
        except ServiceFault:
            return

    patch.setattr(follow_ups, "start_timer", start_timer)


# -- order of effects ------------------------------------------------------------------------------


def _send_before_the_commit(patch: Patch) -> None:
    real = log.Log.commit

    def commit(
        self: log.Log,
        step: Transition,
        now_ms: int,
        listing: Item,
        indexed: IndexedWaits | None = None,
    ) -> Does:
        before = self.state
        self.state = step.state
        new = [] if step.state.is_ended else list(pending_commands(step.state))
        yield from follow_ups.carry_out(self, None, new, now_ms, None)  # type: ignore[arg-type]
        self.state = before
        return (yield from real(self, step, now_ms, listing, indexed))

    patch.setattr(log.Log, "commit", commit)


def _acknowledge_first(patch: Patch) -> None:
    real = Workers._deliver

    def deliver(self: Any, invocation: Any, received: Any, setting: Any) -> None:
        real(self, invocation, received, setting)
        self._simulation.services.delete(received.receipt)

    patch.setattr(Workers, "_deliver", deliver)


def _owe_nothing_again(patch: Patch) -> None:
    patch.setattr(recovery, "_owed_again", lambda *_: [])


def owe_nothing_after_a_race(patch: Patch) -> None:
    """Assume after a lost race that the winner has sent everything."""
    real_race, real_again = loop.Processing._after_race, loop.Processing._carry_out_again
    racing: list[loop.Processing] = []

    def after_race(self: loop.Processing) -> Does:
        racing.append(self)
        return (yield from real_race(self))

    def again(self: loop.Processing, now_ms: int) -> Does:
        if self in racing:
            return []
        return (yield from real_again(self, now_ms))

    patch.setattr(loop.Processing, "_after_race", after_race)
    patch.setattr(loop.Processing, "_carry_out_again", again)


# -- batches ---------------------------------------------------------------------------------------


def _acknowledge_all(patch: Patch) -> None:
    """The answer to a batch never names a failure."""
    real = Workers._over

    def over(self: Any, invocation: Any, acknowledged: Any) -> None:
        if invocation.open == 1:
            invocation.acknowledged = list(invocation.receipts.items())
        real(self, invocation, acknowledged)

    patch.setattr(Workers, "_over", over)


def _share_a_cache(patch: Patch) -> None:
    """Cache the stored definitions without their tenants."""
    real = Programs.store

    def store(self: Programs, tenant: str, definition: Any) -> Does:
        if not any(known == definition.hash for _, known in self._stored):
            yield from real(self, tenant, definition)

    patch.setattr(Programs, "store", store)


LATE = frozenset({"I4", "I17"})
_AGAIN = {"delivered again": 0.3, "duplicated": 0.3, "slow": 0.1}

PLANTED = (
    Planted("a blind put", _put_blindly, frozenset({"I1"}), STEPS, _AGAIN),
    Planted(
        "the number is read late",
        _read_the_number_late,
        frozenset({"I1", "I2", "I3", "I16"}),
        STEPS,
        _AGAIN,
    ),
    Planted("a number is skipped", _skip_a_number, frozenset({"I1", "I3"}), STEPS, {}),
    Planted("the number from memory", _number_from_memory, frozenset({"I1", "I3"}), STEPS, _AGAIN),
    Planted("a step is split", _split_a_step, frozenset({"I2"}), STEPS, {}),
    Planted("the log is read eventually", _read_eventually, LATE, PAID_SOON, {}, SOON),
    Planted("the index decides", _ask_the_index, frozenset({"I12"}), STEPS, {}, {"callers": 3}),
    Planted(
        "a write in doubt is believed",
        _believe_a_doubt,
        frozenset({"I1", "I3", "I16", "I17"}),
        STEPS,
        {"not done": 0.1},
        seed=14,
    ),
    Planted(
        "a write in doubt has failed", _give_up_a_doubt, LATE, PAID, {"answer lost": 0.2}, SOON
    ),
    Planted(
        "an own record is foreign",
        _take_own_record_for_foreign,
        LATE,
        PAID,
        {"done later": 0.2, "slow": 0.4},
        SOON,
    ),
    Planted("a throttle is swallowed", _swallow_faults, LATE, PAID, {"throttled": 0.1}, SOON),
    Planted("sent before the commit", _send_before_the_commit, frozenset({"I4"}), NAP, {}),
    Planted(
        "acknowledged before the commit",
        _acknowledge_first,
        frozenset({"I16", "I17"}),
        STEPS,
        {"killed before": 0.04},
    ),
    Planted("nothing is sent again", _owe_nothing_again, LATE, PAID, {"killed before": 0.1}, SOON),
    Planted(
        "a batch has no failures",
        _acknowledge_all,
        frozenset({"I4", "I16", "I17"}),
        STEPS,
        {"throttled": 0.1},
    ),
    Planted(
        "a cache is shared between tenants",
        _share_a_cache,
        frozenset({"code", "I16"}),
        STEPS,
        {"cold": 0.5},
        {"has_other_tenant": True},
    ),
)
