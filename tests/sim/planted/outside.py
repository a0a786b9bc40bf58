"""Bugs in the handling of external input: answers, events, starts, tenants, children (I7, I12,
I15).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

from holdfast.core import attempt_facts
from holdfast.core.apply import tasks
from holdfast.core.commands import StopChild
from holdfast.core.events import Event
from holdfast.core.state import Awaiting, Execution
from holdfast.errors import ServiceFault
from holdfast.runtime import children, event_claims, follow_ups, inbox, kept_events
from holdfast.runtime.commands import answers, events, start, tokens
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.effects import Effect, Handler, Item, NoResult, Put, PutIfAbsent, Query
from holdfast.runtime.storage import keys
from holdfast.runtime.worker import own_claims, recovery
from tests.builders import ask, call, machine, wait_for
from tests.sim.planted.kit import CORPUS, AttemptOutcome, Brought, Patch, Planted, Scenario

_GIVE_UP = [{"ErrorEquals": ["States.ALL"], "Next": "done"}]
_TRY_AGAIN = [{"ErrorEquals": ["Refused"], "Next": "second"}, *_GIVE_UP]
_DONE = {"Type": "Succeed"}


def _answers(seconds: float, *states: str, **fields: Any) -> dict[str, AttemptOutcome]:
    return {state: AttemptOutcome({"ok": state}, seconds=seconds, **fields) for state in states}


PAID_TWICE = Scenario(
    "paid twice",
    "two waits, two events, the first of them early",
    {
        "main": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 20, "Next": "first"},
                "first": wait_for("paid", "second", TimeoutSeconds=3_600, Catch=_GIVE_UP),
                "second": wait_for("paid", "done", TimeoutSeconds=3_600, Catch=_GIVE_UP),
                "done": _DONE,
            }
        )
    },
    events=(Brought(2, "paid", "k1", 1, "e1"), Brought(90, "paid", "k1", 2, "e2")),
)
SINCE_THE_START = Scenario(
    "paid before the start and after it",
    "a child starts after the first of two events, and uses no event of before its start",
    {
        "main": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 60, "Next": "child"},
                "child": {
                    "Type": "Task",
                    "Resource": "holdfast:workflow:child",
                    "Arguments": {},
                    "End": True,
                },
            }
        ),
        "child": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 600, "Next": "first"},
                "first": wait_for("paid", "done", TimeoutSeconds=3_600, Catch=_GIVE_UP)
                | {"Arguments": {"event": "paid", "key": "k1", "kept": False}},
                "done": _DONE,
            }
        ),
    },
    events=(Brought(2, "paid", "k1", 1, "e1"), Brought(300, "paid", "k1", 2, "e2")),
)
EARLY = Scenario(
    "paid early",
    "the event is there before an execution waits for it, and the waits are long",
    {
        "main": machine(
            {"slow": call("slow", "wait"), "wait": wait_for("paid")},
        )
    },
    tasks={"slow": (AttemptOutcome(seconds=4),)},
    events=(Brought(1, "paid", "k1", 1, "e1"),),
)
ONE_EVENT = Scenario(
    "paid once",
    "two waits, and one event",
    PAID_TWICE.machines,
    events=(Brought(40, "paid", "k1", 1, "e1"),),
)
FAILED_ONCE = Scenario(
    "a wait is failed once",
    "two waits, and one event, which fails the first",
    {
        "main": machine(
            {
                "first": wait_for("paid", "second", TimeoutSeconds=3_600, Catch=_TRY_AGAIN),
                "second": wait_for("paid", "done", TimeoutSeconds=3_600, Catch=_GIVE_UP),
                "done": _DONE,
            }
        )
    },
    events=(Brought(40, "paid", "k1", None, "e1", "Refused", "no"),),
)
QUESTIONS = Scenario(
    "two questions",
    "two lanes ask, each of its own",
    {
        "main": machine(
            {
                "both": {
                    "Type": "Parallel",
                    "Branches": [
                        {"StartAt": "one", "States": {"one": ask()}},
                        {"StartAt": "two", "States": {"two": ask()}},
                    ],
                    "End": True,
                }
            }
        )
    },
    answers=_answers(60, "one", "two"),
)
_AGAIN = [{"ErrorEquals": ["Again"], "IntervalSeconds": 1, "MaxAttempts": 4, "BackoffRate": 1}]
ASKED_AGAIN = Scenario(
    "a question that is asked again",
    "each answer but the last is an error that is retried",
    {"main": machine({"one": ask("done", Retry=_AGAIN, Catch=_GIVE_UP), "done": _DONE})},
    answers={"one": AttemptOutcome(error="Again", seconds=9)},
)
IN_TIME = Scenario(
    "a question with an end",
    "answered just before its time is over, or just after",
    {"main": machine({"one": ask("done", TimeoutSeconds=60, Catch=_GIVE_UP), "done": _DONE})},
    answers=_answers(57, "one"),
)
SHARED = CORPUS["an event for one of two executions"]
GIVEN_UP = CORPUS["an event at the end of the execution that waits"]
CHILDREN_ASK = Scenario(
    "children that ask",
    "the same place in two executions",
    {
        "main": machine(
            {
                "both": {
                    "Type": "Parallel",
                    "Branches": [
                        {"StartAt": name, "States": {name: _child}}
                        for name, _child in (
                            (
                                name,
                                {
                                    "Type": "Task",
                                    "Resource": "holdfast:workflow:inner",
                                    "End": True,
                                },
                            )
                            for name in ("left", "right")
                        )
                    ],
                    "End": True,
                }
            }
        ),
        "inner": machine({"one": ask()}),
    },
    answers=_answers(60, "one"),
)
STARTED = Scenario(
    "started by many",
    "one task, and an input of two words",
    {"main": machine({"a": call("one", Arguments={"of": "{% $states.input.one %}"})})},
    {"one": "two", "two": "one"},
)
STOPPED = Scenario(
    "stopped at once",
    "the caller that started it stops it",
    {
        "main": machine(
            {"a": call("one", "nap"), "nap": {"Type": "Wait", "Seconds": 4_000, "End": True}}
        )
    },
    stops=True,
)
SLOW_CHILD = Scenario(
    "a child that is given up",
    "the caller goes on for a long while, and so would the child",
    {
        "main": machine(
            {
                "call": {
                    "Type": "Task",
                    "Resource": "holdfast:workflow:inner",
                    "TimeoutSeconds": 30,
                    "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "nap"}],
                    "Next": "nap",
                },
                "nap": {"Type": "Wait", "Seconds": 80_000, "End": True},
            }
        ),
        "inner": machine({"long": {"Type": "Wait", "Seconds": 40_000, "End": True}}),
    },
)
CALLED_AGAIN = Scenario(
    "called again and again",
    "the same state calls three times",
    {
        "main": machine(
            {
                "begin": {"Type": "Pass", "Assign": {"left": 3}, "Next": "call"},
                "call": {
                    "Type": "Task",
                    "Resource": "holdfast:workflow:inner",
                    "Arguments": {"n": "{% $left %}"},
                    "Assign": {"left": "{% $left - 1 %}", "got": "{% $states.result %}"},
                    "Next": "more",
                },
                "more": {
                    "Type": "Choice",
                    "Choices": [{"Condition": "{% $left > 0 %}", "Next": "call"}],
                    "Default": "done",
                },
                "done": {"Type": "Succeed", "Output": "{% $got %}"},
            }
        ),
        "inner": machine({"add": call("one", Arguments="{% $states.input.n %}")}),
    },
)

#: A sender may be frozen between its read and its write.
FROZEN = {"frozen before": 0.03}
FAULTS = {"killed after": 0.03, "killed before": 0.03, "late": 0.2, "answer lost": 0.05}


# -- a handler with other effects ------------------------------------------------------------------


def through(handler: Handler, change: Callable[[Effect], Effect | None]) -> Handler:
    """The handler, with each effect changed; None: it is not performed, and answered by None."""
    step: Callable[[], Effect] = partial(next, handler)
    while True:
        try:
            effect = change(step())
        except StopIteration as stop:
            return stop.value
        try:
            step = partial(handler.send, None if effect is None else (yield effect))
        except ServiceFault as fault:
            step = partial(handler.throw, fault)


def _changed(patch: Patch, name: str, change: Callable[[Effect], Effect | None]) -> None:
    real = getattr(Front, name)
    patch.setattr(Front, name, lambda self, *given: through(real(self, *given), change))


def _takes_events(patch: Patch, *, of_any_age: bool) -> None:
    """Let a wait without kept events use an event of any age, or none that is there before it."""

    def takes_event_of(self: Execution, awaiting: Awaiting, stored_ms: int) -> bool:
        return awaiting.takes_kept_events or of_any_age or stored_ms >= awaiting.since_ms

    patch.setattr(Execution, "takes_event_of", takes_event_of)


# -- events ----------------------------------------------------------------------------------------


def _drop_early_events(patch: Patch) -> None:
    real = events.event

    def event(known: Lookup, tenant: str, request: Any, chance: bytes, **own: Any) -> Handler:
        partition = keys.event(tenant, str(request["name"]), request["key"])
        if not (yield Query("mail", partition, begins_with=keys.REGISTRATION_PREFIX)):
            return {"event": request["id"], "waiting": 0}
        return (yield from real(known, tenant, request, chance, **own))

    patch.setattr(events, "event", event)


def _forget_to_list(patch: Patch) -> None:
    def nothing(*_given: Any) -> Iterator[Effect]:
        yield from ()

    patch.setattr(kept_events, "keep_listed", nothing)


def _keep_events_twice(patch: Patch) -> None:
    """The bus delivers twice, and its own id is not looked at."""
    real, times = Front.bus_event, Counter[tuple[str, str]]()

    def bus_event(self: Front, tenant: str, given: Any, detail: Any, chance: bytes) -> Handler:
        nth, times[tenant, given] = times[tenant, given], times[tenant, given] + 1
        named = {**detail, "id": f"{given}-{nth}" if nth else given}
        return real(self, tenant, given, named, chance)

    patch.setattr(Front, "bus_event", bus_event)


def _use_events_again(patch: Patch) -> None:
    def received(decision: Any, fact: Any) -> None:
        frame = decision.state.frame_of(fact.entry)
        if frame is not None and isinstance(frame.waiting, Awaiting):
            own = {"event": fact.event_id, "expires": fact.expires_ms}
            attempt_facts._complete(decision, frame, decision.state_of(frame), fact.data, **own)

    real = inbox.unread_facts

    def unread_facts(
        tenant: str, state: Execution, awaiting: Awaiting, items: Any, now_ms: int
    ) -> Any:
        return (yield from real(tenant, state._replace(used_events={}), awaiting, items, now_ms))

    patch.setattr(attempt_facts, "_event_received", received)
    patch.setattr(inbox, "unread_facts", unread_facts)


def _take_events_of_others(patch: Patch) -> None:
    """Each execution uses the event that it has read, without a claim."""

    def take(_tenant: str, _run: str, _wanted: Any) -> Generator[Effect, Any, bool]:
        return True
        yield

    patch.setattr(event_claims, "take", take)


def _leave_events_to_ended_waits(patch: Patch) -> None:
    """An execution keeps the event that the sender has claimed for its ended wait."""

    def give_back(_log: Any, _event: Any) -> NoResult:
        yield from ()

    patch.setattr(own_claims, "give_on", give_back)


def _keep_unused_claims(patch: Patch) -> None:
    """An event that an ended execution has claimed stays with it."""

    def give_back(_tenant: str, _run: str, _claim: Any) -> NoResult:
        yield from ()

    def unused_by(_tenant: str, _run: str, _items: Any) -> Generator[Effect, Any, list[Item]]:
        return []
        yield

    patch.setattr(kept_events, "give_back", give_back)
    patch.setattr(event_claims, "unused_by", unused_by)


# -- tokens ----------------------------------------------------------------------------------------

_FIELDS = {"execution": 3, "waiter": 4, "attempt": 5, "expiry": 6}


def _not_bound_to(field: str) -> Callable[[Patch], None]:
    """The signature covers everything but that field."""

    def plant(patch: Patch) -> None:
        real = tokens._mac

        def mac(text: str, secret: bytes) -> str:
            fields = text.split(".")
            del fields[_FIELDS[field]]
            return real(".".join(fields), secret)

        patch.setattr(tokens, "_mac", mac)

    return plant


def _not_bound_to_tenant(patch: Patch) -> None:
    def require(text: str, known: Any, tenant: str, now_ms: int) -> tokens.Token:
        token = tokens._read(text, known)
        return tokens.require_token(text, known, tenant if token is None else token.tenant, now_ms)

    patch.setattr(answers, "require_token", require)


def _accept_expired(patch: Patch) -> None:
    real = tokens.require_token
    forever = lambda text, known, tenant, _: real(text, known, tenant, 0)  # noqa: E731
    patch.setattr(answers, "require_token", forever)


def _accept_second_answers(patch: Patch) -> None:
    def overwrite(effect: Effect) -> Effect | None:
        if isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("t#"):
            return Put(effect.table, effect.item)
        return effect

    _changed(patch, "answer", overwrite)


def _answer_whoever_waits(patch: Patch) -> None:
    """Found by its kind, not by its entry and attempt."""
    real = attempt_facts._current

    def current(decision: Any, entry: int, attempt: int) -> Any:
        for frame in decision.state.frames.values():
            if isinstance(frame.waiting, Awaiting) and frame.waiting.kind == "ask":
                return frame, decision.state_of(frame), frame.waiting
        return real(decision, entry, attempt)

    patch.setattr(attempt_facts, "_current", current)


# -- stops and children ----------------------------------------------------------------------------


def _drop_stops_of_what_has_not_begun(patch: Patch) -> None:
    real = Front.stop

    def stop(self: Front, tenant: str, identifier: str, request: Any, chance: bytes) -> Handler:
        log = yield from self.known.require_log(tenant, identifier)
        if log.state is None:
            return {"execution": log.run}
        return (yield from real(self, tenant, identifier, request, chance))

    patch.setattr(Front, "stop", stop)


def _forget_owed_stops(patch: Patch) -> None:
    """Stop children only at the commit; a recovering worker does not repeat the stops."""
    real = recovery._owed_again

    def owed_again(*arguments: Any) -> Any:
        return [one for one in real(*arguments) if not isinstance(one, StopChild)]

    patch.setattr(recovery, "_owed_again", owed_again)


def _tell_another_lane(patch: Patch) -> None:
    """A child's end is stored for the first place that its parent has, not for its own."""

    def answer(entry: int, attempt: int) -> str:
        del entry
        return keys.answer(1, attempt)

    wrong = type("wrong", (), {**vars(keys), "answer": staticmethod(answer)})
    patch.setattr(children, "keys", wrong)


