"""A workflow that another workflow calls or starts: the compiler completes its input with
defaults.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from holdfast.api.boundary import Misfit
from holdfast.api.surface import Workflow
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import ObjectOf, literal
from holdfast.compiler.ir import Action, Again, RunWorkflow, StartWorkflow
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.steps.step_arguments import refuse
from holdfast.compiler.types.types import NEVER, STR, Type

#: The errors for a value that does not fit its annotation, and the errors that pydantic raises for
#: an invalid annotation.
_NO_JSON: Final = (Misfit, ValueError, TypeError, RuntimeError)


def lower_child_call(
    expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any], given: TypedQuery
) -> tuple[Action, Type]:
    """Lower the call of a child workflow. `given` are the arguments of the call."""
    if workflow.keyed is not None:
        name = workflow.function.__name__
        message = f"`{name}` has a key: the execution that runs for it may be another one's"
        help_ = f"start({name}, {', '.join(expressions.unit.text(arg) for arg in node.args)})"
        raise refuse(expressions, node, "HF157", message, help_)
    if given.fails and workflow.retry is not None:
        # A failed expression of the child has the same error name, and Python retries only that.
        message = "an argument may fail, and its error could not be told from one of the child"
        help_ = "n = numbers[0]  # on a line of its own, and then the call with n"
        raise refuse(expressions, node, "HF008", message, help_)
    action = RunWorkflow(workflow, _filled(expressions, node, workflow, given))
    return action, signature_of(workflow.function).result


def lower_start(
    expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any], given: TypedQuery
) -> tuple[Action, Type]:
    """Lower `start(workflow, …)`, whose result is the id of the execution."""
    return StartWorkflow(workflow, _filled(expressions, node, workflow, given)), STR


def lower_again(
    expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any], given: TypedQuery
) -> tuple[Action, Type]:
    """Lower `return again(…)`. No statement runs after it."""
    return Again(_filled(expressions, node, workflow, given)), NEVER


def _filled(
    expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any], given: TypedQuery
) -> TypedQuery:
    """Return the whole input: the arguments, and the workflow's defaults for those that the call
    leaves out.
    """
    assert isinstance(given.query, ObjectOf)
    named = dict(given.query.items)
    try:
        defaults = workflow.default_arguments()
    except _NO_JSON as error:
        reason = str(error).partition("\n")[0]
        message = f"what `{workflow.name}` takes has no JSON form: {reason}"
        help_ = f"def {workflow.function.__name__}(…): parameters and defaults that pydantic knows"
        raise refuse(expressions, node, "HF008", message, help_) from None
    left_out = [(name, literal(value)) for name, value in defaults.items() if name not in named]
    return TypedQuery(ObjectOf((*given.query.items, *left_out)), given.type, given.fails)
