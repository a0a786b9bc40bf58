"""The worker's rarer turns: handing on, losing a race there, recovering beside others, expiry."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

import pytest

from holdfast.core.state import Timer
from holdfast.errors import HoldfastBug
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    MESSAGE_INPUT_BYTES_MAX,
    RECORD_AGING_SECONDS,
    RECORD_RETENTION_SECONDS,
)
from holdfast.runtime import messages
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Message,
    Put,
    PutBlob,
    PutIfAbsent,
    RunTask,
    Send,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
    Unlist,
)
from holdfast.runtime.maintenance import dead_letters
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker import attempts
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When, no_faults
from tests.builders import CHANCE, Shop, ask, call, chain, machine, wait_for
from tests.sim.doctor_kit import DieOnce, purge, unwatch, vanish
from tests.sim.map_run_test import MANY, a_map, work
from tests.unit.child_kit import Family, call_of
from tests.unit.worker_test import (
    Ready,
    before_record,
    branches,
    deliver_all,
    deliver_wakes,
    settle,
    sound,
)

P = ParamSpec("P")
T = TypeVar("T")

LATER = 119  # seconds: more than is left of an invocation once a task has run
LONG_SECONDS = 600
NAP = {"Type": "Wait", "Seconds": 10}


def send(shop: Shop, body: dict[str, Any]) -> None:
    shop.world.services.perform(Send((Message(body),)))


def recover(shop: Shop, run: str) -> None:
    send(shop, messages.recover("default", run))
    settle(shop)


# -- handing on ------------------------------------------------------------------------------------


def test_an_attempt_parked_before_is_handed_on_without_a_record() -> None:
    states = {"nap": {**NAP, "Next": "x"}, "x": call("add", "y"), "y": call("add")}
    states["y"]["TimeoutSeconds"] = LATER
    shop = Shop(machine(states))
    history = shop.run({"n": 0})

    assert history.state.output == {"n": 2}
    assert [event.type for event in history.events].count("Opened") == 1
    assert len({record.message for record in history.records}) == 3
    assert sound(shop)


def test_an_attempt_that_was_handed_on_is_handed_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last worker has it from the second one, and the first one holds the lease."""
    monkeypatch.setattr(attempts, "ATTEMPTS_IN_FLIGHT_MAX", 1)
    late = call("late", TimeoutSeconds=LATER)
    shop = Shop(machine({"all": branches(late, late, late)}))
    run = shop.start({"n": 0})
    settle(shop)

    assert shop.history(run).state.status == "SUCCEEDED"
    assert len({record.message for record in shop.history(run).records}) == 3
    assert sound(shop)


def test_a_worker_that_loses_a_race_to_a_stop_while_handing_on_lets_go() -> None:
    def rival(_world: SimulatorWorld) -> None:
        shop.stop("order-1")
        deliver_wakes(shop.world)

    shop = Shop(machine({"x": call("add", "y"), "y": call("add", TimeoutSeconds=LATER)}))
    shop.world.hook = before_record(1, rival)
    history = shop.run({"n": 0})

    assert history.state.status == "ABORTED"
    assert shop.world.task_runs.total() == 1
    assert sound(shop)


def abandoning() -> Family:
    """A task that fails beside a child; what follows has too little time left."""
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "y"}]
    both = branches(call_of("inner"), call("x"), Catch=caught)
    outer = machine({"all": both, "y": call("y", TimeoutSeconds=LATER)})

    def fail_first(effect: RunTask) -> TaskResult:
        return TaskFailed("Boom", None) if effect.name == "x" else TaskSucceeded("done")

    inner = machine({"it": wait_for("paid")})
    return Family({"outer": outer, "inner": inner}, tasks=fail_first)


def test_that_a_child_was_stopped_is_written_before_the_rest_is_handed_on() -> None:
    family = abandoning()
    types = [event.type for event in family.run().events]

    assert family.statuses() == ("SUCCEEDED", ["ABORTED"])
    assert types.index("ChildrenStopped") < types.index("Opened")
    assert types.count("ChildrenStopped") == 1
    assert family.is_sound()