def _apply_notices_again(patch: Patch) -> None:
    """Read notices by the attempt alone, as if an execution had one place for them."""

    def answer(entry: int, attempt: int) -> str:
        del entry
        return keys.answer(0, attempt)

    one_place = type("one_place", (), {**vars(keys), "answer": staticmethod(answer)})
    patch.setattr(children, "keys", one_place)
    patch.setattr("holdfast.runtime.inbox.keys", one_place)
    real = attempt_facts._current

    def current(decision: Any, entry: int, attempt: int) -> Any:
        for frame in decision.state.frames.values():
            if entry == 0 and isinstance(frame.waiting, Awaiting):
                return frame, decision.state_of(frame), frame.waiting
        return real(decision, entry, attempt)

    patch.setattr(attempt_facts, "_current", current)


def read_no_answer(patch: Patch) -> None:
    """The answer came before its wait, and so did its wake."""

    def nothing(*_given: Any) -> Any:
        return []
        yield

    patch.setattr(follow_ups, "_read_answer", nothing)


def _look_at_no_event(patch: Patch) -> None:
    """Register a new wait, and read none of the stored events."""
    real = follow_ups._register

    def register(log: Any, entry: int, now_ms: int) -> Any:
        yield from real(log, entry, now_ms)
        return []

    patch.setattr(follow_ups, "_register", register)


