"""Which state is tested: one that stands alone, or one of a whole definition by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json
from holdfast.asl.parse import parse_definition
from holdfast.asl.program import State
from holdfast.asl.validate import diagnose, sentence
from holdfast.stepfunctions._trial_request import STATE_NAME
from holdfast.stepfunctions.faults import StatesFault, validation


@dataclass(frozen=True, slots=True)
class Tested:
    """`written` is the state as the definition has it."""

    state: State
    written: Mapping[str, Any]
    is_jsonata: bool


def find_tested(text: str, state_name: str | None) -> Tested:
    """Raises StatesFault: InvalidDefinition, or ValidationException for a name that is not there.

    A single state is put into a machine under the name StateName, as AWS's messages show it, beside
    stubs of the states that it goes on to.
    """
    document = _document(text, state_name)
    name = state_name or STATE_NAME
    program = parse_definition(document)
    if name not in program.states:
        raise validation("State not found in definition")
    written = next(state for key, state in _states_of(document) if key == name)
    language = written.get("QueryLanguage", document.get("QueryLanguage", "JSONPath"))
    return Tested(program.states[name], written, language == "JSONata")


def _document(text: str, state_name: str | None) -> dict[str, Any]:
    """-> a valid definition."""
    try:
        document: Any = read_json(text)
    except (JsonTextError, JsonDepthError):
        document = text  # its diagnosis is the text's
    if state_name is None and isinstance(document, dict):
        document = _machine_of(document)
    found = [each for each in diagnose(document) if each.severity == "ERROR"]
    if found:
        raise StatesFault("InvalidDefinition", sentence(found))
    assert isinstance(document, dict)
    return document


def _machine_of(state: dict[str, Any]) -> dict[str, Any]:
    """-> a machine of the one state. What it goes on to ends there."""
    stubs = {name: {"Type": "Succeed"} for name in _targets(state) if name != STATE_NAME}
    return {"StartAt": STATE_NAME, "States": {STATE_NAME: state, **stubs}}


def _targets(state: dict[str, Any]) -> Iterator[str]:
    """The states that a state goes on to, not those inside of it."""
    for rule in (state, *_objects(state.get("Choices")), *_objects(state.get("Catch"))):
        for target in (rule.get("Next"), rule.get("Default")):
            if isinstance(target, str):
                yield target


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _states_of(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every state of a valid machine, those of branches and item processors too."""
    for name, state in machine["States"].items():
        yield name, state
        inner = [*state.get("Branches", ()), state.get("ItemProcessor"), state.get("Iterator")]
        for level in inner:
            if level is not None:
                yield from _states_of(level)

