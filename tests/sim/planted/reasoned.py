"""The rules that are hardest to see the use of, each with the schedules aimed at its bug (R5, R6,
R9, R10, R11, and what happens before record 0).

A tape here names the effect at which something goes wrong. Which one that has to be depends on
the code, so there is a tape for each that it may be: with the bug one of them fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from itertools import product
from typing import Any, Final

from holdfast.errors import ServiceFault
from holdfast.runtime import follow_ups, messages, pending_starts, watchdog
from holdfast.runtime.effects import Doubt, Effect, Get, PutIfAbsent, Query
from holdfast.runtime.maintenance import sweeper
from holdfast.runtime.storage import log
from holdfast.runtime.storage.keys import CONTROL_PREFIX
from holdfast.runtime.worker import loop
from holdfast_simulator import runner
from holdfast_simulator.schedule import DrawnChoice
from tests.builders import call, machine, wait_for
from tests.sim.planted.kit import AttemptOutcome, Brought, Patch, Planted, Scenario
from tests.sim.planted.protocol import LATE, PAID, SOON, owe_nothing_after_a_race

Does = Any

TWO_TASKS = Scenario(
    "a short task and a long one",
    "the second one is at work for half a minute",
    {"main": machine({"a": call("one", "b"), "b": call("two")})},
    {"n": 1},
    {
        "one": (AttemptOutcome(seconds=0.5, echo=True),),
        "two": (AttemptOutcome(seconds=30, echo=True),),
    },
)
THEN_NAP = Scenario(
    "a task, then a nap",
    "a task of six seconds, then a wait that is over before a message may be late",
    {
        "main": machine(
            {"a": call("one", "nap"), "nap": {"Type": "Wait", "Seconds": 800, "End": True}}
        )
    },
    tasks={"one": (AttemptOutcome(seconds=6, echo=True),)},
)
TASK_OF_AN_EVENT = Scenario(
    "a task after an event",
    "an event begins a task of twenty seconds, and then a nap",
    {
        "main": machine(
            {
                "a": wait_for("paid", "work"),
                "work": call("work", "nap"),
                "nap": {"Type": "Wait", "Seconds": 40, "End": True},
            }
        )
    },
    tasks={"work": (AttemptOutcome(seconds=20),)},
    events=(Brought(10, "paid", "k1", 1, "e1"),),
)
STOPPED = Scenario(
    "stopped while it begins",
    "a task of three seconds, then a wait of a day",
    {"main": machine({"a": call("one", "wait"), "wait": wait_for("paid", TimeoutSeconds=86_400)})},
    tasks={"one": (AttemptOutcome(seconds=3, echo=True),)},
    stops=True,
)
DEADLY = Scenario(
    "a task that kills",
    "each worker that runs the first task dies of it",
    {"main": machine({"a": call("one")})},
    tasks={"one": (AttemptOutcome(error="SIGKILL"),)},
)
TRIED_LATER = Scenario(
    "tried later",
    "a task that fails once, and is tried again after a quarter of an hour",
    {
        "main": machine(
            {
                "a": call(
                    "one",
                    Retry=[{"ErrorEquals": ["Busy"], "IntervalSeconds": 900, "MaxAttempts": 1}],
                )
            }
        )
    },
    tasks={"one": (AttemptOutcome(error="Busy", seconds=1), AttemptOutcome(seconds=1))},
)
#: Where effects of the first workers stand; before them come those of the caller.
_FIRST, _LAST = 4, 25


def _pairs(
    first: str, second: str, *others: DrawnChoice, least: int = _FIRST, most: int = _LAST
) -> list[Sequence[DrawnChoice]]:
    """A tape for each two effects, an earlier one and a later one."""
    return [
        [*others, ("effect", one, first), ("effect", other, second)]
        for one, other in product(range(least, most), repeat=2)
        if one < other
    ]


def _changed(
    running: Generator[Effect, Any, Any], answer_of: Callable[[Effect], Any]
) -> Generator[Effect, Any, Any]:
    """Return the handler with the answers of `answer_of` in place of its own; None: unchanged."""
    answer, fault = None, None
    while True:
        try:
            effect = running.send(answer) if fault is None else running.throw(fault)
        except StopIteration as stop:
            return stop.value
        answer, fault = answer_of(effect), None
        if answer is None:
            try:
                answer = yield effect
            except ServiceFault as found:
                fault = found


# -- R6 --------------------------------------------------------------------------------------------


def _decide_anew(patch: Patch) -> None:
    """Decide again after a doubt: the record in hand is dropped, although it may still be
    stored.
    """

    def put(table: Any, item: Any) -> Does:
        try:
            found = yield PutIfAbsent(table, item)
        except Doubt:
            there = yield Get(table, str(item["pk"]), item["sk"])
            return there is not None and there["w"] == item["w"]
        return found is None or found["w"] == item["w"]

    patch.setattr(log, "put_surely", put)


def _ask_again(patch: Patch) -> None:
    """A doubt is answered by new bytes under a new nonce."""

    def put(table: Any, item: Any) -> Does:
        while True:
            try:
                found = yield PutIfAbsent(table, item)
                return found is None or found["w"] == item["w"]
            except Doubt:
                there = yield Get(table, str(item["pk"]), item["sk"])
                if there is not None:
                    return there["w"] == item["w"]
                item = {**item, "w": f"{item['w']}0"}

    patch.setattr(log, "put_surely", put)


# -- R5 --------------------------------------------------------------------------------------------


def _keep_intentions(patch: Patch) -> None:
    patch.setattr(loop, "INTENTIONS", ())


# -- R9, R10 ---------------------------------------------------------------------------------------


def _check_no_starts(patch: Patch) -> None:
    """Without its row a start has its message alone. The row would heal what the bug breaks."""

    def nothing(*_: object) -> Does:
        yield from ()

    patch.setattr(pending_starts, "guard", nothing)


def _bury_a_live_message(patch: Patch) -> None:
    def acknowledge(self: loop.Processing, now_ms: int) -> Does:
        return True
        yield

    patch.setattr(loop.Processing, "_acknowledge", acknowledge)
    _check_no_starts(patch)


def _acknowledge_late(patch: Patch) -> None:
    """Past its limit it writes nothing, and acknowledges."""
    real = loop.Processing._work

    def work(self: loop.Processing, *arguments: Any) -> Does:
        yield from real(self, *arguments)
        return True

    patch.setattr(loop.Processing, "_work", work)
    _check_no_starts(patch)


# -- R11 -------------------------------------------------------------------------------------------


def _drop_on_sight(patch: Patch) -> None:
    patch.setattr(sweeper, "_wait_for_record", lambda row, now_ms: follow_ups.drop_row(row))


# -- before record 0 -------------------------------------------------------------------------------


def _read_mail_first(patch: Patch) -> None:
    """Read control messages when the execution begins, and not after it was opened."""
    real = loop.Processing._commit

    def no_mail(effect: Effect) -> Any:
        is_look = isinstance(effect, Query) and effect.begins_with == CONTROL_PREFIX
        return [] if is_look else None

    def commit(self: loop.Processing, *arguments: Any) -> Does:
        return (yield from _changed(real(self, *arguments), no_mail))

    patch.setattr(loop.Processing, "_commit", commit)


def _always_run_first(patch: Patch) -> None:
    real = loop.Processing._fresh

    def fresh(self: loop.Processing) -> Does:
        self.delivery.received = dataclasses.replace(self.delivery.received, receive_count=1)
        self.delivery.is_recovering = False
        return (yield from real(self))

    patch.setattr(loop.Processing, "_fresh", fresh)
    # It would be sent again, and crash, for weeks.
    patch.setattr(runner, "_PATIENCE_MS", 3_600_000)


def _begin_dead_starts_unread(patch: Patch) -> None:
    real = loop.Processing.run

    def run(self: loop.Processing) -> Does:
        delivery = self.delivery
        if delivery.kind == messages.START and messages.replaced_by(delivery.body):
            delivery.is_recovering = False
            return (yield from self._fresh())
        return (yield from real(self))

    patch.setattr(loop.Processing, "run", run)


_AGAIN: DrawnChoice = ("receive", 0, "delivered again")


def _outlived(other: int, third: int) -> list[DrawnChoice]:
    """The first worker with the message freezes, and the next one freezes for longer. The first one
    continues, and soon crashes; the other loses a race to its record.
    """
    return [
        _AGAIN,
        ("effect", 5, "frozen before"),
        ("freeze", 0, 0),
        ("effect", other, "frozen before"),
        ("freeze", 1, 1),
        ("effect", third, "killed after"),
    ]


def _thawed(effect: int) -> list[DrawnChoice]:
    """A host freezes, the next one crashes at once. The first one continues after its visibility
    has ended.
    """
    return [
        ("effect", effect, "frozen before"),
        ("freeze", 0, 2),
        ("effect", effect + 1, "killed before"),
        ("hide", 2, "not hidden"),
    ]


def _three_doubts(effect: int) -> list[DrawnChoice]:
    """A record is asked for three times, each time in vain for a minute, so the sweeper sees its
    watch row before it is there. Then the wake vanishes: nothing but the row is left.
    """
    doubts = [("effect", effect + 2 * number, "not done") for number in range(3)]
    return [*doubts, *(("no answer", number, 3) for number in range(3)), ("message", 1, "vanished")]


#: The wake of the event comes again, to a worker of the release before: that deletes the message.
_OLD_TWIN: Final[tuple[DrawnChoice, ...]] = (
    ("receive", 1, "delivered again"),
    ("again", 0, 1),
    ("invocation", 2, "old"),
)


def _watch_nobody_closely(patch: Patch) -> None:
    def watch_closely(*_: Any) -> Does:
        return
        yield

    patch.setattr(watchdog, "watch_closely", watch_closely)


def _acknowledge_though_overtaken(patch: Patch) -> None:
    """Delete the message of another worker, which may not have carried out its record's
    commands.
    """
    real = loop.Processing._acknowledge

    def acknowledge(self: loop.Processing, now_ms: int) -> Any:
        patch.setattr(self.delivery, "is_overtaken", lambda _log: False)
        return (yield from real(self, now_ms))

    patch.setattr(loop.Processing, "_acknowledge", acknowledge)
    _check_no_starts(patch)


PLANTED = (
    Planted(
        "deciding anew after a doubt",
        _decide_anew,
        LATE,
        PAID,
        {"done later": 0.2, "slow": 0.4},
        SOON,
    ),
    Planted(
        "asking again with other bytes",
        _ask_again,
        LATE,
        PAID,
        {"done later": 0.2, "slow": 0.4},
        SOON,
    ),
    Planted(
        "intentions are kept over a reload",
        _keep_intentions,
        frozenset({"I5"}),
        TWO_TASKS,
        {"killed after": 0.1, "delivered again": 0.6, "slow": 0.2},
    ),
    Planted(
        "one's own redelivery is acknowledged",
        _bury_a_live_message,
        frozenset({"I16", "I17"}),
        TWO_TASKS,
        tapes=_pairs("frozen before", "killed after", _AGAIN),
    ),
    Planted(
        "acknowledged past the limit",
        _acknowledge_late,
        frozenset({"I16"}),
        TWO_TASKS,
        tapes=[_thawed(effect) for effect in range(_FIRST, 12)],
    ),
    Planted(
        "a watch row is deleted on sight",
        _drop_on_sight,
        frozenset({"I16", "I17"}),
        THEN_NAP,
        tapes=[_three_doubts(effect) for effect in range(_FIRST, 12)],
    ),
    Planted(
        "mail is read before the first task",
        _read_mail_first,
        frozenset({"I9", "I17"}),
        STOPPED,
        {},
        {**SOON, "stop_percent": 100},
    ),
    Planted(
        "the first task always runs before record 0",
        _always_run_first,
        frozenset({"I4", "I16"}),
        DEADLY,
        {},
        {"receives_max": 3},
    ),
    Planted(
        "a start among the dead letters is begun unread",
        _begin_dead_starts_unread,
        frozenset({"I19"}),
        TWO_TASKS,
        {"killed before": 0.2},
        {"receives_max": 2},
    ),
    Planted(
        "nothing is sent again after a race",
        owe_nothing_after_a_race,
        LATE,
        PAID,
        settings=SOON,
        tapes=[_outlived(other, third) for other, third in product(range(6, 10), range(8, 18))],
    ),
    Planted(
        "an overtaken worker acknowledges",
        _acknowledge_though_overtaken,
        LATE,
        TRIED_LATER,
        settings={**SOON, "takes_stale_receipts": True},
        tapes=_pairs("frozen before", "killed after", _AGAIN),
    ),
    Planted(
        "beside a twin no execution is watched",
        _watch_nobody_closely,
        frozenset({"I4", "I17"}),
        TASK_OF_AN_EVENT,
        settings={"ends_with_tape": True, "receives_max": 30},
        tapes=[(*_OLD_TWIN, ("effect", effect, "throttled")) for effect in range(20, 45)],
    ),
)
