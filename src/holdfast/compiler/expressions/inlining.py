"""Helpers that consist of names, `if` and `return`: they become part of the expression that calls
them.

    def label(line: Line) -> str:          ($line := order.lines[0];
        if line.quantity > 9:        ->     $line.quantity > 9 ? "bulk" : $line.sku)
            return "bulk"
        return line.sku

Python computes every argument once, before the body. So an argument that is more than a name
becomes a variable of the expression, even if the body does not read it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, Helper, TypedQuery, Unit, fails_of
from holdfast.compiler.environment import Environment, Held, LocalFunction
from holdfast.compiler.expressions.arguments import given_arguments, is_name
from holdfast.compiler.expressions.choices import chosen
from holdfast.compiler.expressions.declared import (
    annotated_type,
    as_declared,
    as_parameter,
    returned_type,
)
from holdfast.compiler.expressions.query import NULL, Block, Variable
from holdfast.compiler.statements.local_names import local_names
from holdfast.compiler.steps.class_helpers import entered
from holdfast.compiler.steps.helpers import returns
from holdfast.compiler.types.types import NONE, Type, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_helper(expressions: Expressions, call: ast.Call, helper: Helper) -> TypedQuery:
    """Return the expression for a helper's body with these arguments."""
    unit = expressions.unit
    environment = Environment({})
    if helper.is_local:
        function = expressions.environment.entries.get(helper.name)
        if not isinstance(function, LocalFunction):
            message = f"`{helper.name}` may not be defined here"
            help_ = f"put `def {helper.name}` before every line that calls it"
            return unit.refused(call, "HF022", message, help_)
        environment = _seen_by(expressions, function)
    opened = with_parameters(expressions, call, helper, environment)
    if opened is None:
        return REFUSED_EXPRESSION
    inner, blocks = opened
    steps_before = len(unit.library.steps)
    node = unit.copies[call]
    with in_body(unit, call, helper):
        body = _Body(inner, returned_type(helper.unit, node)).lower(node.body)
    if len(unit.library.steps) > steps_before:
        unit.library.helpers.add(helper.node)
    return body if is_refused(body.type) else held_in(blocks, body)


def _seen_by(expressions: Expressions, function: LocalFunction) -> Environment:
    """Return the names that a local function reads: those of the function around it, also where a
    comprehension, a lambda or another function has a name of the same spelling.
    """
    environment = expressions.environment
    if expressions.around is None:
        return environment
    for name, entry in expressions.around(function).entries.items():
        here = environment.entries.get(name)
        if isinstance(entry, Held) and isinstance(here, Held) and here.value == entry.value:
            # The entry of this point may know a narrower type of the value.
            continue
        if here is not entry:
            environment = environment.with_entry(name, entry)
    return environment


Blocks = list[tuple[str, TypedQuery]]


def with_parameters(
    expressions: Expressions, call: ast.Call, helper: Helper, environment: Environment
) -> tuple[Expressions, Blocks] | None:
    """Return the expressions of a helper's body, and the variables for its arguments; None when an
    argument was refused.
    """
    unit = expressions.unit
    given = given_arguments(expressions, call, helper)
    if given is None:
        return None
    if call not in unit.copies:
        unit.copies[call] = copy.deepcopy(helper.node)
    node = unit.copies[call]
    scope = unit.scope(expressions.scope, node, local_names(node), sees=helper.sees)
    for name in scope.local_names:
        environment = environment.without(name)
    blocks: Blocks = []
    for parameter, argument, passed in given:
        value = as_parameter(helper.unit, unit, parameter, argument or call, passed)
        if is_refused(value.type):
            return None
        query = value.query
        if not is_name(query):
            variable = scope.name(parameter.arg)
            blocks.append((variable, value))
            query = Variable(variable)
        environment = environment.with_entry(parameter.arg, Held(query, value.type))
    return expressions.of_helper(helper.unit, scope, environment), blocks


def lower_method(expressions: Expressions, call: ast.Call, helper: Helper) -> TypedQuery:
    """Return the expression for a method of a model, or for a property."""
    with entered(expressions.unit, helper) as is_new:
        if is_new:
            return lower_helper(expressions, call, helper)
    message = f"`{helper.name}` calls itself: its body would have no end"
    return expressions.unit.refused(call, "HF007", message, "use a loop")


@contextmanager
def in_body(unit: Unit, call: ast.Call, helper: Helper) -> Iterator[None]:
    """Lower the body of a helper. When it has refusals, refuse the call, too, because the body of a
    helper may be far from the workflow.
    """
    before = len(unit.diagnostics)
    yield
    if len(unit.diagnostics) == before or helper.is_local:
        return
    unit.refuse(
        call,
        "HF005",
        f"`{helper.name}` is a plain function, so its body is part of the workflow: "
        "see what is refused in it",
        "mend that; or decorate it, if it has no durable call: @task (retried, with I/O) or @pure "
        "(quick, no I/O)",
    )


def held_in(blocks: Sequence[tuple[str, TypedQuery]], body: TypedQuery) -> TypedQuery:
    query, fails = body.query, fails_of(body, *(value for _, value in blocks))
    for variable, value in reversed(blocks):
        query = Block(variable, value.query, query)
    return TypedQuery(query, body.type, fails)


class _Body:
    """Lowers the statements of a plain body to one expression."""

    def __init__(self, expressions: Expressions, declared: Type | None) -> None:
        self.expressions = expressions
        self.declared = declared

    def lower(self, statements: Sequence[ast.stmt]) -> TypedQuery:
        if not statements:
            return TypedQuery(NULL, NONE)
        first, rest = statements[0], statements[1:]
        match first:
            case ast.Return(value=None):
                return TypedQuery(NULL, NONE)
            case ast.Return(value=ast.expr() as value):
                return self._typed(value, self.declared, "the result")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return self._named(name, value, None, rest)
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=note, value=ast.expr() as value
            ):
                declared = annotated_type(self.expressions.unit, note)
                return self._named(name, value, declared, rest)
            case ast.If():
                return self._chosen(first, rest)
            case _:
                # The statement is a docstring or `pass`, which has no effect.
                return self.lower(rest)

    def _typed(self, node: ast.expr, declared: Type | None, name: str) -> TypedQuery:
        value = self.expressions.lower(node)
        return as_declared(self.expressions.unit, node, value, declared, name)

    def _named(
        self, name: str, node: ast.expr, declared: Type | None, rest: Sequence[ast.stmt]
    ) -> TypedQuery:
        here = self.expressions
        value = self._typed(node, declared, name)
        variable = here.scope.name(name)
        held = Held(Variable(variable), value.type)
        inner = here.with_environment(here.environment.with_entry(name, held))
        body = _Body(inner, self.declared).lower(rest)
        if is_refused(value.type) or is_refused(body.type):
            return REFUSED_EXPRESSION
        return held_in([(variable, value)], body)

    def _chosen(self, node: ast.If, rest: Sequence[ast.stmt]) -> TypedQuery:
        """Lower an `if`. The statements after it belong to the arm that does not return."""
        test = self.expressions.truth(node.test)
        arms = []
        for body, is_true in ((node.body, True), (node.orelse, False)):
            inner = self.expressions.narrowed(node.test, is_true=is_true)
            whole = body if returns(body) else [*body, *rest]
            arms.append(_Body(inner, self.declared).lower(whole))
        then, otherwise = arms
        return chosen(test, then, otherwise)
