"""Bugs in the fold of facts and records: results, retries, replay, values, limits (R4)."""

from __future__ import annotations

import itertools
import json
from typing import Any

from holdfast.core import attempt_facts, flow, lanes, retry, state_json
from holdfast.core.apply import apply, tasks
from holdfast.core.decision import Decision
from holdfast.core.events import Event
from holdfast.core.facts import TimedOut
from holdfast.core.state import Attempt, Frame
from holdfast.limits import RECORD_BYTES_MAX
from holdfast.runtime import child_workflows, inbox
from holdfast.runtime.effects import GetBlob
from holdfast.runtime.listing import listing as real_listing
from holdfast.runtime.storage import codec, keys
from holdfast.runtime.worker import committing, decision_inputs, loop
from holdfast.runtime.worker.attempts import Attempts, Begun
from holdfast_simulator import runner
from holdfast_simulator.services import Services
from tests.sim.planted.kit import Patch, Planted
from tests.sim.planted.programs import (
    CALLED,
    CAUGHT,
    DRAWN,
    EXHAUSTED,
    JITTER,
    LANES,
    LARGE,
    MANY,
    RETRIED,
    SECRET,
    SLOW,
    WIDE,
)
from tests.sim.planted.protocol import NAP

Does = Any

# -- results ---------------------------------------------------------------------------------------


def _collect_as(patch: Patch, choose: Any) -> None:
    """Results go to other tickets: `choose(attempts, ticket, number)` says to which."""
    real = Attempts.collect

    def collect(self: Attempts, until_ms: int) -> Does:
        running, answer = real(self, until_ms), None
        while True:
            try:
                effect = running.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = yield effect
            if isinstance(answer, list):
                answer = [(choose(self, t, n), result) for n, (t, result) in enumerate(answer)]

    patch.setattr(Attempts, "collect", collect)


def _match_by_order(patch: Patch) -> None:
    _collect_as(patch, lambda hand, _, number: list(hand.begun)[number])


def _match_by_name(patch: Patch) -> None:
    def last_of_that_name(hand: Attempts, ticket: Any, _: int) -> Any:
        targets = {
            (frame.waiting.entry, frame.waiting.attempt): frame.waiting.target
            for frame in states[id(hand)].frames.values()
            if isinstance(frame.waiting, Attempt)
        }
        name = targets.get(ticket)
        return next((one for one in reversed(hand.begun) if targets.get(one) == name), ticket)

    states: dict[int, Any] = {}
    real = Attempts.begin

    def begin(self: Attempts, program: Any, state: Any, idle: Any, now_ms: int) -> Does:
        states[id(self)] = state
        return (yield from real(self, program, state, idle, now_ms))

    patch.setattr(Attempts, "begin", begin)
    _collect_as(patch, last_of_that_name)


def _match_old_attempts(patch: Patch) -> None:
    """Whichever attempt it is of: the entry is the same."""
    real = attempt_facts._current

    def current(decision: Decision, entry: int, attempt: int) -> Any:
        frame = decision.state.frame_of(entry)
        now = getattr(frame and frame.waiting, "attempt", attempt)
        return real(decision, entry, now)

    real_collect = Attempts.collect

    def collect(self: Attempts, until_ms: int) -> Does:
        before = dict(self.begun)
        seen = yield from real_collect(self, until_ms)
        over = [fact for fact in seen if isinstance(fact, TimedOut)]
        for fact in over:
            ticket = (fact.entry, fact.attempt)
            self.begun[ticket] = Begun(0, before[ticket].is_answered_later)
        return seen

    patch.setattr(Attempts, "collect", collect)
    patch.setattr(attempt_facts, "_current", current)


# -- retries ---------------------------------------------------------------------------------------


def _forget_the_count(patch: Patch) -> None:
    patch.setattr(tasks, "counted", lambda frame, own: frame.retries)


