"""Reading jsonata-python's syntax tree without trusting it.

A node is an object with some sixty attributes, of which each kind of node uses a few. `checked`
makes sure that no other is set: a forgotten one (a predicate, a grouping) would silently change the
meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

# How the parser works, not what the expression means.
_BOOKKEEPING: Final = frozenset(
    {"_outer_instance", "bp", "id", "lbp", "position", "prefix", "token", "environment"}
)
_COMMON: Final = frozenset({"type", "value"})
_CHILDREN: Final = (
    "lhs",
    "rhs",
    "expr",
    "expression",
    "procedure",
    "body",
    "condition",
    "then",
    "_else",
)
_LISTS: Final = ("steps", "stages", "predicate", "expressions", "arguments", "terms")


class Refused(Exception):  # noqa: N818  # not an error: the other engine takes over
    """The closures do not know this node."""


def checked(node: Any, *known: str) -> Any:
    """The node, when nothing but its type, value and the known attributes are set."""
    for name, value in vars(node).items():
        if name in _BOOKKEEPING or name in _COMMON or name in known:
            continue
        if value is not None and value is not False and value != 0:
            raise Refused(name)
    return node


def is_lookup(tree: Any) -> bool:
    """Whether the expression only finds a value that is there: `$order.lines`, `$states.input`."""
    first, *names = tree.steps if tree.type == "path" else [tree]
    if first.type not in ("variable", "name") or first.predicate or first.stages or tree.group:
        return False
    return all(step.type == "name" and not step.predicate and not step.stages for step in names)


def walk(node: Any) -> Iterator[Any]:
    """The node and everything below it."""
    yield node
    for name in _CHILDREN:
        child = getattr(node, name, None)
        if child is not None:
            yield from walk(child)
    for name in _LISTS:
        for child in getattr(node, name, None) or ():
            yield from walk(child)
    for pair in getattr(node, "lhs_object", None) or ():
        for child in pair:
            yield from walk(child)
