"""The proofs of `holdfast check`, for the workflows of modules and for definitions in files."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.api.registry import Registry
from holdfast.asl.json_text import positions
from holdfast.compiler.compile import CompiledWorkflow
from holdfast.local.source_maps import find_source_map, machine_name
from holdfast.proofs import report
from holdfast.proofs.capacity import Capacity, capacity_of
from holdfast.proofs.findings import Placed, SourceLocation
from holdfast.proofs.graph import levels_of
from holdfast.proofs.report import Proofs, prove
from holdfast.proofs.tasks import facts_of_tasks


@dataclass(frozen=True, slots=True)
class ProvenMachine:
    """A state machine, the proofs about it, and the places of its states in the source."""

    proofs: Proofs
    locate: report.Locate

    @property
    def findings(self) -> list[Placed]:
        return report.placed(self.proofs, self.locate)

    @property
    def severities(self) -> frozenset[str]:
        return frozenset(found.severity for found in self.proofs.findings)

    def render(self) -> str:
        """Return the text of the report, then each finding with its line of source."""
        parts = [report.render(self.proofs, self.locate)]
        return "\n\n".join([*parts, *(found.render() for found in self.findings)])

    def to_json(self) -> list[dict[str, Any]]:
        proved = {"severity": "PROVED", **report.to_json(self.proofs)}
        return [found.to_json() for found in self.findings] + [proved]


def subjects_of_modules(
    names: Iterable[str], compiled: Iterable[CompiledWorkflow]
) -> list[ProvenMachine]:
    """Return the state machines to which the modules were compiled."""
    registry = Registry.from_modules(names)
    usual = facts_of_tasks(registry.tasks)
    machines = []
    for found in compiled:
        facts = usual
        if registry.namesakes:
            module = found.function.partition(":")[0]
            facts = facts_of_tasks(registry.tasks_of(module, found.task_modules))
        own_event = None if found.keyed is None else found.keyed.starts_on
        is_keyed = found.keyed is not None
        proofs = prove(found.name, found.asl, facts, own_event, is_keyed=is_keyed, is_python=True)
        machines.append(ProvenMachine(proofs, _by_sources(found.sources)))
    return machines


def capacities_of_modules(
    names: Iterable[str], compiled: Iterable[CompiledWorkflow], load: Load
) -> list[Capacity]:
    """Return for each compiled workflow which limit is reached first at that load."""
    of_task, _ = Registry.from_modules(names).limits()
    return [
        capacity_of(
            found.name,
            levels_of(found.asl),
            of_task,
            starts_per_second=load.starts_per_second,
            seconds=load.seconds,
            workers=load.workers,
        )
        for found in compiled
    ]


@dataclass(frozen=True, slots=True)
class Load:
    """The load for `capacity`. `seconds` is how long an attempt of each task runs, `workers` how
    many workers run at once.
    """

    starts_per_second: float
    seconds: Mapping[str, float]
    workers: int


def subject_of_file(path: Path) -> ProvenMachine:
    """Return the state machine of a validated definition. Nothing is known about its tasks."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    proofs = prove(machine_name(path), document, {})
    return ProvenMachine(proofs, _locate_states(path, text, document))


# -- places ----------------------------------------------------------------------------------------


def _by_sources(sources: Mapping[str, Any]) -> report.Locate:
    """Return a function from a state to its place in the workflow's source."""

    def locate(state: str, _location: str) -> SourceLocation:
        row = sources[state]
        return _place(row["file"], row["line"], row["column"], row["text"])

    return locate


def _place(file: str, line: int, column: int, text: str) -> SourceLocation:
    """Return the place with its line of source, if the file still has that line."""
    written = linecache.getline(file, line).rstrip()
    if not text or text not in written:
        written = " " * (column - 1) + text
    return _shown(file, line, column, written)


def _shown(file: str, line: int, column: int, written: str) -> SourceLocation:
    return SourceLocation(file, line, column, written, width=max(1, len(written) - column + 1))


def _locate_states(path: Path, text: str, document: Any) -> report.Locate:
    """Return a function from a state to its place: in the source if the definition has a matching
    map, else in the JSON.
    """
    found = find_source_map(path, document)
    if found is not None:
        return _by_sources(found["sources"])
    places, lines = positions(text), text.splitlines()

    def locate(_state: str, location: str) -> SourceLocation:
        while location not in places:
            location = location[: max(location.rfind("/"), location.rfind("["))] or "/"
        line, column = places[location]
        return _shown(str(path), line, column, lines[line - 1].rstrip())

    return locate
