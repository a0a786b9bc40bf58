"""`return` in the body of a helper: the value that replaces the call, and the jump out of the
body.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.environment import EVERYTHING, Held
from holdfast.compiler.expressions.declared import as_declared, returned_type
from holdfast.compiler.expressions.error_values import marked
from holdfast.compiler.expressions.query import NULL
from holdfast.compiler.ir import Leave, SourcePlace, StatementBlock, Way
from holdfast.compiler.statements.flow import Meeting
from holdfast.compiler.statements.levels import distinct_levels
from holdfast.compiler.steps.helpers import own_parts
from holdfast.compiler.types.types import NONE, Type, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


@dataclass(slots=True)
class Result:
    """The result of a helper's body. `last` is its only `return`, if that is its last line.

    `variable` holds the value of any other `return`. A helper that returns nothing needs none.
    """

    declared: Type | None
    last: ast.Return | None
    is_procedure: bool
    variable: str | None = None
    value: TypedQuery | None = None
    is_left: bool = False
    #: True as long as no other name refers to the list or dict that the body returns.
    is_fresh: bool = True
    #: How many levels of it hold no object twice.
    distinct: int = EVERYTHING
    #: True when the call is a statement, which drops its value.
    is_dropped: bool = False
    #: In a body that is pasted into its caller (`pasting`), the names that belong to the helper.
    names: frozenset[str] | None = None
    #: The environment at the end of such a body.
    end: Meeting = field(default_factory=Meeting)


class LoweredBody(NamedTuple):
    """The statements of a helper's body, the types that it returns, and whether a way leads to its
    end.
    """

    block: StatementBlock
    result: Result
    types: list[Type]
    is_open: bool


def result_of(unit: Unit, node: ast.FunctionDef) -> Result:
    found = [part for part in own_parts(node) if isinstance(part, ast.Return)]
    last = found[0] if len(found) == 1 and found[0] is node.body[-1] else None
    is_procedure = all(_gives_none(part.value) for part in found)
    return Result(returned_type(unit, node), last, is_procedure)


def _gives_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def lower_result(statements: Statements, node: ast.AST, given: ast.expr | None) -> None:
    """Lower `return` in a helper."""
    result, flow = statements.result, statements.flow
    assert result is not None
    value = TypedQuery(NULL, NONE)
    if given is not None:
        result.is_fresh = result.is_fresh and _is_fresh(statements, given)
        before = flow.environment
        value = statements.value(given, is_kept=not result.is_dropped)
        distinct = distinct_levels(statements, given, value.type, before)
        result.distinct = min(result.distinct, distinct)
        value = as_declared(statements.unit, given, value, result.declared, "the result")
        value = marked(value)
    flow.returned.append(value.type)
    if node is result.last and not flow.finals:
        result.value = value
        result.end.reach(flow.environment)
    else:
        if not result.is_procedure:
            result.variable = statements.scope.name("return_value")
            if not is_refused(value.type):
                assigned = ((result.variable, value),)
                statements.assign(node, *assigned)
        statements.emit(leaving(statements, statements.origin(node)))
    flow.environment = None


def leaving(statements: Statements, origin: SourcePlace) -> Leave:
    """Return the jump out of a helper, or into a `finally` body on the way out."""
    flow = statements.flow
    assert statements.result is not None
    statements.result.is_left = True
    if flow.finals:
        flow.finals[-1].meetings[Way.RETURN].reach(flow.environment)
    else:
        statements.result.end.reach(flow.environment)
    return Leave(origin)


def _is_fresh(statements: Statements, node: ast.expr) -> bool:
    assert statements.result is not None
    if isinstance(node, ast.Name):
        entry, names = statements.entry(node.id), statements.result.names
        is_own = names is None or node.id in names
        return is_own and isinstance(entry, Held) and entry.owned > 0
    return isinstance(node, ast.Constant) or statements.is_fresh(node)
