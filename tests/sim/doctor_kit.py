"""Worlds with a stuck execution, each made by hand: the doctor's reports on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime.effects import (
    Delete,
    Effect,
    PutIfAbsent,
    RunTask,
    TaskFailed,
    TaskPending,
    TaskResult,
    TaskSucceeded,
    Unlist,
)
from holdfast.runtime.maintenance import doctor
from holdfast.runtime.storage.spread import Spread
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import histories
from holdfast_simulator.world import Hook, Killed, SimulatorWorld, When
from tests.builders import Machine, Shop, ask, call, machine, wait_for
from tests.sim.map_run_test import MANY, work
from tests.unit.child_kit import Family, call_of
from tests.unit.stack_kit import Stack

LATE_MS = 600_000
NAP = {"Type": "Wait", "Seconds": 300}


def findings(
    world: SimulatorWorld, *, is_repairing: bool = False, names: tuple[str, ...] = ()
) -> list[Any]:
    """Return the whole report, as the command line puts it together. `names` are the workflows."""
    found: list[Any] = []
    after: str | None = None
    while True:
        page = world.call(doctor.report("default", Spread(), after, is_repairing=is_repairing))
        found += page["findings"]
        after = page.get("next")
        if after is None:
            return found


def purge(world: SimulatorWorld) -> None:
    """Every message is gone, those that are delayed or in flight, too."""
    for queue in ("work", "single", "starts"):
        world.services.queue(queue).messages.clear()


def unwatch(world: SimulatorWorld) -> None:
    """Every watch row is gone, for ten minutes."""
    for item in world.services.items("mail"):
        if str(item["sk"]).endswith("#w"):
            world.services.perform(Delete("mail", str(item["pk"]), str(item["sk"])))
    world.now_ms += LATE_MS


def settle(world: SimulatorWorld, seconds: float = 1) -> None:
    until_ms = world.now_ms + int(seconds * 1_000)
    world.run(until_ms=until_ms)
    world.now_ms = until_ms


def lose_all(world: SimulatorWorld, *, seconds: float = 1) -> None:
    """Run for this long; then all messages vanish, and no sweep runs for ten minutes."""
    settle(world, seconds)
    vanish(world)


def vanish(world: SimulatorWorld) -> None:
    purge(world)
    world.now_ms += LATE_MS


@dataclass
class PurgeOnce:
    """A hook: all messages vanish after the first effect that fits."""

    is_fit: Callable[[Effect], bool]
    is_done: bool = field(default=False)

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not self.is_done and when == "after" and self.is_fit(effect):
            self.is_done = True
            purge(world)


@dataclass
class DieOnce:
    """A hook: the process crashes at the first effect that fits."""

    is_fit: Callable[[Effect], bool]
    when: When = "after"
    is_done: bool = field(default=False)

    def __call__(self, _world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not self.is_done and when == self.when and self.is_fit(effect):
            self.is_done = True
            raise Killed


def is_record(sequence: int) -> Callable[[Effect], bool]:
    """Return a test for the nth record of an execution without a parent."""

    def is_fit(effect: Effect) -> bool:
        if not isinstance(effect, PutIfAbsent) or effect.table != "executions":
            return False
        return effect.item["sk"] == sequence and "." not in str(effect.item["pk"])

    return is_fit


@dataclass(frozen=True)
class Stuck:
    """A world, the workflows in its lists, and how its executions end once they are repaired."""

    world: SimulatorWorld
    names: tuple[str, ...] = ("flow",)
    statuses: frozenset[str] = frozenset({"SUCCEEDED"})

    @property
    def ends(self) -> set[str]:
        return {history.state.status for history in self.histories}

    @property
    def histories(self) -> list[StoredHistory]:
        return histories(self.world)


# -- dues ------------------------------------------------------------------------------------------


def record_full() -> Stuck:
    more = {"Condition": "{% $states.input.n < 1200 %}", "Next": "count"}
    loop = machine(
        {
            "nap": {"Type": "Wait", "Seconds": 10, "Output": {"n": 0}, "Next": "count"},
            "count": {
                "Type": "Pass",
                "Output": {"n": "{% $states.input.n + 1 %}"},
                "Next": "more",
            },
            "more": {
                "Type": "Choice",
                "Choices": [more],
                "Default": "done",
            },
            "done": {"Type": "Succeed"},
        }
    )
    shop = Shop(loop, hook=DieOnce(is_record(1)))
    shop.start()
    lose_all(shop.world, seconds=30)
    return Stuck(shop.world)


def attempt_due() -> Stuck:
    failures: list[RunTask] = []

    def fail_once(effect: RunTask) -> TaskResult:
        failures.append(effect)
        return TaskFailed("Busy", None) if len(failures) == 1 else TaskSucceeded(None)

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 60}]
    shop = Shop(machine({"it": call("work", Retry=retry)}), tasks=fail_once)  # type: ignore[arg-type]
    shop.start()
    lose_all(shop.world)
    return Stuck(shop.world)


def claim_lapsed() -> Stuck:
    deaths: list[RunTask] = []

    def die_once(effect: RunTask) -> TaskResult:
        if effect.name == "second" and not deaths:
            deaths.append(effect)
            raise Killed
        return TaskSucceeded(None)

    states = {"nap": {**NAP, "Next": "first"}, "first": call("first", "it"), "it": call("second")}
    shop = Shop(machine(states), tasks=die_once)  # type: ignore[arg-type]
    shop.start()
    lose_all(shop.world, seconds=310)
    return Stuck(shop.world)


def timer_overdue() -> Stuck:
    shop = Shop(machine({"nap": {**NAP, "End": True}}))
    shop.start()
    lose_all(shop.world)
    return Stuck(shop.world)


def wait_timed_out() -> Stuck:
    shop = Shop(machine({"it": wait_for("paid", TimeoutSeconds=60)}))
    shop.start()
    lose_all(shop.world)
    return Stuck(shop.world, statuses=frozenset({"FAILED"}))


def heartbeat_missed() -> Stuck:
    shop = Shop(machine({"it": ask(HeartbeatSeconds=60)}))
    shop.start()
    lose_all(shop.world)
    return Stuck(shop.world, statuses=frozenset({"FAILED"}))


def question_overdue() -> Stuck:
    polls: list[RunTask] = []

    def build(effect: RunTask) -> TaskResult:
        if not effect.is_poll:
            return TaskSucceeded("begun")
        polls.append(effect)
        return TaskPending() if len(polls) == 1 else TaskSucceeded("built")

    job = {"Type": "Task", "Resource": "arn:aws:states:::codebuild:startBuild.sync", "End": True}
    shop = Shop(machine({"job": job}), tasks=build)  # type: ignore[arg-type]
    shop.start()
    lose_all(shop.world, seconds=2.5)
    return Stuck(shop.world)


def deadline_passed() -> Stuck:
    block = {"Begin": "begin", "Seconds": "{% 60 %}", "States": ["it"], "Next": "late"}
    states = {
        "begin": {"Type": "Pass", "Next": "it"},
        "it": wait_for("paid"),
        "late": {"Type": "Pass", "End": True},
    }
    shop = Shop(machine(states, Holdfast={"Deadlines": [{**block, "Assign": {}}]}))
    shop.start()
    lose_all(shop.world)
    return Stuck(shop.world)


def execution_timed_out() -> Stuck:
    shop = Shop(machine({"it": wait_for("paid")}, TimeoutSeconds=60))
    shop.start()
    lose_all(shop.world)
    return Stuck(shop.world, statuses=frozenset({"TIMED_OUT"}))


# -- inbox messages --------------------------------------------------------------------------------


def _waiting(state: Machine) -> tuple[Shop, str]:
    shop = Shop(machine({"it": state}))
    run = shop.start()
    settle(shop.world, 60)
    return shop, run


def control_unseen() -> Stuck:
    shop, run = _waiting(wait_for("paid"))
    shop.stop(run)
    vanish(shop.world)
    return Stuck(shop.world, statuses=frozenset({"ABORTED"}))


def redrive_unseen() -> Stuck:
    outcomes: list[TaskResult] = [TaskFailed("Boom", None), TaskSucceeded(2)]
    task = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}
    task["Arguments"] = "{% $states.input %}"
    stack = Stack(json.dumps(machine({"it": task})), lambda _: outcomes.pop(0))
    arn = stack.start(None)
    settle(stack.world, 60)
    stack.call("RedriveExecution", executionArn=arn)
    vanish(stack.world)
    return Stuck(stack.world, names=())


def event_unapplied() -> Stuck:
    shop, _ = _waiting(wait_for("paid"))
    shop.send_event()
    vanish(shop.world)
    return Stuck(shop.world)


def answer_unapplied() -> Stuck:
    shop, run = _waiting(ask())
    shop.answer(run, output="yes")
    vanish(shop.world)
    return Stuck(shop.world)


def unknown_function() -> Stuck:
    known = {"first"}
    states = {"nap": {**NAP, "Next": "it"}, "it": call("second")}
    shop = Shop(
        machine(states), tasks=lambda _: TaskSucceeded(1), knows=lambda name, _: name in known
    )
    shop.start()
    lose_all(shop.world, seconds=310)
    known.add("second")  # found before the sweeper asks again
    return Stuck(shop.world)


# -- items beside the log --------------------------------------------------------------------------


def not_watched() -> Stuck:
    shop, _ = _waiting({**NAP, "Seconds": 86_400, "End": True})
    unwatch(shop.world)
    return Stuck(shop.world)


def list_stale() -> Stuck:
    shop = Shop(
        machine({"nap": {**NAP, "End": True}}),
        hook=DieOnce(lambda effect: isinstance(effect, Unlist), "before"),
    )
    shop.start()
    lose_all(shop.world, seconds=310)
    return Stuck(shop.world)


# -- children --------------------------------------------------------------------------------------


def _family(outer: Machine, inner: Machine, hook: Hook) -> Family:
    family = Family({"outer": outer, "inner": inner}, hook=hook)
    family.start()
    return family


def child_untold() -> Stuck:
    def is_answer(effect: Effect) -> bool:
        return isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("t#")

    outer = machine({"it": call_of("inner")})
    family = _family(outer, machine({"nap": {**NAP, "End": True}}), DieOnce(is_answer, "before"))
    lose_all(family.world, seconds=310)
    return Stuck(family.world, names=("inner", "outer"))


def child_missing() -> Stuck:
    outer = machine({"it": call_of("inner", TimeoutSeconds=3_600)})
    inner = machine({"nap": {**NAP, "End": True}})
    family = _family(outer, inner, PurgeOnce(is_record(1)))
    lose_all(family.world)
    return Stuck(family.world, names=("inner", "outer"), statuses=frozenset({"SUCCEEDED"}))


def child_unstopped() -> Stuck:
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "nap"}]
    states = {
        "it": call_of("inner", "nap", TimeoutSeconds=60, Catch=caught),
        "nap": {**NAP, "Seconds": 86_400, "End": True},
    }
    family = _family(machine(states), machine({"it": wait_for("paid")}), DieOnce(is_record(2)))
    lose_all(family.world, seconds=90)
    ends = frozenset({"SUCCEEDED", "ABORTED"})
    return Stuck(family.world, names=("inner", "outer"), statuses=ends)


def _map(hook: DieOnce) -> Stack:
    stack = Stack(json.dumps(machine({"all": {**MANY, "End": True}})), work, hook)
    stack.start([{"n": 1}])
    return stack


def lane_missing() -> Stuck:
    stack = _map(DieOnce(is_record(0)))
    lose_all(stack.world)
    return Stuck(stack.world, names=())


def notice_unapplied() -> Stuck:
    def is_notice(effect: Effect) -> bool:
        return isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("k#")

    stack = _map(DieOnce(is_notice))
    lose_all(stack.world)
    return Stuck(stack.world, names=())
