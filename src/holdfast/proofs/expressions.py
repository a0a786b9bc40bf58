"""Facts read from expressions: free variables, comparisons, texts for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from holdfast.asl.jsonata.fallback import FUNCTION_NAMES
from holdfast.asl.jsonata.jsonata import JsonataError, compile_expression
from holdfast.asl.program import Json
from holdfast.asl.template import is_expression

_CACHED_TEXTS_MAX: Final = 4_096
_OPEN: Final = len("{%")
_NAME: Final = re.compile(r"\$([A-Za-z_]\w*)")
_QUOTED: Final = re.compile(r"'(?:\\.|[^'\\])*'")
#: The attributes with child nodes, in order. A variable that one of them binds is visible in those
#: after it.
_PARTS: Final = frozenset(
    {"steps", "lhs", "rhs", "lhs_object", "rhs_object", "expr", "expression", "expressions"}
    | {"procedure", "arguments", "body", "condition", "then", "_else", "next_function"}
    | {"predicate", "stages", "group", "terms", "rhs_terms", "pattern", "update", "delete"}
)
#: The functions that may give another result the next time, although the expression is the same.
_UNSTABLE: Final = frozenset({"random", "now", "millis", "uuid", "shuffle", "states", "eval"})


def tree_of(value: Json) -> Any:
    """Return the syntax tree of a text that is an expression, else None."""
    if not isinstance(value, str) or not is_expression(value):
        return None
    try:
        return compile_expression(value[_OPEN:-_OPEN].strip()).tree
    except JsonataError:
        return None


def reads(value: Json) -> frozenset[str]:
    """Return the variables that a template reads, without those for which it only tests whether
    they exist.
    """
    return frozenset().union(*(_reads_of(text) for text in _texts(value)))


def _texts(value: Json) -> Iterator[str]:
    pending: list[Json] = [value]
    while pending:
        match pending.pop():
            case str() as text:
                yield text
            case dict() as fields:
                pending.extend(fields.values())
            case list() as items:
                pending.extend(items)


@lru_cache(maxsize=_CACHED_TEXTS_MAX)
def _reads_of(text: str) -> frozenset[str]:
    tree = tree_of(text)
    if tree is None:
        return frozenset()
    asked = {node.arguments[0].value for node in nodes(tree) if _is_question(node)}
    return frozenset(_free(tree, frozenset())) - asked - {"states"}


def _is_question(node: Any) -> bool:
    return is_call(node, "exists") and node.arguments[0].type == "variable"


def is_call(node: Any, name: str, count: int = 1) -> bool:
    """Return True when the node calls the built-in function `name` with `count` arguments."""
    procedure = getattr(node, "procedure", None)
    return (
        node.type == "function"
        and procedure is not None
        and procedure.type == "variable"
        and procedure.value == name
        and len(node.arguments or ()) == count
    )


def nodes(tree: Any) -> Iterator[Any]:
    """Yield the node and all nodes below it."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(_children(node))


def _children(node: Any) -> Iterator[Any]:
    for name, value in vars(node).items():
        if value is not None and name in _PARTS:
            yield from _flat(value)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    elif hasattr(value, "steps"):
        yield value


def _free(node: Any, bound: frozenset[str]) -> Iterator[str]:
    match node.type:
        case "variable":
            if node.value and node.value not in bound | FUNCTION_NAMES | {"$"}:
                yield node.value
        case "lambda":
            names = {argument.value for argument in node.arguments or ()}
            yield from _free(node.body, bound | names)
            return
        case "bind":
            # A function may call itself by its name, so the name is bound inside it, too.
            yield from _free(node.rhs, bound | {node.lhs.value})
            return
        case _:
            pass
    yield from _free_in_order(node, bound)


def _free_in_order(node: Any, bound: frozenset[str]) -> Iterator[str]:
    """Yield the free variables. A variable that a block binds is visible in the rest of the block,
    one that a step of a path binds in the later steps.
    """
    for child in _children(node):
        yield from _free(child, bound)
        if child.type == "bind":
            bound |= {child.lhs.value}
        bound |= {
            name
            for name in (getattr(child, "focus", None), getattr(child, "index", None))
            if isinstance(name, str)
        }


