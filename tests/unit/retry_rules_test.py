"""Retry rules: which errors of a task are retried, in a World and in the definition."""

from __future__ import annotations

import pytest

from holdfast import Retry, TaskError, task, workflow
from holdfast.compiler.compile import compile_workflow
from holdfast.errors import WorkflowError
from holdfast.testing import World, in_turn


class Declined(TaskError): ...  # noqa: N818


class Stolen(Declined): ...


@task(retry=Retry(max_attempts=4, not_on=(Declined,)))
def charge(order: str) -> str:
    return order


@workflow
def pay(order: str) -> str:
    return charge(order)


def test_an_error_of_not_on_ends_the_retries_of_all_others() -> None:
    run = World({charge: in_turn(OSError("down"), Stolen("card 7"), "p1")}).run(pay, "o1")

    assert (run.status, run.error) == ("FAILED", "Stolen")
    assert [call.attempt for call in run.calls_of(charge)] == [1, 2]


def test_other_errors_are_retried() -> None:
    assert World({charge: in_turn(OSError("down"), "p1")}).run(pay, "o1").output == "p1"


def test_the_definition_names_the_errors_and_their_subclasses_first() -> None:
    retriers = compile_workflow(pay).asl["States"]["charge"]["Retry"]

    assert retriers[0] == {"ErrorEquals": ["Declined", "Stolen"], "MaxAttempts": 0}
    assert retriers[1]["ErrorEquals"] == ["States.ALL"]


def test_a_rule_that_never_retries_is_refused() -> None:
    with pytest.raises(WorkflowError, match="HF061"):
        Retry(not_on=(Exception,))
