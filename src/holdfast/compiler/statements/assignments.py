"""Assignments to names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, cast

from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.environment import Environment, Held, item_path
from holdfast.compiler.expressions import operators
from holdfast.compiler.expressions.declared import annotated_type, as_declared
from holdfast.compiler.expressions.query import Variable
from holdfast.compiler.expressions.typed_dicts import displayed
from holdfast.compiler.ir import Target
from holdfast.compiler.rewriting import load
from holdfast.compiler.statements.changes import (
    is_named_change,
    lower_extension,
    lower_item_assignment,
    lower_item_change,
)
from holdfast.compiler.statements.deletes import lower_slice_assignment
from holdfast.compiler.statements.levels import distinct_levels
from holdfast.compiler.statements.moves import moved_levels
from holdfast.compiler.statements.mutators import lower_merge
from holdfast.compiler.statements.ownership import (
    chain_of,
    has_parts_that_may_change,
    may_change,
)
from holdfast.compiler.statements.parts import (
    change_part,
    change_part_by,
    local_chain,
    lower_field_assignment,
    named,
)
from holdfast.compiler.statements.replacements import replaced_levels
from holdfast.compiler.statements.unpacking import (
    give,
    held,
    is_exchange,
    is_flat,
    lower_unpacking,
)
from holdfast.compiler.types.types import (
    DECIMAL,
    REFUSED,
    UNKNOWN,
    DictOf,
    ListOf,
    SetOf,
    Type,
    TypedDictOf,
    Union,
    is_refused,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_assignment(statements: Statements, node: ast.Assign) -> None:
    if len(node.targets) == 1:
        _assign(statements, node, node.targets[0], node.value, None)
    else:
        _assign_to_all(statements, node)


def _assign_to_all(statements: Statements, node: ast.Assign) -> None:
    """Lower `a = b = value`: the value is evaluated once, and the targets get it from left to
    right.
    """
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    function = statements.durable(node.value) if len(names) == len(node.targets) else None
    if isinstance(node.value, ast.Call) and function is not None:
        assert isinstance(node.value, ast.Call)
        targets = tuple(Target(statements.scope.name(name)) for name in names)
        found = statements.step(node.value, function, targets, node)
        for name in names:
            type_ = REFUSED if found is None else found
            distinct = distinct_levels(statements, node.value, type_)
            statements.hold(name, type_, distinct=distinct)
        return
    before = statements.flow.environment
    value = held(statements, node, statements.value(node.value))
    distinct = distinct_levels(statements, node.value, value.type, before)
    for target in node.targets:
        if isinstance(target, ast.Name) or is_refused(value.type):
            give(statements, node, target, value, distinct)
        else:
            with _temporary(statements, [_WHOLE]):
                statements.give(_WHOLE, Held(value.query, value.type, distinct=distinct))
                part = ast.copy_location(load(_WHOLE), node.value)
                _assign(statements, node, target, part, None)


def lower_annotated_assignment(statements: Statements, node: ast.AnnAssign) -> None:
    annotation = _without_final(statements.unit, node.annotation)
    declared = None if annotation is None else annotated_type(statements.unit, annotation)
    if node.value is not None:
        _assign(statements, node, node.target, node.value, declared)


def _without_final(unit: Unit, annotation: ast.expr) -> ast.expr | None:
    """Return the annotation in `Final[int]`; None for `Final` alone, which declares no type."""
    match annotation:
        case ast.Subscript(value=outer, slice=inner) if unit.outside(outer) is Final:
            return inner
        case ast.Name() | ast.Attribute() if unit.outside(annotation) is Final:
            return None
        case _:
            return annotation


def _assign(
    statements: Statements,
    node: ast.stmt,
    target: ast.expr,
    value: ast.expr,
    declared: Type | None,
) -> None:
    match target:
        case ast.Name(id=name):
            _assign_name(statements, node, name, value, declared)
        case ast.Subscript(value=ast.Name(id=name)) if statements.scope.is_local(name):
            _assign_item(statements, node, target, name, value)
        case ast.Subscript(value=path) if local_chain(statements, path):
            _assign_in_part(statements, node, target, value)
        case ast.Attribute() if local_chain(statements, target):
            lower_field_assignment(statements, node, target, value)
        case ast.Tuple() | ast.List() if not is_flat(target):
            _assign_parts(statements, node, target, value)
        case ast.Tuple() | ast.List():
            lower_unpacking(statements, node, target, value)
        case _:
            # The target is refused. Lower the right side all the same, so that its own refusals are
            # reported in the same run.
            give(statements, node, target, statements.value(value))


#: The name of a value that several targets get, and the beginning of those of its parts.
_WHOLE: Final = "= whole"
_PART: Final = "= part_"


def _assign_parts(
    statements: Statements, node: ast.stmt, target: ast.Tuple | ast.List, value: ast.expr
) -> None:
    """Lower `xs[i], xs[j] = xs[j], xs[i]` and `a, (b, c) = value`.

    Python computes the value and takes it apart. Then it assigns the targets from left to right: an
    index is evaluated, and an inner tuple is taken apart, after the targets before it have their
    values. So each part gets a name that no author can write, and each target gets its part.
    """
    before = statements.flow.environment
    values = value.elts if isinstance(value, ast.Tuple) else []
    places = values if len(values) == len(target.elts) else [value] * len(target.elts)
    # An inner target has other names than the one around it, whose parts still wait.
    first = sum(name.startswith(_PART) for name in statements.scope.local_names)
    named = {f"{_PART}{first + place}": part for place, part in enumerate(target.elts)}
    made = type(target)([_renamed(part, name) for name, part in named.items()], ast.Store())
    with _temporary(statements, named):
        lower_unpacking(statements, node, ast.copy_location(made, target), value)
        for (name, part), place in zip(named.items(), places, strict=True):
            inner = part.value if isinstance(part, ast.Starred) else part
            read = ast.copy_location(load(name), place)
            _assign(statements, node, inner, read, None)
    if before is not None and is_exchange(target, value):
        _restore_levels(statements, target, before)


def _renamed(part: ast.expr, name: str) -> ast.expr:
    """Return the target `name` in the place of `part`."""
    found: ast.expr = ast.copy_location(ast.Name(name, ast.Store()), part)
    if isinstance(part, ast.Starred):
        found = ast.copy_location(ast.Starred(found, ast.Store()), part)
    return found


@contextmanager
def _temporary(statements: Statements, names: Iterable[str]) -> Iterator[None]:
    """Give the names a place among the local names for the time of one assignment."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(named(statements, name))
        yield
    environment = statements.flow.environment
    if environment is not None:
        entries = {name: held for name, held in environment.entries.items() if name not in names}
        statements.flow.environment = environment._replace(entries=entries)


