"""Definitions whose `aws-sdk` tasks name an action that the service does not have.

AWS refuses such a definition when the machine is created, as it refuses another Resource that it
does not know. The rules of `asl` know no services, so this module adds the problem to theirs. It
asks botocore's models. A service that botocore does not have is accepted: its name may be one of
the Java SDK's, and the task fails when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from holdfast.asl.json_text import read_json
from holdfast.asl.validation.report import DefinitionProblem, MachineType
from holdfast.asl.validation.task import unrecognized
from holdfast.asl.validation.validate import diagnose
from holdfast.service_names import botocore_name, operation_name

_SDK: Final = re.compile(
    r"arn:[a-z-]+:states:::aws-sdk:(?P<service>[a-z0-9]+):(?P<action>[A-Za-z0-9]+)"
    r"(\.waitForTaskToken)?"
)
SCHEMA: Final = "SCHEMA_VALIDATION_FAILED"


def problems_of(
    definition: str | Any, machine_type: MachineType = "STANDARD", *, warns: bool = False
) -> tuple[DefinitionProblem, ...]:
    """Return every problem of a definition; `warns` adds the warnings. Actions are looked up only
    in one without an error, so that the order of AWS's problems stays.
    """
    found = diagnose(definition, machine_type, warns=warns)
    if any(one.severity == "ERROR" for one in found):
        return found
    document: Any = read_json(definition) if isinstance(definition, str) else definition
    return (*found, *_in_machine(document, ""))


def problems_of_state(state: Mapping[str, Any], place: str) -> Iterator[DefinitionProblem]:
    """Yield the problems of a valid state and of the states within it."""
    resource = state.get("Resource")
    if isinstance(resource, str) and not _is_known(resource):
        yield DefinitionProblem("ERROR", SCHEMA, unrecognized(resource), f"{place}/Resource")
    for number, branch in enumerate(state.get("Branches", ())):
        yield from _in_machine(branch, f"{place}/Branches[{number}]")
    for field in ("ItemProcessor", "Iterator"):
        if field in state:
            yield from _in_machine(state[field], f"{place}/{field}")


def _in_machine(machine: Mapping[str, Any], place: str) -> Iterator[DefinitionProblem]:
    for name, state in machine["States"].items():
        yield from problems_of_state(state, f"{place}/States/{name}")


def _is_known(resource: str) -> bool:
    found = _SDK.fullmatch(resource)
    if found is None:
        return True
    actions = _actions(found["service"])
    return actions is None or operation_name(found["action"]) in actions


@cache
def _actions(service: str) -> frozenset[str] | None:
    """Return the operations of a service; None for a service without a model."""
    from botocore.loaders import Loader  # noqa: PLC0415  # only definitions with such tasks need it

    loader = Loader()
    name = botocore_name(service, tuple(loader.list_available_services("service-2")))
    if name is None:
        return None
    return frozenset(loader.load_service_model(name, "service-2")["operations"])
