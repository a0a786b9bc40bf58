"""Finds the methods with statements that a statement calls, before its steps are hoisted.

The body of such a method stands before the statement, as that of any helper. The type of the object
says which method it is, and that type is known only here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.compiler.steps.class_helpers import method_of
from holdfast.compiler.walking import children

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def find_methods(statements: Statements, node: ast.AST) -> None:
    """Record the helper of each call of a method with statements in `node`."""
    unit = statements.unit
    for call in _calls(node):
        assert isinstance(call.func, ast.Attribute)
        if unit.helpers.get(call) is not None or statements.expressions.is_outside(call.func):
            continue
        with unit.trial():
            owner = statements.expressions.lower(call.func.value)
        helper = method_of(unit, owner.type, call)
        unit.methods[call] = helper
        if helper is not None and not helper.is_expression:
            unit.helpers[call] = helper
            # The earlier answers for the expressions around this call are no longer true.
            unit.with_durable.clear()


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of methods in a statement, without those in its inner statements."""
    for part in children(node):
        if isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
            continue
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            yield part
        yield from _calls(part)
