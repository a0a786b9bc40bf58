"""Everything that is wrong with a definition, with AWS's code, words and place.

    diagnose('{"States": {"A": {"Type": "Pass", "End": true}}}')
    -> (Diagnostic("ERROR", "SCHEMA_VALIDATION_FAILED", "These fields are required: [StartAt]", "/"),)

What AWS accepts is accepted, and the resources `holdfast:…` besides. Sources: recordings of
CreateStateMachine, UpdateStateMachine and ValidateStateMachineDefinition; AWS's pages on the Amazon
States Language; its page "ValidateStateMachineDefinitionDiagnostic" for the codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.asl._validate_graph import check_graph
from holdfast.asl._validate_report import SCHEMA, Diagnostic, MachineType, Scope
from holdfast.asl._validate_states import check_machine, check_state, language_of
from holdfast.asl.json_text import (
    DEPTH_MAX,
    JsonDepthError,
    JsonTextError,
    depth_of,
    read_json,
)

__all__ = ["Diagnostic", "MachineType", "diagnose", "diagnose_state", "sentence"]


def diagnose(
    definition: str | dict[str, Any] | Any, machine_type: MachineType = "STANDARD"
) -> tuple[Diagnostic, ...]:
    """Every problem of a definition, given as text or as the value of its JSON; none: ()."""
    if isinstance(definition, str) and not definition.strip():
        return (_NO_OBJECT,)
    try:
        document = read_json(definition) if isinstance(definition, str) else definition
    except JsonTextError as error:
        return (Diagnostic("ERROR", "INVALID_JSON_DESCRIPTION", error.message, error.place),)
    except JsonDepthError:
        return (_TOO_DEEP,)
    if not isinstance(document, dict):
        return (_NO_OBJECT,)
    if depth_of(document) > DEPTH_MAX:
        return (_TOO_DEEP,)
    language = language_of(document, "JSONPath")
    found: list[Diagnostic] = []
    scope = Scope(found, language, language, machine_type)
    check_machine(scope, document)
    check_graph(scope, document)
    return tuple(found)


def diagnose_state(state: Any, location: str = "/States/StateName") -> tuple[Diagnostic, ...]:
    """The problems of one state by itself, as TestState takes it; where it goes is not looked at.

    A state of its own may be in either language.
    """
    if not isinstance(state, dict):
        return (_NO_OBJECT,)
    if depth_of(state) > DEPTH_MAX:
        return (_TOO_DEEP,)
    found: list[Diagnostic] = []
    check_state(Scope(found, "JSONPath", "JSONPath", "STANDARD"), state, location)
    return tuple(found)


def sentence(diagnostics: Iterable[Diagnostic]) -> str:
    """What InvalidDefinition says: "Invalid State Machine Definition: 'CODE: message at /place, …'".

    A problem without a place is "at null", as AWS writes it.
    """
    parts = [
        f"{found.code}: {found.message} at {found.location or 'null'}" for found in diagnostics
    ]
    return f"Invalid State Machine Definition: '{', '.join(parts)}'"


_NO_OBJECT = Diagnostic("ERROR", SCHEMA, "Definition must be a valid JSON object", None)
_TOO_DEEP = Diagnostic(
    "ERROR", "TOO_DEEPLY_NESTED", f"The definition has more than {DEPTH_MAX} levels", None
)
