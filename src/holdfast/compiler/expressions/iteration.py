"""The lists that a `for` iterates over, in loops and comprehensions, and the names that each step
gives a value.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.compiler.context import Lowering, TypedQuery, fails_of
from holdfast.compiler.environment import Held
from holdfast.compiler.expressions.dict_keys import keys_of, read, texts_of_keys
from holdfast.compiler.expressions.enum_values import members_in
from holdfast.compiler.expressions.outside import CONSTANT_VALUES_MAX, from_outside
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    ItemOf,
    QueryTree,
    RangeOf,
    RefusedQuery,
    Variable,
    failure,
    hold,
    invoke,
    item_of,
    mapped,
)
from holdfast.compiler.expressions.unknowns import as_kind, items_of_any
from holdfast.compiler.types.types import (
    INT,
    NEVER,
    REFUSED,
    STR,
    UNKNOWN,
    DictOf,
    ListOf,
    SetOf,
    TupleOf,
    Type,
    describe,
    element_of,
    is_refused,
    is_text,
    may_be_list,
)

Element: TypeAlias = "LoopVariable | LazyTuple"


@dataclass(frozen=True, slots=True)
class LoopVariable:
    query: QueryTree
    type: Type


@dataclass(frozen=True, slots=True)
class LazyTuple:
    """A tuple that is built only if the expression needs it as a value."""

    parts: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """One iteration. `items` is evaluated once; `element` is one item, which may be read by its
    position.
    """

    items: TypedQuery
    element: Element
    has_position: bool = False


def walk(lowering: Lowering, node: ast.expr, item: QueryTree, position: QueryTree) -> Walk:
    """Return the list behind an iterable expression, and its element, which `item` and `position`
    read.
    """
    match node:
        case ast.Call(
            func=ast.Name(id="enumerate"),
            args=[items],
            keywords=[ast.keyword(arg="start", value=start)],
        ) if lowering.is_builtin("enumerate"):
            return _enumerate(lowering, [items, start], item, position)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if lowering.is_builtin(
            name
        ):
            if name == "enumerate" and len(arguments) in (1, 2):
                return _enumerate(lowering, arguments, item, position)
            if name == "range" and len(arguments) in (1, 2):
                return _plain(_range(lowering, arguments), item)
            if name == "range" and len(arguments) == 3:
                return _plain(_range_by_step(lowering, node, arguments), item)
            if name == "reversed" and len(arguments) == 1:
                return _plain(_reversed(lowering, arguments[0]), item)
        case ast.Call(func=ast.Attribute(value=base, attr="items"), args=[], keywords=[]):
            mapping = lowering.lower(base)
            if mapping.type == UNKNOWN:
                mapping = as_kind(mapping, "object", "AttributeError")
            if isinstance(mapping.type, DictOf):
                return _items(mapping, mapping.type.value, item)
        case ast.Name() | ast.Attribute() if lowering.is_outside(node):
            members = members_in(lowering, node) or _range_outside(lowering, node)
            if members is not None:
                return _plain(members, item)
    return _plain(_list(lowering, node, lowering.gone_through(node)), item)


def _range_outside(lowering: Lowering, node: ast.expr) -> TypedQuery | None:
    """Return the numbers of a range of the author's module; None for any other object."""
    found = lowering.unit.outside(node)
    match found:
        case range(step=1):
            query = RangeOf(Constant(found.start), Constant(found.stop - 1))
            return TypedQuery(query, ListOf(INT))
        case range():
            return from_outside(lowering.unit, node, list(found[: CONSTANT_VALUES_MAX + 1]))
        case _:
            return None


def _plain(items: TypedQuery, item: QueryTree) -> Walk:
    return Walk(items, LoopVariable(item, element_of(items.type) or REFUSED))


def _list(lowering: Lowering, node: ast.expr, value: TypedQuery) -> TypedQuery:
    match value.type:
        case ListOf(element):
            return TypedQuery(value.query, ListOf(element), value.fails)
        case SetOf(element) if node in lowering.unit.unordered:
            return TypedQuery(value.query, ListOf(element), value.fails)
        case SetOf():
            lowering.unit.refuse(
                node,
                "HF002",
                "a set has an order of its own in every run",
                f"sorted({lowering.unit.text(node)})",
            )
            return TypedQuery(ArrayOf(()), ListOf(REFUSED))
        case TupleOf():
            return TypedQuery(value.query, ListOf(element_of(value.type) or REFUSED), value.fails)
        case DictOf():
            return keys_of(value)
        case type_ if type_ == NEVER:
            return TypedQuery(value.query, ListOf(NEVER), value.fails)
        case type_ if type_ == UNKNOWN:
            return items_of_any(value)
        case type_ if is_text(type_):
            return TypedQuery(characters(value.query), ListOf(STR), value.fails)
        case type_ if is_refused(type_):
            return TypedQuery(ArrayOf(()), ListOf(REFUSED))
    lowering.unit.refuse(
        node,
        "HF040",
        f"cannot iterate over {describe(value.type)} in a workflow",
        "iterate over a list, a dict, range(…), enumerate(…) or zip(…); annotate the type",
    )
    return TypedQuery(ArrayOf(()), ListOf(REFUSED))


def characters(text: QueryTree) -> QueryTree:
    """Return the characters of a text. `$split` by "" would cut a character outside of the Basic
    Multilingual Plane into two.
    """

    def build(held: QueryTree) -> QueryTree:
        places = RangeOf(Constant(0), before(invoke("length", held)))
        one = invoke("substring", held, Variable("_n"), Constant(1))
        return mapped(places, ("_n",), one)

    return hold(text, build, "_text")


