"""The proofs of `holdfast check`: of the workflows of modules, and of definitions in files."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.asl.json_text import positions
from holdfast.asl.parse import definition_hash
from holdfast.dsl.compile import Compiled, compile_module
from holdfast.dsl.registry import Registry
from holdfast.local.build import import_module
from holdfast.proofs import report
from holdfast.proofs.findings import Place, Placed
from holdfast.proofs.report import Proofs, prove
from holdfast.proofs.tasks import facts_of_tasks

_DEFINITION: Final = ".asl.json"


@dataclass(frozen=True, slots=True)
class Subject:
    """A machine, what is proved of it, and where its states stand."""

    proofs: Proofs
    locate: report.Locate

    @property
    def findings(self) -> list[Placed]:
        return report.placed(self.proofs, self.locate)

    @property
    def severities(self) -> frozenset[str]:
        return frozenset(found.severity for found in self.proofs.findings)

    @property
    def problems(self) -> int:
        """Errors and warnings: a note is none."""
        return sum(found.severity != "note" for found in self.proofs.findings)

    def render(self) -> str:
        """The report, then each finding with its line."""
        parts = [report.render(self.proofs, self.locate)]
        return "\n\n".join([*parts, *(found.render() for found in self.findings)])

    def to_json(self) -> list[dict[str, Any]]:
        proved = {"severity": "PROVED", **report.to_json(self.proofs)}
        return [found.to_json() for found in self.findings] + [proved]


def subjects_of_modules(names: Iterable[str]) -> list[Subject]:
    """Of modules that compile."""
    chosen = list(names)
    facts = facts_of_tasks(Registry.from_modules(chosen).tasks)
    return [
        Subject(prove(found.name, found.asl, facts), _locate_lines(found))
        for name in chosen
        for found in compile_module(import_module(name))
    ]


def subject_of_file(path: Path) -> Subject:
    """Of a definition that has validated; of the tasks that it names nothing is known."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    name = path.name.removesuffix(_DEFINITION).removesuffix(".json")
    return Subject(prove(name, document, {}), _locate_states(path, text, document))


# -- places ----------------------------------------------------------------------------------------


def _locate_lines(compiled: Compiled) -> report.Locate:
    """In the workflow's source."""
    return _by_sources(compiled.sources)


def _by_sources(sources: Mapping[str, Any]) -> report.Locate:
    def locate(state: str, _location: str) -> Place:
        row = sources[state]
        return _place(row["file"], row["line"], row["column"], row["text"])

    return locate


def _place(file: str, line: int, column: int, text: str) -> Place:
    """With the line as it stands in the file, if that still has it."""
    written = linecache.getline(file, line).rstrip()
    if not text or text not in written:
        written = " " * (column - 1) + text
    return _shown(file, line, column, written)


def _shown(file: str, line: int, column: int, written: str) -> Place:
    return Place(file, line, column, written, width=max(1, len(written) - column + 1))


def _locate_states(path: Path, text: str, document: Any) -> report.Locate:
    """In the source, when the map beside the definition is of it; else in the JSON."""
    map_path = path.with_name(path.name.removesuffix(_DEFINITION) + ".map.json")
    if path.name.endswith(_DEFINITION) and map_path.is_file():
        found = json.loads(map_path.read_text(encoding="utf-8"))
        if found.get("definition") == definition_hash(document):
            return _by_sources(found["sources"])
    places, lines = positions(text), text.splitlines()

    def locate(_state: str, location: str) -> Place:
        while location not in places:
            location = location[: max(location.rfind("/"), location.rfind("["))] or "/"
        line, column = places[location]
        return _shown(str(path), line, column, lines[line - 1].rstrip())

    return locate
