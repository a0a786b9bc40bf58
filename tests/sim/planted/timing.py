"""Bugs of time: timers, retries, time-outs, heartbeats (I6, I8, I18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_fields
from typing import Any

from holdfast.core import facts
from holdfast.core.apply import apply as apply_module
from holdfast.core.events import Event
from holdfast.core.state import Awaiting, Execution
from holdfast.core.waits import is_overdue
from holdfast.errors import ServiceFault
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import follow_ups, inbox, messages, watchdog
from holdfast.runtime.effects import Clock, Message, Send
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker import attempts, decision_inputs, external_facts, loop, recovery
from tests.builders import ask, call, machine, wait_for
from tests.sim.planted.kit import CORPUS, AttemptOutcome, Brought, Patch, Planted, Scenario

DAY_SECONDS = 86_400


def _nap(seconds: int, target: str = "work") -> dict[str, Any]:
    return {"Type": "Wait", "Seconds": seconds, "Next": target}


NAP = Scenario("nap", "a short wait", {"main": machine({"nap": _nap(30), "work": call("work")})})
LONG = Scenario(
    "long", "a wait of a day", {"main": machine({"nap": _nap(DAY_SECONDS), "work": call("work")})}
)


def _retried(seconds: float) -> Scenario:
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 30}]
    return Scenario(
        "retried",
        "an attempt after half a minute",
        {"main": machine({"work": call("work", Retry=retry)})},
        tasks={"work": (AttemptOutcome(error="Broken", seconds=seconds), AttemptOutcome(output=1))},
    )


RETRIED = _retried(0)
#: The first attempt takes longer than the rest after it.
SLOWLY_RETRIED = _retried(50)
_LATE = [{"ErrorEquals": ["States.ALL"], "Next": "late"}]
_DONE = {"Type": "Succeed"}
TWO_WAITS = Scenario(
    "two waits",
    "the second one is open when the time of the first one is over",
    {
        "main": machine(
            {
                "paid": wait_for("paid", "person", TimeoutSeconds=60),
                "person": ask("late", TimeoutSeconds=3_000, Catch=_LATE),
                "late": _DONE,
            }
        )
    },
    events=(Brought(10, "paid", "k1", {"n": 1}, "e1"),),
    answers={"person": AttemptOutcome(output=1, seconds=300)},
)


def _asked(answer: AttemptOutcome, **fields: Any) -> Scenario:
    states = {"person": ask("late", Catch=_LATE, **fields), "late": _DONE}
    return Scenario("asked", "a person", {"main": machine(states)}, answers={"person": answer})


#: Seen after two seconds, answered a second before its time is over.
IN_TIME = _asked(AttemptOutcome(output=1, seconds=57), TimeoutSeconds=60)


def _beating(answer: AttemptOutcome, seconds: int, heartbeat_seconds: int) -> Scenario:
    held = {
        "Type": "Task",
        "Resource": "holdfast:token.waitForTaskToken",
        "TimeoutSeconds": seconds,
        "HeartbeatSeconds": heartbeat_seconds,
        "Catch": _LATE,
        "Next": "late",
    }
    return Scenario(
        "beating",
        "the holder of the token sends heartbeats",
        {"main": machine({"held": held, "late": _DONE})},
        answers={"held": answer},
    )


#: Alive until the time of the whole wait is over.
BEATING = _beating(AttemptOutcome(output=1, seconds=2_000, beat_seconds=300), 500, 400)
#: So often that one heartbeat after the other is wanted.
BEATING_OFTEN = _beating(AttemptOutcome(output=1, seconds=400, beat_seconds=25), 600, 60)
EXPIRED = Scenario(
    "expired",
    "the event is over when the wait for it begins",
    {
        "main": machine(
            {
                "nap": _nap(15 * DAY_SECONDS, "paid"),
                "paid": wait_for("paid", "late", TimeoutSeconds=60, Catch=_LATE),
                "late": _DONE,
            }
        )
    },
    events=(Brought(10, "paid", "k1", {"n": 1}, "e1"),),
)

Apply = Callable[[Execution, Event], Execution]


def applied(patch: Patch, event_type: str, change: Callable[[Apply], Apply]) -> None:
    """Change the effect of events of this type."""
    real = apply_module._handler

    def handler(wanted: str) -> Any:
        return change(real(wanted)) if wanted == event_type else real(wanted)

    patch.setattr(apply_module, "_handler", handler)


def nothing(*_: Any) -> Any:
    return
    yield


def _believe_clocks(patch: Patch) -> None:
    for module in (recovery, attempts, follow_ups, watchdog, decision_inputs, external_facts, loop):
        patch.setattr(module, "CLOCK_ERROR_MS", 0)


def _time_out_whatever_waits(patch: Patch) -> None:
    """The timer of a wait that is over is taken for that of the next one."""
    real = loop.Processing._gather

    def gather(self: loop.Processing) -> Any:
        yield from real(self)
        delivery, state = self.delivery, self.state
        if delivery.kind == messages.WAKE_TIMER and not state.is_open(delivery.body["entry"]):
            for frame in state.frames.values():
                if isinstance(frame.waiting, Awaiting):
                    timed_out = facts.TimedOut(frame.waiting.entry, frame.waiting.attempt)
                    self.facts.append(timed_out)

    patch.setattr(loop.Processing, "_gather", gather)


def _trust_the_message(patch: Patch) -> None:
    """The wake says that it is time, so it is."""
    real_run, real = loop.Processing.run, external_facts.past_timeouts
    woken: dict[str, int] = {}

    def run(self: loop.Processing) -> Any:
        woken[self.log.run] = self.delivery.body.get("entry", -1)
        return (yield from real_run(self))

    def past_timeouts(tenant: str, state: Execution, now_ms: int) -> Any:
        frame = state.frame_of(woken[state.run])
        if frame is not None and isinstance(frame.waiting, Awaiting):
            return [facts.TimedOut(frame.waiting.entry, frame.waiting.attempt)]
        return (yield from real(tenant, state, now_ms))

    patch.setattr(loop.Processing, "run", run)
    patch.setattr(loop, "is_due", lambda *_: True)
    patch.setattr(external_facts, "past_timeouts", past_timeouts)


def tick_before_the_mail(patch: Patch) -> None:
    def past_timeouts(_tenant: str, state: Execution, now_ms: int) -> Any:
        is_late = any(is_overdue(frame, now_ms - 1_000) for frame in state.frames.values())
        return [facts.Tick()] if is_late else []
        yield

    patch.setattr(external_facts, "past_timeouts", past_timeouts)


def _a_beat_gives_more_time(patch: Patch) -> None:
    def change(real: Apply) -> Apply:
        def beaten(state: Execution, event: Event) -> Execution:
            after = real(state, event)
            frame = after.frames[event.holdfast.get("frame", "")]
            waiting = frame.waiting
            assert isinstance(waiting, Awaiting)
            assert waiting.due_ms is not None
            more_ms = event.holdfast["beat"] - waiting.since_ms
            longer = with_fields(waiting, due_ms=waiting.due_ms + more_ms)
            return after.with_frame(frame._replace(waiting=longer))

        return beaten

    applied(patch, "HeartbeatSeen", change)


def _hear_one_heartbeat(patch: Patch) -> None:
    true_one = inbox.answer_facts
    first: dict[tuple[str, int], facts.HeartbeatSeen] = {}

    def answer_facts(tenant: str, run: str, awaiting: Awaiting) -> Any:
        found = yield from true_one(tenant, run, awaiting)
        return [
            first.setdefault((run, one.entry), one) if isinstance(one, facts.HeartbeatSeen) else one
            for one in found
        ]

    patch.setattr(inbox, "answer_facts", answer_facts)


def _forget_when_a_retry_is_due(patch: Patch) -> None:
    def change(real: Apply) -> Apply:
        def scheduled(state: Execution, event: Event) -> Execution:
            own = {name: value for name, value in event.holdfast.items() if name != "due"}
            return real(state, event._replace(holdfast=own))

        return scheduled

    applied(patch, "TaskScheduled", change)


def _forget_when_a_poll_is_due(patch: Patch) -> None:
    def change(real: Apply) -> Apply:
        def unmet(state: Execution, event: Event) -> Execution:
            return real(state, event._replace(holdfast={**event.holdfast, "due": event.at_ms}))

        return unmet

    applied(patch, "ConditionUnmet", change)


def _clock(patch: Patch, told_by: Callable[[loop.Processing], Callable[[int], int]]) -> None:
    """Change the time that a delivery reads."""
    real = loop.Processing.run

    def run(self: loop.Processing) -> Any:
        tell, running = told_by(self), real(self)
        answer: Any = None
        fault: ServiceFault | None = None
        while True:
            try:
                effect = running.send(answer) if fault is None else running.throw(fault)
            except StopIteration as stop:
                return stop.value
            answer, fault = None, None
            try:
                answer = yield effect
            except ServiceFault as found:
                fault = found
            if isinstance(effect, Clock) and fault is None:
                answer = tell(answer)

    patch.setattr(loop.Processing, "run", run)


def _read_the_clock_once(patch: Patch) -> None:
    """Whatever a delivery does took place when it began."""

    def told_by(_: loop.Processing) -> Callable[[int], int]:
        first: list[int] = []

        def tell(now_ms: int) -> int:
            first.append(now_ms)
            return first[0]

        return tell

    _clock(patch, told_by)


def _let_the_wake_tell_the_time(patch: Patch) -> None:
    """Take the due time of a wake as the present time."""

    def told_by(hold: loop.Processing) -> Callable[[int], int]:
        due_ms = hold.delivery.body.get("due", 0)
        return lambda now_ms: max(now_ms, due_ms + 2 * CLOCK_ERROR_MS)

    _clock(patch, told_by)


def _delay_for_as_long_as_it_takes(patch: Patch) -> None:
    patch.setattr(follow_ups, "SQS_DELAY_SECONDS_MAX", 10**9)


def _message(log: Any, entry: int, due_ms: int, now_ms: int) -> Any:
    body = messages.wake_timer(log.tenant, log.run, entry, due_ms, log.hint)
    yield Send((Message(body, min(follow_ups.delay_until(due_ms, now_ms), 900)),))


def _cut_the_delay(patch: Patch) -> None:
    """Cut a delay to a quarter of an hour, the maximum of a message, without a continuation."""
    patch.setattr(follow_ups, "start_timer", _message)
    patch.setattr(external_facts, "again_if_early", nothing)


def _hop_from_now(patch: Patch) -> None:
    """Each hop of a long wait counts the whole wait again."""

    def hop(log: Log, entry: int, due_ms: int, now_ms: int) -> Any:
        assert log.state is not None
        if log.state.is_open(entry) and now_ms < due_ms + 1_000:
            whole_ms = due_ms - log.records[-1].at_ms
            yield from _message(log, entry, now_ms + whole_ms, now_ms)

    patch.setattr(follow_ups, "start_timer", _message)
    patch.setattr(external_facts, "again_if_early", hop)


def _never_expire(patch: Patch) -> None:
    """Ignore expiry: only TTL deletes expired items, and it may be days late."""
    real = inbox.unread_facts

    def unread_facts(
        tenant: str, state: Execution, awaiting: Awaiting, items: Any, _now_ms: int
    ) -> Any:
        found: Any = yield from real(tenant, state, awaiting, items, 0)
        return [with_fields(one, expires_ms=10**15) for one in found]

    patch.setattr(inbox, "unread_facts", unread_facts)


#: Nothing ever goes wrong.
_AT_ONCE: dict[str, Any] = {"safety_ms": 0}
PLANTED = (
    Planted(
        "a timer fires by a clock that is wrong",
        _believe_clocks,
        frozenset({"I6"}),
        NAP,
        {},
        {"skew_ms": 500},
    ),
    Planted(
        "a time-out outlives its wait", _time_out_whatever_waits, frozenset({"I6"}), TWO_WAITS, {}
    ),
    Planted("a timer trusts its message", _trust_the_message, frozenset({"I8"}), BEATING, {}),
    Planted(
        "a time-out does not look into the mail",
        tick_before_the_mail,
        frozenset({"I7", "I8"}),
        IN_TIME,
        {"late": 0.3, "slow": 0.1},
    ),
    Planted(
        "a heartbeat gives the whole wait more time",
        _a_beat_gives_more_time,
        frozenset({"I18", "I17"}),
        BEATING,
        {},
        _AT_ONCE,
    ),
    Planted(
        "of several heartbeats the first counts",
        _hear_one_heartbeat,
        frozenset({"I8"}),
        BEATING_OFTEN,
        {},
        _AT_ONCE,
    ),
    Planted(
        "no row says when a retry is due",
        _forget_when_a_retry_is_due,
        frozenset({"I5", "I6"}),
        RETRIED,
        {},
    ),
    Planted(
        "nobody knows when the next poll is due",
        _forget_when_a_poll_is_due,
        frozenset({"I5", "I6"}),
        CORPUS["polled until a value"],
        {},
    ),
    Planted(
        "a delivery reads the clock once",
        _read_the_clock_once,
        frozenset({"I5"}),
        SLOWLY_RETRIED,
        {},
    ),
    Planted(
        "a wake tells the time",
        _let_the_wake_tell_the_time,
        frozenset({"I1"}),
        NAP,
        {},
        {"skew_ms": 500},
    ),
    Planted(
        "a message is delayed by a day",
        _delay_for_as_long_as_it_takes,
        frozenset({"I14", "I16", "I17", "I18"}),
        LONG,
        {},
    ),
    Planted("a delay is cut", _cut_the_delay, frozenset({"I17", "I18"}), LONG, {}, _AT_ONCE),
    Planted(
        "a hop begins the wait anew", _hop_from_now, frozenset({"I4", "I18"}), LONG, {}, _AT_ONCE
    ),
    Planted("an expired event is used", _never_expire, frozenset({"I7"}), EXPIRED, {}),
)
