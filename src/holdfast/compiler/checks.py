"""Checks of the finished intermediate form (IR): handlers that never run, loops that never end."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from holdfast.api.payloads import display, reference_of
from holdfast.api.surface import BlockTimeout, CompensationFailed, WaitTimeout
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.ir import (
    Again,
    Ask,
    Assign,
    Break,
    Compensate,
    ErrorHandler,
    Failures,
    Finally,
    If,
    Inlined,
    Leave,
    Loop,
    Note,
    Publish,
    Raise,
    Receive,
    RegisterUndo,
    Reply,
    Reraise,
    Return,
    RunEach,
    RunFirst,
    RunParallel,
    RunWorkflow,
    SendEvent,
    SendRequest,
    Sleep,
    SleepUntil,
    SourcePlace,
    StartWorkflow,
    Statement,
    StatementBlock,
    StepStatement,
    StopExecution,
    TaskAction,
    TimeoutBlock,
    Try,
    WaitForEvent,
    blocks_of,
    inner_blocks,
)
from holdfast.limits import REQUEST_SUFFIX

ReportProblem = Callable[[SourcePlace, str, str, str], None]


NO_FAILURES: Final = Failures()


def failures_of(block: StatementBlock, *, only_uncaught: bool = False) -> Failures:
    """Return the errors that the block may raise. There may be too many, but none is missing:
    errors that an inner handler catches are included.

    `only_uncaught`: leave out what an inner `except Exception` catches.
    """
    anything, told = False, False
    raised, expressions, children = set[type[BaseException]](), set[str](), set[str]()
    pending = [*block]
    while pending:
        statement = pending.pop()
        is_caught = only_uncaught and isinstance(statement, Try) and _catches_all(statement)
        found = NO_FAILURES if is_caught else _failures_of_statement(statement)
        if found is not NO_FAILURES:
            anything = anything or found.anything
            told = told or found.told
            raised |= found.raised
            expressions |= found.expressions
            children |= found.children
        # The first inner block of a Try is its body. Skip it, because the errors of a Try already
        # contain those of its body.
        known = 1 if isinstance(statement, Try) else 0
        for inner in inner_blocks(statement)[known:]:
            pending += inner
    return Failures(anything, frozenset(raised), frozenset(expressions), told, frozenset(children))


def nameless_in(block: StatementBlock) -> str:
    """Return the first expression of the block whose error has no name, and its line, for a
    refusal; "" without one.
    """
    for statement in statements_of(block):
        if not isinstance(statement, Try) and _failures_of_statement(statement).expressions:
            origin = statement.origin
            return f"`{origin.text}` on line {origin.span.line}"
    return ""


def _catches_all(statement: Try) -> bool:
    return any(issubclass(Exception, handler.classes) for handler in statement.handlers)


def unnamed_failures(block: StatementBlock) -> frozenset[str]:
    """Return the errors of expressions that may leave the block. One that is kept and raised later
    leaves it, too.
    """
    found = set[str]()
    pending = [*block]
    statements = statements_of(block)
    handlers = [one for part in statements if isinstance(part, Try) for one in part.handlers]
    caught = {handler.variable for handler in handlers}
    is_kept = any(isinstance(one, Reraise) and one.error not in caught for one in statements)
    while pending:
        statement = pending.pop()
        blocks = inner_blocks(statement)
        if not isinstance(statement, Try):
            found |= _failures_of_statement(statement).expressions
        elif _catches_all(statement) and not is_kept and not _raises_again(statement):
            blocks = blocks[1:]
        for inner in blocks:
            pending += inner
    return frozenset(found)


def _raises_again(statement: Try) -> bool:
    return any(
        isinstance(one, Reraise)
        for handler in statement.handlers
        for one in statements_of(handler.body)
    )


def _failures_of_statement(statement: Statement) -> Failures:
    match statement:
        case Assign(_, values):
            return _expressions(value.fails for _, value in values)
        case If(_, test):
            return _expressions([test.fails])
        case Loop(_, setup, _, test, advance):
            fails = [value.fails for _, value in (*setup, *advance)]
            return _expressions([*fails, *([] if test is None else [test.fails])])
        case Return(_, value):
            return _expressions([value.fails])
        case Raise(_, error, cause):
            return Failures(raised=frozenset({error}), expressions=cause.fails)
        case RegisterUndo(action=action):
            return _expressions([action.arguments.fails])
        case Reraise():
            return Failures(anything=True)
        case Compensate():
            return Failures(raised=frozenset({CompensationFailed}))
        case TimeoutBlock(seconds=seconds):
            return Failures(raised=frozenset({BlockTimeout}), expressions=seconds.fails)
        case StepStatement(_, action):
            return _failures_of_action(action)
        case Try(failures=failures):
            return failures
        case _:
            return NO_FAILURES


def _failures_of_action(action: object) -> Failures:
    match action:
        case (
            TaskAction(_, arguments)
            | StartWorkflow(_, arguments)
            | SendEvent(_, arguments)
            | Reply(_, arguments)
            | StopExecution(arguments)
            | Again(arguments)
        ):
            return Failures(anything=True, expressions=arguments.fails)
        case RunWorkflow(workflow, arguments, failures):
            children = frozenset({workflow.name} if failures else ())
            fails = arguments.fails | failures
            return Failures(anything=True, expressions=fails, children=children)
        case SendRequest(_, _, arguments, timeout):
            fails = arguments.fails if timeout is None else arguments.fails | timeout.fails
            return Failures(anything=True, expressions=fails)
        case WaitForEvent(event, _, value, timeout):
            return _failures_of_wait(value, timeout, told=not event.endswith(REQUEST_SUFFIX))
        case Ask(_, value, timeout):
            return _failures_of_wait(value, timeout, told=True)
        case Sleep(value) | SleepUntil(value) | Publish(_, value):
            return _expressions([value.fails])
        case Note(attributes):
            return _expressions([value.fails for _, _, value in attributes])
        case RunEach(items, _, _, concurrency, needed, tolerated):
            given = (concurrency, needed, tolerated)
            counts = [count for count in given if count is not None]
            return _expressions([items.fails, *(count.fails for count in counts)])
        case RunParallel(_, concurrency, needed, tolerated):
            given = (concurrency, needed, tolerated)
            return _expressions([count.fails for count in given if count is not None])
        case _:
            return NO_FAILURES


def _failures_of_wait(value: TypedQuery, timeout: TypedQuery | None, *, told: bool) -> Failures:
    if timeout is None:
        return Failures(told=told, expressions=value.fails)
    raised = frozenset[type[BaseException]]({WaitTimeout})
    return Failures(told=told, raised=raised, expressions=value.fails | timeout.fails)


def _expressions(fails: Iterable[frozenset[str]]) -> Failures:
    found = frozenset[str]().union(*fails)
    return Failures(expressions=found) if found else NO_FAILURES


_ANY_FAILURE: Final = Failures(anything=True)


def check(
    statements: Iterable[Statement],
    lost_lines: Collection[tuple[str, int]],
    report: ReportProblem,
    *,
    may_run_forever: bool = False,
) -> None:
    """Refuse handlers that never run. Refuse endless loops unless the workflow `may_run_forever`.
    `lost_lines` are lines whose steps were refused, so that `statements` does not contain them.
    """
    payloads: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    ended_from_outside = set[int]()
    for statement in statements:
        ended_from_outside.update(id(loop) for loop in _loops_ended_by(statement))
        match statement:
            case (
                StepStatement(origin=origin, action=TaskAction(task))
                | RegisterUndo(origin=origin, action=TaskAction(task))
            ):
                if functions.setdefault(task.name, task.function) is not task.function:
                    message = f"this workflow calls two tasks that are named `{task.name}`"
                    report(origin, "HF161", message, f'@task(name="another_{task.name}")')
            case Try(origin, handlers=handlers):
                lines = range(origin.span.line, handlers[0].origin.span.line if handlers else 0)
                file = "" if origin.source is None else origin.source.file
                is_whole = not any(at == file and line in lines for at, line in lost_lines)
                failures = statement.failures if is_whole else _ANY_FAILURE
                _check_handlers(failures, handlers, report)
            case Loop(origin, test=None, body=body) if not (
                may_run_forever
                or id(statement) in ended_from_outside
                or _has_exit(body)
                or _is_after(origin, lost_lines)
            ):
                help_ = (
                    "add a `break`, a `return`, or a condition that can become false; "
                    "or put a `try` around it, whose `except` catches the error that ends it, "
                    "or let another branch of `first` end it"
                )
                report(origin, "HF014", f"`{origin.text}` has no exit", help_)
            case StepStatement(origin, WaitForEvent(event, payload)):
                other = payloads.setdefault(event, payload)
                if other != payload:
                    here, before = (display(reference_of(one)) for one in (payload, other))
                    message = f"`{event}` is {here} here and {before} before"
                    report(origin, "HF053", message, "give each event one class, or two names")
            case _:
                pass


def _loops_ended_by(statement: Statement) -> Sequence[Statement]:
    """Return the endless loops that a statement around them ends: a handler that catches an error
    of the loop, the deadline of a block, or the end of another branch of `first`.
    """
    match statement:
        case Try(_, body, handlers):
            return [loop for loop in statements_of(body) if _is_ended(loop, handlers)]
        case TimeoutBlock(body=body):
            return [loop for loop in statements_of(body) if isinstance(loop, Loop)]
        case StepStatement(action=RunFirst(branches)):
            endless = [_endless_loops(branch) for branch in branches]
            # The branches are cancelled only if one of them can end, and each at a step.
            return [loop for one in endless for loop in one] if not all(endless) else ()
        case _:
            return ()


def _endless_loops(branch: StatementBlock) -> list[Loop]:
    """Return the loops of the branch that never end of their own accord, and that wait."""
    loops = [one for one in statements_of(branch) if isinstance(one, Loop) and one.test is None]
    return [loop for loop in loops if not _has_exit(loop.body) and _waits(loop.body)]


#: The actions that are carried out without waiting, so that no other branch goes on meanwhile.
_PLAIN: Final = (Publish, Note, SendEvent, Reply, StartWorkflow, StopExecution, Again)


def _waits(block: StatementBlock) -> bool:
    """Return True for a block that always comes to a step that waits, where its branch can be
    cancelled, or that raises an error.
    """
    return any(_is_wait(one) for one in block)


def _is_wait(statement: Statement) -> bool:
    match statement:
        case StepStatement(action=TaskAction(task)):
            return not task.is_pure
        case StepStatement(action=action):
            return not isinstance(action, _PLAIN)
        case If(body=body, orelse=orelse):
            return _waits(body) and _waits(orelse)
        case Receive() | Raise() | Reraise():
            return True
        case Loop(test=None, body=body) | Try(body=body) | Finally(body=body):
            return _waits(body)
        case Compensate(body=body) | TimeoutBlock(body=body) | Inlined(body=body):
            return _waits(body)
        case _:
            # A shielded block waits, and cannot be cancelled there.
            return False


def _is_ended(statement: Statement, handlers: tuple[ErrorHandler, ...]) -> bool:
    if not (isinstance(statement, Loop) and statement.test is None):
        return False
    failures = failures_of(statement.body, only_uncaught=True)
    classes = [cls for handler in handlers for cls in handler.classes]
    return any(_can_fail_with(failures, cls) for cls in classes)


def _is_after(origin: SourcePlace, lost_lines: Collection[tuple[str, int]]) -> bool:
    """Return True when a refused line follows, because a `break` may be lost with it."""
    return any(
        origin.source is not None and file == origin.source.file and line >= origin.span.line
        for file, line in lost_lines
    )


def statements_of(block: StatementBlock) -> Sequence[Statement]:
    """Yield every statement, outer before inner, including those in branches."""
    found: list[Statement] = []
    pending = list(reversed(block))
    while pending:
        statement = pending.pop()
        found.append(statement)
        for inner in reversed(inner_blocks(statement)):
            pending.extend(reversed(inner))
    return found


def _check_handlers(
    failures: Failures, handlers: tuple[ErrorHandler, ...], report: ReportProblem
) -> None:
    earlier: list[type[BaseException]] = []
    for handler in handlers:
        new = [cls for cls in handler.classes if not issubclass(cls, tuple(earlier))]
        if not new:
            message = "this handler can never run: an earlier one catches the same errors"
            report(handler.origin, "HF033", message, "put the handler of the base class last")
        elif not _only_raises_again(handler) and not any(
            _can_fail_with(failures, cls) for cls in handler.classes
        ):
            report(
                handler.origin,
                "HF033",
                "this handler can never run: nothing in the try body can fail with that error",
                "remove it: only tasks, waits and `raise` fail with errors that have a name",
            )
        earlier.extend(handler.classes)


def _only_raises_again(handler: ErrorHandler) -> bool:
    """Return True for `except BlockTimeout: raise`, which says that the error goes on."""
    return bool(handler.body) and all(isinstance(one, Reraise) for one in handler.body)


def _can_fail_with(failures: Failures, cls: type[BaseException]) -> bool:
    """Return True when a handler for the class can catch one of the failures. The error of an
    expression counts only for its own class; HF032 reports a handler for another one.
    """
    own = (getattr(builtins, name) for name in failures.expressions)
    if failures.anything or (failures.told and not issubclass(cls, WaitTimeout)):
        return True
    return any(issubclass(raised, cls) for raised in (*failures.raised, *own))


def _has_exit(block: StatementBlock) -> bool:
    """Return True when the body of an endless loop can leave the loop. A `break` that leaves only
    an inner loop does not count.
    """
    for statement in block:
        match statement:
            case Break() | Return() | Leave() | Raise() | Reraise() | StepStatement(targets=None):
                return True
            case Inlined(body=body):
                if _has_exit(
                    tuple(one for one in statements_of(body) if not isinstance(one, Leave | Break))
                ):
                    return True
            case Loop(body=body, orelse=orelse):
                inner = tuple(one for one in statements_of(body) if not isinstance(one, Break))
                if _has_exit(inner) or _has_exit(orelse):
                    return True
            case Finally(body=body):
                # An error that ends the body continues after the `finally`, so it is not a way out
                # of the loop.
                if _has_exit(body):
                    return True
            case _:
                if any(_has_exit(inner) for inner in blocks_of(statement)):
                    return True
    return False
