"""The list with 2,100 executions of eleven workflows: eight queries a page, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from holdfast.core.state import STATUSES
from holdfast.errors import RequestError
from holdfast.runtime.effects import Item, Put, Together
from holdfast.runtime.listing import SHARDS, ListEntry, attributes_of
from holdfast_simulator.invariants import check
from holdfast_simulator.world import START_MS
from tests.builders import Shop, chain, machine, wait_for
from tests.unit.stack_kit import Stack

EXECUTIONS = 2_100
MACHINE = "stateMachine:billing"
WORKFLOWS = (*(f"flow-{number}" for number in range(10)), MACHINE)


def filled() -> Shop:
    """Return a stack with the last records of 2,100 executions; several start in one
    millisecond.
    """
    shop = Shop(chain(1))
    for number in range(EXECUTIONS):
        store(shop, entry_of(number))
    return shop


@cache
def read_only() -> Shop:
    """Return such a stack for tests that store nothing."""
    return filled()


def store(shop: Shop | Stack, entry: ListEntry) -> None:
    keys: Item = {"pk": f"default#{entry.run}", "sk": 0, "st": entry.status}
    record: Item = {**keys, **attributes_of("default", entry)}
    shop.world.services.perform(Put("executions", record))


@cache
def entry_of(number: int) -> ListEntry:
    started_ms = START_MS - EXECUTIONS + number // 3
    status = STATUSES[number % len(STATUSES)]
    return ListEntry(
        run=f"{number:026d}",
        started_ms=started_ms,
        name=f"order-{number}",
        workflow=WORKFLOWS[number % len(WORKFLOWS)],
        status=status,
        definition="0" * 12,
        stopped_ms=None if status == "RUNNING" else started_ms,
        machine_name=f"order-{number}" if WORKFLOWS[number % len(WORKFLOWS)] == MACHINE else None,
    )


def pages(shop: Shop, request: Mapping[str, Any]) -> list[tuple[list[str], int]]:
    """Return the executions of each page down to the oldest, and how many queries the page took."""
    found: list[tuple[list[str], int]] = []
    after: str | None = None
    while True:
        wanted = dict(request) if after is None else {**request, "after": after}
        answer, queries = performed(shop, shop.front.executions("default", wanted))
        found.append(([row["execution"] for row in answer["executions"]], queries))
        after = answer.get("next")
        if after is None:
            return found


def performed(shop: Shop, handler: Any) -> tuple[Any, int]:
    """Return the handler's result, and the number of its list queries."""
    queries, result = 0, None
    while True:
        try:
            effect = handler.send(result)
        except StopIteration as stop:
            return stop.value, queries
        queries += len(effect.queries) if isinstance(effect, Together) else 0
        result = shop.world.services.perform(effect)


def newest_first(*numbers: int) -> list[str]:
    entries = sorted((entry_of(number) for number in numbers), key=lambda one: one.key)
    return [entry.run for entry in reversed(entries)]


def test_a_page_of_every_workflow_takes_eight_queries_and_has_the_newest_hundred() -> None:
    rows, queries = pages(read_only(), {})[0]

    assert queries == 8
    assert rows == newest_first(*range(EXECUTIONS))[:100]


def test_the_pages_reach_the_oldest_and_show_every_execution_once() -> None:
    found = pages(read_only(), {})

    assert [row for rows, _ in found for row in rows] == newest_first(*range(EXECUTIONS))
    assert max(queries for _, queries in found) == 8
    assert len(found) <= 22


@pytest.mark.parametrize("limit", [1, 7, 99])
def test_no_size_of_a_page_skips_or_repeats_an_execution(limit: int) -> None:
    wanted = [number for number in range(EXECUTIONS) if entry_of(number).workflow == "flow-3"]
    found = pages(read_only(), {"workflow": "flow-3", "limit": limit})

    assert [row for rows, _ in found for row in rows] == newest_first(*wanted)
    assert all(len(rows) <= limit for rows, _ in found)


@pytest.mark.parametrize("workflow", [None, "flow-7", MACHINE])
@pytest.mark.parametrize("status", STATUSES)
def test_filters_give_every_execution_that_fits_and_no_other(
    workflow: str | None, status: str
) -> None:
    request = {"status": status} if workflow is None else {"status": status, "workflow": workflow}
    entries = [(number, entry_of(number)) for number in range(EXECUTIONS)]
    wanted = [
        number
        for number, entry in entries
        if entry.status == status and workflow in {None, entry.workflow}
    ]
    found = pages(read_only(), request)

    assert [row for rows, _ in found for row in rows] == newest_first(*wanted)
    assert max(queries for _, queries in found) <= 4


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()


SOME_MS = START_MS - EXECUTIONS + 300
LATER_MS = START_MS - EXECUTIONS + 400