def _restore_levels(
    statements: Statements, target: ast.Tuple | ast.List, before: Environment
) -> None:
    """Record that the names own what they owned before: the values have only changed places."""
    for chain in map(chain_of, target.elts):
        was = None if chain is None else before.entries.get(chain.name)
        entry = None if chain is None else statements.entry(chain.name)
        if chain is not None and isinstance(was, Held) and isinstance(entry, Held):
            known = entry._replace(owned=was.owned, distinct=was.distinct)
            statements.give(chain.name, known)


def _assign_item(
    statements: Statements, node: ast.stmt, target: ast.Subscript, name: str, value: ast.expr
) -> None:
    if isinstance(target.slice, ast.Slice):
        lower_slice_assignment(statements, node, target, name, value)
    else:
        lower_item_assignment(statements, node, target, name, value)


def _assign_in_part(
    statements: Statements, node: ast.stmt, target: ast.Subscript, value: ast.expr
) -> None:
    """Lower `state.items[key] = value`."""

    def change(part: ast.Name, values: list[ast.expr]) -> None:
        item = ast.copy_location(ast.Subscript(part, target.slice, ast.Store()), target)
        _assign_item(statements, node, item, part.id, values[0])

    change_part_by(statements, node, target.value, [value], change)


def _change_field(statements: Statements, node: ast.AugAssign, target: ast.Attribute) -> None:
    """Lower `state.count += 1` and `state.found += [name]`."""
    with statements.unit.trial():
        read = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
        current = statements.expressions.lower(read)
    if is_refused(current.type):
        # The owner waits for a step that the next pass moves, or it was refused. Its type decides
        # between the two forms below, and each pass must use the same one.
        statements.expressions.lower(read)
        statements.value(node.value)
        return
    if may_change(current.type):
        _change_part(statements, node, target, lambda part: part)
        return
    whole = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
    # A step may compute the sum, so each pass must use the same expression.
    lower_field_assignment(statements, node, target, statements.unit.rewritten(target, whole))


