"""JSONata in a definition: reports expressions that cannot be parsed, and references to missing
data.

An expression of a state has no input document: its input is `$states.input`. So AWS refuses
expressions that read a document: a name at the top level, `$`, `$$`, and fields that `$states` does
not have here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.asl.jsonata.jsonata import JsonataError, compile_expression
from holdfast.asl.template import is_expression
from holdfast.asl.validation.report import RuleScope

_OPEN: Final = "{%"
_CLOSE: Final = "%}"
# The kinds of nodes that read the context (`$`).
_CONTEXT_KINDS: Final = frozenset({"wildcard", "descendant", "parent"})
# The attributes that contain inner nodes with the same context as the node itself.
_SAME: Final = (
    *("steps", "lhs", "rhs", "lhs_object", "rhs_object", "expr", "expression", "expressions"),
    *("procedure", "arguments", "body", "condition", "then", "_else", "next_function"),
)
# The attributes whose inner nodes have each value of the node as their context, one after the
# other.
_EACH: Final = (
    *("predicate", "stages", "group", "terms", "rhs_terms", "pattern", "update", "delete"),
)


def check_template(scope: RuleScope, value: Any, location: str) -> None:
    """Check a field of any JSON, whose texts may be expressions."""
    match value:
        case str():
            check_text(scope, value, location)
        case dict():
            for name, item in value.items():
                check_template(scope, item, f"{location}/{name}")
        case list():
            for number, item in enumerate(value):
                check_template(scope, item, f"{location}[{number}]")
        case _:
            pass


def check_text(scope: RuleScope, text: str, location: str) -> None:
    if not is_expression(text):
        if text.startswith(_OPEN):
            scope.refuse(location, f"JSONata string must start with {_OPEN} and end with {_CLOSE}")
        return None
    try:
        expression = compile_expression(text[len(_OPEN) : -len(_CLOSE)].strip())
    except JsonataError as error:
        return scope.refuse(location, error.message, "INVALID_JSONATA_EXPRESSION")
    problems = dict.fromkeys(_unsupported(expression.tree, scope.states_fields))
    for problem in problems:
        scope.refuse(location, problem, "UNSUPPORTED_JSONATA_EXPRESSION")
    return None


def _unsupported(tree: object, states_fields: frozenset[str]) -> Iterator[str]:
    """Yield one sentence for each unsupported reference. The parser limits the depth of the
    tree.
    """
    pending = [(tree, False)]
    while pending:
        node, has_context = pending.pop()
        yield from _references(node, states_fields)
        if not has_context:
            yield from _context_references(node)
        pending.extend(reversed(list(_children(node, has_context))))


def _references(node: Any, states_fields: frozenset[str]) -> Iterator[str]:
    if node.type == "variable" and node.value == "$":
        yield "Reference to '$$' is not supported."
    elif node.type == "path" and len(node.steps) > 1:
        first, second = node.steps[:2]
        is_states = first.type == "variable" and first.value == "states"
        if is_states and second.type == "name" and second.value not in states_fields:
            yield f"Field '$states.{second.value}' does not exist."


def _context_references(node: Any) -> Iterator[str]:
    name = None
    match node.type:
        case "path" if node.steps[0].type == "name":
            name = node.steps[0].value
        case "variable" if node.value == "":
            name = "$"
        case kind if kind in _CONTEXT_KINDS:
            name = node.value
        case _:
            pass
    if name is not None:
        yield f"Reference to '{name}' at the top level is not supported."


def _children(node: object, has_context: bool) -> Iterator[tuple[Any, bool]]:
    attributes = vars(node)
    for names, is_each in ((_SAME, False), (_EACH, True)):
        for name in names:
            value = attributes.get(name)
            if value is not None:
                for number, child in enumerate(_nodes(value)):
                    is_later_step = name == "steps" and number > 0
                    yield child, has_context or is_each or is_later_step


def _nodes(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _nodes(item)
    else:
        yield value