@pytest.mark.parametrize(
    ("request_", "fits", "queries_max"),
    [
        ({"error": "Declined"}, lambda one: one.error == "Declined", 2),
        ({"error": "Declined", "status": "FAILED"}, lambda one: one.error == "Declined", 2),
        ({"error": "Decl"}, lambda _: False, 2),
        ({"name": "order-17"}, lambda one: one.name == "order-17", 8),
        ({"name": "order-17*"}, lambda one: one.name.startswith("order-17"), 8),
        ({"paused": "true"}, lambda one: one.paused_ms is not None, 4),
        ({"since": _iso(SOME_MS)}, lambda one: one.started_ms >= SOME_MS, 8),
        ({"until": _iso(SOME_MS)}, lambda one: one.started_ms < SOME_MS, 8),
        (
            {"since": _iso(SOME_MS), "until": _iso(LATER_MS), "error": "Declined"},
            lambda one: one.error == "Declined" and SOME_MS <= one.started_ms < LATER_MS,
            2,
        ),
        (
            {"ended_since": _iso(LATER_MS)},
            lambda one: one.stopped_ms is not None and one.stopped_ms >= LATER_MS,
            8,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_a_search_gives_every_execution_that_fits_in_bounded_queries(
    request_: dict[str, str], fits: Callable[[ListEntry], bool], queries_max: int
) -> None:
    shop, wanted = Shop(chain(1)), []
    for number in range(EXECUTIONS):
        entry = entry_of(number)
        if entry.status == "FAILED":
            entry = replace(entry, error="Declined" if number % 3 else "Unreachable")
        if entry.status == "RUNNING" and number % 7 == 0:
            entry = replace(entry, paused_ms=START_MS, paused_reason="outage")
        store(shop, entry)
        if fits(entry):
            wanted.append(number)
    found = pages(shop, request_)

    assert [row for rows, _ in found for row in rows] == newest_first(*wanted)
    # A page that is not full after few entries takes a second round.
    assert max(queries for _, queries in found) <= 2 * queries_max


def test_a_search_back_to_a_time_does_not_read_older_pages() -> None:
    found = pages(read_only(), {"since": _iso(START_MS - EXECUTIONS + EXECUTIONS // 3 - 50)})
    assert sum(len(rows) for rows, _ in found) == 150
    assert len(found) == 2


def test_an_execution_that_ends_between_two_pages_is_neither_lost_nor_shown_twice() -> None:
    shop = filled()
    first, _ = performed(shop, shop.front.executions("default", {}))
    unseen = [
        number
        for number in range(EXECUTIONS)
        if entry_of(number).status == "RUNNING" and entry_of(number).key < first["next"]
    ]
    for number in unseen[::2]:  # each moves to another partition, under the same sort key
        entry = entry_of(number)
        ended = replace(entry, status="SUCCEEDED", stopped_ms=entry.started_ms)
        store(shop, ended)

    rest = pages(shop, {"after": first["next"]})
    shown = [row["execution"] for row in first["executions"]]
    assert [*shown, *(row for rows, _ in rest for row in rows)] == newest_first(*range(EXECUTIONS))


def test_the_shards_share_the_executions_evenly() -> None:
    for shards in SHARDS.values():
        counts = [0] * shards.count(0)
        for number in range(EXECUTIONS):
            counts[shards.of(entry_of(number).run)] += 1
        assert max(counts) < 1.1 * EXECUTIONS / len(counts)


def test_an_entry_comes_back_from_the_index_as_it_was_listed() -> None:
    shop = read_only()
    answer, _ = performed(shop, shop.front.executions("default", {"limit": 1}))
    (row,) = answer["executions"]
    last = entry_of(EXECUTIONS - 1)

    assert (row["execution"], row["name"], row["workflow"], row["status"]) == (
        last.run,
        last.name,
        last.workflow,
        last.status,
    )


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"after": "1"}, "HF209"),
        ({"after": "001800000000000#run\n"}, "HF209"),
        ({"limit": "0"}, "HF204"),
        ({"limit": "101"}, "HF204"),
        ({"limit": "ten"}, "HF204"),
        ({"status": "DONE"}, "HF204"),
        ({"error": ""}, "HF204"),
        ({"error": "Declined", "status": "SUCCEEDED"}, "HF204"),
        ({"paused": "yes"}, "HF204"),
        ({"paused": "true", "status": "FAILED"}, "HF204"),
        ({"since": "yesterday"}, "HF204"),
        ({"since": "2027-01-15T08:00:00"}, "HF204"),
        ({"ended_since": "2027-01-15T08:00:00Z", "status": "RUNNING"}, "HF204"),
    ],
)
def test_an_invalid_filter_is_refused_with_the_expected_form(
    request_: Mapping[str, Any], code: str
) -> None:
    shop = Shop(chain(1))
    with pytest.raises(RequestError) as refused:
        performed(shop, shop.front.executions("default", request_))

    assert (refused.value.code, refused.value.status) == (code, 400)


def test_the_step_functions_api_pages_through_the_executions_of_one_machine() -> None:
    stack = Stack(json.dumps(machine({"it": {"Type": "Pass", "End": True}})), lambda _: None)  # type: ignore[arg-type,return-value]
    arn = stack.call("ListStateMachines")["stateMachines"][0]["stateMachineArn"]
    wanted: list[str] = []
    for number in range(EXECUTIONS):
        entry = entry_of(number)
        if entry.workflow == MACHINE:
            entry = replace(entry, workflow="stateMachine:m")
            wanted.append(entry.name)
        store(stack, entry)

    found: list[str] = []
    before = stack.world.services.effects["Together"]
    more: dict[str, str] = {}
    pages = 0
    while True:
        page = stack.call("ListExecutions", stateMachineArn=arn, maxResults=50, **more)
        found += [row["name"] for row in page["executions"]]
        pages += 1
        if "nextToken" not in page:
            break
        more = {"nextToken": page["nextToken"]}
    assert sorted(found) == sorted(wanted)
    assert stack.world.services.effects["Together"] - before == pages
    assert pages <= 5


def test_an_entry_that_outlives_its_execution_is_a_violation() -> None:
    shop = Shop(machine({"wait": wait_for("paid")}))
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 60_000)
    (opening,) = [item for item in shop.world.services.items("executions") if "lp" in item]
    shop.stop(run)
    shop.world.run()
    assert check(shop.world) == []

    place = {"lp": opening["lp"], "ls": opening["ls"]}
    records = {item["sk"]: item for item in shop.world.services.items("executions")}
    shop.world.services.perform(Put("executions", {**records[opening["sk"]], **place}))
    (violation,) = check(shop.world)
    assert "still listed as RUNNING" in violation
