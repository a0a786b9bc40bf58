"""The methods and operators that change a list, dict or set in place: `xs.sort()`, `d.update(…)`.

Each gives the name another value, as `changes` does for `append`; `takings` has those that give a
value as well.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.expressions import set_values
from holdfast.compiler.expressions.comparisons import are_comparable
from holdfast.compiler.expressions.dict_keys import key_help
from holdfast.compiler.expressions.methods import method_rule
from holdfast.compiler.expressions.operators import arithmetic
from holdfast.compiler.expressions.orderings import lower_sorted
from holdfast.compiler.expressions.query import (
    EMPTY_LIST,
    ArrayOf,
    ComputedEntry,
    Conditional,
    Constant,
    ObjectOf,
    QueryTree,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.expressions.removals import (
    without_first,
)
from holdfast.compiler.expressions.sets import is_hashable, without_order
from holdfast.compiler.rewriting import located
from holdfast.compiler.statements.aliases import CHANGES
from holdfast.compiler.statements.changes import changeable, give
from holdfast.compiler.statements.levels import OWN, SHARED, Adding, Stored
from holdfast.compiler.statements.named_failures import require_member
from holdfast.compiler.types.types import (
    NEVER,
    UNKNOWN,
    DictOf,
    ListOf,
    SetOf,
    Type,
    describe,
    element_of,
    is_refused,
    join,
    join_keys,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: A rule gets the call and the present value of its name, and gives the new value, or None when the
#: call was refused.
_Rule = Callable[["Statements", ast.Call, TypedQuery], TypedQuery | None]


def lower_mutator(statements: Statements, node: ast.Expr, call: ast.Call, name: str) -> bool:
    """Lower `xs.sort()` and the like; False for a method that has no rule."""
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    if method in CHANGES and is_refused(getattr(statements.entry(name), "type", NEVER)):
        # The value was refused already, and that message says enough.
        return True
    rule = _RULES.get((family_of(statements, name), method))
    if rule is None:
        return False
    added = [*call.args, *(keyword.value for keyword in call.keywords)]
    for argument in added:
        statements.prepare(argument)
    current = changeable(statements, call, name)
    found = None if current is None else rule(statements, call, current)
    before = statements.flow.environment
    for argument in call.args:
        statements.share(argument, is_kept=method in ("insert", "add"))
    for word in call.keywords if method == "update" else ():
        # `d.update(first=lines)` keeps the list itself.
        statements.share(word.value, is_kept=word.arg is not None)
    if found is not None and not is_refused(found.type):
        stored = _stored(Adding(statements, name, before), method, added)
        give(statements, node, name, found, stored=stored)
    return True


def _stored(adding: Adding, method: str, added: list[ast.expr]) -> Stored:
    """Return the levels of what `insert` and `update` add."""
    match method, added:
        case "insert", [_, value]:
            return adding.value(value, UNKNOWN)
        case "update", [items]:
            return adding.items(items, UNKNOWN)
        case "update", _:
            return SHARED
        case _:
            return OWN


def family_of(statements: Statements, name: str) -> str:
    environment = statements.flow.environment
    match None if environment is None else environment.known(name):
        case ListOf(is_tuple=False):
            return "list"
        case DictOf():
            return "dict"
        case SetOf(is_frozen=False):
            return "set"
        case _:
            return ""


_NUMBERS: Final = ("no value", "one value", "a place and a value")


def _arguments(
    statements: Statements, call: ast.Call, wanted: int, shown: str
) -> list[TypedQuery] | None:
    """Return the lowered arguments. None when their number differs from `wanted` or one was
    refused; the refusal shows the right form, `shown`.
    """
    if len(call.args) != wanted or call.keywords:
        text = statements.unit.text(call.func)
        message = f"`{text}()` takes {_NUMBERS[wanted]} in a workflow"
        statements.unit.refuse(call, "HF008", message, f"{text}({shown})")
        return None
    values = [statements.expressions.lower(argument) for argument in call.args]
    return None if is_refused(*(value.type for value in values)) else values


def refuse_change(statements: Statements, call: ast.Call, what: str, help_: str) -> None:
    text = statements.unit.text(call)
    statements.unit.refuse(call, "HF040", f"`{text}`: {what}", help_)


# Lists.


def _insert(statements: Statements, call: ast.Call, _: TypedQuery) -> TypedQuery | None:
    """`xs.insert(i, v)` is `xs = xs[:i] + [v] + xs[i:]`, also for an `i` outside of the list."""
    if _arguments(statements, call, 2, "0, value") is None:
        return None
    assert isinstance(call.func, ast.Attribute)
    place, value = call.args
    items = call.func.value
    one = ast.List([value], ast.Load())
    before = ast.Subscript(items, ast.Slice(None, place), ast.Load())
    after = ast.Subscript(items, ast.Slice(place, None), ast.Load())
    longer = ast.BinOp(ast.BinOp(before, ast.Add(), one), ast.Add(), after)
    if isinstance(place, ast.Constant) and place.value == 0:
        longer = ast.BinOp(one, ast.Add(), items)
    return statements.expressions.lower(located(longer, call))


def _remove(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    values = _arguments(statements, call, 1, "value")
    assert isinstance(current.type, ListOf)
    if values is None:
        return None
    assert isinstance(call.func, ast.Attribute)
    assert isinstance(call.func.value, ast.Name)
    element = current.type.element
    place = method_rule("list", "index")(current.query, current.type, tuple(values))
    if place is None:
        what = f"{describe(values[0].type)} in a list of {describe(element)}"
        help_ = "compare values of one known type; annotate the type where it is unknown"
        refuse_change(statements, call, what, help_)
        return None
    rest = without_first(current.query, place[0], element)
    fails = fails_of(*values)
    if not require_member(statements, call, call.func.value.id, call.args[0]):
        fails |= {"ValueError"}
    return TypedQuery(rest, current.type, fails)


def _clear(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    if _arguments(statements, call, 0, "") is None:
        return None
    empty: QueryTree = ObjectOf(()) if isinstance(current.type, DictOf) else EMPTY_LIST
    return TypedQuery(empty, current.type)


def _reverse(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    if _arguments(statements, call, 0, "") is None:
        return None
    return TypedQuery(invoke("reverse", current.query), current.type)


def _sort(statements: Statements, call: ast.Call, _: TypedQuery) -> TypedQuery | None:
    assert isinstance(call.func, ast.Attribute)
    if call.args:
        text = statements.unit.text(call.func)
        help_ = f"{text}(key={statements.unit.text(call.args[0])})"
        refuse_change(statements, call, "the key has a name", help_)
        return None
    call_of_sorted = ast.Call(call.func, [call.func.value], call.keywords)
    return lower_sorted(statements.expressions, ast.copy_location(call_of_sorted, call))


# Dicts.


def _update(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    """Lower `d.update(other)`, `d.update(name=value)` and both together."""
    assert isinstance(current.type, DictOf)
    type_ = current.type
    parts = [current, *map(statements.expressions.lower, call.args)]
    for keyword in call.keywords:
        given = statements.expressions.lower(keyword.value)
        if keyword.arg is not None:
            entry = ComputedEntry(Constant(keyword.arg), given.query)
            given = TypedQuery(entry, DictOf(given.type), given.fails)
        parts.append(given)
    if is_refused(*(part.type for part in parts)):
        return None
    for part in parts:
        if not isinstance(part.type, DictOf) or len(call.args) > 1:
            name = statements.unit.text(call.func)
            what = f"a dict is updated by a dict, not by {describe(part.type)}"
            refuse_change(statements, call, what, f"{name}({{key: value for key, value in pairs}})")
            return None
        key = join_keys(type_.key, part.type.key)
        if key is None:
            what = f"{describe(type_)} has no keys of {describe(part.type)}"
            name, key_text = statements.unit.text(call.func), key_help(type_, part.type.key, "key")
            help_ = f"{name}({{{key_text}: value for key, value in pairs.items()}})"
            refuse_change(statements, call, what, help_)
            return None
        type_ = DictOf(join(type_.value, part.type.value), key=key)
    merged = invoke("merge", ArrayOf(tuple(part.query for part in parts)))
    return TypedQuery(merged, type_, fails_of(*parts))


# Sets.


def _add(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    values = _arguments(statements, call, 1, "value")
    return None if values is None else _with_member(statements, call, current, values[0])


def _with_member(
    statements: Statements, call: ast.Call, current: TypedQuery, value: TypedQuery
) -> TypedQuery | None:
    assert isinstance(current.type, SetOf)
    element = join(current.type.element, value.type)
    if not set_values.has_plain_equality(element):
        _refused_member(statements, call, element)
        return None
    query = set_values.with_member(current.query, value.query, element)
    return TypedQuery(query, SetOf(element), value.fails)


def _refused_member(statements: Statements, call: ast.Call, element: Type) -> None:
    message = f"a set of {describe(element)} has no exact JSONata form"
    statements.unit.refuse(call, "HF002", message, set_values.MEMBERS_HELP)


def _discard(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    values = _arguments(statements, call, 1, "value")
    assert isinstance(current.type, SetOf)
    if values is None:
        return None
    element = current.type.element
    if not are_comparable(values[0].type, element) or not is_hashable(values[0].type):
        _refused_member(statements, call, join(element, values[0].type))
        return None
    query = hold(
        values[0].query,
        lambda held: set_values.without_member(current.query, held, element),
        "_member",
    )
    return TypedQuery(query, current.type, values[0].fails)


def _remove_member(
    statements: Statements, call: ast.Call, current: TypedQuery
) -> TypedQuery | None:
    found = _discard(statements, call, current)
    if found is None:
        return None
    value = statements.expressions.lower(call.args[0])
    assert isinstance(current.type, SetOf)
    element = current.type.element
    wrong = failure(f"KeyError: {statements.unit.text(call)}")
    query = hold(
        value.query,
        lambda held: Conditional(
            set_values.has(current.query, held, join(element, value.type)),
            set_values.without_member(current.query, held, element),
            wrong,
        ),
        "_member",
    )
    return TypedQuery(query, current.type, found.fails | {"KeyError"})


def _update_set(statements: Statements, call: ast.Call, current: TypedQuery) -> TypedQuery | None:
    if len(call.args) != 1 or call.keywords:
        _arguments(statements, call, 1, "values")
        return None
    more = without_order(statements.expressions, call.args[0])
    element = element_of(more.type)
    if element is None or is_refused(more.type):
        return None
    joined = set_values.combined_sets("|", current, more._replace(type=SetOf(element)))
    if joined is None:
        assert isinstance(current.type, SetOf)
        _refused_member(statements, call, join(current.type.element, element))
    return joined


_RULES: Final[Mapping[tuple[str, str], _Rule]] = MappingProxyType(
    {
        ("list", "insert"): _insert,
        ("list", "remove"): _remove,
        ("list", "clear"): _clear,
        ("list", "reverse"): _reverse,
        ("list", "sort"): _sort,
        ("dict", "clear"): _clear,
        ("dict", "update"): _update,
        ("set", "add"): _add,
        ("set", "clear"): _clear,
        ("set", "discard"): _discard,
        ("set", "remove"): _remove_member,
        ("set", "update"): _update_set,
    }
)


# `d |= other`, `s |= t`, `s &= t`, `s -= t`


def lower_merge(statements: Statements, node: ast.AugAssign, name: str) -> bool:
    """Lower the operators that change a dict or set in place; False for any other."""
    family = family_of(statements, name)
    operators = {"dict": (ast.BitOr,), "set": (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)}
    if not isinstance(node.op, operators.get(family, ())):
        return False
    statements.prepare(node.value)
    before = statements.flow.environment
    more = statements.expressions.lower(node.value)
    statements.share(node.value, is_kept=False)
    current = changeable(statements, node.target, name)
    if current is not None and not is_refused(more.type):
        found = arithmetic(statements.unit, node, node.op, current, more)
        if not is_refused(found.type):
            stored = Adding(statements, name, before).items(node.value, more.type)
            give(statements, node, name, found, stored=stored)
    return True
