"""`[f(x) for x in xs if test]`, by the types of the items and of the results.

JSONata returns a single result without its list, and it flattens lists in lists. If neither an item
nor a result can be a list, `[$map($filter(…))]` is exact and fast. Otherwise the list is built with
`$reduce` and `$append`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.compiler.context import (
    COMPREHENSION,
    CONDITION,
    REFUSED_EXPRESSION,
    TypedQuery,
    fails_of,
)
from holdfast.compiler.expressions.dict_keys import with_key, written
from holdfast.compiler.expressions.displays import NO_ENTRIES, refuse_key
from holdfast.compiler.expressions.gathering import gathered
from holdfast.compiler.expressions.iteration import LoopVariable, Walk, bind, walk
from holdfast.compiler.expressions.query import (
    ComputedEntry,
    Flat,
    FunctionLiteral,
    QueryTree,
    Variable,
    invoke,
    items_of,
    mapped,
)
from holdfast.compiler.rewriting import load
from holdfast.compiler.types.types import (
    DictOf,
    ListOf,
    is_list,
    is_refused,
    may_be_list,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_list_comprehension(
    expressions: Expressions, node: ast.ListComp | ast.GeneratorExp | ast.SetComp
) -> TypedQuery:
    return _through(expressions, node, node.generators, lambda inner: inner.lower(node.elt))


def lower_dict_comprehension(expressions: Expressions, node: ast.DictComp) -> TypedQuery:
    def entry(inner: Expressions) -> TypedQuery:
        key, value = inner.lower(node.key), inner.lower(node.value)
        if is_refused(key.type, value.type):
            return REFUSED_EXPRESSION
        type_ = with_key(NO_ENTRIES, key, value.type)
        if type_ is None:
            return refuse_key(expressions, node.key, NO_ENTRIES, key)
        query = ComputedEntry(written(key), value.query)
        return TypedQuery(query, type_, fails_of(key, value))

    entries = _through(expressions, node, node.generators, entry)
    if not isinstance(entries.type, ListOf) or not isinstance(entries.type.element, DictOf):
        return REFUSED_EXPRESSION
    return TypedQuery(invoke("merge", entries.query), entries.type.element, entries.fails)


def lower_rows(expressions: Expressions, node: ast.expr) -> TypedQuery:
    """Lower `d.items()` or `enumerate(xs)` to a list of the pairs."""
    entry = ast.comprehension(ast.Name("entry", ast.Store()), node, [], is_async=0)
    name = ast.copy_location(load("entry"), node)
    return _through(expressions, node, [entry], lambda inner: inner.lower(name))


def _through(
    expressions: Expressions,
    key: ast.AST,
    generators: list[ast.comprehension],
    lower: Callable[[Expressions], TypedQuery],
) -> TypedQuery:
    """Return the list of the results of `lower` for each step of the loops. The first loop is the
    outermost.
    """
    first, *others = generators
    loop = _enter(expressions, key, first)
    if loop is None:
        return REFUSED_EXPRESSION
    inner, through, parameters, test = loop
    is_last = not others
    value = lower(inner) if is_last else _through(inner, first, others, lower)
    parts = (through.items, value, *(() if test is None else (test,)))
    if any(is_refused(part.type) for part in parts):
        return REFUSED_EXPRESSION
    if is_last:
        query = _listed(through, parameters, test, value)
        return TypedQuery(query, ListOf(value.type), fails_of(*parts))
    passes = None if test is None else test.query
    query = gathered(through.items.query, parameters, value.query, passes)
    return TypedQuery(query, value.type, fails_of(*parts))


_Loop = tuple["Expressions", Walk, tuple[Variable, ...], TypedQuery | None]


def _enter(expressions: Expressions, key: ast.AST, generator: ast.comprehension) -> _Loop | None:
    """Return the point inside one loop of a comprehension, and the conjunction of the loop's
    tests.
    """
    unit = expressions.unit
    if generator.is_async:
        help_ = "each(items, task) runs a step for each item"
        unit.refuse(generator.iter, "HF002", "`async for` has no JSONata form", help_)
        return None
    names = [part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name)]
    scope = unit.scope(expressions.scope, key, names)
    item = Variable(scope.name(names[0] if len(names) == 1 else "item", "item of"))
    position = Variable(scope.name("position", "position of"))
    through = walk(expressions, generator.iter, item, position)
    environment = expressions.environment
    for name, held in bind(expressions, generator.target, through.element):
        environment = environment.with_entry(name.id, held)
    # A comprehension inside of the key of an order, or of a branch, cannot become a loop.
    is_loop = expressions.place in ("", CONDITION, COMPREHENSION)
    place = COMPREHENSION if is_loop else expressions.place
    inner = replace(expressions, scope=scope, environment=environment, place=place)
    test = None
    if generator.ifs:
        test_node = _conjunction(generator.ifs)
        test = inner.truth(test_node)
        inner = inner.narrowed(test_node, is_true=True)
    parameters = (item, position) if through.has_position else (item,)
    return inner, through, parameters, test


def _conjunction(tests: list[ast.expr]) -> ast.expr:
    if len(tests) == 1:
        return tests[0]
    return ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])


def _listed(
    through: Walk, parameters: tuple[Variable, ...], test: TypedQuery | None, value: TypedQuery
) -> QueryTree:
    items = through.items.query
    item_type = through.items.type
    assert isinstance(item_type, ListOf)
    is_exact = not may_be_list(value.type) and (
        test is None or not (may_be_list(item_type.element) or through.has_position)
    )
    if not is_exact:
        one = items_of(value.query, is_list=is_list(value.type))
        return gathered(items, parameters, one, None if test is None else test.query)
    names = tuple(parameter.name for parameter in parameters)
    if test is not None:
        items = invoke("filter", items, FunctionLiteral(names, test.query))
    if value.query == parameters[0] and isinstance(through.element, LoopVariable):
        return items if test is None else Flat(items)
    return mapped(items, names, value.query)
