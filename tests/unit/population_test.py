"""An operator's questions to a population of orders and loans: right answers, within counted reads.

Forty in a hundred executions wait for people, some of them by a row of a later wait; three in a
hundred have failed, with three errors; one in a hundred is tried again. Each belongs to one of 500
customers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import resources
from holdfast.core.state import Attribute
from holdfast.core.subjects import Subject, WaitKind
from holdfast.runtime.commands.counts import GROUPS
from holdfast.runtime.effects import Item, Put
from holdfast.runtime.listing import ListEntry, attributes_of, waits_partition
from holdfast.runtime.search_rows import encoded, text_of
from holdfast.runtime.storage import keys
from holdfast_simulator.world import START_MS
from tests.builders import Shop, chain

DAY_MS = 86_400_000
CUSTOMERS = 500
ERRORS = ("Declined", "OutOfStock", "Fraud")
POPULATION = pytest.mark.parametrize(
    "size", [2_000, pytest.param(20_000, marks=pytest.mark.slow)], ids=str
)


def entry_of(number: int) -> ListEntry:
    """Return one execution; it started up to ten days ago."""
    started_ms = START_MS - number * 10 * DAY_MS // 20_000
    common: dict[str, Any] = {
        "run": f"{number:026d}",
        "started_ms": started_ms,
        "definition": "0" * 12,
    }
    common |= {"name": f"o{number}", "workflow": ("order", "loan")[number % 2]}
    match number % 100:
        case 0 | 1 | 2:
            ended: dict[str, Any] = {
                "status": "FAILED",
                "stopped_ms": started_ms,
                "error": ERRORS[number % 3],
            }
            return ListEntry(**common, **ended)
        case 3:
            retry = Subject(started_ms, WaitKind.RETRY, "charge", ERRORS[number // 100 % 3])
            return ListEntry(**common, status="RUNNING", waits=(retry,))
        case part if part < 44:
            role = ("credit_manager", "clerk")[part % 2]
            asked = Subject(started_ms, WaitKind.ASK, f"role:{role}")
            return ListEntry(**common, status="RUNNING", waits=(asked,))
        case _:
            return ListEntry(**common, status="SUCCEEDED", stopped_ms=started_ms)


def filled(size: int) -> Shop:
    shop = Shop(chain(1))
    for number in range(size):
        entry = entry_of(number)
        attributes: Item = attributes_of("default", entry)
        if number % 4 == 0 and entry.waits:
            # It waited for a payment at first: its entry says so, and its row what came later.
            key = {"pk": waits_partition("default", entry.workflow, entry.run), "sk": entry.key}
            row = {**attributes, **key, "seq": 7, resources.LIST_STATUS: "RUNNING"}
            shop.world.services.perform(Put("mail", row))
            attributes = attributes_of("default", _paid_later(entry))
        record = {"pk": f"default#{entry.run}", "sk": 0, "st": entry.status, **attributes}
        shop.world.services.perform(Put("executions", record))
        shop.world.services.perform(Put("mail", _value_row(number, entry)))
    shop.definition.source_map["search"] = {"customer": "str"}
    return shop


def customer_of(number: int) -> str:
    return f"C-{number % CUSTOMERS}"


def _value_row(number: int, entry: ListEntry) -> Item:
    attribute = Attribute("str", customer_of(number))
    return {
        "pk": keys.search_values("default", "customer", entry.run),
        "sk": f"{encoded(*attribute)}#{entry.key}",
        "wf": entry.workflow,
        "seq": 0,
        "values": text_of({"customer": attribute}),
    }


def _paid_later(entry: ListEntry) -> ListEntry:
    return replace(entry, waits=(Subject(entry.started_ms, WaitKind.EVENT, "paid"),))


def answer(shop: Shop, request: Mapping[str, Any]) -> tuple[list[Any], int]:
    """Return all rows, as `holdfast list` does with further pages, and the number of pages."""
    rows: list[Any] = []
    pages, after = 0, None
    while True:
        wanted = dict(request) if after is None else {**request, "after": after}
        page = shop.world.call(shop.front.executions("default", wanted))
        rows += page["executions"]
        pages, after = pages + 1, page.get("next")
        if after is None:
            return rows, pages


def wanted_names(size: int, test: Any) -> list[str]:
    return [f"o{number}" for number in range(size) if test(entry_of(number))]


def pages_for(found: int, size: int) -> int:
    """A page has a hundred rows, and passes over at most 2,000 entries of each partition."""
    return found // 100 + size // 4_000 + 2


@POPULATION
def test_the_questions_of_an_operator_are_answered_right_and_within_the_stated_pages(
    size: int,
) -> None:
    shop = filled(size)
    day_ago, two_days_ago = START_MS - DAY_MS, START_MS - 2 * DAY_MS
    failed = {"error": "Declined", "ended_since": _iso(day_ago)}
    late = {"waiting_for": "ask:role:credit_manager", "waiting_since": _iso(two_days_ago)}

    rows, pages = answer(shop, failed)
    expected = wanted_names(
        size, lambda one: one.error == "Declined" and (one.stopped_ms or 0) >= day_ago
    )
    assert [row["name"] for row in rows] == expected
    assert pages <= pages_for(len(rows), size)

    rows, pages = answer(shop, late)
    expected = wanted_names(
        size,
        lambda one: any(
            wait.target == "role:credit_manager" and wait.since_ms <= two_days_ago
            for wait in one.waits
        ),
    )
    assert [row["name"] for row in rows] == expected
    assert pages <= pages_for(len(rows), size)

    rows, pages = answer(shop, {"waiting_for": "retry"})
    errors = Counter(row["waits"][0]["error"] for row in rows)
    retried = [entry_of(number).waits[0] for number in range(3, size, 100)]
    assert errors == Counter(wait.error for wait in retried)
    assert pages <= pages_for(len(rows), size)

    rows, pages = answer(shop, {"where": ["customer=C-17"]})
    assert [row["name"] for row in rows] == [f"o{number}" for number in range(17, size, CUSTOMERS)]
    assert pages == 1

    rows, _ = answer(shop, {"waiting_for": "event:paid"})
    assert rows == []  # each of them waits for something else now


@POPULATION
def test_the_counts_and_the_longest_wait_are_right_and_within_the_stated_reads(size: int) -> None:
    shop = filled(size)
    before = shop.world.services.usage.read_units
    counted, oldest, parts = Counter[tuple[str, ...]](), list[Any](), 0
    request: dict[str, Any] = {"by": ",".join(GROUPS)}
    while True:
        part = shop.world.call(shop.front.counts("default", request))
        for row in part["counts"]:
            counted[tuple(row[group] for group in GROUPS)] += row["count"]
        oldest += [part["oldest"]] if "oldest" in part else []
        parts += 1
        if "next" not in part:
            break
        request["after"] = part["next"]

    entries = [entry_of(number) for number in range(size)]
    assert counted == Counter((one.workflow, one.status, _wait(one)) for one in entries)
    longest = min(oldest, key=lambda one: one["since"])
    assert longest["name"] == next(one.name for one in reversed(entries) if one.waits)
    assert parts <= size // 4_000 + 2
    # Half a unit for 4 KB of entries, and for each query that finds none.
    assert shop.world.services.usage.read_units - before <= size / 20 + parts * 12


def _wait(entry: ListEntry) -> str:
    return "".join(f"{wait.kind.value}:{wait.target}" for wait in entry.waits)


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()