def test_a_worker_that_loses_that_record_to_a_stop_lets_go() -> None:
    family = abandoning()
    stops: list[str] = []

    def rival(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_told = isinstance(effect, PutIfAbsent) and "ChildrenStopped" in str(effect.item)
        if is_told and when == "before" and not stops:
            stops.append(run)
            family.stop(run)
            deliver_wakes(world)

    run = family.start()
    family.world.hook = rival
    family.world.run()

    assert stops
    assert family.statuses() == ("ABORTED", ["ABORTED"])
    assert family.is_sound()


def test_a_running_task_is_waited_for_before_the_rest_is_handed_on() -> None:
    slow: list[Future[TaskResult]] = []

    class Mixed(Ready):
        def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
            task = args[0]
            assert isinstance(task, RunTask)
            if task.name != "slow":
                return super().submit(fn, *args, **kwargs)
            slow.append(Future())
            return slow[-1]  # type: ignore[return-value]

    def finish(effect: Effect) -> None:
        if isinstance(effect, PutIfAbsent) and effect.table == "executions":
            slow[0].set_result(TaskSucceeded("slow"))
            slow.append(Future())
            slow.pop(0)

    lane = {"x": call("quick", "y"), "y": call("long", TimeoutSeconds=700)}
    beside = {"StartAt": "it", "States": {"it": call("slow")}}
    both = [{"StartAt": "x", "States": lane}, beside]
    flow = machine({"all": {"Type": "Parallel", "Branches": both, "End": True}})
    ran: list[str] = []

    def note(effect: RunTask) -> TaskSucceeded:
        ran.append(effect.name)
        return TaskSucceeded(effect.name)

    shop = Shop(flow, tasks=note)
    run = shop.start()
    deliver_all(shop, Mixed(), finish)
    shop.world.run()

    assert shop.history(run).state.output == ["long", "slow"]
    assert ran == ["quick", "long"]  # the slow one ended where it had begun
    assert sound(shop)


# -- beside others ---------------------------------------------------------------------------------


def test_a_suspect_attempt_with_a_running_owner_is_left_to_that_owner() -> None:
    """It has crashed two workers; while the third runs it, another worker reads the execution."""
    runs: list[int] = []

    def deadly_twice(effect: RunTask) -> TaskResult:
        runs.append(effect.attempt)
        if len(runs) <= 2:
            raise Killed
        send(shop, messages.recover("default", effect.run))
        deliver_wakes(shop.world)
        assert shop.world.services.depth("single") == 1  # our own message, and no other
        return TaskSucceeded("done")

    states = {"nap": {**NAP, "Next": "it"}, "it": call("poison")}
    shop = Shop(machine(states), tasks=deadly_twice)  # type: ignore[arg-type]
    history = shop.run()

    assert (history.state.output, runs) == ("done", [1, 1, 1])
    assert sound(shop)


def test_a_worker_without_a_lease_does_not_take_an_attempt_from_a_later_lost_one() -> None:
    """The worker that took over the overdue attempt crashed, and the next worker counts it."""
    runs: list[int] = []

    def work(effect: RunTask) -> TaskFailed:
        runs.append(effect.attempt)
        if runs == [1, 2]:  # The first takes long; meanwhile another worker gets the message
            shop.world.now_ms += 62_000
            send(shop, messages.recover("default", effect.run))
            deliver_wakes(shop.world)
            shop.world.now_ms += 50_000
        elif runs == [1, 2, 2]:
            raise Killed
        return TaskFailed("Busy", "")

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 5, "MaxAttempts": 1}]
    busy = call("busy", Retry=retry, TimeoutSeconds=40)
    shop = Shop(machine({"busy": busy}), tasks=work)
    history = shop.run()

    claims = [event.holdfast["takeovers"] for event in history.events if event.type == "Claimed"]
    assert (runs, claims) == ([1, 2, 2], [0])
    assert history.state.status == "FAILED"
    assert sound(shop)


def test_an_isolated_message_has_no_round_of_a_dead_letter() -> None:
    """Its own message was valid; the next one goes round twice, as any other does."""
    sent: list[Any] = []

    def see(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, Send) and effect.queue == "single":
            sent.extend(message.body for message in effect.messages)

    def deadly(effect: RunTask) -> TaskResult:
        raise Killed

    states = {"nap": {**NAP, "Next": "it"}, "it": call("poison")}
    shop = Shop(machine(states), tasks=deadly, hook=see)  # type: ignore[arg-type]
    shop.run()
    (alone,) = sent
    sent.clear()
    letter = dict(alone)
    for number in range(3):
        shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(letter, f"m{number}")))
        letter = sent[-1]

    assert [body["released"] for body in (alone, *sent)] == [1, 1, 1]
    assert [len(body["of"]) for body in (alone, *sent)] == [1, 2, 3]


