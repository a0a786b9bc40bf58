"""Assigns a value to a target: to a name, or to names in the form of a tuple."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.environment import EVERYTHING
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    ItemOf,
    QueryTree,
    Variable,
    failure,
    invoke,
)
from holdfast.compiler.expressions.subscripts import rest_of
from holdfast.compiler.ir import RunParallel, Target
from holdfast.compiler.library_calls import is_caught
from holdfast.compiler.statements.late_errors import emit_step
from holdfast.compiler.statements.levels import distinct_levels
from holdfast.compiler.statements.named_failures import require, text_of_size
from holdfast.compiler.statements.ownership import chain_of
from holdfast.compiler.steps.hoisting import hoist_inside
from holdfast.compiler.types.types import (
    REFUSED,
    STR,
    ListOf,
    TupleOf,
    Type,
    describe,
    is_refused,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

_Names = list[tuple[ast.Name, TypedQuery]]


def give(
    statements: Statements,
    node: ast.stmt,
    target: ast.expr,
    value: TypedQuery,
    distinct: int = 1,
) -> None:
    """Assign a value that has been computed. `node` is the whole statement; `distinct` the levels
    of the value that hold no object twice.
    """
    names = _named(statements, target, value)
    _emit(statements, node, names)
    for name, part in names:
        levels = distinct if isinstance(target, ast.Name) else _of_part(distinct)
        statements.hold(name.id, part.type, distinct=levels)


def _of_part(distinct: int) -> int:
    """Return the distinct levels of a part of a value. It may be several levels below the value."""
    return EVERYTHING if distinct == EVERYTHING else 1


def _emit(statements: Statements, node: ast.stmt, names: _Names) -> None:
    values = tuple((statements.scope.name(name.id), part) for name, part in names)
    if values and not any(is_refused(part.type) for _, part in values):
        statements.assign(node, *values)


def held(statements: Statements, node: ast.stmt, value: TypedQuery) -> TypedQuery:
    """Return `value` in a variable, so that code which reads it several times computes it only
    once.
    """
    if isinstance(value.query, Variable | Constant) or is_refused(value.type):
        return value
    variable = statements.scope.name("parts", (node, "parts"))
    statements.assign(node, (variable, value))
    return TypedQuery(Variable(variable), value.type)


def lower_unpacking(
    statements: Statements, node: ast.stmt, target: ast.Tuple | ast.List, value: ast.expr
) -> None:
    """Lower `a, b = value`, where all parts of the target are names."""
    if isinstance(value, ast.Call) and statements.is_durable(value):
        _unpack_step(statements, node, target, value)
        return
    before = statements.flow.environment
    whole = statements.value(value)
    if _has_rest(target):
        distinct = distinct_levels(statements, value, whole.type, before)
        _unpack_rest(statements, node, target, held(statements, node, whole), distinct)
        return
    pairs = _side_by_side(target, value)
    if pairs is not None:
        lowered = [(part, inner, statements.expressions.lower(inner)) for part, inner in pairs]
        levels = [
            (
                statements.owned(inner, found.type),
                distinct_levels(statements, inner, found.type, before),
            )
            for _, inner, found in lowered
        ]
        names: _Names = [(part, found) for part, _, found in lowered]
    else:
        names = _named(statements, target, held(statements, node, whole))
        distinct = _of_part(distinct_levels(statements, value, whole.type, before))
        levels = [(0, distinct)] * len(names)
    _emit(statements, node, names)
    for (name, part), (owned, distinct) in zip(names, levels, strict=True):
        statements.hold(name.id, part.type, owned=owned, distinct=distinct)


def _has_rest(target: ast.Tuple | ast.List) -> bool:
    return any(isinstance(part, ast.Starred) for part in target.elts)


def _unpack_rest(
    statements: Statements,
    node: ast.stmt,
    target: ast.Tuple | ast.List,
    whole: TypedQuery,
    distinct: int,
) -> None:
    """Lower `first, *rest = xs` and `*rest, last = xs`."""
    before = next(n for n, part in enumerate(target.elts) if isinstance(part, ast.Starred))
    rest, least = target.elts[before], len(target.elts) - 1
    assert isinstance(rest, ast.Starred)
    if not isinstance(whole.type, ListOf):
        if not is_refused(whole.type):
            message = f"`*` takes the rest of a list, and this is {describe(whole.type)}"
            statements.unit.refuse(rest, "HF020", message, "first, rest = xs[0], xs[1:]")
        refuse_names(statements, target)
        return
    names: _Names = []
    is_checked = _checked_by_name(statements, target, whole.query, least, is_least=True)
    for place, part in enumerate(target.elts):
        index = place if place < before else place - least - 1
        query: QueryTree = ItemOf(whole.query, Constant(index))
        type_: Type = whole.type.element
        if part is rest:
            query = rest_of(whole.query, type_, before, least - before)
            type_ = ListOf(type_)
        if not place and not is_checked:
            # Put the check into the first value: all values are computed before any is assigned.
            size = invoke("count", whole.query)
            wrong = failure(f"ValueError: {statements.unit.text(target)} has {least} parts or more")
            query = Conditional(Binary(">=", size, Constant(least)), query, wrong)
        fails = whole.fails if is_checked else whole.fails | {"ValueError"}
        value_of_part = TypedQuery(query, type_, fails)
        names += _named(statements, rest.value if part is rest else part, value_of_part)
    _emit(statements, node, names)
    for name, found in names:
        owned = int(name is rest.value)
        statements.hold(name.id, found.type, owned=owned, distinct=_of_part(distinct))


def is_flat(target: ast.Tuple | ast.List) -> bool:
    """Return True when all parts of the target are names, which get their values together."""
    parts = (part.value if isinstance(part, ast.Starred) else part for part in target.elts)
    return all(isinstance(part, ast.Name) for part in parts)


def is_exchange(target: ast.Tuple | ast.List, value: ast.expr) -> bool:
    """Return True for `xs[i], xs[j] = xs[j], xs[i]`: parts of names that change places."""
    if not isinstance(value, ast.Tuple) or not all(map(chain_of, target.elts)):
        return False
    chains = [chain for part in target.elts if (chain := chain_of(part)) is not None]
    roots = {chain.name for chain in chains}
    keys = {
        name.id
        for part in target.elts
        for key in ast.walk(part)
        if isinstance(key, ast.Subscript)
        for name in ast.walk(key.slice)
        if isinstance(name, ast.Name)
    }
    is_same = sorted(map(ast.unparse, target.elts)) == sorted(map(ast.unparse, value.elts))
    return is_same and all(chain.accesses for chain in chains) and not roots & keys


def _side_by_side(
    target: ast.Tuple | ast.List, value: ast.expr
) -> list[tuple[ast.Name, ast.expr]] | None:
    """Return each name of `a, b = b, a` with its value, which needs no tuple."""
    if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
        return None
    if any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts)):
        return None
    pairs = zip(target.elts, value.elts, strict=True)
    return [(part, inner) for part, inner in pairs if isinstance(part, ast.Name)]


def _unpack_step(
    statements: Statements, node: ast.stmt, target: ast.Tuple | ast.List, value: ast.Call
) -> None:
    hoist_inside(statements, value)
    found = statements.lower_step(value)
    if found is None:
        refuse_names(statements, target)
        return
    action, type_ = found
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    is_plain = isinstance(type_, TupleOf) and len(type_.elements) == len(target.elts) == len(names)
    if is_plain and isinstance(type_, TupleOf):
        targets = tuple(Target(statements.scope.name(name), n) for n, name in enumerate(names))
        emit_step(statements, statements.origin(node), value, found, targets)
        for name, part in zip(names, type_.elements, strict=True):
            # A branch may return a list that belongs to the function around it. So the name is not
            # the only one that refers to the list, and must not change it in place.
            owned = 0 if isinstance(action, RunParallel) else EVERYTHING
            distinct = _of_part(distinct_levels(statements, value, type_))
            statements.hold(name, part, owned=owned, distinct=distinct)
        return
    variable = statements.scope.name("parts", (node, "parts"))
    emit_step(statements, statements.origin(node), value, found, (Target(variable),))
    distinct = distinct_levels(statements, value, type_)
    whole = TypedQuery(Variable(variable), type_)
    if _has_rest(target):
        _unpack_rest(statements, node, target, whole, distinct)
    else:
        give(statements, node, target, whole, distinct)


def _named(statements: Statements, target: ast.expr, value: TypedQuery) -> _Names:
    """Return each name of `target` with its part of `value`."""
    match target:
        case ast.Name():
            return [(target, value)]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            if not is_refused(value.type):
                return _parts(statements, target, parts, value)
            refuse_names(statements, target)
            return []
        case _:
            refuse_target(statements, target)
            return []


def _parts(
    statements: Statements, target: ast.expr, parts: list[ast.expr], value: TypedQuery
) -> _Names:
    count = len(parts)
    queries: list[QueryTree] = [ItemOf(value.query, Constant(place)) for place in range(count)]
    fails = value.fails
    match value.type:
        case TupleOf(elements) if len(elements) == count:
            types = elements
        case ListOf(element) if count:
            types = (element,) * count
            size = Binary("=", invoke("count", value.query), Constant(count))
            wrong = failure(f"ValueError: {statements.unit.text(target)} has {count} parts")
            if not _checked_by_name(statements, target, value.query, count):
                # Put the check into the first value. All values are computed before any name is
                # assigned, so a failed check leaves every name unchanged.
                queries[0] = Conditional(size, queries[0], wrong)
                fails = fails | {"ValueError"}
        case type_:
            message = f"this gives {describe(type_)}, which has not {count} parts"
            help_ = "take it as one value, or annotate the task `-> tuple[A, B]`"
            statements.unit.refuse(target, "HF040", message, help_)
            refuse_names(statements, target)
            return []
    found: _Names = []
    for part, query, type_ in zip(parts, queries, types, strict=True):
        found += _named(statements, part, TypedQuery(query, type_, fails))
    return found


def _checked_by_name(
    statements: Statements,
    target: ast.expr,
    items: QueryTree,
    count: int,
    *,
    is_least: bool = False,
) -> bool:
    """Emit the check of the number of items as a Choice, if a handler names its ValueError."""
    if not is_caught(statements.expressions, "ValueError"):
        return False
    size = invoke("count", items)
    test = Binary(">=" if is_least else "=", size, Constant(count))
    text = text_of_size(size, count, is_least=is_least)
    require(statements, target, test, ValueError, ((), TypedQuery(text, STR)))
    return True


def refuse_target(statements: Statements, target: ast.expr) -> None:
    statements.unit.refuse(
        target,
        "HF020",
        "cannot assign to this target in a workflow "
        "(values are JSON snapshots, not shared objects)",
        _target_help(statements, target),
    )
    refuse_names(statements, target)


def _target_help(statements: Statements, target: ast.expr) -> str:
    match target:
        case ast.Attribute(value=ast.Name(id=name), attr=field):
            return f'own = {name}.model_copy(update={{"{field}": …}})'
        case ast.Subscript(value=ast.Subscript() as inner, slice=key):
            item = statements.unit.text(inner)
            return f"{item} = {{**{item}, {statements.unit.text(key)}: …}}"
        case ast.Subscript(value=base):
            text = statements.unit.text(base)
            return f"items = list({text}), and change `items`"
        case _:
            return "build a new value in a @pure function, and give it to a name"


def refuse_names(statements: Statements, target: ast.expr) -> None:
    """Assign placeholders to the names of a refused target, so that their uses are not refused
    again.
    """
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            statements.hold(node.id, REFUSED)
