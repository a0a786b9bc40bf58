"""Helpers that change variables of their caller: the body becomes statements of the caller itself.

    def add(found: list[int], one: int) -> None:
        label = f"{one}"                        label_of_add = f"{2}"
        log.append(label)               ->      log.append(label_of_add)
        found.append(one)                       numbers.append(2)

    add(numbers, 2)

Python passes references, so a change of `found` shows in `numbers`. A state machine has values. So
the body is lowered in the scope of the caller, with `numbers` in place of `found`: types, handlers
and the rule that one name owns a list (`ownership`) apply as if the author had written the body
there. The other names of the helper get names that the caller does not use.

The call must be a whole statement, or all of its right side. Inside of a longer expression, Python
would read other parts of it before the change, and the compiled code after it.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.compiler.context import Helper, TypedQuery, Unit
from holdfast.compiler.environment import Held, join_environments
from holdfast.compiler.expressions.arguments import Given
from holdfast.compiler.expressions.declared import as_parameter
from holdfast.compiler.expressions.operators import SYMBOLS
from holdfast.compiler.statements.levels import distinct_levels
from holdfast.compiler.statements.results import LoweredBody, result_of
from holdfast.compiler.steps.helpers import (
    changed_by,
    has_functions,
    is_bound_in_body,
    lacks_nonlocal,
    own_parts,
)
from holdfast.compiler.steps.step_arguments import refuse
from holdfast.compiler.types.types import UNKNOWN, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def can_paste(statements: Statements, call: ast.Call, helper: Helper) -> bool:
    """Return True when the body means the same in the scope of the caller."""
    node, scope = helper.node, statements.scope
    if has_functions(node):
        return False
    if helper.is_local:
        return scope is helper.sees and not lacks_nonlocal(helper)
    shadowed = _shadowed(statements, helper)
    if shadowed and changed_by(helper):
        name = min(shadowed)
        message = (
            f"`{helper.name}` changes its argument, and `{name}` has another value here than in it"
        )
        help_ = f"own_{name} = …, in place of `{name}`"
        raise refuse(statements.expressions, call, "HF023", message, help_)
    return not shadowed


def _shadowed(statements: Statements, helper: Helper) -> set[str]:
    """Return the names that the helper reads in its module, and that the caller assigns."""
    read = {part.id for part in ast.walk(helper.node) if isinstance(part, ast.Name)}
    return {name for name in read - _own_names(helper.node) if statements.scope.is_local(name)}


def paste(
    statements: Statements, call: ast.Call, helper: Helper, given: list[Given]
) -> LoweredBody:
    """Lower the body of the helper in the scope of the caller."""
    if call is not statements.whole:
        text = statements.unit.text(call)
        message = f"`{text}` changes {_listed(changed_by(helper))}: a statement of its own"
        help_ = _separate_lines(statements, call, changed_by(helper))
        raise refuse(statements.expressions, call, "HF023", message, help_)
    if helper.node in statements.pasted:
        message = f"`{helper.name}` calls itself: its body would have no end"
        help_ = "use a loop, or make it a @workflow of its own, which may call itself"
        raise refuse(statements.expressions, call, "HF007", message, help_)
    parameters = [_parameter(statements, call, helper, one) for one in given]
    node, names = _renamed(statements, call, helper, {one.name: one.kept for one in parameters})
    _take(statements, call, names, parameters)
    before = len(statements.unit.diagnostics)
    lowered = _lowered(statements, helper, node, frozenset(names.values()))
    written = {new: name for name, new in names.items()}
    written.update({one.kept: one.name for one in parameters if one.kept is not None})
    _name_as_written(helper, written, before)
    return lowered


def _name_as_written(helper: Helper, written: Mapping[str, str], before: int) -> None:
    """Give the names in the refusals of a body the spelling that the author wrote there."""
    names = {new: name for new, name in written.items() if new != name}
    found, node = helper.unit.diagnostics, helper.node
    last = node.end_lineno or node.lineno
    pattern = re.compile(rf"(?<![\w'.])(?:{'|'.join(map(re.escape, names))})(?!\w)")

    def renamed(text: str) -> str:
        return pattern.sub(lambda match: names[match[0]], text)

    for place in range(before, len(found)) if names else ():
        one = found[place]
        if one.file == helper.unit.source.file and node.lineno <= one.line <= last:
            message = re.sub("`[^`]*`", lambda match: renamed(match[0]), one.message)
            found[place] = replace(one, message=message, help=renamed(one.help))


class _Parameter(NamedTuple):
    """A parameter and its value. `kept`: the variable of the caller that stands for it; None for a
    parameter that needs a variable of its own.
    """

    name: str
    node: ast.expr | None
    value: TypedQuery
    kept: str | None


def _parameter(statements: Statements, call: ast.Call, helper: Helper, given: Given) -> _Parameter:
    parameter, node, argument = given
    name, is_changed = parameter.arg, parameter.arg in changed_by(helper)
    value = as_parameter(helper.unit, statements.unit, parameter, node or call, argument)
    found = _Parameter(name, node, value, None)
    if is_bound_in_body(helper.node, name):
        return found
    if isinstance(node, ast.Name) and node.id in statements.scope.local_names:
        is_rebound = node.id in _rebound_by(statements, helper)
        if value.type == argument.type and argument.type != UNKNOWN and not is_rebound:
            if is_changed:
                _check_owned(statements, helper, node)
            return found._replace(kept=node.id)
    if is_changed:
        _check_new(statements, call, helper, found)
    return found


def _check_new(
    statements: Statements, call: ast.Call, helper: Helper, parameter: _Parameter
) -> None:
    """Refuse a value that is not a variable of the caller, unless no other name refers to it."""
    name, node = parameter.name, parameter.node
    if node is None:
        message = f"`{helper.name}` changes the default of `{name}`, which its calls share"
        help_ = f"{helper.name}(…, {name}=own)"
        raise refuse(statements.expressions, call, "HF023", message, help_)
    if not statements.is_fresh(node):
        text = statements.unit.text(node)
        message = f"`{helper.name}` changes `{name}` in place, and `{text}` is a part or a new name"
        is_of_model = isinstance(call.func, ast.Attribute) and node is call.func.value
        lines = [f"own = copy.deepcopy({text})"]
        lines.append(f"own.{helper.name}(…)" if is_of_model else f"{helper.name}(own)")
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            lines.append(f"{text} = own")
        help_ = "\n".join(lines)
        raise refuse(statements.expressions, node, "HF023", message, help_)


def _check_owned(statements: Statements, helper: Helper, node: ast.Name) -> None:
    entry = statements.entry(node.id)
    if isinstance(entry, Held) and not entry.owned:
        message = f"`{helper.name}` changes `{node.id}`, and something else may hold the same value"
        help_ = f"{node.id} = copy.deepcopy({node.id})"
        raise refuse(statements.expressions, node, "HF023", message, help_)


def _separate_lines(statements: Statements, call: ast.Call, changed: frozenset[str]) -> str:
    """Return the lines that run the call before its statement, and read what Python reads before
    the call before it, too.
    """
    unit = statements.unit
    statement = _statement_with(unit.functions.get(statements.scope), call)
    text = unit.text(call)
    old = [name for name in _read_before(statement, call) if name in changed]
    lines = [*(f"old_{name} = {name}" for name in dict.fromkeys(old)), f"changed = {text}"]
    match statement:
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
            symbol = SYMBOLS.get(type(op), "+")
            given = unit.text(value).replace(text, "changed")
            left = f"old_{name}" if name in old else unit.text(target)
            lines.append(f"{name} = {left} {symbol} {given}")
        case ast.While(test=test) if call in ast.walk(test):
            condition = unit.text(test).replace(text, "changed")
            lines = ["while True:", f"    changed = {text}", f"    if not ({condition}):"]
            lines.append("        break")
        case _ if old:
            lines.append(f"and then the line with {_listed(frozenset(f'old_{n}' for n in old))}")
    return "\n".join(lines)


def _statement_with(function: ast.FunctionDef | None, call: ast.Call) -> ast.stmt | None:
    """Return the innermost statement that a call is part of."""
    found = None
    for part in () if function is None else ast.walk(function):
        # A statement is walked before the statements inside of it.
        if isinstance(part, ast.stmt) and part is not function and call in ast.walk(part):
            found = part
    return found


def _read_before(statement: ast.stmt | None, call: ast.Call) -> Iterator[str]:
    """Yield the names that a statement reads before it runs the call."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
    for part in () if statement is None else ast.walk(statement):
        is_read = isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        if is_read and isinstance(part, ast.Name) and _start(part) < _start(call):
            yield part.id