# -- starts and tenants ----------------------------------------------------------------------------


def _start_twice(patch: Patch) -> None:
    def claim(_tenant: str, wanted: Start, _data: Any) -> Generator[Effect, Any, Start]:
        return wanted
        yield

    patch.setattr(start, "claim_name", claim)


def _hash_obeys_order(patch: Patch) -> None:
    patch.setattr(
        start, "hash_of", lambda data: hashlib.sha256(json.dumps(data).encode()).hexdigest()
    )


def _hash_ignores_whose(patch: Patch) -> None:
    """A hash of the sorted words, so that none of them stands with its own key."""

    def of_words(data: Any) -> str:
        words = sorted(
            json.dumps(data).replace("{", " ").replace("}", " ").replace(",", " ").split()
        )
        keyed = sorted(word.rstrip(":") for word in words)
        return hashlib.sha256(json.dumps(keyed).encode()).hexdigest()

    patch.setattr(start, "hash_of", of_words)


def _one_name_for_all_tenants(patch: Patch) -> None:
    real = keys.name
    patch.setattr(keys, "name", lambda _tenant, flow, name: real("default", flow, name))


def _use_failing_events_again(patch: Patch) -> None:
    real = tasks._with_used_event

    def planted(state: Execution, event: Event) -> Execution:
        return state if event.type == "TaskFailed" else real(state, event)

    patch.setattr(tasks, "_with_used_event", planted)