def test_an_isolated_message_that_replaces_a_wake_comes_when_the_retry_is_overdue() -> None:
    """Its retry belongs to the worker of the wake, and that message is gone then."""

    def work(effect: RunTask) -> TaskResult:
        if effect.name == "poison" and shop.world.now_ms < START_MS + 365_000:
            raise Killed
        is_done = effect.name == "poison" or effect.attempt == 2
        return TaskSucceeded(None) if is_done else TaskFailed("Busy", "")

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 360, "MaxAttempts": 1}]
    poison = {"nap": {**NAP, "Seconds": 30, "Next": "it"}, "it": {**call("poison"), "End": True}}
    shop = lanes_of({"busy": {**call("busy", Retry=retry), "End": True}}, poison)
    shop.world.tasks = work
    run = shop.start()
    shop.world.run(until_ms=START_MS + 359_000)
    waiting = shop.world.services.queue("work").messages.values()
    (wake,) = [one for one in waiting if "timer" in one.text and not one.receive_count]
    wake.receive_count = 1  # The worker that had it has crashed
    shop.world.run(until_ms=START_MS + 364_000)
    single = shop.world.services.queue("single").messages.values()
    (alone,) = [one for one in single if wake.message_id in one.text]
    assert 420_000 <= alone.visible_at - START_MS <= 425_000

    shop.world.run()
    assert shop.history(run).state.status == "SUCCEEDED"
    assert sound(shop)


def test_a_wake_that_comes_early_is_sent_again() -> None:
    shop = Shop(machine({"nap": {**NAP, "End": True}}))
    run = shop.start()
    settle(shop)
    purge(shop.world)
    waiting = shop.history(run).state.frames[""].waiting
    assert isinstance(waiting, Timer)
    send(shop, messages.wake_timer("default", run, waiting.entry, waiting.due_ms, None))
    settle(shop, 20)

    assert shop.history(run).state.status == "SUCCEEDED"
    assert sound(shop)


@pytest.mark.parametrize("entry", [0, 7])
def test_a_notice_for_a_state_other_than_a_map_changes_nothing(entry: int) -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    before = shop.history(run).records
    send(shop, messages.wake_mail("default", run, f"k#{entry}"))
    settle(shop)

    assert shop.history(run).records == before
    assert (shop.world.faults, shop.world.services.depth("work")) == ([], 0)


def lanes_of(*lanes: dict[str, Any]) -> Shop:
    """Lane by lane its states, the first of which it begins with."""
    branches = [{"StartAt": next(iter(states)), "States": states} for states in lanes]
    return Shop(machine({"all": {"Type": "Parallel", "Branches": branches, "End": True}}))


def paid_then_waits(seconds: int, event: str = "paid") -> dict[str, Any]:
    then = {"Type": "Wait", "Seconds": seconds, "End": True}
    return {event: wait_for(event, f"after {event}"), f"after {event}": then}


def die_at_long_timer(world: SimulatorWorld, effect: Effect, when: When) -> None:
    """Crash the first process that would send a wake for ten minutes later."""
    sent = effect.messages if isinstance(effect, Send) else ()
    is_long = any(message.delay_seconds >= LONG_SECONDS for message in sent)
    if is_long and when == "before" and not world.kills:
        raise Killed


def long_wakes(shop: Shop) -> int:
    queue = shop.world.services.queue("work")
    dues = (json.loads(stored.text).get("due", 0) for stored in queue.messages.values())
    return sum(due > shop.world.now_ms + 300_000 for due in dues)


