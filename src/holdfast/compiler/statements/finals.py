"""`finally`: each way out gets its own copy of the body, lowered with what is known on that way.

A copy costs a few states and nothing at run time. With one shared body, a variable would have to
say how to continue, and the compiler would not know which names have a value in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.compiler.ir import (
    Break,
    Continue,
    Final,
    Finally,
    Reraise,
    SourcePlace,
    Statement,
    Way,
)
from holdfast.compiler.statements.flow import FinalPoint, Meeting
from holdfast.compiler.statements.local_names import bound_names
from holdfast.compiler.statements.returns import return_again
from holdfast.compiler.types.types import REFUSED

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_finally(statements: Statements, node: ast.Try, lower_body: Callable[[], None]) -> None:
    flow = statements.flow
    point = FinalPoint(len(flow.loops), {way: Meeting() for way in Way})
    flow.watchers.append(point.meetings[Way.ERROR])
    flow.finals.append(point)
    flow.protections += 1
    body = statements.collected(lower_body)
    flow.protections -= 1
    flow.finals.pop()
    flow.watchers.pop()
    point.meetings[Way.END].reach(flow.environment)
    failure = statements.scope.name("failure", (node, "failure"))
    is_lowered = not _refuse_jumps(statements, node)
    finals = []
    behind = None
    for way in Way:
        flow.environment = point.meetings[way].environment
        if flow.environment is not None and is_lowered:
            finals.append(_lower_final(statements, node, way, failure))
        if way is Way.END:
            behind = flow.environment
    flow.environment = behind
    if not is_lowered:
        for name in (name for part in node.finalbody for name in bound_names(part)):
            statements.hold(name, REFUSED)
    origin = statements.origin(node, "try")
    statements.emit(Finally(origin, body, failure, tuple(finals)))


def _lower_final(statements: Statements, node: ast.Try, way: Way, failure: str) -> Final:
    body = statements.block(node.finalbody)
    then = None
    if statements.flow.environment is not None:
        then = _then(statements, way, failure, statements.origin(node.finalbody[-1], _NAMES[way]))
    return Final(way, body, then)


_NAMES = {
    Way.END: "",
    Way.ERROR: "raise again",
    Way.RETURN: "return",
    Way.BREAK: "break",
    Way.CONTINUE: "continue",
}


def _then(statements: Statements, way: Way, failure: str, origin: SourcePlace) -> Statement | None:
    flow = statements.flow
    match way:
        case Way.END:
            return None
        case Way.ERROR:
            flow.note()
            flow.environment = None
            return Reraise(origin, failure)
        case Way.RETURN:
            return return_again(statements, origin)
        case Way.BREAK:
            flow.jump(way)
            return Break(origin)
        case Way.CONTINUE:
            flow.jump(way)
            return Continue(origin)


def _refuse_jumps(statements: Statements, node: ast.Try) -> bool:
    """Refuse jumps out of a `finally` body. They would discard the error that passes through it."""
    found = [jump for part in node.finalbody for jump in _jumps(part, is_in_loop=False)]
    for jump in found:
        if isinstance(jump, ast.Raise):
            message = "a bare `raise` in `finally`: whether there is an error here is not known"
            help_ = "except Exception: raise, before the `finally`"
        else:
            kind = type(jump).__name__.lower()
            message = f"`{kind}` in `finally` would swallow an error that is on its way"
            help_ = f"except Exception: {statements.unit.text(jump)}, before the `finally`"
        statements.unit.refuse(jump, "HF030", message, help_)
    return bool(found)


def _jumps(node: ast.AST, *, is_in_loop: bool) -> Iterator[ast.stmt]:
    match node:
        case ast.FunctionDef() | ast.Lambda():
            return
        case ast.Return() | ast.Raise(exc=None):
            yield node
        case ast.Break() | ast.Continue() if not is_in_loop:
            yield node
        case ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
            for inner in body:
                yield from _jumps(inner, is_in_loop=True)
            for inner in orelse:
                yield from _jumps(inner, is_in_loop=is_in_loop)
        case ast.ExceptHandler(body=body):
            # A bare `raise` is allowed in a handler inside the `finally` body, because it raises
            # the error that this handler has caught. So it is not a jump out of the `finally`.
            for inner in body:
                found = _jumps(inner, is_in_loop=is_in_loop)
                yield from (jump for jump in found if not isinstance(jump, ast.Raise))
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _jumps(child, is_in_loop=is_in_loop)