def _events_of_all_tenants(patch: Patch) -> None:
    real = keys.event
    patch.setattr(keys, "event", lambda _tenant, name, key: real("default", name, key))


_I7 = frozenset({"I7"})
_TENANTS = {"has_other_tenant": True}
_CALLERS = {"callers": 3, "has_other_input": False}

PLANTED = (
    Planted("an early event is dropped", _drop_early_events, _I7, PAID_TWICE, {}),
    Planted(
        "an event of before the start is used",
        partial(_takes_events, of_any_age=True),
        _I7,
        SINCE_THE_START,
        {},
    ),
    Planted(
        "an event between the start and the wait is not used",
        partial(_takes_events, of_any_age=False),
        _I7,
        SINCE_THE_START,
        {},
    ),
    Planted("an early event is not listed", _forget_to_list, _I7, PAID_TWICE, {}),
    Planted("an event is kept twice", _keep_events_twice, _I7, PAID_TWICE, {"duplicated": 0.3}),
    Planted("an event is used after its use", _use_events_again, _I7, ONE_EVENT, {}),
    Planted("a failing event is used again", _use_failing_events_again, _I7, FAILED_ONCE, {}),
    Planted("an event is used by two executions", _take_events_of_others, _I7, SHARED, {}),
    Planted("an ended execution keeps an event", _keep_unused_claims, _I7, GIVEN_UP, FAULTS),
    Planted(
        "an ended wait keeps an event",
        _leave_events_to_ended_waits,
        _I7,
        GIVEN_UP,
        FROZEN,
        settings={"receives_max": 30},
        seed=406,
    ),
    Planted(
        "a token is not bound to its waiter",
        _not_bound_to("waiter"),
        _I7,
        QUESTIONS,
        {"forged": 0.5},
    ),
    Planted(
        "a token is not bound to its execution",
        _not_bound_to("execution"),
        _I7,
        CHILDREN_ASK,
        {"forged": 0.5},
    ),
    Planted(
        "a token is not bound to its attempt",
        _not_bound_to("attempt"),
        _I7,
        ASKED_AGAIN,
        {"forged": 0.5},
    ),
    Planted(
        "a token's end is not signed", _not_bound_to("expiry"), _I7, QUESTIONS, {"forged": 0.5}
    ),
    Planted(
        "a token is not bound to its tenant", _not_bound_to_tenant, _I7, QUESTIONS, {"forged": 0.5}
    ),
    Planted("a token is accepted after its end", _accept_expired, _I7, IN_TIME, FAULTS),
    Planted(
        "a second answer is accepted",
        _accept_second_answers,
        _I7,
        QUESTIONS,
        {"contradicted": 0.5, **FAULTS},
    ),
    Planted("an answer is for any wait", _answer_whoever_waits, frozenset({"I7"}), QUESTIONS, {}),
    Planted(
        "a stop of an execution that has not begun is dropped",
        _drop_stops_of_what_has_not_begun,
        frozenset({"I9"}),
        STOPPED,
        {"killed before": 0.1, "late": 0.2},
        {"stop_percent": 100},
    ),
    Planted(
        "the stop of a child is lost in a crash",
        _forget_owed_stops,
        frozenset({"I9"}),
        SLOW_CHILD,
        {"killed after": 0.04, "killed before": 0.04},
    ),
    Planted("a child's end is told to another lane", _tell_another_lane, _I7, CHILDREN_ASK, {}),
    Planted(
        "an answer that came before its wait is not looked for",
        read_no_answer,
        _I7,
        CALLED_AGAIN,
        {"slow": 0.1, "frozen before": 0.05},
    ),
    Planted(
        "an event that came before its wait is not looked for",
        _look_at_no_event,
        _I7,
        EARLY,
        {},
        {"safety_ms": 2_000},
    ),
    Planted("a notice is applied again", _apply_notices_again, _I7, CALLED_AGAIN, {}),
    Planted("a name is started twice", _start_twice, frozenset({"I12"}), STARTED, {}, _CALLERS),
    Planted(
        "the hash of an input obeys the order of its keys",
        _hash_obeys_order,
        frozenset({"I12"}),
        STARTED,
        {},
        _CALLERS,
    ),
    Planted(
        "the hash of an input does not see what belongs to which key",
        _hash_ignores_whose,
        frozenset({"I12"}),
        STARTED,
        {},
        {"callers": 3, "has_other_input": True},
    ),
    Planted(
        "another tenant's name is found",
        _one_name_for_all_tenants,
        frozenset({"I15"}),
        STARTED,
        {},
        _TENANTS,
    ),
    Planted(
        "another tenant's event is found",
        _events_of_all_tenants,
        frozenset({"I15"}),
        ONE_EVENT,
        {},
        _TENANTS,
    ),
)