def test_a_recovery_leaves_a_just_begun_attempt_to_its_own_message() -> None:
    """A second wake would run its task twice. The other worker has crashed before it sent the wake;
    then its own message is delivered again.
    """
    seen: list[When] = []

    def rival(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not isinstance(effect, PutIfAbsent) or effect.table != "executions":
            return
        seen.append(when)
        if len(seen) == 1:
            shop.send_event(data="paid")
            deliver_wakes(world)
        elif when == "after" and seen.count("after") == 1:
            raise Killed

    nap = {"nap": {"Type": "Wait", "Seconds": 60, "End": True}}
    shop = lanes_of(nap, paid_then_waits(LONG_SECONDS))
    run = shop.start()
    settle(shop)
    vanish(shop.world)
    shop.world.hook = rival
    recover(shop, run)
    assert shop.world.kills == 1
    assert long_wakes(shop) == 0

    settle(shop, 121)
    assert long_wakes(shop) == 1
    settle(shop, 600)
    assert shop.history(run).state.status == "SUCCEEDED"
    assert sound(shop)


@pytest.mark.parametrize("replaced", [(), ("work-99",)])
def test_a_check_does_not_wake_for_a_retry_whose_wake_is_under_way(
    replaced: tuple[str, ...],
) -> None:
    """Two wakes would run one attempt twice."""
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": LONG_SECONDS, "MaxAttempts": 1}]
    busy = {"busy": {**call("busy", Retry=retry), "End": True}}
    shop = lanes_of(busy, paid_then_waits(1))
    shop.world.tasks = lambda effect: (
        TaskFailed("Busy", "") if effect.attempt == 1 else TaskSucceeded("done")
    )
    run = shop.start()
    settle(shop, 300)
    send(shop, messages.recover("default", run, replaced))
    settle(shop)
    assert long_wakes(shop) == 0  # less than 300 s are left
    assert len(shop.world.services.queue("work").messages) == 1

    settle(shop, LONG_SECONDS)
    seconds = [count for (*_, attempt), count in shop.world.task_runs.items() if attempt == 2]
    assert seconds == [1]


def test_a_repeated_delivery_does_not_wake_for_commands_before_its_last_record() -> None:
    """Its wake was sent before that record was written."""

    def die_at_c(world: SimulatorWorld, effect: Effect, _when: When) -> None:
        if isinstance(effect, RunTask) and effect.name == "c" and not world.kills:
            raise Killed

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": LONG_SECONDS, "MaxAttempts": 1}]
    busy = {"busy": {**call("busy", Retry=retry), "End": True}}
    chained = {"a": call("a", "b"), "b": call("b", "c"), "c": call("c")}
    shop = lanes_of(busy, chained)
    shop.world.tasks = lambda effect: (
        TaskFailed("Busy", "") if effect.name == "busy" else TaskSucceeded("done")
    )
    shop.world.hook = die_at_c
    shop.start()
    settle(shop, 130)
    assert (shop.world.kills, long_wakes(shop)) == (1, 1)


def test_a_recovery_that_loses_a_race_does_not_repeat_its_own_wakes() -> None:
    def be_late_with_b(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, PutIfAbsent) and not world.kills:
            raise Killed
        if when == "after" and isinstance(effect, RunTask) and effect.name == "b":
            shop.send_event(data="paid")
            deliver_wakes(world)

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": LONG_SECONDS, "MaxAttempts": 1}]
    busy = {"busy": {**call("busy", Retry=retry), "End": True}}
    shop = lanes_of(busy, {"a": call("a", "b"), "b": call("b")}, paid_then_waits(1))
    shop.world.tasks = lambda effect: (
        TaskFailed("Busy", "") if effect.name == "busy" else TaskSucceeded("done")
    )
    shop.start()
    shop.world.hook = be_late_with_b
    settle(shop, 130)
    assert (shop.world.kills, long_wakes(shop)) == (1, 1)


def test_a_redelivery_leaves_a_retry_that_another_has_asked_for_to_its_wake() -> None:
    """The worker began the first attempt, handed it over, and crashed; the next worker has sent the
    wake.
    """
    runs: list[tuple[str, int]] = []

    def fail_once(effect: RunTask) -> TaskSucceeded | TaskFailed:
        runs.append((effect.name, effect.attempt))
        is_busy = runs[-1] == ("late", 1)
        return TaskFailed("Busy", "") if is_busy else TaskSucceeded("done")

    def come_back_beside_it(world: SimulatorWorld, effect: Effect, when: When) -> None:
        handed = effect.messages if isinstance(effect, Send) else ()
        if when == "after" and any(one.body["k"] == messages.GO for one in handed):
            raise Killed
        if when == "before" and isinstance(effect, RunTask) and effect.attempt == 2:
            world.hook = no_faults
            world.now_ms += 25_000
            deliver_wakes(world)

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 100, "MaxAttempts": 1}]
    late = call("late", TimeoutSeconds=LATER, Retry=retry)
    shop = Shop(machine({"x": call("add", "late"), "late": late}), tasks=fail_once)
    shop.world.hook = come_back_beside_it
    run = shop.start({"n": 0})
    settle(shop, 300)

    assert (shop.world.kills, shop.history(run).state.status) == (1, "SUCCEEDED")
    assert runs == [("add", 1), ("late", 1), ("late", 2)]
    assert sound(shop)


