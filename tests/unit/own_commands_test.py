"""`send` and `start` in a workflow: refusals, results, and once whatever crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.errors import NewerFormatError
from holdfast.runtime.effects import Effect
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.storage.log import Log
from holdfast.testing import World
from holdfast_simulator.invariants import StoredHistory, histories
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import CHANCE, Machine, call, machine, wait_for
from tests.thorough import some
from tests.unit.child_kit import TENANT, Family, call_of
from tests.unit.dsl_kit import loaded

HEADER = """
from pydantic import BaseModel
from holdfast import compensating, each, parallel, seconds, send, start, stop, task
from holdfast import wait_for_event
from holdfast import workflow

class Grant(BaseModel):
    seat: int = 1

@task
def count(n: int) -> int:
    return n

@workflow
def dispatch(order: str, urgent: bool = False) -> str:
    return order
"""


def run(folder: Path, body: str, *given: Any) -> Any:
    with loaded(folder, HEADER + body) as module:
        return World().run(module.flow, *given)


# -- the language ----------------------------------------------------------------------------------


def test_a_start_gives_an_id_and_waits_for_nothing(tmp_path: Path) -> None:
    body = """
@workflow
def flow(orders: list[str]) -> list[str]:
    send("begun", orders, key="k1")
    return each(orders, lambda order: start(dispatch, order))
"""
    found = run(tmp_path, body, ["a", "b"])
    assert len(set(found.output)) == 2
    assert [one.arguments for one in found.calls_of("dispatch")] == [
        {"order": "a", "urgent": False},
        {"order": "b", "urgent": False},
    ]
    assert found.calls_of("begun")[0].arguments == {"key": "k1", "data": ["a", "b"]}
    assert found.steps == ["begun", "dispatch", "dispatch"]


def test_an_event_that_a_workflow_sends_may_end_a_wait_of_its_own(tmp_path: Path) -> None:
    body = """
def both(name: str) -> int:
    grant, _ = parallel(
        lambda: wait_for_event("granted", Grant, key=name),
        lambda: send("granted", Grant(seat=7), key=name),
    )
    return grant.seat

@workflow
def flow(name: str) -> int:
    send("granted", Grant(seat=2), key="early")
    early = wait_for_event("granted", Grant, key="early")
    return both(name) + early.seat
"""
    assert run(tmp_path, body, "k1").output == 9


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('send(name, 1, key="k1")', "HF053"),
        ('send("sent", 1)', "HF008"),
        ('send("sent", 1, key=7)', "HF040"),
        ("start(count, 1)", "HF086"),
        ("start()", "HF086"),
        ("start(dispatch)", "HF008"),
        ("start(dispatch, 7)", "HF040"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path: Path, line: str, code: str) -> None:
    source = f"{HEADER}\n@workflow\ndef flow(name: str) -> None:\n    {line}\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert code in str(refused.value)


def test_step_functions_starts_the_machine_and_calls_a_function_that_sends(tmp_path: Path) -> None:
    body = """
@workflow
def flow(order: str) -> str:
    send("begun", 1, key=order)
    run = start(dispatch, order)
    stop(run)
    return start(dispatch, order)
