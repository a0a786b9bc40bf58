"""`sorted`, `min` and `max`, with and without a key."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.environment import Held
from holdfast.compiler.expressions.durations import in_seconds
from holdfast.compiler.expressions.moments import has_offset, sortable
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Block,
    Conditional,
    Constant,
    Flat,
    FunctionLiteral,
    QueryTree,
    Variable,
    failure,
    guard,
    hold,
    invoke,
    or_else,
)
from holdfast.compiler.expressions.sets import in_order, without_order
from holdfast.compiler.expressions.unknowns import NO_KEY, key_of_any, kind_of_key, number_of
from holdfast.compiler.library_calls import note_failure
from holdfast.compiler.rewriting import load, located, parameters_named
from holdfast.compiler.steps.helpers import find_helper
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    NEVER,
    UNKNOWN,
    UUID,
    DictOf,
    EnumOf,
    ListOf,
    TupleOf,
    Type,
    describe,
    element_of,
    is_numeric,
    is_refused,
    is_text,
    join,
    join_all,
    may_be_list,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_PLACE: Final = "the key of an order"
_HELP: Final = "order numbers or texts: sorted(lines, key=lambda line: line.sku)"


@dataclass(frozen=True, slots=True)
class _Order:
    """Two elements of a list, and the values by which they are ordered, the first element first.
    `kinds`: of the first element, the kinds of its keys that must be those of every other one.
    """

    some: Variable
    other: Variable
    keys: Callable[[Variable], tuple[QueryTree, ...]]
    fails: frozenset[str] = frozenset()
    kinds: tuple[QueryTree, ...] = ()

    def over(self, items: QueryTree, build: Callable[[QueryTree], QueryTree]) -> QueryTree:
        """Return `build(items)`, after all keys were computed if one of them may fail.

        Python computes the key of each item first, also of a single one. JSONata computes keys only
        where it compares two items.
        """
        if not self.fails:
            return build(items)

        def checked(held: QueryTree) -> QueryTree:
            keys = FunctionLiteral((self.some.name,), ArrayOf(self.keys(self.some)))
            found: QueryTree = invoke("map", held, keys)
            for kind in self.kinds:
                found = ArrayOf((found, _of_one_kind(held, self.some, kind)))
            return Block("_keys", found, build(held))

        return hold(items, checked, "_items")

    def is_after(self, left: Variable, right: Variable) -> QueryTree:
        return _is_after(self.keys(left), self.keys(right))


def _kind(key: TypedQuery) -> QueryTree | None:
    """Return the kind of a key that has an order with keys of its kind only; None for a key that
    every other one has an order with. A moment with an offset has no order with one without.
    """
    if key.type == UNKNOWN:
        return kind_of_key(key.query)
    return hold(key.query, has_offset, "_moment") if key.type == DATETIME else None


def _of_one_kind(items: QueryTree, some: Variable, kind: QueryTree) -> QueryTree:
    """Fail unless the keys of `some` have an order: all are of one kind."""
    found = invoke("map", items, FunctionLiteral((some.name,), kind))
    kinds = invoke("distinct", Flat(found))

    def tested(held: QueryTree) -> QueryTree:
        is_single = Binary("<=", invoke("count", items), Constant(1))
        is_known = invoke("not", Binary("in", Constant(NO_KEY), held))
        is_one = Binary("and", is_known, Binary("=", invoke("count", held), Constant(1)))
        wrong = failure("TypeError: the keys have no order")
        return Conditional(Binary("or", is_single, is_one), Constant(True), wrong)

    return hold(kinds, tested, "_kinds")


def _is_after(left: tuple[QueryTree, ...], right: tuple[QueryTree, ...]) -> QueryTree:
    is_greater = Binary(">", left[0], right[0])
    if len(left) == 1:
        return is_greater
    is_equal = Binary("=", left[0], right[0])
    return Binary("or", is_greater, Binary("and", is_equal, _is_after(left[1:], right[1:])))


def _comparable(value: TypedQuery) -> QueryTree | None:
    """Return a query for the value that JSONata orders as Python orders the value."""
    value = in_seconds(value)
    type_ = value.type
    if is_numeric(type_) or is_text(type_):
        return value.query
    if isinstance(type_, EnumOf) and issubclass(type_.enum, str | int):
        return value.query
    if type_ in (DURATION, DATE, UUID):
        return value.query
    if type_ == UNKNOWN:
        return key_of_any(value.query)
    if type_ == DATETIME:
        return hold(value.query, sortable, "_moment")
    return number_of(value.query) if type_ == BOOL else None


def _order(
    expressions: Expressions, node: ast.Call, key: ast.expr | None, element: Type
) -> _Order | None:
    """Return the order of `sorted`, `min` or `max`; None when it was refused."""
    unit = expressions.unit
    function = ast.Lambda(parameters_named("item"), ast.Name("item")) if key is None else key
    function = _spelled_out(expressions, node, function)
    if not isinstance(function, ast.Lambda) or len(function.args.args) != 1:
        message = "the key of an order is a lambda with one parameter"
        unit.refuse(node if key is None else key, "HF002", message, "key=lambda line: line.sku")
        return None
    name = function.args.args[0].arg
    scope = unit.scope(expressions.scope, node if key is None else key, [name])
    some = Variable(scope.name(name, "some"))
    other = Variable(scope.name(f"other_{name}", "other"))

    def lowered(item: Variable) -> tuple[TypedQuery, ...]:
        environment = expressions.environment.with_entry(name, Held(item, element))
        inside = replace(expressions, scope=scope, environment=environment, place=_PLACE)
        body = function.body
        parts = body.elts if isinstance(body, ast.Tuple) and body.elts else [body]
        if key is None:
            return (TypedQuery(item, element),)
        return tuple(inside.lower(part) for part in parts)

    keys = lowered(some)
    if is_refused(*(part.type for part in keys)):
        return None
    where = node if key is None else key
    # Python compares the second part of two tuples only where the first parts are equal. So it may
    # not notice there that two moments have no order.
    is_late = any(part.type == DATETIME for part in keys[1:])
    if is_late or any(_comparable(part) is None for part in keys):
        types = ", ".join(describe(part.type) for part in keys)
        unit.refuse(where, "HF049", f"values of {types} have no order that JSON keeps", _HELP)
        return None
    kinds = tuple(kind for kind in map(_kind, keys) if kind is not None)
    fails = fails_of(*keys) | ({"TypeError"} if kinds else set())
    return _Order(some, other, lambda item: tuple(map(_as_comparable, lowered(item))), fails, kinds)


def _as_comparable(value: TypedQuery) -> QueryTree:
    query = _comparable(value)
    assert query is not None
    return query


def _spelled_out(expressions: Expressions, node: ast.Call, key: ast.expr) -> ast.expr:
    """Return the key as a lambda: `len` gives `lambda item: len(item)`, `str.lower` gives `lambda
    item: item.lower()`, `itemgetter(1)` gives `lambda item: item[1]`. `prices.get` over the keys of
    `prices` gives `lambda item: prices[item]`.
    """
    item = load("item")
    match key:
        case ast.Attribute(value=owner, attr="get" | "__getitem__") if _goes_through(
            expressions, node, owner
        ):
            body: ast.expr = ast.Subscript(owner, item, ast.Load())
        case ast.Call(func=maker, args=[ast.Constant() as given], keywords=[]) if (
            expressions.is_outside(maker)
        ):
            made_by = expressions.unit.outside(maker)
            if made_by is operator.itemgetter:
                body = ast.Subscript(item, given, ast.Load())
            elif made_by is operator.attrgetter and str(given.value).isidentifier():
                body = ast.Attribute(item, str(given.value), ast.Load())
            else:
                return key
        case ast.Name(id=name) if expressions.is_builtin(name):
            body = ast.Call(key, [item], [])
        case ast.Attribute(value=ast.Name(id="str"), attr=method) if expressions.is_builtin("str"):
            body = ast.Call(ast.Attribute(item, method), [], [])
        case ast.Name() | ast.Attribute():
            body = ast.Call(key, [item], [])
            if find_helper(expressions.unit, expressions.scope, body) is None:
                return key
        case _:
            return key
    made = located(ast.Lambda(parameters_named("item"), body), key)
    return expressions.unit.made.setdefault(key, made)


def _goes_through(expressions: Expressions, node: ast.Call, owner: ast.expr) -> bool:
    """Return True when the items of `sorted`, `min` or `max` are the keys of the dict `owner`."""
    text = expressions.unit.text
    names = {text(owner), f"{text(owner)}.keys()"}
    with expressions.unit.trial():
        is_dict = isinstance(expressions.lower(owner).type, DictOf)
    return is_dict and len(node.args) == 1 and text(node.args[0]) in names


def lower_sorted(expressions: Expressions, node: ast.Call) -> TypedQuery:
    key, is_reverse = _keyword(node, "key"), _reverse_flag(node)
    if len(node.args) != 1 or is_reverse is None:
        message = "`sorted()` takes one list, `key=` and a constant `reverse=` in a workflow"
        return expressions.unit.refused(node, "HF002", message, "sorted(values, reverse=True)")
    items = without_order(expressions, node.args[0])
    element = element_of(items.type)
    if element is None or is_refused(items.type):
        return REFUSED_EXPRESSION
    if element == NEVER:
        return items
    if key is not None and not _decides(expressions, key, element):
        # Members with equal keys keep the order of the set, which Python chooses anew in each
        # process. So sort the members first.
        items = in_order(expressions, node.args[0])
        if is_refused(items.type):
            return REFUSED_EXPRESSION
    if key is None and _are_entries(node.args[0]) and isinstance(element, TupleOf):
        # The keys of a dict differ, so Python never compares the values.
        key = expressions.unit.made.setdefault(node, _first_of_pair(node))
    order = _order(expressions, node, key, element)
    if order is None:
        return REFUSED_EXPRESSION
    query: QueryTree
    if key is None and element not in (BOOL, DATETIME, DURATION, UNKNOWN):
        query = invoke("sort", items.query)
        query = invoke("reverse", query) if is_reverse else query
    else:
        pair = (order.other, order.some) if is_reverse else (order.some, order.other)
        names = (order.some.name, order.other.name)
        compare = FunctionLiteral(names, order.is_after(*pair))
        query = order.over(items.query, lambda held: invoke("sort", held, compare))
    return TypedQuery(Flat(query), ListOf(element), items.fails | order.fails)


def _are_entries(node: ast.expr) -> bool:
    """Return True for `d.items()`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="items"), args=[], keywords=[]):
            return True
        case _:
            return False


