"""A workflow that another workflow calls or starts: the compiler completes its input with
defaults.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any, Final

from holdfast.api.boundary import Misfit
from holdfast.api.surface import LATER, Workflow
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
    failures = expressions.unit.failures_of_child(workflow)
    if workflow.retry is not None:
        _require_named(expressions, node, workflow, failures)
    action = RunWorkflow(workflow, _filled(expressions, node, workflow, given), failures)
    return action, signature_of(workflow.function).result


def _require_named(
    expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any], failures: frozenset[str]
) -> None:
    """Refuse a retry that names an error which an expression of the child raises without a name."""
    assert workflow.retry is not None
    for cls in (*workflow.retry.on, *workflow.retry.not_on):
        is_raised = any(issubclass(getattr(builtins, name), cls) for name in failures)
        if is_raised and cls is not Exception:
            name = workflow.function.__name__
            message = (
                f"`{cls.__name__}` from an expression of `{name}` has no name here, "
                "so that no retry finds it"
            )
            help_ = f"test first in `{name}`, or raise an error of your own there"
            raise refuse(expressions, node, "HF008", message, help_)


def lower_start(
    expressions: Expressions,
    node: ast.Call,
    workflow: Workflow[..., Any],
    given: TypedQuery,
    later: TypedQuery | None,
) -> tuple[Action, Type]:
    """Lower `start(workflow, …)`, whose result is the id of the execution."""
    filled = _filled(expressions, node, workflow, given)
    if later is None:
        return StartWorkflow(workflow, filled), STR
    if workflow.keyed is not None:
        message = f"`{workflow.name}` has a key, which an execution would hold before it begins"
        help_ = f'send("…", …, key=…, {expressions.unit.text(_time_of(node))})  # its first event'
        raise refuse(expressions, node, "HF157", message, help_)
    assert isinstance(later.query, ObjectOf)
    arguments = TypedQuery(filled.query, filled.type, filled.fails | later.fails)
    return StartWorkflow(workflow, arguments, later.query), STR


def _time_of(node: ast.Call) -> ast.keyword:
    return next(word for word in node.keywords if word.arg in LATER)


#: The words for a later start in other systems, in place of `delay` and `at`.
_FOREIGN: Final = frozenset(
    {"countdown", "delay_seconds", "eta", "run_at", "send_delay", "start_delay"}
)


def times_of(
    expressions: Expressions, node: ast.Call, workflow: Workflow[..., Any]
) -> dict[str, ast.expr]:
    """Return the arguments `delay` and `at` of a `start`. An argument is the workflow's own when
    the workflow has a parameter of its name.
    """
    taken = signature_of(workflow.function).parameters
    for word in node.keywords:
        if word.arg in _FOREIGN and word.arg not in taken:
            message = "a later start has a duration, delay=, or a moment, at="
            raise refuse(expressions, word.value, "HF086", message, "delay=minutes(5)")
    own = (word for word in node.keywords if word.arg in LATER and word.arg not in taken)
    return {str(word.arg): word.value for word in own}


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
        defaults = workflow.boundary.default_arguments()
    except _NO_JSON as error:
        reason = str(error).partition("\n")[0]
        message = f"what `{workflow.name}` takes has no JSON form: {reason}"
        help_ = f"def {workflow.function.__name__}(…): parameters and defaults that pydantic knows"
        raise refuse(expressions, node, "HF008", message, help_) from None
    left_out = [(name, literal(value)) for name, value in defaults.items() if name not in named]
    return TypedQuery(ObjectOf((*given.query.items, *left_out)), given.type, given.fails)