def _is_container(statements: Statements, item: ast.Subscript) -> bool:
    """Return True for an inner list, dict or set that `+=` or `|=` changes in place, if no other
    name refers to it.
    """
    chain, entry = chain_of(item), None
    with statements.unit.trial():
        type_ = (
            statements.expressions.inside("the place of a change")
            .lower(ast.copy_location(ast.Subscript(item.value, item.slice, ast.Load()), item))
            .type
        )
    if chain is not None:
        entry = statements.entry(chain.name)
    is_own = isinstance(entry, Held) and entry.owned > 1
    return is_own and isinstance(type_, ListOf | SetOf | DictOf)


def _change_part(
    statements: Statements,
    node: ast.AugAssign,
    path: ast.expr,
    target_of: Callable[[ast.Name], ast.Name | ast.Subscript],
) -> None:
    def change(part: ast.Name) -> None:
        target = statements.unit.rewritten(node.target, target_of(part))
        changed = ast.AugAssign(cast("ast.Name | ast.Subscript", target), node.op, node.value)
        lower_augmented_assignment(statements, ast.copy_location(changed, node))

    change_part(statements, node, path, change)


def _assign_name(
    statements: Statements, node: ast.AST, name: str, value: ast.expr, declared: Type | None
) -> None:
    function, before = statements.durable(value), statements.flow.environment
    moved = moved_levels(statements, node, value)
    if isinstance(value, ast.Call) and function is not None:
        variable = statements.scope.name(name)
        found = statements.step(value, function, (Target(variable),), node)
        given = TypedQuery(Variable(variable), REFUSED if found is None else found)
    else:
        given = statements.value(value)
        if isinstance(declared, TypedDictOf) and isinstance(value, ast.Dict):
            given = given._replace(type=displayed(statements.expressions, value, declared))
    unit = statements.unit
    expression = as_declared(unit, value, given, declared, name)
    type_ = expression.type
    if not is_refused(type_) and (function is None or expression.query != given.query):
        variable = statements.scope.name(name)
        statements.assign(node, (variable, expression))
    facts = _facts_of(statements, name, value, type_)
    replaced = 0
    if has_parts_that_may_change(type_) and not isinstance(node, ast.NamedExpr):
        # In `[items, (items := sorted(items))]` the list has the old value, too.
        replaced = replaced_levels(statements, ast.Name(name, ast.Store()), value, before)
    owned = max(moved, replaced, statements.owned(value, type_))
    distinct = distinct_levels(statements, value, type_, before)
    variable = statements.hold(name, type_, owned=owned, distinct=distinct)
    if owned:
        unit.holders.pop(variable, None)
    else:
        unit.holders[variable] = value
    for path, known in facts.items():
        if statements.flow.environment is not None:
            statements.flow.environment = statements.flow.environment.with_fact(path, known)


