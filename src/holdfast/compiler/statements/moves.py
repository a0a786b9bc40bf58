"""Names and parts that take over the value of a name, because nothing reads that name again.

    with receive("order", Order, key=shop) as request:
        order = request.data
        order.lines.append(line)          # allowed: only `order` still leads to the list

So it is for a part: `done.append(order)`, and for the items that a new list keeps: `large = [line
for line in lines if line.qty]`.

Python has one object with two names here, and shows a change under both. That makes no difference
if the first name is not read after the assignment. Only the places of the names in the
source decide:

* no function inside the function reads the first name, because it may run later;
* nothing behind the assignment reads it;
* each loop around the assignment gives the first name a value in the same round before it, and
  reads the name nowhere before that. So the next round cannot read the changed object.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from holdfast.compiler.environment import Environment, Held
from holdfast.compiler.statements.aliases import is_fresh
from holdfast.compiler.statements.level_rules import Levels
from holdfast.compiler.statements.ownership import chain_of, type_along
from holdfast.compiler.types.types import UNKNOWN, RequestOf
from holdfast.compiler.walking import children, walk

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

_Place: TypeAlias = tuple[int, int]


def moved_levels(
    statements: Statements,
    node: ast.AST,
    value: ast.expr,
    before: Environment | None = None,
) -> int:
    """Return how many levels of `value` its new place takes over from a name: `own` in
    `own = order`, and the list in `orders.append(order)`. `node` is the assignment, or the value
    itself. `before`: what was known before the name was shared.
    """
    environment = before or statements.flow.environment
    # In `[items, (other := items)]` the list has the value before `other` has it.
    if statements.unit.captured is None or isinstance(node, ast.NamedExpr):
        return 0
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            parts = [body, orelse]
        case ast.BoolOp(op=ast.Or(), values=parts):
            pass
        case _:
            return _levels(statements, node, value, environment)
    return min(_levels_of_choice(statements, node, part, environment) for part in parts)


def _levels_of_choice(
    statements: Statements, node: ast.AST, value: ast.expr, environment: Environment | None
) -> int:
    with statements.unit.trial():
        type_ = statements.expressions.gone_through(value).type
    owned = statements.owned(value, type_)
    return max(owned, moved_levels(statements, node, value, environment))


def _levels(
    statements: Statements, node: ast.AST, value: ast.expr, environment: Environment | None
) -> int:
    value = _copied(statements, value)
    chain = chain_of(value)
    entries = {} if environment is None else environment.entries
    entry = None if chain is None else entries.get(chain.name)
    if chain is None:
        return _levels_of_new(statements, node, value, environment)
    if not isinstance(entry, Held):
        return 0
    if isinstance(entry.type, RequestOf):
        is_part = chain.accesses == ("data",)
    else:
        # An access that is not a field may be a property, which gives any part.
        is_part = not chain.accesses or type_along(entry.type, chain.accesses) != UNKNOWN
    levels = entry.owned - len(chain.accesses) if is_part else 0
    return levels if levels > 0 and _is_last(statements, node, value, chain.name) else 0


def _levels_of_new(
    statements: Statements, node: ast.AST, value: ast.expr, environment: Environment | None
) -> int:
    """Return the levels of `[line for line in lines if line.qty]` and the like, whose parts are
    those of one name.
    """
    if environment is None or not is_fresh(value, lambda _: None):
        return 0
    levels = Levels(statements, statements.expressions.with_environment(environment))
    names = levels.kept_names(value)
    if len(names) != 1 or not levels.is_plain(value):
        return 0
    is_last = all(_is_last(statements, node, value, name) for name in names)
    return levels.alone(value) if is_last else 0


def _copied(statements: Statements, value: ast.expr) -> ast.expr:
    """Return what a call copies without its parts; `value` itself for another expression."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="model_copy"), args=[], keywords=[]):
            return inner
        case ast.Call(func=ast.Name("list" | "dict" | "set" as name), args=[inner], keywords=[]):
            return inner if statements.expressions.is_builtin(name) else value
        case _:
            return value


def _is_last(statements: Statements, node: ast.AST, value: ast.expr, name: str) -> bool:
    function = statements.unit.functions.get(statements.scope)
    if function is None or name not in statements.scope.local_names:
        return False
    path = _path_to(function, value)
    if not path:
        return False
    inside = set(walk(node))
    others = [part for part in _reads(function, name) if part not in inside]
    end = _end(value)
    if any(_start(part) > end for part in others) or _is_read_inside(function, name):
        return False
    return _is_bound_in_round(path, name)


def _reads(function: ast.FunctionDef, name: str) -> Iterator[ast.Name]:
    """Yield the places that read a name, without `request.reply(…)`."""
    replies = {
        part.value
        for part in walk(function)
        if isinstance(part, ast.Attribute) and part.attr == "reply"
    }
    for part in walk(function):
        is_read = isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)
        if is_read and isinstance(part, ast.Name) and part.id == name and part not in replies:
            yield part


def _is_read_inside(function: ast.FunctionDef, name: str) -> bool:
    """Return True when a function inside this one has the name: it may run after the assignment."""
    return any(
        isinstance(part, ast.Name) and part.id == name
        for inner in walk(function)
        if isinstance(inner, ast.FunctionDef | ast.Lambda) and inner is not function
        for part in walk(inner)
    )


def _path_to(node: ast.AST, wanted: ast.AST) -> list[ast.AST]:
    """Return the nodes from `node` to `wanted`; none when it is not in the source as it stands."""
    if node is wanted:
        return [node]
    for child in children(node):
        if path := _path_to(child, wanted):
            return [node, *path]
    return []


def _is_bound_in_round(path: Sequence[ast.AST], name: str) -> bool:
    """Return True when the innermost loop around the end of `path` assigns the name in each round
    before it, and no loop around it reads the name before that; also when there is no loop.
    """
    loops = [place for place, part in enumerate(path) if isinstance(part, ast.For | ast.While)]
    if not loops:
        return True
    inner = path[loops[-1] :]
    reads = [
        _start(part)
        for part in walk(path[loops[0]])
        if isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Store)
    ]
    bound = [place for pair in itertools.pairwise(inner) for place in _bound_before(*pair, name)]
    return any(all(read >= place for read in reads) for place in bound)


def _bound_before(outer: ast.AST, part: ast.AST, name: str) -> Iterator[_Place]:
    """Yield the places where a statement of the same block in front of `part`, or the `with` around
    it, has given the name a value.
    """
    if isinstance(outer, ast.With):
        for item in outer.items:
            if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == name:
                yield _end(item.optional_vars)
    for _, block in ast.iter_fields(outer):
        if isinstance(block, list) and part in block:
            for before in block[: block.index(part)]:
                if _assigns(before, name):
                    yield _end(before)


def _assigns(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            return any(isinstance(one, ast.Name) and one.id == name for one in targets)
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr()):
            return target == name
        case _:
            return False


def _start(node: ast.expr) -> _Place:
    return (node.lineno, node.col_offset)


def _end(node: ast.expr | ast.stmt) -> _Place:
    return (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
