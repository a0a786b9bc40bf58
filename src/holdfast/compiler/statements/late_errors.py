"""`cancel_others=False`: all branches end, then the call raises the error of the first that failed.

    outcomes = parallel(…)        each branch returns its error, with the mark RAISED
    if one of outcomes has it:
        raise that error

The mark is not the one of `return_exceptions=True`: a branch may also return an error that another
call has returned to it, and that is not a failure of the branch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.error_values import RAISED, is_object_with
from holdfast.compiler.expressions.query import (
    Constant,
    FieldOf,
    FunctionLiteral,
    ItemOf,
    ObjectOf,
    QueryTree,
    Variable,
    invoke,
)
from holdfast.compiler.ir import (
    Action,
    Assign,
    BranchErrors,
    If,
    Reraise,
    Return,
    RunEach,
    RunParallel,
    SourcePlace,
    StepStatement,
    Target,
)
from holdfast.compiler.types.types import BOOL, UNKNOWN, Type

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

_ONE: Final = Variable("_one")


def emit_step(
    statements: Statements,
    origin: SourcePlace,
    node: ast.Call,
    found: tuple[Action, Type],
    targets: tuple[Target, ...] | None,
) -> None:
    """Emit the step, and after it the raise of an error that it has kept."""
    action, type_ = found
    if not isinstance(action, RunParallel | RunEach) or action.errors is not BranchErrors.LATE:
        statements.emit(StepStatement(origin, action, targets))
        return
    outcomes = Variable(statements.scope.name("outcomes", (node, "outcomes")))
    error = statements.scope.name("failed", (node, "failed"))
    statements.emit(StepStatement(origin, action, (Target(outcomes.name),)))
    failed = _failed(outcomes)
    kept = TypedQuery(_error_of(ItemOf(failed, Constant(0))), UNKNOWN)
    place = SourcePlace(origin.span, "has a branch failed?", origin.source)
    raised = (Assign(place, ((error, kept),)), Reraise(place, error))
    statements.emit(If(place, TypedQuery(invoke("exists", failed), BOOL), raised, ()))
    if targets is None:
        statements.emit(Return(origin, TypedQuery(outcomes, type_)))
    elif targets:
        parts = tuple((one.variable, TypedQuery(_part(outcomes, one), UNKNOWN)) for one in targets)
        statements.emit(Assign(origin, parts))


def _failed(outcomes: QueryTree) -> QueryTree:
    test = FunctionLiteral((_ONE.name,), is_object_with(_ONE, RAISED))
    return invoke("filter", outcomes, test)


def _error_of(outcome: QueryTree) -> QueryTree:
    """Return the error without the mark, as a handler would have caught it."""
    return ObjectOf(tuple((name, FieldOf(outcome, name)) for name in ("Error", "Cause")))


def _part(outcomes: QueryTree, target: Target) -> QueryTree:
    return outcomes if target.part is None else ItemOf(outcomes, Constant(target.part))
