"""The calls of `dict(…)`: with a dict, with pairs, with keywords."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.default_dicts import CountOf
from holdfast.compiler.expressions.dict_keys import KEYS, written
from holdfast.compiler.expressions.displays import NO_ENTRIES
from holdfast.compiler.expressions.query import (
    ArrayOf,
    ComputedEntry,
    Constant,
    ItemOf,
    ObjectOf,
    Variable,
    invoke,
    mapped,
)
from holdfast.compiler.types.types import (
    NEVER,
    STR,
    DictOf,
    TupleOf,
    element_of,
    is_refused,
    join,
    join_all,
    key_type,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_dict_call(lowering: Expressions, node: ast.Call) -> TypedQuery:
    """Lower `dict(d)`, `dict(pairs)` and `dict(a=1)`, and the first two with keywords."""
    given = [(str(word.arg), lowering.lower(word.value)) for word in node.keywords]
    if len(node.args) > 1 or any(word.arg is None for word in node.keywords):
        return _refused(lowering, node, "takes one dict or list of pairs", "{**some, **other}")
    named = ObjectOf(tuple((name, value.query) for name, value in given))
    type_ = DictOf(join_all(value.type for _, value in given), key=STR if given else NEVER)
    fails = fails_of(*(value for _, value in given))
    if is_refused(type_):
        return REFUSED_EXPRESSION
    if not node.args:
        return TypedQuery(named, type_, fails)
    base = _entries(lowering, node, node.args[0])
    if not isinstance(base.type, DictOf):
        return REFUSED_EXPRESSION
    if not given:
        return base
    query = invoke("merge", ArrayOf((base.query, named)))
    joined = join(base.type, type_)
    if not isinstance(joined, DictOf):
        return _refused(lowering, node, "has keys of one type", "{**some, **other}")
    return TypedQuery(query, joined, fails | base.fails)


def _entries(lowering: Expressions, node: ast.Call, given: ast.expr) -> TypedQuery:
    is_dict = isinstance(given, ast.Name | ast.Attribute | ast.Dict | ast.DictComp | ast.BoolOp)
    if is_dict or isinstance(given, CountOf):
        value = lowering.lower(given)
        if isinstance(value.type, DictOf) or is_refused(value.type):
            return value
    pairs = lowering.iterable(given)
    match element_of(pairs.type):
        case TupleOf((key, value_type)) if (own := key_type(key)) is not None:
            pair = Variable("_pair")
            text = written(TypedQuery(ItemOf(pair, Constant(0)), own))
            entry = ComputedEntry(text, ItemOf(pair, Constant(1)))
            rows = mapped(pairs.query, (pair.name,), entry)
            made = DictOf(value_type, key=own)
            return TypedQuery(invoke("merge", rows), made, pairs.fails)
        case type_ if type_ == NEVER:
            return TypedQuery(ObjectOf(()), NO_ENTRIES, pairs.fails)
        case _ if is_refused(pairs.type):
            return REFUSED_EXPRESSION
        case _:
            help_ = "dict(zip(names, amounts)), {key: value for …}"
            return _refused(lowering, node, f"needs pairs, whose keys are {KEYS}", help_)


def _refused(lowering: Expressions, node: ast.Call, why: str, help_: str) -> TypedQuery:
    return lowering.unit.refused(node, "HF002", f"`dict()` {why}", help_)
