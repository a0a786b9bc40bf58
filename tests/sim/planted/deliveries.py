"""Bugs of a delivery in the presence of other deliveries of its message (R3, R8, R14)."""

from __future__ import annotations

from typing import Any

from holdfast.core import facts
from holdfast.core.state import Execution
from holdfast.core.waits import overdue_frames
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import messages
from holdfast.runtime.effects import Query
from holdfast.runtime.storage import keys
from holdfast.runtime.worker import external_facts, fast_path, loop, recovery
from holdfast.runtime.worker.attempts import Attempts
from tests.builders import call, machine, wait_for
from tests.sim.planted.kit import AttemptOutcome, Brought, Patch, Planted, Scenario

Does = Any

_LANE = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "stamp",
    "States": {
        "stamp": call("stamp", Arguments={"at": "{% $states.context.Execution.StartTime %}"})
    },
}
STAMPED = Scenario(
    "stamped lanes",
    "the first task of each lane is told when the lane began",
    {
        "main": machine(
            {"all": {"Type": "Map", "Items": [1, 2, 3], "ItemProcessor": _LANE, "End": True}}
        )
    },
    tasks={"stamp": (AttemptOutcome("done", seconds=2),)},
)
HANDED_ON = Scenario(
    "handed on",
    "the second task does not fit into the invocation of the first, and kills each of its workers",
    {
        "main": machine(
            {
                "nap": {"Type": "Wait", "Seconds": 3_600, "Next": "one"},
                "one": call("work", "two", TimeoutSeconds=700),
                "two": call("it", TimeoutSeconds=700),
            }
        )
    },
    tasks={
        "work": (AttemptOutcome(output=1, seconds=400),),
        "it": (AttemptOutcome(error="SIGKILL"),),
    },
)
SHORT = Scenario(
    "a short life",
    "an event comes in the last seconds that the whole execution has",
    {"main": machine({"paid": wait_for("paid")}, TimeoutSeconds=60)},
    events=(Brought(58, "paid", "k1", {"n": 1}, "e1"),),
)


MONTH = Scenario(
    "a month",
    "it waits, and an operator stops it",
    {"main": machine({"nap": {"Type": "Wait", "Seconds": 30 * 86_400, "End": True}})},
    stops=True,
)


KILLERS = Scenario(
    "killers",
    "one event wakes three lanes in one batch, and each runs what kills its worker",
    {
        "main": machine(
            {
                "all": {
                    "Type": "Map",
                    "Items": [1, 2, 3],
                    "ItemProcessor": {
                        "ProcessorConfig": _LANE["ProcessorConfig"],
                        "StartAt": "paid",
                        "States": {"paid": wait_for("paid", "it"), "it": call("it")},
                    },
                    "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "end"}],
                    "Next": "end",
                },
                "end": {"Type": "Succeed"},
            }
        )
    },
    tasks={"it": (AttemptOutcome(error="SIGKILL", seconds=1),)},
    events=(Brought(7_200, "paid", "k1", {"n": 1}, "e1"),),
)


def _leave_the_stop_to_the_twin(patch: Patch) -> None:
    real = loop.Processing._after_race

    def after_race(self: loop.Processing) -> Does:
        running, answer = real(self), None
        while True:
            try:
                effect = running.send(answer)
            except StopIteration as stop:
                return stop.value
            is_control = isinstance(effect, Query) and effect.begins_with == keys.CONTROL_PREFIX
            answer = [] if is_control else (yield effect)

    patch.setattr(loop.Processing, "_after_race", after_race)


def _begin_whenever_it_began(patch: Patch) -> None:
    patch.setattr(fast_path, "asks_for_the_same_later", lambda *_: True)


def _take_what_was_handed_on_again_and_again(patch: Patch) -> None:
    real = Attempts.take

    def take(self: Attempts) -> Does:
        delivery, is_recovering = self.delivery, self.delivery.is_recovering
        delivery.is_recovering = is_recovering and delivery.kind != messages.GO
        taken = yield from real(self)
        delivery.is_recovering = is_recovering
        return taken

    patch.setattr(Attempts, "take", take)


def _go_on_in_company(patch: Patch) -> None:
    def goes_alone(*_arguments: Any) -> Does:
        yield from ()
        return False

    patch.setattr(recovery, "goes_alone", goes_alone)


def _time_the_execution_out_unread(patch: Patch) -> None:
    real = external_facts.past_timeouts

    def past_timeouts(tenant: str, state: Execution, now_ms: int) -> Does:
        past_ms = now_ms - 2 * CLOCK_ERROR_MS
        is_late = state.due_ms is not None and state.due_ms <= past_ms
        if is_late and not overdue_frames(state, past_ms):
            return [facts.Tick()]
        return (yield from real(tenant, state, now_ms))

    patch.setattr(external_facts, "past_timeouts", past_timeouts)


PLANTED = (
    Planted(
        "a lane's first task runs before its record, whatever it is told",
        _begin_whenever_it_began,
        frozenset({"I4"}),
        STAMPED,
        {"killed after": 0.1},
    ),
    Planted(
        "a worker that finds that a twin has opened it does not look for a stop",
        _leave_the_stop_to_the_twin,
        frozenset({"I9", "I17"}),
        MONTH,
        {"frozen before": 0.3, "killed after": 0.2},
        {
            "stop_percent": 100,
            "redrive_percent": 0,
            "latency_ms": 300,
            "safety_ms": 600_000,
            "callers": 1,
            "has_other_input": False,
            "has_other_tenant": False,
        },
        seed=578,
    ),
    Planted(
        "what was handed on is tried until its claim lapses",
        _take_what_was_handed_on_again_and_again,
        frozenset({"I5"}),
        HANDED_ON,
        {},
    ),
    Planted(
        "what kills its workers goes on beside others",
        _go_on_in_company,
        frozenset({"I20"}),
        KILLERS,
        {},
        {"safety_ms": 0, "batch_size": 10},
    ),
    Planted(
        "the whole execution times out, and no mail is read",
        _time_the_execution_out_unread,
        frozenset({"I7"}),
        SHORT,
        {"late": 0.5, "vanished": 0.3},
    ),
)