def _retry_once_more(patch: Patch) -> None:
    def find(retriers: Any, error: str, used: Any) -> Any:
        for number, retrier in enumerate(retriers):
            if retry.matches(retrier.errors, error):
                return (number, retrier) if used.get(number, 0) <= retrier.attempts_max else None
        return None

    patch.setattr(flow, "find_retrier", find)


def _catch_before_retry(patch: Patch) -> None:
    real = retry.find_retrier

    def find(retriers: Any, error: str, used: Any) -> Any:
        return None if error == "Broken" else real(retriers, error, used)

    patch.setattr(flow, "find_retrier", find)


def _catch_with_the_last(patch: Patch) -> None:
    real = retry.find_catcher
    patch.setattr(flow, "find_catcher", lambda catchers, error: real(catchers[::-1], error))


def _delay_without_backoff(patch: Patch) -> None:
    real = retry.delay_ms
    patch.setattr(flow, "delay_ms", lambda retrier, _, drawn: real(retrier, 0, drawn))


# -- replay ----------------------------------------------------------------------------------------


def _apply_as(patch: Patch, event_type: str, change: Any) -> None:
    """Apply `change(event)` in place of each event."""
    real = apply._handler

    def handler(kind: str) -> Any:
        found = real(kind)
        if kind != event_type:
            return found
        return lambda state, event: found(state, change(event))

    patch.setattr(apply, "_handler", handler)


def _own(event: Event, **fields: Any) -> Event:
    return event._replace(holdfast={**event.holdfast, **fields})


def _delay_by_the_wall_clock(patch: Patch) -> None:
    """Take the due time from the clock of the record's reader."""
    clock = itertools.count(1)

    def change(event: Event) -> Event:
        due = event.holdfast.get("due")
        return event if due is None else _own(event, due=due + next(clock))

    _apply_as(patch, "TaskScheduled", change)


def _jitter_at_replay(patch: Patch) -> None:
    draws = itertools.cycle((0.1, 0.7, 0.4))

    def change(event: Event) -> Event:
        due = event.holdfast.get("due")
        if due is None:
            return event
        return _own(event, due=event.at_ms + int((due - event.at_ms) * next(draws)))

    _apply_as(patch, "TaskScheduled", change)


def _replay_by_now(patch: Patch) -> None:
    clock = itertools.count(1)
    _apply_as(patch, "TimerSet", lambda event: _own(event, due=event.holdfast["due"] + next(clock)))


def _draw_anew(patch: Patch) -> None:
    """Draw other random numbers when the record is written."""
    numbers = itertools.count(1)
    patch.setattr(decision_inputs, "draw", lambda *_: next(numbers) * 0.137 % 1)


def _child_of_chance(patch: Patch) -> None:
    numbers = itertools.count(7)
    patch.setattr(
        child_workflows, "child_run", lambda run, entry, _: f"{run}.{entry}.{next(numbers)}"
    )


def _join_a_set(patch: Patch) -> None:
    def leave(decision: Decision, frame: Frame, *arguments: Any, **named: Any) -> None:
        named["default"] = [
            json.loads(text) for text in {json.dumps(one) for one in named["default"]}
        ]
        flow.leave(decision, frame, *arguments, **named)

    double = type("flow", (), {**vars(flow), "leave": staticmethod(leave)})
    for name, function in vars(flow).items():
        if callable(function) and name != "leave" and not isinstance(function, type):
            setattr(double, name, staticmethod(function))
    patch.setattr(lanes, "flow", double)


def _forget_a_field(patch: Patch) -> None:
    real = state_json.to_json

    def to_json(state: Any) -> Any:
        document = real(state)
        return {
            **document,
            "frames": [{**frame, "retries": []} for frame in document["frames"]],
        }

    patch.setattr(state_json, "to_json", to_json)
    patch.setattr(codec, "to_json", to_json)
    from holdfast_simulator.invariants import log as checked

    patch.setattr(checked, "to_json", to_json)


# -- values ----------------------------------------------------------------------------------------


