"""Bugs in the guards of an execution without a worker: sweeper, recovery, dead letters, leases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.core import attempt_facts, waits
from holdfast.core.diagnosis import OverdueReason, diagnose
from holdfast.core.state import Awaiting, WaitingFor, is_told
from holdfast.core.waits import pending_commands
from holdfast.limits import OVERDUE_SECONDS
from holdfast.runtime import follow_ups, inbox, messages, watchdog
from holdfast.runtime.effects import Message, Send
from holdfast.runtime.maintenance import dead_letters, quarantine, sweeper
from holdfast.runtime.worker import delivery, loop, recovery
from holdfast.runtime.worker.attempts import Attempts
from holdfast.runtime.worker.delivery import Delivery
from holdfast_simulator import invocations
from tests.builders import call, machine, wait_for
from tests.sim.planted.kit import CORPUS, AttemptOutcome, Brought, Patch, Planted, Scenario
from tests.sim.planted.timing import DAY_SECONDS, LONG, nothing

_SLOW = (AttemptOutcome(output=1, seconds=30),)
SLOW = Scenario(
    "slow",
    "a task after a wait",
    {
        "main": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 10, "Next": "work"},
                "work": call("work", "more"),
                "more": call("more"),
            }
        )
    },
    tasks={"work": _SLOW, "more": _SLOW},
)
#: Longer than a message is hidden, and long after the faults.
FIVE_MINUTES = Scenario(
    "five minutes",
    "a task that takes longer than one hiding of its message",
    {
        "main": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 3_600, "Next": "work"},
                "work": call("work", TimeoutSeconds=600),
            }
        )
    },
    tasks={"work": (AttemptOutcome(output=1, seconds=300),)},
)
#: No invocation has time for two of them.
LONG_TASKS = Scenario(
    "long tasks",
    "each needs most of an invocation",
    {
        "main": machine(
            {
                "one": call("work", "two", TimeoutSeconds=700),
                "two": call("work", TimeoutSeconds=700),
            }
        )
    },
    tasks={"work": (AttemptOutcome(output=1, seconds=400),)},
)
POISON = Scenario(
    "poison",
    "each worker that runs it dies",
    {"main": machine({"nap": {"Type": "Wait", "Seconds": 10, "Next": "it"}, "it": call("it")})},
    tasks={"it": (AttemptOutcome(error="SIGKILL"),)},
)
STOPPED = Scenario(
    "stopped",
    "an operator stops a long wait",
    {
        "main": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 30 * DAY_SECONDS, "Next": "work"},
                "work": call("work"),
            }
        )
    },
    stops=True,
)
_LATE = [{"ErrorEquals": ["States.ALL"], "Next": "late"}]
PAID = Scenario(
    "paid",
    "an event within two weeks",
    {
        "main": machine(
            {
                "paid": wait_for("paid", "late", TimeoutSeconds=13 * DAY_SECONDS, Catch=_LATE),
                "late": {"Type": "Succeed"},
            }
        )
    },
    events=(Brought(100, "paid", "k1", {"n": 1}, "e1"),),
)
CHILD = Scenario(
    "child",
    "a child that takes a while",
    {
        "main": machine(
            {
                "child": {
                    "Type": "Task",
                    "Resource": "holdfast:workflow:child",
                    "TimeoutSeconds": 30 * DAY_SECONDS,
                    "End": True,
                }
            }
        ),
        "child": machine({"nap": {"Type": "Wait", "Seconds": 100, "End": True}}),
    },
)
SHARES = Scenario(
    "shares",
    "a distributed Map of three short tasks",
    {
        "main": machine(
            {
                "all": {
                    "Type": "Map",
                    "Items": [1, 2, 3],
                    "ItemProcessor": {
                        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                        "StartAt": "work",
                        "States": {"work": call("work")},
                    },
                    "End": True,
                }
            }
        )
    },
)
_WAITS = [
    machine({f"nap {n}": {"Type": "Wait", "Seconds": 400 + n, "End": True}}) for n in range(8)
]
MANY = Scenario(
    "many",
    "eight waits side by side",
    {
        "main": machine(
            {
                "all": {
                    "Type": "Parallel",
                    "Branches": [
                        {"StartAt": one["StartAt"], "States": one["States"]} for one in _WAITS
                    ],
                    "End": True,
                }
            }
        )
    },
)


# -- the sweeper -----------------------------------------------------------------------------------


def _never_sweep(patch: Patch) -> None:
    def sweep(*_: Any) -> Any:
        return []
        yield

    patch.setattr(sweeper, "sweep", sweep)


def _see_no_timers(patch: Patch) -> None:
    patch.setattr(sweeper, "_timer", lambda row, _now_ms: follow_ups.drop_row(row))


def _see_no_lapsed_claims(patch: Patch) -> None:
    def needs_a_look(state: Any, now_ms: int) -> bool:
        return any(
            one.reason is not OverdueReason.CLAIM_LAPSED
            and one.since_ms + OVERDUE_SECONDS * 1_000 < now_ms
            for one in diagnose(state, now_ms)
        )

    patch.setattr(sweeper, "_needs_a_look", needs_a_look)


def _see_no_control_mail(patch: Patch) -> None:
    def nothing(*_: Any) -> Any:
        return []
        yield

    blind = type("blind", (), {**vars(inbox), "control_facts": staticmethod(nothing)})
    patch.setattr(sweeper, "inbox", blind)


def _see_no_mail(patch: Patch) -> None:
    patch.setattr(sweeper, "may_have_news", lambda _waiting: False)


def _see_no_children(patch: Patch) -> None:
    def may_have_news(waiting: WaitingFor) -> bool:
        is_child = isinstance(waiting, Awaiting) and is_told(waiting.target)
        return not is_child and waits.may_have_news(waiting)

    patch.setattr(sweeper, "may_have_news", may_have_news)


# -- dead letters ----------------------------------------------------------------------------------


def _revive_only(patch: Patch, is_kept: Callable[[str], bool]) -> None:
    real = dead_letters.revive

    def revive(letter: Any, *more: Any) -> Any:
        if is_kept(letter.body["k"]):
            yield from real(letter, *more)

    patch.setattr(dead_letters, "revive", revive)


def _drop_starts(patch: Patch) -> None:
    _revive_only(patch, lambda kind: kind != messages.START)


def _drop_letters(patch: Patch) -> None:
    _revive_only(patch, lambda kind: kind == messages.START)


def _forget_ends(patch: Patch) -> None:
    patch.setattr(quarantine, "_if_it_is_an_end", lambda *_: None)


def _drop_what_is_released(patch: Patch) -> None:
    patch.setattr(quarantine, "release", quarantine.drop)


# -- recovering ------------------------------------------------------------------------------------


def _notice_no_twin(patch: Patch) -> None:
    patch.setattr(Delivery, "notice_twin", lambda *_: None)


def _pass_over_ended_starts(patch: Patch) -> None:
    patch.setattr(Delivery, "_is_start_of_ended", lambda *_: False)


def _carry_out_everything(patch: Patch) -> None:
    patch.setattr(
        recovery, "_owed_again", lambda delivery, log, now_ms: pending_commands(log.state)
    )
    patch.setattr(recovery, "_sees_to", lambda *_: False)
    real = Delivery.__post_init__

    def always(self: Delivery) -> None:
        real(self)
        self.is_recovering = True

    patch.setattr(Delivery, "__post_init__", always)


def _see_to_named_places(patch: Patch) -> None:
    """Report the end of a child by its lane alone, and begin the next one at the same place."""

    patch.setattr(delivery, "place_of", lambda _waiting: None)


def _copy_the_message(patch: Patch) -> None:
    real = loop.Processing._acknowledge

    def acknowledge(self: loop.Processing, now_ms: int) -> Any:
        yield Send((Message(dict(self.delivery.body), 1),))
        return (yield from real(self, now_ms))

    patch.setattr(loop.Processing, "_acknowledge", acknowledge)


# -- claims and visibility -------------------------------------------------------------------------


def refuse_go(patch: Patch) -> None:
    real = Attempts.take

    def take(self: Attempts) -> Any:
        body = {**self.delivery.body, "from": "nobody"}
        self.delivery.received = replace(self.delivery.received, body=body)
        return (yield from real(self))

    patch.setattr(Attempts, "take", take)


def _claim_for_ever(patch: Patch) -> None:
    patch.setattr(delivery, "is_lost", lambda *_: False)


def _never_claim_late(patch: Patch) -> None:
    patch.setattr(Attempts, "claim_late", lambda *_: ([], 10**15))


def _begin_without_a_lease(patch: Patch) -> None:
    patch.setattr(Attempts, "_once", lambda *_: frozenset())


def _take_once_over(patch: Patch) -> None:
    patch.setattr(attempt_facts, "_runs_once", lambda _: False)


def _take_over_for_long(patch: Patch) -> None:
    """Not for ever: the schedule has to end."""
    patch.setattr(attempt_facts, "TAKEOVERS_MAX", 12)


def _hide_once(patch: Patch) -> None:
    patch.setattr(invocations, "VISIBILITY_EXTENSION_SECONDS", 10**6)


def _forget_the_watch(patch: Patch) -> None:
    patch.setattr(watchdog, "watch", nothing)


_ONCE: Any = {"Holdfast": {"AtMostOnce": True}}
_OFTEN: Any = {"ErrorEquals": ["StepInterrupted", "Broken"], "IntervalSeconds": 5, "MaxAttempts": 4}
ONCE = Scenario(
    "at most once",
    "tasks that start at most once for each attempt: the first, after a retry, and in branches",
    {
        "main": machine(
            {
                "first": call("pay", "both", Retry=[_OFTEN], **_ONCE),
                "both": {
                    "Type": "Parallel",
                    "Next": "long",
                    "Branches": [
                        machine({"b": call("flaky", Retry=[_OFTEN], **_ONCE)}),
                        machine({"c": call("pay", Retry=[_OFTEN], **_ONCE)}),
                    ],
                },
                "long": call("slow", Retry=[_OFTEN], **_ONCE),
            }
        )
    },
    tasks={
        "pay": (AttemptOutcome("paid", seconds=1),),
        "flaky": (AttemptOutcome(error="Broken"), AttemptOutcome("done", seconds=2)),
        "slow": (AttemptOutcome("slow", seconds=700),),
    },
    stops=True,
)
_STUCK = frozenset({"I16", "I17"})
PLANTED = (
    Planted("there is no sweeper", _never_sweep, _STUCK, LONG, {}),
    Planted(
        "the sweeper sees no timers",
        _see_no_timers,
        frozenset({"I18"}),
        LONG,
        {},
        {"safety_ms": 0},
    ),
    Planted(
        "the sweeper sees no lapsed claims",
        _see_no_lapsed_claims,
        _STUCK,
        SLOW,
        {"killed before": 0.1, "vanished": 0.4},
        seed=28,
    ),
    Planted(
        "the sweeper sees no control mail",
        _see_no_control_mail,
        frozenset({"I9", "I17"}),
        STOPPED,
        {"vanished": 0.5},
        {"stop_percent": 100},
    ),
    Planted("the sweeper sees no mail", _see_no_mail, _STUCK, PAID, {"vanished": 0.5}),
    Planted("the sweeper sees no children", _see_no_children, _STUCK, CHILD, {"vanished": 0.5}),
    Planted("no execution is watched", _forget_the_watch, _STUCK, SLOW, {"vanished": 0.1}),
    Planted(
        "a start among the dead letters is dropped",
        _drop_starts,
        _STUCK | {"I4", "I12"},
        SLOW,
        {"killed before": 0.3},
        {"receives_max": 2},
    ),
    Planted(
        "a dead letter is dropped",
        _drop_letters,
        _STUCK,
        PAID,
        {"killed before": 0.4},
        {"receives_max": 2, "safety_ms": 900_000},
    ),
    Planted(
        "an end in quarantine is forgotten",
        _forget_ends,
        _STUCK,
        STOPPED,
        {"throttled": 0.2, "killed before": 0.2},
        {"receives_max": 2, "safety_ms": 4_000_000, "stop_percent": 100},
        seed=25,
    ),
    Planted(
        "what is released from quarantine is dropped",
        _drop_what_is_released,
        _STUCK,
        SLOW,
        {"killed before": 0.4},
        {"receives_max": 2, "safety_ms": 2_000_000},
        seed=502,
    ),
    Planted(
        "a twin is not noticed",
        _notice_no_twin,
        _STUCK | {"I4", "I18"},
        LONG,
        {"killed after": 0.1, "duplicated": 0.5},
        {"takes_stale_receipts": True},
    ),
    Planted(
        "a child that has ended does not report at its second start",
        _pass_over_ended_starts,
        frozenset({"I16"}),
        SHARES,
        {"answer lost": 0.1, "vanished": 0.1},
    ),
    Planted(
        "each redelivery carries out everything",
        _carry_out_everything,
        frozenset({"I20"}),
        MANY,
        {"delivered again": 0.3, "duplicated": 0.2},
    ),
    Planted(
        "a redelivery sees to no place that its record does not name",
        _see_to_named_places,
        _STUCK | {"I4"},
        CORPUS["distributed one by one"],
        {"killed after": 0.1},
    ),
    Planted(
        "a worker that runs a long retry never claims it",
        _never_claim_late,
        frozenset({"I20"}),
        CORPUS["retried at length"],
        {},
    ),
    Planted(
        "a task that starts at most once begins without a lease",
        _begin_without_a_lease,
        frozenset({"I5"}),
        ONCE,
    ),
    Planted(
        "a task that starts at most once is taken over",
        _take_once_over,
        frozenset({"I5"}),
        ONCE,
    ),
    Planted("a message copies itself", _copy_the_message, frozenset({"I20"}), SLOW, {}),
    Planted("what is handed on is not taken", refuse_go, frozenset({"I18"}), LONG_TASKS, {}),
    Planted("a claim holds for ever", _claim_for_ever, _STUCK, SLOW, {"killed before": 0.1}),
    Planted(
        "a poisoned task is taken over again and again",
        _take_over_for_long,
        frozenset({"I20"}),
        POISON,
        {},
    ),
    Planted("a message is hidden once", _hide_once, frozenset({"I20"}), FIVE_MINUTES, {}),
)
