"""`send(…, delay=…)` and `start(…, at=…)`: an execution waits, and then sends or begins, once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.errors import RequestError
from holdfast.runtime.effects import Effect
from holdfast.testing import World
from holdfast_simulator.invariants import StoredHistory, histories
from holdfast_simulator.world import CrashAt, Killed, SimulatorWorld, When, no_faults
from tests.builders import CHANCE, Machine, call, machine, wait_for
from tests.thorough import some
from tests.unit import later_flows
from tests.unit.child_kit import TENANT, Family
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

HEADER = """
from datetime import datetime, timedelta
from holdfast import WaitTimeout, minutes, seconds, send, sleep, start, stop, task, wait_for_event
from holdfast import workflow

@workflow
def dispatch(order: str, urgent: bool = False) -> str:
    return order

@workflow
def delayed(order: str, delay: timedelta) -> str:
    return order

@workflow(key="owner", starts_on="bought")
def basket(owner: str) -> str:
    return wait_for_event("bought", str, key=owner)
"""


def run(folder: Path, body: str, *given: Any) -> Any:
    with loaded(folder, HEADER + body) as module:
        return World().run(module.flow, *given)


# -- the language and the test kit -----------------------------------------------------------------


def test_an_event_that_a_workflow_sends_later_ends_its_wait_at_that_time(tmp_path: Path) -> None:
    body = """
@workflow
def flow(key: str, wait: timedelta) -> str:
    first = send("reminder", "late", key=key, delay=wait)
    send("reminder", "early", key=key, delay=seconds(5))
    early = wait_for_event("reminder", str, key=key)
    return f"{first} {early} {wait_for_event('reminder', str, key=key)}"
"""
    with loaded(tmp_path, HEADER + body) as module:
        found = World().run(module.flow, "k1", module.minutes(2))
    assert (found.output, found.ended.total_seconds()) == ("reminder-1 early late", 120)
    assert [one.after for one in found.calls_of("reminder") if one.kind == "send"] == [120, 5]


def test_a_later_event_is_cancelled_by_its_id(tmp_path: Path) -> None:
    body = """
@workflow
def flow(key: str) -> str:
    stop(send("reminder", "late", key=key, delay=minutes(2)))
    try:
        return wait_for_event("reminder", str, key=key, timeout=minutes(5))
    except WaitTimeout:
        return "none"
"""
    assert run(tmp_path, body, "k1").output == "none"


def test_a_moment_in_the_past_is_now_and_a_later_start_has_an_id(tmp_path: Path) -> None:
    body = """
@workflow
def flow(at: datetime, wait: timedelta) -> list[str]:
    send("told", 1, key="k1", at=at)
    return [start(dispatch, "a", at=at), start(dispatch, "b", urgent=True, delay=wait)]
"""
    with loaded(tmp_path, HEADER + body) as module:
        at = module.datetime.fromisoformat("2026-01-01T00:01:00.5+00:00")
        found = World().run(module.flow, at, module.minutes(-1))
    assert found.output == ["dispatch-1", "dispatch-2"]
    assert [one.after for one in found.calls] == [60.5, 60.5, 0]
    assert found.calls_of("dispatch")[1].arguments == {"order": "b", "urgent": True}


def test_an_argument_of_the_workflow_keeps_its_name(tmp_path: Path) -> None:
    body = """
@workflow
def flow(wait: timedelta, at: datetime) -> str:
    return start(delayed, "a", delay=wait, at=at)
"""
    with loaded(tmp_path, HEADER + body) as module:
        at = module.datetime.fromisoformat("2026-01-01T00:01:00+00:00")
        (started,) = World().run(module.flow, module.minutes(7), at).calls
    assert started.arguments == {"order": "a", "delay": "PT7M"}
    assert started.after == 60


def test_a_moment_without_a_zone_is_an_error_of_the_step(tmp_path: Path) -> None:
    body = """
@workflow
def flow(at: datetime) -> str:
    try:
        return start(dispatch, "a", at=at)
    except Exception:
        return "no zone"