def _bit_rot(patch: Patch) -> None:
    """Return other bytes from S3 now and then; the reader has a hash to compare."""
    real = Services.__init__
    reads = itertools.count()

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)

        def get(effect: GetBlob) -> bytes:
            data: bytes = self._blobs[effect.key]
            return data.replace(b"a", b"b", 1) if next(reads) % 2 == 0 else data

        self._performers[GetBlob] = get

    patch.setattr(Services, "__init__", init)


def _read_unchecked(patch: Patch) -> None:
    _bit_rot(patch)
    real = inbox.unstow

    def unstow(tenant: str, place: str, stowed: Any) -> Does:
        if "v" in stowed:
            return (yield from real(tenant, place, stowed))
        data = yield GetBlob(keys.blob(tenant, place, str(stowed["ref"])))
        return json.loads(data)

    patch.setattr(inbox, "unstow", unstow)


def _measure_characters(patch: Patch) -> None:
    """Measure a record by its characters instead of its bytes."""

    def with_payload(item: Any, text: str, header: Any, blobs: Any) -> Any:
        if len(text) > RECORD_BYTES_MAX:
            return real(item, text, header, blobs)
        return {**item, "ev": text, **codec._blob_names(blobs)}

    real = codec._with_payload
    patch.setattr(codec, "_with_payload", with_payload)
    # It is refused each time, for weeks.
    patch.setattr(runner, "_PATIENCE_MS", 60_000)


def _tell_the_cause(patch: Patch) -> None:
    """The list shows the cause of a failure beside its error."""

    def listing(tenant: str, state: Any, now_ms: int) -> Any:
        fields = real_listing(tenant, state, now_ms)
        return {**fields, "er": f"{state.error}: {state.cause}"} if "er" in fields else fields

    for module in (loop, committing):
        patch.setattr(module, "listing", listing)


_REPLAY = frozenset({"I3"})
_APPLIED = frozenset({"I5"})

PLANTED = (
    Planted("a result is matched by its order", _match_by_order, _APPLIED, LANES, {}),
    Planted("a result is matched by its name", _match_by_name, _APPLIED, LANES, {}),
    Planted("a result of an old attempt counts", _match_old_attempts, _APPLIED, SLOW, {}),
    Planted("the count of retries is not kept", _forget_the_count, _APPLIED, EXHAUSTED, {}),
    Planted("one retry more", _retry_once_more, _APPLIED, EXHAUSTED, {}),
    Planted("a retry without backoff", _delay_without_backoff, _APPLIED, RETRIED, {}),
    Planted("caught before it is retried", _catch_before_retry, frozenset({"I13"}), CAUGHT, {}),
    Planted("the last catcher that fits", _catch_with_the_last, frozenset({"I13"}), CAUGHT, {}),
    Planted("a delay by the clock at replay", _delay_by_the_wall_clock, _REPLAY, RETRIED, {}),
    Planted("a delay drawn at replay", _jitter_at_replay, _REPLAY, JITTER, {}),
    Planted("replay by the present time", _replay_by_now, _REPLAY, NAP, {}),
    Planted(
        "chance is drawn anew",
        _draw_anew,
        frozenset({"I4"}),
        DRAWN,
        {"delivered again": 0.5},
    ),
    Planted("the id of a child is drawn", _child_of_chance, frozenset({"I4"}), CALLED, {}),
    Planted("results in the order of a set", _join_a_set, frozenset({"I11", "I13"}), MANY, {}),
    Planted("a snapshot forgets the retries", _forget_a_field, _REPLAY, RETRIED, {}),
    Planted(
        "a blob is read unchecked", _read_unchecked, frozenset({"I4", "I12", "I13"}), LARGE, {}
    ),
    Planted(
        "characters are taken for bytes",
        _measure_characters,
        frozenset({"I14"}),
        WIDE,
        {},
        {"receives_max": 2, "safety_ms": 1_000},
    ),
    Planted("the list tells a cause", _tell_the_cause, frozenset({"I14"}), SECRET, {}),
)
