"""Finds the state to test: a single state, or one of a whole definition by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json
from holdfast.asl.parsing.parse import parse_definition, parse_state
from holdfast.asl.program import State
from holdfast.asl.validation.validate import DefinitionProblem, diagnose_state, sentence
from holdfast.stepfunctions.actions import problems_of, problems_of_state
from holdfast.stepfunctions.faults import StatesFault, validation
from holdfast.stepfunctions.trial.request import STATE_NAME


@dataclass(frozen=True, slots=True)
class Tested:
    """The state under test. `written` is the JSON of the state in the definition."""

    state: State
    written: Mapping[str, Any]
    is_jsonata: bool


def find_tested(text: str, state_name: str | None) -> Tested:
    """Return the state under test. Raises StatesFault: InvalidDefinition; ValidationException for a
    missing name.
    """
    try:
        document: Any = read_json(text)
    except (JsonTextError, JsonDepthError):
        document = text
    if state_name is None and not isinstance(document, str):
        return _alone(document)
    return _one_of(document, state_name or STATE_NAME)


def _alone(state: Any) -> Tested:
    _require_valid(diagnose_state(state))
    _require_valid(problems_of_state(state, f"/States/{STATE_NAME}"))
    language = state.get("QueryLanguage", "JSONPath")
    return Tested(parse_state(STATE_NAME, state), state, language == "JSONata")


def _one_of(document: Any, name: str) -> Tested:
    _require_valid(problems_of(document))
    program = parse_definition(document)
    if name not in program.states:
        raise validation("State not found in definition")
    written = next(state for key, state in _states_of(document) if key == name)
    language = written.get("QueryLanguage", document.get("QueryLanguage", "JSONPath"))
    return Tested(program.states[name], written, language == "JSONata")


def _require_valid(diagnostics: Iterable[DefinitionProblem]) -> None:
    found = [each for each in diagnostics if each.severity == "ERROR"]
    if found:
        raise StatesFault("InvalidDefinition", sentence(found))


def _states_of(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every state of a valid machine, including those of branches and item processors."""
    for name, state in machine["States"].items():
        yield name, state
        inner = [*state.get("Branches", ()), state.get("ItemProcessor"), state.get("Iterator")]
        for level in inner:
            if level is not None:
                yield from _states_of(level)
