"""The worker in a world: unknown tasks, lost workers, time-outs, stops, foreign messages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import pytest

from holdfast.core.attempt_facts import WORKER_LOST
from holdfast.errors import HoldfastBug, ServiceFault
from holdfast.limits import RECORD_RETENTION_SECONDS, VISIBILITY_SECONDS
from holdfast.runtime import messages
from holdfast.runtime.driver import run as drive
from holdfast.runtime.effects import (
    Deadline,
    Delete,
    Effect,
    Message,
    Put,
    PutIfAbsent,
    RunTask,
    Send,
    SetVisibility,
    TaskFailed,
    TaskSucceeded,
    WriteDeadline,
)
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.definitions import Programs, item_of
from holdfast.runtime.storage.formats import FORMATS
from holdfast.runtime.worker import loop
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import deliver
from holdfast_simulator import world as simulated
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.services import WORK_QUEUES
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When
from tests.builders import Machine, Shop, ask, call, chain, machine, wait_for

P = ParamSpec("P")
T = TypeVar("T")

DAY = 86_400
RETRY_LATER = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 600, "MaxAttempts": 1}]


def settle(shop: Shop, seconds: float = 1) -> None:
    until_ms = shop.world.now_ms + int(seconds * 1_000)
    shop.world.run(until_ms=until_ms)
    shop.world.now_ms = until_ms


def sound(shop: Shop) -> bool:
    assert check(shop.world) == []
    return lost(shop.world) == []


def branches(*states: Machine, **fields: Any) -> Machine:
    machines = [
        {"StartAt": f"b{number}", "States": {f"b{number}": {"End": True, **state}}}
        for number, state in enumerate(states)
    ]
    return {"Type": "Parallel", "Branches": machines, "End": True, **fields}


# -- unknown tasks ---------------------------------------------------------------------------------


def test_an_unknown_task_parks_the_execution_named_until_a_worker_knows_it() -> None:
    known: set[str] = set()
    shop = Shop(machine({"it": call("ship")}), knows=lambda name, is_pure: name in known)
    shop.world.tasks = lambda effect: TaskSucceeded("shipped")
    run = shop.start()
    settle(shop, 600)
    (wait,) = shop.describe(run)["waits"]
    assert (wait["kind"], wait["task"], wait["state"]) == ("unknown_task", "ship", "it")
    assert "'ship'" in wait["reason"]
    records = len(shop.history(run).records)
    settle(shop, 7_200)
    assert len(shop.history(run).records) == records
    known.add("ship")
    settle(shop, 3_600)

    assert shop.history(run).state.output == "shipped"
    assert sound(shop)


def test_a_pure_function_is_not_run_where_only_a_task_of_its_name_is_known() -> None:
    state = {"Type": "Task", "Resource": "holdfast:pure:add", "End": True}
    shop = Shop(machine({"it": state}), knows=lambda name, is_pure: not is_pure)
    run = shop.start()
    settle(shop)

    assert shop.describe(run)["waits"][0]["kind"] == "unknown_task"
    assert not shop.world.task_runs


# -- messages that are not for this code -----------------------------------------------------------


def test_a_message_of_newer_code_is_given_back_and_nothing_is_written() -> None:
    shop = Shop(chain(1))
    body = {
        **messages.start("default", "0" * 26, workflow="flow"),
        "f": messages.FORMAT_KINDS + 1,
    }
    shop.world.services.perform(Send((Message(body),)))
    settle(shop, 30)

    assert shop.world.services.depth("work") == 1
    assert shop.world.services.items("executions") == []
    assert shop.world.services.items("mail") == []
    assert shop.world.faults == []


def test_a_log_of_newer_code_is_left_alone_and_its_message_given_back() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    newest = shop.world.services.items("executions")[-1]
    newer = {**newest, "f": FORMATS.newest + 1}
    shop.world.services.perform(Put("executions", newer))
    before = len(shop.world.services.items("executions"))
    wake = messages.wake_mail("default", run, messages.EVENT_MAIL)
    shop.world.services.perform(Send((Message(wake),)))
    settle(shop, 30)

    assert shop.world.services.depth("work") == 1
    assert len(shop.world.services.items("executions")) == before


def test_a_foreign_message_is_refused_and_ends_as_a_dead_letter() -> None:
    shop = Shop(chain(1))
    shop.world.services.perform(Send((Message({"k": "?"}),)))
    settle(shop, 59)

    assert [type(fault) for fault in shop.world.faults] == [HoldfastBug]
    assert shop.world.services.items("executions") == []


@pytest.mark.parametrize("kind", ["timer", "mail", "go", "recover"])
def test_a_wake_without_an_execution_is_deleted_and_writes_nothing(kind: str) -> None:
    shop, run = Shop(chain(1)), "0" * 26
    body = {
        "timer": messages.wake_timer("default", run, 0, 0, None),
        "mail": messages.wake_mail("default", run, "t#0.1"),
        "go": messages.go("default", run, "w", messages.Hint(0, -1)),
        "recover": messages.recover("default", run),
    }[kind]
    shop.world.services.perform(Send((Message(body),)))
    settle(shop)

    assert shop.world.services.depth("starts") == 0
    assert shop.world.services.items("executions") == []


@pytest.mark.parametrize("kind", ["timer", "mail", "answer", "control", "go", "recover", "start"])
def test_any_message_about_an_ended_execution_changes_nothing(kind: str) -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    start = shop.world.services.receive("starts")[0]
    settle(shop, VISIBILITY_SECONDS * 20)
    before = [dict(item) for item in shop.world.services.items("executions")]
    body = {
        "timer": messages.wake_timer("default", run, 0, 0, None),
        "mail": messages.wake_mail("default", run, messages.EVENT_MAIL),
        "answer": messages.wake_mail("default", run, "t#0.1"),
        "control": messages.wake_mail("default", run, "x#1"),
        "go": messages.go("default", run, "w", messages.Hint(0, -1)),
        "recover": messages.recover("default", run),
        "start": start.body,
    }[kind]
    shop.world.services.perform(Send((Message(body),)))
    settle(shop)

    assert shop.history(run).state.status == "SUCCEEDED"
    assert [dict(item) for item in shop.world.services.items("executions")] == before
    assert shop.world.services.depth("starts") == 0


# -- lost workers ----------------------------------------------------------------------------------


def test_a_task_that_kills_every_worker_fails_in_the_end_with_a_name() -> None:
    def deadly(effect: RunTask) -> TaskSucceeded:
        raise Killed

    shop = Shop(machine({"it": call("ship")}), tasks=deadly)
    history = shop.run()

    assert (history.state.status, history.state.error) == ("FAILED", WORKER_LOST)
    assert shop.world.kills <= 6
    assert sound(shop)


def test_a_task_that_killed_its_worker_once_is_run_again() -> None:
    runs: list[int] = []

    def deadly_once(effect: RunTask) -> TaskSucceeded:
        runs.append(effect.attempt)
        if len(runs) == 2:
            raise Killed
        return TaskSucceeded("done")

    shop = Shop(machine({"a": call("x", "b"), "b": call("y")}), tasks=deadly_once)
    history = shop.run()

    assert history.state.output == "done"
    assert runs == [1, 1, 1]  # The same attempt: its effect is unknown
    assert sound(shop)


def test_the_next_receipt_takes_over_from_a_crashed_worker_before_its_lease_lapses() -> None:
    deaths: list[int] = []

    def deadly_once(effect: RunTask) -> TaskSucceeded:
        if effect.name == "y" and not deaths:
            deaths.append(shop.world.now_ms)
            raise Killed
        return TaskSucceeded("done")

    almost_all = VISIBILITY_SECONDS - 5
    flow = machine({"x": call("x", "y"), "y": call("y", TimeoutSeconds=almost_all)})
    shop = Shop(flow, tasks=deadly_once)
    history = shop.run()

    assert history.state.output == "done"
    assert (history.state.stopped_ms or 0) - deaths[0] <= VISIBILITY_SECONDS * 1_000
    assert sound(shop)


# -- time-outs -------------------------------------------------------------------------------------


class Stuck(Executor):
    """Tasks that never end; each takes the clock past its time."""

    def __init__(self, world: SimulatorWorld, seconds: int) -> None:
        self.world, self.seconds = world, seconds

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self.world.now_ms += self.seconds * 1_000
        return Future()


def deliver_all(
    shop: Shop, pool: Executor, after: Callable[[Effect], None] = lambda effect: None
) -> None:
    """Every visible message to a worker with this pool; `after` sees what it has done."""
    for number, received in enumerate(shop.world.services.receive("starts")):
        bound = shop.world.services.for_message("starts", received.receipt)
        limit_ms = shop.world.now_ms + 600_000

        def perform(effect: Effect, bound: Any = bound, limit_ms: int = limit_ms) -> Any:
            if isinstance(effect, WriteDeadline | Deadline):
                return limit_ms
            result = bound(effect)
            after(effect)
            return result

        delivery = ReceivedMessage(
            received.body,
            received.message_id,
            received.receive_count,
            f"pooled{number}",
            received.sent_at,
        )
        if drive(deliver(shop.world.setting, delivery), perform, pool):
            shop.world.services.delete(received.receipt)


def test_a_task_past_its_time_out_is_timed_out_though_it_never_ends() -> None:
    shop = Shop(machine({"it": call("ship", TimeoutSeconds=5)}))
    run = shop.start()
    deliver_all(shop, Stuck(shop.world, 6))

    assert shop.history(run).state.error == "States.Timeout"
    assert "TaskTimedOut" in [event.type for event in shop.history(run).events]
    assert sound(shop)


def test_an_execution_past_its_own_time_ends_though_its_task_still_runs() -> None:
    shop = Shop(machine({"it": call("ship")}, TimeoutSeconds=5))
    run = shop.start()
    deliver_all(shop, Stuck(shop.world, 6))

    assert shop.history(run).state.status == "TIMED_OUT"
    assert sound(shop)


def test_a_wait_beside_a_first_task_that_still_runs_ends_when_it_is_due() -> None:
    waiting = {"Type": "Wait", "Seconds": 5, "Next": "no"}
    lanes = [
        {"StartAt": "it", "States": {"it": call("ship")}},
        {"StartAt": "nap", "States": {"nap": waiting, "no": {"Type": "Fail", "Error": "Late"}}},
    ]
    shop = Shop(machine({"all": {"Type": "Parallel", "Branches": lanes, "End": True}}))
    run = shop.start()
    deliver_all(shop, Stuck(shop.world, 6))

    assert shop.history(run).state.error == "Late"
    assert "TaskStateAborted" in [event.type for event in shop.history(run).events]
    assert sound(shop)


def test_a_task_without_a_time_out_is_left_to_the_next_worker_at_the_limit() -> None:
    shop = Shop(machine({"it": call("ship")}))
    run = shop.start()
    deliver_all(shop, Stuck(shop.world, 601))
    assert shop.world.services.items("executions") == []
    shop.world.tasks = lambda effect: TaskSucceeded("done")
    shop.world.run()

    assert shop.history(run).state.output == "done"
    assert sound(shop)


class Ready(Executor):
    """Runs a task when it is begun: whatever was begun together is ready together."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_results_that_are_ready_together_share_a_record() -> None:
    steps = [call("x") for _ in range(5)]
    shop = Shop(
        machine({"all": branches(*steps)}), tasks=lambda effect: TaskSucceeded(effect.entry)
    )
    run = shop.start()
    deliver_all(shop, Ready())

    assert shop.history(run).state.output == [1, 2, 3, 4, 5]
    assert len(shop.history(run).records) == 1


