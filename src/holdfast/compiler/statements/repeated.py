"""Comprehensions with steps: `[fetch(url) for url in urls]` becomes a loop before the statement.

    pages = [fetch(url) for url in urls if url]       found = []
                                                      for url in urls:
                                                ->        if url:
                                                              found.append(fetch(url))
                                                      pages = found

Python calls one step after the other, and so does the loop. The loop is the body of a helper, so
that its names are its own (`inlining.py`). `any(…)` and `all(…)` stop where Python stops.

Python evaluates the first iterable outside of the comprehension. So `[vat(n) for n in range(n)]`
gives the iterable to the helper as an argument, because `n` is another name in its body.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.compiler.context import Helper, TypedQuery
from holdfast.compiler.environment import LocalFunction
from holdfast.compiler.rewriting import load, located, parameters_named
from holdfast.compiler.statements.inlining import inline

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: The names of the function that is made, of its parameter and of the list in it. No name of the
#: author can be one of them.
_NAME = "= comprehension"
_ITEMS = "= items"
_FOUND = "= found"
#: The key of an item of a dict, which Python evaluates before the value.
_KEY = "= key"


def lower_repeated(statements: Statements, node: ast.expr) -> TypedQuery:
    """Emit the loop for a comprehension, or for `any(…)` or `all(…)`; return its result."""
    known = statements.unit.loops
    if node not in known:
        given = _first_given(node)
        known[node] = located(ast.Call(load(_NAME), given, []), node)
        made = _function(node, is_given=bool(given))
        statements.unit.loop_functions[node] = located(made, node)
    for argument in known[node].args:
        statements.prepare(argument)
    function = statements.unit.loop_functions[node]
    scope = statements.scope
    statements.give(_NAME, LocalFunction(function, scope))
    helper = Helper(function, statements.unit, scope, True, False, False)
    found = inline(statements, known[node], helper)
    if statements.flow.environment is not None:
        statements.flow.environment = statements.flow.environment.without(_NAME)
    return found


def _first_given(node: ast.expr) -> list[ast.expr]:
    """Return the argument for the first iterable, if it reads a name of the comprehension."""
    generators = _generators(node)
    own = {
        one.id for part in generators for one in ast.walk(part.target) if isinstance(one, ast.Name)
    }
    first = generators[0].iter
    if not any(isinstance(one, ast.Name) and one.id in own for one in ast.walk(first)):
        return []
    return [ast.Call(load("list"), [first], [])]


def _generators(node: ast.expr) -> list[ast.comprehension]:
    match node:
        case ast.Call(args=[ast.GeneratorExp(generators=generators)]):
            return generators
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return node.generators
        case _:
            raise TypeError(node)


def _function(node: ast.expr, *, is_given: bool) -> ast.FunctionDef:
    found = load(_FOUND)
    generators = _generators(node)
    if is_given:
        first = generators[0]
        items = load(_ITEMS)
        generators = [ast.comprehension(first.target, items, first.ifs, 0), *generators[1:]]
    match node:
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            start: ast.expr = ast.List([], ast.Load())
            inner = [_call(found, "append", element)]
        case ast.SetComp(elt=element):
            start = ast.Call(load("set"), [], [])
            inner = [_call(found, "add", element)]
        case ast.DictComp(key=key, value=value):
            start = ast.Dict([], [])
            name = ast.copy_location(load(_KEY), key)
            item = ast.Subscript(found, name, ast.Store())
            inner = [ast.Assign([ast.Name(_KEY, ast.Store())], key), ast.Assign([item], value)]
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp(elt=element)]):
            is_any = name == "any"
            test = element if is_any else ast.UnaryOp(ast.Not(), element)
            inner = [ast.If(test, [ast.Return(ast.Constant(is_any))], [])]
            end = ast.Return(ast.Constant(not is_any))
            return _defined([_loops(generators, inner), end], is_given=is_given)
        case _:
            raise TypeError(node)
    made = ast.Assign([ast.Name(_FOUND, ast.Store())], start)
    last = ast.Return(load(_FOUND))
    return _defined([made, _loops(generators, inner), last], is_given=is_given)


def _call(owner: ast.Name, method: str, value: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Attribute(owner, method, ast.Load()), [value], []))


def _loops(generators: Sequence[ast.comprehension], body: list[ast.stmt]) -> ast.stmt:
    for part in reversed(generators):
        for test in reversed(part.ifs):
            body = [ast.If(test, body, [])]
        body = [ast.For(part.target, part.iter, body, [])]
    return body[0]


def _defined(body: list[ast.stmt], *, is_given: bool) -> ast.FunctionDef:
    parameters = parameters_named(*((_ITEMS,) if is_given else ()))
    return ast.FunctionDef(_NAME, parameters, body, [])
