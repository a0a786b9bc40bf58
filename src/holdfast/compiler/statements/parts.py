"""Changes of a part of a value: `order.status = "paid"`, `state.items[key] += 1`,
`order.lines.append(line)`.

A change of a field gives the name another model:

    order.status = "paid"      ->   order = $merge([$order, {"status": "paid"}])

A change further inside takes the part out, changes it as if it had a name of its own, and assigns
it to its place. Python has the same result as long as no other name refers to the part
(`ownership`):

    state.items[key] += 1      ->   `state.items` = state.items
                                    `state.items`[key] += 1
                                    state.items = `state.items`

The part has the text of its path as its name, which no name of the author can be. The three
assignments become one, unless the change contains a step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.compiler.context import Chain, Taking, TypedQuery
from holdfast.compiler.environment import Held
from holdfast.compiler.expressions.construct import checked_field
from holdfast.compiler.expressions.fields import known_fields
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Block,
    ObjectOf,
    Variable,
    invoke,
)
from holdfast.compiler.ir import Assign, StatementBlock
from holdfast.compiler.rewriting import load, located
from holdfast.compiler.statements.changes import (
    changeable,
    deep_copy,
    give,
    held_elsewhere,
    keeping_facts,
    lower_item_assignment,
)
from holdfast.compiler.statements.levels import Adding
from holdfast.compiler.statements.named_failures import named_item
from holdfast.compiler.statements.ownership import chain_of
from holdfast.compiler.statements.replacements import replacing
from holdfast.compiler.steps.helpers import find_taking
from holdfast.compiler.steps.hoisting import has_durable
from holdfast.compiler.types.models import fields_of, is_frozen, obstacle_of
from holdfast.compiler.types.types import (
    DictOf,
    ListOf,
    ModelOf,
    SetOf,
    TupleOf,
    Type,
    describe,
    is_refused,
    may_be_none,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def local_chain(statements: Statements, node: ast.expr) -> Chain | None:
    """Return the chain of a part of a local name, such as `order.lines`; None for other nodes."""
    chain = chain_of(node)
    is_part = chain is not None and chain.accesses and statements.scope.is_local(chain.name)
    return chain if is_part else None


# A field.


def lower_field_assignment(
    statements: Statements, node: ast.AST, target: ast.Attribute, value: ast.expr
) -> None:
    """Lower `order.status = value`, also where `order` is itself a part of a value."""
    owner = target.value
    if not isinstance(owner, ast.Name):

        def change(part: ast.Name, new: list[ast.expr]) -> None:
            field = ast.copy_location(ast.Attribute(part, target.attr, ast.Store()), target)
            lower_field_assignment(statements, node, field, new[0])

        change_part_by(statements, node, owner, [value], change)
        return
    before = statements.flow.environment
    new = statements.value(value)
    current = changeable(statements, target, owner.id)
    if current is None or is_refused(current.type, new.type):
        return
    model = _model_of(statements, target, owner, current.type)
    if model is None or not _accepts(statements, target, model):
        return
    new = checked_field(statements.expressions, value, target.attr, model, new)
    if is_refused(new.type):
        return
    changed = ObjectOf(((target.attr, new.query),))
    query = invoke("merge", ArrayOf((current.query, changed)))
    stored = replacing(statements, target, value, before)
    stored = stored or Adding(statements, owner.id, before).value(value, new.type)
    whole = TypedQuery(query, ModelOf(model), current.fails | new.fails)
    path = f"{owner.id}.{target.attr}"
    with keeping_facts(statements, owner.id, path) as facts:
        give(statements, node, owner.id, whole, stored=stored)
        if new.type != fields_of(model)[target.attr].type:
            facts[path] = new.type


def _model_of(
    statements: Statements, target: ast.Attribute, owner: ast.Name, type_: Type
) -> Any | None:
    text = statements.unit.text(owner)
    match type_:
        case ModelOf(model):
            return model
        case TupleOf(names=names) if target.attr in names:
            message = f"`{text}` is a NamedTuple, whose fields cannot be changed"
            help_ = f"{text} = {text}._replace({target.attr}=…)"
            statements.unit.refuse(target, "HF020", message, help_)
        case _ if may_be_none(type_):
            message = f"`{text}` may be None here"
            statements.unit.refuse(target, "HF043", message, f"if {text} is not None: …")
        case _:
            message = f"{describe(type_)} has no fields to change in a workflow"
            help_ = f"class State(BaseModel): {target.attr}: …, and {text} = State({target.attr}=…)"
            statements.unit.refuse(target, "HF020", message, help_)
    return None


def _accepts(statements: Statements, target: ast.Attribute, model: Any) -> bool:
    """Return True when Python assigns such a field without running code of the author."""
    unit, text = statements.unit, statements.unit.text(target.value)
    if target.attr not in fields_of(model):
        message = f"{model.__name__} has no field `{target.attr}`"
        unit.refuse(target, "HF044", message, known_fields(model, target.attr, f"{text}."))
        return False
    if is_frozen(model, target.attr):
        message = f"`{text}` is frozen: Python refuses a change of its fields"
        help_ = f'{text} = {text}.model_copy(update={{"{target.attr}": …}})'
        if not hasattr(model, "model_fields"):
            help_ = f"{text} = replace({text}, {target.attr}=…)"
        unit.refuse(target, "HF020", message, help_)
        return False
    obstacle = obstacle_of(model)
    if obstacle:
        message = f"{model.__name__} cannot be changed exactly in a workflow: {obstacle}"
        unit.refuse(target, "HF045", message, "change a copy in a @pure function")
    return not obstacle


# A part further inside.


def change_part_by(
    statements: Statements,
    node: ast.AST,
    path: ast.expr,
    values: list[ast.expr],
    change: Callable[[ast.Name, list[ast.expr]], None],
) -> None:
    """Change the part at `path` by values, which Python computes first: a step in one of them may
    change the same part.
    """
    names: list[str] = []
    given: list[ast.expr] = []
    for place, value in enumerate(values):
        if has_durable(statements, value):
            before = statements.flow.environment
            found = statements.value(value)
            name = f"= {place}"
            variable = statements.scope.name("new_value", (node, "new", place))
            if not is_refused(found.type):
                statements.assign(node, (variable, found))
            stored = Adding(statements, name, before).value(value, found.type)
            held = Held(Variable(variable), found.type, owned=stored.owned, distinct=stored.alone)
            statements.give(name, held)
            names.append(name)
            given.append(ast.copy_location(load(name), value))
        else:
            given.append(value)
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(named(statements, name))
        change_part(statements, node, path, lambda part: change(part, given))


def change_part(
    statements: Statements, node: ast.AST, path: ast.expr, change: Callable[[ast.Name], None]
) -> None:
    """Take the part at `path` out, change it under a name of its own, and assign it to its
    place.
    """
    block = statements.collected(lambda: _change_part(statements, node, path, change))
    statements.emit_all(_fused(statements, node, block))


def _change_part(
    statements: Statements, node: ast.AST, path: ast.expr, change: Callable[[ast.Name], None]
) -> None:
    part = _taken_out(statements, node, path)
    if part is None:
        return
    with named(statements, part.id):
        change(part)
        entry = statements.entry(part.id)
        if isinstance(entry, Held) and not is_refused(entry.type):
            _put_back(statements, node, path, part)
    environment = statements.flow.environment
    if environment is not None:
        # Keep the facts about the path, which the name of the part has in common with it.
        entries = {name: held for name, held in environment.entries.items() if name != part.id}
        statements.flow.environment = environment._replace(entries=entries)


def _put_back(statements: Statements, node: ast.AST, path: ast.expr, part: ast.Name) -> None:
    match path:
        case ast.Attribute():
            lower_field_assignment(statements, node, path, part)
        case ast.Subscript(value=ast.Name(id=name)):
            lower_item_assignment(statements, node, path, name, part)
        case ast.Subscript(value=owner, slice=key):
            change_part(
                statements,
                node,
                owner,
                lambda outer: lower_item_assignment(
                    statements,
                    node,
                    ast.copy_location(ast.Subscript(outer, key, ast.Store()), path),
                    outer.id,
                    part,
                ),
            )


def _taken_out(statements: Statements, node: ast.AST, path: ast.expr) -> ast.Name | None:
    """Give the part a name of its own; None when the change was refused."""
    unit, chain = statements.unit, chain_of(path)
    assert chain is not None
    if changeable(statements, path, chain.name, is_inside=True) is None:
        return None
    entry = statements.entry(chain.name)
    assert isinstance(entry, Held)
    for key in ast.walk(path):
        if isinstance(key, ast.Subscript) and has_durable(statements, key.slice):
            text = unit.text(key.slice)
            message = "a step inside the place that is changed would run twice"
            unit.refuse(key.slice, "HF012", message, f"key = {text}, on a line before")
            return None
    part = statements.expressions.lower(path)
    if is_refused(part.type):
        return None
    if isinstance(path, ast.Subscript):
        part = named_item(statements, path, part)
    text, owned = unit.text(path), entry.owned - len(chain.accesses)
    if owned < 1 and isinstance(part.type, ListOf | SetOf | DictOf | ModelOf):
        message = held_elsewhere(statements, chain.name, text)
        if entry.owned and entry.distinct <= len(chain.accesses):
            message = f"`{text}` is changed here, and `{chain.name}` may hold this object twice"
        help_ = deep_copy(statements, chain.name, chain.name, path)
        unit.refuse(path, "HF023", message, help_)
        return None
    variable = statements.scope.name(text)
    statements.assign(node, (variable, part))
    environment = statements.flow.environment
    assert environment is not None
    distinct = max(1, entry.distinct - len(chain.accesses))
    held = Held(Variable(variable), part.type, owned=max(owned, 0), distinct=distinct)
    # Keep the facts about the part: its name is the text of its path.
    statements.flow.environment = environment._replace(entries={**environment.entries, text: held})
    return ast.copy_location(load(text), path)


def is_default(statements: Statements, call: ast.Call) -> bool:
    """Return True for `groups.setdefault(key, [])` of a local name, if both arguments may be
    evaluated more than once, or never.
    """
    if not isinstance(find_taking(statements.scope, call), Taking):
        return False
    key, default = call.args
    match default:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Call(args=[], keywords=[]):
            return not has_durable(statements, key)
        case _:
            return False


def with_default(node: ast.Expr, call: ast.Call, default: ast.Call) -> list[ast.stmt]:
    """Return the lines that `groups.setdefault(key, []).append(value)` is short for."""
    assert isinstance(call.func, ast.Attribute)
    assert isinstance(default.func, ast.Attribute)
    owner, (key, value) = default.func.value, default.args
    item = ast.Subscript(owner, key, ast.Store())
    test = ast.Compare(key, [ast.NotIn()], [owner])
    first = ast.If(test, [ast.Assign([item], value)], [])
    function = ast.Attribute(ast.Subscript(owner, key, ast.Load()), call.func.attr, ast.Load())
    second = ast.Expr(ast.Call(function, call.args, call.keywords))
    return [located(first, node), located(second, node)]


@contextmanager
def named(statements: Statements, name: str) -> Iterator[None]:
    """Make `name` a local name for the time of the change."""
    names = statements.scope.local_names
    names[name] = None
    try:
        yield
    finally:
        del names[name]


def _fused(statements: Statements, node: ast.AST, block: StatementBlock) -> StatementBlock:
    """Return the assignments of a change as one, if there is nothing else between them."""
    values: list[tuple[str, TypedQuery]] = []
    for statement in block:
        if not isinstance(statement, Assign) or len(statement.values) != 1:
            return block
        values += statement.values
    if not values:
        return block
    *parts, (variable, whole) = values
    query, fails = whole.query, whole.fails
    for name, part in reversed(parts):
        query, fails = Block(name, part.query, query), fails | part.fails
        if name != variable:
            statements.unit.assigned.pop(name, None)
    return (
        Assign(statements.origin(node), ((variable, whole._replace(query=query, fails=fails)),)),
    )