def test_a_repeated_delivery_completes_its_record_behind_another_workers_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = lanes_of(paid_then_waits(LONG_SECONDS), paid_then_waits(1, "told"))
    run = shop.start()
    settle(shop)
    shop.world.hook = die_at_long_timer
    shop.send_event(data=1)
    settle(shop)
    monkeypatch.setattr(Log, "_must_snapshot", lambda *_: True)
    shop.send_event("told", data=2, event_id="e2")
    settle(shop)
    assert long_wakes(shop) == 0

    settle(shop, 130)
    assert long_wakes(shop) == 1
    settle(shop, LONG_SECONDS)
    assert shop.history(run).state.status == "SUCCEEDED"
    assert sound(shop)


def test_a_repeated_delivery_that_cannot_read_its_record_repeats_all_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many records later, each with a snapshot, a load does not go back to its record."""
    ticking = {"tick": {"Type": "Wait", "Seconds": 2, "Next": "tick"}}
    shop = lanes_of(paid_then_waits(LONG_SECONDS), ticking)
    shop.start()
    settle(shop)
    monkeypatch.setattr(Log, "_must_snapshot", lambda *_: True)
    shop.world.hook = die_at_long_timer
    shop.send_event(data=1)
    settle(shop, 100)
    assert (shop.world.kills, long_wakes(shop)) == (1, 0)

    settle(shop, 30)
    assert long_wakes(shop) == 1


def test_more_jobs_than_one_delivery_has_places_for_are_all_asked_for() -> None:
    """Every message is lost, and no sweeper comes: the one that recovers asks for some, and sends
    the wakes of the others.
    """
    count = ATTEMPTS_IN_FLIGHT_MAX + 2

    def build(effect: RunTask) -> TaskResult:
        return TaskSucceeded("built" if effect.is_poll else "begun")

    job = {"Type": "Task", "Resource": "arn:aws:states:::codebuild:startBuild.sync"}
    shop = Shop(machine({"all": branches(*[job] * count)}), tasks=build)  # type: ignore[arg-type]
    run = shop.start()
    settle(shop, 0.5)
    purge(shop.world)
    unwatch(shop.world)
    recover(shop, run)

    assert shop.history(run).state.output == ["built"] * count
    assert sound(shop)


def test_a_worker_overtaken_by_a_later_receipt_takes_nothing_over() -> None:
    """The message is gone by then: no worker would follow before the sweeper's next check."""
    is_new: list[bool] = []

    def the_message_comes_again(world: SimulatorWorld) -> None:
        queue = world.services.queue("starts")
        (message,) = queue.messages.values()
        queue.show_again(f"{message.key}/1", world.now_ms)
        deliver_wakes(world)
        is_new.append(True)

    shop = Shop(
        machine({"x": call("add", "y"), "y": call("new")}),
        knows=lambda name, _is_pure: name == "add" or bool(is_new),
    )
    shop.world.hook = before_record(0, the_message_comes_again)
    run = shop.start({"n": 0})
    settle(shop)
    assert [event.type for event in shop.history(run).events][-2:] == ["TaskUnknown", "Opened"]
    assert shop.world.services.depth("work") == 0

    recover(shop, run)
    assert shop.history(run).state.status == "SUCCEEDED"
    assert sound(shop)


def test_an_overtaken_worker_leaves_the_message_to_the_later_receipt() -> None:
    """The later worker has crashed between a record and the wake that the record requests."""

    def the_message_comes_again(world: SimulatorWorld) -> None:
        queue = world.services.queue("starts")
        (message,) = queue.messages.values()
        queue.show_again(f"{message.key}/1", world.now_ms)
        world.hook = die_at_long_timer
        deliver_wakes(world)

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": LONG_SECONDS, "MaxAttempts": 1}]
    shop = Shop(machine({"busy": call("busy", Retry=retry)}))
    shop.world.tasks = lambda _: TaskFailed("Busy", "")
    shop.world.hook = before_record(0, the_message_comes_again)
    shop.start()
    settle(shop, 130)
    assert (shop.world.kills, long_wakes(shop)) == (1, 1)


