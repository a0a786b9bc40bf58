"""`return again(…)`: the same execution begins anew, on the newest definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import seconds
from holdfast.api.harness import ContinueAsNew
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.core.state_json import from_json, to_json
from holdfast.proofs import report
from holdfast.proofs.findings import SourceLocation
from holdfast.runtime.effects import Effect
from holdfast.testing import World
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import CHANCE, Machine, machine, wait_for
from tests.thorough import some
from tests.unit.child_kit import TENANT, Family, call_of
from tests.unit.dsl_kit import loaded

HEADER = """
from holdfast import (
    WaitTimeout, again, compensating, minutes, parallel, publish, seconds, sleep, task, timeout,
    wait_for_event, workflow,
)

@task
def refund(n: int) -> None: ...
"""
COUNTER = """
@workflow
def flow(name: str, total: int = 0) -> int:
    for _ in range(2):
        n = wait_for_event("add", int, key=name)
        if n == 0:
            return total
        total += n
    publish("total", total)
    return again(name, total=total)
"""

# -- the language ----------------------------------------------------------------------------------


def test_a_workflow_goes_on_with_new_arguments_and_what_it_published(tmp_path: Path) -> None:
    world = World()
    for at, n in enumerate([1, 2, 3, 4, 5, 0]):
        world.send("add", n, key="k1", at=seconds(at))
    with loaded(tmp_path, HEADER + COUNTER) as module:
        found = world.run(module.flow, "k1")
        with pytest.raises(ContinueAsNew):
            module.flow.function.__globals__["again"]("k1")
    assert found.output == 15
    assert found.published == {"total": 10}
    assert [one.arguments["total"] for one in found.calls_of("flow")] == [3, 10]


def test_a_loop_without_an_end_may_go_on_as_new(tmp_path: Path) -> None:
    body = """
@workflow(timeout=minutes(2))
def flow(n: int) -> int:
    while True:
        try:
            with timeout(seconds(7)):
                sleep(seconds(5 * n))
        except WaitTimeout:
            return again(0)
        n += 1
