"""Reads the syntax tree of jsonata-python, and checks that no part of it is ignored.

A node is an object with about sixty attributes, of which each kind of node uses a few. `checked`
makes sure that no other attribute is set. If one were forgotten (a predicate, a grouping), the
result would silently be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

# Attributes that only the parser needs. They do not change the result, so any value of them is
# accepted.
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
    "group",
)
_LISTS: Final = ("steps", "stages", "predicate", "expressions", "arguments", "terms")


class UnsupportedNode(Exception):  # noqa: N818  # not an error: the other engine takes over
    """The closures do not know this kind of node, so jsonata-python evaluates the expression."""


def checked(node: Any, *known: str) -> Any:
    """Return the node when it has no attributes besides its type, its value and the known ones."""
    for name, value in vars(node).items():
        if name in _BOOKKEEPING or name in _COMMON or name in known:
            continue
        if value is not None and value is not False and value != 0:
            raise UnsupportedNode(name)
    return node


def is_lookup(tree: Any) -> bool:
    """Return True when the expression only reads an existing value, such as `$order.lines` or
    `$states.input`.
    """
    first, *names = tree.steps if tree.type == "path" else [tree]
    if first.type not in ("variable", "name") or first.predicate or first.stages:
        return False
    if first.group or tree.group:
        return False
    return all(step.type == "name" and not step.predicate and not step.stages for step in names)


def walk(node: Any) -> Iterator[Any]:
    """Yield the node and all nodes below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Any) -> Iterator[Any]:
    """Yield the nodes directly below `node`."""
    for name in _CHILDREN:
        child = getattr(node, name, None)
        if child is not None:
            yield child
    for name in _LISTS:
        yield from getattr(node, name, None) or ()
    for pair in getattr(node, "lhs_object", None) or ():
        yield from pair


def names_bound_in(tree: Any) -> tuple[set[str], set[str]]:
    """Return all variables that the expression binds, and those of them that are always
    functions.
    """
    bound: set[str] = set()
    lambdas: set[str] = set()
    others: set[str] = set()
    for node in walk(tree):
        if node.type == "lambda":
            names = {str(parameter.value) for parameter in node.arguments}
            bound |= names
            others |= names
        elif node.type == "bind":
            name = str(node.lhs.value)
            bound.add(name)
            is_function = node.rhs.type == "lambda" and not node.rhs.thunk
            (lambdas if is_function else others).add(name)
    if lambdas & others:
        raise UnsupportedNode("a variable that is a function and a value")
    return bound, lambdas


def is_plain_name(step: Any) -> bool:
    if step.type != "name" or step.stages:
        return False
    checked(step)
    return True


def is_array(expr: Any) -> bool:
    return bool(expr.type == "unary" and expr.value == "[")


def ignores_context(expr: Any) -> bool:
    """Return True when a node has the same result for every item. In doubtful cases the answer is
    False.
    """
    kind: str = expr.type
    match kind:
        case "number" | "string" | "value":
            return True
        case "variable":
            return str(expr.value) != ""
        case "path":
            first, *rest = expr.steps
            return ignores_context(first) and all(map(is_plain_name, rest))
        case "binary":
            return ignores_context(expr.lhs) and ignores_context(expr.rhs)
        case "function":
            return all(map(ignores_context, expr.arguments))
        case _:
            return False
