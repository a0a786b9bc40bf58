"""Finds everything that is wrong with a definition, with AWS's code, message and place.

    diagnose('{"States": {"A": {"Type": "Pass", "End": true}}}')
    -> a Diagnostic: SCHEMA_VALIDATION_FAILED, "These fields are required: [StartAt]", "/"

It accepts every definition that AWS accepts, and the resources `holdfast:…`. Sources: recordings of
CreateStateMachine, UpdateStateMachine and ValidateStateMachineDefinition; AWS's pages on the Amazon
States Language; its page "ValidateStateMachineDefinitionDiagnostic" for the codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.asl.documents import language_of
from holdfast.asl.json_text import DEPTH_MAX, JsonDepthError, JsonTextError, depth_of, read_json
from holdfast.asl.validation.graph import check_graph
from holdfast.asl.validation.report import SCHEMA, DefinitionProblem, MachineType, RuleScope
from holdfast.asl.validation.states import check_machine, check_state

__all__ = [
    "DefinitionProblem",
    "MachineType",
    "diagnose",
    "diagnose_state",
    "diagnose_to_run",
    "sentence",
]


def diagnose(
    definition: str | Any, machine_type: MachineType = "STANDARD", *, warns: bool = False
) -> tuple[DefinitionProblem, ...]:
    """Return every problem of a definition, which is given as text or as the value of its JSON; ()
    without problems. `warns` adds the warnings.
    """
    if not isinstance(definition, str):
        return _diagnose(definition, machine_type, warns=warns)
    if not definition.strip():
        return (_NO_OBJECT,)
    try:
        return _diagnose(read_json(definition), machine_type, warns=warns)
    except JsonTextError as error:
        return (DefinitionProblem("ERROR", "INVALID_JSON_DESCRIPTION", error.message, error.place),)
    except JsonDepthError:
        return (_TOO_DEEP,)


def diagnose_to_run(document: Any) -> tuple[DefinitionProblem, ...]:
    """Return the problems because of which a definition cannot run.

    A definition can run even if a state in it is never reached.
    """
    return _diagnose(document, "STANDARD", is_to_run=True)


def _diagnose(
    document: Any, machine_type: MachineType, *, is_to_run: bool = False, warns: bool = False
) -> tuple[DefinitionProblem, ...]:
    if not isinstance(document, dict):
        return (_NO_OBJECT,)
    if depth_of(document) > DEPTH_MAX:
        return (_TOO_DEEP,)
    language = language_of(document, "JSONPath")
    scope = RuleScope([], language, language, machine_type, warns=warns)
    check_machine(scope, document)
    check_graph(scope, document, is_to_run=is_to_run)
    return tuple(scope.found)


def diagnose_state(state: Any) -> tuple[DefinitionProblem, ...]:
    """Return the problems of one state alone, as TestState takes it. Its next state is not checked.

    Such a state may be in either language.
    """
    if not isinstance(state, dict):
        return (_NO_OBJECT,)
    if depth_of(state) > DEPTH_MAX:
        return (_TOO_DEEP,)
    scope = RuleScope([], "JSONPath", "JSONPath", "STANDARD")
    check_state(scope, state, "/States/StateName")
    return tuple(scope.found)


def sentence(diagnostics: Iterable[DefinitionProblem]) -> str:
    """Return the message of InvalidDefinition: "Invalid State Machine Definition: 'CODE: message at
    /place, …'"

    A problem without a place is "at null", as AWS writes it.
    """
    parts = [
        f"{found.code}: {found.message} at {found.location or 'null'}" for found in diagnostics
    ]
    return f"Invalid State Machine Definition: '{', '.join(parts)}'"


_NO_OBJECT = DefinitionProblem("ERROR", SCHEMA, "Definition must be a valid JSON object", None)
_TOO_DEEP = DefinitionProblem(
    "ERROR", "TOO_DEEPLY_NESTED", f"The definition has more than {DEPTH_MAX} levels", None
)