def _decides(expressions: Expressions, key: ast.expr, element: Type) -> bool:
    """Return True when only equal items have equal keys: the key has the item itself, or each part
    of a tuple.
    """
    if not isinstance(key, ast.Lambda) or len(key.args.args) != 1:
        return False
    name, body = key.args.args[0].arg, key.body
    parts = body.elts if isinstance(body, ast.Tuple) else [body]
    texts = {expressions.unit.text(part) for part in parts}
    match element:
        case _ if name in texts:
            return True
        case EnumOf():
            return bool(texts & {f"{name}.name", f"{name}.value"})
        case TupleOf(elements, names):
            fields = names or ("",) * len(elements)
            return all(
                texts & {f"{name}[{place}]", f"{name}.{field}"}
                for place, field in enumerate(fields)
            )
        case _:
            return False


def _first_of_pair(node: ast.Call) -> ast.Lambda:
    pair = ast.Lambda(parameters_named("pair"), ast.Subscript(ast.Name("pair"), ast.Constant(0)))
    return located(pair, node)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in node.keywords if word.arg == name), None)


def _reverse_flag(node: ast.Call) -> bool | None:
    if any(word.arg not in ("key", "reverse") for word in node.keywords):
        return None
    match _keyword(node, "reverse"):
        case None:
            return False
        case ast.Constant(value=bool(flag)):
            return flag
        case _:
            return None


