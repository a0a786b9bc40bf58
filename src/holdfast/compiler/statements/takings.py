"""The changes of a list or dict that take something out: `xs.pop()`, `d.setdefault(k, v)`, `del`.

`pop` and `setdefault` give a value, so they run before the statement that holds them, in the way of
a durable call (`steps/hoisting.py`): one Pass assigns the value and what is left together.

    job = jobs.pop(0)    ->   Assign  jobs_pop = $jobs[0], jobs = the others
                              Assign  job = $jobs_pop
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.environment import EVERYTHING, Held
from holdfast.compiler.expressions.dict_keys import key_help, sought, with_key
from holdfast.compiler.expressions.query import (
    ArrayOf,
    ComputedEntry,
    Conditional,
    Constant,
    ItemOf,
    Variable,
    guard,
    hold,
    invoke,
    or_else,
)
from holdfast.compiler.expressions.removals import (
    without_key,
    without_known_key,
    without_place,
)
from holdfast.compiler.statements.changes import changeable
from holdfast.compiler.statements.levels import Adding
from holdfast.compiler.statements.mutators import family_of, refuse_change
from holdfast.compiler.statements.named_failures import named_removal
from holdfast.compiler.statements.ownership import has_parts_that_may_change
from holdfast.compiler.statements.parts import change_part_by
from holdfast.compiler.types.types import (
    INT,
    UNKNOWN,
    DictOf,
    ListOf,
    describe,
    is_refused,
    join,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_taking(statements: Statements, node: ast.Call) -> TypedQuery:
    """Lower `xs.pop(i)`, `d.pop(key, default)` and `d.setdefault(key, default)`: the value. The
    rest is assigned before.
    """
    assert isinstance(node.func, ast.Attribute)
    path = node.func.value
    if isinstance(path, ast.Name):
        return _take(statements, node, node, path.id)
    found: list[TypedQuery] = []
    method = node.func.attr

    def change(part: ast.Name, values: list[ast.expr]) -> None:
        function = ast.copy_location(ast.Attribute(part, method, ast.Load()), node.func)
        call = ast.copy_location(ast.Call(function, values, node.keywords), node)
        found.append(_take(statements, node, call, part.id))

    change_part_by(statements, node, path, list(node.args), change)
    return found[0] if found else REFUSED_EXPRESSION


def _take(statements: Statements, origin: ast.Call, node: ast.Call, name: str) -> TypedQuery:
    """Take something out of the value of `name`. `origin` is the call in the source."""
    assert isinstance(node.func, ast.Attribute)
    method = node.func.attr
    family = family_of(statements, name)
    values = [statements.expressions.lower(argument) for argument in node.args]
    if not node.keywords and family == "list" and method == "pop" and len(values) <= 1:
        taken = _pop_item
    elif not node.keywords and family == "dict" and method == "pop" and len(values) in (1, 2):
        taken = _pop_key
    elif not node.keywords and family == "dict" and method == "setdefault" and len(values) == 2:
        taken = _set_default
    else:
        return statements.expressions.method(node)
    current = changeable(statements, node, name)
    if current is None or is_refused(*(value.type for value in values)):
        return REFUSED_EXPRESSION
    added = _distinct_default(statements, node, name) if method == "setdefault" else EVERYTHING
    for argument in node.args:
        statements.share(argument, is_kept=True)
    if method == "pop":
        statements.unit.taken_levels[origin] = _levels_of_taken(statements, node, name, values)
    found = taken(statements, node, current, _evaluated_first(statements, node, name, values))
    if found is None:
        return REFUSED_EXPRESSION
    value, rest = found
    variable = statements.scope.name(f"{name}_{method}", (origin, "taken"))
    kept = (statements.scope.name(name), rest)
    statements.assign(node, (variable, value), kept)
    entry = statements.entry(name)
    owned, distinct = (entry.owned, entry.distinct) if isinstance(entry, Held) else (0, 1)
    if method == "setdefault" and has_parts_that_may_change(rest.type):
        # The result is a second name of the value in the dict.
        owned = 1
    statements.hold(name, rest.type, owned=owned, distinct=min(distinct, added))
    return TypedQuery(Variable(variable), value.type)


def _distinct_default(statements: Statements, node: ast.Call, name: str) -> int:
    """Return the distinct levels of a dict that only the default of `setdefault` was added to."""
    return 1 + Adding(statements, name, None).value(node.args[1], UNKNOWN).alone


def _levels_of_taken(
    statements: Statements, node: ast.Call, name: str, values: list[TypedQuery]
) -> int:
    """Return how many levels of the result of `pop` no name refers to: the list or dict no
    longer contains it. `d.pop(key, default)` may give the default.
    """
    entry = statements.entry(name)
    levels = max(0, entry.owned - 1) if isinstance(entry, Held) else 0
    if len(node.args) == _KEY_AND_DEFAULT:
        added = Adding(statements, name, None).value(node.args[1], values[1].type)
        levels = min(levels, added.owned)
    return levels


#: The number of arguments of `d.pop(key, default)`.
_KEY_AND_DEFAULT: Final = 2

_Taken = tuple[TypedQuery, TypedQuery]


def _evaluated_first(
    statements: Statements, node: ast.Call, name: str, values: list[TypedQuery]
) -> list[TypedQuery]:
    """Return the values, with a default that may fail in a variable: Python evaluates the default
    also when the key is there.
    """
    match values:
        case [key, default] if default.fails:
            variable = statements.scope.name(f"{name}_default", (node, "default"))
            statements.assign(node, (variable, default))
            return [key, TypedQuery(Variable(variable), default.type)]
        case _:
            return values


def _pop_item(
    statements: Statements, node: ast.Call, current: TypedQuery, values: list[TypedQuery]
) -> _Taken | None:
    assert isinstance(current.type, ListOf)
    index = values[0] if values else TypedQuery(Constant(-1), INT)
    if index.type != INT:
        what = f"a place is an int, not {describe(index.type)}"
        refuse_change(statements, node, what, f"{statements.unit.text(node.func)}(0)")
        return None
    text, element = statements.unit.text(node), current.type.element
    named = named_removal(statements, node, current, index)
    index = index if named is None else named
    item = guard(ItemOf(current.query, index.query), f"IndexError: {text}")
    fails = index.fails | (set() if named else {"IndexError"})
    rest = without_place(current.query, index.query, element, text)
    return TypedQuery(item, element, fails), TypedQuery(rest, current.type, fails)


def _pop_key(
    statements: Statements, node: ast.Call, current: TypedQuery, values: list[TypedQuery]
) -> _Taken | None:
    assert isinstance(current.type, DictOf)
    key, *default = values
    named = None if default else named_removal(statements, node, current, key)
    key = key if named is None else named
    sought_ = sought(current.type, key)
    if sought_ is None:
        _refuse_key(statements, node, current.type, key)
        return None
    key = key._replace(query=sought_)
    text = statements.unit.text(node)
    found, type_ = invoke("lookup", current.query, key.query), current.type.value
    if not default:
        fails = key.fails | (set() if named else {"KeyError"})
        item = TypedQuery(guard(found, f"KeyError: {text}"), type_, fails)
        rest = without_known_key(current.query, key.query, text)
        return item, TypedQuery(rest, current.type, item.fails)
    value = hold(found, lambda held: or_else(held, default[0].query))
    rest = hold(key.query, lambda held: without_key(current.query, held), "_wanted")
    item = TypedQuery(value, join(type_, default[0].type), fails_of(*values))
    return item, TypedQuery(rest, current.type, key.fails)


def _refuse_key(statements: Statements, node: ast.Call, own: DictOf, key: TypedQuery) -> None:
    text, *others = map(statements.unit.text, node.args)
    given = ", ".join((key_help(own, key.type, text), *others))
    what = f"the keys of this dict are not {describe(key.type)}"
    refuse_change(statements, node, what, f"{statements.unit.text(node.func)}({given})")


def _set_default(
    statements: Statements, node: ast.Call, current: TypedQuery, values: list[TypedQuery]
) -> _Taken | None:
    assert isinstance(current.type, DictOf)
    key, default = values
    sought_ = sought(current.type, key)
    longer_type = with_key(current.type, key, join(current.type.value, default.type))
    if sought_ is None or longer_type is None:
        _refuse_key(statements, node, current.type, key)
        return None
    key = key._replace(query=sought_)
    found = invoke("lookup", current.query, key.query)
    entry = ComputedEntry(key.query, default.query)
    longer = invoke("merge", ArrayOf((current.query, entry)))
    type_ = longer_type.value
    fails = fails_of(*values)
    item = hold(found, lambda held: or_else(held, default.query))
    rest = Conditional(invoke("exists", found), current.query, longer)
    return TypedQuery(item, type_, fails), TypedQuery(rest, longer_type, fails)
