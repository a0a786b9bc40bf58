"""The workflow between Python and ASL: structured statements, resolved names, typed queries.

Every variable is an ASL variable, every durable call a `Step` of its own, and every statement knows
the source it came from. Nothing here refers to `ast`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from holdfast.dsl.context import Expression
from holdfast.dsl.source import Span
from holdfast.dsl.surface import Task, Workflow

Statement: TypeAlias = (
    "Assign | If | Loop | Break | Continue | Return | Raise | Reraise | Try | Finally | Compensate"
    " | Register | Shielded | Deadline | Step"
)
Block: TypeAlias = tuple[Statement, ...]
Action: TypeAlias = (
    "RunTask | RunWorkflow | WaitForEvent | Ask | Sleep | SleepUntil | RunParallel | RunFirst"
    " | RunEach"
)


class Origin(NamedTuple):
    """The place of a statement, and its text, of which the name of its state is made."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Assign:
    """All values are computed before any variable changes."""

    origin: Origin
    values: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class If:
    origin: Origin
    test: Expression
    body: Block
    orelse: Block


@dataclass(frozen=True, slots=True)
class Loop:
    """`setup`, then `head` and, while `test` holds (None: always), `advance` and the body.

    A `for` loop counts through a list in two variables; `while` has neither setup nor advance, but
    steps in its test make a `head`. `orelse` runs when the test has failed, not after a `break`.
    """

    origin: Origin
    setup: tuple[tuple[str, Expression], ...]
    head: Block
    test: Expression | None
    advance: tuple[tuple[str, Expression], ...]
    body: Block
    orelse: Block


@dataclass(frozen=True, slots=True)
class Break:
    origin: Origin


@dataclass(frozen=True, slots=True)
class Continue:
    origin: Origin


@dataclass(frozen=True, slots=True)
class Return:
    origin: Origin
    value: Expression


@dataclass(frozen=True, slots=True)
class Raise:
    origin: Origin
    error: type[BaseException]
    cause: Expression


@dataclass(frozen=True, slots=True)
class Reraise:
    """Raises what the ASL variable `error` holds: `{"Error", "Cause"}`."""

    origin: Origin
    error: str


@dataclass(frozen=True, slots=True)
class Handler:
    """`names` are the ASL names of the errors, or States.ALL; `variable` holds the error."""

    origin: Origin
    classes: tuple[type[BaseException], ...]
    names: tuple[str, ...]
    variable: str | None
    body: Block


class Failures(NamedTuple):
    """What a block can fail with; `anything` when a task runs in it."""

    anything: bool = False
    raised: frozenset[type[BaseException]] = frozenset()
    expressions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Try:
    """`orelse` follows the body; the handlers do not see its errors. `failures`: of the body."""

    origin: Origin
    body: Block
    handlers: tuple[Handler, ...]
    orelse: Block
    failures: Failures


class Way(Enum):
    """How the flow leaves a part that has a `finally`; the text marks the names of states."""

    END = ""
    ERROR = "after an error"
    RETURN = "before return"
    BREAK = "before break"
    CONTINUE = "before continue"


@dataclass(frozen=True, slots=True)
class Final:
    """The `finally` body on one way out, and `then` to go on; None: the line after it."""

    way: Way
    body: Block
    then: Statement | None


@dataclass(frozen=True, slots=True)
class Finally:
    """Each way out has its own copy of the `finally` body: none waits for another's variable.

    `failure` holds the error while the body runs after one.
    """

    origin: Origin
    body: Block
    failure: str
    finals: tuple[Final, ...]


@dataclass(frozen=True, slots=True)
class Compensate:
    """The variables: `steps` registered so far, `left` to undo, `failure` that caused it.

    `stops`: an undo step that fails stops the others.
    """

    origin: Origin
    steps: str
    left: str
    failure: str
    body: Block
    stops: bool


@dataclass(frozen=True, slots=True)
class Register:
    """Adds an undo step to the list `steps`."""

    origin: Origin
    steps: str
    task: Task[..., Any]
    arguments: Expression


@dataclass(frozen=True, slots=True)
class Shielded:
    """Is not cancelled in the middle."""

    origin: Origin
    body: Block


@dataclass(frozen=True, slots=True)
class Deadline:
    """Raises BlockTimeout when the body is not over after so many `seconds`."""

    origin: Origin
    seconds: Expression
    body: Block


class Target(NamedTuple):
    """Where a step's result goes: all of it, or its part number `part`."""

    variable: str
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """`targets` None: the result is what the workflow or branch returns."""

    origin: Origin
    action: Action
    targets: tuple[Target, ...] | None


@dataclass(frozen=True, slots=True)
class RunTask:
    task: Task[..., Any]
    arguments: Expression


@dataclass(frozen=True, slots=True)
class RunWorkflow:
    """A child execution. `arguments`: its whole input, with what the call left out."""

    workflow: Workflow[..., Any]
    arguments: Expression


@dataclass(frozen=True, slots=True)
class WaitForEvent:
    event: str
    payload: Any
    key: Expression
    timeout: Expression | None


@dataclass(frozen=True, slots=True)
class Ask:
    answer: Any
    arguments: Expression
    timeout: Expression | None


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: Expression


@dataclass(frozen=True, slots=True)
class SleepUntil:
    """The text of a time stamp with its offset."""

    moment: Expression


@dataclass(frozen=True, slots=True)
class RunParallel:
    """How many branches must succeed (None: all) and how many may fail (None: none)."""

    branches: tuple[Block, ...]
    needed: Expression | None
    tolerated: Expression | None


@dataclass(frozen=True, slots=True)
class RunFirst:
    """The first branch that ends decides; its value is the result."""

    branches: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class RunEach:
    """`parameter` None: the branch does not look at its item. No `concurrency`: no bound.

    How many calls must succeed (None: all) and how many may fail (None: none).
    """

    items: Expression
    parameter: str | None
    body: Block
    concurrency: Expression | None
    needed: Expression | None
    tolerated: Expression | None


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement that belong to the same frame of execution."""
    match statement:
        case Assign() | Step():
            return ()
        case If(_, _, body, orelse):
            return (body, orelse)
        case Loop(_, _, head, _, _, body, orelse):
            return (head, body, orelse)
        case Compensate(body=body) | Shielded(body=body) | Deadline(body=body):
            return (body,)
        case Try(_, body, handlers, orelse):
            return (body, *(handler.body for handler in handlers), orelse)
        case Finally(_, body, _, finals):
            return (body, *(final.body for final in finals))
        case _:
            return ()


def inner_blocks(statement: Statement) -> tuple[Block, ...]:
    """All blocks inside a statement: a step has branches, any other its own blocks."""
    return branches_of(statement) if isinstance(statement, Step) else blocks_of(statement)


def branches_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks that run in frames of their own."""
    match statement:
        case Step(action=RunParallel(branches) | RunFirst(branches)):
            return branches
        case Step(action=RunEach(body=body)):
            return (body,)
        case _:
            return ()