def lower_extreme(function: str) -> Callable[[Expressions, ast.Call], TypedQuery]:
    """Return the rule of `min` or `max`, for one list or for several values."""

    def rule(expressions: Expressions, node: ast.Call) -> TypedQuery:
        if not node.args or any(word.arg not in ("key", "default") for word in node.keywords):
            message = f"`{function}()` takes a list or several values, `key=` and `default=`"
            help_ = f"{function}(values, default=0)"
            return expressions.unit.refused(node, "HF002", message, help_)
        items = _items(expressions, node)
        default = _default(expressions, node, function)
        element = element_of(items.type)
        if element is None or is_refused(items.type) or is_refused(default.type):
            return REFUSED_EXPRESSION
        found = _extreme(expressions, node, function, items)
        if found is None:
            return REFUSED_EXPRESSION
        if len(node.args) > 1 or (isinstance(items.query, ArrayOf) and items.query.items):
            return found._replace(fails=items.fails | found.fails)
        fails = fails_of(items, default, found)
        if default.type != NEVER:
            query = hold(found.query, lambda held: or_else(held, default.query))
            return TypedQuery(query, join(element, default.type), fails)
        if not found.fails and _is_list(expressions, node):
            note_failure(expressions, node, "ValueError")
        query = guard(found.query, f"ValueError: {function} of an empty list")
        return TypedQuery(query, element, fails | {"ValueError"})

    return rule


