"""Definitions by hash: the tenant's own definition decides on the type of a payload."""

from __future__ import annotations

from typing import Any, Final

import pytest

from holdfast.asl.parsing.parse import definition_hash, read_program
from holdfast.asl.program import Program
from holdfast.asl.validation import extensions as shapes_of
from holdfast.errors import NewerFormatError
from holdfast.runtime.driver import run
from holdfast.runtime.storage import definitions
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.formats import ITEMS
from holdfast_simulator.services import Services
from tests.builders import machine, wait_for

ASL = machine({"card": wait_for("card")})
HASH = definition_hash(ASL)
PLAIN = {"events": {"card": "shop:Card"}}
SECRET = {"events": {"card": "shop:SealedCard"}, "secrets": ["event card"]}


class Table:
    """One table, and processes that come one after another."""

    def __init__(self) -> None:
        self._services = Services(lambda: 0)

    def store(self, tenant: str, source_map: dict[str, Any]) -> None:
        definition = Definition(ASL, source_map, HASH)
        run(Programs().store(tenant, definition), self._services.perform)

    def fetch(self, tenant: str, programs: Programs | None = None) -> dict[str, Any]:
        found = run((programs or Programs()).fetch(tenant, HASH), self._services.perform)
        source_map: dict[str, Any] = found.source_map
        return source_map


def test_a_value_that_becomes_a_secret_with_the_same_steps_is_one_from_then_on() -> None:
    table = Table()
    table.store("a", PLAIN)
    table.store("a", SECRET)
    assert table.fetch("a") == SECRET
    table.store("a", PLAIN)
    assert table.fetch("a") == {**PLAIN, "secrets": ["event card"]}


def test_a_state_machine_with_the_same_steps_leaves_the_types_of_the_workflow() -> None:
    table = Table()
    table.store("a", SECRET)
    table.store("a", {})
    assert table.fetch("a") == SECRET


def test_no_tenant_decides_on_the_payloads_of_another() -> None:
    table, programs = Table(), Programs()
    table.store("a", SECRET)
    table.store("b", {})
    assert table.fetch("b", programs) == {}
    assert table.fetch("a", programs) == SECRET


def test_it_is_known_when_its_program_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a worker share it: another one asks as soon as it is known."""
    table, programs = Table(), Programs()
    table.store("a", PLAIN)
    known: list[bool] = []

    def read(asl: Any) -> Program:
        known.append(programs.is_known("a", HASH))
        return read_program(asl)

    monkeypatch.setattr(definitions, "read_program", read)
    table.fetch("a", programs)
    assert known == [False]
    assert programs.program(HASH)


def test_a_definition_that_one_tenant_uses_is_known_for_it_alone() -> None:
    table, programs = Table(), Programs()
    table.store("a", {})
    table.fetch("a", programs)
    assert programs.is_known("a", HASH)
    assert not programs.is_known("b", HASH)


def test_code_that_would_ignore_a_field_leaves_the_execution_to_newer_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = {**wait_for("card"), "Arguments": {"name": "card", "key": "k", "kept": False}}
    asl = machine({"card": waits})
    newer = Definition(asl, PLAIN, definition_hash(asl))
    assert definitions.item_of("a", Definition(ASL, PLAIN, HASH))["f"] == 1
    services = Services(lambda: 0)
    run(Programs().store("a", newer), services.perform)
    assert run(Programs().fetch("a", newer.hash), services.perform) == newer
    monkeypatch.setattr(definitions, "_FORMATS", ITEMS)
    with pytest.raises(NewerFormatError):
        run(Programs().fetch("a", newer.hash), services.perform)


#: Code of the first stacks knows these, or refuses their resource.
KNOWN_SINCE_1: Final = {"Undo", "Shielded", "Deadlines", "Needed", "Tolerated", "After", "Poll"}


def test_each_field_of_the_extension_is_known_to_all_code_or_gives_format_2() -> None:
    shapes = [shapes_of.MACHINE, shapes_of.MAP, shapes_of.PARALLEL, shapes_of.PASS]
    shapes += [shapes_of.TASK, shapes_of.RETRIER]
    fields = {name for shape in shapes for name in shape.fields} | {"Cuts"}
    newer = {field.split('"')[1] for field in definitions.FIELDS_OF_2} - {"kept"}
    assert fields == newer | KNOWN_SINCE_1
    assert newer.isdisjoint(KNOWN_SINCE_1)


@pytest.mark.parametrize("field", ["Publish", "Note"])
def test_a_pass_with_a_field_that_older_code_ignores_gives_format_2(field: str) -> None:
    says = {"Type": "Pass", "Holdfast": {field: {"stage": None}}}
    asl = machine({"say": says})
    assert definitions.item_of("a", Definition(asl, {}, definition_hash(asl)))["f"] == 2
