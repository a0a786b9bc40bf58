"""The intermediate form of a workflow, between Python and ASL: structured statements, resolved
names, typed queries.

Every variable is an ASL variable, every durable call is a `Step` of its own, and every statement
has its place in the source. Nothing here refers to `ast`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, TypeAlias

from holdfast.api.surface import Task, Workflow
from holdfast.asl.program import AttributeKind
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import ObjectOf
from holdfast.compiler.source import Source, Span

Statement: TypeAlias = (
    "Assign | If | Loop | Break | Continue | Return | Raise | Reraise | Try | Finally | Compensate"
    " | RegisterUndo | Shielded | TimeoutBlock | Receive | StepStatement | Inlined | Leave"
)
StatementBlock: TypeAlias = tuple[Statement, ...]
Action: TypeAlias = (
    "TaskAction | RunWorkflow | StartWorkflow | Again | SendEvent | StopExecution | Reply"
    " | SendRequest"
    " | WaitForEvent | Ask | Publish | Note | Sleep | SleepUntil | RunParallel | RunFirst | RunEach"
)
#: The actions that may undo: each is one Task state without a result that is needed.
UndoAction: TypeAlias = "TaskAction | RunWorkflow | StartWorkflow | SendEvent | StopExecution"


class SourcePlace(NamedTuple):
    """The place of a statement in the source, and its text, from which the name of its state is
    made.

    `source` is the file of a workflow or helper; None for the file of a graph.
    """

    span: Span
    text: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """An assignment. All values are computed before any variable changes."""

    origin: SourcePlace
    values: tuple[tuple[str, TypedQuery], ...]


@dataclass(frozen=True, slots=True)
class If:
    origin: SourcePlace
    test: TypedQuery
    body: StatementBlock
    orelse: StatementBlock


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: `setup` once; then, as long as `test` is true (None: always), `head`, the test,
    `advance` and the body.

    A `for` counts through a list in two variables. A `while` has no setup and no advance, but steps
    in its test become its `head`. `orelse` runs when the test was false, and not after a `break`.
    """

    origin: SourcePlace
    setup: tuple[tuple[str, TypedQuery], ...]
    head: StatementBlock
    test: TypedQuery | None
    advance: tuple[tuple[str, TypedQuery], ...]
    body: StatementBlock
    orelse: StatementBlock


@dataclass(frozen=True, slots=True)
class Break:
    origin: SourcePlace


@dataclass(frozen=True, slots=True)
class Continue:
    origin: SourcePlace


@dataclass(frozen=True, slots=True)
class Return:
    origin: SourcePlace
    value: TypedQuery


@dataclass(frozen=True, slots=True)
class Raise:
    origin: SourcePlace
    error: type[BaseException]
    cause: TypedQuery


@dataclass(frozen=True, slots=True)
class Reraise:
    """Raise the error that the ASL variable `error` holds: `{"Error", "Cause"}`."""

    origin: SourcePlace
    error: str


@dataclass(frozen=True, slots=True)
class ErrorHandler:
    """One handler of a `try`. `names` are the ASL names of its errors, or States.ALL; `variable`
    gets the error.
    """

    origin: SourcePlace
    classes: tuple[type[BaseException], ...]
    names: tuple[str, ...]
    variable: str | None
    body: StatementBlock


class Failures(NamedTuple):
    """The errors that a block can raise. `anything`: a task runs in it, which may raise any
    error. `told`: it waits for an event or an answer, which may fail it with any error but a
    time-out. `children`: the called workflows whose expressions raise some of `expressions`.
    """

    anything: bool = False
    raised: frozenset[type[BaseException]] = frozenset()
    expressions: frozenset[str] = frozenset()
    told: bool = False
    children: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Try:
    """A `try`. `orelse` follows the body, but the handlers do not catch its errors. `failures` are
    the errors of the body.
    """

    origin: SourcePlace
    body: StatementBlock
    handlers: tuple[ErrorHandler, ...]
    orelse: StatementBlock
    failures: Failures