def _is_list(expressions: Expressions, node: ast.Call) -> bool:
    """Return True where the items are a value, which a test before the statement can read."""
    with expressions.unit.trial():
        return isinstance(expressions.lower(node.args[0]).type, ListOf)


_NO_DEFAULT: Final = TypedQuery(Constant(None), NEVER)


def _default(expressions: Expressions, node: ast.Call, function: str) -> TypedQuery:
    """Return the value for an empty list; without a default its type is NEVER."""
    given = _keyword(node, "default")
    if given is None:
        return _NO_DEFAULT
    default = expressions.lower(given)
    if default.fails:
        message = "the default is computed in Python even when it is not needed, and may fail"
        help_ = f"compute it first: least = …; {function}(values, default=least)"
        return expressions.unit.refused(given, "HF002", message, help_)
    return default


def _items(expressions: Expressions, node: ast.Call) -> TypedQuery:
    if len(node.args) == 1 and _keyword(node, "key") is not None:
        return expressions.iterable(node.args[0])
    if len(node.args) == 1:
        return without_order(expressions, node.args[0])
    values = [expressions.lower(argument) for argument in node.args]
    type_ = join_all(value.type for value in values)
    if is_refused(type_):
        return REFUSED_EXPRESSION
    if may_be_list(type_):
        message = f"the extreme of {describe(type_)} has no JSONata form"
        return expressions.unit.refused(node, "HF049", message, _HELP)
    return TypedQuery(
        ArrayOf(tuple(value.query for value in values)), ListOf(type_), fails_of(*values)
    )


def _extreme(
    expressions: Expressions, node: ast.Call, function: str, items: TypedQuery
) -> TypedQuery | None:
    """Return the first of the smallest or greatest items, which is undefined for an empty list.
    None when refused.
    """
    element, key = element_of(items.type), _keyword(node, "key")
    assert element is not None
    if key is None and is_numeric(element):
        return TypedQuery(invoke(function, items.query), element)
    order = _order(expressions, node, key, element)
    if order is None:
        return None
    best, item = order.some, order.other
    is_better = order.is_after(item, best) if function == "max" else order.is_after(best, item)
    step = FunctionLiteral((best.name, item.name), Conditional(is_better, item, best))
    query = order.over(items.query, lambda held: invoke("reduce", held, step))
    return TypedQuery(query, element, order.fails)