def _facts_of(statements: Statements, name: str, value: ast.expr, type_: Type) -> dict[str, Type]:
    """Return the type of each value of `{"status": "new", "attempts": 0}`."""
    if not isinstance(value, ast.Dict) or not isinstance(type_, DictOf) or None in value.keys:
        return {}
    is_mixed = isinstance(type_.value, Union) or type_.value == UNKNOWN
    if isinstance(type_, TypedDictOf) or not is_mixed:
        return {}
    found: dict[str, Type] = {}
    for key, part in zip(value.keys, value.values, strict=True):
        if not isinstance(key, ast.Constant):
            return {}
        if isinstance(key.value, str) and key.value.isidentifier():
            with statements.unit.trial():
                found[item_path(name, key.value)] = statements.expressions.gone_through(part).type
    return found


def lower_named_value(statements: Statements, node: ast.NamedExpr) -> TypedQuery:
    """Lower `(status := poll(job))`: the assignment stands before the statement."""
    _assign_name(statements, node, node.target.id, node.value, None)
    return statements.expressions.lower(node.target)


def lower_augmented_assignment(statements: Statements, node: ast.AugAssign) -> None:
    unit = statements.unit
    match node.target:
        case ast.Subscript(value=ast.Name(id=name)) as item if statements.scope.is_local(name):
            if _is_container(statements, item):
                _change_part(statements, node, item, lambda part: part)
            else:
                lower_item_change(statements, node, item, name)
            return
        case ast.Subscript(value=path, slice=key) as item if local_chain(statements, path):
            _change_part(
                statements,
                node,
                path,
                lambda part: ast.copy_location(ast.Subscript(part, key, ast.Store()), item),
            )
            return
        case ast.Attribute() as field if local_chain(statements, field):
            _change_field(statements, node, field)
            return
    if not isinstance(node.target, ast.Name):
        statements.value(node.value)
        help_ = "total = total + line.qty"
        unit.refuse(node.target, "HF000", "augmented assignment needs a plain name", help_)
        return
    name = node.target.id
    environment = statements.flow.environment
    assert environment is not None
    parent = statements.scope.parent
    if name not in environment.entries and parent is not None and parent.is_local(name):
        refuse_outer(unit, node.target, name)
        statements.hold(name, REFUSED)
        return
    entry = environment.entries.get(name)
    if isinstance(entry, Held) and isinstance(entry.type, ListOf) and isinstance(node.op, ast.Add):
        lower_extension(statements, node, name)
        return
    if isinstance(entry, Held) and lower_merge(statements, node, name):
        return
    read = ast.copy_location(load(name), node.target)
    if isinstance(entry, Held) and (
        entry.type == DECIMAL or is_named_change(statements, node, entry.type)
    ):
        # A step computes the sum, or a test of the divisor stands before it. Both replace
        # expressions, so the sum must be one.
        whole = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        total = statements.value(unit.rewritten(node.target, whole))
        _give(statements, node, name, total)
        return
    value = statements.value(node.value)
    current = statements.expressions.lower(read)
    if isinstance(current.type, ListOf):
        symbol = operators.SYMBOLS.get(type(node.op), "+")
        help_ = f"{name} = {name} {symbol} {unit.text(node.value)}"
        unit.refuse(node.target, "HF023", f"`{symbol}=` changes a list in place", help_)
        return
    _give(statements, node, name, operators.arithmetic(unit, node, node.op, current, value))


def _give(statements: Statements, node: ast.AugAssign, name: str, result: TypedQuery) -> None:
    if not is_refused(result.type):
        variable = statements.scope.name(name)
        statements.assign(node, (variable, result))
    statements.hold(name, result.type)


def refuse_outer(unit: Unit, node: ast.AST, name: str) -> None:
    unit.refuse(
        node,
        "HF021",
        f"`{name}` belongs to the enclosing workflow and cannot be assigned from a branch",
        "return the value from the branch and combine the results afterwards",
    )
