"""`with receive(…) as request:`: a wait, and a `try` whose handler rejects the request.

    with receive("total", str, key=k) as request:      request = wait for "total?"
        request.reply(total(request.data))             try: reply(id, total(data))
                                                       except Exception: reply(id, its error)
                                                       cancelled: reply(id, RequestCancelled)

Each way through the block ends with `request.reply(…)` or an error. Otherwise the caller would wait
for a reply that is never sent, or an error after the reply would be lost.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.api.requests import REQUEST_CANCELLED
from holdfast.api.task_errors import RequestCancelled
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.environment import EVERYTHING, Held, join_environments
from holdfast.compiler.expressions.query import (
    Constant,
    FieldOf,
    ItemOf,
    ObjectOf,
    QueryTree,
    Variable,
    cause_of,
)
from holdfast.compiler.ir import (
    ErrorHandler,
    Failures,
    Receive,
    Reply,
    StatementBlock,
    StepStatement,
    Target,
    Try,
)
from holdfast.compiler.statements.flow import Meeting
from holdfast.compiler.steps.hoisting import hoist_inside
from holdfast.compiler.steps.step_arguments import StepRefused
from holdfast.compiler.steps.waits import lower_reply
from holdfast.compiler.types.failures import names_of
from holdfast.compiler.types.types import NONE, REFUSED, RequestOf, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: The state of a request at one point of its block: no reply yet ("open"), a reply, or the end of
#: the block ("left").
_Point: TypeAlias = Literal["open", "replied", "left"]


def lower_receive(
    statements: Statements,
    node: ast.With,
    item: ast.withitem,
    lower_inside: Callable[[], StatementBlock],
) -> None:
    call, named = item.context_expr, item.optional_vars
    assert isinstance(call, ast.Call)
    if not isinstance(named, ast.Name):
        message = "a request is received under a name"
        help_ = f"with {statements.unit.text(call)} as request:"
        statements.unit.refuse(call, "HF160", message, help_)
        _lower_body(statements, lower_inside)
        return
    _require_replies(statements, node, named.id)
    hoist_inside(statements, call)
    found = statements.steps.receive(call)
    if found is None:
        statements.lose(call)
        statements.hold(named.id, REFUSED)
        _lower_body(statements, lower_inside)
        return
    action, type_ = found
    # The data was made from JSON for this request, so no other name refers to it.
    variable = statements.hold(named.id, type_, owned=EVERYTHING)
    origin = statements.origin(call, f"with {statements.unit.text(call)}")
    statements.emit(StepStatement(origin, action, (Target(variable),)))
    body = _lower_body(statements, lower_inside)
    _emit_block(statements, call, body, variable)


def _lower_body(
    statements: Statements, lower_inside: Callable[[], StatementBlock]
) -> StatementBlock:
    """Lower the body of the block. Its errors lead behind it, as its end does. They reject the
    request under their names, so an error of an expression gets that of Python.
    """
    flow, watcher = statements.flow, Meeting()
    flow.watchers.append(watcher)
    flow.protections += 1
    flow.receives += 1
    with statements.unit.library.catching([Exception]):
        body = lower_inside()
    flow.protections -= 1
    flow.receives -= 1
    flow.watchers.pop()
    flow.environment = join_environments(flow.environment, watcher.environment)
    return body


def _emit_block(
    statements: Statements, call: ast.Call, body: StatementBlock, variable: str
) -> None:
    error = statements.scope.name("error", (call, "error"))
    origin = statements.origin(call, "reject")
    caught = Variable(error)
    rejection = ObjectOf(
        (
            ("request", _id_of(variable)),
            ("error", FieldOf(caught, "Error")),
            ("cause", cause_of(caught)),
        )
    )
    reject = StepStatement(origin, Reply(variable, TypedQuery(rejection, NONE)), ())
    names = names_of((Exception,), statements.unit.world)
    handler = ErrorHandler(origin, (Exception,), names, error, (reject,))
    whole = Try(origin, body, (handler,), (), Failures(anything=True))
    statements.emit(Receive(origin, (whole,), _when_cancelled(statements, call, variable)))


def _when_cancelled(statements: Statements, call: ast.Call, variable: str) -> StepStatement:
    rejection = ObjectOf(
        (
            ("request", _id_of(variable)),
            ("error", Constant(RequestCancelled.__name__)),
            ("cause", Constant(REQUEST_CANCELLED)),
        )
    )
    origin = statements.origin(call, "reject when cancelled")
    return StepStatement(origin, Reply(variable, TypedQuery(rejection, NONE)), ())


def is_request(entry: object) -> bool:
    """Return True for the name of a request, also one whose `receive` was refused."""
    if not isinstance(entry, Held):
        return False
    return is_refused(entry.type) or isinstance(entry.type, RequestOf)


def lower_request_reply(statements: Statements, node: ast.Expr, call: ast.Call) -> None:
    """Lower the statement `request.reply(value)`."""
    assert isinstance(call.func, ast.Attribute)
    assert isinstance(call.func.value, ast.Name)
    entry = statements.entry(call.func.value.id)
    if isinstance(entry, Held) and is_refused(entry.type):
        return
    hoist_inside(statements, call)
    variable = statements.scope.name(call.func.value.id)
    if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
        help_ = f"{statements.unit.text(call.func)}(value)"
        statements.unit.refuse(call, "HF008", "reply() takes one value", help_)
        return
    try:
        action = lower_reply(statements.expressions, variable, _id_of(variable), call.args[0])
    except StepRefused:
        statements.lose(call)
        return
    statements.emit(StepStatement(statements.origin(node), action, ()))


def _id_of(variable: str) -> QueryTree:
    return ItemOf(Variable(variable), Constant(0))


# The ways through the block of a request. Each of them must reply exactly once, at its end.


def _require_replies(statements: Statements, node: ast.With, name: str) -> None:
    """Refuse a block in which some way has no reply, or has statements after the reply."""
    ways = _Ways(name)
    if ways.after(node.body, "open") == "open":
        ways.faults.append((node.body[-1], "a way through the block ends without a reply"))
    for at, message in ways.faults[:1]:
        help_ = f"{name}.reply(…) as the last statement of each way through the block"
        statements.unit.refuse(at, "HF159", message, help_)


class _Ways:
    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: list[tuple[ast.AST, str]] = []

    def after(self, block: Sequence[ast.stmt], point: _Point) -> _Point:
        for node in block:
            is_jump = isinstance(node, ast.Return | ast.Break | ast.Continue)
            if point == "replied" and not is_jump:
                self.faults.append(
                    (node, "this comes after the reply, and its error would be lost")
                )
                return "left"
            point = self._step(node, point)
        return point

    def _step(self, node: ast.stmt, point: _Point) -> _Point:
        match node:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="reply"))
            ):
                return "replied" if name == self.name else point
            case ast.Return() | ast.Break() | ast.Continue():
                if point == "open":
                    self.faults.append((node, "a way through the block ends without a reply"))
                return "left"
            case ast.Raise():
                return "left"
            case ast.If(body=body, orelse=orelse):
                return self._meet(node, [self.after(body, point), self.after(orelse, point)])
            case ast.Match(cases=cases):
                return self._meet(node, [self.after(case.body, point) for case in cases])
            case ast.With(body=body):
                return self.after(body, point)
            case ast.Try(body=body, handlers=handlers, orelse=orelse):
                whole = self.after(orelse, self.after(body, point))
                return self._meet(node, [whole, *(self.after(one.body, point) for one in handlers)])
            case ast.For() | ast.While():
                self._check_loop(node)
                return point
            case _:
                return point

    def _meet(self, node: ast.stmt, points: Sequence[_Point]) -> _Point:
        reached = {point for point in points if point != "left"}
        if len(reached) > 1:
            self.faults.append((node, "only some ways through this have replied"))
            return "left"
        return reached.pop() if reached else "left"

    def _check_loop(self, loop: ast.stmt) -> None:
        """Refuse a reply in a loop, which may run it twice or never. A jump out of the loop is
        checked like any other jump.
        """
        for node in _inside(loop):
            match node:
                case ast.Return():
                    pass
                case ast.Attribute(value=ast.Name(id=name), attr="reply") if name == self.name:
                    pass
                case _:
                    continue
            self.faults.append((node, "a loop may reply twice, or never"))
            return


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below, without those of functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from _inside(child)
