"""Converts Python values to the JSON of a request, and the output of an execution to a Python
value.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from holdfast.api.boundary import Misfit, normalise_payload
from holdfast.api.sealing import Seals
from holdfast.api.workflows import Workflow
from holdfast.errors import RequestError
from holdfast.sealed import Sealed

R = TypeVar("R")


class _Clear:
    """Sends secrets to the API in clear text, inside of TLS. The API encrypts them before it stores
    them.
    """

    def seal(self, tenant: str, text: str) -> str:
        del tenant
        return text

    def open(self, tenant: str, sealed: Sealed) -> str:
        del tenant, sealed
        raise AssertionError("may_open is False")


_IN_CLEAR: Final = Seals(_Clear(), "", may_open=False)


def json_bytes(request: dict[str, object]) -> bytes:
    """Return the JSON. Models, dataclasses, times and similar values are written as pydantic writes
    them.

    Raises RequestError HF243 for a value that cannot be written as JSON.
    """
    try:
        return json.dumps(request, default=_as_json, allow_nan=False).encode()
    except (Misfit, RecursionError, TypeError, ValueError) as error:
        raise RequestError("HF243", f"the request cannot be written as JSON: {error}") from None


def _as_json(value: Any) -> Any:
    return normalise_payload(type(value), value, _IN_CLEAR)


@dataclass(frozen=True, slots=True)
class TypedStart(Generic[R]):
    """The workflow and the input of a start, and the function that converts its output."""

    workflow: str
    input: object
    parse: Callable[[Any], R]


def typed_start(workflow: Any, arguments: tuple[Any, ...]) -> TypedStart[Any]:
    """Return the start of a workflow, or of a workflow's name with at most one argument, which is
    its input. Raises RequestError HF210, HF287.
    """
    match workflow:
        case Workflow():
            return TypedStart(workflow.name, _input(workflow, arguments), reader_of(workflow))
        case str() if len(arguments) <= 1:
            return TypedStart(workflow, arguments[0] if arguments else {}, _as_it_is)
        case str():
            raise RequestError(
                "HF287",
                f"workflow {workflow} is started by its name with {len(arguments)} values",
                help="give one object with its parameters: client.start(name, {...})",
            )
        case _:
            raise RequestError(
                "HF287",
                f"{workflow!r:.100} is no workflow",
                help="give a function that @workflow decorates, or the name of one",
            )


def _input(workflow: Workflow[..., Any], arguments: tuple[Any, ...]) -> object:
    """Return the arguments as JSON, by the names of their parameters. Omitted ones are left out,
    because the deployed code has their defaults.
    """
    try:
        given = inspect.signature(workflow.function).bind(*arguments).arguments
        normal = workflow.boundary.normalise_arguments(given, _IN_CLEAR)
    except (Misfit, TypeError) as error:
        parameters = ", ".join(inspect.signature(workflow.function).parameters)
        raise RequestError(
            "HF210",
            f"the arguments of {workflow.name} do not fit: {error}",
            help=f"its parameters are: {parameters}",
        ) from None
    return {name: normal[name] for name in given}


def reader_of(workflow: Workflow[..., R] | None) -> Callable[[Any], R]:
    """Return the function that converts an output to the workflow's result type. It raises
    RequestError HF291.
    """
    if workflow is None:
        return _as_it_is

    def parse(output: Any) -> R:
        try:
            result: R = workflow.boundary.parse_result(output)
        except ValueError as error:
            raise RequestError(
                "HF291",
                f"the result of {workflow.name} does not fit the annotation in this code: "
                f"{type(error).__name__}",
                help="deploy the same code here and in the stack, or read it with describe()",
            ) from None
        return result

    return parse


def _as_it_is(output: Any) -> Any:
    return output
