"""Traps of the protocol, planted one at a time: each schedule passes on the real code and fails
with its bug. `caught` runs both, so a schedule that no longer reaches its bug fails too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.apply import apply as apply_module
from holdfast.errors import RequestError
from holdfast.runtime import event_pointers, follow_ups, inbox, watchdog
from holdfast.runtime.commands import start
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.effects import (
    Delete,
    Doubt,
    Effect,
    Get,
    Message,
    Put,
    PutIfAbsent,
    Send,
    TaskSucceeded,
    Unlist,
)
from holdfast.runtime.maintenance import sweeper
from holdfast.runtime.storage import log
from holdfast.runtime.worker import external_facts
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import CHANCE, Shop, call, chain, machine, wait_for
from tests.sim.planted.recovery import refuse_go
from tests.sim.planted.timing import nothing, tick_before_the_mail

Patch = pytest.MonkeyPatch
Schedule = Callable[[], list[str]]

DAY_SECONDS = 86_400
NAP = {"Type": "Wait", "Seconds": 3_600, "End": True}


def caught(schedule: Schedule, plant: Callable[[Patch], Any]) -> None:
    assert schedule() == []
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert schedule() != []


def problems(shop: Shop, status: str = "SUCCEEDED") -> list[str]:
    found = check(shop.world)
    if found:
        return found
    ends = [history.state.status for history in histories(shop.world)]
    return [*(f"lost {run}" for run in lost(shop.world)), *(end for end in ends if end != status)]


def once(
    condition: Callable[[Effect], bool], action: Callable[[SimulatorWorld], None], when: When
) -> Any:
    """A hook that acts at the first effect that fits, and never again."""
    done: list[Effect] = []

    def hook(world: SimulatorWorld, effect: Effect, at: When) -> None:
        if at == when and not done and condition(effect):
            done.append(effect)
            action(world)

    return hook


def die(world: SimulatorWorld) -> None:
    raise Killed


def is_record(effect: Effect) -> bool:
    return isinstance(effect, PutIfAbsent) and effect.table == "executions"


# -- R6 --------------------------------------------------------------------------------------------


def _doubt_at(number: int, doubted: str) -> Any:
    """A hook that loses the answer to the nth record that is written."""
    seen: list[Effect] = []

    def hook(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if is_record(effect) and when == doubted:
            seen.append(effect)
            if len(seen) == number + 1:
                raise Doubt("no answer came")

    return hook


def test_a_write_in_doubt_is_read_again_and_not_believed() -> None:
    def schedule() -> list[str]:
        found = []
        for number in range(4):
            for when in ("before", "after"):
                shop = Shop(chain(4), hook=_doubt_at(number, when))
                shop.start({"n": 0})
                shop.world.run()
                found += problems(shop)
        return found

    def believe(table: Any, item: Any) -> Any:
        try:
            return (yield PutIfAbsent(table, item)) is None
        except Doubt:
            return True

    caught(schedule, lambda patch: patch.setattr(log, "put_surely", believe))


# -- starts ----------------------------------------------------------------------------------------


def test_a_start_that_is_repeated_sends_its_message_again() -> None:
    """R12: the first caller stored the name and crashed before it sent the message."""

    def is_name(effect: Effect) -> bool:
        return isinstance(effect, PutIfAbsent) and "#n#" in str(effect.item["pk"])

    def schedule() -> list[str]:
        shop = Shop(chain(1), hook=once(is_name, die, "after"))
        shop.start({"n": 0})
        shop.world.run()
        return problems(shop)

    real = Front.start

    def plant(patch: Patch) -> None:
        def start(self: Front, tenant: str, request: Any, chance: bytes) -> Any:
            partition = f"{tenant}#n#flow#{request['name']}"
            there = yield Get("mail", partition, "-")
            if there is not None:
                return {"execution": there["run"]}
            return (yield from real(self, tenant, request, chance))

        patch.setattr(Front, "start", start)

    caught(schedule, plant)


def test_a_name_is_reserved_before_anything_runs() -> None:
    """Two starts of one name with different inputs: one execution, and one refusal."""

    def schedule() -> list[str]:
        shop = Shop(chain(1))
        for number in range(2):
            request = {"workflow": "flow", "input": {"n": number}, "name": "order-1"}
            try:
                shop.world.call(shop.front.start("default", request, bytes([number] * 8)))
            except RequestError as error:
                assert error.status == 409
        shop.world.run()
        runs = len(histories(shop.world))
        return problems(shop) if runs == 1 else [f"{runs} executions of one name"]

    real = start.claim_name

    def plant(patch: Patch) -> None:
        def claim(tenant: str, wanted: Start, data: Any) -> Any:
            body = start.message_of(tenant, replace(wanted, input={"v": '{"n": 0}'}))
            yield Send((Message(body),), "starts")
            return (yield from real(tenant, wanted, data))

        patch.setattr(start, "claim_name", claim)

    caught(schedule, plant)


# -- events ----------------------------------------------------------------------------------------


def _is_registration(effect: Effect) -> bool:
    return isinstance(effect, Put) and str(effect.item["sk"]).startswith("w#")


def test_a_waiter_registers_before_it_looks() -> None:
    """R13: the event is stored between the two; one of the two sides has to see the other."""

    def schedule() -> list[str]:
        shop = Shop(machine({"wait": wait_for("paid", TimeoutSeconds=3_600)}))

        def send(world: SimulatorWorld) -> None:
            world.call(shop.front.event("default", request, CHANCE))

        request = {"name": "paid", "key": "k1", "data": 1, "id": "e1"}
        shop.world.hook = once(_is_registration, send, "before")
        shop.start()
        shop.world.run(until_ms=shop.world.now_ms + 60_000)
        return problems(shop)

    def look_first(log_: Any, entry: int, now_ms: int) -> Any:
        waiting = log_.state.frame_of(entry).waiting
        found = yield from event_pointers.event_facts(log_.tenant, log_.state, waiting, now_ms)
        yield from inbox.register(log_.tenant, log_.state, waiting, now_ms)
        return found

    caught(schedule, lambda patch: patch.setattr(follow_ups, "_register", look_first))


def test_an_event_is_used_once_in_an_execution() -> None:
    flow = machine(
        {
            "first": wait_for("paid", "second"),
            "second": wait_for(
                "paid", TimeoutSeconds=60, Catch=[{"ErrorEquals": ["States.ALL"], "Next": "done"}]
            ),
            "done": {"Type": "Succeed"},
        }
    )

    def schedule() -> list[str]:
        shop = Shop(flow)
        shop.start()
        shop.send_event()
        shop.world.run()
        return problems(shop)

    def forget(state: Any, event: Any) -> Any:
        return real("TaskSucceeded")(state, event)._replace(used_events={})

    def handler(event_type: str) -> Any:
        return forget if event_type == "TaskSucceeded" else real(event_type)

    real = apply_module._handler
    caught(schedule, lambda patch: patch.setattr(apply_module, "_handler", handler))


def test_a_stored_event_beats_the_time_out_that_comes_after_it() -> None:
    """R14: its wake was never sent, because its sender crashed."""

    def is_event(effect: Effect) -> bool:
        return isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("e#")

    def schedule() -> list[str]:
        shop = Shop(machine({"wait": wait_for("paid", TimeoutSeconds=60)}))
        shop.start()

        def bring_and_die() -> None:
            request = {"name": "paid", "key": "k1", "data": 1, "id": "e1"}
            with pytest.raises(Killed):
                shop.world.call(shop.front.event("default", request, CHANCE))

        shop.world.hook = once(is_event, die, "after")
        shop.world.at(shop.world.now_ms + 30_000, bring_and_die)
        shop.world.run()
        return problems(shop)

    caught(schedule, tick_before_the_mail)


# -- timers and watching ---------------------------------------------------------------------------


def test_a_wake_that_comes_early_is_sent_again() -> None:
    """R15: the sender's clock is 0.4 s ahead, the receiver's 0.4 s behind."""

    def schedule() -> list[str]:
        shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 10, "End": True}}))
        deliveries: list[int] = []

        def skew(number: int) -> int:
            deliveries.append(number)
            return 400 if len(deliveries) == 1 else -400

        shop.world.skew = skew
        shop.start()
        shop.world.run(until_ms=shop.world.now_ms + 30_000)
        return problems(shop)

    caught(schedule, lambda patch: patch.setattr(external_facts, "again_if_early", nothing))


def test_a_parked_execution_is_watched_before_its_message_is_gone() -> None:
    """R11: the queue is purged while the execution sleeps."""

    def schedule() -> list[str]:
        shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 600, "End": True}}))

        def purge() -> None:
            for message in shop.world.services.receive("work", 10):
                shop.world.services.delete(message.receipt)

        shop.start()
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
        shop.world.services._queues["work"].messages.clear()
        shop.world.services._queues["work"]._heap.clear()
        shop.world.run()
        return problems(shop)

    def forget(*arguments: Any) -> Any:
        return
        yield

    caught(schedule, lambda patch: patch.setattr(watchdog, "watch", forget))


def test_a_delivery_reads_control_messages_though_only_a_timer_is_open() -> None:
    """The wake of a stop was lost; without the look a long wait would ignore it to its end."""

    def is_control(effect: Effect) -> bool:
        return isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("x#")

    def schedule() -> list[str]:
        shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 20 * DAY_SECONDS, "End": True}}))
        run = shop.start()
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
        shop.world.hook = once(is_control, die, "after")
        with pytest.raises(Killed):
            shop.world.call(shop.front.stop("default", run, {}, CHANCE))
        shop.world.run()
        return problems(shop, "ABORTED")

    def nothing(*arguments: Any) -> Any:
        return []
        yield

    def plant(patch: Patch) -> None:
        blind = type("blind", (), {**vars(inbox), "control_facts": staticmethod(nothing)})
        patch.setattr(sweeper, "inbox", blind)

    caught(schedule, plant)


def test_a_timer_row_is_deleted_after_its_message_is_sent() -> None:
    flow = machine({"nap": {"Type": "Wait", "Seconds": DAY_SECONDS, "End": True}})

    def is_timer_row(effect: Effect) -> bool:
        return isinstance(effect, Delete) and "#t#" in str(effect.sk)

    def is_wake(effect: Effect) -> bool:
        return isinstance(effect, Send) and effect.messages[0].body["k"] == "wake.timer"

    def schedule() -> list[str]:
        found = []
        for condition in (is_timer_row, is_wake):
            shop = Shop(flow, hook=once(condition, die, "after"))
            history = shop.run()
            late_seconds = (history.state.stopped_ms or 0) // 1_000 - shop_due(history)
            found += problems(shop)
            found += [f"{late_seconds} s late"] if late_seconds > 60 else []
        return found

    def shop_due(history: Any) -> int:
        timer = next(event for event in history.events if event.type == "TimerSet")
        return int(timer.holdfast["due"]) // 1_000

    real = sweeper._timer

    def delete_first(row: Any, now_ms: int) -> Any:
        yield from follow_ups.drop_row(row)
        yield from real(row, now_ms)

    caught(schedule, lambda patch: patch.setattr(sweeper, "_timer", delete_first))


def test_two_sweepers_that_overlap_write_the_same_row() -> None:
    """The next look is on a grid; without it each visit would double the rows."""

    def schedule() -> list[str]:
        shop = Shop(machine({"wait": wait_for("paid", TimeoutSeconds=30 * DAY_SECONDS)}))
        shop.start()
        shop.world.run(until_ms=shop.world.now_ms + 60_000)
        world = shop.world
        world.now_ms += 3_600_000

        def is_move(effect: Effect) -> bool:
            return isinstance(effect, Delete) and effect.sk.endswith("#w")  # type: ignore[union-attr]

        def overlap(world: SimulatorWorld) -> None:
            world.now_ms += 700
            world.sweep()

        world.hook = once(is_move, overlap, "before")
        world.sweep()
        rows = [item for item in world.services.items("mail") if str(item["sk"]).endswith("#w")]
        return [] if len(rows) == 1 else [f"{len(rows)} watch rows"]

    real = watchdog.next_look_ms

    def off_grid(state: Any, parked_ms: int, now_ms: int) -> int:
        return real(state, parked_ms, now_ms) + now_ms % 60_000

    caught(schedule, lambda patch: patch.setattr(watchdog, "next_look_ms", off_grid))


# -- the end and handing on ------------------------------------------------------------------------


def test_unlisting_never_creates_an_empty_record() -> None:
    """TTL took the record that opened the execution, just before its entry is removed."""

    def schedule() -> list[str]:
        shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 10, "End": True}}))

        def expire(world: SimulatorWorld) -> None:
            for item in world.services.items("executions"):
                world.services.perform(Delete("executions", str(item["pk"]), int(item["sk"])))

        shop.world.hook = once(lambda effect: isinstance(effect, Unlist), expire, "before")
        shop.start()
        # Soon after its start, an execution without a log is begun again.
        shop.world.run(until_ms=shop.world.now_ms + 600_000)
        return [str(item) for item in shop.world.services.items("executions")]

    def plant(patch: Patch) -> None:
        from holdfast_simulator.services import Services

        def unlist(self: Any, effect: Unlist) -> None:
            self._put(Put("executions", {"pk": effect.pk, "sk": effect.sk}))

        real = Services.__init__

        def init(self: Any, *arguments: Any, **options: Any) -> None:
            real(self, *arguments, **options)
            self._performers[Unlist] = lambda effect: unlist(self, effect)

        patch.setattr(Services, "__init__", init)

    caught(schedule, plant)


def test_a_worker_that_is_handed_a_run_takes_the_lease_in_the_message() -> None:
    timeout: dict[str, Any] = {"TimeoutSeconds": 90, "Arguments": {"n": 1}}
    flow = machine({"one": call("slow", "two", **timeout), "two": call("slow", **timeout)})

    def schedule() -> list[str]:
        shop = Shop(flow)

        def slow(effect: Any) -> Any:
            shop.world.now_ms += 60_000
            return TaskSucceeded({"n": 1})

        shop.world.tasks = slow
        history = shop.run()
        took_seconds = ((history.state.stopped_ms or 0) - history.state.started_ms) // 1_000
        late = [f"took {took_seconds} s"] if took_seconds > 150 else []
        return [*problems(shop), *late]

    caught(schedule, refuse_go)
