"""The workflow between Python and ASL: structured statements, resolved names, typed queries.

Every variable is an ASL variable, every durable call a `Step` of its own, and every statement knows
the source it came from. Nothing here refers to `ast`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from holdfast.api.surface import Task, Workflow
from holdfast.asl.program import AttributeKind
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.source import Source, Span

Statement: TypeAlias = (
    "Assign | If | Loop | Break | Continue | Return | Raise | Reraise | Try | Finally | Compensate"
    " | RegisterUndo | Shielded | TimeoutBlock | StepStatement | Inlined | Leave"
)
StatementBlock: TypeAlias = tuple[Statement, ...]
Action: TypeAlias = (
    "TaskAction | RunWorkflow | StartWorkflow | Again | SendEvent | StopExecution | Reply"
    " | WaitForEvent | Ask | Publish | Note | Sleep | SleepUntil | RunParallel | RunFirst | RunEach"
)


class SourcePlace(NamedTuple):
    """The place of a statement, and its text, of which the name of its state is made.

    `source`: the file of a workflow or helper; None for the file of a graph.
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
    """`setup`, then `head` and, while `test` holds (None: always), `advance` and the body.

    A `for` loop counts through a list in two variables; `while` has neither setup nor advance, but
    steps in its test make a `head`. `orelse` runs when the test has failed, not after a `break`.
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
    holds the error.
    """

    origin: SourcePlace
    classes: tuple[type[BaseException], ...]
    names: tuple[str, ...]
    variable: str | None
    body: StatementBlock


class Failures(NamedTuple):
    """The errors that a block can raise; `anything` when a task runs in it."""

    anything: bool = False
    raised: frozenset[type[BaseException]] = frozenset()
    expressions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Try:
    """A `try`. `orelse` follows the body; the handlers do not catch its errors. `failures`: the
    errors of the body.
    """

    origin: SourcePlace
    body: StatementBlock
    handlers: tuple[ErrorHandler, ...]
    orelse: StatementBlock
    failures: Failures


class Way(Enum):
    """How the flow leaves a part with a `finally`. The value's text is added to the names of
    states.
    """

    END = ""
    ERROR = "after an error"
    RETURN = "before return"
    BREAK = "before break"
    CONTINUE = "before continue"


@dataclass(frozen=True, slots=True)
class Final:
    """The `finally` body on one way out; `then` is the next statement, None: the line after it."""

    way: Way
    body: StatementBlock
    then: Statement | None


@dataclass(frozen=True, slots=True)
class Finally:
    """A part with a `finally`. Each way out has its own copy of the body, so that no copy waits for
    another's variable.

    `failure` holds the error while the body runs after one.
    """

    origin: SourcePlace
    body: StatementBlock
    failure: str
    finals: tuple[Final, ...]


@dataclass(frozen=True, slots=True)
class Compensate:
    """The variables: `steps` registered so far, `left` to undo, `failure` that caused it.

    `stops`: an undo step that fails stops the others.
    """

    origin: SourcePlace
    steps: str
    left: str
    failure: str
    body: StatementBlock
    stops: bool


@dataclass(frozen=True, slots=True)
class RegisterUndo:
    """Adds an undo step to the list `steps`."""

    origin: SourcePlace
    steps: str
    task: Task[..., Any]
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class Shielded:
    """A part that is not cancelled in the middle."""

    origin: SourcePlace
    body: StatementBlock


@dataclass(frozen=True, slots=True)
class TimeoutBlock:
    """A block that raises BlockTimeout when its body has not ended after `seconds`."""

    origin: SourcePlace
    seconds: TypedQuery
    body: StatementBlock


class Target(NamedTuple):
    """The target of a step's result: all of it, or its part number `part`."""

    variable: str
    part: int | None = None


@dataclass(frozen=True, slots=True)
class StepStatement:
    """A statement that runs a step. `targets` None: the result is the return value of the workflow
    or branch.
    """

    origin: SourcePlace
    action: Action
    targets: tuple[Target, ...] | None


@dataclass(frozen=True, slots=True)
class Inlined:
    """The body of a helper in the place of its call. It is left at its end, or by `Leave`."""

    origin: SourcePlace
    body: StatementBlock


@dataclass(frozen=True, slots=True)
class Leave:
    """A `return` of a helper: continue after the innermost `Inlined`."""

    origin: SourcePlace


@dataclass(frozen=True, slots=True)
class TaskAction:
    task: Task[..., Any]
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class RunWorkflow:
    """A child execution. `arguments`: its whole input, with the defaults that the call omitted."""

    workflow: Workflow[..., Any]
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class StartWorkflow:
    """An execution that nothing waits for. `arguments`: as in `RunWorkflow`."""

    workflow: Workflow[..., Any]
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class Again:
    """The workflow goes on as new. `arguments`: its whole input."""

    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class SendEvent:
    """`arguments`: name, key and data of the event."""

    event: str
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class StopExecution:
    """`arguments`: the id of the execution."""

    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class Reply:
    """`request`: the variable of the request, which names the state. `arguments`: its id, and the
    value or the error.
    """

    request: str
    arguments: TypedQuery


@dataclass(frozen=True, slots=True)
class WaitForEvent:
    event: str
    payload: Any
    key: TypedQuery
    timeout: TypedQuery | None


@dataclass(frozen=True, slots=True)
class Ask:
    answer: Any
    arguments: TypedQuery
    timeout: TypedQuery | None


@dataclass(frozen=True, slots=True)
class Publish:
    """Publishes a value that callers of the API can read. The execution does not wait."""

    name: str
    value: TypedQuery


@dataclass(frozen=True, slots=True)
class Note:
    """Sets search attributes: name, type and value of each. The execution does not wait."""

    attributes: tuple[tuple[str, AttributeKind, TypedQuery], ...]


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: TypedQuery


@dataclass(frozen=True, slots=True)
class SleepUntil:
    """The text of a time stamp with its offset."""

    moment: TypedQuery


@dataclass(frozen=True, slots=True)
class RunParallel:
    """Branches at the same time. `needed` must succeed (None: all) and `tolerated` may fail (None:
    none).
    """

    branches: tuple[StatementBlock, ...]
    needed: TypedQuery | None
    tolerated: TypedQuery | None


@dataclass(frozen=True, slots=True)
class RunFirst:
    """Branches of which the first to end decides the result: its value or its error."""

    branches: tuple[StatementBlock, ...]


@dataclass(frozen=True, slots=True)
class RunEach:
    """`parameter` None: the branch does not look at its item. No `concurrency`: no bound.

    How many calls must succeed (None: all) and how many may fail (None: none).
    """

    items: TypedQuery
    parameter: str | None
    body: StatementBlock
    concurrency: TypedQuery | None
    needed: TypedQuery | None
    tolerated: TypedQuery | None


def blocks_of(statement: Statement) -> tuple[StatementBlock, ...]:
    """The blocks inside a statement that belong to the same frame of execution."""
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
    """All blocks inside a statement: a step has branches, any other its own blocks."""
    return branches_of(statement) if isinstance(statement, StepStatement) else blocks_of(statement)


def branches_of(statement: Statement) -> tuple[StatementBlock, ...]:
    """The blocks that run in frames of their own."""
    match statement:
        case StepStatement(action=RunParallel(branches) | RunFirst(branches)):
            return branches
        case StepStatement(action=RunEach(body=body)):
            return (body,)
        case _:
            return ()
