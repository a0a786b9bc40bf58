"""The workflow between Python and ASL: structured statements, resolved names, typed queries.

Every variable is an ASL variable, every durable call a `Step` of its own, and every statement knows
the source it came from. Nothing here refers to `ast`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.dsl.context import Expression
from holdfast.dsl.source import Span
from holdfast.dsl.surface import Task

Statement: TypeAlias = (
    "Assign | If | Loop | Break | Continue | Return | Raise | Reraise | Try | Compensate"
    " | Register | Step"
)
Block: TypeAlias = tuple[Statement, ...]
Action: TypeAlias = "RunTask | WaitForEvent | Ask | Sleep | RunParallel | RunEach"


@dataclass(frozen=True, slots=True)
class Origin:
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
    """`setup`, then while `test` (None: always): `advance`, the body.

    A `for` loop counts through a list in two variables; `while` has neither setup nor advance.
    """

    origin: Origin
    setup: tuple[tuple[str, Expression], ...]
    test: Expression | None
    advance: tuple[tuple[str, Expression], ...]
    body: Block


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


@dataclass(frozen=True, slots=True)
class Try:
    origin: Origin
    body: Block
    handlers: tuple[Handler, ...]


@dataclass(frozen=True, slots=True)
class Compensate:
    """The variables: `steps` registered so far, `left` to undo, `failure` that caused it."""

    origin: Origin
    steps: str
    left: str
    failure: str
    body: Block


@dataclass(frozen=True, slots=True)
class Register:
    """Adds an undo step to the list `steps`."""

    origin: Origin
    steps: str
    task: Task[..., Any]
    arguments: Expression


@dataclass(frozen=True, slots=True)
class Target:
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
class WaitForEvent:
    event: str
    payload: type[Any]
    key: Expression
    timeout: Expression | None


@dataclass(frozen=True, slots=True)
class Ask:
    answer: type[Any]
    arguments: Expression
    timeout: Expression | None


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: Expression


@dataclass(frozen=True, slots=True)
class RunParallel:
    branches: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class RunEach:
    """`parameter` None: the branch does not look at its item."""

    items: Expression
    parameter: str | None
    body: Block
    concurrency: int


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement that belong to the same frame of execution."""
    match statement:
        case If(_, _, body, orelse):
            return (body, orelse)
        case Loop(body=body) | Compensate(body=body):
            return (body,)
        case Try(_, body, handlers):
            return (body, *(handler.body for handler in handlers))
        case _:
            return ()


def branches_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks that run in frames of their own."""
    match statement:
        case Step(action=RunParallel(branches)):
            return branches
        case Step(action=RunEach(body=body)):
            return (body,)
        case _:
            return ()
