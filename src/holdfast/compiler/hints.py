"""The author's hints for a migration, as the map of a workflow stores them.

They are about executions of the version before this one. The compiler knows only this version, so
it checks the new names. The proof of a migration uses a hint if the old version has the old name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.api.boundary import JsonValue
from holdfast.api.surface import Workflow
from holdfast.errors import WorkflowError


def hints_of(
    workflow: Workflow[..., Any], asl: Any, states: Iterable[str], tasks: dict[str, str]
) -> dict[str, JsonValue]:
    """Return `renamed`, `tasks` (old name to new name) and `assumed_done`, if there are any. Raises
    WorkflowError HF140.
    """
    steps = {*states, *_functions(asl)}
    _require(workflow, "renamed", workflow.renamed.values(), {*steps, *_variables(asl)})
    _require(workflow, "assumed_done", workflow.assumed_done, steps)
    hints: dict[str, JsonValue] = {
        "renamed": dict(sorted(workflow.renamed.items())),
        "tasks": dict(sorted(tasks.items())),
        "assumed_done": [*sorted(workflow.assumed_done)],
    }
    return {name: value for name, value in hints.items() if value}


def _require(
    workflow: Workflow[..., Any], hint: str, names: Iterable[str], known: set[str]
) -> None:
    missing = sorted(set(names) - known)
    if missing:
        raise WorkflowError(
            "HF140",
            f"{hint}= of workflow {workflow.name} names what it lacks: {', '.join(missing)}",
            help=f"its variables and steps: {', '.join(sorted(known))}"[:1_000],
        )


def _variables(value: Any) -> Iterator[str]:
    """Yield the variables that the states of a definition assign."""
    match value:
        case dict():
            assigned = value.get("Assign")
            if isinstance(assigned, dict):
                yield from assigned
            for key, item in value.items():
                if key != "Assign":
                    yield from _variables(item)
        case list():
            for item in value:
                yield from _variables(item)
        case _:
            return


def _functions(value: Any) -> Iterator[str]:
    """Yield the names of the functions that the states of a definition call."""
    match value:
        case dict():
            if value.get("Type") == "Task":
                yield str(value["Resource"]).rpartition(":")[2]
            for item in value.values():
                yield from _functions(item)
        case list():
            for item in value:
                yield from _functions(item)
        case _:
            return