def _start(node: ast.expr) -> tuple[int, int]:
    return (node.lineno, node.col_offset)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _nonlocals(node: ast.FunctionDef) -> Iterator[ast.Nonlocal]:
    return (part for part in own_parts(node) if isinstance(part, ast.Nonlocal))


def _rebound_by(statements: Statements, helper: Helper) -> set[str]:
    """Return the outer variables that a local helper assigns, also through others that it calls."""
    around = statements.unit.functions.get(helper.sees) if helper.is_local else None
    inside = () if around is None else own_parts(around)
    defined = {part.name: part for part in inside if isinstance(part, ast.FunctionDef)}
    found, pending, seen = set[str](), [helper.node], set[ast.FunctionDef]()
    while pending:
        node = pending.pop()
        seen.add(node)
        found.update(name for one in _nonlocals(node) for name in one.names)
        named = {part.id for part in own_parts(node) if isinstance(part, ast.Name)}
        pending += [one for name, one in defined.items() if name in named and one not in seen]
    return found


def _own_names(node: ast.FunctionDef) -> set[str]:
    """Return the names that belong to the helper, also those of its comprehensions."""
    found = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    for part in own_parts(node):
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
    return found - {name for one in _nonlocals(node) for name in one.names}


def _renamed(
    statements: Statements, call: ast.Call, helper: Helper, kept: Mapping[str, str | None]
) -> tuple[ast.FunctionDef, Mapping[str, str]]:
    """Return the copy of the helper for this call, the same one each time the call is lowered, and
    the new names of its own names.
    """
    known, scope = statements.unit.pasted, statements.scope
    if call not in known:
        names = {
            name: _free_name(statements, helper, name)
            for name in sorted(_own_names(helper.node))
            if kept.get(name) is None
        }
        node = copy.deepcopy(helper.node)
        _Renaming({**names, **{name: new for name, new in kept.items() if new}}).visit(node)
        known[call] = (node, names)
    copied, given = known[call]
    scope.local_names.update(dict.fromkeys(given.values()))
    return copied, given


