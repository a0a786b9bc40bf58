"""Values that are made of the old value of the place that gets them.

    order.lines = [line for line in order.lines if line.qty]
    order.lines[0].qty += 1         # allowed: the old list is gone, each line has one place

The comprehension keeps the lines, so they have two places until the assignment: the old list and
the new one. Then nothing leads to the old list. So the new list owns what the old one owned, if

* the expression keeps parts of the old value at this place, and of no other value;
* it holds each of them once (`levels.alone_levels`: `[line, line]` owns no lines);
* nothing else led to them before: `kept = order.lines` leaves `order` one level.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.compiler.context import Chain
from holdfast.compiler.environment import Environment, Held
from holdfast.compiler.statements.levels import Stored, levels_at
from holdfast.compiler.statements.ownership import chain_of

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def replaced_levels(
    statements: Statements, target: ast.expr, value: ast.expr, before: Environment | None
) -> int:
    """Return how many levels of `value` the place `target` owns after it has got the value; 0 when
    the value is not made of the old one. `before`: what was known before the names in `value` were
    shared.
    """
    place = _source_of(target)
    chain = None if place is None else chain_of(place)
    if before is None or place is None or chain is None or statements.unit.captured is None:
        return 0
    is_call_in_place = any(isinstance(part, ast.Call) for part in ast.walk(place))
    at = levels_at(statements, before)
    if is_call_in_place or not at.is_plain(value):
        return 0
    kept = list(at.kept_chains(value))
    depth = len(chain.accesses)
    if not kept or any(
        one.name != chain.name or one.accesses[:depth] != chain.accesses for one in kept
    ):
        return 0
    if None in chain.accesses and not all(_is_at(one, place) for one in _paths(value, chain)):
        return 0
    return at.alone(value)


def replacing(
    statements: Statements, target: ast.expr, value: ast.expr, before: Environment | None
) -> Stored | None:
    """Return the levels of a value that is made of the old value at `target`, a part of a value;
    None otherwise. The name in `target` owns again what it owned before.
    """
    levels = replaced_levels(statements, target, value, before)
    if not levels:
        return None
    _own_again(statements, target, before)
    return Stored(levels, levels)


def _own_again(statements: Statements, target: ast.expr, before: Environment | None) -> None:
    place = _source_of(target)
    chain = None if place is None else chain_of(place)
    was = None if chain is None or before is None else before.entries.get(chain.name)
    entry = None if chain is None else statements.entry(chain.name)
    environment = statements.flow.environment
    if chain is not None and isinstance(was, Held) and isinstance(entry, Held):
        assert environment is not None
        known = {**environment.entries, chain.name: entry._replace(owned=was.owned)}
        statements.flow.environment = environment._replace(entries=known)


def _source_of(target: ast.expr) -> ast.expr | None:
    """Return the target as its author wrote it: the name of a part that was taken out is its path.
    None for a name that the compiler has made.
    """
    root = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    is_made = isinstance(root, ast.Name) and root.id.startswith("= ")
    return None if is_made else ast.parse(ast.unparse(target), mode="eval").body


def _paths(node: ast.AST, wanted: Chain) -> Iterator[ast.expr]:
    """Yield the paths in an expression that may lead to the place of `wanted`, or inside of it."""
    chain = chain_of(node)
    if chain is None:
        for child in ast.iter_child_nodes(node):
            yield from _paths(child, wanted)
        return
    assert isinstance(node, ast.expr)
    if chain.name == wanted.name and chain.accesses[: len(wanted.accesses)] == wanted.accesses:
        yield node


def _is_at(path: ast.expr, place: ast.expr) -> bool:
    """Return True when the path begins with the text of `place`: `rows[i]` and `rows[j]` may be
    two items.
    """
    text = ast.unparse(path)
    return text == (wanted := ast.unparse(place)) or text.startswith((f"{wanted}.", f"{wanted}["))
