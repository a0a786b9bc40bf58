"""Units and prices, by hand-counted examples."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import cost, resources
from holdfast.runtime.effects import (
    Delete,
    Get,
    Item,
    Message,
    PutIfAbsent,
    Query,
    QueryList,
    Send,
    Unlist,
)
from holdfast_simulator.services import Services

LISTED = {"lp": "default#order#SUCCEEDED#1", "ls": "000001760000000#r"}


def record(**attributes: Any) -> dict[str, Any]:
    return {"pk": "default#r", "sk": 0, **attributes}


@pytest.mark.parametrize(
    ("number", "size"),
    [
        (0, 1),
        (7, 2),
        (10, 2),
        (42, 2),
        (100, 2),
        (123, 3),
        (1_760_000_000_123, 8),
        (-7, 3),
        (-42, 3),
    ],
)
def test_a_number_takes_a_byte_for_two_significant_digits_and_one_more(
    number: int, size: int
) -> None:
    assert cost.number_bytes(number) == size


def test_an_item_is_its_names_and_its_values() -> None:
    item: Item = {"pk": "default#r", "sk": 42, "ev": b"12345", "nm": "Zoë"}
    assert cost.item_bytes(item) == (2 + 9) + (2 + 2) + (2 + 5) + (2 + 4)


@pytest.mark.parametrize(
    ("size", "units"), [(0, 1), (1, 1), (1_024, 1), (1_025, 2), (350_000, 342)]
)
def test_a_write_costs_a_unit_for_each_started_kilobyte(size: int, units: int) -> None:
    assert cost.write_units(size) == units


@pytest.mark.parametrize(("size", "units"), [(0, 1.0), (4_096, 1.0), (4_097, 2.0)])
def test_a_strong_read_costs_a_unit_for_each_started_four_kilobytes(
    size: int, units: float
) -> None:
    assert cost.read_units(size) == units
    assert cost.read_units(size, is_strong=False) == units / 2


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        (None, record(), 1),
        (None, record(ev=bytes(2_000)), 2),
        (None, record(**LISTED), 1 + 1),
        (None, record(**LISTED, ev=bytes(1_900)), 2 + 1),
        (None, record(**LISTED, er="x" * 2_000), 3 + 3),
        (record(**LISTED), record(), 1 + 1),
        (record(**LISTED), record(**LISTED, ev=b"more"), 1),
        (record(**LISTED), record(**LISTED, nm="o-1"), 1 + 1),
        (record(**LISTED), record(**{**LISTED, "lp": "elsewhere"}), 1 + 2),
        (record(ev=bytes(2_000)), record(), 2),
        (record(**LISTED), None, 1 + 1),
        (record(lp="only half of a key"), None, 1),
        (None, None, 1),
    ],
)
def test_a_write_costs_its_item_and_its_index_entries(before: Any, after: Any, units: int) -> None:
    assert cost.put_units(resources.EXECUTIONS, before, after) == units


def test_a_refused_put_costs_the_larger_of_the_two_items() -> None:
    assert cost.refused_units(record(ev=bytes(3_000)), record()) == 3
    assert cost.refused_units(record(), record(ev=bytes(3_000))) == 3


def test_the_services_in_memory_bill_their_calls() -> None:
    services = Services(lambda: 0)
    for effect in (
        PutIfAbsent("executions", record(**LISTED)),  # 2
        PutIfAbsent("executions", record(**LISTED)),  # refused: 1
        Unlist("default#r", 0),  # 2
        Unlist("default#r", 0),  # refused: 1
        Delete("mail", "a", "b"),  # 1
        Get("executions", "default#r", 0),  # 1 R
        Query("executions", "nobody"),  # 1 R
        QueryList("nothing", limit=5),  # 0.5 R
        Send(tuple(Message({"t": "default"}) for _ in range(11))),  # 2 requests
    ):
        services.perform(effect)
    services.receive("work")

    assert (services.usage.write_units, services.usage.read_units) == (7, 2.5)
    assert (services.usage.sqs_send_requests, services.usage.sqs_deliveries) == (2, 10)
    assert services.effects["PutIfAbsent"] == 2


def test_a_ten_task_chain_at_list_price_is_within_a_dollar_per_million_steps() -> None:
    # Ten log records and one index entry, one load, one message alone in its send, one invocation.
    usage = cost.Usage(
        write_units=11,
        read_units=1,
        sqs_send_requests=1,
        sqs_deliveries=1,
        lambda_requests=0.1,
        commits=10,
    )
    receipt = cost.receipt(usage)

    assert receipt.usd_per_million(10) == pytest.approx(0.774, abs=0.001)
    assert sum(line.usd for line in receipt.lines) == pytest.approx(receipt.total_usd)


def test_a_commit_is_priced_at_the_stated_time_and_memory() -> None:
    (line,) = cost.receipt(cost.Usage(commits=1_000_000)).lines

    assert (cost.COMMIT_MS, cost.COMMIT_MEMORY_MB) == (6, 256)
    assert line.what == "GB-seconds"
    assert line.count == pytest.approx(1_500)


def test_the_front_door_is_kept_apart() -> None:
    receipt = cost.receipt(cost.Usage(api_requests=1_000_000))

    assert receipt.total_usd == 0
    assert [(line.what, line.usd) for line in receipt.apart] == [("HTTP API requests", 1.0)]


def test_a_receipt_has_a_line_for_each_thing_that_was_used_and_no_other() -> None:
    receipt = cost.receipt(cost.Usage(write_units=1_000_000, s3_puts=1_000))

    assert [(line.service, line.usd) for line in receipt.lines] == [
        ("DynamoDB", 0.625),
        ("S3", pytest.approx(0.005)),
    ]


def test_no_steps_cost_nothing_each() -> None:
    assert cost.receipt(cost.Usage()).usd_per_million(0) == 0


def test_usage_since_a_moment_is_a_difference() -> None:
    usage = cost.Usage(write_units=3)
    before = usage.copy()
    usage.write_units += 4

    assert usage.minus(before) == cost.Usage(write_units=4)


def test_step_functions_bills_transitions() -> None:
    assert cost.step_functions_usd(1_000) == pytest.approx(0.025)
