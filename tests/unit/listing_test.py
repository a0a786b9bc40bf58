"""Pages of the list: each execution once, the newest first, whatever partition it is in."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.state import STATUSES
from holdfast.limits import ENDED_RETENTION_SECONDS
from holdfast.runtime import listing
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Effect, Put, QueryList, Together
from holdfast.runtime.listing import (
    NEWEST,
    ListEntry,
    Page,
    PageFilter,
    attributes_of,
    cut_page,
    partitions_of,
    read_entry,
    read_page,
    without_stale,
)
from holdfast.runtime.storage.spread import Spread
from holdfast_simulator.services import Services

NOW_MS = 1_760_000_000_000
WORKFLOWS = tuple(f"flow-{number}" for number in range(11))


def entry(number: int, status: str = "SUCCEEDED", **changes: Any) -> ListEntry:
    fields: dict[str, Any] = {
        "run": f"{number:026d}",
        "started_ms": NOW_MS - number,
        "name": f"order-{number}",
        "workflow": WORKFLOWS[number % len(WORKFLOWS)],
        "status": status,
        "definition": "0123456789ab",
        "stopped_ms": None if status == "RUNNING" else NOW_MS,
    }
    return ListEntry(**{**fields, **changes})


class Listed:
    """A list with some entries; `queries` counts the queries of each page, `read_most` the entries
    that they may read.
    """

    def __init__(self, entries: list[ListEntry]) -> None:
        self.services = Services(lambda: NOW_MS)
        self.queries = self.read_most = 0
        for one in entries:
            item: dict[str, Any] = {"pk": f"default#{one.run}", "sk": 0, "st": one.status}
            item |= attributes_of("default", one)
            self.services.perform(Put("executions", item))

    def page(self, **wanted: Any) -> Page:
        page = PageFilter(**{"limit": 100, **wanted})
        return self._run(read_page("default", Spread(), page, NOW_MS))

    def pages(self, **wanted: Any) -> list[Page]:
        found = [self.page(**wanted)]
        while found[-1].after is not None:
            found.append(self.page(**{**wanted, "before": found[-1].after}))
        return found

    def _run(self, handler: Generator[Effect, Any, Page]) -> Page:
        page: Page = run(handler, self._perform)
        return page

    def _perform(self, effect: Effect) -> Any:
        assert isinstance(effect, Together)
        self.queries += len(effect.queries)
        self.read_most += sum(one.reads if one.where else one.limit for one in effect.queries)
        return self.services.perform(effect)


def test_an_entry_is_read_as_it_was_written() -> None:
    plain = entry(1, "RUNNING")
    machine = entry(2, "FAILED", error="Broken", machine_name="m", version="3", alias="live")
    for one in (plain, machine, entry(3, redrives=2)):
        assert read_entry({"st": one.status, **attributes_of("default", one)}) == one


def test_one_page_of_all_workflows_takes_eight_queries() -> None:
    assert len(partitions_of("default", Spread())) == 8
    listed = Listed([entry(number) for number in range(300)])
    assert len(listed.page().entries) == 100
    assert listed.queries == 8


def test_the_cursor_reaches_the_oldest_of_2100_and_shows_each_execution_once() -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    entries = [entry(number, chance.choice(STATUSES)) for number in range(2_100)]
    pages = Listed(entries).pages()
    shown = [one for page in pages for one in page.entries]
    assert shown == sorted(entries, key=lambda one: one.key, reverse=True)
    assert len(pages) == 21


@pytest.mark.parametrize("limit", [1, 7, 100])
@pytest.mark.parametrize("status", [None, *STATUSES])
def test_filters_show_all_that_fits_and_nothing_else(limit: int, status: str | None) -> None:
    entries = [entry(number, STATUSES[number % len(STATUSES)]) for number in range(220)]
    wanted: dict[str, Any] = {"workflow": "flow-3", "limit": limit}
    if status is not None:
        wanted["statuses"] = (status,)
    shown = [one for page in Listed(entries).pages(**wanted) for one in page.entries]
    fitting = [one for one in entries if one.workflow == "flow-3" and status in {None, one.status}]
    assert shown == fitting


def test_a_filter_reads_a_bounded_part_and_returns_the_next_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LIST_READ_FEW", "LIST_READ_MAX"):
        monkeypatch.setattr(listing, name, 5)
    entries = [entry(number, workflow="common") for number in range(200)]
    entries.append(entry(200, workflow="rare"))
    pages = Listed(entries).pages(workflow="rare")
    assert len(pages) > 10
    assert [one.name for page in pages for one in page.entries] == ["order-200"]


def test_a_filter_that_most_entries_match_reads_no_more_than_the_page_needs() -> None:
    listed = Listed([entry(number, workflow="common") for number in range(500)])
    assert len(listed.page(workflow="common").entries) == 100
    assert listed.read_most <= 8 * 200


def test_the_items_of_a_map_run_are_listed_under_it_alone() -> None:
    child = entry(1, workflow="mapRun:m/a:b")
    listed = Listed([child, entry(2)])
    assert [one.name for one in listed.page().entries] == ["order-2"]
    assert [one.name for one in listed.page(workflow="mapRun:m/a:b").entries] == ["order-1"]


def test_an_end_hides_the_entry_that_its_opening_has_left() -> None:
    ended, opened = replace(entry(1), record=9), replace(entry(1, "RUNNING"), record=4)
    assert without_stale([opened, ended]) == without_stale([ended, opened]) == [ended]
    assert Listed([entry(1)]).page().entries == [ended]


def test_a_redriven_execution_hides_the_entry_of_its_earlier_end() -> None:
    ended, opened = replace(entry(1, "FAILED"), record=9), replace(entry(1, "RUNNING"), record=12)
    assert without_stale([opened, ended]) == without_stale([ended, opened]) == [opened]


def test_an_end_that_may_have_lost_its_log_is_not_shown() -> None:
    old = entry(1, stopped_ms=NOW_MS - ENDED_RETENTION_SECONDS * 1_000)
    young = entry(2, stopped_ms=NOW_MS - ENDED_RETENTION_SECONDS * 1_000 + 1)
    assert Listed([old, young]).page().entries == [young]


def test_a_page_ends_where_the_shortest_source_ends() -> None:
    entries = [entry(number) for number in (1, 2, 3)]
    assert cut_page(entries, entries[1].key, 10) == Page(entries[:2], entries[1].key)
    assert cut_page(entries, "", 10) == Page(entries, None)
    assert cut_page(entries, "", 2) == Page(entries[:2], entries[1].key)


def test_queries_of_a_page_begin_below_the_key_that_the_last_one_ended_with() -> None:
    handler = read_page("default", Spread(), PageFilter(3, before="5"), NOW_MS)
    effect = next(handler)
    assert isinstance(effect, Together)
    assert {query.before for query in effect.queries} == {"5"}
    assert all(isinstance(query, QueryList) for query in effect.queries)
    assert NEWEST > "9" * 15