"""
    with loaded(tmp_path, HEADER + body) as module:
        found = World().run(module.flow, 1)
    assert found.status == "TIMED_OUT"  # the timeout is that of the whole execution
    assert found.ended.total_seconds() == 120


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("again(n)", "HF087"),
        ("m = again(n)\n    return m", "HF087"),
        ("return parallel(lambda: again(n), lambda: sleep(seconds(1)))[0]", "HF087"),
        ("try:\n        return again(n)\n    finally:\n        refund(n)", "HF087"),
        ("try:\n        return again(n)\n    except Exception:\n        return 1", "HF087"),
        (
            "with compensating() as undo:\n        undo(refund, n)\n        return again(n)",
            "HF087",
        ),
        ("return again()", "HF008"),
        ('return again("a")', "HF040"),
    ],
)
def test_a_workflow_goes_on_as_new_only_where_nothing_has_to_be_left(
    tmp_path: Path, body: str, code: str
) -> None:
    source = f"{HEADER}\n@workflow\ndef flow(n: int) -> int:\n    {body}\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert code in str(refused.value)


def test_step_functions_cannot_go_on_as_new(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + COUNTER) as module, pytest.raises(CompileErrors) as refused:
        to_step_functions(compile_workflow(module.flow), Source.of(module))
    assert "HF064" in str(refused.value)


def test_the_bounds_of_a_check_are_those_of_one_round(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + COUNTER) as module:
        compiled = compile_workflow(module.flow)
    proofs = report.prove("flow", compiled.asl, {})
    shown = report.render(proofs, lambda *_: SourceLocation("f", 1, 1))
    assert "history, cost and time are those of one round" in shown
    assert report.to_json(proofs)["bounds_of"] == "one round"


# -- the engine ------------------------------------------------------------------------------------


def rounds(step: int, last: int = 3) -> Machine:
    """A machine that adds `step` in each round, until there were `last` rounds."""
    over = {"Condition": f"{{% $n >= {last} %}}", "Next": "end"}
    return machine(
        {
            "start": {
                "Type": "Pass",
                "Assign": {"n": "{% $states.input.n %}", "total": "{% $states.input.total %}"},
                "Next": "which",
            },
            "which": {"Type": "Choice", "Choices": [over], "Default": "wait"},
            "wait": wait_for("paid", "again"),
            "again": {
                "Type": "Task",
                "Resource": "holdfast:again",
                "Arguments": {"n": "{% $n + 1 %}", "total": f"{{% $total + {step} %}}"},
                "End": True,
            },
            "end": {"Type": "Succeed", "Output": "{% $total %}"},
        }
    )


BEGIN = {"n": 0, "total": 0}


def pay(family: Family, number: int) -> None:
    request = {"name": "paid", "key": "k1", "data": number, "id": f"e{number}"}
    family.insist(lambda: family.front.event(TENANT, request, CHANCE))
    family.settle()


def test_each_round_uses_an_event_of_its_own_and_runs_the_newest_definition() -> None:
    family = Family({"outer": rounds(1)})
    run = family.start(BEGIN)
    family.settle()
    pay(family, 1)
    assert family.outer.state.input == {"n": 1, "total": 1}
    family.deploy("outer", rounds(10))
    pay(family, 2)  # the round that runs keeps its definition
    pay(family, 3)
    shown = family.describe(run)
    assert (shown["status"], shown["output"], shown["name"]) == ("SUCCEEDED", 1 + 1 + 10, "o1")
    assert shown["definition"] == family.known["outer"].hash
    assert len(family.outer.state.used_events) == 3
    state = family.outer.state
    assert from_json(to_json(state)) == state
    assert family.is_sound()


@pytest.mark.parametrize("step", some(range(40)))
def test_a_crash_anywhere_begins_each_round_once(step: int) -> None:
    """The `step`th effect after the first event kills its process, before or after it."""
    left, is_armed = step // 2, False
    wanted: When = "after" if step % 2 else "before"

    def hook(_world: SimulatorWorld, _effect: Effect, when: When) -> None:
        nonlocal left
        if is_armed and when == wanted:
            left -= 1
            if left == -1:
                raise Killed

    family = Family({"outer": rounds(1)}, hook=hook)
    family.start(BEGIN)
    family.settle()
    is_armed = True
    for number in (1, 2, 3):
        pay(family, number)
    family.settle(3_600)
    assert (family.outer.state.status, family.output) == ("SUCCEEDED", 3)
    renewals = [one for one in family.outer.events if one.type == "ContinuedAsNew"]
    assert len(renewals) == 3
    assert family.is_sound()


def test_a_parent_waits_until_the_last_round_is_over() -> None:
    parent = machine({"call": call_of("inner", Arguments=BEGIN)})
    family = Family({"outer": parent, "inner": rounds(1)})
    family.start()
    family.settle()
    for number in (1, 2):
        pay(family, number)
        assert family.outer.state.status == "RUNNING"
    pay(family, 3)
    assert family.statuses() == ("SUCCEEDED", ["SUCCEEDED"])
    assert family.output == 3
    assert family.is_sound()


def test_a_stop_ends_the_round_that_runs() -> None:
    family = Family({"outer": rounds(1)})
    run = family.start(BEGIN)
    family.settle()
    pay(family, 1)
    family.stop(run)
    family.settle()
    assert family.outer.state.status == "ABORTED"
    assert family.is_sound()


def test_new_arguments_that_do_not_fit_are_an_error_of_the_step() -> None:
    bad: Any = {"Type": "Task", "Resource": "holdfast:again", "Arguments": {"n": "x"}, "End": True}
    family = Family({"outer": machine({"again": bad})})
    family.run()
    assert (family.outer.state.status, family.outer.state.error) == ("FAILED", "InvalidArguments")


def test_a_branch_cannot_go_on_as_new() -> None:
    bad: Any = {"Type": "Task", "Resource": "holdfast:again", "Arguments": BEGIN, "End": True}
    both = {"Type": "Parallel", "Branches": [{"StartAt": "b", "States": {"b": bad}}], "End": True}
    family = Family({"outer": machine({"both": both})})
    family.run()
    assert (family.outer.state.status, family.outer.state.error) == ("FAILED", "InvalidArguments")
