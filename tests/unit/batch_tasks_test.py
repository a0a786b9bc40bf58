"""Batch tasks as authors write them: one item for the workflow, a list for the function."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Batch, Limit, TaskError, per_second, seconds, task
from holdfast.errors import WorkflowError


class BadAddressError(TaskError):
    pass


@task(batch=Batch(max=10, wait=seconds(1)))
def notify(addresses: list[str]) -> list[str | TaskError]:
    return [f"sent to {one}" if "@" in one else BadAddressError(one) for one in addresses]


def test_a_direct_call_takes_one_item_and_gives_its_result_or_raises_its_error() -> None:
    assert notify("ada@example.org") == "sent to ada@example.org"
    with pytest.raises(BadAddressError):
        notify("nowhere")


def test_a_call_with_many_items_gives_a_result_or_an_error_for_each() -> None:
    inputs: list[dict[str, Any]] = [
        {"addresses": "a@b"},
        {"addresses": "nowhere"},
        {"addresses": 7},
    ]
    sent, bad, unfit = notify.call_batch_json(inputs)
    assert sent == "sent to a@b"
    assert isinstance(bad, BadAddressError)
    assert type(unfit).__name__ == "InvalidArguments"


def test_a_function_that_returns_too_few_results_is_told_so() -> None:
    @task(batch=Batch())
    def short(items: list[int]) -> list[int | TaskError]:
        return list(items[:-1])

    with pytest.raises(TaskError, match="got 2 items and returned 1"):
        short.call_batch_json([{"items": 1}, {"items": 2}])


def _plain(items: str) -> str:
    return items


def _two(items: list[str], more: list[str]) -> list[str]:
    return items + more


@pytest.mark.parametrize("function", [_plain, _two])
def test_a_function_that_does_not_take_one_list_is_refused(function: Any) -> None:
    with pytest.raises(WorkflowError, match="HF069"):
        task(batch=Batch())(function)


def test_a_batch_that_cannot_be_and_limits_that_it_cannot_keep_are_refused() -> None:
    for wrong in ({"max": 0}, {"max": 1_001}, {"wait": seconds(901)}):
        with pytest.raises(WorkflowError, match="HF069"):
            Batch(**wrong)
    make: Any = task
    bank = Limit("bank", rate=per_second(1))
    for limit in (Limit("ledger", concurrency=1), bank.by("items")):
        with pytest.raises(WorkflowError, match="HF069"):
            make(batch=Batch(), limits=[limit])(notify.batch_function)
    assert make(batch=Batch(), limits=[bank])(notify.batch_function).limits == (bank,)
