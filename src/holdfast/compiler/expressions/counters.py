"""`Counter(items)`: a dict of how often each item is there; see `default_dicts`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.default_dicts import CountOf
from holdfast.compiler.expressions.dict_keys import KEYS, key_help, texts_of_keys, with_key, written
from holdfast.compiler.expressions.displays import NO_ENTRIES
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    ComputedEntry,
    Conditional,
    Constant,
    FunctionLiteral,
    ObjectOf,
    QueryTree,
    Variable,
    hold,
    invoke,
)
from holdfast.compiler.types.types import (
    INT,
    DictOf,
    Type,
    describe,
    element_of,
    is_numeric,
    is_refused,
    join,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_DONE, _ITEM = Variable("_done"), Variable("_item")


def lower_count_of(expressions: Expressions, node: CountOf) -> TypedQuery:
    *before, more = node.args
    start = TypedQuery(ObjectOf(()), NO_ENTRIES)
    if before:
        start = expressions.lower(before[0])
    if is_refused(start.type) or not isinstance(start.type, DictOf):
        return REFUSED_EXPRESSION
    return _of_dict(expressions, more, start) or _of_items(expressions, more, start)


def _of_dict(expressions: Expressions, more: ast.expr, start: TypedQuery) -> TypedQuery | None:
    """Add the numbers of a dict; None for anything else."""
    if isinstance(more, ast.GeneratorExp):
        return None
    with expressions.unit.trial():
        is_dict = isinstance(expressions.gone_through(more).type, DictOf)
    if not is_dict:
        return None
    given = expressions.lower(more)
    assert isinstance(given.type, DictOf)
    assert isinstance(start.type, DictOf)
    key = TypedQuery(_ITEM, given.type.key)
    type_ = with_key(start.type, key, join(start.type.value, given.type.value))
    if type_ is None:
        given_key = key_help(start.type, key.type, "key")
        help_ = f"{{{given_key}: n for key, n in {expressions.unit.text(more)}.items()}}"
        return _refused_keys(expressions, more, key.type, help_)
    if not is_numeric(type_.value):
        message = f"a Counter has numbers, and this is {describe(given.type)}"
        return expressions.unit.refused(more, "HF040", message, "{key: 1 for key in names}")

    def build(held: QueryTree) -> QueryTree:
        one = invoke("lookup", held, _ITEM)
        return _added(texts_of_keys(held), _ITEM, one, start.query)

    return TypedQuery(hold(given.query, build, "_given"), type_, fails_of(start, given))


def _of_items(expressions: Expressions, more: ast.expr, start: TypedQuery) -> TypedQuery:
    items = expressions.iterable(more)
    element = element_of(items.type)
    if element is None or is_refused(items.type):
        return REFUSED_EXPRESSION
    assert isinstance(start.type, DictOf)
    key = TypedQuery(_ITEM, element)
    type_ = with_key(start.type, key, join(start.type.value, INT))
    if type_ is None:
        given_key = key_help(start.type, key.type, "one")
        help_ = f"[{given_key} for one in {expressions.unit.text(more)}]"
        return _refused_keys(expressions, more, key.type, help_)
    query = _added(items.query, written(key), Constant(1), start.query)
    return TypedQuery(query, type_, fails_of(start, items))


def _refused_keys(expressions: Expressions, more: ast.expr, key: Type, help_: str) -> TypedQuery:
    message = f"a Counter counts {KEYS}, all of one type, and this is {describe(key)}"
    return expressions.unit.refused(more, "HF040", message, help_)


def _added(items: QueryTree, text: QueryTree, number: QueryTree, start: QueryTree) -> QueryTree:
    """Return the dict with a number more under the text of each item."""
    old = invoke("lookup", _DONE, text)
    total = Conditional(invoke("exists", old), Binary("+", old, number), number)
    longer = invoke("merge", ArrayOf((_DONE, ComputedEntry(text, total))))
    step = FunctionLiteral((_DONE.name, _ITEM.name), longer)
    return invoke("reduce", items, step, start)
