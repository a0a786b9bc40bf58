"""Schedules that once broke a promise, each with the fault that it needs."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.aws.host import Host
from holdfast.aws.telemetry import Metrics
from holdfast.core.waits import attempts_of
from holdfast.errors import RequestError, ServiceFault
from holdfast.runtime import messages, pending_starts
from holdfast.runtime.commands import start
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Message,
    NoResult,
    PutIfAbsent,
    Query,
    RunTask,
    Send,
    TaskSucceeded,
)
from holdfast.runtime.maintenance import quarantine
from holdfast_simulator import levels, scenarios
from holdfast_simulator.invariants import check, histories
from holdfast_simulator.runner import Deployed, play
from holdfast_simulator.schedule import DrawnChoice, DrawnTape, WrittenTape
from holdfast_simulator.swarm import Swarm
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When
from tests.builders import CHANCE, Machine, Shop, call, chain, machine, wait_for

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
ASK: Machine = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "Arguments": {"FunctionName": "ask", "Payload": {"token": "{% $states.context.Task.Token %}"}},
    "End": True,
}
EARLY: list[DrawnChoice] = [("hand over", 0, "answered early")]


def nap(days: int, target: str) -> Machine:
    return {"Type": "Wait", "Seconds": days * 86_400, "Next": target}


def expire_daily(world: SimulatorWorld, days: int) -> None:
    """Run DynamoDB's TTL, once a day: expired items are deleted."""

    def expire() -> None:
        for table in ("executions", "mail"):
            for item in world.services.items(table):
                if int(item.get("ttl", 1 << 40)) * 1_000 < world.now_ms:
                    world.services.perform(Delete(table, str(item["pk"]), item["sk"]))  # type: ignore[arg-type]

    for day in range(1, days):
        world.at(START_MS + day * DAY_MS, expire)


def test_a_wait_longer_than_the_life_of_a_record_ends_well() -> None:
    flow = machine(
        {
            "begin": {"Type": "Pass", "Assign": {"n": 1, "note": "x" * 100}, "Next": "nap"},
            "nap": nap(200, "work"),
            "work": call("add", Arguments={"n": "{% $n %}", "note": "{% $note %}"}),
        }
    )
    shop = Shop(flow)
    run = shop.start()
    expire_daily(shop.world, 220)
    shop.world.run(until_ms=START_MS + 120 * DAY_MS)
    assert shop.describe(run)["status"] == "RUNNING"
    listed = shop.insist(lambda: shop.front.executions("default", {"status": "RUNNING"}))
    assert [row["execution"] for row in listed["executions"]] == [run]
    shop.world.run(until_ms=START_MS + 220 * DAY_MS)

    assert shop.describe(run)["output"] == {"n": 2}
    assert shop.insist(lambda: shop.front.history("default", run))["events"] != []


def test_the_history_begins_at_a_snapshot_that_refers_to_deleted_records() -> None:
    """On day 15 a record is so large that it takes a snapshot, and in it is the order of day 0."""
    draws = random.Random(1)
    junk = ["".join(draws.choices("0123456789abcdefghijklmnopqrstuv", k=9_000)) for _ in range(6)]
    output = {"order": "{% $states.result.order %}"}
    flow = machine(
        {
            "nap": nap(15, "work"),
            "work": call("work", "rest", Arguments="{% $states.input %}", Output=output),
            "rest": nap(200, "done"),
            "done": {"Type": "Succeed"},
        }
    )
    shop = Shop(flow, tasks=lambda effect: TaskSucceeded({**effect.arguments, "junk": junk}))
    run = shop.start({"order": {"note": "x" * 100}, "more": "y" * 50})
    expire_daily(shop.world, 96)
    shop.world.run(until_ms=START_MS + 95 * DAY_MS)

    events = shop.insist(lambda: shop.front.history("default", run))["events"]
    assert events[0]["record"] > 0


def test_a_monthly_loop_runs_for_a_year() -> None:
    flow = machine(
        {
            "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "nap"},
            "nap": nap(30, "work"),
            "work": call(
                "add", "again?", Arguments={"n": "{% $n %}"}, Assign={"n": "{% $states.result.n %}"}
            ),
            "again?": {
                "Type": "Choice",
                "Choices": [{"Condition": "{% $n < 12 %}", "Next": "nap"}],
                "Default": "done",
            },
            "done": {"Type": "Succeed", "Output": "{% $n %}"},
        }
    )
    shop = Shop(flow)
    run = shop.start()
    expire_daily(shop.world, 400)
    shop.world.run(until_ms=START_MS + 400 * DAY_MS)

    assert len(shop.world.task_runs) == 12
    assert shop.world.task_runs.total() == 12
    assert shop.describe(run)["output"] == 12


