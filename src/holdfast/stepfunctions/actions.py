"""Definitions whose tasks call a service by an action that it does not have, or with arguments that
the action does not have.

AWS refuses such a definition when the machine is created, as it refuses another Resource that it
does not know. The rules of `asl` know no services, so this module adds the problems to theirs. It
asks botocore's models. A service that botocore does not have is accepted: its name may be one of
the Java SDK's, and the task fails when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.asl.documents import Language, language_of
from holdfast.asl.json_text import read_json
from holdfast.asl.validation.report import SCHEMA, DefinitionProblem, MachineType
from holdfast.asl.validation.task import unrecognized
from holdfast.asl.validation.validate import diagnose
from holdfast.service_names import operation_name
from holdfast.stepfunctions.arguments import problems_of_arguments
from holdfast.stepfunctions.models import model_of

_SDK: Final = re.compile(
    r"arn:[a-z-]+:states:::aws-sdk:(?P<service>[a-z0-9]+):(?P<action>[A-Za-z0-9]+)"
    r"(\.waitForTaskToken)?"
)


def problems_of(
    definition: str | Any, machine_type: MachineType = "STANDARD", *, warns: bool = False
) -> tuple[DefinitionProblem, ...]:
    """Return every problem of a definition; `warns` adds the warnings. Services are looked up only
    in one without an error, so that the order of AWS's problems stays.
    """
    found = diagnose(definition, machine_type, warns=warns)
    if any(one.severity == "ERROR" for one in found):
        return found
    document: Any = read_json(definition) if isinstance(definition, str) else definition
    return (*found, *_in_machine(document, "", language_of(document, "JSONPath")))


def problems_of_state(
    state: Mapping[str, Any], place: str, language: Language = "JSONPath"
) -> Iterator[DefinitionProblem]:
    """Yield the problems of a valid state and of the states within it. `language` is that of the
    machine.
    """
    if state["Type"] == "Task":
        yield from _problems_of_task(state, place, language_of(state, language))
    for number, branch in enumerate(state.get("Branches", ())):
        yield from _in_machine(branch, f"{place}/Branches[{number}]", language)
    for field in ("ItemProcessor", "Iterator"):
        if field in state:
            yield from _in_machine(state[field], f"{place}/{field}", language)


def _in_machine(
    machine: Mapping[str, Any], place: str, language: Language
) -> Iterator[DefinitionProblem]:
    for name, state in machine["States"].items():
        yield from problems_of_state(state, f"{place}/States/{name}", language)


def _problems_of_task(
    state: Mapping[str, Any], place: str, language: Language
) -> Iterator[DefinitionProblem]:
    resource = state["Resource"]
    if _is_known(resource):
        yield from problems_of_arguments(state, place, language)
    else:
        yield DefinitionProblem("ERROR", SCHEMA, unrecognized(resource), f"{place}/Resource")


def _is_known(resource: str) -> bool:
    found = _SDK.fullmatch(resource)
    if found is None:
        return True
    model = model_of(found["service"])
    return model is None or operation_name(found["action"]) in model.operation_names