"""
    with loaded(tmp_path, HEADER + body) as module:
        found = World().run(module.flow, module.datetime.fromisoformat("2026-01-01T00:01:00"))
    assert found.output == "no zone"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('send("sent", 1, key="k1", delay=5)', "HF052"),
        ('send("sent", 1, key="k1", delay=when)', "HF052"),
        ('send("sent", 1, key="k1", at=minutes(5))', "HF040"),
        ('send("sent", 1, key="k1", delay=minutes(5), at=when)', "HF086"),
        ('start(dispatch, "a", delay=minutes(5), at=when)', "HF086"),
        ('start(dispatch, "a", at="2026-01-01")', "HF040"),
        ('start(dispatch, "a", countdown=5)', "HF086"),
        ("start(dispatch, delay=minutes(5))", "HF008"),
        ('start(basket, "ann", delay=minutes(5))', "HF157"),
    ],
)
def test_a_wrong_time_is_refused(tmp_path: Path, line: str, code: str) -> None:
    source = f"{HEADER}\n@workflow\ndef flow(when: datetime) -> None:\n    {line}\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert code in str(refused.value)


@pytest.mark.parametrize(
    "line",
    ['send("sent", 1, key="k1", delay=minutes(5))', 'start(dispatch, "a", delay=minutes(5))'],
)
def test_step_functions_has_no_later_command(tmp_path: Path, line: str) -> None:
    source = f"{HEADER}\n@workflow\ndef flow(n: int) -> None:\n    {line}\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        to_step_functions(compile_workflow(module.flow), Source.of(module))
    assert "HF064" in str(refused.value)


# -- the engine ------------------------------------------------------------------------------------


def own(resource: str, target: str | None = None, **fields: Any) -> Machine:
    follow = {"End": True} if target is None else {"Next": target}
    return {"Type": "Task", "Resource": f"holdfast:{resource}", **follow, **fields}


PAID = {"name": "paid", "key": "k1", "data": {"seat": 7}, "delay": 90}
INNER = {"input": {"n": 5}, "delay": 60}
MACHINES = {
    "outer": machine(
        {
            "send": own(
                "send_later", "start", Arguments=PAID, Assign={"sent": "{% $states.result %}"}
            ),
            "start": own(
                "start_later:inner", Arguments=INNER, Output="{% [$sent, $states.result] %}"
            ),
        }
    ),
    "inner": machine({"work": call("add")}),
    "waiter": machine({"wait": wait_for("paid", "again"), "again": wait_for("paid")}),
}


def begin(family: Family, workflow: str, **fields: Any) -> str:
    request = {"workflow": workflow, "input": {}, "name": workflow, **fields}
    return str(family.insist(lambda: family.front.start(TENANT, request, CHANCE))["execution"])


def of(family: Family, workflow: str) -> list[StoredHistory]:
    return [one for one in histories(family.world) if one.state.workflow == workflow]


@pytest.mark.parametrize("step", some(range(90)))
def test_a_crash_anywhere_sends_one_event_and_begins_one_execution(step: int) -> None:
    """The `step`th effect after the start kills its process, before or after it."""
    left, is_armed = step // 2, False
    wanted: When = "after" if step % 2 else "before"

    def hook(_world: SimulatorWorld, _effect: Effect, when: When) -> None:
        nonlocal left
        if is_armed and when == wanted:
            left -= 1
            if left == -1:
                raise Killed

    family = Family(MACHINES, hook=hook)
    begin(family, "waiter")
    family.settle()
    is_armed = True
    begin(family, "outer")
    family.settle(3_600)
    (outer,), (later,) = of(family, "outer"), of(family, "holdfast.later")
    (inner,), (waiter,) = of(family, "inner"), of(family, "waiter")
    assert outer.state.output == [later.run, inner.run]
    assert (later.state.status, inner.state.output) == ("SUCCEEDED", {"n": 6})
    assert len(waiter.state.used_events) == 1
    assert inner.state.parent is None
    family.pay()
    family.settle()
    assert of(family, "waiter")[0].state.output == "paid"
    assert family.is_sound()


def test_a_later_start_waits_under_its_own_id_and_can_be_stopped() -> None:
    family = Family(MACHINES)
    begin(family, "waiter")
    family.settle()
    begin(family, "outer")
    family.settle(30)
    (outer,) = of(family, "outer")
    output: Any = outer.state.output
    event, started = output
    assert [family.describe(run)["waits"][0]["kind"] for run in (event, started)] == ["timer"] * 2
    assert family.describe(started)["workflow"] == "inner"
    family.stop(event)
    family.stop(started)
    family.settle(3_600)
    assert [family.describe(run)["status"] for run in (event, started)] == ["ABORTED"] * 2
    (waiter,) = of(family, "waiter")
    assert not waiter.state.used_events
    family.stop(waiter.run)
    family.settle()
    assert family.is_sound()


def test_the_timeout_of_a_workflow_counts_from_its_later_start() -> None:
    slow = machine({"nap": {"Type": "Wait", "Seconds": 50, "End": True}}, TimeoutSeconds=70)
    outer = machine({"start": own("start_later:inner", Arguments=INNER)})
    for nap, status in ((50, "SUCCEEDED"), (80, "TIMED_OUT")):
        slow["States"]["nap"]["Seconds"] = nap
        family = Family({"outer": outer, "inner": slow})
        begin(family, "outer")
        family.settle(3_600)
        assert of(family, "inner")[0].state.status == status
        assert family.is_sound()


def test_a_later_start_runs_the_definition_that_is_the_newest_then() -> None:
    family = Family(
        {"outer": MACHINES["outer"], "inner": MACHINES["inner"], "waiter": MACHINES["waiter"]}
    )
    begin(family, "outer")
    family.settle(30)
    family.deploy("inner", machine({"end": {"Type": "Succeed", "Output": "new"}}))
    family.settle(3_600)
    assert of(family, "inner")[0].state.output == "new"


def test_an_event_that_does_not_fit_fails_the_step_that_sends_it_later() -> None:
    step = own("send_later", Arguments={**PAID, "name": "no.such"})
    family = Family({**MACHINES, "outer": machine({"step": step})})
    begin(family, "outer")
    family.settle()
    (outer,) = of(family, "outer")
    assert (outer.state.status, outer.state.error) == ("FAILED", "InvalidArguments")


@pytest.mark.parametrize("workflow", ["limited", "limited_by_name"])
def test_a_later_start_takes_its_place_under_a_limit_when_it_begins(workflow: str) -> None:
    stack = MemoryStack(later_flows.__name__)
    client, world = Client.of(stack.api), stack.world

    def rest(seconds: int) -> None:
        until_ms = world.now_ms + seconds * 1_000
        world.run(until_ms=until_ms)
        world.now_ms = until_ms

    def waits(*executions: Any) -> list[str]:
        return [one.describe()["waits"][0]["kind"] for one in executions]

    at = datetime.fromtimestamp(world.now_ms / 1_000 + 10, UTC)
    later = client.start(workflow, {"name": "a"}, at=at)
    now = client.start(workflow, {"name": "a"})
    assert waits(later, now) == ["timer", "timer"]
    rest(30)
    assert waits(later, now) == ["limit", "timer"]
    rest(100)
    assert later.describe()["output"] == "a"
    third = client.start(workflow, {"name": "a"})
    assert waits(third) == ["timer"]


@pytest.mark.parametrize("workflow", ["limited", "limited_by_name"])
def test_a_later_start_that_is_stopped_needs_no_place(workflow: str) -> None:
    stack = MemoryStack(later_flows.__name__)
    client, world = Client.of(stack.api), stack.world
    at = datetime.fromtimestamp(world.now_ms / 1_000 + 10, UTC)
    later = client.start(workflow, {"name": "a"}, at=at)
    later.stop()
    world.run(until_ms=world.now_ms + 60_000)
    assert later.describe()["status"] == "ABORTED"
    assert client.start(workflow, {"name": "a"}).describe()["waits"][0]["kind"] == "timer"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_anywhere_loses_no_place_of_a_later_start(when: When) -> None:
    def story(crash: CrashAt) -> None:
        stack = MemoryStack(later_flows.__name__)
        client, world = Client.of(stack.api), stack.world
        at = datetime.fromtimestamp(world.now_ms / 1_000 + 10, UTC)
        later = client.start("limited_by_name", {"name": "a"}, at=at)
        now = client.start("limited_by_name", {"name": "a"})
        world.hook = crash
        until_ms = world.now_ms + 3_600_000
        world.run(until_ms=until_ms)
        world.hook, world.now_ms = no_faults, until_ms
        assert [one.describe()["status"] for one in (later, now)] == ["SUCCEEDED"] * 2
        last = client.start("limited_by_name", {"name": "a"})
        world.run(until_ms=until_ms + 600_000)
        assert last.describe()["status"] == "SUCCEEDED"

    counting = CrashAt(None, when)
    story(counting)
    for number in some(counting.numbers):
        story(CrashAt(number, when))


@pytest.mark.parametrize("call", ["start", "event"])
def test_a_client_refuses_a_time_without_a_zone(call: str) -> None:
    client = Client.of(MemoryStack(later_flows.__name__).api)
    at = datetime(2027, 1, 16, 8)  # noqa: DTZ001  (the test is about such a time)
    with pytest.raises(RequestError, match="expected a time with its zone"):
        if call == "start":
            client.start("limited", {"name": "a"}, at=at)
        else:
            client.event("paid", "k1", 1, at=at)
