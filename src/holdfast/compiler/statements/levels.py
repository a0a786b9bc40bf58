"""How many levels of the value of an expression are its own, and how many hold no object twice.

The problem
-----------
Python can hold one object at two places of a value, and `copy.deepcopy` keeps that:

    row = [0]
    grid = [row, row]              both items are one list
    own = copy.deepcopy(grid)      both items are one list again, another one
    own[0].append(1)               Python shows the change in own[1], too

A state machine has values, so it would show the change at one place only. So a copy owns the levels
of the original in which no object stands twice, and not all levels:

    distinct(grid) = 1      the list itself; its items may be one object
    owned(own)     = 1      own.append(…) is possible, own[0].append(…) is refused (HF023)

    own = [copy.deepcopy(row) for row in grid]     each item is a copy of its own: 2 levels

Three numbers
-------------
* `owned_levels`: how many levels no name refers to. The names in the expression count, too.
* `alone_levels`: the same, if the names in the expression are not used again for their values.
  `[a, b]` is one level and those of `a` and `b`: each of the two owned all that it holds, so they
  have nothing in common. `[a, a]` is one level.
* `distinct_levels`: how many levels hold no object twice. Other names may refer to the value.

owned <= alone <= distinct. `Held` keeps the first and the last of a variable. All three are
cautious: an expression that is not listed here has one level.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.compiler.environment import EVERYTHING, Environment, Held
from holdfast.compiler.statements.level_rules import Levels, depth_of
from holdfast.compiler.statements.moves import moved_levels
from holdfast.compiler.statements.ownership import (
    has_parts_that_may_change,
    may_change,
)
from holdfast.compiler.types.types import (
    UNKNOWN,
    Type,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def is_part(node: ast.expr) -> bool:
    """Return True for the name of a part that was taken out (`parts`), which no author can
    write.
    """
    return isinstance(node, ast.Name) and not node.id.isidentifier()


def owned_levels(statements: Statements, node: ast.expr, type_: Type) -> int:
    """Return how many levels of the value of an expression no name refers to."""
    if is_part(node):
        # A part that was taken out is put back, and no other name refers to it.
        assert isinstance(node, ast.Name)
        entry = statements.entry(node.id)
        return entry.owned if isinstance(entry, Held) else 0
    taken = statements.unit.taken_levels.get(node)
    if taken is not None:
        return taken
    if not statements.is_fresh(node):
        return 0
    if not has_parts_that_may_change(type_):
        return EVERYTHING
    return max(1, levels_at(statements).alone(node))


class Stored(NamedTuple):
    """The levels of a value that becomes part of another value: owned, and alone."""

    owned: int
    alone: int


#: A part that nothing else refers to, and one that anything may refer to.
OWN: Final = Stored(EVERYTHING, EVERYTHING)
SHARED: Final = Stored(0, 0)


@dataclass(frozen=True, slots=True)
class Adding:
    """A change that adds a value to that of `name`. `before`: what was known before the names in
    the added value were shared.
    """

    statements: Statements
    name: str
    before: Environment | None

    def value(self, node: ast.expr, type_: Type) -> Stored:
        """Return the levels of a value that becomes a part."""
        if not may_change(type_):
            return OWN
        owned = max(owned_levels(self.statements, node, type_), self._moved(node))
        return Stored(owned, max(owned, self._alone(node)))

    def _put_back(self, node: ast.expr) -> Held | None:
        """Return what is known of a part that was taken out of the value, and is put back."""
        is_taken = isinstance(node, ast.Name) and node.id.startswith(
            (f"{self.name}.", f"{self.name}[")
        )
        entry = self.statements.entry(node.id) if isinstance(node, ast.Name) and is_taken else None
        return entry if isinstance(entry, Held) else None

    def items(self, node: ast.expr, type_: Type) -> Stored:
        """Return the levels of the items of a list or dict that become parts."""
        if not has_parts_that_may_change(type_):
            return OWN
        owned = max(owned_levels(self.statements, node, type_), self._moved(node))
        return Stored(max(0, owned - 1), max(0, owned - 1, self._alone(node) - 1))

    def _moved(self, node: ast.expr) -> int:
        """Return the levels that the value takes over from a name that nothing reads again."""
        if self.before is None:
            return 0
        return moved_levels(self.statements, node, node, self.before)

    def _alone(self, node: ast.expr) -> int:
        if self.statements.unit.captured is None:
            return EVERYTHING
        if (part := self._put_back(node)) is not None:
            return part.distinct
        at = levels_at(self.statements, self.before)
        # In `d["b"] = d["a"]` the value is already a part. The name of a part that was taken out
        # is its path.
        paths = [(name, f"{name}.", f"{name}[") for name in at.kept_names(node)]
        is_inside = any(self.name == path[0] or self.name.startswith(path[1:]) for path in paths)
        return 0 if is_inside else at.alone(node)


def distinct_levels(
    statements: Statements, node: ast.expr, type_: Type, before: Environment | None = None
) -> int:
    """Return how many levels of the value hold no object twice. `before`: what was known before the
    names in the expression were shared.
    """
    if statements.unit.captured is None or not has_parts_that_may_change(type_):
        return EVERYTHING
    return levels_at(statements, before).distinct(node)


def distinct_items(statements: Statements, target: ast.expr, items: ast.expr) -> int:
    """Return the distinct levels of each name that a loop over `items` gives a value."""
    return max(1, distinct_levels(statements, items, UNKNOWN) - depth_of(target, items))


def levels_at(statements: Statements, before: Environment | None = None) -> Levels:
    expressions = statements.expressions
    return Levels(statements, expressions.with_environment(before or expressions.environment))