def test_an_ended_execution_does_not_come_back_through_a_half_deleted_log() -> None:
    """TTL took the last records first, and a timer of the old wait is still to come."""
    refund = [{"ErrorEquals": ["States.ALL"], "Next": "refund"}]
    flow = machine(
        {
            "wait": wait_for("paid", "ship", TimeoutSeconds=91 * 86_400, Catch=refund),
            "ship": call("ship"),
            "refund": call("refund"),
        }
    )
    ran: list[str] = []

    def task(effect: RunTask) -> TaskSucceeded:
        ran.append(effect.name)
        return TaskSucceeded(None)

    shop = Shop(flow, tasks=task)
    shop.start()
    shop.world.run(until_ms=START_MS + HOUR_MS)
    shop.send_event()
    shop.world.run(until_ms=START_MS + 90 * DAY_MS + HOUR_MS)
    for item in shop.world.services.items("executions"):
        if item["sk"] != 0:
            shop.world.services.perform(Delete("executions", str(item["pk"]), int(item["sk"])))
    shop.world.run(until_ms=START_MS + 100 * DAY_MS)

    assert ran == ["ship"]


def test_a_name_belongs_to_its_execution_for_as_long_as_that_is_open() -> None:
    """The worker that renews the log crashes before it renews the name."""
    shop = Shop(machine({"nap": nap(130, "done"), "done": {"Type": "Succeed"}}))
    killed: list[int] = []

    def die_after_renewal(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_late = world.now_ms > START_MS + 40 * DAY_MS
        is_record = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if when == "after" and is_late and is_record and not killed:
            killed.append(world.now_ms)
            raise Killed

    shop.world.hook = die_after_renewal
    shop.start({"n": 1})
    expire_daily(shop.world, 100)
    shop.world.run(until_ms=START_MS + 85 * DAY_MS)

    assert killed
    other = {"workflow": "flow", "input": {"n": 2}, "name": "order-1"}
    with pytest.raises(RequestError, match="HF212"):
        shop.world.call(shop.front.start("default", other, CHANCE))


def test_a_stop_ends_a_loop_that_never_waits() -> None:
    loop = machine(
        {
            "a": {"Type": "Pass", "Assign": {"n": 1}, "Next": "b"},
            "b": {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "a"}]},
        }
    )
    shop = Shop(loop)
    records: list[Effect] = []

    def stop_in_the_middle(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and isinstance(effect, PutIfAbsent) and effect.table == "executions":
            records.append(effect)
            assert len(records) < 20, "the loop goes on"
            if len(records) == 3:
                run = str(effect.item["pk"]).partition("#")[2]
                world.call(shop.front.stop("default", run, {}, CHANCE))

    shop.world.hook = stop_in_the_middle
    run = shop.start()
    shop.world.run(until_ms=START_MS + HOUR_MS)

    assert shop.describe(run)["status"] == "ABORTED"


def test_crashes_do_not_multiply_the_messages_of_forty_polling_lanes() -> None:
    """A message that is delivered again repeats the commands of its own records, not every open
    timer.
    """
    lane = machine(
        {
            "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "nap"},
            "nap": {"Type": "Wait", "Seconds": 60, "Next": "again?"},
            "again?": {
                "Type": "Choice",
                "Choices": [{"Condition": "{% $n < 8 %}", "Next": "count"}],
                "Default": "done",
            },
            "count": {"Type": "Pass", "Assign": {"n": "{% $n + 1 %}"}, "Next": "nap"},
            "done": {"Type": "Succeed"},
        }
    )
    del lane["QueryLanguage"]
    shop = Shop(
        machine(
            {"all": {"Type": "Map", "Items": "{% [1..40] %}", "ItemProcessor": lane, "End": True}}
        )
    )
    seed = 3
    print(f"seed {seed}")
    draws = random.Random(seed)

    def lose_deliveries(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_load = isinstance(effect, Query) and effect.table == "executions"
        if when == "before" and is_load and draws.random() < 0.10:
            raise Killed

    shop.world.hook = lose_deliveries
    shop.start()
    depths = []
    for minute in range(1, 8):
        shop.world.run(until_ms=START_MS + minute * 60_000 + 15_000)
        depths.append(shop.world.services.depth("work"))

    assert max(depths) < 80


@pytest.mark.slow
def test_an_execution_that_can_never_commit_costs_little_and_is_set_aside() -> None:
    shop = Shop(chain(3))
    records: list[Effect] = []

    def refuse(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, PutIfAbsent) and effect.table == "executions" and when == "before":
            records.append(effect)
            if len(records) > 1:
                raise ServiceFault("HF323", "the item is not valid", retry="never")

    shop.world.hook = refuse
    shop.start({"n": 0})
    shop.world.run(until_ms=START_MS + DAY_MS)

    assert any(item["pk"] == "~hurt" for item in shop.world.services.items("mail"))
    assert shop.world.services.depth("work") + shop.world.services.depth("single") < 20


def test_two_messages_of_one_execution_in_one_batch_are_two_writers() -> None:
    """Both have loaded the same log when the first of them writes."""
    lanes = [
        {
            "StartAt": name,
            "States": {
                name: wait_for(event, f"{name}2"),
                f"{name}2": call("add", Arguments={"n": 1}),
            },
        }
        for name, event in (("a", "paid"), ("b", "signed"))
    ]
    shop = Shop(machine({"both": {"Type": "Parallel", "Branches": lanes, "End": True}}))
    shop.start()
    shop.world.run(until_ms=START_MS + 1_000)
    shop.send_event("paid", 1, "e1")
    shop.send_event("signed", 2, "e2")
    batch = shop.world.services.receive("work")
    host = Host(_Ports(shop.world), shop.world.setting, lambda: shop.front, Metrics("stack"))  # type: ignore[arg-type]
    records = [
        {
            "messageId": message.message_id,
            "receiptHandle": message.receipt,
            "body": json.dumps(message.body),
            "attributes": {"ApproximateReceiveCount": "1"},
            "eventSourceARN": "arn:aws:sqs:eu-west-1:1:work",
        }
        for message in batch
    ]
    answer = host.worker({"Records": records}, _Context())

    assert answer == {"batchItemFailures": []}
    assert check(shop.world) == []
    assert [history.state.status for history in histories(shop.world)] == ["SUCCEEDED"]
    assert shop.world.task_runs.total() == 2


class _Ports:
    """Memory for services; the first record of each message waits until both have loaded."""

    def __init__(self, world: SimulatorWorld) -> None:
        self.names = self
        self._world = world
        self._lock = threading.RLock()
        self._gate = threading.Barrier(2, timeout=5)
        self._seen = threading.local()

    def queue_url(self, name: str) -> str:
        return f"https://sqs/{name}"

    def perform(self, effect: Effect) -> Any:
        is_record = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if is_record and not getattr(self._seen, "gate", False):
            self._seen.gate = True
            self._gate.wait()
        with self._lock:
            return self._world.services.perform(effect)

    def for_message(self, queue: str, receipt: str) -> Any:
        return self.perform

    def extend_visibility(self, queue: str, receipts: Any, seconds: int) -> None:
        return


class _Context:
    aws_request_id = "one-invocation"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def test_a_task_with_a_long_time_out_is_begun_though_visibility_is_short() -> None:
    flow = machine({"slow": call("add", Arguments={"n": 1}, TimeoutSeconds=840)})
    shop = Shop(flow)
    history = shop.run()

    assert history.state.status == "SUCCEEDED"
    assert shop.world.services.effects["Send"] == 1


def test_a_busy_execution_keeps_its_name_and_its_place_in_the_list() -> None:
    """It writes snapshots of its own and waits for timers alone: no recovery is needed."""
    flow = machine(
        {
            "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "nap"},
            "nap": {"Type": "Wait", "Seconds": 6 * 3_600, "Next": "work"},
            "work": call(
                "add", "nap", Arguments={"n": "{% $n %}"}, Assign={"n": "{% $states.result.n %}"}
            ),
        }
    )
    shop = Shop(flow)
    run = shop.start({"n": 1})
    expire_daily(shop.world, 100)
    shop.world.run(until_ms=START_MS + 90 * DAY_MS)

    other = {"workflow": "flow", "input": {"n": 2}, "name": "order-1"}
    with pytest.raises(RequestError, match="HF212"):
        shop.world.call(shop.front.start("default", other, CHANCE))
    listed = shop.insist(lambda: shop.front.executions("default", {"status": "RUNNING"}))
    assert [row["execution"] for row in listed["executions"]] == [run]


def test_the_repair_of_a_start_whose_log_has_begun_carries_out_its_commands() -> None:
    """Its worker wrote record 0, crashed before it registered the wait, and each later one crashed
    too: the same start once more would find a log, and no work.
    """
    shop = Shop(machine({"wait": wait_for("paid")}))
    starts: list[Message] = []

    def see(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Send) and when == "before":
            starts.extend(one for one in effect.messages if one.body["k"] == "start")

    shop.world.hook = see
    run = shop.start()
    shop.world.run(until_ms=START_MS + 1_000)
    shop.world.now_ms += HOUR_MS // 2  # No worker has a message now
    (registered,) = [item for item in shop.world.services.items("mail") if item["sk"] == f"w#{run}"]
    shop.world.services.perform(Delete("mail", str(registered["pk"]), str(registered["sk"])))
    shop.world.call(quarantine.put(starts[0].body, ("a", "b", "c"), shop.world.now_ms))

    held = shop.world.call(quarantine.find(shop.tenant, run))
    shop.world.call(quarantine.release(held))
    shop.world.run(until_ms=shop.world.now_ms + 1_000)

    assert f"w#{run}" in {item["sk"] for item in shop.world.services.items("mail")}


def test_a_released_execution_does_not_wait_for_the_leases_of_its_dead_letters() -> None:
    wait = {"Type": "Wait", "Seconds": 60, "Next": "work"}
    flow = machine({"nap": wait, "work": call("work", TimeoutSeconds=840)})
    shop = Shop(flow, tasks=lambda _: TaskSucceeded(None))
    killed: list[int] = []

    def die_with_the_claim(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and isinstance(effect, RunTask) and not killed:
            killed.append(world.now_ms)
            raise Killed

    shop.world.hook = die_with_the_claim
    run = shop.start()
    shop.world.run(until_ms=START_MS + 70_000)
    (attempt,) = attempts_of(shop.history(run).state)
    assert attempt.claim is not None
    queue = shop.world.services.queue("work")
    queue.messages.clear()  # the queue has set it aside
    letters = ("a", "b", attempt.claim.message)
    body = messages.recover(shop.tenant, run)
    shop.world.call(quarantine.put(body, letters, shop.world.now_ms))
    held = shop.world.call(quarantine.find(shop.tenant, run))
    shop.world.call(quarantine.release(held))
    shop.world.run(until_ms=START_MS + 80_000)

    assert shop.history(run).state.status == "SUCCEEDED"


@pytest.mark.parametrize("name", ["race of children", "slow child undoes", "undo at a stop"])
def test_an_execution_stopped_in_place_of_another_first_try_leaves_nothing_behind(
    name: str,
) -> None:
    """A start whose worker crashes is a dead letter, and is stopped when it would be sent again."""
    (deployed,) = [one for one in levels.programs(None) if one.scenario.name == name]
    swarm = Swarm(safety_ms=1_000_000, receives_max=1, stop_percent=100)
    for effect in range(3, 11):
        killed = ("effect", effect, "killed before")
        tape = WrittenTape([killed, ("stop", 0, 99), ("stop time", 0, 14)])
        result = play(deployed, swarm, tape)
        assert result.violations == (), killed
        assert set(result.statuses) == {"ABORTED"}, killed


def test_a_deadline_in_a_lane_that_is_unwound_is_over_though_another_lane_holds() -> None:
    """A judge waited for it until the shield of the other lane was left."""
    lanes = {
        "fast": {"fast": {"Type": "Wait", "Seconds": 5, "End": True}},
        "block": {
            "block": {"Type": "Pass", "Next": "rest"},
            "rest": {"Type": "Wait", "Seconds": 900, "End": True},
        },
        "hold": {"hold": {"Type": "Wait", "Seconds": 300, "End": True}},
    }
    branches = [{"StartAt": start, "States": states} for start, states in lanes.items()]
    race = {"Type": "Parallel", "Branches": branches, "Holdfast": {"Needed": 1}, "End": True}
    deadline = {"Begin": "block", "Seconds": 19, "States": ["rest"]}
    own = {"Shielded": [["hold"]], "Deadlines": [deadline]}
    later = {"Type": "Wait", "Seconds": 60, "Next": "race"}
    flow = {**machine({"later": later, "race": race}), "Holdfast": own}
    scenario = scenarios.read({"name": "race", "about": "", "machines": {"main": flow}})
    result = play(Deployed(scenario), Swarm(safety_ms=0), WrittenTape([]))
    assert (result.violations, result.statuses) == ((), ("SUCCEEDED",))


def test_a_task_that_no_worker_knows_is_tried_again_in_minutes_though_its_clock_is_behind() -> None:
    """By its clock the first task of a start was not due yet; the message went with the next."""
    task = {"main": machine({"work": call("work")})}
    scenario = scenarios.read({"name": "a task", "about": "", "machines": task})
    swarm = Swarm(safety_ms=2_000_000, skew_ms=400, callers=1)
    choices: list[DrawnChoice] = [
        ("skew", 1, 633),
        ("invocation", 0, "old"),
        ("effect", 8, "throttled"),
        ("effect", 11, "frozen before"),
        ("freeze", 0, 4),
        ("invocation", 2, "old"),
    ]
    result = play(Deployed(scenario), swarm, WrittenTape(choices))
    assert (result.violations, result.statuses) == ((), ("SUCCEEDED",))


def test_a_heartbeat_counts_from_when_it_was_given_however_late_it_is_stored() -> None:
    """The judge counted from when it was stored (I8). The one after it is frozen at its door."""
    ask: Machine = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "HeartbeatSeconds": 60,
        "Arguments": {"FunctionName": "ask", "Payload": "{% $states.context.Task.Token %}"},
        "End": True,
    }
    answers = {"ask": {"output": 1, "seconds": 200, "beat_seconds": 40}}
    tasks = {"lambda:invoke": [{"output": 1}]}
    flow = {"machines": {"main": machine({"ask": ask})}, "tasks": tasks, "answers": answers}
    scenario = scenarios.read({"name": "alive", "about": "", **flow})
    choices: list[DrawnChoice] = [
        ("effect", 14, "slow"),
        ("slow", 0, 2),
        ("effect", 24, "frozen before"),
        ("freeze", 0, 2),
    ]
    tape = WrittenTape(choices)
    result = play(Deployed(scenario), Swarm(safety_ms=600_000, callers=1), tape)
    assert (result.violations, result.statuses) == ((), ("FAILED",))


@pytest.mark.parametrize("fault", ["throttled", "killed before"])
def test_a_poller_that_hardly_succeeds_asks_no_more_than_there_is_to_do(
    fault: str,
) -> None:
    """A poll of half a minute hardly ever ends well then, and was repeated for hours (I20)."""
    (deployed,) = [one for one in levels.programs(None) if one.scenario.name == "activity"]
    for seed in (1, 5):
        swarm = Swarm(rates={fault: 0.4}, safety_ms=20_000_000)
        result = play(deployed, swarm, DrawnTape(seed))
        assert result.violations == (), seed
        assert result.steps < 10_000, seed


def test_an_answer_during_the_call_is_read_before_the_execution_times_out() -> None:
    """Its wait and the end of the execution's time were written at once (I7)."""
    for milliseconds in range(20_980, 21_010):
        tasks = {"lambda:invoke": [{"output": 1, "seconds": milliseconds / 1_000}]}
        answers = {"ask": {"output": "x", "seconds": 1}}
        flow = machine({"ask": ASK}, TimeoutSeconds=20)
        swarm = Swarm(safety_ms=10_000, callers=1)
        assert judged(flow, swarm, EARLY, tasks=tasks, answers=answers) == (), milliseconds


def test_each_delivery_of_a_frozen_parent_sends_to_its_children() -> None:
    """The judge counted that for something that the children had caused (I20)."""
    (deployed,) = [one for one in levels.programs(None) if one.scenario.name == "race of children"]
    rates = {"frozen after": 0.3, "sent twice": 0.1, "answer lost": 0.1}
    swarm = Swarm(rates, 11_000_000, latency_ms=300, stop_percent=100, redrive_percent=100)
    for seed in (28, 127, 257):
        assert play(deployed, swarm, DrawnTape(seed)).violations == (), seed


def judged(flow: Machine, swarm: Swarm, choices: list[DrawnChoice], **more: Any) -> tuple[Any, ...]:
    given = {"name": "judged", "about": "", "machines": {"main": flow}, **more}
    return play(Deployed(scenarios.read(given)), swarm, WrittenTape(choices)).violations


def test_a_worker_with_hardly_any_time_left_when_the_faults_end_may_begin_nothing() -> None:
    """I18 asked why: the next task was decided on after that, and begun two minutes later."""
    flow = machine({"one": call("one", "two"), "two": call("two")})
    tasks = {"one": [{"output": 1, "seconds": 4.997}], "two": [{"output": 2}]}
    short: list[DrawnChoice] = [("invocation", 0, "short")]
    assert judged(flow, Swarm(safety_ms=1_000, callers=1), short, tasks=tasks) == ()


def test_an_answer_is_unheard_for_as_long_as_there_is_a_wait_for_it() -> None:
    """The answer came before its call was over (I17)."""
    for seconds in (309.990, 309.993):
        tasks = {"lambda:invoke": [{"output": 1, "seconds": seconds}]}
        answers = {"ask": {"output": "x", "seconds": 1}}
        swarm = Swarm(safety_ms=10_000, callers=1)
        flow = machine({"ask": {**ASK, "TimeoutSeconds": 800}})
        assert judged(flow, swarm, EARLY, tasks=tasks, answers=answers) == (), seconds


def test_a_worker_frozen_before_each_of_two_first_tasks_begins_them_after_the_stop() -> None:
    """Hours after, both: the invariant on unrequested attempts had one of them (I4)."""
    lanes = [{"StartAt": name, "States": {name: call(name)}} for name in ("a", "b")]
    flow = machine({"both": {"Type": "Parallel", "Branches": lanes, "End": True}})
    choices: list[DrawnChoice] = [
        ("effect", 4, "frozen before"),
        ("freeze", 0, 4),
        ("stop", 0, 99),
        ("stop time", 0, 14),
        ("effect", 24, "frozen before"),
        ("freeze", 1, 4),
    ]
    swarm = Swarm(safety_ms=30_000_000, receives_max=1, stop_percent=100)
    assert judged(flow, swarm, choices, stops=True) == ()


def sent_at_once(body: Mapping[str, Any]) -> NoResult:
    yield Send((Message(body),), "starts")


def unread(*_: object) -> Any:
    return
    yield


def test_a_child_with_lost_workers_reports_them_to_a_parent_with_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parent is still beginning the call; its judge counted the parent's own losses (I5)."""
    # The schedule numbers its effects: a repeated start did not read the log then and was sent at
    # once, and starts had no rows.
    monkeypatch.setattr(start, "_state_of", unread)
    monkeypatch.setattr(pending_starts, "guard", unread)
    monkeypatch.setattr(pending_starts, "send_again", sent_at_once)
    (deployed,) = [one for one in levels.programs(None) if one.scenario.name == "slow child undoes"]
    choices: list[DrawnChoice] = [
        ("effect", 2, "throttled"),
        ("latency", 6, 232),
        ("effect", 8, "killed after"),
        ("receive", 1, "delivered again"),
        ("again", 0, 3),
        ("effect", 12, "killed before"),
        ("effect", 22, "killed after"),
        ("receive", 4, "delivered again"),
        ("again", 1, 3),
        ("effect", 26, "done later"),
        ("effect", 29, "killed before"),
        ("latency", 28, 172),
        ("latency", 29, 120),
        ("effect", 38, "killed after"),
        ("effect", 41, "killed after"),
        ("effect", 44, "killed before"),
        ("skew", 13, 565),
        ("effect", 50, "frozen before"),
        ("effect", 55, "done later"),
        ("effect", 59, "throttled"),
        ("latency", 52, 227),
        ("receive", 10, "delivered again"),
        ("latency", 53, 154),
        ("latency", 54, 287),
        ("latency", 55, 84),
        ("latency", 56, 212),
        ("effect", 64, "killed after"),
    ]
    swarm = Swarm(
        safety_ms=24_706_604,
        skew_ms=400,
        batch_size=1,
        receives_max=10,
        latency_ms=300,
        callers=2,
        redrive_percent=60,
    )
    result = play(deployed, swarm, WrittenTape(choices))
    assert (result.violations, result.statuses) == ((), ("FAILED", "FAILED"))
