"""The input of a graph: one field for each parameter of its tasks that gets no value from a
step.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.api.graph_model import (
    FromInput,
    GraphModel,
    Step,
    hints_of,
    parameters_of,
    references_in,
    sources_of,
)
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.models import fits
from holdfast.compiler.types.types import UNKNOWN, Type

#: The value with which `inspect` marks a parameter without a default.
REQUIRED: Final[Any] = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Use:
    """A step whose `parameter` gets the field as its value. `annotation` is the type of the
    parameter.
    """

    step: Step
    parameter: str
    annotation: Any
    default: Any

    @property
    def type(self) -> Type:
        return from_annotation(self.annotation)


@dataclass(frozen=True, slots=True)
class Input:
    """One field of the input. `conflict` is two uses that no single value fits."""

    annotation: Any
    default: Any
    conflict: tuple[Use, Use] | None


def inputs_of(graph: GraphModel) -> Mapping[str, Input]:
    """Return the fields of the input whose names are valid. The checks of the graph refuse the
    others.
    """
    return {
        field: _input(uses)
        for field, uses in _uses(graph).items()
        if field.isidentifier() and not keyword.iskeyword(field)
    }


def _uses(graph: GraphModel) -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = {}
    for step in (*graph.steps, *graph.compensations):
        sources = sources_of(step)
        if not sources:
            continue
        hints = hints_of(step.task)
        # An action of a service is not a Python function, so it has no declared parameters.
        parameters = {} if step.task.is_service else parameters_of(step.task)
        for name, tree in sources.items():
            default = parameters[name].default if name in parameters else REQUIRED
            whole = Use(step, name, hints.get(name, Any), default)
            part = Use(step, name, Any, REQUIRED)
            for source in references_in(tree):
                if isinstance(source, FromInput):
                    found.setdefault(source.field, []).append(whole if source is tree else part)
    return found


def _input(uses: list[Use]) -> Input:
    """Return the field with its strictest type. It is optional if all uses have the same
    default.
    """
    narrowest = next((use for use in uses if all(_serves(use, other) for other in uses)), None)
    chosen = narrowest or uses[0]
    other = next((use for use in uses if not _serves(chosen, use)), None)
    conflict = None if other is None else (chosen, other)
    defaults = [use.default for use in uses]
    agree = all(type(one) is type(defaults[0]) and one == defaults[0] for one in defaults)
    return Input(chosen.annotation, defaults[0] if agree else REQUIRED, conflict)


def _serves(use: Use, other: Use) -> bool:
    """Return True when every value for `use` is also, unchanged, a value for `other`."""
    return other.type == UNKNOWN or (use.type != UNKNOWN and fits(use.type, other.type))
