"""Search attributes on every store: the rows that a worker writes, and the pages of a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.state import Attribute, Execution
from holdfast.runtime import search_rows
from holdfast.runtime.commands.api import Front
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Put
from holdfast.runtime.listing import listing
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.keys import execution
from holdfast.runtime.storage.log import Log
from holdfast_simulator.world import START_MS
from tests.builders import KEYS, AnyTypes
from tests.contract.conftest import Stack

TENANT = "default"
KINDS = {"customer": "str", "total": "int"}


def attributes_of(**values: Any) -> Mapping[str, Attribute]:
    kinds: Any = KINDS
    return {name: Attribute(kinds[name], value) for name, value in values.items()}


def state_of(number: int, **values: Any) -> Execution:
    return Execution(
        run=f"{number:026d}",
        name=f"o{number}",
        workflow="flow",
        definition="0" * 64,
        input=None,
        started_ms=START_MS + number,
        due_ms=None,
        used_events={},
        frames={},
        opened_at=0,
        attributes=attributes_of(**values),
    )


def store(stack: Stack, state: Execution, before: Execution | None = None) -> None:
    """Store the list entry of the execution, and the rows of its attributes."""
    log = Log(TENANT, state.run, "worker", "", state=state)
    entry = listing(TENANT, state, START_MS)
    record = {"pk": execution(TENANT, state.run), "sk": 0, "st": state.status, **entry}
    stack.perform(Put("executions", record))
    run(search_rows.put_new(log, before, START_MS, is_listed=before is None), stack.perform)


def found(stack: Stack, *where: str, **request: Any) -> list[str]:
    known = Definition({}, {"search": KINDS}, "0" * 64)
    front = Front(Programs(), {"flow": known}, AnyTypes(), KEYS)
    names: list[str] = []
    while True:
        wanted = {**request, "where": list(where)}
        page = run(front.executions(TENANT, wanted), stack.perform)
        names += [row["name"] for row in page["executions"]]
        if "next" not in page:
            return names
        request["after"] = page["next"]


def test_values_are_found_page_by_page_and_a_changed_one_by_its_new_value(stack: Stack) -> None:
    for number in range(9):
        store(stack, state_of(number, customer=f"C-{number % 2}", total=number * 10))
    before = state_of(5, customer="C-1", total=50)
    store(stack, state_of(5, customer="C-7", total=50)._replace(notes=1), before)

    assert found(stack, "customer=C-1", limit=2) == ["o7", "o3", "o1"]
    assert found(stack, "customer=C-7") == ["o5"]
    assert found(stack, "total>=30", limit=3) == ["o8", "o7", "o6", "o5", "o4", "o3"]
    assert found(stack, "total<70", "customer=C-0") == ["o6", "o4", "o2", "o0"]


def test_a_worker_that_was_frozen_brings_no_old_value_back(stack: Stack) -> None:
    first = state_of(1, customer="C-1", total=1)
    store(stack, first)
    changed = state_of(1, customer="C-7", total=1)._replace(notes=1)
    store(stack, changed, first)
    store(stack, state_of(1, customer="C-1", total=1)._replace(notes=2), changed)

    store(stack, first)
    store(stack, changed, first)

    assert found(stack, "customer=C-1", "total=1") == ["o1"]
    assert found(stack, "customer=C-7") == []
