"""Workflows that read the id of their own execution."""

from __future__ import annotations

from datetime import datetime

from holdfast import (
    again,
    each,
    execution_id,
    execution_name,
    execution_started,
    parallel,
    publish,
    sleep,
    stop,
    task,
    workflow,
)
from holdfast.api.surface import seconds


@task
def register(reply_to: str) -> str:
    return reply_to


def address() -> str:
    return f"https://example.com/{execution_id()}"


@workflow
def child(number: int) -> list[str]:
    inside = parallel(lambda: f"{execution_id()}", lambda: f"{number}")
    return [execution_id(), inside[0]]


@workflow
def parent(numbers: list[int]) -> dict[str, list[str]]:
    publish("id", execution_id())
    first_child = child(1)
    second_child = child(2)
    in_branches = each(numbers, lambda number: child(number)[0])
    return {
        "own": [
            execution_id(),
            register(execution_id()),
            address().removeprefix("https://example.com/"),
        ],
        "branches": each(numbers, lambda number: register(execution_id())),
        "children": [first_child[0], second_child[0], *in_branches],
        "in children": [first_child[1], second_child[1]],
    }


@workflow
def renewed(earlier: str = "") -> list[str]:
    if earlier == "":
        return again(execution_id())
    return [earlier, execution_id()]


@workflow
def stops_itself() -> None:
    stop(execution_id())
    sleep(seconds(60))


@workflow
def named_child() -> str:
    return f"{execution_name()} {execution_started()}"


@workflow
def named(
    pause: int, earlier: datetime | None = None, names: list[str] | None = None
) -> tuple[list[str], bool, str, datetime]:
    sleep(seconds(pause))
    if earlier is None or names is None:
        in_branches = each([1, 2], lambda number: execution_name())
        found = [execution_name(), *in_branches, named_child()]
        return again(pause, execution_started(), found)
    return names, earlier == execution_started(), f"{earlier}", execution_started()