def _free_name(statements: Statements, helper: Helper, own: str) -> str:
    taken = [unit.function.__globals__ for unit in (statements.unit, helper.unit)]
    name = wanted = f"{own}_of_{helper.name}"
    number = 1
    while statements.scope.is_local(name) or any(name in names for names in taken):
        number += 1
        name = f"{wanted}_{number}"
    return name


class _Renaming(ast.NodeTransformer):
    """Gives names of a function other names, and takes out its `nonlocal` statements."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "arg", "name", "rest"):
            is_keyword = isinstance(node, ast.keyword) or field not in node._fields
            old = None if is_keyword else getattr(node, field)
            if isinstance(old, str):
                setattr(node, field, self.names.get(old, old))
        return super().generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(part) for part in node.body]
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def _take(
    statements: Statements,
    call: ast.Call,
    names: Mapping[str, str],
    parameters: list[_Parameter],
) -> None:
    """Assign the arguments that need variables of their own."""
    values: list[tuple[str, TypedQuery]] = []
    for name, node, value, kept in parameters:
        if kept is None and not is_refused(value.type):
            owned = 0 if node is None else statements.owned(node, value.type)
            distinct = 1 if node is None else distinct_levels(statements, node, value.type)
            if node is not None:
                statements.share(node, is_kept=True, type_=value.type)
            variable = statements.hold(names[name], value.type, owned=owned, distinct=distinct)
            values.append((variable, value))
    if values:
        statements.assign(call, *values)


def _unit_of(statements: Statements, helper: Helper) -> Unit:
    """Return the unit with the names and the source of the helper's module."""
    if helper.is_local:
        return statements.unit
    unit = copy.copy(helper.unit)
    unit.captured = statements.unit.captured
    return unit


def _lowered(
    statements: Statements, helper: Helper, node: ast.FunctionDef, names: frozenset[str]
) -> LoweredBody:
    """Lower the body as the one of a function: its `return` and `raise` are its own."""
    flow, result = statements.flow, result_of(helper.unit, node)
    result.names, result.is_dropped = names, statements.drops_value
    outer = statements.result, statements.hoisted, statements.pasted, statements.whole
    unit = statements.unit
    statements.read_in(_unit_of(statements, helper))
    around = flow.returned, flow.loops, flow.finals, flow.handlers
    statements.result, statements.pasted = result, (*statements.pasted, helper.node)
    flow.returned, flow.loops, flow.finals, flow.handlers = [], [], [], []
    block = statements.block(node.body)
    found = LoweredBody(block, result, flow.returned, flow.environment is not None)
    statements.result, statements.hoisted, statements.pasted, statements.whole = outer
    statements.read_in(unit)
    flow.returned, flow.loops, flow.finals, flow.handlers = around
    environment = join_environments(flow.environment, result.end.environment)
    for name in names:
        environment = environment and environment.without(name)
    flow.environment = environment
    return found