class Way(Enum):
    """How the flow leaves a part with a `finally`. The value is added to the names of the states in
    that copy of its body.
    """

    END = ""
    ERROR = "after an error"
    RETURN = "before return"
    BREAK = "before break"
    CONTINUE = "before continue"


@dataclass(frozen=True, slots=True)
class Final:
    """The `finally` body on one way out. `then` is the statement after it; None: the next line of
    the source.
    """

    way: Way
    body: StatementBlock
    then: Statement | None


@dataclass(frozen=True, slots=True)
class Finally:
    """A part with a `finally`. Each way out has its own copy of the body, so no variable has to say
    which way it is.

    `failure` holds the error while the body runs after an error.
    """

    origin: SourcePlace
    body: StatementBlock
    failure: str
    finals: tuple[Final, ...]


@dataclass(frozen=True, slots=True)
class Compensate:
    """A `compensating` block. Its variables: `steps` registered so far, `left` to undo, `failure`
    that caused the undo.

    `stops`: after a failed undo step no further undo step runs.
    """

    origin: SourcePlace
    steps: str
    left: str
    failure: str
    body: StatementBlock
    stops: bool


@dataclass(frozen=True, slots=True)
class RegisterUndo:
    """Add an undo step to the list `steps`. Its action has the arguments of the moment of
    registration. `name`: the name of the called function in the error of a failed undo.
    """

    origin: SourcePlace
    steps: str
    name: str
    action: UndoAction


@dataclass(frozen=True, slots=True)
class Shielded:
    """A part that a cancellation does not interrupt."""

    origin: SourcePlace
    body: StatementBlock


@dataclass(frozen=True, slots=True)
class TimeoutBlock:
    """A block that raises BlockTimeout when its body has not ended after `seconds`."""

    origin: SourcePlace
    seconds: TypedQuery
    body: StatementBlock


class Target(NamedTuple):
    """Where the result of a step goes: all of it, or its part number `part`."""

    variable: str
    part: int | None = None


@dataclass(frozen=True, slots=True)
class StepStatement:
    """A statement that runs a step. With `targets` None the result is the return value of the
    workflow or branch.
    """

    origin: SourcePlace
    action: Action
    targets: tuple[Target, ...] | None


@dataclass(frozen=True, slots=True)
class Inlined:
    """The body of a helper in the place of its call. It ends at its last statement, or at a
    `Leave`.
    """

    origin: SourcePlace
    body: StatementBlock


@dataclass(frozen=True, slots=True)
class Leave:
    """A `return` of a helper: continue after the innermost `Inlined`."""

    origin: SourcePlace


@dataclass(frozen=True, slots=True)
class TaskAction:
    """`pool`: the name of the pool that the call computes; None for the place that the task names.
    The failures of `pool` are among those of `arguments`.
    """

    task: Task[..., Any]
    arguments: TypedQuery
    pool: TypedQuery | None = None


@dataclass(frozen=True, slots=True)
class RunWorkflow:
    """Run a workflow as a child execution. `arguments` is its whole input, with the defaults that
    the call omitted. `failures` are the errors of the child's expressions that have no name of
    their own; see `called`.
    """

    workflow: Workflow[..., Any]
    arguments: TypedQuery
    failures: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StartWorkflow:
    """Start an execution for which nothing waits. `arguments` is its whole input; `later` has
    `delay` or `at`, when it begins later.
    """

    workflow: Workflow[..., Any]
    arguments: TypedQuery
    later: ObjectOf | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Continue the workflow as new. `arguments` is its whole new input."""

    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class SendEvent:
    """Send an event. `arguments`: its name, key and data, and `delay` or `at` when it is sent
    later.
    """

    event: str
    arguments: TypedQuery
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request and wait for its reply. `arguments`: its name, key and data; `reply`: the type
    of the reply.
    """

    request: str
    reply: Any
    arguments: TypedQuery
    timeout: TypedQuery | None


