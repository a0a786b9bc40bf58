"""Exports a compiled workflow for AWS Step Functions: what is written, left out, and refused.

The tasks, events, questions and child workflows become Lambda functions and state machines. The
deployment fills in their names with CloudFormation's DefinitionSubstitutions: `${charge}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.compiler.compile import CompiledWorkflow, document_of
from holdfast.compiler.diagnostics import CompileErrors, Diagnostic
from holdfast.compiler.source import Source
from holdfast.compiler.targets.refusals import Note, StatePlaces, find_notes, find_refusals
from holdfast.compiler.targets.states import Placeholder, Rewriting


@dataclass(frozen=True, slots=True)
class Exported:
    """A definition that AWS accepts when every placeholder in it is replaced.

    `placeholders` are by the name between `${` and `}`; `notes` name the guarantees that are lost.
    """

    name: str
    asl: Mapping[str, Any]
    placeholders: Mapping[str, Placeholder]
    notes: tuple[Note, ...]

    @property
    def asl_text(self) -> str:
        """Return the text of `<name>.stepfunctions.asl.json`."""
        return document_of(self.asl)

    @property
    def substitutions_text(self) -> str:
        """Return the text of `<name>.stepfunctions.json`."""
        needs = {name: placeholder.to_json() for name, placeholder in self.placeholders.items()}
        return document_of({"workflow": self.name, "substitutions": needs})


def to_step_functions(compiled: CompiledWorkflow, source: Source) -> Exported:
    """Export a workflow for AWS. Raises CompileErrors: HF064 for constructs that only Holdfast can
    run, HF065 for limits of AWS.
    """
    places = StatePlaces(compiled, source)
    rewriting = Rewriting(compiled.asl)
    asl = rewriting.machine()
    refused = find_refusals(places, compiled.asl, asl)
    if refused:
        raise CompileErrors(refused)
    notes = find_notes(places, compiled.asl)
    text = json.dumps(asl)
    placeholders = {
        name: placeholder
        for name, placeholder in sorted(rewriting.placeholders.items())
        if f"${{{name}}}" in text
    }
    return Exported(compiled.name, asl, placeholders, notes)


def export_all(compiled: Iterable[CompiledWorkflow], source: Source) -> list[Exported]:
    """Export every workflow of one module. Raises CompileErrors with the refusals of all."""
    exported: list[Exported] = []
    refused: list[Diagnostic] = []
    for each in compiled:
        try:
            exported.append(to_step_functions(each, source))
        except CompileErrors as errors:
            refused += errors.diagnostics
    if refused:
        raise CompileErrors(refused)
    return exported
