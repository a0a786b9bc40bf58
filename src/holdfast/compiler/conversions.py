"""The functions that compute variables for migrated executions, checked and in the map.

The compiler knows the new version alone. It checks that a function gives a variable of this version
a value of its type. The proof of a migration compares the parameters with the older version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.api.boundary import JsonValue
from holdfast.api.payloads import reference_of
from holdfast.api.surface import Task, Workflow
from holdfast.compiler.shapes import shapes_of
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.types.models import fits, secret_in
from holdfast.compiler.types.types import Type, describe
from holdfast.errors import WorkflowError


def conversions_of(
    workflow: Workflow[..., Any], variables: Mapping[str, Type], file: str
) -> dict[str, JsonValue]:
    """Return, for each computed variable, its `function`, the variables that it `reads`, and their
    `shapes`. `file` is the source of the workflow. Raises WorkflowError HF372.
    """
    found: dict[str, JsonValue] = {}
    for name, function in sorted(workflow.conversions.items()):
        try:
            found[name] = _conversion(workflow, name, function, variables)
        except WorkflowError as refused:
            place = _place(workflow, function, file)
            raise WorkflowError(
                refused.code, f"{refused.message} ({place})", help=refused.help
            ) from None
    return found


def _place(workflow: Workflow[..., Any], function: Callable[..., Any], file: str) -> str:
    plain = function.function if isinstance(function, Task | Workflow) else function
    where = file if plain.__module__ == workflow.function.__module__ else plain.__module__
    return f"{where}:{plain.__code__.co_firstlineno}"


def _conversion(
    workflow: Workflow[..., Any],
    name: str,
    function: Callable[..., Any],
    variables: Mapping[str, Type],
) -> JsonValue:
    if isinstance(function, Task | Workflow):
        raise _refused(name, "is a step", "def without @task: it is called when an execution moves")
    if function.__module__ != workflow.function.__module__ or "." in function.__qualname__:
        raise _refused(name, f"is not beside {workflow.name}", f"@migrates({workflow.name}) below")
    signature = signature_of(function)
    is_typed = signature.parameters.keys() <= function.__annotations__.keys()
    if signature.fault is not None or not (signature.has_plain_parameters and is_typed):
        raise _refused(name, "has a parameter without a name or a type", f"def {name}(history: …)")
    wanted = variables.get(name)
    if wanted is None:
        known = ", ".join(sorted(variables))
        raise _refused(name, f"is no variable of {workflow.name}", f"its variables: {known}"[:500])
    if not fits(signature.result, wanted):
        what = f"gives {describe(signature.result)}, and the variable is {describe(wanted)}"
        raise _refused(name, what, f"def {name}(…) -> {describe(wanted)}")
    if any(map(secret_in, (*signature.parameters.values(), signature.result))):
        raise _refused(name, "reads or gives a secret", "let a task read the secret")
    return {
        "function": reference_of(function),
        "reads": [*sorted(signature.parameters)],
        "shapes": shapes_of(signature.parameters),
    }


def _refused(name: str, what: str, fix: str) -> WorkflowError:
    return WorkflowError("HF372", f"the migration function {name} {what}", help=fix)
