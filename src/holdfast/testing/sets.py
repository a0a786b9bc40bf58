"""Which calls and results hold sets: Python gives their members in an order of its own."""

from __future__ import annotations

from typing import Any

from holdfast.api.surface import Task, Workflow
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.types.models import has_set


def takes_sets(subject: Any) -> bool:
    """Return True for a task with a parameter that holds a set."""
    if not isinstance(subject, Task):
        return False
    return any(map(has_set, signature_of(subject.function).parameters.values()))


def gives_sets(workflow: Workflow[..., Any]) -> bool:
    return has_set(signature_of(workflow.function).result)