"""
    with loaded(tmp_path, HEADER + body) as module:
        found = to_step_functions(compile_workflow(module.flow), Source.of(module))
    states = found.asl["States"]
    assert states["start dispatch"]["Resource"] == "arn:aws:states:::states:startExecution"
    assert states["start dispatch (2)"]["Output"] == "{% $states.result.ExecutionArn %}"
    stopped = states["stop execution"]
    assert stopped["Resource"] == "arn:aws:states:::aws-sdk:sfn:stopExecution"
    assert stopped["Arguments"] == {"ExecutionArn": "{% $run %}"}
    assert states["send begun"]["Resource"] == "arn:aws:states:::lambda:invoke"
    assert {one.kind for one in found.placeholders.values()} == {"send", "workflow"}


# -- the engine ------------------------------------------------------------------------------------


def own(resource: str, target: str | None = None, **fields: Any) -> Machine:
    follow = {"End": True} if target is None else {"Next": target}
    return {"Type": "Task", "Resource": f"holdfast:{resource}", **follow, **fields}


GRANT = {"name": "paid", "key": "k1", "data": {"seat": "{% 3 + 4 %}"}}
MACHINES = {
    "outer": machine(
        {
            "send": own("send", "start", Arguments=GRANT),
            "start": own("start:inner", "work", Arguments={"n": 5}),
            "work": call("add", Arguments={"n": 1}, Output="{% $states.input %}"),
        }
    ),
    "inner": machine({"work": call("add")}),
    "waiter": machine({"wait": wait_for("paid", "again"), "again": wait_for("paid")}),
}


def begin(family: Family, workflow: str, data: Any = None) -> str:
    request = {"workflow": workflow, "input": data or {}, "name": workflow}
    return str(family.insist(lambda: family.front.start(TENANT, request, CHANCE))["execution"])


def of(family: Family, workflow: str) -> list[StoredHistory]:
    return [one for one in histories(family.world) if one.state.workflow == workflow]


@pytest.mark.parametrize("step", some(range(56)))
def test_a_crash_anywhere_sends_one_event_and_starts_one_execution(step: int) -> None:
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
    (outer,), (inner,), (waiter,) = (of(family, one) for one in ("outer", "inner", "waiter"))
    assert (outer.state.status, inner.state.output) == ("SUCCEEDED", {"n": 6})
    assert waiter.state.status == "RUNNING"  # it has one event, and waits for another
    assert len(waiter.state.used_events) == 1
    assert outer.state.output == inner.run
    assert inner.state.name is not None
    assert inner.state.name.startswith(outer.run)
    assert inner.state.parent is None
    family.pay()
    family.settle()
    assert of(family, "waiter")[0].state.output == "paid"
    assert family.is_sound()


def test_a_detached_execution_survives_the_stop_of_the_one_that_started_it() -> None:
    sleeper = machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}})
    outer = machine(
        {
            "start": own("start:inner", "nap", Arguments={}),
            "nap": {"Type": "Wait", "Seconds": 600, "End": True},
        }
    )
    family = Family({"outer": outer, "inner": sleeper})
    run_id = begin(family, "outer")
    family.settle()
    family.stop(run_id)
    family.settle(120)
    assert [of(family, one)[0].state.status for one in ("outer", "inner")] == [
        "ABORTED",
        "SUCCEEDED",
    ]
    assert family.is_sound()


def test_an_impossible_send_or_start_is_an_error_of_the_step() -> None:
    for step in (
        own("send", Arguments={**GRANT, "name": "no.such"}),
        own("start:inner", Arguments={"n": "x"}),
    ):
        family = Family({**MACHINES, "outer": machine({"step": step})})
        begin(family, "outer")
        family.settle()
        (outer,) = of(family, "outer")
        assert (outer.state.status, outer.state.error) == ("FAILED", "InvalidArguments")


@pytest.mark.parametrize(
    "step", [own("send", Arguments=GRANT), own("start:inner", Arguments={"n": 1})]
)
def test_a_release_that_does_not_know_a_command_leaves_its_log_alone(step: Machine) -> None:
    family = Family({**MACHINES, "outer": machine({"step": step})})
    run_id = begin(family, "outer")
    family.settle()
    with pytest.raises(NewerFormatError):
        family.world.call(Log(TENANT, run_id, "old", "", Formats(1, 1, 1)).load())


def test_a_workflow_that_no_worker_knows_parks_the_execution_until_it_is_deployed() -> None:
    family = Family({"outer": MACHINES["outer"], "waiter": MACHINES["waiter"]})
    run_id = begin(family, "outer")
    family.settle()
    (wait,) = family.describe(run_id)["waits"]
    assert (wait["kind"], wait["workflow"]) == ("unknown_workflow", "inner")
    family.deploy("inner", MACHINES["inner"])
    family.settle(3_600)
    assert of(family, "outer")[0].state.status == "SUCCEEDED"


def test_a_nested_execution_whose_id_is_too_long_for_a_name_starts_one_too() -> None:
    nested = {f"level{n}": machine({"call": call_of(f"level{n + 1}")}) for n in range(16)}
    last = machine({"start": own("start:inner", Arguments={})})
    family = Family({**nested, "level16": last, "inner": machine({"end": {"Type": "Succeed"}})})
    begin(family, "level0")
    family.settle(3_600)
    (inner,) = of(family, "inner")
    assert inner.state.status == "SUCCEEDED"
    assert len(str(inner.state.name)) == 32