def path_reads(value: Json) -> frozenset[str]:
    """Return the variables in JSONPath fields. Only fields named `….$` or `…Path` are evaluated."""
    found: set[str] = set()
    pending: list[Json] = [value]
    while pending:
        match pending.pop():
            case dict() as fields:
                for name, inner in fields.items():
                    if isinstance(inner, str) and name.endswith((".$", "Path", "Variable")):
                        found.update(_NAME.findall(_QUOTED.sub("", inner.replace("$$", ""))))
                    elif name != "Result":
                        pending.append(inner)
            case list() as items:
                pending.extend(items)
            case _:
                pass
    return frozenset(found)


def is_stable(tree: Any) -> bool:
    """Return True when the expression has the same value as long as its variables have the same
    values.
    """
    return not any(node.type == "variable" and node.value in _UNSTABLE for node in nodes(tree))


def is_certain(value: Json) -> bool:
    """Return True when a template cannot fail: it has only constants, and values that always
    exist.
    """
    return all(_is_certain(text) for text in _texts(value))


def _is_certain(text: str) -> bool:
    if not is_expression(text):
        return True
    words = text[_OPEN:-_OPEN].strip()
    return words in {"$states.input", "$states.result", "$states.errorOutput"}


def whole(value: Any) -> int | None:
    """Return the whole number in a node or a JSON value; None for another value."""
    if hasattr(value, "type"):
        if value.type != "number":
            return None
        value = value.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and value == int(value) else None


@dataclass(frozen=True, slots=True)
class LimitComparison:
    """`$variable < limit` (or <=, >, >=), where `limit` is a node."""

    variable: str
    operator: str
    limit: Any


_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NEGATED: Final = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}


def facts_of(tree: Any, *, is_true: bool) -> Iterator[LimitComparison | str]:
    """Yield the facts that follow from a condition: comparisons, and variables that exist.

    Only certain facts are returned: from the parts of an `and` that is true, and of an `or` that is
    false. In an `or`, a comparison with a missing value counts as false, so no fact follows from
    it.
    """
    if tree is None:
        return
    joined = "and" if is_true else "or"
    if tree.type == "binary" and tree.value == joined:
        for part in (tree.lhs, tree.rhs):
            for fact in facts_of(part, is_true=is_true):
                if is_true or isinstance(fact, str) or _is_there(fact.limit):
                    yield fact
    elif is_call(tree, "not"):
        yield from facts_of(tree.arguments[0], is_true=not is_true)
    elif tree.type == "block" and len(tree.expressions) == 1:
        yield from facts_of(tree.expressions[0], is_true=is_true)
    elif is_true and _is_question(tree):
        yield tree.arguments[0].value
    elif tree.type == "binary" and tree.value in _FLIPPED:
        operator = tree.value if is_true else _NEGATED[tree.value]
        if _is_plain(tree.lhs):
            yield LimitComparison(tree.lhs.value, operator, tree.rhs)
        if _is_plain(tree.rhs):
            yield LimitComparison(tree.rhs.value, _FLIPPED[operator], tree.lhs)


def _is_there(tree: Any) -> bool:
    """Return True when the expression certainly has a value: a field may be absent, but a variable
    that is read exists.
    """
    if is_call(tree, "count"):
        return True
    if tree.type == "binary":
        return _is_there(tree.lhs) and _is_there(tree.rhs)
    return tree.type == "number" or _is_plain(tree)


def _is_plain(node: Any) -> bool:
    return bool(node.type == "variable" and node.value and not getattr(node, "predicate", None))


def step_of(value: Json, variable: str) -> int | None:
    """Return by how much an assignment changes a variable: 1 for `{% $i + 1 %}`, -2 for `{% $i - 2
    %}`.
    """
    tree = tree_of(value)
    if tree is None or tree.type != "binary" or tree.value not in {"+", "-"}:
        return None
    if not _is_plain(tree.lhs) or tree.lhs.value != variable:
        return None
    by = whole(tree.rhs)
    return None if by is None else by if tree.value == "+" else -by


def plain_text(tree: Any) -> str | None:
    """Return text for people: `order.lines` for `$order.lines`; None for other expressions."""
    match tree.type:
        case "variable" if _is_plain(tree):
            return str(tree.value)
        case "path":
            parts = [_step_text(step, first=number == 0) for number, step in enumerate(tree.steps)]
            if None in parts:
                return None
            return ".".join(part for part in parts if part).removeprefix("states.")
        case _:
            return None


def _step_text(step: Any, *, first: bool) -> str | None:
    is_known = _is_plain(step) if first else step.type == "name"
    odd = any(getattr(step, name, None) for name in ("predicate", "stages", "focus", "index"))
    return str(step.value) if is_known and not odd else None
