"""A condition that is met at once, always."""

from __future__ import annotations

from holdfast import minutes, task, wait_for_condition, workflow


@task
def always(order: str) -> str:
    return order


@workflow
def waits_for_nothing(order: str) -> str:
    return wait_for_condition(always, every=minutes(5))(order)  # type: ignore[arg-type]