@pytest.mark.parametrize("is_gone", [False, True])
def test_an_overtaken_worker_hands_on_and_leaves_the_message(is_gone: bool) -> None:
    """It was delivered again to a worker that crashed, or to one that deleted it, so that no
    delivery follows.
    """

    def the_message_comes_again(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not isinstance(effect, RunTask) or when != "before":
            return
        world.hook = die_at_once
        queue = world.services.queue("work")
        (message,) = queue.messages.values()
        queue.show_again(f"{message.key}/1", world.now_ms)
        deliver_wakes(world)
        world.hook = no_faults
        if is_gone:
            queue.messages.clear()

    def die_at_once(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, RunTask) and when == "before":
            raise Killed

    nap = {"Type": "Wait", "Seconds": 1, "Next": "x"}
    late = call("late", TimeoutSeconds=LATER)
    shop = Shop(machine({"nap": nap, "x": call("add", "late"), "late": late}))
    shop.world.hook = the_message_comes_again
    run = shop.start({"n": 0})
    settle(shop, 20)
    assert (shop.world.kills, shop.history(run).state.status) == (1, "SUCCEEDED")
    left = [one.message_id for one in shop.world.services.queue("work").messages.values()]
    assert len(left) == (0 if is_gone else 1)

    settle(shop, 300)
    assert shop.history(run).state.output == {"n": 2}
    assert sound(shop)


# -- missing and changed inbox messages ------------------------------------------------------------


def test_a_wake_for_an_answer_that_is_not_there_changes_nothing() -> None:
    shop = Shop(machine({"it": ask()}))
    run = shop.start()
    settle(shop)
    before = shop.history(run).records
    send(shop, messages.wake_mail("default", run, keys.answer(0, 1)))
    settle(shop)

    assert shop.history(run).records == before
    assert (shop.world.faults, shop.world.services.depth("work")) == ([], 0)


@pytest.mark.parametrize("value", ["NaN", "{", "[1,"])
def test_an_event_whose_stored_value_is_not_json_is_refused_and_the_wait_stays_open(
    value: str,
) -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    shop.send_event(data="paid")
    (stored,) = [item for item in shop.world.services.items("mail") if item["sk"] == "e#e1"]
    shop.world.services.perform(Put("mail", {**stored, "v": value}))
    settle(shop)

    assert [type(fault) for fault in shop.world.faults] == [HoldfastBug]
    assert shop.history(run).state.status == "RUNNING"


def test_an_execution_with_changed_input_bytes_does_not_begin() -> None:
    shop = Shop(machine({"it": {"Type": "Pass", "End": True}}))
    shop.start("x" * MESSAGE_INPUT_BYTES_MAX)
    (key,) = shop.world.services.blobs()
    shop.world.services.perform(PutBlob(key, b'"other"'))
    settle(shop)

    assert [type(fault) for fault in shop.world.faults] == [HoldfastBug]
    assert shop.world.services.items("executions") == []


# -- maps ------------------------------------------------------------------------------------------


def test_a_childs_stored_end_wins_over_the_deadline_around_its_map() -> None:
    """The worker that stored it crashed before the wake; the deadline's own wake reads the notices
    first.
    """

    def is_notice(effect: Effect) -> bool:
        return isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("k#")

    block = {"Begin": "begin", "Seconds": "{% 60 %}", "States": ["all"], "Next": "late"}
    states = {
        "begin": {"Type": "Pass", "Next": "all"},
        "all": {**MANY, "Next": "done"},
        "done": {"Type": "Succeed"},
        "late": {"Type": "Pass", "Output": "late", "End": True},
    }
    flow = machine(states, Holdfast={"Deadlines": [{**block, "Assign": {}}]})
    shop = Shop(flow, tasks=work, hook=DieOnce(is_notice))
    history = shop.run([{"n": 1}])

    assert history.state.output == [2]
    assert (history.state.stopped_ms or 0) - history.state.started_ms < 70_000
    assert sound(shop)


def test_a_notice_that_is_counted_already_lies_between_those_that_are_not() -> None:
    wait = wait_for("paid", Arguments={"event": "paid", "key": "{% $string($states.input) %}"})
    del wait["End"]
    shop = Shop(machine({"all": {**a_map({"it": wait}, Items=[0, 1, 2]), "End": True}}), work)
    run = shop.start()
    settle(shop)
    for key in ("1", "2", "0"):
        request = {"name": "paid", "key": key, "data": key, "id": f"e{key}"}
        shop.world.call(shop.front.event("default", request, CHANCE))
        settle(shop)

    assert shop.history(run).state.output == ["0", "1", "2"]
    assert sound(shop)


# -- after months ----------------------------------------------------------------------------------


def test_a_run_without_a_name_that_is_idle_for_months_outlives_its_records() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start(name=None)
    settle(shop, RECORD_RETENTION_SECONDS)
    shop.send_event(data="late")
    settle(shop)

    assert shop.history(run).state.output == "late"


def test_a_refresh_that_loses_a_race_to_an_event_is_not_missed() -> None:
    def rival(world: SimulatorWorld) -> None:
        shop.send_event(data="paid")
        deliver_wakes(world)

    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    shop.world.now_ms += (RECORD_AGING_SECONDS + 1) * 1_000
    shop.world.hook = before_record(0, rival)
    recover(shop, run)

    assert shop.history(run).state.output == "paid"
    assert sound(shop)


def test_a_worker_that_finds_nothing_to_do_in_an_old_log_renews_it() -> None:
    """A worker may have removed its entry from the list, and crashed or lost the race before it put
    the next.
    """
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    shop.world.now_ms += (RECORD_AGING_SECONDS + 1) * 1_000
    shop.world.services.perform(Unlist(keys.execution("default", run), 0))
    send(shop, messages.wake_mail("default", run, messages.EVENT_MAIL))
    settle(shop)

    listed = [item["sk"] for item in shop.world.services.items("executions") if "lp" in item]
    assert listed == [1]
    shop.send_event()
    settle(shop)
    assert sound(shop)


def test_an_execution_that_never_began_and_is_found_after_months_begins() -> None:
    """Its worker crashed with its message: no watchdog row existed."""

    def deadly_once(effect: RunTask) -> TaskResult:
        if effect.arguments["n"] == 1 and not shop.world.kills:
            purge(shop.world)
            raise Killed
        return TaskSucceeded({"n": effect.arguments["n"] + 1})

    shop = Shop(chain(3), tasks=deadly_once)  # type: ignore[arg-type]
    run = shop.start({"n": 0})
    settle(shop)
    assert not shop.history(run).state.is_opened
    shop.world.now_ms += (RECORD_AGING_SECONDS + 1) * 1_000
    recover(shop, run)

    assert shop.history(run).state.output == {"n": 3}
    assert sound(shop)


def test_the_history_of_an_execution_idle_for_months_begins_at_its_snapshot() -> None:
    text = "".join(str(number) for number in range(60_000))
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start({"text": text})
    settle(shop)
    shop.world.now_ms += (RECORD_AGING_SECONDS + 1) * 1_000
    recover(shop, run)
    whole = shop.world.call(shop.front.history("default", run))
    shop.world.services.perform(Delete("executions", keys.execution("default", run), 0))
    shop.send_event(data="late")
    settle(shop)
    shown = shop.world.call(shop.front.history("default", run))

    assert {event["record"] for event in whole["events"]} == {0, 1}
    assert {event["record"] for event in shown["events"]} == {1, 2}
    assert shop.describe(run)["input"] == {"text": text}


def test_a_start_that_comes_back_after_the_life_of_its_log_writes_nothing_over_it() -> None:
    """TTL is late: the old record is still there, and counts for nothing."""
    shop = Shop(chain(1))
    shop.start({"n": 0})
    body = shop.world.services.receive("starts")[0].body
    shop.world.run()
    before = [dict(item) for item in shop.world.services.items("executions")]
    shop.world.now_ms += (RECORD_RETENTION_SECONDS + 1) * 1_000
    send(shop, body)
    settle(shop)

    assert [dict(item) for item in shop.world.services.items("executions")] == before
    assert shop.world.services.depth("work") == 1