@dataclass(frozen=True, slots=True)
class StopExecution:
    """Stop an execution. `arguments`: its id."""

    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class Receive:
    """The block of a request. `cancelled` replies when the block is cancelled before its reply."""

    origin: SourcePlace
    body: StatementBlock
    cancelled: StepStatement


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a request. `request` is the variable of the request, which is part of the state's
    name. `arguments`: its id, and the value or the error.
    """

    request: str
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class WaitForEvent:
    """`kept`: the wait may use an event that was stored before the execution started."""

    event: str
    payload: Any
    key: TypedQuery
    timeout: TypedQuery | None
    kept: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    answer: Any
    arguments: TypedQuery
    timeout: TypedQuery | None


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish a value that callers of the API can read. The execution does not wait."""

    name: str
    value: TypedQuery


@dataclass(frozen=True, slots=True)
class Note:
    """Set search attributes: name, type and value of each. The execution does not wait."""

    attributes: tuple[tuple[str, AttributeKind, TypedQuery], ...]


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: TypedQuery


@dataclass(frozen=True, slots=True)
class SleepUntil:
    """Wait until a time. `moment` is the text of a timestamp with its offset."""

    moment: TypedQuery


class BranchErrors(Enum):
    """The treatment of the errors of branches."""

    #: The step fails with the first error that it does not tolerate.
    RAISED = auto()
    #: Each branch returns its error. For the engine it has succeeded.
    RETURNED = auto()
    #: The engine counts the branches that fail, and their errors are results.
    COUNTED = auto()
    #: Each branch returns its error, and the statements after the step raise the first one.
    LATE = auto()


@dataclass(frozen=True, slots=True)
class RunParallel:
    """Run branches in parallel, `concurrency` of them at the same time (None or 0: all). `needed`
    of them must succeed (None: all) and `tolerated` may fail (None: none).
    """

    branches: tuple[StatementBlock, ...]
    concurrency: TypedQuery | None
    needed: TypedQuery | None
    tolerated: TypedQuery | None
    errors: BranchErrors = BranchErrors.RAISED


@dataclass(frozen=True, slots=True)
class RunFirst:
    """Run branches in parallel. The first one that ends decides the result: its value or its
    error.
    """

    branches: tuple[StatementBlock, ...]


@dataclass(frozen=True, slots=True)
class RunEach:
    """Run a branch for each item. `parameters` get the item, or its parts; there are none when the
    branch does not use its item. Without `concurrency` all may run at once.

    `needed` calls must succeed (None: all), and `tolerated` may fail (None: none).
    """

    items: TypedQuery
    parameters: tuple[Target, ...]
    body: StatementBlock
    concurrency: TypedQuery | None
    needed: TypedQuery | None
    tolerated: TypedQuery | None
    errors: BranchErrors = BranchErrors.RAISED


def blocks_of(statement: Statement) -> tuple[StatementBlock, ...]:
    """Return the blocks inside a statement that run on the same line of control."""
    match statement:
        case Assign() | StepStatement():
            return ()
        case If(_, _, body, orelse):
            return (body, orelse)
        case Loop(_, _, head, _, _, body, orelse):
            return (head, body, orelse)
        case (
            Compensate(body=body)
            | Shielded(body=body)
            | TimeoutBlock(body=body)
            | Receive(body=body)
            | Inlined(body=body)
        ):
            return (body,)
        case Try(_, body, handlers, orelse):
            return (body, *(handler.body for handler in handlers), orelse)
        case Finally(_, body, _, finals):
            return (body, *(final.body for final in finals))
        case _:
            return ()


def inner_blocks(statement: Statement) -> tuple[StatementBlock, ...]:
    """Return all blocks inside a statement: the branches of a step, or the blocks of any other
    statement.
    """
    return branches_of(statement) if isinstance(statement, StepStatement) else blocks_of(statement)


def branches_of(statement: Statement) -> tuple[StatementBlock, ...]:
    """Return the blocks that run as branches, on lines of control of their own."""
    match statement:
        case StepStatement(action=RunParallel(branches) | RunFirst(branches)):
            return branches
        case StepStatement(action=RunEach(body=body)):
            return (body,)
        case _:
            return ()
