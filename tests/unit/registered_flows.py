"""The tasks of an order, for graphs that are registered at run time."""

from __future__ import annotations

from typing import Any

from holdfast import TaskError, step_type, task, workflow


@task
def validate(order: str) -> str:
    return f"valid {order}"


@task
def reserve(validate: str) -> str:
    return f"reserved {validate}"


@task
def charge(reserve: str) -> str:
    return f"charged {reserve}"


@task
def ship(charge: str) -> str:
    return f"shipped {charge}"


@task
def notify(ship: str) -> str:
    return f"told: {ship}"


#: The next calls of `bill` that fail.
DOWN: list[str] = []


class BankDown(TaskError): ...  # noqa: N818


@task
def bill() -> str:
    if DOWN:
        raise BankDown(DOWN.pop())
    return "billed"


@step_type("rated")
@task
def rated(step: dict[str, Any], amount: int) -> int:
    return int(step["scale"]) * amount


@workflow
def of_the_code(order: str) -> str:
    return validate(order)
