"""Comprehensions with steps: `[fetch(url) for url in urls]` becomes a loop before the statement.

    pages = [fetch(url) for url in urls if url]       found = []
                                                      for url in urls:
                                                ->        if url:
                                                              found.append(fetch(url))
                                                      pages = found

Python calls one step after the other, and so does the loop. The loop is the body of a helper, so
that its names are its own (`inlining.py`). `any(…)` and `all(…)` stop where Python stops.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.compiler.context import Helper, LocalFunction, TypedQuery
from holdfast.compiler.statements.inlining import inline

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: The names of the function that is made, and of the list in it. No name of the author can be so.
_NAME = "= comprehension"
_FOUND = "= found"


def lower_repeated(statements: Statements, node: ast.expr) -> TypedQuery:
    """Emit the loop for a comprehension, or for `any(…)` or `all(…)`; return its result."""
    known = statements.unit.loops
    if node not in known:
        known[node] = ast.copy_location(ast.Call(ast.Name(_NAME, ast.Load()), [], []), node)
        made = _function(node)
        for part in ast.walk(made):
            if isinstance(part, ast.stmt | ast.expr) and not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        statements.unit.loop_functions[node] = made
    function = statements.unit.loop_functions[node]
    scope = statements.scope
    statements.give(_NAME, LocalFunction(function, scope))
    helper = Helper(function, statements.unit, scope, True, False, False)
    found = inline(statements, known[node], helper)
    if statements.flow.environment is not None:
        statements.flow.environment = statements.flow.environment.without(_NAME)
    return found


def _function(node: ast.expr) -> ast.FunctionDef:
    found = ast.Name(_FOUND, ast.Load())
    match node:
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            start: ast.expr = ast.List([], ast.Load())
            inner: ast.stmt = _call(found, "append", element)
        case ast.SetComp(elt=element):
            start = ast.Call(ast.Name("set", ast.Load()), [], [])
            inner = _call(found, "add", element)
        case ast.DictComp(key=key, value=value):
            start = ast.Dict([], [])
            inner = ast.Assign([ast.Subscript(found, key, ast.Store())], value)
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp(elt=element) as generator]):
            is_any = name == "any"
            test = element if is_any else ast.UnaryOp(ast.Not(), element)
            inner = ast.If(test, [ast.Return(ast.Constant(is_any))], [])
            end = ast.Return(ast.Constant(not is_any))
            return _defined([_loops(generator.generators, inner), end])
        case _:
            raise TypeError(node)
    first = ast.Assign([ast.Name(_FOUND, ast.Store())], start)
    last = ast.Return(ast.Name(_FOUND, ast.Load()))
    return _defined([first, _loops(node.generators, inner), last])


def _call(owner: ast.Name, method: str, value: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Attribute(owner, method, ast.Load()), [value], []))


def _loops(generators: Sequence[ast.comprehension], inner: ast.stmt) -> ast.stmt:
    for part in reversed(generators):
        for test in reversed(part.ifs):
            inner = ast.If(test, [inner], [])
        inner = ast.For(part.target, part.iter, [inner], [])
    return inner


def _defined(body: list[ast.stmt]) -> ast.FunctionDef:
    empty = ast.arguments([], [], None, [], [], None, [])
    return ast.FunctionDef(_NAME, empty, body, [])
