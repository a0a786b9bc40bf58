"""Graphs whose documents name kinds of steps: tasks by id, approvals, kinds of the project."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Approval, Dag, hours, role, step_type, task
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, real

#: As the order system of a customer stores it.
ORDER = {
    "workflow_id": "order_fulfillment",
    "steps": [
        {"id": "validate", "type": "service_call", "depends_on": []},
        {"id": "reserve", "type": "service_call", "depends_on": ["validate"]},
        {"id": "charge", "type": "service_call", "depends_on": ["reserve"]},
        {"id": "ship", "type": "service_call", "depends_on": ["charge"]},
        {"id": "notify", "type": "notification", "depends_on": ["ship"]},
    ],
}
LOAN = {
    "workflow_id": "loan",
    "steps": [
        {"id": "assess", "type": "service_call", "timeout_seconds": 60},
        {
            "id": "approve",
            "type": "human_approval",
            "depends_on": ["assess"],
            "assignee_role": "credit_manager",
            "notification": "tell_manager",
        },
        {"id": "score", "type": "rated", "depends_on": ["assess"], "scale": 10},
        {"id": "pay_out", "type": "service_call", "depends_on": ["approve", "score"]},
    ],
}


@task
def validate(order: str) -> str:
    return order.strip()


@task
def reserve(validate: str) -> str:
    return f"r-{validate}"


@task
def charge(order: str, reserve: str) -> str:
    return f"{order} {reserve}"


@task
def ship(charge: str) -> str:
    return f"t-{charge}"


@task
def notify(ship: str) -> str:
    return f"told {ship}"


@task
def assess(loan: str) -> int:
    return len(loan)


@task
def tell_manager() -> None: ...


@step_type("rated")
@task
def rated(step: dict[str, Any], assess: int) -> int:
    return int(step["scale"]) * assess


@task
def pay_out(approve: Approval, score: int) -> str:
    return f"{approve.note} {score}"


TASKS: list[Any] = [validate, reserve, charge, ship, notify]
LENDING: list[Any] = [assess, tell_manager, rated, pay_out]
loan = Dag.from_json(LOAN, LENDING)
order_fulfillment = Dag.from_json(ORDER, TASKS)


def test_the_document_of_the_order_system_runs_as_it_stands() -> None:
    world = World(dict.fromkeys(TASKS, real))
    run = world.run(order_fulfillment, order="o1")
    assert run.output == "told t-o1 r-o1"
    assert run.steps == ["validate", "reserve", "charge", "ship", "notify"]


def _loan_world() -> World:
    return World({assess: real, tell_manager: None, rated.task: real, pay_out: real})


def test_an_approval_lets_the_next_step_begin_and_gives_it_the_answer() -> None:
    world = _loan_world()
    world.answer(
        "Approve approve?", Approval(True, "fine"), assignee=role("credit_manager"), at=hours(30)
    )
    run = world.run(loan, loan="abc")
    assert run.output == "fine 30"
    assert run.ended == hours(30)
    assert "tell_manager" in run.steps


def test_a_refused_approval_fails_the_graph_with_the_note() -> None:
    world = _loan_world()
    world.answer(
        "Approve approve?",
        Approval(False, "too much"),
        assignee=role("credit_manager"),
        at=hours(1),
    )
    run = world.run(loan, loan="abc")
    assert (run.error, run.cause) == ("Rejected", "too much")


def test_an_approval_that_does_not_come_times_out_after_48_hours() -> None:
    run = _loan_world().run(loan, loan="abc")
    assert run.ended == hours(48)
    assert run.status == "FAILED"


def test_the_answer_of_an_approval_has_a_type_and_every_state_a_place() -> None:
    compiled = compile_workflow(loan)
    assert list(compiled.answers.values()) == ["holdfast.api.step_types:Approval"]
    assert "ask for approve" in compiled.sources


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"type": "service_call", "id": "no_task"}, "HF056"),
        ({"type": "phone_call"}, "HF056"),
        ({"type": "human_approval"}, "HF057"),
        ({"type": "human_approval", "assignee_role": "m", "retry": {}}, "HF057"),
        ({"type": "human_approval", "assignee_role": "m", "notification": "reserve"}, "HF057"),
        ({"type": "human_approval", "assignee_role": "m", "timeout_seconds": 0}, "HF052"),
        ({"type": "service_call", "scale": 1}, "HF057"),
    ],
)
def test_wrong_steps_are_refused_with_their_place(changed: dict[str, Any], code: str) -> None:
    document = {"workflow_id": "x", "steps": [{"id": "validate", **changed}]}
    with pytest.raises(CompileErrors) as refused:
        Dag.from_json(document, TASKS)
    assert code in [one.code for one in refused.value.diagnostics]
