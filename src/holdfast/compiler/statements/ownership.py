"""How many levels of a value a name owns, so that they may be changed in place.

Python shows a change through every name of the changed object. A state
machine has values, not references. So a part of a value may be changed only while no other name
refers to that part:

    order.lines.append(line)      needs two levels: the order, and the list in it
    lines = order.lines           from here on `order` owns one level: the list has a second name
    order.status = "paid"         needs one level, so it is still possible

A parameter of a workflow and the result of a task own all their levels, because they were made from
JSON. A list that is written out owns its own level, and the levels of its items if these are new
(`levels`).
`chains_in` finds the parts that an expression may keep. The rules are cautious: a value whose type
has no parts that can be changed (text, numbers, tuples of them) never counts as shared.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Final

from holdfast.compiler.context import Captured, Chain
from holdfast.compiler.environment import EVERYTHING, Environment, Held
from holdfast.compiler.statements.aliases import IsDurable, captured_names
from holdfast.compiler.statements.local_names import local_names
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    UNKNOWN,
    DictOf,
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    SetOf,
    Simple,
    TextForm,
    TextOf,
    TupleOf,
    Type,
    TypedDictOf,
    Union,
    is_refused,
)

#: Functions whose result keeps the items of their arguments, and not the arguments themselves.
_COPIERS: Final = frozenset(
    {"dict", "enumerate", "list", "replace", "reversed", "set", "sorted", "tuple"}
)


def may_change(type_: Type) -> bool:
    """Return True when Python can change such a value, or a part of it, in place."""
    match type_:
        case TextOf() | TextForm() | EnumOf() | ErrorOf():
            return False
        case Simple():
            return type_ == UNKNOWN
        case ListOf(element, is_tuple=True) | SetOf(element, is_frozen=True):
            return may_change(element)
        case TupleOf(elements) | Union(elements):
            return any(map(may_change, elements))
        case _:
            return not is_refused(type_)


def has_parts_that_may_change(type_: Type) -> bool:
    """Return True when Python can change something inside of such a value in place."""
    return any(map(may_change, _parts_of(type_)))


def _parts_of(type_: Type) -> Iterator[Type]:
    match type_:
        case TypedDictOf():
            yield from type_.fields().values()
        case ListOf(part) | SetOf(part) | DictOf(part):
            yield part
        case TupleOf(parts):
            yield from parts
        case ModelOf(model):
            yield from (field.type for field in fields_of(model).values())
        case Union(members):
            for member in members:
                yield from _parts_of(member)
        case _ if may_change(type_):
            yield UNKNOWN


def type_along(type_: Type, accesses: tuple[str | None, ...]) -> Type:
    """Return the type of a part of a value; unknown where the accesses do not say it."""
    for access in accesses:
        match type_:
            case ModelOf(model) if access is not None and access in fields_of(model):
                type_ = fields_of(model)[access].type
            case ListOf(part) | DictOf(part) if access is None and part != UNKNOWN:
                type_ = part
            case _:
                return UNKNOWN
    return type_


# The values that an expression keeps.


def chain_of(node: ast.AST) -> Chain | None:
    """Return the name and the accesses of `order.lines[0]`; None for another node."""
    accesses: list[str | None] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return None
        accesses.insert(0, node.attr if isinstance(node, ast.Attribute) else None)
        node = node.value
    return Chain(node.id, tuple(accesses)) if isinstance(node, ast.Name) else None


def chains_in(node: ast.AST, is_durable: IsDurable, *, is_inner: bool = False) -> Iterator[Chain]:
    """Yield the parts of names in an expression, outside of durable calls, which get copies."""
    chain = chain_of(node)
    if chain is not None:
        yield chain._replace(is_inner=is_inner)
        return
    inner: list[tuple[ast.AST, bool]]
    match node:
        case ast.Call() if is_durable(node):
            return
        case ast.FunctionDef() | ast.Lambda():
            own = local_names(node)
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            found = (chain for part in body for chain in chains_in(part, is_durable))
            yield from (chain for chain in found if chain.name not in own)
            return
        case ast.Call(
            func=ast.Attribute(value=receiver, attr=method), args=arguments, keywords=keywords
        ):
            for chain in chains_in(receiver, is_durable, is_inner=True):
                yield chain._replace(method=method)
            inner = [(part, False) for part in arguments]
            inner += [(keyword.value, False) for keyword in keywords]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            copies = name in _COPIERS
            inner = [(part, copies) for part in arguments]
            inner += [(keyword.value, False) for keyword in keywords]
        case ast.Subscript(value=base, slice=ast.Slice()) | ast.Starred(value=base):
            inner = [(base, True)]
        case ast.comprehension(iter=items):
            inner = [(items, True)]
        case _:
            inner = [(part, False) for part in ast.iter_child_nodes(node)]
    for part, is_part_inner in inner:
        yield from chains_in(part, is_durable, is_inner=is_part_inner)


def gives_parts(function: ast.FunctionDef | ast.Lambda, is_durable: IsDurable) -> bool:
    """Return True when a function may return its argument, or a part of it."""
    own = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    return any(chain.name in own for part in body for chain in chains_in(part, is_durable))


def shared_levels(environment: Environment, chain: Chain) -> int:
    """Return how many levels the chain's name still owns when an expression keeps the chain."""
    entry = environment.entries.get(chain.name)
    if not isinstance(entry, Held):
        return EVERYTHING
    return _levels(entry.type, chain)


def _levels(type_: Type, chain: Chain) -> int:
    found = type_along(type_, chain.accesses)
    # A bare name is the business of `aliases.kept_names`, so here only its parts count.
    is_inner = chain.is_inner or not chain.accesses
    if isinstance(found, ModelOf) and chain.method not in ("", "model_copy"):
        is_inner = False
    if not (has_parts_that_may_change(found) if is_inner else may_change(found)):
        return EVERYTHING
    return len(chain.accesses) + (1 if is_inner else 0)


def captured_by(
    function: ast.FunctionDef, is_step: IsDurable, pasted: Collection[ast.FunctionDef]
) -> Captured:
    """Return what the branches and local functions of `function` may keep. The body of each
    `pasted` function is lowered as statements of `function`.
    """
    inside = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node not in (function, *pasted)
    ]
    chains = {chain for node in inside for chain in chains_in(node, is_step)}
    return Captured(captured_names(function, is_step, pasted), tuple(chains))


def captured_levels(captured: Captured, name: str, type_: Type) -> int:
    """Return how many levels of its value a name can own beside the branches that read it."""
    if name in captured.names:
        return 0
    found = (_levels(type_, chain) for chain in captured.chains if chain.name == name)
    return min(found, default=EVERYTHING)
