"""The ids of executions: conversion to UUIDs and back, and the parents in ids of children."""

from __future__ import annotations

import pytest

from holdfast.core.run_ids import (
    child_depth,
    child_name,
    child_run,
    map_run_uuid,
    parent_run,
    run_of_map_run,
    run_of_uuid,
    uuid_of,
)

RUN = "01mcc5rm000c9j6ct3adhq765m"
LAST_ENTRY = 2**20 - 1


def test_a_run_is_read_back_from_its_uuid() -> None:
    assert uuid_of(RUN) == "01a3185c-5000-0313-2333-4353637398b4"
    assert run_of_uuid(uuid_of(RUN)) == RUN


@pytest.mark.parametrize("entry", [0, 3, LAST_ENTRY])
def test_a_map_run_is_read_back_from_its_uuid(entry: int) -> None:
    assert run_of_map_run(map_run_uuid(RUN, entry)) == (RUN[:-4], entry)


@pytest.mark.parametrize(("run", "entry"), [(RUN, LAST_ENTRY + 1), (f"{RUN}.0.1", 3)])
def test_a_map_run_that_no_uuid_can_hold_has_one_of_its_own(run: str, entry: int) -> None:
    found = map_run_uuid(run, entry)
    assert found == map_run_uuid(run, entry) != map_run_uuid(run, entry + 1)
    assert run_of_map_run(found) != (run[:-4], entry)


def test_an_entry_too_large_is_not_the_first_of_the_next_run() -> None:
    following = RUN.replace("q765m", "r765m")
    assert map_run_uuid(RUN, LAST_ENTRY + 1) != map_run_uuid(following, 0)


@pytest.mark.parametrize("text", ["", RUN, uuid_of(RUN) + "0", uuid_of(RUN).upper()])
def test_a_text_that_is_no_uuid_is_no_run(text: str) -> None:
    assert run_of_uuid(text) is None
    assert run_of_map_run(text) is None


def test_a_child_names_those_around_it() -> None:
    child = child_run(RUN, 7, 2)
    grandchild = child_run(child, 0, 1)

    assert (parent_run(grandchild), parent_run(child), parent_run(RUN)) == (child, RUN, None)
    assert [child_depth(run) for run in (RUN, child, grandchild)] == [0, 1, 2]
    assert child_name(grandchild) == f"{RUN}-7-2-0-1"
