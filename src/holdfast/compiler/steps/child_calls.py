"""A workflow that another workflow calls or starts: the compiler completes its input with
defaults.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Final

from holdfast.api.boundary import Misfit
from holdfast.api.surface import Workflow
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import ObjectOf, literal
from holdfast.compiler.ir import Action, Again, RunWorkflow, StartWorkflow
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.steps.step_arguments import refuse
from holdfast.compiler.types.types import DATETIME, NEVER, STR, Type

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


#: The words for a later start in other systems. `start` has none of them.
_LATER: Final = frozenset(
    {"at", "countdown", "delay", "delay_seconds", "eta", "run_at", "send_delay", "start_delay"}
)


def refuse_later(expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any]) -> None:
    """Refuse `start(dispatch, order, delay=minutes(5))`, and show a workflow that sleeps first."""
    taken = signature_of(workflow.function).parameters
    later = [word for word in node.keywords if word.arg in _LATER and word.arg not in taken]
    if not later:
        return
    unit, name = expressions.unit, workflow.function.__name__
    types = inspect.get_annotations(workflow.function)
    named = [word for word in node.keywords if word not in later]
    used = [*list(taken)[: len(node.args) - 1], *(str(word.arg) for word in named)]
    given = "".join(f", {one}: {_written(types.get(one, Any))}" for one in used)
    when = unit.text(later[0].value)
    kept = [unit.text(one) for one in (*node.args[1:], *named)]
    is_moment = expressions.lower(later[0].value).type == DATETIME
    kind, wait = ("datetime", "sleep_until") if is_moment else ("timedelta", "sleep")
    message = "start() begins at once; an execution that sleeps first costs nothing meanwhile"
    call = ", ".join(f"{one}={one}" for one in used)
    help_ = (
        f"start({', '.join([f'{name}_later', when, *kept])}), of this workflow:\n"
        f"@workflow\ndef {name}_later(when: {kind}{given}) -> None:\n"
        f"    {wait}(when)\n    {name}({call})"
    )
    raise refuse(expressions, later[0].value, "HF086", message, help_)


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


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
