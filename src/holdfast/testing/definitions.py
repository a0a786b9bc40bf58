"""The compiled definitions of the workflows of a run: their programs, children and types."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from holdfast.api.payloads import resolve
from holdfast.api.registry import Registry
from holdfast.api.workflows import Workflow
from holdfast.asl.parsing.parse import parse_definition
from holdfast.asl.program import Program
from holdfast.asl.resources import CHILD_WORKFLOW
from holdfast.compiler.compile import CompiledWorkflow, compile_workflow
from holdfast.limits import REQUEST_SUFFIX
from holdfast.testing.script import Script


@functools.lru_cache(maxsize=256)
def definition_of(workflow: Workflow[..., Any]) -> CompiledWorkflow:
    """Return the compiled workflow. Raises CompileErrors."""
    return compile_workflow(workflow)


@functools.lru_cache(maxsize=256)
def program_of(workflow: Workflow[..., Any]) -> Program:
    """Return the program for the core. Raises CompileErrors."""
    return parse_definition(definition_of(workflow).asl)


def event_type(workflow: Workflow[..., Any], event: str) -> Any:
    """Return the type of what a wait for the event gets. A request also has an id."""
    payload = resolve(definition_of(workflow).events[event])
    return tuple[str, payload] if event.endswith(REQUEST_SUFFIX) else payload  # type: ignore[valid-type]


def answer_type(workflow: Workflow[..., Any], position: str) -> Any:
    """Return the type of the answer to the question that the state at this position asks."""
    return resolve(definition_of(workflow).answers[position])


def received_by(workflow: Workflow[..., Any]) -> frozenset[str]:
    """Return the events that the workflow and its children take with `receive` alone."""
    declared = {name for one in with_children(workflow) for name in definition_of(one).events}
    asked = {name.removesuffix(REQUEST_SUFFIX) for name in declared}
    return frozenset(asked - declared)


def with_children(workflow: Workflow[..., Any]) -> list[Workflow[..., Any]]:
    """Return the workflow, the workflows that it calls, and those that these call."""
    found = {workflow.name: workflow}
    waiting = [workflow]
    while waiting:
        called = [one for one in _children_of(waiting.pop()) if one.name not in found]
        found.update((one.name, one) for one in called)
        waiting += called
    return list(found.values())


def _children_of(workflow: Workflow[..., Any]) -> Iterator[Workflow[..., Any]]:
    definition = definition_of(workflow)
    for name, reference in definition.workflows.items():
        # A workflow that is only started with `start` does not run in a test.
        if f'"holdfast:{CHILD_WORKFLOW}{name}"' in definition.asl_text:
            module, _, _ = reference.partition(":")
            yield Registry.from_modules([module]).workflows[name]


def introduce(script: Script, workflow: Workflow[..., Any]) -> None:
    """Give the script the tasks and workflows that a run needs. A run in Python notes them at their
    calls; without such a run they come from the modules.
    """
    for one in with_children(workflow):
        definition = definition_of(one)
        module = one.function.__module__
        modules = dict.fromkeys((*definition.task_modules.values(), module))
        registry = Registry.from_modules(modules)
        script.tasks.update(registry.tasks_of(module, definition.task_modules))
        script.workflows[one.name] = one