def test_an_early_result_is_committed_while_the_others_still_run() -> None:
    shop = Shop(machine({"all": branches(call("quick"), call("slow", TimeoutSeconds=30))}))

    class Mixed(Ready):
        def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
            task = args[0]
            assert isinstance(task, RunTask)
            if task.name == "quick":
                return super().submit(fn, *args, **kwargs)
            return Future()

    def time_passes(effect: Effect) -> None:
        if isinstance(effect, PutIfAbsent) and effect.table == "executions":
            shop.world.now_ms += 31_000

    shop.world.tasks = lambda effect: TaskSucceeded("done")
    run = shop.start()
    deliver_all(shop, Mixed(), time_passes)
    types = [event.type for event in shop.history(run).events]

    assert types.index("TaskSucceeded") < types.index("TaskTimedOut")
    assert len(shop.history(run).records) == 2


# -- stop ------------------------------------------------------------------------------------------

WAITS: dict[str, Machine] = {
    "a short wait": {"Type": "Wait", "Seconds": 300, "End": True},
    "a long wait": {"Type": "Wait", "Seconds": 30 * DAY, "End": True},
    "an event": wait_for("paid"),
    "a person": ask(TimeoutSeconds=DAY),
    "a retry": call("busy", Retry=RETRY_LATER),
    "a retry of lanes": branches(call("busy"), Retry=RETRY_LATER),
    "an unknown task": call("unknown"),
    "lanes": branches(ask(), wait_for("paid"), {"Type": "Wait", "Seconds": 9_000}),
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_stop_ends_every_kind_of_wait(wait: str) -> None:
    shop = Shop(
        machine({"it": WAITS[wait]}),
        tasks=lambda effect: TaskFailed("Busy", ""),
        knows=lambda name, is_pure: name != "unknown",
    )
    run = shop.start()
    settle(shop, 5)
    assert shop.history(run).state.status == "RUNNING"
    shop.stop(run)
    shop.stop(run)
    settle(shop, 5)
    history = shop.history(run)

    assert history.state.status == "ABORTED"
    assert [event.type for event in history.events].count("ExecutionAborted") == 1
    shop.world.run()
    assert shop.history(run).events == history.events
    assert sound(shop)


def test_a_stop_before_the_first_record_is_applied_at_the_first_wait() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    shop.stop("order-1")
    shop.world.run()

    assert shop.history(run).state.status == "ABORTED"


def test_a_stop_after_the_end_changes_nothing() -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    shop.world.run()
    shop.stop(run)
    shop.world.run()

    assert shop.history(run).state.status == "SUCCEEDED"


def test_a_stop_carries_its_words() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    words = {"error": "Cancelled", "cause": "by the customer"}
    shop.world.call(shop.front.stop("default", run, words, b"12345678"))
    settle(shop)

    assert (shop.history(run).state.error, shop.history(run).state.cause) == tuple(words.values())


# -- time-outs of waits and of executions ----------------------------------------------------------


@pytest.mark.parametrize("seconds", [60, 2 * DAY])
def test_a_wait_for_an_event_times_out_within_two_minutes_of_its_time(seconds: int) -> None:
    shop = Shop(machine({"it": wait_for("paid", TimeoutSeconds=seconds)}))
    history = shop.run()
    late_ms = (history.state.stopped_ms or 0) - history.state.started_ms - seconds * 1_000

    assert history.state.error == "States.Timeout"
    assert 0 <= late_ms <= 120_000
    assert sound(shop)


def test_an_execution_past_its_own_time_ends_timed_out() -> None:
    shop = Shop(machine({"it": wait_for("paid")}, TimeoutSeconds=90))
    history = shop.run()

    assert history.state.status == "TIMED_OUT"
    assert shop.world.services.metrics["ExecutionsFailed"] == 1


# -- faults ----------------------------------------------------------------------------------------


def test_a_throttled_write_gives_the_message_back_and_loses_nothing() -> None:
    thrown: list[Effect] = []

    def throttle(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, PutIfAbsent) and effect.table == "executions" and when == "before":
            thrown.append(effect)
            if len(thrown) <= 2:
                raise ServiceFault("HF321", "slow down")

    shop = Shop(chain(3), hook=throttle)
    history = shop.run({"n": 0})

    assert history.state.output == {"n": 3}
    assert sound(shop)


def test_a_run_that_is_idle_for_months_outlives_its_records() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    half_life = RECORD_RETENTION_SECONDS // 2
    settle(shop, 2 * half_life)
    newest = shop.world.services.items("executions")[-1]

    assert "so" in newest
    assert int(newest["ttl"]) * 1_000 > shop.world.now_ms + half_life * 500
    shop.send_event(data="late")
    settle(shop)
    assert shop.history(run).state.output == "late"


def test_a_message_under_which_another_works_is_not_acknowledged() -> None:
    """A twin of the message comes while its first receiver is at work (R10)."""
    seen: list[bool] = []
    shop = Shop(chain(2))

    def twin(effect: RunTask) -> TaskSucceeded:
        if effect.arguments["n"] == 1 and not seen:
            seen.append(True)
            body = messages.recover("default", effect.run)
            delivery = ReceivedMessage(body, "starts-1", 1, "twin", START_MS)
            hidden: list[int] = []

            def perform(inner: Effect) -> Any:
                match inner:
                    case WriteDeadline() | Deadline():
                        return shop.world.now_ms + 60_000
                    case SetVisibility(seconds):
                        return hidden.append(seconds)
                return shop.world.services.perform(inner)

            assert drive(deliver(shop.world.setting, delivery), perform) is False
            assert hidden
        return TaskSucceeded({"n": effect.arguments["n"] + 1})

    shop.world.tasks = twin
    history = shop.run({"n": 0})

    assert seen
    assert history.state.output == {"n": 2}


# -- races -----------------------------------------------------------------------------------------


def before_record(number: int, action: Callable[[SimulatorWorld], None]) -> Any:
    """A hook that acts once, right before the nth record is put."""
    seen: list[Effect] = []

    def hook(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, PutIfAbsent) and effect.table == "executions":
            seen.append(effect)
            if len(seen) == number + 1:
                action(world)

    return hook


def deliver_wakes(world: SimulatorWorld) -> None:
    for queue in WORK_QUEUES:
        for received in world.services.receive(queue):
            world.deliver(received, queue)


def paid_beside_a_task() -> Machine:
    chained = {"x": call("add", "y", Output="{% $states.input %}"), "y": call("add")}
    paid = {"StartAt": "paid", "States": {"paid": wait_for("paid")}}
    both = [{"StartAt": "x", "States": chained}, paid]
    return machine({"all": {"Type": "Parallel", "Branches": both, "End": True}})


def test_a_worker_that_loses_a_race_to_an_event_offers_its_result_again() -> None:
    def rival(world: SimulatorWorld) -> None:
        shop.send_event(data="paid")
        deliver_wakes(world)

    shop = Shop(paid_beside_a_task())
    shop.world.hook = before_record(1, rival)
    history = shop.run({"n": 0})

    assert history.state.output == [{"n": 1}, "paid"]
    assert len({record.nonce.partition(".")[0] for record in history.records}) > 1
    assert set(shop.world.task_runs.values()) == {1}
    assert sound(shop)


@pytest.mark.parametrize("timeout_seconds", [5, 90])
def test_two_messages_that_start_one_execution_make_one_log(timeout_seconds: int) -> None:
    """Up to a minute the first task runs before record 0, and so perhaps twice; above it, once."""
    flow = machine({"it": call("add", TimeoutSeconds=timeout_seconds)})
    shop = Shop(flow, hook=before_record(0, deliver_wakes))
    shop.start({"n": 0})
    first = shop.world.services.receive("starts")[0]
    shop.start({"n": 0})
    shop.world.deliver(first, "starts")
    shop.world.run()
    (history,) = histories(shop.world)

    assert history.state.output == {"n": 1}
    assert shop.world.task_runs.total() == (2 if timeout_seconds <= 60 else 1)
    assert sound(shop)


def test_a_worker_that_loses_a_race_to_the_end_lets_go() -> None:
    def rival(world: SimulatorWorld) -> None:
        shop.stop("order-1")
        deliver_wakes(world)

    shop = Shop(chain(5))
    shop.world.hook = before_record(2, rival)
    history = shop.run({"n": 0})

    assert history.state.status == "ABORTED"
    assert sound(shop)


def test_a_worker_that_loses_too_many_races_gives_its_message_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rival(world: SimulatorWorld) -> None:
        shop.send_event(data="paid")
        deliver_wakes(world)

    shop = Shop(paid_beside_a_task())
    shop.world.hook = before_record(1, rival)
    monkeypatch.setattr(loop, "RACES_MAX", 0)
    history = shop.run({"n": 0})

    assert history.state.output == [{"n": 1}, "paid"]
    assert sound(shop)


def test_two_that_share_an_execution_may_race_as_often_as_they_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One worker commits, then the other, in turn: a value that grew with each race would reach a
    limit.
    """
    races = 20
    waits = {f"w{n}": wait_for("paid", f"w{n + 1}") for n in range(races)}
    paid = machine({**waits, f"w{races}": {"Type": "Succeed"}})
    both = {"Type": "Parallel", "Branches": [chain(races), paid], "End": True}
    shop = Shop(machine({"both": both}))
    first: list[Any] = []
    depths: list[int] = []

    def deliver_seen(*arguments: Any) -> Any:
        handler = deliver(*arguments)
        first.append(handler)
        return handler

    def rival(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_record = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if when == "before" and is_record and world.task_runs.total() > len(depths):
            depths.append(depth_of(first[0]))
            shop.send_event(event_id=f"e{len(depths)}")
            deliver_wakes(world)

    monkeypatch.setattr(simulated, "deliver", deliver_seen)
    shop.world.hook = rival
    history = shop.run({"n": 0})

    assert len(depths) == races
    assert max(depths[1:]) == depths[1]
    assert history.state.status == "SUCCEEDED"
    assert sound(shop)


def depth_of(handler: Any) -> int:
    """Return how many generators wait for one another."""
    return 0 if handler is None else 1 + depth_of(getattr(handler, "gi_yieldfrom", None))


# -- handing over, and foreign messages ------------------------------------------------------------


def test_a_task_for_which_too_little_time_is_left_is_handed_on() -> None:
    shop = Shop(machine({"x": call("add", "y"), "y": call("add", TimeoutSeconds=119)}))
    history = shop.run({"n": 0})

    assert history.state.output == {"n": 2}
    assert shop.world.task_runs.total() == 2
    assert len({record.message for record in history.records}) == 2
    assert (history.state.stopped_ms or 0) - history.state.started_ms < 5_000
    assert sound(shop)


def forgetful(shop: Shop) -> None:
    """The worker is another process: it has no definition in hand."""
    shop.world.setting = replace(shop.world.setting, programs=Programs())


def test_a_worker_that_does_not_know_the_definition_reads_it_from_the_store() -> None:
    shop = Shop(chain(2))
    forgetful(shop)

    assert shop.run({"n": 0}).state.output == {"n": 2}


@pytest.mark.parametrize("damage", ["gone", "other"])
def test_a_definition_with_another_hash_stops_the_worker(damage: str) -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    key = keys.definition("default", shop.definition.hash)
    services = shop.world.services
    if damage == "gone":
        services.perform(Delete("mail", key, keys.ONLY))
    else:
        other = item_of("default", Shop(chain(2)).definition)
        services.perform(Put("mail", {**other, "pk": key}))
    forgetful(shop)
    settle(shop, 1)

    assert [type(fault) for fault in shop.world.faults] == [HoldfastBug]
    assert services.items("executions") == []
    assert shop.world.services.depth("starts") == 1
    assert shop.describe(run)["waits"] == [{"kind": "start"}]


def test_a_stored_heartbeat_keeps_a_wait_open_until_heartbeats_stop() -> None:
    shop = Shop(machine({"it": ask(HeartbeatSeconds=60, TimeoutSeconds=9_000)}))
    run = shop.start()
    for _ in range(5):
        settle(shop, 40)
        key = {"pk": keys.inbox("default", run), "sk": keys.heartbeat(0)}
        shop.world.services.perform(Put("mail", {**key, "f": 1, "at": shop.world.now_ms}))
    settle(shop, 59)
    assert shop.history(run).state.status == "RUNNING"
    settle(shop, 120)

    assert shop.history(run).state.error == "States.Timeout"
    assert sound(shop)


def test_an_execution_between_two_full_records_shows_that_it_continues() -> None:
    loop = {
        "begin": {"Type": "Pass", "Assign": {"i": 0}, "Next": "again?"},
        "again?": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $i < 520 %}", "Next": "count"}],
            "Default": "done",
        },
        "count": {"Type": "Pass", "Assign": {"i": "{% $i + 1 %}"}, "Next": "again?"},
        "done": {"Type": "Succeed", "Output": "{% $i %}"},
    }

    def die(world: SimulatorWorld) -> None:
        raise Killed

    shop = Shop(machine(loop), hook=before_record(1, die))
    run = shop.start()
    settle(shop, 1)
    assert [wait["kind"] for wait in shop.describe(run)["waits"]] == ["next step"]
    shop.world.run()

    assert shop.history(run).state.output == 520
    assert sound(shop)


# -- claims ----------------------------------------------------------------------------------------


def claims_of(shop: Shop, run: str) -> list[int]:
    """Return how long each lease of record 0 lasts, in seconds."""
    events = shop.history(run).records[0].events
    untils = [event.holdfast["claim"][3] for event in events if "claim" in event.holdfast]
    return [(until_ms - START_MS) // 1_000 for until_ms in untils]


def test_the_leases_of_attempts_that_wait_for_a_place_last_until_their_end() -> None:
    """Else the sweeper would find them lapsed, and their worker, which lives, taken for lost."""
    steps = [call("x", TimeoutSeconds=30)] * 100
    shop = Shop(machine({"all": branches(*steps)}), tasks=lambda effect: TaskSucceeded("done"))
    run = shop.start()
    settle(shop)
    assert claims_of(shop, run) == [35] * 40 + [70] * 40 + [105] * 20


def test_a_start_that_is_sent_again_does_not_take_the_retry_that_another_runs() -> None:
    def rival(world: SimulatorWorld) -> None:
        assert shop.start() == run
        deliver_wakes(world)

    def fail_once(effect: RunTask) -> TaskSucceeded | TaskFailed:
        return TaskFailed("Busy", "") if effect.attempt == 1 else TaskSucceeded("done")

    shop = Shop(machine({"it": call("busy", Retry=RETRY_LATER)}), tasks=fail_once)
    run = shop.start()
    settle(shop)
    shop.world.hook = before_record(0, rival)
    settle(shop, 700)
    assert shop.history(run).state.output == "done"
    assert shop.world.task_runs == {(run, 0, 1): 1, (run, 0, 2): 1}
    assert sound(shop)