def _enumerate(
    lowering: Lowering, arguments: list[ast.expr], item: QueryTree, position: QueryTree
) -> Walk:
    inner = walk(lowering, arguments[0], item, position)
    if len(arguments) == 1:
        return Walk(
            inner.items, LazyTuple((LoopVariable(position, INT), inner.element)), has_position=True
        )
    start = require_int(lowering, arguments[1])
    if not isinstance(start.query, Constant) and not is_refused(start.type):
        message = "enumerate() starts at a constant in a workflow"
        lowering.unit.refuse(arguments[1], "HF002", message, "enumerate(lines, 1)")
    number = LoopVariable(Binary("+", position, start.query), INT)
    return Walk(inner.items, LazyTuple((number, inner.element)), has_position=True)


def _range(lowering: Lowering, arguments: list[ast.expr]) -> TypedQuery:
    bounds = [require_int(lowering, argument) for argument in arguments]
    first = bounds[0].query if len(bounds) == 2 else Constant(0)
    last = before(bounds[-1].query)
    return TypedQuery(RangeOf(first, last), ListOf(INT), fails_of(*bounds))


def _range_by_step(lowering: Lowering, node: ast.expr, arguments: list[ast.expr]) -> TypedQuery:
    """Lower `range(9, 0, -3)`: count the steps from 0, and multiply each number by the step."""
    first, last, step = (require_int(lowering, argument) for argument in arguments)
    if is_refused(first.type, last.type, step.type):
        return TypedQuery(ArrayOf(()), ListOf(REFUSED))
    if step.query == Constant(0):
        message = "the step of a range is not zero"
        return lowering.unit.refused(node, "HF002", message, "range(0, n, 2)")
    step = checked_step(step)

    def counted(start: QueryTree, by: QueryTree) -> QueryTree:
        distance = Binary("-", last.query, start)
        steps = invoke("ceil", Binary("/", distance, by))
        number = Variable("_n")
        at = Binary("+", start, Binary("*", number, by))
        return mapped(RangeOf(Constant(0), before(steps)), ("_n",), at)

    query = hold(
        first.query, lambda start: hold(step.query, lambda by: counted(start, by), "_by"), "_first"
    )
    return TypedQuery(query, ListOf(INT), fails_of(first, last, step))


def checked_step(step: TypedQuery) -> TypedQuery:
    """Return the step of a range, or Python's error if it is zero."""
    if isinstance(step.query, Constant):
        return step
    wrong = failure("ValueError: range() arg 3 must not be zero")
    query = hold(
        step.query, lambda held: Conditional(Binary("=", held, Constant(0)), wrong, held), "_step"
    )
    return TypedQuery(query, INT, step.fails | {"ValueError"})


def _reversed(lowering: Lowering, node: ast.expr) -> TypedQuery:
    """Lower `reversed` of a list, a tuple, a dict or a range, as in Python."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        items = lowering.iterable(node)
    else:
        items = _list(lowering, node, lowering.lower(node))
    return TypedQuery(invoke("reverse", items.query), items.type, items.fails)


def before(number: QueryTree) -> QueryTree:
    if isinstance(number, Constant) and isinstance(number.value, int):
        return Constant(number.value - 1)
    return Binary("-", number, Constant(1))


def require_int(lowering: Lowering, node: ast.expr) -> TypedQuery:
    value = lowering.lower(node)
    if value.type != INT and not is_refused(value.type):
        lowering.unit.refuse(
            node, "HF040", f"this must be an int, not {describe(value.type)}", "round(x), len(xs)"
        )
    return value


def _items(mapping: TypedQuery, value_type: Type, key: QueryTree) -> Walk:
    assert isinstance(mapping.type, DictOf)
    own = mapping.type.key
    keys = TypedQuery(texts_of_keys(mapping.query), ListOf(STR), mapping.fails)
    value = LoopVariable(invoke("lookup", mapping.query, key), value_type)
    return Walk(keys, LazyTuple((LoopVariable(read(key, own), own), value)))


def bind(lowering: Lowering, target: ast.expr, element: Element) -> list[tuple[ast.Name, Held]]:
    """Return each name in `target` with its value."""
    match (target, element):
        case (ast.Name(), _):
            leaf = _as_leaf(element)
            return [(target, Held(leaf.query, leaf.type))]
        case (ast.Tuple(elts=targets), LazyTuple(parts)) if len(targets) == len(parts):
            pairs = zip(targets, parts, strict=True)
            return [name for part, inner in pairs for name in bind(lowering, part, inner)]
        case (ast.Tuple(elts=targets), LoopVariable(query, TupleOf(types))) if len(targets) == len(
            types
        ):
            leaves = [
                LoopVariable(ItemOf(query, Constant(n)), type_) for n, type_ in enumerate(types)
            ]
            return bind(lowering, target, LazyTuple(tuple(leaves)))
        case (_, LoopVariable(_, type_)) if is_refused(type_):
            return refused_names(target)
    lowering.unit.refuse(
        target,
        "HF020",
        "a loop binds names, as many as each element has parts",
        "for index, line in enumerate(lines)",
    )
    return refused_names(target)


def refused_names(target: ast.expr) -> list[tuple[ast.Name, Held]]:
    """Return every name of a refused target with a placeholder, so that its uses are not refused
    again.
    """
    nodes = [node for node in ast.walk(target) if isinstance(node, ast.Name)]
    return [(node, Held(RefusedQuery(), REFUSED)) for node in nodes]


def _as_leaf(element: Element) -> LoopVariable:
    if isinstance(element, LoopVariable):
        return element
    leaves = [_as_leaf(part) for part in element.parts]
    items = [item_of(leaf.query) if may_be_list(leaf.type) else leaf.query for leaf in leaves]
    return LoopVariable(ArrayOf(tuple(items)), TupleOf(tuple(leaf.type for leaf in leaves)))
